// SPDX-License-Identifier: MIT
/// @file
/// From a list of picture files to rows of a batch: read, decode, crop, resize, flip.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <stoker/batch.hpp>
#include <stoker/data/read_file.hpp>
#include <stoker/error.hpp>
#include <stoker/image/decoder.hpp>
#include <stoker/image/geometry.hpp>
#include <stoker/image/stb_decoder.hpp>
#include <stoker/random.hpp>
#include <stoker/source.hpp>

namespace stoker {
inline namespace v0 {

/// Which part of a picture becomes the output.
enum class Crop : std::uint8_t {
    centre,          ///< The middle, nothing stretched: for validation and inference.
    random_resized,  ///< A random part, of random size and shape: for training. See random_resized_crop.
    whole,           ///< All of it, stretched to the output's shape.
};

/// What `decode` does to every picture. Checked once, when the source is made.
struct DecodeOptions {
    std::uint32_t height = 0;  ///< Of the output, in pixels: 1 to 65,535. Must be set.
    std::uint32_t width = 0;   ///< Of the output, in pixels: 1 to 65,535. Must be set.
    Crop crop = Crop::centre;
    Range scale = {0.08, 1};           ///< Crop::random_resized: share of the picture's area.
    Range ratio = {3.0 / 4, 4.0 / 3};  ///< Crop::random_resized: width / height.
    /// Crop::centre: the shorter side is brought to so many pixels, and the output is cut from the middle of that.
    /// Unset: the largest part of the output's shape. From the larger side of the output to 65,535.
    std::optional<std::uint32_t> resize = std::nullopt;
    double flip = 0;  ///< Probability of a mirror image, 0 to 1; one draw per sample unless 0 or 1.
    Filter filter = Filter::triangle;
    std::uint64_t max_pixels =
        DecodeLimits{}.max_pixels;  ///< Of a file, width times height; 1 or more. See DecodeLimits.
    std::uint32_t max_scans = DecodeLimits{}.max_scans;     ///< Of a progressive JPEG; 1 or more. See DecodeLimits.
    std::uint64_t max_file_bytes = std::uint64_t{1} << 30;  ///< Of a file; 1 or more.
};

/// Checks `options`. @throws OptionError  naming the option, its value and what is allowed.
inline void check_options(const DecodeOptions& options) {
    constexpr std::uint32_t most = 65'535;
    const auto side = [](const char* name, std::uint32_t value) {
        if (value == 0 || value > most) {
            detail::throw_option(name, std::to_string(value) + (value == 0 ? " (unset)" : ""),
                                 "1 to 65535: all pictures of a batch have one size, so it must be given");
        }
    };
    side("height", options.height);
    side("width", options.width);
    check_scale(options.scale);
    check_ratio(options.ratio);
    if (!(options.flip >= 0 && options.flip <= 1)) {
        detail::throw_option("flip", detail::number_text(options.flip), "a probability from 0 to 1");
    }
    const std::uint32_t larger = options.height > options.width ? options.height : options.width;
    if (options.resize && (*options.resize < larger || *options.resize > most)) {
        detail::throw_option("resize", std::to_string(*options.resize),
                             std::to_string(larger) + " (the larger side of the output) to 65535");
    }
    if (options.resize && options.crop != Crop::centre) {
        detail::throw_option("resize", std::to_string(*options.resize), "a value with Crop::centre only");
    }
    const auto positive = [](const char* name, std::uint64_t value) {
        if (value == 0) {
            detail::throw_option(name, "0", "1 or more");
        }
    };
    positive("max_pixels", options.max_pixels);
    positive("max_scans", options.max_scans);
    positive("max_file_bytes", options.max_file_bytes);
}

/// The geometry of one sample of a picture of `width` x `height` pixels; `options` are checked.
/// Draws: those of the crop, then one for the flip unless its probability is 0 or 1.
[[nodiscard]] inline Geometry choose_geometry(const DecodeOptions& options, std::uint32_t width, std::uint32_t height,
                                              Random& random) {
    Geometry geometry;
    geometry.height = options.height;
    geometry.width = options.width;
    geometry.filter = options.filter;
    switch (options.crop) {
        case Crop::centre:
            geometry.border = Border::picture;
            geometry.box = options.resize ? centre_crop(width, height, options.width, options.height, *options.resize)
                                          : centre_fit(width, height, options.width, options.height);
            break;
        case Crop::random_resized:
            geometry.box = random_resized_crop(width, height, options.scale, options.ratio, random);
            break;
        case Crop::whole: geometry.box = whole_picture(width, height); break;
    }
    geometry.flip = options.flip >= 1 || (options.flip > 0 && random.chance(options.flip));
    return geometry;
}

/// What `decode` needs of a list of files: how many, the path of each, and its class number.
template <class F>
concept FileList = std::copy_constructible<F> && requires(const F& files, std::uint64_t i) {
    { files.size() } -> std::convertible_to<std::uint64_t>;
    { files.path(i) } -> std::convertible_to<std::string>;
    { files.label(i) } -> std::convertible_to<std::int32_t>;
};

/// The decoders that are there without further libraries.
[[nodiscard]] inline Decoders default_decoders() {
    Decoders decoders;
    decoders.add(StbDecoder{});
    return decoders;
}

namespace detail {

/// Buffers on their way between files and decoders; kept for the next file. Any thread.
class BufferPool {
  public:
    static constexpr std::size_t keep_bytes = std::size_t{4} << 20;  // of one buffer

    [[nodiscard]] ByteBuffer take() {
        const std::lock_guard lock{mutex_};
        if (free_.empty()) {
            return {};
        }
        ByteBuffer buffer = std::move(free_.back());
        free_.pop_back();
        return buffer;
    }
    void give(ByteBuffer buffer) noexcept {
        if (buffer.capacity() == 0 || buffer.capacity() > keep_bytes) {
            return;
        }
        try {
            const std::lock_guard lock{mutex_};
            free_.push_back(std::move(buffer));
        } catch (const std::bad_alloc&) {  // then it goes
        }
    }

  private:
    std::mutex mutex_;
    std::vector<ByteBuffer> free_;  // under mutex_
};

}  // namespace detail

/// The bytes of one file, between being read and being decoded. Its memory goes back to its source's pool. Move-only.
class EncodedFile {
  public:
    EncodedFile(std::shared_ptr<detail::BufferPool> pool, ByteBuffer buffer) noexcept
        : pool_{std::move(pool)}, buffer_{std::move(buffer)} {}
    EncodedFile(EncodedFile&&) noexcept = default;
    EncodedFile& operator=(EncodedFile&&) noexcept = default;
    ~EncodedFile() {
        if (pool_ != nullptr) {
            pool_->give(std::move(buffer_));
        }
    }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return buffer_.bytes(); }
    /// Bytes of memory held.
    [[nodiscard]] std::size_t size_bytes() const noexcept { return buffer_.size(); }

  private:
    std::shared_ptr<detail::BufferPool> pool_;
    ByteBuffer buffer_;
};

/// A random-access source of ImageBatch rows, made of files; see `decode`.
/// Copies share the list of files, the decoders and the pool of buffers; they are cheap. Called by many threads at
/// once.
template <FileList Files>
class DecodedFiles {
  public:
    DecodedFiles(Files files, const DecodeOptions& options, Decoders decoders)
        : files_{std::move(files)}, options_{options}, decoders_{std::move(decoders)} {
        check_options(options_);
        if (decoders_.empty()) {
            throw OptionError{
                "cannot use the option decoders = none: allowed is one decoder or more, such as StbDecoder{}"};
        }
    }

