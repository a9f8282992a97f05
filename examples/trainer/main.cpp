// The example trainer: a training and a validation prefetcher side by side, several epochs, best weights kept, resume
// after an interruption, and a summary of what the overlap was worth. See options.hpp for the command line.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <stoker/stoker.hpp>

#include "checkpoint.hpp"
#include "data.hpp"
#include "model.hpp"
#include "options.hpp"
#include "pictures.hpp"
#include "progress.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Feed = stoker::Prefetcher<stoker::ImageBatch>;
using Count = unsigned long long;  // for printf

volatile std::sig_atomic_t interrupted = 0;  // the signal that came
extern "C" void on_signal(int signal) {
    interrupted = signal;
    std::signal(signal, SIG_DFL);  // the next one ends the program at once
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Takes the next batch, but does not wait on when a signal comes. Nothing: the epoch has ended, or a signal came.
std::optional<stoker::Lease<stoker::ImageBatch>> next_batch(stoker::Epoch<stoker::ImageBatch>& epoch) {
    while (interrupted == 0) {
        try {
            return epoch.next_for(std::chrono::milliseconds{200});
        } catch (const stoker::TimeoutError&) {  // have a look at `interrupted`
        }
    }
    return std::nullopt;
}

enum class Files { kept, none };  // whether a run leaves a checkpoint and its best weights

struct Outcome {
    int exit_code = 0;
    std::size_t workers = 0;
    double wall = 0, compute = 0, waited = 0, loading = 0;  // seconds
    std::uint64_t pictures = 0, hash = 0;
    double best_accuracy = 0;
};

class Run {
  public:
    Run(const TrainerOptions& options, const Data& data, Progress& progress, Files files)
        : options_{options}, progress_{progress}, files_{files}, model_{data.train.classes().size(), options.seed} {
        checkpoint_.settings = "size " + std::to_string(options.size) +
                               (options.validation == Validation::none ? ", no validation" : ", validation");
        stoker::PrefetcherOptions feeding{.batch_size = options.batch_size,
                                          .workers = options.workers,
                                          .prefetch_batches = options.prefetch,
                                          .order = stoker::shuffled(options.seed).subset(data.train_ids),
                                          .on_error = stoker::OnError::skip,
                                          .epochs = options.epochs};
        if (options.is_resumed) {
            checkpoint_ = Checkpoint::load(file_, checkpoint_.settings, model_.weights().size());
            if (checkpoint_.epoch >= options.epochs) {
                throw BadInput{text("cannot resume: %llu epochs are done, so --epochs has to be more than %llu",
                                    Count{checkpoint_.epoch}, Count{options.epochs})};
            }
            model_.weights() = checkpoint_.weights;
            model_.momentum() = checkpoint_.momentum;
            feeding.resume = stoker::State::parse(checkpoint_.state);
        }
        feed_.emplace(stoker::decode(data.train, {.height = options.size,
                                                  .width = options.size,
                                                  .crop = stoker::Crop::random_resized,
                                                  .scale = {0.6, 1.0},
                                                  .flip = 0.5}),
                      feeding);
        if (!data.validation_ids.empty()) {
            validation_.emplace(stoker::decode(data.validation, {.height = options.size, .width = options.size}),
                                stoker::PrefetcherOptions{.batch_size = options.batch_size,
                                                          .workers = options.workers,
                                                          .prefetch_batches = 1,
                                                          .order = stoker::sequential().subset(data.validation_ids),
                                                          .on_error = stoker::OnError::skip});
        }
    }

    Outcome operator()() {
        while (checkpoint_.epoch < options_.epochs && train_epoch() && validate_epoch()) {
            checkpoint_.score = {};
            checkpoint_.is_trained = 0;
            if (++checkpoint_.epoch < options_.epochs) {
                save();
            }
        }
        outcome_.wall = seconds_since(begin_);
        if (interrupted != 0) {
            outcome_.exit_code = 128 + interrupted;
            return outcome_;
        }
        count(*feed_);
        if (validation_) {
            count(*validation_);
        }
        if (files_ == Files::kept) {
            std::filesystem::remove(file_);  // nothing is left to resume
        }
        outcome_.workers = feed_->options().workers.value_or(0);
        outcome_.hash = hash_of(model_.weights());
        outcome_.best_accuracy = checkpoint_.best_accuracy;
        return outcome_;
    }

  private:
    /// @return false: a signal came, and the state is saved.
    bool train_epoch() {
        if (checkpoint_.is_trained != 0) {
            return true;  // this far it came before the interruption
        }
        stoker::Epoch epoch = feed_->epoch();
        const std::uint64_t whole = feed_->length().value_or(0);
        while (auto batch = next_batch(epoch)) {
            if (steps_++ == 0) {
                progress_.log(text("first batch after %.3f s", seconds_since(begin_)));
            }
            const auto start = Clock::now();
            // The place of a device: it would start its step on (*batch).on(stream) here.
            checkpoint_.score.add(model_.train((*batch)->images, (*batch)->labels.host(), 0.05F));
            outcome_.compute += seconds_since(start);
            outcome_.pictures += batch->size();
            const std::uint64_t left = epoch.remaining().value_or(0);
            checkpoint_.is_trained = left == 0 ? 1 : 0;
            progress_.show(text("epoch %llu/%llu  batch %llu/%llu  loss %.3f  %.0f pictures/s",
                                Count{checkpoint_.epoch + 1}, Count{options_.epochs}, Count{whole - left}, Count{whole},
                                checkpoint_.score.mean_loss(),
                                static_cast<double>(outcome_.pictures) / seconds_since(begin_)));
            if (steps_ == options_.stop_after) {
                std::raise(SIGINT);
            }
        }
        if (interrupted != 0) {
            return leave();  // while `epoch` lives: giving it up early would skip the rest of it
        }
        checkpoint_.is_trained = 1;
        if (checkpoint_.score.count == 0) {
            const auto failures = feed_->failures();
            throw std::runtime_error{"no picture could be loaded" +
                                     (failures.empty() ? std::string{} : ": " + failures.front().message)};
        }
        return true;
    }

    /// Keeps the weights when they are the best so far. @return false: a signal came, and the state is saved.
    bool validate_epoch() {
        Model::Score score;
        if (validation_) {
            stoker::Epoch epoch = validation_->epoch();
            while (auto batch = next_batch(epoch)) {
                const auto start = Clock::now();
                score.add(model_.evaluate((*batch)->images, (*batch)->labels.host()));
                outcome_.compute += seconds_since(start);
            }
        }
        if (interrupted != 0) {
            return leave();
        }
        std::string line = text("epoch %llu/%llu  train loss %.3f", Count{checkpoint_.epoch + 1},
                                Count{options_.epochs}, checkpoint_.score.mean_loss());
        if (validation_) {
            line += text("  validation loss %.3f  accuracy %.1f %%", score.mean_loss(), 100 * score.accuracy());
        }
        const Model::Score& judge = validation_ ? score : checkpoint_.score;
        if (judge.mean_loss() < checkpoint_.best_loss) {
            checkpoint_.best_loss = judge.mean_loss();
            checkpoint_.best_accuracy = judge.accuracy();
            if (files_ == Files::kept) {
                write_whole(options_.out / "best-weights", [this](std::ofstream& file) {
                    file.write(reinterpret_cast<const char*>(model_.weights().data()),
                               static_cast<std::streamsize>(model_.weights().size() * sizeof(float)));
                });
            }
            line += "  best";
        }
        progress_.say(line);
        return true;
    }

    void save() {
        if (files_ == Files::kept) {
            checkpoint_.state = feed_->state().to_string();  // behind the last batch that was taken
            checkpoint_.weights = model_.weights();
            checkpoint_.momentum = model_.momentum();
            checkpoint_.save(file_);
        }
    }

    bool leave() {
        save();
        progress_.say(text("interrupted in epoch %llu", Count{checkpoint_.epoch + 1}) +
                      (files_ == Files::kept ? "; go on with the same options and --resume" : " of the comparison"));
        return false;
    }

    void count(const Feed& feed) {
        const stoker::Report report = feed.report();
        outcome_.loading += report.fetch.busy_seconds + report.fill.busy_seconds + report.finish.busy_seconds;
        outcome_.waited += report.consumer_waited_seconds;
        if (report.failures != 0) {
            progress_.say(
                text("note: loading failed %llu times, and went on without; the last time: ", Count{report.failures}) +
                feed.failures().back().message);
        }
    }

    const TrainerOptions& options_;
    Progress& progress_;
    Files files_;
    Model model_;
    Checkpoint checkpoint_;
    const std::filesystem::path file_ = options_.out / "checkpoint";
    Outcome outcome_;
    std::uint64_t steps_ = 0;
    const Clock::time_point begin_ = Clock::now();
    std::optional<Feed> feed_, validation_;
};

void summarise(const TrainerOptions& options, const Outcome& outcome, Progress& progress) {
    if (options.validation == Validation::none) {
        progress.say("no validation: the best weights are those of the least training loss");
    } else {
        progress.say(text("best validation accuracy %.1f %%", 100 * outcome.best_accuracy));
    }
    progress.say("best weights in " + (options.out / "best-weights").string() + ", log in " +
                 (options.out / "log.txt").string());
    if (outcome.workers == 0) {
        progress.say(text("sequential %.2f s (--workers 0: nothing overlapped): loading %.2f s, compute %.2f s",
                          outcome.wall, outcome.loading, outcome.compute));
    } else {
        // A worker's clock runs on while it waits for a core, so the estimate is too high on a busy machine.
        progress.say(text(
            "overlapped %.2f s; sequential %.2f s (estimated: loading %.2f s, by the counters of %zu workers, plus "
            "compute %.2f s)",
            outcome.wall, outcome.loading + outcome.compute, outcome.loading, outcome.workers, outcome.compute));
    }
    progress.say(text("the compute waited for pictures %.0f %% of the time; %.0f pictures/s",
                      100 * outcome.waited / outcome.wall, static_cast<double>(outcome.pictures) / outcome.wall));
    progress.say(text("final weights %016llx", Count{outcome.hash}));
}

int run(int argc, char** argv) {
    TrainerOptions options = parse_options(argc, argv);
    std::error_code failed;
    std::filesystem::create_directories(options.out, failed);
    if (failed) {
        throw BadInput{"cannot make the folder \"" + options.out.string() + "\" that --out names: " + failed.message()};
    }
    if (options.data.empty()) {
        options.data = pictures::render(options.out, options.is_small ? 20 : 200, options.seed);
    }
    Progress progress{options.out / "log.txt", options.is_resumed ? Progress::Log::append : Progress::Log::anew};
    const Data data = open_data(options.data, options.validation, progress);
    if (!options.is_resumed && std::filesystem::exists(options.out / "checkpoint")) {
        progress.say("note: this run starts anew and replaces the checkpoint of an unfinished one in " +
                     options.out.string() + "; --resume would go on with that");
    }
    std::signal(SIGINT, on_signal);  // from here on there is something to save
    std::signal(SIGTERM, on_signal);
    const Outcome outcome = Run{options, data, progress, Files::kept}();
    if (outcome.exit_code != 0) {
        return outcome.exit_code;
    }
    summarise(options, outcome, progress);
    if (options.is_compared) {
        progress.say("once more, without overlap");
        options.workers = 0;
        const Outcome sequential = Run{options, data, progress, Files::none}();
        if (sequential.exit_code != 0) {
            return sequential.exit_code;
        }
        const bool is_equal = sequential.hash == outcome.hash;
        progress.say(
            text("measured: overlapped %.2f s, sequential %.2f s (second, so its files were cached), %.2f "
                 "times as fast; weights %s",
                 outcome.wall, sequential.wall, sequential.wall / outcome.wall, is_equal ? "equal" : "DIFFER"));
        return is_equal ? 0 : 1;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const auto complain = [](const std::exception& error, int exit_code) {
        std::fprintf(stderr, "trainer: %s\n", error.what());
        return exit_code;
    };
    try {
        return run(argc, argv);
    } catch (const BadInput& error) {
        return complain(error, 2);
    } catch (const stoker::Error& error) {  // options, a folder or a saved state that do not work
        return complain(error, 2);
    } catch (const std::filesystem::filesystem_error& error) {
        return complain(error, 2);
    } catch (const std::exception& error) {
        return complain(error, 1);
    }
}
