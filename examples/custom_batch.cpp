// A batch of your own: pictures with any number of boxes each, as detectors train on. The boxes of a batch lie packed
// one behind the other, and every sample is augmented by random draws that depend on nothing but seed and place.
#include <algorithm>
#include <cstdio>
#include <vector>

#include <stoker/core.hpp>

constexpr std::size_t edge = 16;

struct Detections {
    stoker::Tensor<std::uint8_t, 3> images;  // N x 16 x 16
    stoker::Ragged<float, 2> boxes;          // per row any number of (left, top, right, bottom)
    stoker::Tensor<std::uint64_t, 1> ids;    // N
    static constexpr auto fields =
        stoker::fields<&Detections::images, &Detections::boxes, &Detections::ids>("images", "boxes", "ids");
};

// Picture i shows i % 4 bright squares; half of the pictures are mirrored, boxes and all.
struct Squares {
    [[nodiscard]] std::uint64_t size() const { return 100; }
    [[nodiscard]] stoker::Layout<Detections> layout() const {
        return stoker::Layout<Detections>{}
            .shape(&Detections::images, {edge, edge})
            .capacity(&Detections::boxes, 3 * 8, {4});  // items of a whole batch: 8 pictures with 3 boxes at most
    }
    void fill(stoker::Row<Detections> row, stoker::Sample& sample) const {
        const auto image = row[&Detections::images];
        std::fill_n(image.data(), image.size(), std::uint8_t{0});  // a row holds what an earlier batch left there
        const std::size_t count = sample.index() % 4;
        const bool is_mirrored = sample.random().chance(0.5);
        const auto boxes = row[&Detections::boxes].resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t left = is_mirrored ? edge - 4 - 5 * i : 5 * i;
            const std::size_t top = sample.random().below(edge - 3);
            for (std::size_t y = top; y < top + 4; ++y) {
                for (std::size_t x = left; x < left + 4; ++x) {
                    image[y][x] = 255;
                }
            }
            const std::size_t corners[] = {left, top, left + 4, top + 4};
            for (std::size_t c = 0; c < 4; ++c) {
                boxes[i][c] = static_cast<float>(corners[c]);
            }
        }
        row[&Detections::ids] = sample.index();
    }
};

// All numbers of an epoch in a row; a brightness that does not fit the boxes makes it empty.
std::vector<float> read_all(std::size_t workers) {
    stoker::Prefetcher<Detections> feed{Squares{},
                                        {.batch_size = 8, .workers = workers, .order = stoker::shuffled(42)}};
    std::vector<float> all;
    for (auto&& batch : feed.epoch()) {
        for (std::size_t n = 0; n < batch.size(); ++n) {
            const stoker::Tensor<float, 2> boxes = batch->boxes[n];
            std::size_t bright = 0;
            for (const std::uint8_t pixel : batch->images[n].host()) {
                bright += pixel == 255 ? 1 : 0;
            }
            if (bright != 16 * boxes.extent(0) || boxes.extent(0) != batch->ids[n] % 4) {
                return {};
            }
            all.push_back(static_cast<float>(batch->ids[n]));
            all.insert(all.end(), boxes.host().begin(), boxes.host().end());
        }
    }
    return all;
}

int main() {
    const std::vector<float> alone = read_all(0), together = read_all(4);
    const bool is_right = alone.size() == 100 + 4 * 150 && alone == together;
    std::printf("%zu numbers, %s with 0 and 4 workers\n", alone.size(), is_right ? "the same" : "WRONG");
    return is_right ? 0 : 1;
}
