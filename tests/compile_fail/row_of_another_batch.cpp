// expect: operator[]
// A row has the fields of its own batch only.
#include <stoker/core.hpp>

struct Other {
    stoker::Tensor<int, 1> labels;
    static constexpr auto fields = stoker::fields<&Other::labels>("labels");
};

void fill(stoker::Row<stoker::ImageBatch> row) {
#ifndef TWIN
    row[&Other::labels] = 1;
#else
    row[&stoker::ImageBatch::labels] = 1;
#endif
}
