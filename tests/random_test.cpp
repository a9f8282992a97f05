// SPDX-License-Identifier: MIT
#include <stoker/random.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

namespace {

using stoker::Permutation;
using stoker::Random;
using stoker::random_bits;
using stoker::RandomStream;

constexpr std::uint64_t huge = std::uint64_t{1} << 63;

static_assert(std::is_trivially_copyable_v<Random> && sizeof(Random) <= 80);
static_assert(std::is_trivially_copyable_v<Permutation> && sizeof(Permutation) <= 128);

/// How many standard deviations the chi-square statistic of `counts` lies above its mean, were every cell expected to
/// hold `expected`. Seeds are fixed, so a test on it never flickers; below 4.5 is no sign of bias.
double chi_square_score(const std::vector<std::uint64_t>& counts, double expected) {
    double sum = 0;
    for (const std::uint64_t count : counts) {
        const double difference = static_cast<double>(count) - expected;
        sum += difference * difference / expected;
    }
    const double freedom = static_cast<double>(counts.size() - 1);
    return (sum - freedom) / std::sqrt(2 * freedom);
}

std::vector<std::uint64_t> listed(const Permutation& permutation) {
    std::vector<std::uint64_t> list(permutation.size());
    for (std::uint64_t i = 0; i < list.size(); ++i) {
        list[i] = permutation(i);
    }
    return list;
}

bool is_bijection(const Permutation& permutation) {
    std::vector<std::uint64_t> list = listed(permutation);
    std::sort(list.begin(), list.end());
    for (std::uint64_t i = 0; i < list.size(); ++i) {
        if (list[i] != i) {
            return false;
        }
    }
    return true;
}

// The vectors are those of Random123's tests/kat_vectors, "philox4x64 10".
TEST(RandomTest, PhiloxGivesThePublishedAnswers) {
    using Block = stoker::detail::PhiloxBlock;
    constexpr std::uint64_t ones = ~std::uint64_t{0};
    EXPECT_EQ(stoker::detail::philox({0, 0, 0, 0}, {0, 0}),
              (Block{0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b, 0x7e68b68aec7ba23b}));
    EXPECT_EQ(stoker::detail::philox({ones, ones, ones, ones}, {ones, ones}),
              (Block{0x87b092c3013fe90b, 0x438c3c67be8d0224, 0x9cc7d7c69cd777b6, 0xa09caebf594f0ba0}));
    EXPECT_EQ(stoker::detail::philox({0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89},
                                     {0x452821e638d01377, 0xbe5466cf34e90c6c}),
              (Block{0xa528f45403e61d95, 0x38c72dbd566e9788, 0xa5a1610e72fd18b5, 0x57bd43b5e52b7fe6}));
}

TEST(RandomTest, RandomBitsIsAConstantExpression) {
    static_assert(random_bits(0, 0, 0, 0) == 0x16554d9eca36314c);
    static_assert(random_bits(0, 0, 0, 3) == 0x7e68b68aec7ba23b);
}

TEST(RandomTest, BitsAreTheNumberedDraws) {
    Random random{7, 3, 11};
    for (std::uint64_t draw = 0; draw < 20; ++draw) {
        EXPECT_EQ(random.bits(), random_bits(7, 3, 11, draw));
    }
}

TEST(RandomTest, EveryPlaceHasItsOwnDraws) {
    std::unordered_set<std::uint64_t> seen;
    std::size_t count = 0;
    for (const std::uint64_t seed : {0ull, 1ull, ~0ull}) {
        for (const std::uint64_t epoch : {0ull, 1ull, 2ull, 1ull << 32}) {
            for (const std::uint64_t position : {0ull, 1ull, 2ull, 1ull << 32, ~0ull}) {
                for (const auto stream :
                     {RandomStream::sample, RandomStream::batch, RandomStream::order, RandomStream::substitute}) {
                    Random random{seed, epoch, position, stream};
                    for (int i = 0; i < 8; ++i, ++count) {
                        seen.insert(random.bits());
                    }
                }
            }
        }
    }
    EXPECT_EQ(seen.size(), count);
}

TEST(RandomTest, ACopyGoesOnWithTheSameDraws) {
    Random random{1, 2, 3};
    static_cast<void>(random.bits());
    Random copy = random;
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(copy.bits(), random.bits());
    }
}

// A seed means the same for ever, on every machine: these values must never change.
TEST(RandomTest, ValuesAreFixedForEver) {
    Random random{42, 1, 5};
    EXPECT_EQ(random.bits(), 0x44b0eceb065aae5e);
    EXPECT_EQ(random.below(1000), 298u);
    EXPECT_EQ(random.uniform(), 0x1.95fc6d51fad7ep-2);
    EXPECT_EQ(random.uniform(-3, 5), -0x1.576782c7f322cp+1);
    EXPECT_EQ(random.normal(), 0x1.25295d6683064p-1);
    EXPECT_EQ(random.normal(), -0x1.7d7015af4ab4dp-1);
}

