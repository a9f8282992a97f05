// SPDX-License-Identifier: MIT
#include <stoker/image/stb_decoder.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "support/jpeg.hpp"
#include "support/picture_files.hpp"
#include "support/png.hpp"

namespace {

using stoker::DecodeLimits;
using stoker::DecodeResult;
using stoker::DecodeScratch;
using stoker::DecodeStatus;
using stoker::ErrorKind;
using stoker::Geometry;
using stoker::PictureInfo;
using testing_support::as_bytes;
using testing_support::Bytes;

struct Decoded {
    DecodeResult result;
    Bytes pixels;
    [[nodiscard]] bool is_ok() const { return result.status == DecodeStatus::ok; }
    [[nodiscard]] bool says(const std::string& text) const { return result.reason.find(text) != std::string::npos; }
};

/// Thrown by a chooser that only wants to know the size.
struct SizeOnly {};

/// The whole picture at its own size.
Decoded decode(const Bytes& file, DecodeScratch& scratch, const DecodeLimits& limits = {}) {
    stoker::Decoders decoders;
    decoders.add(stoker::StbDecoder{});
    Decoded decoded;
    PictureInfo size;
    try {
        const auto ask = [&size](const PictureInfo& info) -> Geometry {
            size = info;
            throw SizeOnly{};
        };
        decoded.result = decoders.decode(as_bytes(file), ask, {}, scratch, limits);
        return decoded;
    } catch (const SizeOnly&) {
    }
    decoded.pixels.resize(std::size_t{size.width} * size.height * 3);
    const auto all = [](const PictureInfo& info) {
        return Geometry{stoker::whole_picture(info.width, info.height), info.height, info.width};
    };
    decoded.result =
        decoders.decode(as_bytes(file), all, {decoded.pixels.data(), {size.height, size.width, 3}}, scratch, limits);
    return decoded;
}

Decoded decode(const Bytes& file) {
    DecodeScratch scratch;
    return decode(file, scratch);
}

std::string fixtures() { return testing_support::shared_data(); }

// Every picture of the fixtures: the exact pixels of PNG and BMP, close ones of JPEG, or an error that says
// "unsupported".
TEST(StbDecoderTest, DecodesTheFixturesAsExpected) {
    if (fixtures().empty()) {
        GTEST_SKIP() << "no shared test data (STOKER_SHARED)";
    }
    // What stb_image, or this decoder, cannot do: named, so that a change shows.
    const std::map<std::string, std::string> unsupported{{"imgrs-rgb24rle24.bmp", "run-length"},
                                                         {"mei-pal4rle.bmp", "run-length"},
                                                         {"mei-pal8rle.bmp", "run-length"},
                                                         {"mei-pal2.bmp", "2 bits per pixel"},
                                                         {"ljt-testimgari.jpg", "arithmetic"},
                                                         {"tm-dnl-marker.jpg", "DNL"},
                                                         {"tm-duplicate-component-ids.jpg", "components"}};
    // Chroma of a picture narrower than a block of it: stb_image interpolates, the reference repeats.
    const std::map<std::string, double> wider{{"jd-jpg-size-3x3.jpg", 5}, {"pil-app13.jpg", 2.1}};
    DecodeScratch scratch;
    int exact = 0;
    int close = 0;
    for (const auto& row : testing_support::read_table(fixtures() + "/images/expected.tsv")) {
        const std::string& name = row[0];
        const Decoded decoded = decode(testing_support::read_all(fixtures() + "/images/" + name), scratch);
        if (row[2] != "png" && row[2] != "bmp" && row[2] != "jpeg") {
            EXPECT_FALSE(decoded.is_ok()) << name;
            EXPECT_EQ(decoded.result.kind, ErrorKind::unsupported) << name;
            EXPECT_TRUE(decoded.says("unsupported")) << name << ": " << decoded.result.reason;
            continue;
        }
        if (const auto found = unsupported.find(name); found != unsupported.end()) {
            EXPECT_EQ(decoded.result.kind, ErrorKind::unsupported) << name << ": " << decoded.result.reason;
            EXPECT_TRUE(decoded.says("unsupported") && decoded.says(found->second))
                << name << ": " << decoded.result.reason;
            continue;
        }
        ASSERT_TRUE(decoded.is_ok()) << name << ": " << decoded.result.reason;
        EXPECT_EQ(std::to_string(decoded.result.info.width), row[3]) << name;
        EXPECT_EQ(std::to_string(decoded.result.info.height), row[4]) << name;
        if (row[14] == "yes") {
            EXPECT_EQ(testing_support::sha256(decoded.pixels), row[9]) << name;
            ++exact;
        } else {
            const auto allowance = wider.find(name);
            for (std::size_t c = 0; c < 3; ++c) {
                double sum = 0;
                for (std::size_t i = c; i < decoded.pixels.size(); i += 3) {
                    sum += decoded.pixels[i];
                }
                EXPECT_NEAR(sum * 3 / static_cast<double>(decoded.pixels.size()), std::stod(row[11 + c]),
                            allowance != wider.end() ? allowance->second : 0.6)
                    << name;
            }
            ++close;
        }
    }
    EXPECT_GE(exact, 70);
    EXPECT_GE(close, 60);
}

// Every broken file ends, in little memory; what is not an error has a known reason to be none.
TEST(StbDecoderTest, BrokenFixturesAreErrors) {
    if (fixtures().empty()) {
        GTEST_SKIP() << "no shared test data (STOKER_SHARED)";
    }
    // Only checksums, or things that are not looked at, are wrong; or stb_image reads on regardless.
    const std::vector<std::string> accepted{"imgrs-Bad_clrsUsed.bmp",
                                            "jd-dc-predictor-overflow.jpg",
                                            "jd-extraneous-data.jpg",
                                            "pil-truncated_app14.jpg",
                                            "libpng-badcrc.png",
                                            "mei-c-m1-6bfb149151f58d124d6fa76eaad75520.png",
                                            "pil-png_decompression_dos.png",
                                            "pil-unknown_compression_method.png",
                                            "stb-xcsn0g01.png"};
    for (const auto& row : testing_support::read_table(fixtures() + "/bad/expected.tsv")) {
        DecodeScratch scratch;
        const Decoded decoded = decode(testing_support::read_all(fixtures() + "/bad/" + row[0]), scratch);
        if (std::find(accepted.begin(), accepted.end(), row[0]) == accepted.end()) {
            EXPECT_EQ(decoded.result.status, DecodeStatus::error) << row[0];
            EXPECT_FALSE(decoded.result.reason.empty()) << row[0];
        }
        EXPECT_LE(scratch.size_bytes(), 3 * DecodeScratch::keep_bytes) << row[0];
    }
}

// B097: three channels, whatever the file has.
TEST(StbDecoderTest, GreyIsRepeatedAndAlphaDropped) {
    const Decoded jpeg = decode(testing_support::jpeg_file(9, 7, 1, Bytes(63, 77), 95));
    ASSERT_TRUE(jpeg.is_ok()) << jpeg.result.reason;
    ASSERT_EQ(jpeg.pixels.size(), 9u * 7 * 3);
    for (const std::uint8_t value : jpeg.pixels) {
        EXPECT_NEAR(value, 77, 1);
    }
    EXPECT_EQ(decode(testing_support::png_from_rows(1, 1, 8, 4, {77, 10})).pixels, (Bytes{77, 77, 77}));
    // B088, drop: alpha does not touch the colours.
    EXPECT_EQ(decode(testing_support::png_from_rows(2, 1, 8, 6, {200, 100, 50, 128, 10, 20, 30, 0})).pixels,
              (Bytes{200, 100, 50, 10, 20, 30}));
    // B089: the high byte.
    EXPECT_EQ(decode(testing_support::png_from_rows(1, 1, 16, 0, {0x12, 0x34})).pixels, (Bytes{18, 18, 18}));
}

// B090: Apple's variant is refused, not guessed.
TEST(StbDecoderTest, AppleVariantIsUnsupported) {
    Bytes file = testing_support::flat_png(8, 8, 255, 0, 0);
    Bytes chunk;
    testing_support::add_chunk(chunk, "CgBI", {0, 0, 0, 0});
    file.insert(file.begin() + 8, chunk.begin(), chunk.end());
    const Decoded decoded = decode(file);
    EXPECT_EQ(decoded.result.kind, ErrorKind::unsupported);
    EXPECT_TRUE(decoded.says("unsupported")) << decoded.result.reason;
}

// B049, B055: refused by its header, before anything is allocated.
TEST(StbDecoderTest, TooManyPixelsAreRefusedBeforeAnythingIsAllocated) {
    DecodeScratch scratch;
    const Bytes zeros = testing_support::png_file(
        {19'000, 19'000, 1, 0, testing_support::zlib_zeros(std::uint64_t{19'000} * 2376), {}});
    EXPECT_LT(zeros.size(), 400'000u);
    Decoded decoded = decode(zeros, scratch);
    EXPECT_EQ(decoded.result.kind, ErrorKind::too_large);
    EXPECT_TRUE(decoded.says("19000x19000") && decoded.says("134217728")) << decoded.result.reason;
    EXPECT_EQ(scratch.size_bytes(), 0u);

    decoded = decode(
        testing_support::png_file({2500, 2000, 8, 2, testing_support::zlib_zeros(std::uint64_t{2000} * 7501), {}}),
        scratch, {.max_pixels = 4'000'000});
    EXPECT_TRUE(decoded.says("2500x2000") && decoded.says("4000000")) << decoded.result.reason;
    EXPECT_EQ(scratch.size_bytes(), 0u);
    const auto jpeg = testing_support::jpeg_file(60, 50, 3, Bytes(9000, 50), 95);
    EXPECT_TRUE(decode(jpeg, scratch, {.max_pixels = 2999}).says("60x50"));
    EXPECT_EQ(scratch.size_bytes(), 0u);
    EXPECT_TRUE(decode(jpeg, scratch, {.max_pixels = 3000}).is_ok());
    EXPECT_LE(scratch.size_bytes(), DecodeScratch::keep_bytes);
}

// B055: what is large and allowed decodes, and its memory goes back.
TEST(StbDecoderTest, ALargePictureDecodesWhenTheLimitAllowsIt) {
    DecodeScratch scratch;
    const Bytes zeros =
        testing_support::png_file({9000, 9000, 1, 0, testing_support::zlib_zeros(std::uint64_t{9000} * 1126), {}});
    EXPECT_FALSE(decode(zeros, scratch, {.max_pixels = 80'999'999}).is_ok());
    Bytes out(12, 9);
    const auto choose = [](const PictureInfo& info) {
        return Geometry{stoker::whole_picture(info.width, info.height), 2, 2};
    };
    const DecodeResult result = stoker::StbDecoder{}.decode(as_bytes(zeros), choose, {out.data(), {2, 2, 3}}, scratch,
                                                            {.max_pixels = 81'000'000});
    EXPECT_EQ(result.status, DecodeStatus::ok) << result.reason;
    EXPECT_EQ(out, Bytes(12, 0));
    EXPECT_LE(scratch.size_bytes(), DecodeScratch::keep_bytes);
}

// B055: text that inflates to 64 MB is not inflated; data that inflate to more than the picture are refused.
TEST(StbDecoderTest, NothingInflatesBeyondThePicture) {
    Bytes text{'a', 0, 0};
    const Bytes bomb = testing_support::zlib_zeros(64 << 20);
    text.insert(text.end(), bomb.begin(), bomb.end());
    DecodeScratch scratch;
    const Decoded decoded =
        decode(testing_support::png_from_rows(4, 4, 8, 0, Bytes(16, 7), {{"zTXt", text}, {"iCCP", text}}), scratch);
    EXPECT_TRUE(decoded.is_ok()) << decoded.result.reason;
    EXPECT_EQ(decoded.pixels, Bytes(48, 7));
    EXPECT_LT(scratch.size_bytes(), 2u << 20);

    DecodeScratch other;
    const Decoded data =
        decode(testing_support::png_file({4, 4, 8, 0, testing_support::zlib_zeros(64 << 20), {}}), other);
    EXPECT_EQ(data.result.kind, ErrorKind::damaged);
    EXPECT_TRUE(data.says("expand")) << data.result.reason;
    EXPECT_LT(other.size_bytes(), 4u << 20);
}

// B053: every allocation may fail; the decoder says so, leaves nothing behind and works afterwards.
TEST(StbDecoderTest, EveryAllocationMayFail) {
    const Bytes jpeg = testing_support::jpeg_file(20, 10, 3, Bytes(600, 50), 80);
    const Bytes png = testing_support::flat_png(20, 10, 1, 2, 3);
    for (const Bytes* const file : {&jpeg, &png}) {
        int failed = 0;
        for (std::size_t k = 1; k <= 80; ++k) {
            DecodeScratch scratch;
            scratch.heap.fail_at = k;
            const Decoded decoded = decode(*file, scratch);
            if (!decoded.is_ok()) {
                ++failed;
                EXPECT_TRUE(decoded.says("out of memory")) << decoded.result.reason;
            }
            scratch.heap.fail_at = 0;
            EXPECT_TRUE(decode(*file, scratch).is_ok());
        }
        EXPECT_GE(failed, 2);
        EXPECT_LT(failed, 80);
    }
}

// B021: many threads, many faults; each gets its own.
TEST(StbDecoderTest, FaultsDoNotMixBetweenThreads) {
    const auto work = [](std::uint64_t seed, int& wrong) {
        DecodeScratch scratch;
        stoker::Random random{seed, 0, 0};
        for (int i = 0; i < 50; ++i) {
            Bytes noise(200);
            for (std::uint8_t& byte : noise) {
                byte = static_cast<std::uint8_t>(random.below(255) +
                                                 1);  // a zero would make an icon of it, and 'B' a bitmap
            }
            noise[0] = 'x';
            wrong += decode(noise, scratch).result.kind != ErrorKind::unsupported;
            Bytes cut = testing_support::flat_png(8, 8, 1, 2, 3);
            cut.resize(60 + random.below(100));
            wrong += decode(cut, scratch).result.kind != ErrorKind::damaged;
            Bytes broken = testing_support::flat_png(8, 8, 1, 2, 3);
            broken[41] = 0x79;  // the stream's header
            const Decoded decoded = decode(broken, scratch);
            wrong += !decoded.says("bad zlib header");
            wrong += !decode(testing_support::id_png(static_cast<std::uint32_t>(i)), scratch).is_ok();
        }
    };
    std::vector<int> wrong(8, 0);
    {
        std::vector<std::jthread> threads;
        for (std::size_t t = 0; t < wrong.size(); ++t) {
            threads.emplace_back([&, t] { work(t, wrong[t]); });
        }
    }
    EXPECT_EQ(wrong, std::vector<int>(8, 0));
}

// A JPEG that ends early, or whose intervals are lost, is damaged.
TEST(StbDecoderTest, ATruncatedJpegIsDamaged) {
    const Bytes whole = testing_support::jpeg_file(64, 64, 3, Bytes(64 * 64 * 3, 99), 95);
    ASSERT_TRUE(decode(whole).is_ok());
    for (std::size_t size = 3; size + 1 < whole.size(); size += 7) {
        Bytes cut = whole;
        cut.resize(size);
        const Decoded decoded = decode(cut);
        EXPECT_EQ(decoded.result.status, DecodeStatus::error) << size;
        EXPECT_EQ(decoded.result.kind, ErrorKind::damaged) << size;
    }
}

// B096: scans without end are refused at once.
TEST(StbDecoderTest, TooManyScansAreRefused) {
    if (fixtures().empty()) {
        GTEST_SKIP() << "no shared test data (STOKER_SHARED)";
    }
    Bytes file = testing_support::read_all(fixtures() + "/images/jd-tower_progressive.jpg");
    ASSERT_TRUE(decode(file).is_ok());
    DecodeScratch scratch;
    EXPECT_FALSE(decode(file, scratch, {.max_scans = 9}).is_ok());
    EXPECT_TRUE(decode(file, scratch, {.max_scans = 10}).is_ok());
    // 2000 more refinements of one coefficient of component 1, with no data behind them.
    file.resize(file.size() - 2);
    const std::uint8_t id = 1;
    for (int i = 0; i < 2000; ++i) {
        file.insert(file.end(), {0xff, 0xda, 0, 8, 1, id, 0, 1, 1, 0x10, 0x55});
    }
    file.insert(file.end(), {0xff, 0xd9});
    const Decoded decoded = decode(file, scratch);
    EXPECT_EQ(decoded.result.kind, ErrorKind::too_large);
    EXPECT_TRUE(decoded.says("too many scans")) << decoded.result.reason;
}

// A palette that is too short shows black, never what happens to be in memory.
TEST(StbDecoderTest, AShortPaletteIsFilledUp) {
    const Bytes file = testing_support::png_from_rows(4, 1, 8, 3, {0, 1, 2, 255}, {{"PLTE", {10, 20, 30, 40, 50, 60}}});
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(decode(file).pixels, (Bytes{10, 20, 30, 40, 50, 60, 0, 0, 0, 0, 0, 0}));
    }
}

// Mutated files: each ends in a status, and twice in the same one. (B095 asks for more, with the checks of a
// sanitizer.)
TEST(StbDecoderTest, MutatedFilesEnd) {
    const Bytes jpeg = testing_support::jpeg_file(24, 17, 3, Bytes(24 * 17 * 3, 120), 85);
    const Bytes png = testing_support::flat_png(9, 9, 200, 100, 50);
    DecodeScratch scratch;
    for (std::uint64_t i = 0; i < 1500; ++i) {
        Bytes file = i % 2 == 0 ? jpeg : png;
        stoker::Random random{11, 0, i};
        for (int change = 0; change < 3; ++change) {
            file[random.below(file.size())] = static_cast<std::uint8_t>(random.below(256));
        }
        const Decoded first = decode(file, scratch, {.max_pixels = 1'000'000});
        DecodeScratch fresh;
        const Decoded second = decode(file, fresh, {.max_pixels = 1'000'000});
        ASSERT_EQ(first.result.status, second.result.status) << i;
        ASSERT_EQ(first.result.reason, second.result.reason) << i;
        if (first.is_ok()) {
            ASSERT_EQ(first.pixels, second.pixels) << i;
        }
    }
}

TEST(StbDecoderTest, FormatsAreToldByTheirBytes) {
    const auto format = [](std::string text) {
        text.resize(16, '\1');
        return stoker::detect_format(std::as_bytes(std::span{text}));
    };
    EXPECT_EQ(format("\xff\xd8\xff"), stoker::PictureFormat::jpeg);
    EXPECT_EQ(format("GIF89a"), stoker::PictureFormat::gif);
    EXPECT_EQ(format("RIFF....WEBP"), stoker::PictureFormat::webp);
    EXPECT_EQ(format(std::string{"MM\0*", 4}), stoker::PictureFormat::tiff);
    EXPECT_EQ(format("....ftypavif"), stoker::PictureFormat::avif);
    EXPECT_EQ(format(std::string{"\0\0\0\x0cjP  \r\n", 10}), stoker::PictureFormat::jpeg2000);
    EXPECT_EQ(format("hello"), stoker::PictureFormat::unknown);
    EXPECT_EQ(stoker::detect_format({}), stoker::PictureFormat::unknown);
    EXPECT_EQ(decode({}).result.kind, ErrorKind::damaged);
    EXPECT_TRUE(decode({'G', 'I', 'F', '8', '9', 'a'}).says("GIF is unsupported"));
}

/// A decoder of one's own: a format that nobody knows, and all JPEGs.
struct OwnDecoder {
    [[nodiscard]] bool accepts(stoker::PictureFormat format) const {
        return format == stoker::PictureFormat::unknown || format == stoker::PictureFormat::jpeg;
    }
    DecodeResult decode(std::span<const std::byte> bytes, const stoker::GeometryChooser& choose,
                        const stoker::Tensor<std::uint8_t, 3>& out, DecodeScratch&, const DecodeLimits&) const {
        if (bytes[0] != std::byte{'#'}) {
            return DecodeResult::error(ErrorKind::unsupported, "own: not mine");
        }
        const PictureInfo info{stoker::PictureFormat::unknown, 1, 1};
        static_cast<void>(choose(info));
        std::fill_n(out.data(), out.size(), std::uint8_t{42});
        return {DecodeStatus::ok, ErrorKind::other, {}, info};
    }
};
static_assert(stoker::PictureDecoder<OwnDecoder>);

TEST(DecodersTest, ADecoderOfOnesOwnIsAskedFirstAndMayPassOn) {
    stoker::Decoders decoders;
    EXPECT_TRUE(decoders.empty());
    decoders.add(stoker::StbDecoder{}).add(OwnDecoder{});
    DecodeScratch scratch;
    Bytes out(3);
    const auto one = [](const PictureInfo& info) {
        return Geometry{stoker::whole_picture(info.width, info.height), 1, 1};
    };
    const stoker::Tensor<std::uint8_t, 3> target{out.data(), {1, 1, 3}};
    EXPECT_EQ(decoders.decode(as_bytes({'#', 1}), one, target, scratch).status, DecodeStatus::ok);
    EXPECT_EQ(out, Bytes(3, 42));
    EXPECT_EQ(
        decoders.decode(as_bytes(testing_support::jpeg_file(8, 8, 1, Bytes(64, 9), 95)), one, target, scratch).status,
        DecodeStatus::ok);
    EXPECT_NEAR(out[0], 9, 1);
    EXPECT_EQ(decoders.decode(as_bytes({'?', 1}), one, target, scratch).reason, "own: not mine");
}

TEST(DecodersTest, AnOutputOfTheWrongShapeIsRefused) {
    DecodeScratch scratch;
    Bytes out(12);
    const auto two = [](const PictureInfo& info) {
        return Geometry{stoker::whole_picture(info.width, info.height), 2, 2};
    };
    EXPECT_THROW(static_cast<void>(stoker::StbDecoder{}.decode(as_bytes(testing_support::flat_png(4, 4, 1, 2, 3)), two,
                                                               {out.data(), {2, 1, 3}}, scratch)),
                 stoker::OptionError);
}

}  // namespace
