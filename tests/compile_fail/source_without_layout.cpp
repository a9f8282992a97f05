// expect: SourceOf
// A source of tensor batches says how large its samples are; the error names the concept.
#include <cstdint>

#include <stoker/core.hpp>

struct Source {
    [[nodiscard]] std::uint64_t size() const { return 1; }
    void fill(stoker::Row<stoker::ImageBatch> row, stoker::Sample&) const { row[&stoker::ImageBatch::labels] = 0; }
#ifdef TWIN
    [[nodiscard]] stoker::Layout<stoker::ImageBatch> layout() const {
        return stoker::Layout<stoker::ImageBatch>{}.shape(&stoker::ImageBatch::images, {8, 8, 3});
    }
#endif
};

stoker::Prefetcher<stoker::ImageBatch> feed{Source{}};