TEST(RandomTest, BelowIsUniform) {
    for (const std::uint64_t n : {2ull, 3ull, 7ull, 10ull, 64ull, 1000ull}) {
        Random random{1, 2, n};
        std::vector<std::uint64_t> counts(n);
        for (std::uint64_t i = 0; i < 200 * n; ++i) {
            const std::uint64_t value = random.below(n);
            ASSERT_LT(value, n);
            ++counts[value];
        }
        EXPECT_LT(chi_square_score(counts, 200), 4.5) << n;
    }
}

// With n = 3 * 2^62 a product without rejection would give a third of the values twice as often.
TEST(RandomTest, BelowIsUniformForHugeRanges) {
    Random random{1, 2, 3};
    constexpr std::uint64_t third = std::uint64_t{1} << 62;
    std::vector<std::uint64_t> thirds(3), modulo(3);
    for (int i = 0; i < 30000; ++i) {
        const std::uint64_t value = random.below(3 * third);
        ASSERT_LT(value, 3 * third);
        ++thirds[value / third];
        ++modulo[value % 3];
    }
    EXPECT_LT(chi_square_score(thirds, 10000), 4.5);
    EXPECT_LT(chi_square_score(modulo, 10000), 4.5);
}

TEST(RandomTest, BelowOneIsZero) {
    Random random{1, 2, 3};
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(random.below(1), 0u);
    }
    EXPECT_LT(random.below(std::numeric_limits<std::uint64_t>::max()), std::numeric_limits<std::uint64_t>::max());
}

TEST(RandomTest, UniformFillsTheUnitInterval) {
    std::vector<std::uint64_t> counts(100);
    for (std::uint64_t position = 0; position < 20000; ++position) {
        Random random{9, 0, position};
        const double value = random.uniform();
        ASSERT_GE(value, 0.0);
        ASSERT_LT(value, 1.0);
        ++counts[static_cast<std::size_t>(value * 100)];
    }
    EXPECT_LT(chi_square_score(counts, 200), 4.5);
}

TEST(RandomTest, UniformStaysInItsRange) {
    Random random{1, 2, 3};
    const double next = std::nextafter(1.0, 2.0);
    double least = 7, most = -2;
    for (int i = 0; i < 2000; ++i) {
        EXPECT_EQ(random.uniform(1.0, next), 1.0);  // half of these round up to `next` on the way
        const double value = random.uniform(-2.0, 7.0);
        ASSERT_GE(value, -2.0);
        ASSERT_LT(value, 7.0);
        least = std::min(least, value);
        most = std::max(most, value);
    }
    EXPECT_LT(least, -1.9);
    EXPECT_GT(most, 6.9);
    EXPECT_EQ(random.uniform(3.0, 3.0), 3.0);
}

TEST(RandomTest, ChanceHappensAsOftenAsAsked) {
    Random random{1, 2, 3};
    int count = 0;
    for (int i = 0; i < 10000; ++i) {
        EXPECT_FALSE(random.chance(0.0));
        EXPECT_FALSE(random.chance(-1.0));
        EXPECT_TRUE(random.chance(1.0));
        EXPECT_TRUE(random.chance(2.0));
        count += random.chance(0.3) ? 1 : 0;
    }
    EXPECT_NEAR(count, 3000, 4 * std::sqrt(10000 * 0.3 * 0.7));
}

TEST(RandomTest, NormalHasTheNormalDistribution) {
    constexpr int count = 100000;
    Random random{3, 1, 4};
    double sum = 0, squares = 0, fourth = 0;
    std::vector<std::uint64_t> cells(64);
    for (int i = 0; i < count; ++i) {
        const double value = random.normal();
        ASSERT_TRUE(std::isfinite(value));
        sum += value;
        squares += value * value;
        fourth += value * value * value * value;
        const double quantile = 0.5 * std::erfc(-value / std::sqrt(2.0));
        ++cells[std::min<std::size_t>(63, static_cast<std::size_t>(quantile * 64))];
    }
    EXPECT_NEAR(sum / count, 0, 4 / std::sqrt(count));
    EXPECT_NEAR(squares / count, 1, 4 * std::sqrt(2.0 / count));
    EXPECT_NEAR(fourth / count, 3, 4 * std::sqrt(96.0 / count));
    EXPECT_LT(chi_square_score(cells, count / 64.0), 4.5);
}

