// The trainer's command line.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

/// What the user gave cannot work; the program ends with 2.
class BadInput : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

enum class Validation {
    automatic,  ///< DIR/val, or every fifth picture of each class, or, where no class has two, the training pictures.
    none,       ///< The training loss decides which weights are the best.
};

struct TrainerOptions {
    std::filesystem::path data;  // empty: render pictures
    std::filesystem::path out = "trainer-out";
    Validation validation = Validation::automatic;
    std::uint64_t epochs = 8;
    std::uint64_t batch_size = 32;
    std::optional<std::size_t> workers{};  // unset: as many as this machine has to give
    std::size_t prefetch = 3;
    std::uint64_t seed = 7;
    std::uint32_t size = 32;       // pictures are cropped and resized to size x size pixels
    std::uint64_t stop_after = 0;  // for tests: raise SIGINT after that many batches
    bool is_resumed = false;
    bool is_compared = false;
    bool is_small = false;
};

constexpr const char* usage =
    "trainer: trains a small classifier on a folder of pictures while stoker loads them.\n"
    "  --data DIR     one sub-folder per class, or DIR/train and DIR/val of such; without it pictures are rendered "
    "first\n"
    "  --out DIR      where the log, the checkpoint, the best weights and rendered pictures go (trainer-out)\n"
    "  --val WHAT     auto: DIR/val, or every fifth picture of each class; none: no validation (auto)\n"
    "  --epochs N     passes over the training pictures (8)\n"
    "  --batch-size N pictures per step (32)\n"
    "  --workers N    loader threads; 0: none (as CPU affinity and quota allow)\n"
    "  --prefetch N   batches loaded ahead (3)\n"
    "  --seed N       of order, augmentation and first weights (7)\n"
    "  --size N       edge of the pictures the model sees, in pixels, 8 to 512 (32)\n"
    "  --resume       go on where the last run with this --out was interrupted\n"
    "  --compare      also run the loop without overlap, and print both times\n"
    "  --small        few pictures and epochs, for a test\n"
    "  --stop-after N interrupt itself after N batches, as Ctrl-C would, for a test\n"
    "Ctrl-C (or SIGTERM) saves the state and exits with 130 (143); a second one ends at once. A checkpoint is also "
    "saved\n"
    "after every epoch. Exit 2: the command line, the folder or the checkpoint cannot be used; the reason is "
    "printed.\n";

/// Exits with 0 for --help. @throws BadInput  the command line cannot be understood.
inline TrainerOptions parse_options(int argc, char** argv) {
    TrainerOptions options;
    bool has_epochs = false;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--help") {
            std::fputs(usage, stdout);
            std::exit(0);
        }
        if (name == "--resume" || name == "--compare" || name == "--small") {
            options.is_resumed = options.is_resumed || name == "--resume";
            options.is_compared = options.is_compared || name == "--compare";
            options.is_small = options.is_small || name == "--small";
            continue;
        }
        if (i + 1 == argc) {
            throw BadInput{
                (name.starts_with("--") ? name + " is unknown or lacks its value" : "\"" + name + "\" is no option") +
                "; see --help"};
        }
        const std::string value = argv[++i];
        const auto number = [&](std::uint64_t least, std::uint64_t most) {
            std::uint64_t result = 0;
            const char* const end = value.data() + value.size();
            const auto parsed = std::from_chars(value.data(), end, result);
            if (parsed.ec != std::errc{} || parsed.ptr != end || result < least || result > most) {
                throw BadInput{name + " is \"" + value + "\", but has to be " + std::to_string(least) + " to " +
                               std::to_string(most)};
            }
            return result;
        };
        if (name == "--data") {
            options.data = value;
            if (value.empty()) {
                throw BadInput{"--data is empty, but has to be a folder"};
            }
        } else if (name == "--out") {
            options.out = value;
        } else if (name == "--val") {
            if (value != "auto" && value != "none") {
                throw BadInput{"--val is \"" + value + "\", but has to be auto or none"};
            }
            options.validation = value == "none" ? Validation::none : Validation::automatic;
        } else if (name == "--epochs") {
            options.epochs = number(1, 1000000);
            has_epochs = true;
        } else if (name == "--batch-size") {
            options.batch_size = number(1, 65536);
        } else if (name == "--workers") {
            options.workers = number(0, 1024);
        } else if (name == "--prefetch") {
            options.prefetch = number(1, 1024);
        } else if (name == "--seed") {
            options.seed = number(0, ~std::uint64_t{0});
        } else if (name == "--size") {
            options.size = static_cast<std::uint32_t>(number(8, 512));
        } else if (name == "--stop-after") {
            options.stop_after = number(1, ~std::uint64_t{0});
        } else {
            throw BadInput{name + " is unknown; see --help"};
        }
    }
    if (options.is_small && !has_epochs) {
        options.epochs = 2;
    }
    if (options.is_compared && options.is_resumed) {
        throw BadInput{"--compare measures whole runs, so it cannot go together with --resume"};
    }
    return options;
}
