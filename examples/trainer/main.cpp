// The example trainer: a training and a validation prefetcher side by side, several epochs, best weights kept, resume
// after an interruption, and a summary of what the overlap was worth. See options.hpp for the command line.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <stoker/stoker.hpp>

#include "model.hpp"
#include "options.hpp"
#include "pictures.hpp"

namespace {

using Clock = std::chrono::steady_clock;
volatile std::sig_atomic_t interrupted = 0;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Data {
    stoker::ImageFolder train, validation;
    std::vector<std::uint64_t> train_ids, validation_ids;
};

/// DIR/train and DIR/val, or one folder of which about every fifth picture of a class with two or more is for
/// validation.
Data open_data(const std::filesystem::path& folder) {
    const bool is_split =
        std::filesystem::is_directory(folder / "train") && std::filesystem::is_directory(folder / "val");
    Data data{stoker::ImageFolder{is_split ? folder / "train" : folder},
              stoker::ImageFolder{is_split ? folder / "val" : folder},
              {},
              {}};
    if (is_split && data.train.classes() != data.validation.classes()) {
        throw stoker::OptionError{"cannot train on \"" + folder.string() + "\": train and val have different classes"};
    }
    std::vector<std::uint64_t> seen(data.train.classes().size());
    for (std::uint64_t i = 0; i < data.train.size(); ++i) {
        const std::uint64_t n = seen[static_cast<std::size_t>(data.train.label(i))]++;
        (!is_split && n % 5 == 1 ? data.validation_ids : data.train_ids).push_back(i);
    }
    for (std::uint64_t i = 0; is_split && i < data.validation.size(); ++i) {
        data.validation_ids.push_back(i);
    }
    if (data.validation_ids.empty()) {
        std::puts(
            "note: no class has two pictures, so the validation set is the training set: its accuracy says nothing");
        data.validation_ids = data.train_ids;
    }
    return data;
}

/// Everything an interrupted run needs to go on, bit for bit.
struct Checkpoint {
    std::string state;        // where the training prefetcher goes on
    std::uint64_t epoch = 0;  // being trained, or, if is_validating, to be validated
    bool is_validating = false;
    double best_loss = 1e300, best_accuracy = 0;
    Model::Score score;  // of the epoch so far
    std::vector<float> weights, momentum, best_weights;

    void save(const std::filesystem::path& path) const {
        const std::filesystem::path fresh = path.string() + ".new";
        std::ofstream file{fresh, std::ios::binary};
        file << "stoker-trainer 1\n" << state << '\n';
        const auto put = [&file](const auto& value) {
            file.write(reinterpret_cast<const char*>(&value), sizeof value);
        };
        put(epoch), put(is_validating), put(best_loss), put(best_accuracy);
        put(score.loss), put(score.right), put(score.count);
        for (const auto* list : {&weights, &momentum, &best_weights}) {
            const std::uint64_t size = list->size();
            put(size);
            file.write(reinterpret_cast<const char*>(list->data()), static_cast<std::streamsize>(size * sizeof(float)));
        }
        if (!file.flush()) {
            throw std::runtime_error{"cannot write \"" + fresh.string() + "\""};
        }
        file.close();
        std::filesystem::rename(fresh, path);  // whole, or not at all
    }

    static Checkpoint load(const std::filesystem::path& path, std::size_t parameters) {
        Checkpoint checkpoint;
        std::ifstream file{path, std::ios::binary};
        std::string title;
        std::getline(file, title);
        std::getline(file, checkpoint.state);
        const auto get = [&file](auto& value) { file.read(reinterpret_cast<char*>(&value), sizeof value); };
        get(checkpoint.epoch), get(checkpoint.is_validating), get(checkpoint.best_loss), get(checkpoint.best_accuracy);
        get(checkpoint.score.loss), get(checkpoint.score.right), get(checkpoint.score.count);
        bool fits = file && title == "stoker-trainer 1";
        for (auto* list : {&checkpoint.weights, &checkpoint.momentum, &checkpoint.best_weights}) {
            std::uint64_t size = 0;
            get(size);
            fits = fits && file && (size == parameters || (list == &checkpoint.best_weights && size == 0));
            list->resize(fits ? size : 0);
            file.read(reinterpret_cast<char*>(list->data()),
                      static_cast<std::streamsize>(list->size() * sizeof(float)));
        }
        if (!fits || !file) {
            throw std::runtime_error{"cannot resume from \"" + path.string() +
                                     "\": it is missing, cut short, or of other classes; start without --resume"};
        }
        return checkpoint;
    }
};

/// One line that a terminal shows moving, and a log file once per epoch.
class Progress {
  public:
    void show(const std::string& line, bool is_last) {
        if (is_terminal_) {
            std::printf("\r%-*s%s", width_, line.c_str(), is_last ? "\n" : "");
            width_ = is_last ? 0 : static_cast<int>(line.size());
            std::fflush(stdout);
        } else if (is_last) {
            std::printf("%s\n", line.c_str());
            std::fflush(stdout);
        }
    }