TEST(RandomTest, MinusLogIsTheLogarithm) {
    Random random{1, 1, 1};
    const auto check = [](std::uint64_t x) {
        const double expected = -std::log(std::ldexp(static_cast<double>(x), -64));
        const double value = stoker::detail::minus_log(x);
        ASSERT_GE(value, 0.0) << x;
        ASSERT_NEAR(value, expected, 5e-16 * std::max(1.0, expected)) << x;
    };
    for (int i = 0; i < 10000; ++i) {
        check((random.bits() >> random.below(64)) | 1);
    }
    for (const std::uint64_t edge :
         {1ull, 2ull, 3ull, 1ull << 63, ~0ull, 0xb504f333f9de6484ull, 0xb504f333f9de6485ull}) {
        check(edge);
    }
}

TEST(PermutationTest, DefaultIsThatOfOne) {
    const Permutation permutation;
    EXPECT_EQ(permutation.size(), 1u);
    EXPECT_EQ(permutation(0), 0u);
}

TEST(PermutationTest, IsABijectionOfEverySize) {
    for (std::uint64_t n = 1; n <= 300; ++n) {
        for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
            ASSERT_TRUE(is_bijection({n, 5, epoch})) << n;
        }
    }
    for (std::uint64_t n = 301; n <= 5000; n += 47) {
        ASSERT_TRUE(is_bijection({n, n, 1})) << n;
    }
    for (const std::uint64_t n : {511ull, 512ull, 513ull, 1021ull, 1024ull, 1025ull, 4095ull, 4096ull, 4097ull,
                                  65537ull, (1ull << 17) - 1, 1000003ull}) {
        ASSERT_TRUE(is_bijection({n, 1, 2})) << n;
    }
}

TEST(PermutationTest, HugeSizesStayInRangeAndNeverRepeat) {
    for (const std::uint64_t n :
         std::vector<std::uint64_t>{(1ull << 32) - 1, 1ull << 32, (1ull << 32) + 1, (1ull << 62) - 1, 1ull << 62,
                                    (1ull << 62) + 1, huge - 1, huge}) {
        const Permutation permutation{n, 1, 2};
        EXPECT_EQ(permutation.size(), n);
        std::unordered_set<std::uint64_t> seen;
        for (std::uint64_t i = 0; i < 5000; ++i) {
            for (const std::uint64_t place : {i, n - 1 - i, n / 2 + i}) {
                const std::uint64_t value = permutation(place);
                ASSERT_LT(value, n);
                ASSERT_TRUE(seen.insert(value).second) << n << " " << place;
            }
        }
    }
}

TEST(PermutationTest, IsAFunctionOfSizeSeedAndEpoch) {
    for (const std::uint64_t n : {20ull, 64ull, 65ull, 1000ull}) {
        const std::vector<std::uint64_t> list = listed({n, 1, 2});
        EXPECT_EQ(list, listed({n, 1, 2}));
        EXPECT_NE(list, listed({n, 2, 1}));
        EXPECT_NE(list, listed({n, 1, 3}));
        EXPECT_NE(list, listed({n, 0, 2}));
    }
}

// A seed means the same for ever, on every machine: these values must never change.
TEST(PermutationTest, ValuesAreFixedForEver) {
    EXPECT_EQ(listed({8, 42, 1}), (std::vector<std::uint64_t>{3, 7, 6, 0, 2, 1, 4, 5}));
    EXPECT_EQ((Permutation{1000, 42, 1}(0)), 265u);
    EXPECT_EQ((Permutation{huge, 42, 1}(0)), 0x3a232711416f3b70);
}

TEST(PermutationTest, AllPermutationsOfUpToSixAreEquallyLikely) {
    std::uint64_t factorial = 1;
    for (std::uint64_t n = 2; n <= 6; ++n) {
        factorial *= n;
        std::vector<std::uint64_t> over_seeds(factorial), over_epochs(factorial);
        const auto rank_of = [n](const Permutation& permutation) {
            const std::vector<std::uint64_t> list = listed(permutation);
            std::uint64_t rank = 0;
            for (std::uint64_t i = 0; i < n; ++i) {  // Lehmer code
                std::uint64_t smaller = 0;
                for (std::uint64_t j = i + 1; j < n; ++j) {
                    smaller += list[j] < list[i] ? 1 : 0;
                }
                rank = rank * (n - i) + smaller;
            }
            return rank;
        };
        for (std::uint64_t i = 0; i < 100 * factorial; ++i) {
            ++over_seeds[rank_of({n, i, 0})];
            ++over_epochs[rank_of({n, 0, i})];
        }
        EXPECT_LT(chi_square_score(over_seeds, 100), 4.5) << n;
        EXPECT_LT(chi_square_score(over_epochs, 100), 4.5) << n;
        EXPECT_GT(*std::min_element(over_seeds.begin(), over_seeds.end()), 0u);
    }
}

