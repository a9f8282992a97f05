// SPDX-License-Identifier: MIT
/// @file
/// Where the fields of a batch lie in a slot's one allocation, and how ragged rows share a field's capacity.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <stoker/detail/fixed_array.hpp>
#include <stoker/detail/text.hpp>
#include <stoker/error.hpp>
#include <stoker/tensor.hpp>

namespace stoker {
inline namespace v0 {
namespace detail {

/// One field as its batch and its source describe it.
struct FieldSpec {
    static constexpr std::size_t max_inner_rank = 7;

    std::string_view name;
    DType dtype;
    std::size_t element_bytes = 1;
    std::size_t inner_rank = 0;
    std::array<std::size_t, max_inner_rank> inner{};  // extents of one sample, or of one item of a ragged field
    bool is_ragged = false;
    std::size_t capacity = 0;  // ragged: items in all rows of a batch
    bool is_set = false;

    /// Bytes of one sample (fixed) or of one item (ragged); the largest value when that overflows.
    [[nodiscard]] std::size_t unit_bytes() const noexcept {
        std::size_t bytes = element_bytes;
        for (std::size_t axis = 0; axis < inner_rank; ++axis) {
            if (__builtin_mul_overflow(bytes, inner[axis], &bytes)) {
                return (std::numeric_limits<std::size_t>::max)();
            }
        }
        return bytes;
    }
};

struct ArenaField {
    FieldSpec spec;
    std::size_t unit_bytes = 0;
    std::size_t offset = 0;          // of the values
    std::size_t offsets_offset = 0;  // ragged: of the rows + 1 offsets
};

/// Fixed fields (and the offsets of ragged ones) first, then the values of the ragged ones, each aligned.
class ArenaLayout {
  public:
    static constexpr std::size_t alignment = 256;  // of every field: what cudaMalloc guarantees, and four cache lines

    /// @throws OptionError  a field has no shape or capacity, an extent of 0, or the sizes overflow.
    ArenaLayout(std::span<const FieldSpec> specs, std::size_t rows) : rows_{rows}, fields_{specs.size()} {
        std::size_t count = 0;
        for (const FieldSpec& spec : specs) {
            if (!spec.is_set || (spec.is_ragged && spec.capacity == 0)) {
                throw OptionError{Text{"cannot lay out the batch: the source's layout() gives no "}
                                      .add(spec.is_ragged ? "capacity" : "shape")
                                      .add(" for field ")
                                      .quote(spec.name)
                                      .add("; add it there")
                                      .str()};
            }
            const std::size_t bytes = spec.unit_bytes();
            if (bytes == 0 || bytes == (std::numeric_limits<std::size_t>::max)()) {
                throw OptionError{Text{"cannot lay out the batch: the extents of field "}
                                      .quote(spec.name)
                                      .add(" are 0 or too large; every extent is 1 or more")
                                      .str()};
            }
            fields_[count++] = {spec, bytes, 0, 0};
        }
        for (ArenaField& field : fields_) {
            if (field.spec.is_ragged) {
                field.offsets_offset = place(sizeof(std::uint64_t), rows + 1, field);
            } else {
                field.offset = place(field.unit_bytes, rows, field);
            }
        }
        fixed_bytes_ = end_;
        for (ArenaField& field : fields_) {
            if (field.spec.is_ragged) {
                field.offset = place(field.unit_bytes, field.spec.capacity, field);
                has_ragged_ = true;
            }
        }
    }

    [[nodiscard]] const FixedArray<ArenaField>& fields() const noexcept { return fields_; }
    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    /// Bytes of one arena, a multiple of the alignment.
    [[nodiscard]] std::size_t bytes() const noexcept { return align(end_); }
    [[nodiscard]] std::size_t fixed_bytes() const noexcept { return fixed_bytes_; }
    [[nodiscard]] bool has_ragged() const noexcept { return has_ragged_; }
    /// The largest ragged field, in bytes: what packing needs beside the arena.
    [[nodiscard]] std::size_t scratch_bytes() const noexcept {
        std::size_t most = 0;
        for (const ArenaField& field : fields()) {
            const std::size_t bytes = field.spec.is_ragged ? field.unit_bytes * field.spec.capacity : 0;
            most = bytes > most ? bytes : most;
        }
        return most;
    }

  private:
    [[nodiscard]] static std::size_t align(std::size_t offset) noexcept {
        return (offset + alignment - 1) / alignment * alignment;
    }
    std::size_t place(std::size_t unit, std::size_t count, const ArenaField& field) {
        const std::size_t offset = align(end_);
        std::size_t bytes = 0;
        if (__builtin_mul_overflow(unit, count, &bytes) ||
            bytes > (std::numeric_limits<std::size_t>::max)() / 4 - offset) {
            throw OptionError{Text{"cannot lay out the batch: field "}
                                  .quote(field.spec.name)
                                  .add(" with ")
                                  .add(count)
                                  .add(" entries is larger than memory can be; lower batch_size")
                                  .str()};
        }
        end_ = offset + bytes;
        return offset;
    }

    std::size_t rows_;
    FixedArray<ArenaField> fields_;
    std::size_t end_ = 0;
    std::size_t fixed_bytes_ = 0;
    bool has_ragged_ = false;
};

/// The rows of one ragged field of one slot. Rows are bump-allocated in the arena while there is room in one piece,
/// else in memory of their own until the batch is packed; that happens only when rows arrive out of order near the end
/// of the capacity, and is bounded by (1 + workers) x capacity.
///
/// Which rows fail is a function of the sizes in row order: a row fails when it and the rows before it together exceed
/// the capacity. (So after the first such row all later rows with items fail too.) A row whose sample failed counts 0.
class RaggedStore {
  public:
    RaggedStore() = default;
    void bind(std::byte* values, std::size_t capacity, std::size_t item_bytes, std::size_t rows) {
        values_ = values;
        capacity_ = capacity;
        item_bytes_ = item_bytes;
        entries_ = FixedArray<Entry>{rows};
    }

    /// Forgets all rows; for a new batch.
    void clear() noexcept {
        bump_ = 0;
        packed_items_ = 0;
        for (Entry& entry : entries_) {
            entry.forget();
        }
    }

    /// @throws DataError  `items` is more than the capacity: this row can never fit. Whether it fits beside the others
    /// is known when all of them are complete.
    [[nodiscard]] std::byte* allocate(std::size_t row, std::size_t items, std::string_view name) {
        const std::lock_guard lock{mutex_};
        Entry& entry = entries_[row];
        entry.forget();
        if (items > capacity_) {
            throw DataError{ErrorKind::capacity, over(items, 0, name)};
        }
        entry.items = items;
        if (items <= capacity_ - bump_) {
            entry.memory = values_ + bump_ * item_bytes_;
            bump_ += items;
        } else {
            entry.own = FixedArray<std::byte>{items * item_bytes_};
            entry.memory = entry.own.data();
        }
        return entry.memory;
    }

    /// Another attempt at the row begins.
    void forget(std::size_t row) noexcept {
        const std::lock_guard lock{mutex_};
        entries_[row].forget();
    }

    /// The row's sample is done (`ok`) or failed; later complete rows that can no longer fit give their memory back.
    void complete(std::size_t row, bool ok) noexcept {
        const std::lock_guard lock{mutex_};
        if (!ok) {
            entries_[row].forget();
        }
        entries_[row].is_complete = true;
        std::size_t before = 0;
        for (Entry& entry : entries_) {
            before += entry.is_complete ? entry.items : 0;
            if (entry.is_complete && before > capacity_) {
                entry.own = {};
            }
        }
    }

    /// Whether row `row` does not fit; to be asked when all rows are complete.
    [[nodiscard]] bool is_over(std::size_t row) const noexcept {
        std::size_t sum = 0;
        for (std::size_t i = 0; i <= row; ++i) {
            sum += entries_[i].items;
        }
        return entries_[row].items > 0 && sum > capacity_;
    }
    [[nodiscard]] std::string over_message(std::size_t row, std::string_view name) const {
        std::size_t before = 0;
        for (std::size_t i = 0; i < row; ++i) {
            before += entries_[i].items;
        }
        return over(entries_[row].items, before, name);
    }

    /// Moves the given rows to the front of the field, in that order, and writes their offsets. `scratch` holds the
    /// field's capacity; it may be empty when the rows already lie in that order.
    void pack(std::span<const std::size_t> order, std::uint64_t* offsets, std::vector<std::byte>& scratch) {
        bool in_order = true;
        const std::byte* last = values_;
        std::size_t total = 0;
        for (std::size_t i = 0; i < order.size(); ++i) {
            const Entry& entry = entries_[order[i]];
            offsets[i] = total;
            total += entry.items;
            if (entry.items == 0) {
                continue;
            }
            in_order = in_order && entry.own.empty() && entry.memory >= last;
            last = entry.memory;
        }
        offsets[order.size()] = total;
        std::byte* const target = in_order ? values_ : scratch.data();
        for (std::size_t i = 0; i < order.size(); ++i) {
            Entry& entry = entries_[order[i]];
            std::byte* const place = target + offsets[i] * item_bytes_;
            if (entry.items != 0 && place != entry.memory) {
                std::memmove(place, entry.memory, entry.items * item_bytes_);
            }
        }
        if (!in_order) {
            std::memcpy(values_, scratch.data(), total * item_bytes_);
        }
        for (std::size_t i = 0; i < order.size(); ++i) {
            entries_[i].next_items = entries_[order[i]].items;
        }
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            const std::size_t items = i < order.size() ? entries_[i].next_items : 0;
            entries_[i].forget();
            entries_[i].items = items;
            entries_[i].memory = i < order.size() ? values_ + offsets[i] * item_bytes_ : nullptr;
            entries_[i].is_complete = true;
        }
        packed_items_ = total;
        bump_ = total;
    }

    /// Items of all rows, after packing.
    [[nodiscard]] std::size_t packed_items() const noexcept { return packed_items_; }

  private:
    struct Entry {
        std::size_t items = 0;
        std::size_t next_items = 0;  // while packing
        std::byte* memory = nullptr;
        FixedArray<std::byte> own;  // where the arena had no room in one piece
        bool is_complete = false;

        void forget() noexcept {
            items = 0;
            memory = nullptr;
            own = {};
            is_complete = false;
        }
    };

    [[nodiscard]] std::string over(std::size_t items, std::size_t before, std::string_view name) const {
        return Text{"field "}
            .quote(name)
            .add(" holds at most ")
            .add(capacity_)
            .add(" items per batch: this sample has ")
            .add(items)
            .add(" and the rows before it ")
            .add(before)
            .add("; raise the field's capacity in layout(), or lower batch_size")
            .str();
    }

    std::byte* values_ = nullptr;
    std::size_t capacity_ = 0;
    std::size_t item_bytes_ = 1;
    std::size_t packed_items_ = 0;

    // Whenever mutex_ is free: rows lie apart from each other, and in the arena only below bump_.
    std::mutex mutex_;
    FixedArray<Entry> entries_;  // under mutex_ while the batch is being filled; after that the committing thread's
    std::size_t bump_ = 0;       // as entries_; in items
};

/// A slot's memory on the host with its bookkeeping. The memory itself belongs to whoever allocated it.
class HostArena {
  public:
    HostArena(const ArenaLayout& layout, std::byte* base) : layout_{&layout}, base_{base} {
        const FixedArray<ArenaField>& fields = layout.fields();
        ragged_ = FixedArray<RaggedStore>{layout.has_ragged() ? fields.size() : 0};
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (fields[i].spec.is_ragged) {
                ragged_[i].bind(base + fields[i].offset, fields[i].spec.capacity, fields[i].unit_bytes, layout.rows());
            }
        }
        std::memset(base, 0, layout.bytes());
    }

    [[nodiscard]] const ArenaLayout& layout() const noexcept { return *layout_; }
    [[nodiscard]] std::byte* base() const noexcept { return base_; }
    [[nodiscard]] std::byte* row(std::size_t field, std::size_t row) const noexcept {
        const ArenaField& f = layout_->fields()[field];
        return base_ + f.offset + row * f.unit_bytes;
    }
    [[nodiscard]] RaggedStore& ragged(std::size_t field) const noexcept { return ragged_[field]; }

    /// For a new batch.
    void clear() noexcept {
        if (layout_->has_ragged()) {
            for_each_ragged([](std::size_t, RaggedStore& store) { store.clear(); });
        }
    }
    void forget(std::size_t row) noexcept {
        if (layout_->has_ragged()) {
            for_each_ragged([&](std::size_t, RaggedStore& store) { store.forget(row); });
        }
    }
    void complete(std::size_t row, bool ok) noexcept {
        if (layout_->has_ragged()) {
            for_each_ragged([&](std::size_t, RaggedStore& store) { store.complete(row, ok); });
        }
    }
    /// Why row `row` has no room, or an empty text.
    [[nodiscard]] std::string over(std::size_t row) const {
        std::string message;
        if (layout_->has_ragged()) {
            for_each_ragged([&](std::size_t field, RaggedStore& store) {
                if (message.empty() && store.is_over(row)) {
                    message = store.over_message(row, layout_->fields()[field].spec.name);
                }
            });
        }
        return message;
    }

    /// Leaves the rows `order` (distinct), in that order, at the front of every field, and zeros
    /// in the rest of the fixed fields. `row_scratch` is any memory to reuse.
    void arrange(std::span<const std::size_t> order, std::vector<std::byte>& ragged_scratch, std::string& row_scratch) {
        bool moves_down = true;  // each row goes to its own place or to a lower one that is already free
        bool identity = true;
        for (std::size_t i = 0; i < order.size(); ++i) {
            moves_down = moves_down && order[i] >= i && (i == 0 || order[i] > order[i - 1]);
            identity = identity && order[i] == i;
        }
        const FixedArray<ArenaField>& fields = layout_->fields();
        for (std::size_t f = 0; f < fields.size(); ++f) {
            if (fields[f].spec.is_ragged) {
                ragged_[f].pack(order, reinterpret_cast<std::uint64_t*>(base_ + fields[f].offsets_offset),
                                ragged_scratch);
                continue;
            }
            const std::size_t bytes = fields[f].unit_bytes;
            std::byte* const first = base_ + fields[f].offset;
            if (!identity && moves_down) {
                for (std::size_t i = 0; i < order.size(); ++i) {
                    if (order[i] != i) {
                        std::memcpy(first + i * bytes, first + order[i] * bytes, bytes);
                    }
                }
            } else if (!identity) {
                row_scratch.resize(bytes * order.size());
                for (std::size_t i = 0; i < order.size(); ++i) {
                    std::memcpy(row_scratch.data() + i * bytes, first + order[i] * bytes, bytes);
                }
                std::memcpy(first, row_scratch.data(), row_scratch.size());
            }
            if (order.size() < layout_->rows()) {
                std::memset(first + order.size() * bytes, 0, (layout_->rows() - order.size()) * bytes);
            }
        }
    }

    /// Repeats the last offset for rows that a padded batch adds: they have no items.
    void pad(std::size_t from, std::size_t rows) noexcept {
        if (layout_->has_ragged()) {
            for_each_ragged([&](std::size_t field, RaggedStore& store) {
                auto* const offsets = reinterpret_cast<std::uint64_t*>(base_ + layout_->fields()[field].offsets_offset);
                for (std::size_t i = from; i < rows; ++i) {
                    offsets[i + 1] = store.packed_items();
                }
            });
        }
    }

    /// Bytes from the arena's start to the last one in use: what one copy has to move.
    [[nodiscard]] std::size_t used_bytes() const noexcept {
        std::size_t used = layout_->fixed_bytes();
        if (layout_->has_ragged()) {
            for_each_ragged([&](std::size_t field, RaggedStore& store) {
                const ArenaField& f = layout_->fields()[field];
                const std::size_t end = f.offset + store.packed_items() * f.unit_bytes;
                used = store.packed_items() != 0 && end > used ? end : used;
            });
        }
        return used;
    }

  private:
    template <class Visit>
    void for_each_ragged(Visit visit) const {
        const FixedArray<ArenaField>& fields = layout_->fields();
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (fields[i].spec.is_ragged) {
                visit(i, ragged_[i]);
            }
        }
    }

    const ArenaLayout* layout_;
    std::byte* base_;
    mutable FixedArray<RaggedStore> ragged_;  // the arena itself is fixed: its rows are what is written
};

}  // namespace detail
}  // namespace v0
}  // namespace stoker
