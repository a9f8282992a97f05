// Sources from plain functions: they compile under -Wshadow, as all tests do, and deliver.
#include <gtest/gtest.h>

#include <optional>

#include <stoker/core.hpp>

namespace {

int square(stoker::Sample& sample) { return static_cast<int>(sample.index() * sample.index()); }
std::optional<int> first_three(stoker::Sample& sample) {
    return sample.index() < 3 ? std::optional{static_cast<int>(sample.index())} : std::nullopt;
}

TEST(CallablesTest, PlainFunctionsAreSources) {
    stoker::Prefetcher<int> squares{stoker::values(4, square), {.workers = 1, .epochs = 1}};
    int expected = 0;
    for (auto lease = squares.next(); lease; lease = squares.next()) {
        EXPECT_EQ(**lease, expected * expected);
        ++expected;
        lease.reset();
    }
    EXPECT_EQ(expected, 4);
    stoker::Prefetcher<int> counted{stoker::generator_of(first_three), {.workers = 1}};
    int count = 0;
    for (auto lease = counted.next(); lease; lease = counted.next()) {
        EXPECT_EQ(**lease, count++);
        lease.reset();
    }
    EXPECT_EQ(count, 3);
}

}  // namespace
