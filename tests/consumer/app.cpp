#include <stoker/core.hpp>

int main() {
    stoker::Prefetcher<int> feed{
        stoker::values(5, [](stoker::Sample& sample) { return static_cast<int>(sample.index()); }), {.workers = 2}};
    int sum = 0;
    for (auto&& value : feed.epoch()) {
        sum += *value;
    }
    return sum == 10 ? 0 : 1;
}
