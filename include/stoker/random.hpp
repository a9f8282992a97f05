// SPDX-License-Identifier: MIT
/// @file
/// Random numbers, and shuffled orders, that are pure functions of their place in a run: nothing is carried from one
/// draw to the next, so the number of threads, a restore or a skip cannot change them.
///
/// Generator: Philox4x64-10 of J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy
/// as 1, 2, 3", SC'11, with the constants of that paper. It passes TestU01's BigCrush. It is not for secrets.
/// Everything here gives the same values on every machine, with every compiler and its flags (short of -ffast-math).
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace stoker {
inline namespace v0 {

/// Independent families of draws from one seed. The numbers are part of what a seed means: they never change.
enum class RandomStream : std::uint64_t {
    sample = 0,       ///< `Sample::random()`.
    batch = 1,        ///< The draws of a batch as a whole.
    order = 2,        ///< The shuffle of an epoch.
    substitute = 16,  ///< Plus the attempt: which sample stands in for one that failed.
};

namespace detail {

__extension__ typedef unsigned __int128 Wide;  // products of two 64-bit numbers
__extension__ typedef __int128 SignedWide;

/// The high 64 bits of a * b.
[[nodiscard]] constexpr std::uint64_t high_product(std::uint64_t a, std::uint64_t b) noexcept {
    return static_cast<std::uint64_t>((Wide{a} * b) >> 64);
}

using PhiloxBlock = std::array<std::uint64_t, 4>;

/// Philox4x64-10: 256 random bits, a bijection of `counter` for each `key`. Cost: about 20 ns.
[[nodiscard]] constexpr PhiloxBlock philox(PhiloxBlock counter, std::array<std::uint64_t, 2> key) noexcept {
    for (int round = 0; round < 10; ++round) {
        const Wide a = Wide{0xd2e7470ee14c6c93} * counter[0];
        const Wide b = Wide{0xca5a826395121157} * counter[2];
        counter = {static_cast<std::uint64_t>(b >> 64) ^ counter[1] ^ key[0], static_cast<std::uint64_t>(b),
                   static_cast<std::uint64_t>(a >> 64) ^ counter[3] ^ key[1], static_cast<std::uint64_t>(a)};
        key[0] += 0x9e3779b97f4a7c15;  // the golden ratio
        key[1] += 0xbb67ae8584caa73b;  // sqrt(3) - 1
    }
    return counter;
}

/// The block that holds draws 4 * block to 4 * block + 3: no two places of a run share a counter and a key.
[[nodiscard]] constexpr PhiloxBlock random_block(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position,
                                                 std::uint64_t stream, std::uint64_t block) noexcept {
    return philox({block, position, epoch, 0}, {seed, stream});
}

/// `value`, rounded to a double at this point: never part of a fused multiply-add.
[[nodiscard]] inline double unfused(double value) noexcept {
    asm("" : "+m"(value));
    return value;
}

/// -ln(x / 2^64) for x > 0, in integers, within about 2^-52 of the larger of 1 and the result.
/// Method: x / 2^64 = m / 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh((m - 1) / (m + 1)) by its power series.
[[nodiscard]] inline double minus_log(std::uint64_t x) noexcept {
    constexpr std::uint64_t half_root = 0xb504f333f9de6485;  // sqrt(1/2) * 2^64
    constexpr double ln2 = 0.693147180559945309417;
    const int shift = std::countl_zero(x);
    x <<= shift;  // in [1/2, 1) * 2^64
    const bool doubled = x < half_root;
    // |m - 1| and m + 1 in units of 2^-63: m = x * 2^-63 where doubled, else x * 2^-64
    constexpr std::uint64_t one = std::uint64_t{1} << 63;
    const std::uint64_t distance = doubled ? x - one : (0 - x) >> 1;
    const Wide sum = doubled ? Wide{x} + one : Wide{x >> 1} + one;
    const std::uint64_t t = static_cast<std::uint64_t>((Wide{distance} << 64) / sum);  // |artanh's argument| * 2^64
    const std::uint64_t square = high_product(t, t);                                   // below 0.03 * 2^64
    constexpr std::array<std::uint64_t, 12> reciprocals = [] {  // of 25, 23, ... 3: the next term is below 2^-68
        std::array<std::uint64_t, 12> values{};
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = ~std::uint64_t{0} / (25 - 2 * i);
        }
        return values;
    }();
    std::uint64_t series = 0;
    for (const std::uint64_t reciprocal : reciprocals) {
        series = high_product(series + reciprocal, square);
    }
    const double tail = static_cast<double>(high_product(series, t) >> 8) * 0x1p-56;
    const double log_m = unfused((static_cast<double>(t >> 8) * 0x1p-56 + tail) * 2.0);
    const double whole = unfused(static_cast<double>(doubled ? shift + 1 : shift) * ln2);
    return doubled ? whole - log_m : whole + log_m;
}

}  // namespace detail

/// Draw number `draw` of the sample at `position` (global, over all ranks) of `epoch`: 64 uniform bits.
/// Pure; different places give independent draws. Cost: about 20 ns; `Random` shares that among four draws.
[[nodiscard]] constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position,
                                                  std::uint64_t draw) noexcept {
    return detail::random_block(seed, epoch, position, 0, draw / 4)[draw % 4];
}

