// SPDX-License-Identifier: MIT
/// @file
/// A callable of any type with given arguments, as an option: std::function without the cost of including <functional>,
/// which is a tenth of what all of core.hpp takes to compile.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace stoker {
inline namespace v0 {

/// Holds a callable, or none. Copies share it, so it need not be copyable itself.
/// Thread-safety: calls from several threads at once are as safe as the callable's own.
template <class... Arguments>
class Callback {
  public:
    Callback() = default;
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, Callback> &&
                 std::invocable<std::remove_cvref_t<F>&, Arguments...>)
    Callback(F&& callable)  // NOLINT(google-explicit-constructor): options take lambdas as they are
        : callable_{std::make_shared<std::remove_cvref_t<F>>(std::forward<F>(callable))},
          call_{[](void* object, Arguments... arguments) {
              static_cast<void>((*static_cast<std::remove_cvref_t<F>*>(object))(std::forward<Arguments>(arguments)...));
          }} {}

    /// Whether there is a callable.
    [[nodiscard]] explicit operator bool() const noexcept { return call_ != nullptr; }
    /// Calls it; there has to be one.
    void operator()(Arguments... arguments) const { call_(callable_.get(), std::forward<Arguments>(arguments)...); }

  private:
    std::shared_ptr<void> callable_;
    void (*call_)(void*, Arguments...) = nullptr;
};

}  // namespace v0
}  // namespace stoker
