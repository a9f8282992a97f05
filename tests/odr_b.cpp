#include <stoker/stoker.hpp>

std::uint64_t count_in_other_unit();
std::uint64_t count_in_other_unit() {
    stoker::Prefetcher<int> feed{
        stoker::values(10, [](stoker::Sample& sample) { return static_cast<int>(sample.index()); }), {.workers = 1}};
    std::uint64_t count = 0;
    for (auto&& value : feed.epoch()) {
        count += static_cast<std::uint64_t>(*value) < 10 ? 1 : 0;
    }
    return count;
}
