// SPDX-License-Identifier: MIT
// Batches: fields, layout, rows in one arena, and how ragged rows share a capacity.
#include <gtest/gtest.h>
#include <stoker/batch.hpp>
#include <stoker/core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/kit.hpp"

namespace {

using stoker::Layout;
using stoker::OptionError;
using stoker::Ragged;
using stoker::Row;
using stoker::Rows;
using stoker::Tensor;
using stoker::detail::ArenaLayout;
using stoker::detail::HostArena;

struct Mixed {
    Tensor<std::uint8_t, 4> pictures;
    Tensor<std::int32_t, 1> labels;
    Ragged<float, 2> boxes;
    Tensor<double, 2> extra;
    Ragged<std::uint8_t, 1> text;
    static constexpr auto fields =
        stoker::fields<&Mixed::pictures, &Mixed::labels, &Mixed::boxes, &Mixed::extra, &Mixed::text>(
            "pictures", "labels", "boxes", "extra", "text");
};

Layout<Mixed> mixed_layout() {
    return Layout<Mixed>{}
        .shape(&Mixed::pictures, {3, 5, 3})
        .capacity(&Mixed::boxes, 10, {4})
        .shape(&Mixed::extra, {7})
        .capacity(&Mixed::text, 33);
}

/// A struct of somebody else's.
struct Foreign {
    Tensor<float, 2> x;
    Tensor<std::int64_t, 1> y;
};

/// An arena with memory of its own.
class OwnArena {
  public:
    template <class B>
    OwnArena(const Layout<B>& layout, std::size_t rows)
        : layout_{layout.specs(), rows},
          memory_(layout_.bytes() + ArenaLayout::alignment, std::byte{0xee}),
          arena_{layout_, aligned()} {}
    [[nodiscard]] const ArenaLayout& layout() const { return layout_; }
    [[nodiscard]] HostArena& arena() { return arena_; }
    template <class B>
    [[nodiscard]] Row<B> row(std::size_t i) {
        return {arena_, i};
    }
    void arrange(const std::vector<std::size_t>& order) {
        std::vector<std::byte> scratch(layout_.scratch_bytes());
        arena_.arrange(order, scratch, row_scratch_);
    }
    template <class B>
    [[nodiscard]] B bound(std::size_t rows) {
        return stoker::detail::bind_fields<B>(stoker::BatchTraits<B>::fields, layout_, arena_.base(), rows, arena_,
                                              stoker::MemorySpace::host);
    }

  private:
    [[nodiscard]] std::byte* aligned() {
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
        return memory_.data() + (ArenaLayout::alignment - address % ArenaLayout::alignment) % ArenaLayout::alignment;
    }

    ArenaLayout layout_;
    std::vector<std::byte> memory_;
    HostArena arena_;
    std::string row_scratch_;
};

}  // namespace

template <>
struct stoker::BatchTraits<Foreign> {
    static constexpr auto fields = stoker::fields<&Foreign::x, &Foreign::y>("x", "y");
};

namespace {

TEST(BatchTest, ConceptTellsBatchesFromOtherTypes) {
    static_assert(stoker::TensorBatch<Mixed>);
    static_assert(stoker::TensorBatch<Foreign>);
    static_assert(stoker::TensorBatch<stoker::ImageBatch>);
    static_assert(!stoker::TensorBatch<int>);
    static_assert(!stoker::TensorBatch<std::vector<int>>);
    EXPECT_EQ(Mixed::fields.names[2], "boxes");
    EXPECT_EQ(Mixed::fields.size, 5U);
}

TEST(BatchTest, FieldsAreAlignedApartAndInside) {
    const OwnArena own{mixed_layout(), 6};
    const auto& fields = own.layout().fields();
    ASSERT_EQ(fields.size(), 5U);
    std::vector<std::pair<std::size_t, std::size_t>> spans;  // [begin, end)
    for (const auto& field : fields) {
        EXPECT_EQ(field.offset % 256, 0U) << field.spec.name;
        const std::size_t count = field.spec.is_ragged ? field.spec.capacity : 6;
        spans.emplace_back(field.offset, field.offset + count * field.unit_bytes);
        if (field.spec.is_ragged) {
            EXPECT_EQ(field.offsets_offset % 256, 0U);
            EXPECT_LT(field.offsets_offset, own.layout().fixed_bytes());
            EXPECT_GE(field.offset, own.layout().fixed_bytes());  // ragged values come last
            spans.emplace_back(field.offsets_offset, field.offsets_offset + 7 * sizeof(std::uint64_t));
        } else {
            EXPECT_LT(field.offset, own.layout().fixed_bytes());
        }
    }
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) {
        EXPECT_LE(spans[i - 1].second, spans[i].first);
    }
    EXPECT_GE(own.layout().bytes(), spans.back().second);
    EXPECT_EQ(own.layout().bytes() % 256, 0U);
    EXPECT_EQ(fields[0].spec.name, "pictures");
    EXPECT_EQ(fields[0].unit_bytes, 45U);
    EXPECT_EQ(fields[2].unit_bytes, 16U);
}

