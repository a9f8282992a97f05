// expect: lease->images
// Device memory cannot be read through the lease; on(stream) is the way to the fields.
#include <cstddef>
#include <string_view>

#include <stoker/core.hpp>

class Elsewhere : public stoker::HostDevice {
  public:
    static constexpr bool is_host_readable = false;
};

const void* first(const stoker::Lease<stoker::ImageBatch, Elsewhere>& lease) {
#ifndef TWIN
    return lease->images.data();
#else
    return lease.on({}).images.data();
#endif
}
