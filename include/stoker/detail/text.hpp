// SPDX-License-Identifier: MIT
/// @file
/// Messages put together piece by piece. (Chains of `+` on strings cost everybody who includes them noticeable compile
/// time: each `+` looks at a dozen templates.)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace stoker {
inline namespace v0 {
namespace detail {

class Text {
  public:
    Text() = default;
    explicit Text(std::string_view text) : text_{text} {}

    Text& add(std::string_view text) {
        text_.append(text.data(), text.size());
        return *this;
    }
    Text& add(std::uint64_t number) {
        char digits[20];
        int count = 0;
        do {
            digits[count++] = static_cast<char>('0' + number % 10);
            number /= 10;
        } while (number != 0);
        while (count != 0) {
            text_.push_back(digits[--count]);
        }
        return *this;
    }
    /// A path or name, in quotes.
    Text& quote(std::string_view text) { return add("\"").add(text).add("\""); }

    [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
    [[nodiscard]] const std::string& str() const noexcept { return text_; }

  private:
    std::string text_;
};

}  // namespace detail
}  // namespace v0
}  // namespace stoker