TEST(BatchTest, LayoutErrorsNameTheField) {
    const auto text_of = [](const Layout<Mixed>& layout) -> std::string {
        try {
            const ArenaLayout arena{layout.specs(), 4};
        } catch (const OptionError& error) {
            return error.what();
        }
        return "no error";
    };
    EXPECT_EQ(text_of(mixed_layout()), "no error");
    EXPECT_NE(text_of(Layout<Mixed>{}).find("pictures"), std::string::npos);
    EXPECT_NE(text_of(Layout<Mixed>{}.shape(&Mixed::pictures, {1, 1, 1})).find("boxes"), std::string::npos);
    EXPECT_NE(text_of(mixed_layout().capacity(&Mixed::text, 0)).find("text"), std::string::npos);
    EXPECT_NE(text_of(mixed_layout().shape(&Mixed::extra, {0})).find("extra"), std::string::npos);
    constexpr std::size_t huge = std::size_t{1} << 62;
    EXPECT_NE(text_of(mixed_layout().shape(&Mixed::extra, {huge})).find("extra"), std::string::npos);
    EXPECT_NE(text_of(mixed_layout().shape(&Mixed::extra, {huge / 16})).find("extra"), std::string::npos);
    EXPECT_NE(text_of(mixed_layout().capacity(&Mixed::boxes, huge, {4})).find("boxes"), std::string::npos);
}

TEST(BatchTest, RowsWriteTheirOwnPartOfEveryField) {
    OwnArena own{mixed_layout(), 4};
    for (std::size_t i = 0; i < 4; ++i) {
        const auto row = own.row<Mixed>(i);
        EXPECT_EQ(row[&Mixed::pictures].shape(), (std::array<std::size_t, 3>{3, 5, 3}));
        for (std::uint8_t& value : row[&Mixed::pictures].host()) {
            value = static_cast<std::uint8_t>(i + 1);
        }
        row[&Mixed::labels] = static_cast<std::int32_t>(10 * i);
        row[&Mixed::extra][6] = static_cast<double>(i);
        const auto boxes = row[&Mixed::boxes].resize(i);
        EXPECT_EQ(boxes.shape(), (std::array<std::size_t, 2>{i, 4}));
        std::fill(boxes.host().begin(), boxes.host().end(), static_cast<float>(i));
        own.arena().complete(i, true);
    }
    own.arrange({0, 1, 2, 3});
    const auto batch = own.bound<Mixed>(4);
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(batch.pictures[i][2][4][2], i + 1);
        EXPECT_EQ(batch.pictures[i][0][0][0], i + 1);
        EXPECT_EQ(batch.labels[i], static_cast<std::int32_t>(10 * i));
        EXPECT_EQ(batch.extra[i][6], static_cast<double>(i));
        EXPECT_EQ(batch.boxes[i].extent(0), i);
        EXPECT_EQ(batch.text[i].size(), 0U);  // resize was not called
        for (const float value : batch.boxes[i].host()) {
            EXPECT_EQ(value, static_cast<float>(i));
        }
    }
    EXPECT_EQ(batch.boxes.values().extent(0), 6U);
    EXPECT_EQ(batch.boxes.offsets()[4], 6U);
}

TEST(BatchTest, RowsOfAWholeBatchAreItsRows) {
    OwnArena own{mixed_layout(), 4};
    const Rows<Mixed> rows{own.arena(), 3};
    EXPECT_EQ(rows.size(), 3U);
    rows[2][&Mixed::labels] = 7;
    EXPECT_EQ(own.row<Mixed>(2)[&Mixed::labels], 7);
}

