// SPDX-License-Identifier: MIT
#include <stoker/stoker.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "support/jpeg.hpp"
#include "support/picture_files.hpp"
#include "support/png.hpp"

namespace {

using stoker::Crop;
using stoker::DecodeOptions;
using stoker::ImageBatch;
using stoker::ImageFolder;
using stoker::OnError;
using stoker::PathList;
using stoker::Prefetcher;
using stoker::PrefetcherOptions;
using stoker::SampleError;
using testing_support::Bytes;
using testing_support::TemporaryFolder;

using Feed = Prefetcher<ImageBatch>;

/// The decode scratch of all workers of one prefetcher, as each was after its latest sample.
class ScratchLedger {
  public:
    void note(const stoker::DecodeScratch& scratch) {
        const std::lock_guard lock{mutex_};
        entries_[&scratch] = {scratch.size_bytes(),
                              scratch.heap.peak_bytes() + scratch.size_bytes() - scratch.heap.size_bytes()};
    }
    /// Bytes kept by all workers together.
    [[nodiscard]] std::size_t kept() const { return sum(&Entry::kept); }
    /// The sum of what each worker held at most, which no moment can exceed.
    [[nodiscard]] std::size_t peak() const { return sum(&Entry::peak); }

  private:
    struct Entry {
        std::size_t kept, peak;
    };
    [[nodiscard]] std::size_t sum(std::size_t Entry::*member) const {
        const std::lock_guard lock{mutex_};
        std::size_t total = 0;
        for (const auto& [scratch, entry] : entries_) {
            total += entry.*member;
        }
        return total;
    }
    mutable std::mutex mutex_;
    std::map<const stoker::DecodeScratch*, Entry> entries_;  // under mutex_
};

/// A source that notes the scratch after every sample, also one that fails.
template <class Source>
struct Measured {
    Source source;
    ScratchLedger* ledger;

