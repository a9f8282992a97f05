// A plain generator as the source: it gives one sample after the other, knows nothing of threads, and does not say how
// many there are. The library calls it from one thread at a time; what takes long (`fill`) runs on all workers at once.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <stoker/core.hpp>

struct Words {
    stoker::Ragged<char, 1> letters;         // rows of different lengths, packed
    stoker::Tensor<std::int32_t, 1> number;  // N
    static constexpr auto fields = stoker::fields<&Words::letters, &Words::number>("letters", "number");
};

struct WordStream {
    std::int32_t next_number = 0;

    [[nodiscard]] stoker::Layout<Words> layout() const {
        return stoker::Layout<Words>{}.capacity(&Words::letters, 1000);  // letters per batch at most
    }
    // First phase, in sequence: no locks needed here. Nothing is the end of the epoch.
    std::optional<std::int32_t> fetch(stoker::Sample&) {
        return next_number < 1000 ? std::optional{next_number++} : std::nullopt;
    }
    // Second phase, concurrently.
    void fill(stoker::Row<Words> row, std::int32_t& item, stoker::Sample&) const {
        const std::string word(static_cast<std::size_t>(item % 20), static_cast<char>('a' + item % 26));
        const auto letters = row[&Words::letters].resize(word.size());
        std::copy(word.begin(), word.end(), letters.data());
        row[&Words::number] = item;
    }
    // Optional: makes several epochs and exact resume possible.
    void restart(std::uint64_t) { next_number = 0; }
};

int main() {
    stoker::Prefetcher<Words> feed{WordStream{}, {.batch_size = 64, .workers = 3, .epochs = 2}};
    bool is_right = true;
    for (int round = 0; round < 2; ++round) {
        std::int32_t expected = 0;
        for (auto&& batch : feed.epoch()) {
            for (std::size_t row = 0; row < batch.size(); ++row, ++expected) {
                const auto letters = batch->letters[row];
                is_right = is_right && batch->number[row] == expected &&
                           letters.size() == static_cast<std::size_t>(expected % 20) &&
                           (letters.empty() || letters[0] == static_cast<char>('a' + expected % 26));
            }
        }
        is_right = is_right && expected == 1000;
    }
    is_right = is_right && !feed.next();
    std::puts(is_right ? "1000 words came twice, in order" : "WRONG");
    return is_right ? 0 : 1;
}
