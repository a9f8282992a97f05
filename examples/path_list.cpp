// A list of paths -> read -> decode -> batch, with a validation set beside the training set and the best result kept.
// The pictures are rendered first, so that the program needs none.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <stoker/stoker.hpp>

// An 8 x 8 picture of one colour as a BMP file: 54 bytes of header, then rows of blue, green, red.
void write_picture(const std::string& path, unsigned char shade) {
    unsigned char header[54] = {'B', 'M', 246, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40,
                                0,   0,   0,   8, 0, 0, 0, 8, 0, 0, 0,  1, 0, 24};
    std::ofstream file{path, std::ios::binary};
    file.write(reinterpret_cast<const char*>(header), sizeof header);
    file << std::string(8 * 8 * 3, static_cast<char>(shade));
}

int main() {
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("stoker-path-list-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    std::vector<std::string> train_paths, validation_paths;
    std::vector<std::int32_t> train_labels, validation_labels;
    for (int i = 0; i < 60; ++i) {
        const std::string path = (folder / (std::to_string(i) + ".bmp")).string();
        write_picture(path,
                      static_cast<unsigned char>(i % 2 == 0 ? 60 + i % 24 : 150 + i % 24));  // dark: label 0, bright: 1
        (i < 48 ? train_paths : validation_paths).push_back(path);
        (i < 48 ? train_labels : validation_labels).push_back(i % 2);
    }

    const stoker::DecodeOptions decoding{.height = 4, .width = 4};
    stoker::Prefetcher<stoker::ImageBatch> train{stoker::decode(stoker::PathList{train_paths, train_labels}, decoding),
                                                 {.batch_size = 8, .workers = 2, .order = stoker::shuffled(3)}};
    stoker::Prefetcher<stoker::ImageBatch> validation{
        stoker::decode(stoker::PathList{validation_paths, validation_labels}, decoding),
        {.batch_size = 12, .workers = 1}};

    double threshold = 0, best_threshold = 0;  // the "weights": pictures brighter than this are label 1
    std::size_t best_right = 0;
    for (int epoch = 0; epoch < 5; ++epoch) {
        for (auto&& batch : train.epoch()) {
            for (std::size_t i = 0; i < batch.size(); ++i) {
                const double brightness = batch->images[i][0][0][0];
                const bool says_bright = brightness > threshold;
                threshold += says_bright == (batch->labels[i] == 1) ? 0.0 : says_bright ? 10.0 : -10.0;
            }
        }
        std::size_t right = 0;
        for (auto&& batch : validation.epoch()) {
            for (std::size_t i = 0; i < batch.size(); ++i) {
                right += (batch->images[i][0][0][0] > threshold) == (batch->labels[i] == 1) ? 1 : 0;
            }
        }
        std::printf("epoch %d: %zu of %zu right\n", epoch + 1, right, validation_paths.size());
        if (right > best_right) {
            best_right = right;
            best_threshold = threshold;
        }
    }
    std::filesystem::remove_all(folder);
    std::printf("best: brighter than %.0f\n", best_threshold);
    return best_right == validation_paths.size() ? 0 : 1;
}