    [[nodiscard]] std::uint64_t size() const { return source.size(); }
    [[nodiscard]] auto layout() const { return source.layout(); }
    [[nodiscard]] std::string describe(std::uint64_t index) const { return source.describe(index); }
    [[nodiscard]] stoker::EncodedFile fetch(stoker::Sample& sample) const { return source.fetch(sample); }
    void fill(stoker::Row<ImageBatch> row, stoker::EncodedFile& file, stoker::Sample& sample) const {
        struct Note {
            ScratchLedger& ledger;
            stoker::Sample& sample;
            ~Note() { ledger.note(sample.scratch<stoker::DecodeScratch>()); }
        } const note{*ledger, sample};
        source.fill(row, file, sample);
    }
};
template <class Source>
Measured(Source, ScratchLedger*) -> Measured<Source>;  // clang 16 deduces none for an aggregate

/// ID(n) in one class folder, with names that sort by number.
void write_id(const TemporaryFolder& folder, std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) {
        folder.write("c/" + std::to_string(100'000 + i) + ".png", testing_support::id_png(i));
    }
}

std::string failure(const DecodeOptions& options) {
    try {
        static_cast<void>(stoker::decode(PathList{{"a.png"}}, options));
    } catch (const stoker::OptionError& error) {
        return error.what();
    }
    return "accepted";
}

/// All pixels, labels and indices of `epochs` epochs.
Bytes delivered(const ImageFolder& files, const DecodeOptions& options, std::size_t workers, int epochs = 2) {
    Bytes all;
    Feed feed{stoker::decode(files, options), {.batch_size = 3, .workers = workers, .order = stoker::shuffled(7)}};
    for (int e = 0; e < epochs; ++e) {
        for (auto&& batch : feed.epoch()) {
            const auto pixels = batch->images.host();
            all.insert(all.end(), pixels.begin(), pixels.end());
            for (const std::int32_t label : batch->labels) {
                all.push_back(static_cast<std::uint8_t>(label));
            }
            for (const std::uint64_t index : batch->indices) {
                all.push_back(static_cast<std::uint8_t>(index));
            }
        }
    }
    return all;
}

TEST(DecodeTest, EachPictureComesWithItsLabelAndIndex) {
    const TemporaryFolder folder;
    std::vector<std::string> paths;
    std::vector<std::int32_t> labels;
    for (std::uint32_t i = 0; i < 300; ++i) {
        paths.push_back(folder.write(std::to_string(i) + ".png", testing_support::id_png(i)));
        labels.push_back(static_cast<std::int32_t>(i));
    }
    Feed feed{stoker::decode(PathList{paths, labels}, {.height = 4, .width = 6}),
              {.batch_size = 7, .workers = 3, .order = stoker::shuffled(1)}};
    std::set<std::uint64_t> seen;
    for (auto&& batch : feed.epoch()) {
        ASSERT_EQ(batch->images.shape(), (std::array<std::size_t, 4>{batch.size(), 4, 6, 3}));
        for (std::size_t row = 0; row < batch.size(); ++row) {
            const std::uint64_t i = batch->indices[row];
            ASSERT_EQ(batch->labels[row], static_cast<std::int32_t>(i));
            for (const auto& line : batch->images[row]) {
                for (const auto& pixel : line) {
                    ASSERT_EQ(pixel[0], i % 256);
                    ASSERT_EQ(pixel[1], i / 256);
                    ASSERT_EQ(pixel[2], 7 * i % 256);
                }
            }
            seen.insert(i);
        }
    }
    EXPECT_EQ(seen.size(), 300u);
}

// B019, B059: what is drawn depends on the sample's place in the run, not on who works on it.
TEST(DecodeTest, RandomCropsAreTheSameForAnyWorkers) {
    const TemporaryFolder folder;
    for (std::uint32_t i = 0; i < 20; ++i) {
        Bytes pixels;
        for (std::uint32_t k = 0; k < 40 * 30; ++k) {
            pixels.insert(pixels.end(), {static_cast<std::uint8_t>(k), static_cast<std::uint8_t>(k / 40 * 8),
                                         static_cast<std::uint8_t>(i)});
        }
        folder.write("c/" + std::to_string(i) + ".png", testing_support::png_from_rows(40, 30, 8, 2, pixels));
    }
    const ImageFolder files{folder.path()};
    const DecodeOptions options{.height = 16, .width = 16, .crop = Crop::random_resized, .flip = 0.5};
    const Bytes expected = delivered(files, options, 1);
    EXPECT_EQ(delivered(files, options, 0), expected);
    EXPECT_EQ(delivered(files, options, 4), expected);
    EXPECT_EQ(expected.size(), 2u * 20 * (16 * 16 * 3 + 2));
    EXPECT_FALSE(std::equal(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(expected.size() / 2),
                            expected.begin() + static_cast<std::ptrdiff_t>(expected.size() / 2)));
}

// B072: width is width, through the whole path; and a certain flip mirrors.
TEST(DecodeTest, TheOutputHasTheRightAxes) {
    const TemporaryFolder folder;
    Bytes rows;
    for (int i = 0; i < 40 * 20; ++i) {
        const std::uint8_t value = i % 40 < 20 ? 0 : 255;
        rows.insert(rows.end(), {value, value, value});
    }
    const std::string path = folder.write("half.png", testing_support::png_from_rows(40, 20, 8, 2, rows));
    for (const double flip : {0.0, 1.0}) {
        Feed feed{stoker::decode(PathList{{path}}, {.height = 12, .width = 24, .flip = flip}),
                  {.workers = 0, .epochs = 1}};
        const auto batch = feed.next();
        ASSERT_TRUE(batch.has_value());
        const auto image = (*batch)->images[0];
        ASSERT_EQ(image.shape(), (std::array<std::size_t, 3>{12, 24, 3}));
        EXPECT_EQ((*batch)->labels[0], -1);
        for (std::size_t y = 0; y < 12; ++y) {
            for (std::size_t x = 0; x < 24; ++x) {
                const std::size_t at = flip == 0 ? x : 23 - x;
                if (x <= 10) {
                    EXPECT_EQ(image[y][at][0], 0);
                } else if (x >= 13) {
                    EXPECT_EQ(image[y][at][0], 255);
                }
            }
        }
    }
}

// B070 through the whole path: 10 wide, 1000 high, row y has value y / 4.
TEST(DecodeTest, TheFallbackCropIsTheMiddle) {
    const TemporaryFolder folder;
    Bytes rows;
    for (int y = 0; y < 1000; ++y) {
        rows.insert(rows.end(), 10, static_cast<std::uint8_t>(y / 4));
    }
    const std::string path = folder.write("tall.png", testing_support::png_from_rows(10, 1000, 8, 0, rows));
    Feed feed{
        stoker::decode(PathList{std::vector<std::string>(5, path)},
                       {.height = 10, .width = 10, .crop = Crop::random_resized, .scale = {0.9, 1}, .ratio = {1, 1}}),
        {.batch_size = 5, .workers = 1, .epochs = 1}};
    const auto batch = feed.next();
    ASSERT_TRUE(batch.has_value());
    for (const auto& image : (*batch)->images) {
        for (std::size_t y = 0; y < 10; ++y) {
            EXPECT_EQ(image[y][3][0], (495 + y) / 4);
        }
    }
}

// B097: grey, grey with alpha, and colour in one batch.
TEST(DecodeTest, GreyAndColourMakeOneBatch) {
    const TemporaryFolder folder;
    const std::vector<std::string> paths{
        folder.write("grey.jpg", testing_support::jpeg_file(8, 8, 1, Bytes(64, 77), 95)),
        folder.write("alpha.png", testing_support::png_from_rows(1, 1, 8, 4, {77, 10})),
        folder.write("colour.bmp.jpg",
                     testing_support::flat_png(5, 9, 77, 77, 77))};  // contents, not names, say what it is
    Feed feed{stoker::decode(PathList{paths}, {.height = 8, .width = 8, .crop = Crop::whole}),
              {.batch_size = 3, .workers = 2, .epochs = 1}};
    const auto batch = feed.next();
    ASSERT_TRUE(batch.has_value());
    ASSERT_EQ((*batch)->images.shape(), (std::array<std::size_t, 4>{3, 8, 8, 3}));
    for (const std::uint8_t value : (*batch)->images.host()) {
        EXPECT_NEAR(value, 77, 1);
    }
}

// B110: a file that is gone is named, and only it is missing.
TEST(DecodeTest, ARemovedFileIsOneFailedSample) {
    const TemporaryFolder folder;
    write_id(folder, 20);
    const ImageFolder files{folder.path()};
    const std::string gone = files.path(9);
    std::filesystem::remove(gone);
    const auto source = stoker::decode(files, {.height = 8, .width = 8});
    {
        Feed feed{source, {.batch_size = 4, .workers = 2, .on_error = OnError::fail}};
        auto epoch = feed.epoch();
        int errors = 0;
        std::size_t samples = 0;
        for (;;) {
            try {
                const auto batch = epoch.next();
                if (!batch) {
                    break;
                }
                samples += batch->size();
            } catch (const SampleError& error) {
                ++errors;
                EXPECT_EQ(error.index(), 9u);
                EXPECT_EQ(error.path(), gone);
                EXPECT_EQ(error.kind(), stoker::ErrorKind::io);
                EXPECT_NE(std::string{error.what()}.find("no such file"), std::string::npos) << error.what();
            }
        }
        EXPECT_EQ(errors, 1);
        EXPECT_EQ(samples, 19u);
    }
    Feed feed{source, {.batch_size = 4, .workers = 2, .on_error = OnError::skip}};
    EXPECT_EQ(feed.epoch().remaining(), 5u);
    std::size_t samples = 0;
    for (auto&& batch : feed.epoch()) {
        samples += batch.size();
    }
    EXPECT_EQ(samples, 19u);
}

// B107: the path in an error has the same bytes as the name.
TEST(DecodeTest, AnErrorNamesThePathByteForByte) {
    const TemporaryFolder folder;
    const std::string path = folder.write("c\xff/new\nline\xfe \xe6\xbc\xa2.png", {'n', 'o'});
    Feed feed{stoker::decode(ImageFolder{folder.path()}, {.height = 8, .width = 8}), {.workers = 1, .epochs = 1}};
    try {
        static_cast<void>(feed.next());
        ADD_FAILURE() << "no error";
    } catch (const SampleError& error) {
        EXPECT_EQ(error.path(), path);
        EXPECT_EQ(error.kind(), stoker::ErrorKind::unsupported);
        EXPECT_EQ(error.bytes(), 2u);
        EXPECT_NE(std::string{error.what()}.find(path), std::string::npos);
    }
}

// B049: one picture above the limit is one skipped sample, and nothing large is allocated for it.
TEST(DecodeTest, AnOversizedPictureIsSkippedWithoutAllocating) {
    const TemporaryFolder folder;
    write_id(folder, 15);
    folder.write("c/large.png", testing_support::png_file(
                                    {2500, 2000, 8, 2, testing_support::zlib_zeros(std::uint64_t{2000} * 7501), {}}));
    ScratchLedger ledger;
    Feed feed{Measured{stoker::decode(ImageFolder{folder.path()}, {.height = 8, .width = 8, .max_pixels = 4'000'000}),
                       &ledger},
              {.batch_size = 4, .workers = 2, .on_error = OnError::skip}};
    std::size_t samples = 0;
    std::vector<std::string> messages;
    for (auto&& batch : feed.epoch()) {
        samples += batch.size();
        for (const auto& failed : batch.info().failures()) {
            EXPECT_EQ(failed.path, folder / "c/large.png");
            messages.emplace_back(failed.message);
        }
    }
    EXPECT_EQ(samples, 15u);
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_NE(messages[0].find("2500x2000"), std::string::npos) << messages[0];
    EXPECT_NE(messages[0].find("4000000"), std::string::npos) << messages[0];
    EXPECT_GT(ledger.peak(), 0u);
    EXPECT_LT(ledger.peak(), 100'000u);
}

// B048: one large picture among small ones leaves no large buffers behind.
TEST(DecodeTest, OneLargePictureDoesNotSwellTheScratch) {
    const TemporaryFolder folder;
    for (int i = 0; i < 63; ++i) {
        folder.write("c/" + std::to_string(i) + ".jpg",
                     testing_support::jpeg_file(64, 64, 3, Bytes(64 * 64 * 3, static_cast<std::uint8_t>(i)), 85));
    }
    folder.write("c/large.jpg",
                 testing_support::jpeg_file(2000, 1500, 3, Bytes(std::size_t{2000} * 1500 * 3, 200), 85));
    constexpr std::size_t workers = 4;
    const auto source = stoker::decode(ImageFolder{folder.path()}, {.height = 32, .width = 32});
    std::vector<std::size_t> kept;
    for (const std::uint64_t epochs : {std::uint64_t{2}, std::uint64_t{20}}) {
        ScratchLedger ledger;
        Feed feed{Measured{source, &ledger},
                  {.batch_size = 8, .workers = workers, .order = stoker::shuffled(3), .epochs = epochs}};
        std::size_t samples = 0;
        for (auto&& batch : feed) {
            samples += batch.size();
        }
        EXPECT_EQ(samples, 64u * epochs);
        EXPECT_GE(ledger.peak(), 13'500'000u);  // the large one was there
        EXPECT_LE(ledger.peak(), workers * 2 * 9'000'000 + 1'000'000);
        kept.push_back(ledger.kept());
    }
    EXPECT_LE(kept[0], 1'000'000u);
    EXPECT_LE(kept[1], 1'000'000u);
}

// B057: descriptors are not kept; without any left the error says so.
TEST(DecodeTest, DescriptorsAreNotKept) {
    const TemporaryFolder folder;
    write_id(folder, 3000);
    const auto open_descriptors = [] {
        const std::filesystem::directory_iterator list{"/proc/self/fd"};
        return static_cast<std::size_t>(std::distance(begin(list), end(list)));
    };
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few{64, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    std::size_t most = 0;
    std::size_t samples = 0;
    {
        Feed feed{stoker::decode(ImageFolder{folder.path()}, {.height = 8, .width = 8}),
                  {.batch_size = 50, .workers = 8}};
        for (int e = 0; e < 2; ++e) {
            for (auto&& batch : feed.epoch()) {
                samples += batch.size();
                most = std::max(most, open_descriptors());
            }
        }
    }
    EXPECT_EQ(samples, 6000u);
    EXPECT_LE(most, 8u + 20);

    const auto source = stoker::decode(ImageFolder{folder.path()}, {.height = 8, .width = 8});
    const rlimit none{0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    std::string text;
    try {
        Feed feed{source, {.workers = 2}};
        static_cast<void>(feed.next());
    } catch (const SampleError& error) {
        text = error.what();
    }
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_NE(text.find("too many open files"), std::string::npos) << text;
    EXPECT_EQ(text.find("corrupt"), std::string::npos) << text;
}

// B133, B135: what cannot work is refused at construction: name, value, what is allowed.
TEST(DecodeTest, OptionsAreChecked) {
    const auto names = [](const DecodeOptions& options, const std::string& name) {
        const std::string text = failure(options);
        return text.find(name) != std::string::npos && text.find("allowed is") != std::string::npos;
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(names({}, "height = 0"));
    EXPECT_TRUE(names({.height = 8}, "width = 0"));
    EXPECT_TRUE(names({.height = 8, .width = 65'536}, "width = 65536"));
    EXPECT_TRUE(names({.height = 8, .width = 8, .scale = {nan, 1}}, "scale = (nan, 1)"));
    EXPECT_TRUE(names({.height = 8, .width = 8, .ratio = {2, 1}}, "ratio = (2, 1)"));
    EXPECT_TRUE(names({.height = 8, .width = 8, .flip = 1.5}, "flip = 1.5"));
    EXPECT_TRUE(names({.height = 8, .width = 8, .flip = nan}, "flip = nan"));
    EXPECT_TRUE(names({.height = 8, .width = 8, .resize = 7}, "resize = 7"));
    EXPECT_TRUE(names({.height = 8, .width = 8, .crop = Crop::whole, .resize = 10}, "resize = 10"));
    EXPECT_TRUE(names({.height = 8, .width = 8, .max_pixels = 0}, "max_pixels = 0"));
    EXPECT_TRUE(names({.height = 8, .width = 8, .max_scans = 0}, "max_scans = 0"));
    EXPECT_TRUE(names({.height = 8, .width = 8, .max_file_bytes = 0}, "max_file_bytes = 0"));
    EXPECT_EQ(failure({.height = 8, .width = 8, .resize = 8}), "accepted");
    EXPECT_THROW(static_cast<void>(stoker::decode(PathList{{"a"}}, {.height = 8, .width = 8}, stoker::Decoders{})),
                 stoker::OptionError);
}

TEST(DecodeTest, TheSourceSaysWhatItIs) {
    const PathList files{{"x", "y"}, {3, 4}};
    const auto source = stoker::decode(files, {.height = 8, .width = 9});
    EXPECT_EQ(source.size(), 2u);
    EXPECT_EQ(source.describe(1), "y");
    EXPECT_EQ(source.fingerprint(), files.fingerprint());
    EXPECT_EQ(source.options().width, 9u);
    static_assert(stoker::RandomAccessSource<decltype(source), ImageBatch>);
}

// A real folder, all of it.
TEST(DecodeTest, RealPicturesAreDelivered) {
    const std::string shared = testing_support::shared_data();
    if (shared.empty()) {
        GTEST_SKIP() << "no shared test data (STOKER_SHARED)";
    }
    Feed feed{stoker::decode(ImageFolder{shared + "/imagenet-sample"},
                             {.height = 224, .width = 224, .crop = Crop::centre, .resize = 256}),
              {.batch_size = 32, .workers = 2, .epochs = 1}};
    std::size_t samples = 0;
    for (auto&& batch : feed) {
        samples += batch.size();
        for (std::size_t row = 0; row < batch.size(); ++row) {
            EXPECT_EQ(static_cast<std::uint64_t>(batch->labels[row]), batch->indices[row]);  // one picture per class
        }
    }
    EXPECT_EQ(samples, 200u);
}

}  // namespace
