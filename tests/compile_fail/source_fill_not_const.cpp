// expect: RandomAccessSource
// Many threads call fill at once, so it has to be const; the error names the concept.
#include <cstdint>

#include <stoker/core.hpp>

struct Source {
    [[nodiscard]] std::uint64_t size() const { return 1; }
    [[nodiscard]] stoker::Layout<stoker::ImageBatch> layout() const {
        return stoker::Layout<stoker::ImageBatch>{}.shape(&stoker::ImageBatch::images, {8, 8, 3});
    }
#ifndef TWIN
    void fill(stoker::Row<stoker::ImageBatch> row, stoker::Sample&) { row[&stoker::ImageBatch::labels] = 0; }
#else
    void fill(stoker::Row<stoker::ImageBatch> row, stoker::Sample&) const { row[&stoker::ImageBatch::labels] = 0; }
#endif
};

static_assert(stoker::RandomAccessSource<Source, stoker::ImageBatch>);