    [[nodiscard]] std::uint64_t size() const { return files_.size(); }
    [[nodiscard]] Layout<ImageBatch> layout() const {
        return Layout<ImageBatch>{}.shape(&ImageBatch::images, {options_.height, options_.width, 3});
    }
    /// The path of file `index`, byte for byte.
    [[nodiscard]] std::string describe(std::uint64_t index) const { return files_.path(index); }
    /// Of the list of files; 0 where it has none. The contents of the files are not looked at.
    [[nodiscard]] std::uint64_t fingerprint() const {
        if constexpr (requires {
                          { files_.fingerprint() } -> std::convertible_to<std::uint64_t>;
                      }) {
            return files_.fingerprint();
        } else {
            return 0;
        }
    }
    [[nodiscard]] const DecodeOptions& options() const noexcept { return options_; }
    [[nodiscard]] const Files& files() const noexcept { return files_; }

    /// Reads the sample's file. @throws DataError  see read_file
    [[nodiscard]] EncodedFile fetch(Sample& sample) const {
        ByteBuffer buffer = pool_->take();
        read_file(files_.path(sample.index()), buffer, options_.max_file_bytes);
        return {pool_, std::move(buffer)};
    }

    /// Decodes into the row: image (height x width x 3), label, index. Every draw comes from sample.random().
    /// @throws DataError  (damaged, unsupported, too_large) with the path and the reason. The row is then undefined.
    void fill(Row<ImageBatch> row, EncodedFile& file, Sample& sample) const {
        const auto choose = [this, &sample](const PictureInfo& info) {
            return choose_geometry(options_, info.width, info.height, sample.random());
        };
        const DecodeResult result =
            decoders_.decode(file.bytes(), choose, row[&ImageBatch::images], sample.scratch<DecodeScratch>(),
                             {options_.max_pixels, options_.max_scans});
        if (result.status != DecodeStatus::ok) {
            throw_error(result, sample.index(), file.size_bytes());
        }
        row[&ImageBatch::labels] = static_cast<std::int32_t>(files_.label(sample.index()));
        row[&ImageBatch::indices] = sample.index();
    }

  private:
    [[noreturn]] void throw_error(const DecodeResult& result, std::uint64_t index, std::size_t bytes) const {
        const std::string path = files_.path(index);
        const char* const advice =
            result.kind == ErrorKind::too_large     ? "; raise the limit if the file is meant to be so large"
            : result.kind == ErrorKind::unsupported ? "; convert the file, or add a decoder that knows it"
                                                    : "; replace the file, or set on_error = OnError::skip";
        throw DataError{result.kind, "cannot decode \"" + path + "\": " + result.reason + advice, path, bytes};
    }

    Files files_;
    DecodeOptions options_;
    Decoders decoders_;
    std::shared_ptr<detail::BufferPool> pool_ = std::make_shared<detail::BufferPool>();
};

/// The source of an ImageBatch prefetcher: each file of `files` is read, decoded, cropped, resized and perhaps
/// mirrored, straight into its row. `decode(ImageFolder{"photos/train"}, {.height = 224, .width = 224, .crop =
/// Crop::random_resized, .flip = 0.5})` Damaged files, too, are errors: nothing half decoded is delivered.
/// @throws OptionError  an option that cannot work: its name, its value and what is allowed.
template <FileList Files>
[[nodiscard]] DecodedFiles<Files> decode(Files files, const DecodeOptions& options,
                                         Decoders decoders = default_decoders()) {
    return {std::move(files), options, std::move(decoders)};
}

}  // namespace v0
}  // namespace stoker