TEST(BatchTest, TraitsNameTheFieldsOfAForeignType) {
    stoker::Prefetcher<Foreign> feed{
        stoker::samples<Foreign>(5, Layout<Foreign>{}.shape(&Foreign::x, {2}),
                                 [](Row<Foreign> row, stoker::Sample& sample) {
                                     row[&Foreign::y] = static_cast<std::int64_t>(sample.index());
                                     row[&Foreign::x][0] = row[&Foreign::x][1] = static_cast<float>(sample.index());
                                 }),
        {.batch_size = 5, .workers = 1}};
    const auto lease = feed.next();
    EXPECT_EQ(lease->size(), 5U);
    EXPECT_EQ((*lease)->y[4], 4);
    EXPECT_EQ((*lease)->x[3][1], 3.0F);
}

TEST(BatchTest, ArrangeClosesGapsAndZeroesTheRest) {
    OwnArena own{mixed_layout(), 4};
    for (std::size_t i = 0; i < 4; ++i) {
        own.row<Mixed>(i)[&Mixed::labels] = static_cast<std::int32_t>(i + 1);
        own.row<Mixed>(i)[&Mixed::text].resize(2)[1] = static_cast<std::uint8_t>(i + 1);
        own.arena().complete(i, i != 1);
    }
    own.arrange({0, 2, 3});
    const auto batch = own.bound<Mixed>(4);
    EXPECT_EQ(batch.labels[0], 1);
    EXPECT_EQ(batch.labels[1], 3);
    EXPECT_EQ(batch.labels[2], 4);
    EXPECT_EQ(batch.labels[3], 0);
    EXPECT_EQ(batch.text.values().extent(0), 6U);
    EXPECT_EQ(batch.text[1][1], 3);
    EXPECT_EQ(batch.text[2][1], 4);
}