/// The draws 0, 1, 2, ... of one place in a run, one after the other.
/// Cost: making one is a few stores; every fourth `bits()` computes about 20 ns. No heap.
/// Thread-safety: one thread at a time; copies go on independently, with the same draws.
class Random {
  public:
    /// The `n`-th `bits()` of stream `sample` is `random_bits(seed, epoch, position, n)`.
    Random(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position,
           RandomStream stream = RandomStream::sample) noexcept
        : seed_{seed}, epoch_{epoch}, position_{position}, stream_{static_cast<std::uint64_t>(stream)} {}

    /// 64 uniform bits.
    [[nodiscard]] std::uint64_t bits() noexcept {
        if (draw_ % 4 == 0) {
            block_ = detail::random_block(seed_, epoch_, position_, stream_, draw_ / 4);
        }
        return block_[draw_++ % 4];
    }

    /// Uniform in [0, n), without bias. `n` is 1 or more. Mostly one draw.
    /// Method: D. Lemire, "Fast random integer generation in an interval", ACM TOMACS 29 (2019).
    [[nodiscard]] std::uint64_t below(std::uint64_t n) noexcept {
        assert(n >= 1);
        detail::Wide product = detail::Wide{bits()} * n;
        if (static_cast<std::uint64_t>(product) < n) {
            const std::uint64_t surplus = (0 - n) % n;  // 2^64 mod n
            while (static_cast<std::uint64_t>(product) < surplus) {
                product = detail::Wide{bits()} * n;
            }
        }
        return static_cast<std::uint64_t>(product >> 64);
    }

    /// Uniform in [0, 1): a multiple of 2^-53. One draw.
    [[nodiscard]] double uniform() noexcept { return static_cast<double>(bits() >> 11) * 0x1p-53; }

    /// Uniform in [low, high), or `low` where the two are equal; both finite, low <= high. One draw.
    [[nodiscard]] double uniform(double low, double high) noexcept {
        const double width = detail::unfused(high - low);
        const double value = low + detail::unfused(width * uniform());
        return value < high ? value : __builtin_nextafter(high, low);  // rounding may have reached `high`
    }

    /// True with probability `probability`; never for 0 or less, always for 1 or more. One draw.
    [[nodiscard]] bool chance(double probability) noexcept { return uniform() < probability; }

    /// Normally distributed with mean 0 and standard deviation 1. 1.27 draws on average; about 70 ns.
    /// Method: G. Marsaglia and T. A. Bray, "A convenient method for generating normal variables", SIAM Review 6
    /// (1964), on a grid of 2^32 by 2^32 points.
    [[nodiscard]] double normal() noexcept {
        for (;;) {
            const std::uint64_t draw = bits();
            // Odd multiples of 2^-32 in (-1, 1), here in units of 2^-32.
            const std::int64_t x = 2 * static_cast<std::int64_t>(draw >> 32) + 1 - (std::int64_t{1} << 32);
            const std::int64_t y = 2 * static_cast<std::int64_t>(draw & 0xffffffff) + 1 - (std::int64_t{1} << 32);
            const detail::Wide square = static_cast<detail::Wide>(x * detail::SignedWide{x}) +
                                        static_cast<detail::Wide>(y * detail::SignedWide{y});
            if ((square >> 64) == 0) {
                const auto s = static_cast<std::uint64_t>(square);  // x^2 + y^2 < 1, in units of 2^-64
                const double factor = __builtin_sqrt(2.0 * detail::minus_log(s) / static_cast<double>(s));
                return detail::unfused(static_cast<double>(x) * factor);
            }
        }
    }

