// expect: deleted
// An epoch of a prefetcher that dies at the end of the line would be empty.
#include <stoker/core.hpp>

stoker::Prefetcher<int> make() {
    return stoker::Prefetcher<int>{stoker::values(10, [](stoker::Sample&) { return 1; })};
}

int main() {
#ifndef TWIN
    auto epoch = make().epoch();
#else
    auto feed = make();
    auto epoch = feed.epoch();
#endif
    return epoch.next() ? 0 : 1;
}
