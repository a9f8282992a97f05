// expect: all_fields
// Every listed field of a batch is a Tensor or a Ragged; the error names the concept's part that fails.
#include <cstdint>
#include <vector>

#include <stoker/core.hpp>

struct Boxes {
#ifndef TWIN
    std::vector<float> boxes;
#else
    stoker::Ragged<float, 1> boxes;
#endif
    static constexpr auto fields = stoker::fields<&Boxes::boxes>("boxes");
};

stoker::Layout<Boxes> layout;
