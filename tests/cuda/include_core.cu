// nvcc takes the headers, and a kernel beside them.
#include <stoker/core.hpp>

__global__ void scale(float* values, int count) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < count) {
        values[i] *= 2.0F;
    }
}

int load_one() {
    stoker::Prefetcher<int> feed{stoker::values(1, [](stoker::Sample&) { return 1; }), {.workers = 1}};
    auto value = feed.next();
    return value ? **value : 0;
}