  private:
    std::uint64_t seed_, epoch_, position_, stream_;
    std::uint64_t draw_ = 0;       // the next one
    detail::PhiloxBlock block_{};  // once draw_ > 0: the block of draw_ - 1
};

/// A random bijection of 0 .. n - 1, computed and not stored: a shuffle of any size in O(1) memory.
///
/// For n up to 64 the permutation is drawn exactly (R. Durstenfeld, "Algorithm 235", CACM 7 (1964)): all n! are equally
/// likely over the keys. Above, it is a keyed bijection: 10 rounds of a generalised Feistel network (J. Black and
/// P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002: two digits, modular addition, cycle walking) on a
/// domain that is larger than n by less than sqrt(2n), so that one pass is nearly always enough.
///
/// Cost: making one takes 0.1 to 0.2 us (up to 0.5 us for n up to 64), 104 bytes, no heap; an index about 40 ns at any
/// n. A value; const calls may come from many threads.
class Permutation {
  public:
    /// Of the one number 0.
    Permutation() = default;

    /// Of 0 .. n - 1 with n from 1 to 2^63: a pure function of the arguments; different keys (a seed and an epoch,
    /// say) give independent permutations.
    Permutation(std::uint64_t n, std::uint64_t key_high, std::uint64_t key_low) noexcept : n_{n} {
        assert(n >= 1 && n <= std::uint64_t{1} << 63);
        Random random{key_high, key_low, n, RandomStream::order};
        if (n <= most_listed) {
            std::array<std::uint8_t, most_listed> list{};
            for (std::uint64_t i = 0; i < n; ++i) {  // inside-out
                const std::uint64_t j = random.below(i + 1);
                list[i] = list[j];
                list[j] = static_cast<std::uint8_t>(i);
            }
            for (std::uint64_t i = 0; i < n; ++i) {
                words_[i / 8] |= std::uint64_t{list[i]} << (i % 8 * 8);
            }
            return;
        }
        for (std::uint64_t& word : words_) {
            word = random.bits();
        }
        low_bits_ = static_cast<unsigned>(std::bit_width(n - 1)) / 2;
        high_count_ = ((n - 1) >> low_bits_) + 1;
    }

    [[nodiscard]] std::uint64_t size() const noexcept { return n_; }

    /// Where `i` (below size()) goes.
    [[nodiscard]] std::uint64_t operator()(std::uint64_t i) const noexcept {
        assert(i < n_);
        if (n_ <= most_listed) {
            return (words_[i / 8] >> (i % 8 * 8)) & 0xff;
        }
        do {  // ends: the network is a bijection, and i itself, on its cycle, is below n_
            i = encipher(i);
        } while (i >= n_);
        return i;
    }

  private:
    static constexpr std::uint64_t most_listed = 64;
    static constexpr std::size_t rounds = 10;

    /// Uniform high bits from x and a round's key. The two multipliers are those of SplitMix64 (G. L. Steele, D. Lea
    /// and C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
    [[nodiscard]] static std::uint64_t mix(std::uint64_t x, std::uint64_t key) noexcept {
        x = (x ^ key) * 0xbf58476d1ce4e5b9;
        return (x ^ (x >> 32)) * 0x94d049bb133111eb;
    }

    /// One pass over the domain 0 .. high_count_ * 2^low_bits_ - 1.
    [[nodiscard]] std::uint64_t encipher(std::uint64_t i) const noexcept {
        const std::uint64_t mask = (std::uint64_t{1} << low_bits_) - 1;
        std::uint64_t low = i & mask;
        std::uint64_t high = i >> low_bits_;
        for (std::size_t round = 0; round < rounds; round += 2) {
            low = (low + (mix(high, words_[round]) >> (64 - low_bits_))) & mask;
            high += detail::high_product(mix(low, words_[round + 1]), high_count_);
            high -= high >= high_count_ ? high_count_ : 0;
        }
        return (high << low_bits_) | low;
    }

    std::uint64_t n_ = 1;
    std::uint64_t high_count_ = 1;  // values of the high digit
    unsigned low_bits_ = 0;         // of the low digit; 3 to 31 where n_ > most_listed
    std::array<std::uint64_t, rounds>
        words_{};  // up to most_listed the permutation, a byte each; above the rounds' keys
};

}  // namespace v0
}  // namespace stoker
