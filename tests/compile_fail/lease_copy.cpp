// expect: deleted
// A batch has one owner: a lease can be moved, not copied.
#include <utility>

#include <stoker/core.hpp>

using Lease = stoker::Lease<stoker::ImageBatch>;

Lease keep(Lease& lease) {
#ifndef TWIN
    return lease;
#else
    return std::move(lease);
#endif
}