  private:
    bool is_terminal_ = ::isatty(STDOUT_FILENO) == 1;
    int width_ = 0;
};

struct Outcome {
    int exit_code = 0;
    double wall = 0, compute = 0, waited = 0, busy = 0;
    std::uint64_t pictures = 0, batches = 0, hash = 0;
    double best_accuracy = 0;
};

Outcome train(const TrainerOptions& options, const Data& data) {
    const std::size_t classes = data.train.classes().size();
    Model model{classes, options.seed};
    Checkpoint checkpoint;
    const std::filesystem::path file = options.out / "checkpoint";
    stoker::PrefetcherOptions feeding{.batch_size = options.batch_size,
                                      .workers = options.workers,
                                      .prefetch_batches = options.prefetch,
                                      .order = stoker::shuffled(options.seed).subset(data.train_ids),
                                      .on_error = stoker::OnError::skip,
                                      .epochs = options.epochs};
    if (options.is_resumed) {
        checkpoint = Checkpoint::load(file, model.weights().size());
        model.weights() = checkpoint.weights;
        model.momentum() = checkpoint.momentum;
        feeding.resume = stoker::State::parse(checkpoint.state);
    }
    stoker::Prefetcher<stoker::ImageBatch> feed{stoker::decode(data.train, {.height = options.size,
                                                                            .width = options.size,
                                                                            .crop = stoker::Crop::random_resized,
                                                                            .scale = {0.6, 1.0},
                                                                            .flip = 0.5}),
                                                feeding};
    stoker::Prefetcher<stoker::ImageBatch> validation{
        stoker::decode(data.validation, {.height = options.size, .width = options.size}),
        {.batch_size = options.batch_size,
         .workers = options.workers,
         .prefetch_batches = 1,
         .order = stoker::sequential().subset(data.validation_ids),
         .on_error = stoker::OnError::skip}};

    Outcome outcome;
    Progress progress;
    std::uint64_t steps = 0;
    const auto begin = Clock::now();
    const auto save = [&] {
        checkpoint.weights = model.weights();
        checkpoint.momentum = model.momentum();
        checkpoint.save(file);
    };
    const auto is_interrupted = [&] {
        if (interrupted != 0) {
            save();
            std::printf("\ninterrupted in epoch %llu; go on with the same options and --resume\n",
                        static_cast<unsigned long long>(checkpoint.epoch + 1));
            outcome.exit_code = 128 + interrupted;
        }
        return interrupted != 0;
    };
    checkpoint.state = feed.state().to_string();
    for (; checkpoint.epoch < options.epochs; ++checkpoint.epoch) {
        char line[200];
        if (!checkpoint.is_validating) {
            stoker::Epoch epoch = feed.epoch();
            const std::uint64_t whole = epoch.remaining().value_or(0);
            for (auto&& batch : epoch) {
                const auto start = Clock::now();
                checkpoint.score.add(model.train(batch->images, batch->labels.host(), 0.05F));
                outcome.compute += seconds_since(start);
                outcome.pictures += batch.size();
                ++outcome.batches;
                checkpoint.state = batch.state().to_string();
                std::snprintf(
                    line, sizeof line, "epoch %llu/%llu  batch %llu/%llu  loss %.3f  %.0f pictures/s",
                    static_cast<unsigned long long>(checkpoint.epoch + 1),
                    static_cast<unsigned long long>(options.epochs),
                    static_cast<unsigned long long>(whole - epoch.remaining().value_or(0)),
                    static_cast<unsigned long long>(whole),
                    checkpoint.score.loss / static_cast<double>(std::max<std::uint64_t>(1, checkpoint.score.count)),
                    static_cast<double>(outcome.pictures) / seconds_since(begin));
                progress.show(line, false);
                if (++steps == options.stop_after) {
                    std::raise(SIGINT);
                }
                if (is_interrupted()) {
                    return outcome;
                }
            }
            checkpoint.is_validating = true;
        }
        Model::Score score;
        for (auto&& batch : validation.epoch()) {
            const auto start = Clock::now();
            score.add(model.evaluate(batch->images, batch->labels.host()));
            outcome.compute += seconds_since(start);
            if (is_interrupted()) {
                return outcome;
            }
        }
        const double count = static_cast<double>(std::max<std::uint64_t>(1, score.count));
        const double loss = score.loss / count, accuracy = static_cast<double>(score.right) / count;
        if (loss < checkpoint.best_loss) {
            checkpoint.best_loss = loss;
            checkpoint.best_accuracy = accuracy;
            checkpoint.best_weights = model.weights();
            std::ofstream best{options.out / "best-weights", std::ios::binary};
            best.write(reinterpret_cast<const char*>(model.weights().data()),
                       static_cast<std::streamsize>(model.weights().size() * sizeof(float)));
        }
        std::snprintf(line, sizeof line, "epoch %llu/%llu  train loss %.3f  validation loss %.3f  accuracy %.1f %%",
                      static_cast<unsigned long long>(checkpoint.epoch + 1),
                      static_cast<unsigned long long>(options.epochs),
                      checkpoint.score.loss / static_cast<double>(std::max<std::uint64_t>(1, checkpoint.score.count)),
                      loss, 100 * accuracy);
        progress.show(line, true);
        checkpoint.score = {};
        checkpoint.is_validating = false;
    }
    outcome.wall = seconds_since(begin);
    for (const stoker::Report& report : {feed.report(), validation.report()}) {
        outcome.busy += report.fetch.busy_seconds + report.fill.busy_seconds + report.finish.busy_seconds;
        outcome.waited += report.consumer_waited_seconds;
        if (report.failures != 0) {
            std::printf("note: %llu pictures could not be loaded and were left out\n",
                        static_cast<unsigned long long>(report.failures));
        }
    }
    for (const stoker::Failure& failure : feed.failures()) {
        std::printf("  %s\n", failure.message.c_str());
        break;  // the first one says what kind it is
    }
    outcome.hash = hash_of(model.weights());
    outcome.best_accuracy = checkpoint.best_accuracy;
    std::filesystem::remove(file);  // nothing is left to resume
    return outcome;
}

}  // namespace

