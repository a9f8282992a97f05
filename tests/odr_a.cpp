// Two translation units that include everything link into one program; see odr_b.cpp.
#include <gtest/gtest.h>

#include <stoker/stoker.hpp>

std::uint64_t count_in_other_unit();

TEST(TwoUnitsTest, LinkAndAgree) {
    stoker::Prefetcher<int> feed{
        stoker::values(10, [](stoker::Sample& sample) { return static_cast<int>(sample.index()); }), {.workers = 1}};
    std::uint64_t count = 0;
    for (auto&& value : feed.epoch()) {
        EXPECT_EQ(*value, static_cast<int>(count));
        ++count;
    }
    EXPECT_EQ(count, count_in_other_unit());
}
