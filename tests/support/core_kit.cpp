// SPDX-License-Identifier: MIT
#include "support/core_kit.hpp"

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ostream>
#include <span>
#include <string_view>
#include <utility>

template class stoker::detail::Core<testing_support::NumberBatch, stoker::HostDevice>;
template class stoker::detail::Core<stoker::ImageBatch, stoker::HostDevice>;

namespace testing_support {
namespace {

class DrawSource {
  public:
    DrawSource(std::uint64_t size, Fails fails) : size_{size}, fails_{std::move(fails)} {}
    [[nodiscard]] std::uint64_t size() const { return size_; }
    [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return number_layout(); }
    void fill(stoker::Row<NumberBatch> row, stoker::Sample& sample) const {
        row[&NumberBatch::ids] = sample.index();
        const auto numbers = row[&NumberBatch::numbers];
        for (std::size_t i = 0; i < number_width; ++i) {
            numbers[i] = static_cast<std::uint32_t>(sample.random().bits());
        }
        const auto items =
            row[&NumberBatch::items].resize(static_cast<std::size_t>(1 + sample.random().below(item_limit)));
        if (fails_ && fails_(sample.index())) {
            throw stoker::DataError{stoker::ErrorKind::damaged, "a planted fault", describe(sample.index()), 7};
        }
        for (std::uint32_t& item : items) {
            item = static_cast<std::uint32_t>(sample.random().bits());
        }
    }
    [[nodiscard]] std::string describe(std::uint64_t index) const { return "draw/" + std::to_string(index) + ".bin"; }
    [[nodiscard]] std::uint64_t fingerprint() const { return 0x5eed; }

  private:
    static constexpr std::uint64_t item_limit = 4;
    std::uint64_t size_;
    Fails fails_;
};

class FinishedDrawSource {
  public:
    FinishedDrawSource(std::uint64_t size, Fails fails, Fails finish_fails)
        : samples_{size, std::move(fails)}, finish_fails_{std::move(finish_fails)} {}
    [[nodiscard]] std::uint64_t size() const { return samples_.size(); }
    [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return samples_.layout(); }
    void fill(stoker::Row<NumberBatch> row, stoker::Sample& sample) const { samples_.fill(row, sample); }
    [[nodiscard]] std::string describe(std::uint64_t index) const { return samples_.describe(index); }
    void finish(NumberBatch& batch, stoker::BatchContext& context) const {
        std::vector<std::size_t> order(context.size());
        for (std::size_t i = 0; i < order.size(); ++i) {
            order[i] = i;
            std::swap(order[i], order[static_cast<std::size_t>(context.random().below(i + 1))]);
        }
        context.permute(order);
        for (std::size_t row = 0; row < context.size(); ++row) {
            for (std::uint32_t& number : batch.numbers[row]) {
                number += static_cast<std::uint32_t>(context.random().bits());
            }
        }
        if (finish_fails_ && finish_fails_(context.batch())) {
            throw std::runtime_error{"a planted fault of finish"};
        }
    }

  private:
    DrawSource samples_;
    Fails finish_fails_;
};

template <class T>
void append(std::string& bytes, std::span<T> values) {
    const auto raw = std::as_bytes(values);
    bytes.append(reinterpret_cast<const char*>(raw.data()), raw.size());
}

class ColourSource {
  public:
    ColourSource(std::uint64_t size, Hook hook) : size_{size}, hook_{std::move(hook)} {}
    [[nodiscard]] std::uint64_t size() const { return size_; }
    [[nodiscard]] stoker::Layout<stoker::ImageBatch> layout() const {
        return stoker::Layout<stoker::ImageBatch>{}.shape(&stoker::ImageBatch::images, {8, 8, 3});
    }
    void fill(stoker::Row<stoker::ImageBatch> row, stoker::Sample& sample) const {
        if (hook_) {
            hook_(sample);
        }
        const std::uint64_t i = sample.index();
        const auto pixels = row[&stoker::ImageBatch::images].host();
        for (std::size_t p = 0; p < pixels.size(); p += 3) {
            pixels[p] = static_cast<std::uint8_t>(i % 256);
            pixels[p + 1] = static_cast<std::uint8_t>(i / 256);
            pixels[p + 2] = static_cast<std::uint8_t>(7 * i % 256);
        }
        row[&stoker::ImageBatch::labels] = static_cast<std::int32_t>(i);
        row[&stoker::ImageBatch::indices] = i;
    }
    [[nodiscard]] std::string describe(std::uint64_t index) const { return "id/" + std::to_string(index) + ".png"; }

