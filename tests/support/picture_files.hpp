// SPDX-License-Identifier: MIT
/// @file
/// Files and folders for tests: a temporary folder, the shared fixtures, and SHA-256 to compare pictures with.
#pragma once

#include <stdlib.h>
#include <sys/stat.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace testing_support {

/// A folder that is gone, with all in it, at the end of the test.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "stoker-test-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) {
            throw std::runtime_error{"cannot make a temporary folder"};
        }
        path_ = name;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

    /// Writes a file and the folders above it. @return its path
    std::string write(const std::string& name, const std::vector<std::uint8_t>& bytes = {}) const {
        const std::string path = path_ + "/" + name;
        const std::size_t slash = path.rfind('/');
        std::filesystem::create_directories(path.substr(0, slash));
        std::ofstream out{path, std::ios::binary};
        out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        if (!out.flush()) {
            throw std::runtime_error{"cannot write " + path};
        }
        return path;
    }
    void make_folder(const std::string& name) const { std::filesystem::create_directories(path_ + "/" + name); }

  private:
    std::string path_;
};

/// The shared fixtures, beside the repository; empty where there are none.
[[nodiscard]] inline std::string shared_data() {
    const char* const variable = ::getenv("STOKER_SHARED");
    std::string root = variable != nullptr ? variable : "";
#ifdef STOKER_SOURCE_DIR
    if (root.empty()) {
        root = STOKER_SOURCE_DIR "/../shared";
    }
#endif
    if (root.empty() || !std::filesystem::is_directory(root + "/data")) {
        return {};
    }
    return root + "/data";
}

/// The rows of a table with one header line: no quoting.
[[nodiscard]] inline std::vector<std::vector<std::string>> read_table(const std::string& path) {
    std::ifstream in{path};
    std::vector<std::vector<std::string>> rows;
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
        std::vector<std::string> cells;
        std::istringstream text{line};
        for (std::string cell; std::getline(text, cell, '\t');) {
            cells.push_back(cell);
        }
        rows.push_back(std::move(cells));
    }
    return rows;
}

[[nodiscard]] inline std::span<const std::byte> as_bytes(const std::vector<std::uint8_t>& bytes) {
    return std::as_bytes(std::span{bytes});
}

[[nodiscard]] inline std::vector<std::uint8_t> read_all(const std::string& path) {
    std::ifstream in{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

/// SHA-256 (FIPS 180-4) in hexadecimal.
[[nodiscard]] inline std::string sha256(std::span<const std::uint8_t> data) {
    // The constants are the first 32 bits of the fractions of the cube roots, and square roots, of the first primes.
    static const auto constants = [] {
        std::array<std::uint32_t, 72> words{};
        const auto fraction_of_root = [](std::uint64_t prime, int power) {
            // The largest r with r^power <= prime * 2^(32 * power), by bisection; its low 32 bits.
            __extension__ typedef unsigned __int128 Wide;
            std::uint64_t low = 0;
            std::uint64_t high = std::uint64_t{1} << 37;
            while (high - low > 1) {
                const std::uint64_t middle = (low + high) / 2;
                const Wide square = static_cast<Wide>(middle) * middle;
                const bool fits = power == 2 ? square <= static_cast<Wide>(prime) << 64
                                             : square * middle <= static_cast<Wide>(prime) << 96;
                (fits ? low : high) = middle;
            }
            return static_cast<std::uint32_t>(low);
        };
        std::size_t count = 0;
        for (std::uint64_t candidate = 2; count < 64; ++candidate) {
            bool is_prime = true;
            for (std::uint64_t divisor = 2; divisor * divisor <= candidate; ++divisor) {
                is_prime = is_prime && candidate % divisor != 0;
            }
            if (is_prime) {
                words[count] = fraction_of_root(candidate, 3);
                if (count < 8) {
                    words[64 + count] = fraction_of_root(candidate, 2);
                }
                ++count;
            }
        }
        return words;
    }();
    std::array<std::uint32_t, 8> state{};
    for (std::size_t i = 0; i < 8; ++i) {
        state[i] = constants[64 + i];
    }
    const std::uint64_t blocks = (data.size() + 8) / 64 + 1;
    for (std::uint64_t block = 0; block < blocks; ++block) {
        std::array<std::uint8_t, 64> chunk{};
        for (std::size_t i = 0; i < 64; ++i) {
            const std::uint64_t at = block * 64 + i;
            chunk[i] = at < data.size() ? data[static_cast<std::size_t>(at)] : at == data.size() ? 0x80 : 0;
        }
        if (block + 1 == blocks) {
            for (std::size_t i = 0; i < 8; ++i) {
                chunk[56 + i] = static_cast<std::uint8_t>(std::uint64_t{data.size()} * 8 >> (56 - 8 * i));
            }
        }
        std::array<std::uint32_t, 64> w{};
        for (std::size_t i = 0; i < 64; ++i) {
            if (i < 16) {
                w[i] = static_cast<std::uint32_t>(chunk[i * 4]) << 24 |
                       static_cast<std::uint32_t>(chunk[i * 4 + 1]) << 16 |
                       static_cast<std::uint32_t>(chunk[i * 4 + 2]) << 8 | chunk[i * 4 + 3];
            } else {
                const std::uint32_t a = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
                const std::uint32_t b = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
                w[i] = w[i - 16] + a + w[i - 7] + b;
            }
        }
        std::array<std::uint32_t, 8> s = state;
        for (std::size_t i = 0; i < 64; ++i) {
            const std::uint32_t one = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
            const std::uint32_t first = s[7] + one + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
            const std::uint32_t zero = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
            const std::uint32_t second = zero + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            s = {first + second, s[0], s[1], s[2], s[3] + first, s[4], s[5], s[6]};
        }
        for (std::size_t i = 0; i < 8; ++i) {
            state[i] += s[i];
        }
    }
    std::string text;
    for (const std::uint32_t word : state) {
        for (int shift = 28; shift >= 0; shift -= 4) {
            text += "0123456789abcdef"[word >> shift & 15];
        }
    }
    return text;
}

}  // namespace testing_support
