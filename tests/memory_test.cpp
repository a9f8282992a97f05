// SPDX-License-Identifier: MIT
// Guarantee 8: memory is bounded at construction. This file counts the allocations of the whole test program.
#define STOKER_TEST_COUNTS_ALLOCATIONS
#include "support/core_kit.hpp"

#include <unistd.h>

#include <cstring>

#include <stoker/prefetcher.hpp>

namespace {

using namespace testing_support;
using stoker::ImageBatch;
using stoker::OnError;
using stoker::Sample;

/// Two phases, with an item on the heap for every sample.
class ItemSource {
  public:
    [[nodiscard]] std::uint64_t size() const { return 60; }
    [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return number_layout(64); }
    [[nodiscard]] std::vector<std::uint64_t> fetch(Sample& sample) const {
        return std::vector<std::uint64_t>(static_cast<std::size_t>(100 + sample.random().below(1000)), sample.index());
    }
    void fill(stoker::Row<NumberBatch> row, std::vector<std::uint64_t>& item, Sample& sample) const {
        sample.scratch<std::vector<std::uint64_t>>().assign(item.begin(), item.begin() + 100);
        write_number(row, item.back());
    }
    void finish(NumberBatch&, stoker::BatchContext& context) const {
        std::vector<std::size_t>& order = context.scratch<std::vector<std::size_t>>();
        order.resize(context.size());
        std::iota(order.rbegin(), order.rend(), std::size_t{0});
        context.permute(order);
    }
};

TEST(MemoryTest, LiveBytesAfterTheSecondAndTheFortiethEpochAreEqual) {
    for (const std::size_t workers : {0U, 1U, 3U}) {
        const std::size_t slots = NumberFeed::planned_bytes(ItemSource{}, {.batch_size = 8}).total();
        NumberFeed feed{ItemSource{},
                        {.batch_size = 8,
                         .workers = workers,
                         .max_bytes = slots + 20000,
                         .order = stoker::shuffled(1),
                         .last_batch = stoker::LastBatch::pad}};
        // Every worker has made its scratch when it has worked once; with a start hook that could be forced, but a few
        // epochs do as well, since what is compared is reached by all of them.
        std::size_t second = 0;
        std::uint64_t samples = 0;
        for (int number = 1; number <= 40; ++number) {
            auto epoch = feed.epoch();
            while (const auto batch = epoch.next()) {
                samples += batch->size();
            }
            if (number == 2 || number == 40) {
                feed.wait_full();
                const std::size_t live = live_heap_bytes();
                second = number == 2 ? live : second;
                if (number == 40) {
                    // Scratch of a worker that did not come to work in the first two epochs may still be new.
                    EXPECT_LE(live, second + workers * 4096);
                    if (workers <= 1) {
                        EXPECT_EQ(live, second);
                    }
                }
            }
        }
        EXPECT_EQ(samples, 40U * 60);
    }
}

TEST(MemoryTest, TheEngineAllocatesNothingInSteadyState) {
    ASSERT_TRUE(counts_allocations());
    for (const std::size_t workers : {0U, 1U, 3U}) {
        for (const bool is_ordered : {true, false}) {
            auto feed =
                number_feed(64, {.batch_size = 8,
                                 .workers = workers,
                                 .prefetch_batches = 3,
                                 .order = stoker::shuffled(2),
                                 .leases = 2,
                                 .delivery = is_ordered ? stoker::Delivery::ordered : stoker::Delivery::unordered});
            std::uint64_t rows = 0;
            const auto run = [&](int epochs) {
                for (int i = 0; i < epochs; ++i) {
                    auto epoch = feed.epoch();
                    while (const auto batch = epoch.next()) {
                        rows += batch->size();
                    }
                    for (int j = 0; j < 3; ++j) {
                        const auto polled = feed.try_next();
                        rows += polled ? polled.lease->size() : 0;
                    }
                    rows += feed.next()->size();
                    rows += feed.report().batches_ready;
                }
            };
            run(4);
            feed.wait_full();
            const std::size_t before = allocations();
            run(20);
            feed.wait_full();
            EXPECT_EQ(allocations() - before, 0U) << workers << " workers";
        }
    }
}

TEST(MemoryTest, PlainValuesAllocateOnlyTheirOwn) {
    stoker::Prefetcher<std::uint64_t> feed{stoker::values(64, [](Sample& sample) { return sample.index(); }),
                                           {.workers = 2}};
    std::uint64_t sum = 0;
    const auto run = [&](int epochs) {
        for (int i = 0; i < epochs; ++i) {
            auto epoch = feed.epoch();
            while (const auto value = epoch.next()) {
                sum += **value;
            }
        }
    };
    run(3);
    feed.wait_full();
    const std::size_t before = allocations();
    run(20);
    feed.wait_full();
    EXPECT_EQ(allocations() - before, 0U);
    EXPECT_EQ(sum, 23U * 63 * 32);
}

TEST(MemoryTest, FailuresAreKeptInABoundedList) {
    auto feed = number_feed(100, {.batch_size = 10, .workers = 1, .on_error = OnError::skip},
                            [](Sample& sample) { throw std::runtime_error{std::to_string(sample.index() + 1000)}; });
    std::size_t early = 0;
    for (int number = 0; number < 60; ++number) {
        EXPECT_EQ(collect(feed.epoch()).size(), 10U);
        if (number == 20 || number == 59) {
            feed.wait_full();
            const std::size_t live = live_heap_bytes();
            early = number == 20 ? live : early;
            if (number == 59) {
                EXPECT_LE(live, early + 100 * 1000);  // texts differ in length by their epoch's digits
            }
        }
    }
    EXPECT_EQ(feed.failures().size(), 1000U);
    EXPECT_GE(feed.report().failures, 6000U);
}

[[nodiscard]] std::size_t resident_bytes() {
    std::ifstream file{"/proc/self/statm"};
    std::size_t total = 0, resident = 0;
    file >> total >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Records of 1 MiB, read one after another from a file that is over and over the same.
class RecordSource {
  public:
    static constexpr std::size_t side = 1024;
    static constexpr std::size_t record_bytes = side * side;

    RecordSource(std::string path, std::uint64_t records) : path_{std::move(path)}, records_{records} {}
    [[nodiscard]] std::uint64_t size() const { return records_; }
    [[nodiscard]] stoker::Layout<ImageBatch> layout() const {
        return stoker::Layout<ImageBatch>{}.shape(&ImageBatch::images, {side, side, 1});
    }
    [[nodiscard]] std::vector<char> fetch(Sample&) const {
        std::vector<char> bytes(record_bytes);
        std::ifstream{path_, std::ios::binary}.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        return bytes;
    }
    void fill(stoker::Row<ImageBatch> row, std::vector<char>& item, Sample& sample) const {
        std::memcpy(row[&ImageBatch::images].data(), item.data(), record_bytes);
        row[&ImageBatch::labels] = item.front();
        row[&ImageBatch::indices] = sample.index();
    }

  private:
    std::string path_;
    std::uint64_t records_;
};

TEST(MemoryTest, ResidentMemoryOfALongRunIsThatOfTheSlots) {
    const std::size_t megabytes = environment_number("STOKER_RECORD_MEGABYTES", 256);
    const std::string path = testing::TempDir() + "/stoker_record_" + std::to_string(::getpid());
    std::ofstream{path, std::ios::binary} << std::string(RecordSource::record_bytes, 'r');
    constexpr std::size_t epochs = 4;
    const RecordSource source{path, megabytes / epochs};
    constexpr std::size_t items = std::size_t{4} << 20;
    const std::size_t slots = ColourFeed::planned_bytes(source, {.batch_size = 8, .prefetch_batches = 3}).total();
    const std::size_t before = resident_bytes();
    std::size_t most = 0;
    {
        ColourFeed feed{
            source,
            {.batch_size = 8, .workers = 4, .prefetch_batches = 3, .max_bytes = slots + items, .epochs = epochs}};
        while (const auto batch = feed.next()) {
            ASSERT_EQ((*batch)->labels[0], 'r');
            ASSERT_EQ((*batch)->images[0][RecordSource::side - 1][RecordSource::side - 1][0], 'r');
            most = std::max(most, resident_bytes());
        }
        EXPECT_EQ(feed.report().samples, megabytes / epochs * epochs);
    }
    std::filesystem::remove(path);
    if (has_address_sanitizer || has_thread_sanitizer) {
        return;  // its own memory is not ours to bound
    }
    EXPECT_LE(most, before + slots + items + (std::size_t{30} << 20))
        << (most - before) / 1048576 << " MiB for " << slots / 1048576 << " MiB of slots";
}

}  // namespace