  private:
    std::uint64_t size_;
    Hook hook_;
};

template <class Next>
History record_all(std::size_t batches, const Next& next) {
    History run;
    for (std::size_t taken = 0; taken < batches;) {
        try {
            const auto lease = next();
            if (!lease) {
                break;
            }
            ++taken;
            run.push_back(record(*lease));
        } catch (const stoker::SampleError& error) {
            Delivered one;
            one.error = error.what();
            one.epoch = error.epoch();
            one.batch = error.batch();
            one.position = error.position();
            run.push_back(std::move(one));
        }
    }
    return run;
}

}  // namespace

NumberFeed number_feed(std::uint64_t size, stoker::PrefetcherOptions options, const Hook& hook) {
    return NumberFeed{NumberSource{size, hook}, std::move(options)};
}
NumberFeed number_generator_feed(std::uint64_t size, stoker::PrefetcherOptions options, const Hook& hook) {
    return NumberFeed{NumberGenerator{size, hook}, std::move(options)};
}
NumberFeed draw_feed(std::uint64_t size, stoker::PrefetcherOptions options, const Fails& fails) {
    return NumberFeed{DrawSource{size, fails}, std::move(options)};
}
NumberFeed finished_draw_feed(std::uint64_t size, stoker::PrefetcherOptions options, const Fails& fails,
                              const Fails& finish_fails) {
    return NumberFeed{FinishedDrawSource{size, fails, finish_fails}, std::move(options)};
}

void PrintTo(const Delivered& one, std::ostream* out) {
    *out << "{epoch " << one.epoch << ", batch " << one.batch << ", position " << one.position;
    if (!one.error.empty()) {
        *out << ", error " << one.error << '}';
        return;
    }
    *out << ", rows " << one.rows << ", ids";
    for (const std::uint64_t id : one.ids) {
        *out << ' ' << id;
    }
    *out << ", failed";
    for (const std::uint64_t id : one.failed) {
        *out << ' ' << id;
    }
    *out << ", bytes hash " << std::hash<std::string>{}(one.bytes) << ", state " << one.state.epoch << ':'
         << one.state.position << '}';
}

Delivered record(const NumberLease& lease, bool has_state) {
    const stoker::BatchInfo& info = lease.info();
    Delivered one;
    one.epoch = info.epoch();
    one.batch = info.batch();
    one.position = info.position();
    one.ids.assign(info.sample_ids().begin(), info.sample_ids().end());
    for (const stoker::Failure& failure : info.failures()) {
        one.failed.push_back(failure.index);
    }
    one.rows = info.rows();
    EXPECT_EQ(lease->ids.extent(0), one.rows);
    EXPECT_EQ(lease->numbers.extent(0), one.rows);
    EXPECT_EQ(lease->items.rows(), one.rows);
    append<std::uint64_t>(one.bytes, lease->ids.host());
    append<std::uint32_t>(one.bytes, lease->numbers.host());
    append<const std::uint64_t>(one.bytes, lease->items.offsets().host());
    append<std::uint32_t>(one.bytes, lease->items.values().host());
    if (has_state) {
        one.state = lease.state();
    }
    return one;
}

History record_run(NumberFeed& feed, std::size_t batches) {
    return record_all(batches, [&] { return feed.next(); });
}
History record_epoch(stoker::Epoch<NumberBatch>& epoch) {
    return record_all(std::numeric_limits<std::size_t>::max(), [&] { return epoch.next(); });
}

ColourFeed colour_feed(std::uint64_t size, stoker::PrefetcherOptions options, const Hook& hook) {
    return ColourFeed{ColourSource{size, hook}, std::move(options)};
}

std::vector<std::uint64_t> identities(const ColourLease& lease) {
    std::vector<std::uint64_t> ids;
    for (std::size_t row = 0; row < lease.size(); ++row) {
        const auto pixels = lease->images[row].host();
        const std::uint64_t id = pixels[0] + std::uint64_t{256} * pixels[1];
        bool is_flat = pixels[2] == 7 * id % 256;
        for (std::size_t p = 3; p < pixels.size(); ++p) {
            is_flat = is_flat && pixels[p] == pixels[p - 3];
        }
        EXPECT_TRUE(is_flat) << "the pixels of row " << row << " are not those of one sample";
        EXPECT_EQ(static_cast<std::uint64_t>(lease->labels[row]), id);
        EXPECT_EQ(lease->indices[row], id);
        ids.push_back(id);
    }
    EXPECT_EQ(ids, ids_of(lease));
    return ids;
}
Ledger collect_identities(stoker::Epoch<stoker::ImageBatch>& epoch) {
    Ledger ledger;
    for (const auto& lease : epoch) {
        ledger.push_back(identities(lease));
    }
    return ledger;
}
Ledger take_identities(ColourFeed& feed, std::size_t batches) {
    Ledger ledger;
    while (ledger.size() < batches) {
        const auto lease = feed.next();
        if (!lease) {
            break;
        }
        ledger.push_back(identities(*lease));
    }
    return ledger;
}

std::vector<std::size_t> sizes_of(const Ledger& ledger) {
    std::vector<std::size_t> sizes;
    for (const auto& batch : ledger) {
        sizes.push_back(batch.size());
    }
    return sizes;
}
std::vector<std::uint64_t> flattened(const Ledger& ledger) {
    std::vector<std::uint64_t> ids;
    for (const auto& batch : ledger) {
        ids.insert(ids.end(), batch.begin(), batch.end());
    }
    return ids;
}

::testing::AssertionResult has_words(const std::string& text, const std::vector<std::string>& words) {
    for (const std::string& word : words) {
        if (text.find(word) == std::string::npos) {
            return ::testing::AssertionFailure() << '"' << text << "\" lacks \"" << word << '"';
        }
    }
    return ::testing::AssertionSuccess();
}

void expect_library_threads(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + hang_limit();
    while (library_threads().size() != count && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::yield();
    }
    EXPECT_EQ(library_threads().size(), count);
}

int in_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(static_cast<unsigned>(3 * hang_limit().count()));  // a hung child ends by SIGALRM
        int status = 99;
        try {
            status = body();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "child: %s\n", error.what());
        } catch (...) {  // 99 tells
        }
        ::_exit(status);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) == SIGALRM ? -1 : 128 + WTERMSIG(status);
}

}  // namespace testing_support