int main(int argc, char** argv) try {
    TrainerOptions options = parse_options(argc, argv);
    if (options.is_small) {
        options.epochs = std::min<std::uint64_t>(options.epochs, 2);
    }
    std::signal(SIGINT, [](int signal) { interrupted = signal; });
    std::signal(SIGTERM, [](int signal) { interrupted = signal; });
    std::filesystem::create_directories(options.out);
    if (options.data.empty()) {
        options.data = options.out / "pictures";
        pictures::render(options.data, options.is_small ? 20 : 200, options.seed);
    }
    const Data data = open_data(options.data);
    std::printf("%zu pictures to train on, %zu to validate, %zu classes; %zu without use in the folder\n",
                data.train_ids.size(), data.validation_ids.size(), data.train.classes().size(),
                static_cast<std::size_t>(data.train.ignored()));
    const Outcome outcome = train(options, data);
    if (outcome.exit_code != 0) {
        return outcome.exit_code;
    }
    std::printf("best validation accuracy %.1f %%; weights in %s\n", 100 * outcome.best_accuracy,
                (options.out / "best-weights").c_str());
    std::printf(
        "overlapped %.2f s; sequential %.2f s (estimated: loading %.2f s, by the workers' counters, plus compute %.2f "
        "s)\n",
        outcome.wall, outcome.busy + outcome.compute, outcome.busy, outcome.compute);
    std::printf("the loop waited for pictures %.0f %% of the time; %.0f pictures/s\n",
                100 * outcome.waited / outcome.wall, static_cast<double>(outcome.pictures) / outcome.wall);
    std::printf("final weights %016llx\n", static_cast<unsigned long long>(outcome.hash));
    if (options.is_compared) {
        options.workers = 0;
        options.is_resumed = false;
        const Outcome sequential = train(options, data);
        std::printf("measured: overlapped %.2f s, sequential %.2f s, %.2f times as fast; weights %s\n", outcome.wall,
                    sequential.wall, sequential.wall / outcome.wall,
                    sequential.hash == outcome.hash ? "equal" : "DIFFER");
        return sequential.hash == outcome.hash ? 0 : 1;
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "trainer: %s\n", error.what());
    return 2;
}