TEST(BatchTest, ArrangeReordersAnyPermutationOfAnySizes) {
    std::vector<std::size_t> order{0, 1, 2, 3};
    do {
        OwnArena own{mixed_layout(), 4};
        for (const std::size_t i : {2U, 0U, 3U, 1U}) {  // memory order is not row order
            own.row<Mixed>(i)[&Mixed::labels] = static_cast<std::int32_t>(i);
            const auto text = own.row<Mixed>(i)[&Mixed::text].resize(3 * i);
            std::fill(text.host().begin(), text.host().end(), static_cast<std::uint8_t>(i));
            own.arena().complete(i, true);
        }
        own.arrange({0, 1, 2, 3});
        own.arrange(order);
        const auto batch = own.bound<Mixed>(4);
        for (std::size_t i = 0; i < 4; ++i) {
            EXPECT_EQ(batch.labels[i], static_cast<std::int32_t>(order[i]));
            ASSERT_EQ(batch.text[i].size(), 3 * order[i]);
            for (const std::uint8_t value : batch.text[i].host()) {
                EXPECT_EQ(value, order[i]);
            }
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST(BatchTest, PadRepeatsTheLastOffset) {
    OwnArena own{mixed_layout(), 4};
    own.row<Mixed>(0)[&Mixed::text].resize(5)[0] = 1;
    own.arena().complete(0, true);
    own.arrange({0});
    own.arena().pad(1, 4);
    const auto batch = own.bound<Mixed>(4);
    EXPECT_EQ(batch.text.rows(), 4U);
    for (std::size_t i = 1; i <= 4; ++i) {
        EXPECT_EQ(batch.text.offsets()[i], 5U);
    }
}

TEST(BatchTest, UsedBytesEndAtTheLastItem) {
    OwnArena own{mixed_layout(), 2};
    own.arrange({});
    EXPECT_EQ(own.arena().used_bytes(), own.layout().fixed_bytes());
    own.arena().clear();
    static_cast<void>(own.row<Mixed>(0)[&Mixed::boxes].resize(3));
    own.arena().complete(0, true);
    own.arena().complete(1, true);
    own.arrange({0, 1});
    EXPECT_EQ(own.arena().used_bytes(), own.layout().fields()[2].offset + 3 * 16);
    own.arena().clear();
    static_cast<void>(own.row<Mixed>(0)[&Mixed::boxes].resize(3));
    static_cast<void>(own.row<Mixed>(1)[&Mixed::text].resize(9));
    own.arena().complete(0, true);
    own.arena().complete(1, true);
    own.arrange({0, 1});
    EXPECT_EQ(own.arena().used_bytes(), own.layout().fields()[4].offset + 9);
}

// ---- Ragged rows (D-6) ----

struct Texts {
    Tensor<std::int32_t, 1> ids;
    Ragged<std::uint32_t, 1> words;
    static constexpr auto fields = stoker::fields<&Texts::ids, &Texts::words>("ids", "words");
};
Layout<Texts> text_layout(std::size_t capacity) { return Layout<Texts>{}.capacity(&Texts::words, capacity); }

/// Which rows survive when rows of these sizes end in this order; checks the survivors' bytes.
std::vector<std::size_t> survivors(const std::vector<std::size_t>& sizes, const std::vector<std::size_t>& completion,
                                   std::size_t capacity, bool allocates_first) {
    OwnArena own{text_layout(capacity), sizes.size()};
    std::vector<bool> is_ok(sizes.size(), true);
    const auto write = [&](std::size_t row) {
        try {
            const auto words = own.row<Texts>(row)[&Texts::words].resize(sizes[row]);
            for (std::size_t i = 0; i < words.size(); ++i) {
                words[i] = static_cast<std::uint32_t>(row * 1000 + i);
            }
        } catch (const stoker::DataError& error) {
            EXPECT_EQ(error.kind(), stoker::ErrorKind::capacity);
            is_ok[row] = false;
        }
    };
    if (allocates_first) {  // all rows are in work at once, as with many workers
        for (const std::size_t row : completion) {
            write(row);
        }
    }
    for (const std::size_t row : completion) {
        if (!allocates_first) {
            write(row);
        }
        own.arena().complete(row, is_ok[row]);
    }
    std::vector<std::size_t> order;
    for (std::size_t row = 0; row < sizes.size(); ++row) {
        if (is_ok[row] && own.arena().over(row).empty()) {
            order.push_back(row);
        }
    }
    own.arrange(order);
    const auto batch = own.bound<Texts>(order.size());
    std::size_t total = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        EXPECT_EQ(batch.words[i].size(), sizes[order[i]]);
        for (std::size_t k = 0; k < batch.words[i].size(); ++k) {
            EXPECT_EQ(batch.words[i][k], order[i] * 1000 + k);
        }
        total += sizes[order[i]];
    }
    EXPECT_LE(total, capacity);
    EXPECT_EQ(batch.words.values().extent(0), total);
    return order;
}

TEST(RaggedRowTest, WhichRowsFailIsAFunctionOfTheSizesInRowOrder) {
    const std::vector<std::vector<std::size_t>> all{{6, 6, 3}, {3, 3, 3, 1}, {10, 0, 1, 0}, {1, 9, 1, 0}, {11, 3, 7, 1},
                                                    {0, 0, 0}, {5, 5},       {4, 7, 2, 4},  {2, 12, 9, 1}};
    for (const auto& sizes : all) {
        std::vector<std::size_t> completion(sizes.size());
        std::iota(completion.begin(), completion.end(), std::size_t{0});
        const std::vector<std::size_t> expected = survivors(sizes, completion, 10, false);
        do {
            EXPECT_EQ(survivors(sizes, completion, 10, false), expected);
            EXPECT_EQ(survivors(sizes, completion, 10, true), expected);
        } while (std::next_permutation(completion.begin(), completion.end()));
    }
}

TEST(RaggedRowTest, EarlierRowsHaveRoomFirstAndALaterOneThatCameFirstGivesWay) {
    EXPECT_EQ(survivors({6, 6}, {1, 0}, 10, false), (std::vector<std::size_t>{0}));
    EXPECT_EQ(survivors({6, 6}, {1, 0}, 10, true), (std::vector<std::size_t>{0}));
    EXPECT_EQ(survivors({5, 5, 0}, {2, 1, 0}, 10, true), (std::vector<std::size_t>{0, 1, 2}));
    EXPECT_EQ(survivors({11, 10}, {0, 1}, 10, false), (std::vector<std::size_t>{1}));
}

TEST(RaggedRowTest, RowThatFailsForAnotherReasonTakesNoRoom) {
    OwnArena own{text_layout(10), 2};
    static_cast<void>(own.row<Texts>(0)[&Texts::words].resize(8));
    own.arena().complete(0, false);
    static_cast<void>(own.row<Texts>(1)[&Texts::words].resize(8));
    own.arena().complete(1, true);
    EXPECT_TRUE(own.arena().over(1).empty());
}

TEST(RaggedRowTest, ResizeAgainForgetsWhatWasThere) {
    OwnArena own{text_layout(10), 1};
    static_cast<void>(own.row<Texts>(0)[&Texts::words].resize(8));
    const auto words = own.row<Texts>(0)[&Texts::words].resize(9);  // more than is left behind the first
    std::fill(words.host().begin(), words.host().end(), 4U);
    own.arena().complete(0, true);
    own.arrange({0});
    const auto batch = own.bound<Texts>(1);
    ASSERT_EQ(batch.words[0].size(), 9U);
    EXPECT_EQ(batch.words[0][8], 4U);
}

TEST(RaggedRowTest, CapacityErrorNamesFieldAndSizes) {
    OwnArena own{text_layout(10), 2};
    try {
        static_cast<void>(own.row<Texts>(0)[&Texts::words].resize(11));
        ADD_FAILURE();
    } catch (const stoker::DataError& error) {
        EXPECT_EQ(error.kind(), stoker::ErrorKind::capacity);
        const std::string text = error.what();
        EXPECT_NE(text.find("words"), std::string::npos);
        EXPECT_NE(text.find("11"), std::string::npos);
        EXPECT_NE(text.find("10"), std::string::npos);
    }
}

TEST(RaggedRowTest, FailuresAreTheSameForAnyNumberOfWorkers) {
    const testing_support::Watchdog watchdog;
    const auto run = [](std::size_t workers) {
        stoker::Prefetcher<Texts> feed{
            stoker::samples<Texts>(200, text_layout(12),
                                   [](Row<Texts> row, stoker::Sample& sample) {
                                       row[&Texts::ids] = static_cast<std::int32_t>(sample.index());
                                       const std::size_t size = sample.index() * 7 % 9;
                                       for (std::uint32_t& word : row[&Texts::words].resize(size)) {
                                           word = static_cast<std::uint32_t>(sample.index());
                                       }
                                   }),
            {.batch_size = 5, .workers = workers, .on_error = stoker::OnError::skip, .epochs = 1}};
        testing_support::Ledger ledger;
        while (auto lease = feed.next()) {
            ledger.push_back(testing_support::ids_of(*lease));
            for (std::size_t row = 0; row < lease->size(); ++row) {
                const auto id = static_cast<std::uint64_t>((*lease)->ids[row]);
                EXPECT_EQ(id, ledger.back()[row]);
                EXPECT_EQ((*lease)->words[row].size(), id * 7 % 9);
                for (const std::uint32_t word : (*lease)->words[row]) {
                    EXPECT_EQ(word, id);
                }
            }
            for (const stoker::Failure& failure : lease->info().failures()) {
                EXPECT_EQ(failure.kind, stoker::ErrorKind::capacity);
            }
        }
        return ledger;
    };
    const auto expected = run(0);
    for (std::size_t i = 0; i < testing_support::repeats(); ++i) {
        EXPECT_EQ(run(1), expected);
        EXPECT_EQ(run(4), expected);
    }
}

TEST(RaggedRowTest, SubstituteThatDoesNotResizeHasNoItems) {
    stoker::Prefetcher<Texts> feed{
        stoker::samples<Texts>(10, text_layout(100),
                               [](Row<Texts> row, stoker::Sample& sample) {
                                   row[&Texts::ids] = static_cast<std::int32_t>(sample.index());
                                   if (sample.index() == 0) {
                                       static_cast<void>(row[&Texts::words].resize(5));
                                       throw 1;
                                   }
                               }),
        {.batch_size = 2, .workers = 1, .on_error = stoker::OnError::substitute, .epochs = 1}};
    for (auto&& lease : feed.epoch()) {
        EXPECT_EQ(lease->words.values().extent(0), 0U);
    }
}

}  // namespace
