// Loading takes longer than training, and the data do not fit in memory: many workers read records of a file that is
// larger than the memory that the loader may use. The sequence is thread-safe (each call reads its own record), the
// batch is our own.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include <stoker/core.hpp>

constexpr std::size_t record_floats = 4096;
constexpr std::size_t record_bytes = record_floats * sizeof(float);

struct Records {
    stoker::Tensor<float, 2> values;         // N x record_floats
    stoker::Tensor<std::uint64_t, 1> index;  // N
    static constexpr auto fields = stoker::fields<&Records::values, &Records::index>("values", "index");
};

// Anybody's source: how many there are, what one looks like, and "fill this row with sample i". Called by all workers
// at once.
struct RecordFile {
    int descriptor;
    std::uint64_t count;

    [[nodiscard]] std::uint64_t size() const { return count; }
    [[nodiscard]] stoker::Layout<Records> layout() const {
        return stoker::Layout<Records>{}.shape(&Records::values, {record_floats});
    }
    void fill(stoker::Row<Records> row, stoker::Sample& sample) const {
        const auto values = row[&Records::values];
        const auto offset = static_cast<off_t>(sample.index() * record_bytes);
        if (::pread(descriptor, values.data(), record_bytes, offset) != static_cast<ssize_t>(record_bytes)) {
            throw stoker::DataError{stoker::ErrorKind::io, "the file ends before this record"};
        }
        row[&Records::index] = sample.index();
    }
};

int main() {
    // 64 MB of records, and a budget of 3 MB for them.
    const std::string path = (std::filesystem::temp_directory_path() / "stoker-records-XXXXXX").string();
    std::vector<char> name(path.begin(), path.end());
    name.push_back('\0');
    const int descriptor = ::mkstemp(name.data());
    ::unlink(name.data());
    const std::uint64_t count = 4096;
    std::vector<float> record(record_floats);
    for (std::uint64_t i = 0; i < count; ++i) {
        record.assign(record_floats, static_cast<float>(i));
        if (::write(descriptor, record.data(), record_bytes) != static_cast<ssize_t>(record_bytes)) {
            std::perror("cannot write the records");
            return 1;
        }
    }

    const RecordFile file{descriptor, count};
    const stoker::PrefetcherOptions options{.batch_size = 32,
                                            .workers = 4,
                                            .prefetch_batches = 16,
                                            .max_bytes = 3'000'000,  // the smaller of the two wins
                                            .order = stoker::shuffled(1),
                                            .epochs = 1};  // nothing is read behind it, so the file may be closed
    const auto planned = stoker::Prefetcher<Records>::planned_bytes(file, options);
    stoker::Prefetcher<Records> feed{file, options};
    std::printf("%llu MB of records through %zu KB of slots, %zu batches ahead\n",
                static_cast<unsigned long long>(count * record_bytes / 1'000'000), planned.total() / 1000,
                feed.options().prefetch_batches);

    std::vector<int> seen(count);
    bool is_right = planned.total() <= 3'000'000;
    for (auto&& batch : feed.epoch()) {
        for (std::size_t row = 0; row < batch.size(); ++row) {
            const std::uint64_t index = batch->index[row];
            ++seen[index];
            for (const float value : batch->values[row]) {
                is_right = is_right && value == static_cast<float>(index);
            }
        }
    }
    for (const int times : seen) {
        is_right = is_right && times == 1;
    }
    ::close(descriptor);
    std::puts(is_right ? "every record came once, whole" : "WRONG");
    return is_right ? 0 : 1;
}
