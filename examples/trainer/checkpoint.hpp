// Everything an interrupted run needs to go on, bit for bit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "model.hpp"
#include "options.hpp"

/// Writes a file whole, or not at all: what was there stays until the new one is complete.
template <class Write>
void write_whole(const std::filesystem::path& path, Write write) {
    const std::filesystem::path fresh = path.string() + ".new";
    std::ofstream file{fresh, std::ios::binary};
    write(file);
    file.close();
    if (!file) {
        throw std::runtime_error{"cannot write \"" + fresh.string() + "\""};
    }
    std::filesystem::rename(fresh, path);
}

struct Checkpoint {
    static constexpr const char* title = "stoker-trainer 2";

    std::string settings;     // what the prefetcher's own state does not know, but the weights depend on
    std::string state;        // where the training prefetcher goes on: the text of a stoker::State
    std::uint64_t epoch = 0;  // being trained, or, if is_trained is 1, to be validated
    std::uint64_t is_trained = 0;
    double best_loss = 1e300, best_accuracy = 0;
    Model::Score score;  // of the epoch so far
    std::vector<float> weights, momentum;

    void save(const std::filesystem::path& path) const {
        write_whole(path, [this](std::ofstream& file) {
            const auto put = [&file](const auto& value) {
                file.write(reinterpret_cast<const char*>(&value), sizeof value);
            };
            file << title << '\n' << settings << '\n' << state << '\n';
            put(epoch), put(is_trained), put(best_loss), put(best_accuracy);
            put(score.loss), put(score.right), put(score.count);
            for (const auto* list : {&weights, &momentum}) {
                const std::uint64_t size = list->size();
                put(size);
                file.write(reinterpret_cast<const char*>(list->data()),
                           static_cast<std::streamsize>(size * sizeof(float)));
            }
        });
    }

    /// @throws BadInput  there is none, it is broken, or it belongs to other settings or classes.
    static Checkpoint load(const std::filesystem::path& path, const std::string& settings, std::size_t parameters) {
        const auto refuse = [&path](const std::string& reason) {
            throw BadInput{"cannot resume from \"" + path.string() + "\": " + reason + "; start without --resume"};
        };
        Checkpoint checkpoint;
        std::ifstream file{path, std::ios::binary};
        if (!file) {
            refuse("there is no such file: no run with this --out was interrupted");
        }
        std::string first;
        std::getline(file, first);
        std::getline(file, checkpoint.settings);
        std::getline(file, checkpoint.state);
        if (!file || first != title) {
            refuse("it is no checkpoint of this program");
        }
        if (checkpoint.settings != settings) {
            refuse("it was made with " + checkpoint.settings + ", but this run has " + settings);
        }
        const auto get = [&file](auto& value) { file.read(reinterpret_cast<char*>(&value), sizeof value); };
        get(checkpoint.epoch), get(checkpoint.is_trained), get(checkpoint.best_loss), get(checkpoint.best_accuracy);
        get(checkpoint.score.loss), get(checkpoint.score.right), get(checkpoint.score.count);
        for (auto* list : {&checkpoint.weights, &checkpoint.momentum}) {
            std::uint64_t size = 0;
            get(size);
            if (file && size != parameters) {
                refuse("it is of a model with other classes");
            }
            list->resize(parameters);
            file.read(reinterpret_cast<char*>(list->data()), static_cast<std::streamsize>(parameters * sizeof(float)));
        }
        if (!file) {
            refuse("it is cut short");
        }
        return checkpoint;
    }
};
