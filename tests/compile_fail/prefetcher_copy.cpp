// expect: deleted
// A prefetcher has one owner: it can be moved, not copied.
#include <utility>

#include <stoker/core.hpp>

stoker::Prefetcher<int> take(stoker::Prefetcher<int>& feed) {
#ifndef TWIN
    return feed;
#else
    return std::move(feed);
#endif
}
