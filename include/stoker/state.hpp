// SPDX-License-Identifier: MIT
/// @file
/// Where a run stands, as a short text that another run can go on from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <stoker/detail/text.hpp>
#include <stoker/error.hpp>
#include <stoker/order.hpp>

namespace stoker {
inline namespace v0 {

/// Where a run stands, and of what run: the same on every rank, for any number of workers and any depth.
/// A plain value. Everything a run's order and random draws depend on is in it, but for the source itself, of which it
/// has the size and a fingerprint.
struct State {
    std::uint64_t version = 1;               ///< Of the format; this library reads and writes 1.
    std::uint64_t seed = 0;                  ///< Of order and draws.
    std::uint64_t epoch = 0;                 ///< Counted from 0.
    std::uint64_t position = 0;              ///< Positions of the epoch that are done, over all ranks; see plan.hpp.
    std::optional<std::uint64_t> samples{};  ///< Positions of an epoch; none for a generator, which does not know.
    std::uint64_t fingerprint = 0;           ///< The source's; 0 where it has none.
    std::uint64_t batch_size = 1;
    std::uint64_t ranks = 1;
    Split split = Split::striped;
    LastBatch last_batch = LastBatch::keep;
    RankBatches rank_batches = RankBatches::as_they_fall;
    bool is_shuffled = false;
    bool is_same_every_epoch = false;
    std::uint64_t subset = 0;  ///< Order::subset_hash(); 0: all of the source.

    /// A state at the start, with what `order` says.
    [[nodiscard]] static State of(const Order& order);

    /// One line of printable ASCII, about 250 characters, that parse() takes back exactly.
    [[nodiscard]] std::string to_string() const;

    /// What to_string() gave. White space around it is allowed, as a file's last line break.
    /// @throws StateError  the text is not that: names the field that cannot be, or "text" where no field is to blame.
    [[nodiscard]] static State parse(std::string_view text);

    friend bool operator==(const State&, const State&) = default;
};

namespace detail {

inline constexpr std::string_view state_title = "stoker-state";
inline constexpr std::array<std::string_view, 2> split_names{"striped", "contiguous"};
inline constexpr std::array<std::string_view, 3> last_batch_names{"keep", "drop", "pad"};
inline constexpr std::array<std::string_view, 2> rank_batches_names{"as_they_fall", "equal"};
inline constexpr std::array<std::string_view, 2> order_names{"sequential", "shuffled"};
inline constexpr std::array<std::string_view, 2> same_every_epoch_names{"no", "yes"};

/// The name of an enumerator, or its number where a cast made one that there is not.
template <std::size_t count, class T>
[[nodiscard]] std::string name_of(const std::array<std::string_view, count>& names, T value) {
    const auto number = static_cast<std::size_t>(value);
    return number < count ? std::string{names[number]} : std::to_string(number);
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo), of the bytes of `text`.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return hash;
}

/// 16 hexadecimal digits.
[[nodiscard]] inline std::string hex(std::uint64_t value) {
    std::string text(16, '0');
    for (std::size_t i = 16; i-- > 0; value >>= 4) {
        text[i] = "0123456789abcdef"[value & 15];
    }
    return text;
}

/// Takes "name=value" fields from the front of a state's text, in the order in which they were written.
class StateReader {
  public:
    explicit StateReader(std::string_view text) noexcept : rest_{text} {}

    [[noreturn]] static void fail(std::string_view field, const Text& cause) {
        throw StateError{Text{"cannot read the state: "}
                             .add(cause.str())
                             .add("; the text was cut, changed or damaged: use the whole text that State::to_string() "
                                  "gave")
                             .str(),
                         std::string{field}};
    }

    /// The value of the next field, which has to be `name`.
    [[nodiscard]] std::string_view value(std::string_view name) {
        if (rest_.empty()) {
            fail("text", Text{"it ends before "}.quote(name));
        }
        const std::string_view field = rest_.substr(0, rest_.find(' '));
        rest_.remove_prefix(field.size() < rest_.size() ? field.size() + 1 : field.size());
        if (field.size() <= name.size() || field.substr(0, name.size()) != name || field[name.size()] != '=') {
            fail("text", Text{"\""}.add(name).add("=\" is not where it should be"));
        }
        return field.substr(name.size() + 1);
    }

    [[nodiscard]] std::uint64_t number(std::string_view name) { return number(name, value(name), 10); }

    /// A number, or `none`.
    [[nodiscard]] std::optional<std::uint64_t> optional_number(std::string_view name) {
        const std::string_view text = value(name);
        return text == "none" ? std::nullopt : std::optional{number(name, text, 10)};
    }

    [[nodiscard]] std::uint64_t hex_number(std::string_view name) { return number(name, value(name), 16); }

    /// Which of `names` it is.
    template <std::size_t count>
    [[nodiscard]] std::size_t choice(std::string_view name, const std::array<std::string_view, count>& names) {
        const std::string_view text = value(name);
        for (std::size_t i = 0; i < count; ++i) {
            if (text == names[i]) {
                return i;
            }
        }
        fail(name, Text{name}.add(" is ").quote(printable(text)).add(", which is none of its values"));
    }

    [[nodiscard]] bool is_at_end() const noexcept { return rest_.empty(); }

  private:
    [[nodiscard]] static std::uint64_t number(std::string_view name, std::string_view text, unsigned base) {
        std::uint64_t result = 0;
        bool is_number = !text.empty();
        for (const char c : text) {
            const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                                   : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                                                          : 16;
            is_number = is_number && digit < base && !__builtin_mul_overflow(result, base, &result) &&
                        !__builtin_add_overflow(result, digit, &result);
        }
        if (!is_number) {
            fail(name, Text{name}.add(" is ").quote(printable(text)).add(", which is no number from 0 to 2^64 - 1"));
        }
        return result;
    }

    /// For a message: at most 40 characters, without control characters and what is not ASCII.
    [[nodiscard]] static std::string printable(std::string_view text) {
        std::string result{text.substr(0, 40)};
        for (char& c : result) {
            c = c >= ' ' && c <= '~' ? c : '?';
        }
        return result;
    }

    std::string_view rest_;
};

}  // namespace detail

inline State State::of(const Order& order) {
    State state;
    state.seed = order.seed();
    state.is_shuffled = order.is_shuffled();
    state.is_same_every_epoch = order.is_same_every_epoch();
    state.subset = order.subset_hash();
    return state;
}

inline std::string State::to_string() const {
    std::string text{detail::state_title};
    const auto add = [&text](const char* name, const std::string& value) {
        text += ' ';
        text += name;
        text += '=';
        text += value;
    };
    add("version", std::to_string(version));
    add("seed", std::to_string(seed));
    add("epoch", std::to_string(epoch));
    add("position", std::to_string(position));
    add("samples", samples ? std::to_string(*samples) : "none");
    add("fingerprint", detail::hex(fingerprint));
    add("batch_size", std::to_string(batch_size));
    add("ranks", std::to_string(ranks));
    add("split", detail::name_of(detail::split_names, split));
    add("last_batch", detail::name_of(detail::last_batch_names, last_batch));
    add("rank_batches", detail::name_of(detail::rank_batches_names, rank_batches));
    add("order", detail::name_of(detail::order_names, is_shuffled));
    add("same_every_epoch", detail::name_of(detail::same_every_epoch_names, is_same_every_epoch));
    add("subset", detail::hex(subset));
    add("check", detail::hex(detail::fnv1a(text)));
    return text;
}

inline State State::parse(std::string_view text) {
    using detail::StateReader;
    using detail::Text;
    constexpr std::string_view spaces = " \t\r\n";
    const std::size_t begin = text.find_first_not_of(spaces);
    if (begin == std::string_view::npos) {
        StateReader::fail("text", Text{"it is empty"});
    }
    text = text.substr(begin, text.find_last_not_of(spaces) - begin + 1);
    if (text.substr(0, text.find(' ')) != detail::state_title) {
        StateReader::fail("text", Text{"it does not begin with "}.quote(detail::state_title));
    }
    if (text == detail::state_title) {
        StateReader::fail("text", Text{"it ends behind its title"});
    }
    StateReader reader{text.substr(detail::state_title.size() + 1)};
    State state;
    state.version = reader.number("version");
    if (state.version != 1) {  // what follows may be anything
        throw StateError{Text{"cannot read the state: its version is "}
                             .add(state.version)
                             .add(", and this library reads version 1; read it with the library that wrote it, or "
                                  "begin anew")
                             .str(),
                         "version"};
    }
    state.seed = reader.number("seed");
    state.epoch = reader.number("epoch");
    state.position = reader.number("position");
    state.samples = reader.optional_number("samples");
    state.fingerprint = reader.hex_number("fingerprint");
    state.batch_size = reader.number("batch_size");
    state.ranks = reader.number("ranks");
    state.split = static_cast<Split>(reader.choice("split", detail::split_names));
    state.last_batch = static_cast<LastBatch>(reader.choice("last_batch", detail::last_batch_names));
    state.rank_batches = static_cast<RankBatches>(reader.choice("rank_batches", detail::rank_batches_names));
    state.is_shuffled = reader.choice("order", detail::order_names) != 0;
    state.is_same_every_epoch = reader.choice("same_every_epoch", detail::same_every_epoch_names) != 0;
    state.subset = reader.hex_number("subset");
    const std::uint64_t check = reader.hex_number("check");
    if (!reader.is_at_end()) {
        StateReader::fail("text", Text{"something follows its end"});
    }
    if (state.samples && state.position > *state.samples) {
        StateReader::fail(
            "position",
            Text{"position is "}.add(state.position).add(", beyond the ").add(*state.samples).add(" samples"));
    }
    if (state.batch_size == 0) {
        StateReader::fail("batch_size", Text{"batch_size is 0"});
    }
    if (state.ranks == 0) {
        StateReader::fail("ranks", Text{"ranks is 0"});
    }
    if (check != detail::fnv1a(text.substr(0, text.rfind(" check="))) || state.to_string() != text) {
        StateReader::fail("text", Text{"its checksum does not fit"});
    }
    return state;
}

/// Checks that a run with the configuration `expected` (whose epoch and position are not looked at) can go on from
/// `saved`, exactly. With Elastic::allow, `ranks` and `batch_size` may differ: a striped split deals the rest of the
/// epoch anew from `saved.position`; a contiguous one accepts another number of ranks at the border of an epoch only.
/// @throws StateError  names the first field that does not fit, with both values.
inline void check_state(const State& saved, const State& expected, Elastic elastic) {
    const auto refuse = [](const char* field, const std::string& saved_value, const std::string& value,
                           const char* what_to_do) {
        throw StateError{detail::Text{"cannot restore: "}
                             .add(field)
                             .add(" is ")
                             .add(saved_value)
                             .add(" in the state, but ")
                             .add(value)
                             .add(" here; ")
                             .add(what_to_do)
                             .str(),
                         field};
    };
    const auto same = [&refuse](const char* field, const auto& name, auto saved_value, auto value,
                                const char* what_to_do = "use the options that the state was saved with") {
        if (saved_value != value) {
            refuse(field, name(saved_value), name(value), what_to_do);
        }
    };
    const auto number = [](std::uint64_t value) { return std::to_string(value); };
    const auto count = [](std::optional<std::uint64_t> value) {
        return value ? std::to_string(*value) : std::string{"unknown"};
    };
    const auto named = [](const auto& names) { return [&names](auto value) { return detail::name_of(names, value); }; };
    constexpr const char* same_data = "restore with the data that the state was saved with, or begin anew";

    same("version", number, saved.version, std::uint64_t{1}, "read it with the library that wrote it, or begin anew");
    same("samples", count, saved.samples, expected.samples, same_data);
    same("fingerprint", detail::hex, saved.fingerprint, expected.fingerprint, same_data);
    same("subset", detail::hex, saved.subset, expected.subset, "use the subset that the state was saved with");
    same("seed", number, saved.seed, expected.seed);
    same("order", named(detail::order_names), saved.is_shuffled, expected.is_shuffled);
    same("same_every_epoch", named(detail::same_every_epoch_names), saved.is_same_every_epoch,
         expected.is_same_every_epoch);
    same("split", named(detail::split_names), saved.split, expected.split);
    same("last_batch", named(detail::last_batch_names), saved.last_batch, expected.last_batch);
    same("rank_batches", named(detail::rank_batches_names), saved.rank_batches, expected.rank_batches);
    if (saved.samples && saved.position > *saved.samples) {
        refuse("position", number(saved.position),
               detail::Text{"at most "}.add(*saved.samples).add(" is possible").str(),
               "use a state that the library gave");
    }
    const bool is_border = saved.position == 0 || saved.position == saved.samples;
    if (elastic == Elastic::refuse) {
        constexpr const char* allow = "use the options that the state was saved with, or set elastic = Elastic::allow";
        same("batch_size", number, saved.batch_size, expected.batch_size, allow);
        same("ranks", number, saved.ranks, expected.ranks, allow);
    } else if (saved.split == Split::contiguous && !is_border) {
        same("ranks", number, saved.ranks, expected.ranks,
             "with a contiguous split the ranks can change between epochs only: use as many as the state was saved "
             "with");
    }
    if (saved.split == Split::contiguous && !is_border && (saved.ranks == 0 || saved.position % saved.ranks != 0)) {
        refuse("position", number(saved.position),
               detail::Text{"only multiples of ranks, "}.add(saved.ranks).add(", are possible").str(),
               "use a state that the library gave");
    }
}

}  // namespace v0
}  // namespace stoker