// What a uniform permutation shows, over many keys: where 0 and the last go, how far apart neighbours (also those of
// the network's low digit) land, fixed points (mean 1, variance 1), parity, and no trace of the epoch before.
TEST(PermutationTest, LooksUniform) {
    for (const std::uint64_t n : {63ull, 64ull, 65ull, 67ull, 72ull, 97ull, 127ull, 128ull, 129ull, 257ull, 500ull}) {
        const std::uint64_t keys = n < 200 ? 10000 : 3000;
        const std::uint64_t digit = std::uint64_t{1} << (std::bit_width(n - 1) / 2);
        std::vector<std::uint64_t> first(n), last(n), step(n - 1), digit_step(n - 1), epoch_step(n), previous;
        std::uint64_t fixed = 0, fixed_squares = 0, odd = 0;
        for (std::uint64_t key = 0; key < keys; ++key) {
            const std::vector<std::uint64_t> list = listed({n, 77, key});
            ++first[list.front()];
            ++last[list.back()];
            for (std::uint64_t i = 0; i + 1 < n; ++i) {
                ++step[(list[i + 1] + n - list[i]) % n - 1];
            }
            for (std::uint64_t i = 0; i + digit < n; ++i) {
                ++digit_step[(list[i + digit] + n - list[i]) % n - 1];
            }
            std::uint64_t fixed_here = 0, cycles = 0;
            std::vector<bool> seen(n);
            for (std::uint64_t i = 0; i < n; ++i) {
                fixed_here += list[i] == i ? 1 : 0;
                cycles += seen[i] ? 0 : 1;
                for (std::uint64_t j = i; !seen[j]; j = list[j]) {
                    seen[j] = true;
                }
                if (!previous.empty()) {
                    ++epoch_step[(list[i] + n - previous[i]) % n];
                }
            }
            fixed += fixed_here;
            fixed_squares += fixed_here * fixed_here;
            odd += (n - cycles) % 2;
            previous = list;
        }
        const auto count = static_cast<double>(keys);
        const auto size = static_cast<double>(n);
        EXPECT_LT(chi_square_score(first, count / size), 4.5) << n;
        EXPECT_LT(chi_square_score(last, count / size), 4.5) << n;
        EXPECT_LT(chi_square_score(step, count), 4.5) << n;
        EXPECT_LT(chi_square_score(digit_step, count * static_cast<double>(n - digit) / (size - 1)), 4.5) << n;
        EXPECT_LT(chi_square_score(epoch_step, count - 1), 4.5) << n;
        const double mean = static_cast<double>(fixed) / count;
        EXPECT_NEAR(mean, 1, 4 / std::sqrt(count)) << n;
        EXPECT_NEAR(static_cast<double>(fixed_squares) / count - mean * mean, 1, 4 * std::sqrt(3 / count)) << n;
        EXPECT_NEAR(static_cast<double>(odd), count / 2, 4 * std::sqrt(count / 4)) << n;
    }
}

// The same at sizes that no test can list: 64 cells over the range, for outputs, differences of neighbours, and pairs.
TEST(PermutationTest, LooksUniformWhenHuge) {
    for (const std::uint64_t n :
         std::vector<std::uint64_t>{1000003ull, 1ull << 20, (1ull << 20) + 1, 1000000000ull, (1ull << 62) + 1, huge}) {
        const auto cell = [n](std::uint64_t value) {
            return static_cast<std::size_t>(static_cast<double>(value) / static_cast<double>(n) * 64) % 64;
        };
        std::vector<std::uint64_t> outputs(64), steps(64), pairs(4096), epochs(64), low(64);
        const Permutation permutation{n, 3, 4}, next{n, 3, 5};
        constexpr std::uint64_t count = 1 << 16;
        std::uint64_t value = permutation(0);
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t following = permutation(i + 1);
            ++outputs[cell(value)];
            ++steps[cell(following >= value ? following - value : n - value + following)];
            ++pairs[64 * cell(value) + cell(following)];
            const std::uint64_t other = next(i);
            ++epochs[cell(other >= value ? other - value : n - value + other)];
            ++low[value % 64];
            value = following;
        }
        EXPECT_LT(chi_square_score(outputs, count / 64.0), 4.5) << n;
        EXPECT_LT(chi_square_score(steps, count / 64.0), 4.5) << n;
        EXPECT_LT(chi_square_score(pairs, count / 4096.0), 4.5) << n;
        EXPECT_LT(chi_square_score(epochs, count / 64.0), 4.5) << n;
        EXPECT_LT(chi_square_score(low, count / 64.0), 4.5) << n;
    }
}

}  // namespace
