// SPDX-License-Identifier: MIT
/// @file
/// A list of file paths, with or without class numbers, from wherever the caller has it: no folder is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <stoker/data/image_folder.hpp>
#include <stoker/error.hpp>

namespace stoker {
inline namespace v0 {

/// Files in the order given. Nothing is opened or looked at before a sample is read.
/// Ownership: copies share one immutable list. Thread-safety: all members may be called at once.
class PathList {
  public:
    /// `labels`: one per path, or none at all; then label() is -1.
    /// @throws OptionError  another number of labels than of paths.
    explicit PathList(std::vector<std::string> paths, std::vector<std::int32_t> labels = {}) {
        if (!labels.empty() && labels.size() != paths.size()) {
            throw OptionError{"cannot list " + std::to_string(paths.size()) + " paths with " +
                              std::to_string(labels.size()) + " labels: allowed is one label per path, or none"};
        }
        auto list = std::make_shared<List>();
        list->fingerprint = detail::name_hash("stoker::PathList");
        for (std::size_t i = 0; i < paths.size(); ++i) {
            list->fingerprint = detail::name_hash(
                paths[i] + '\0' + (labels.empty() ? "" : std::to_string(labels[i])) + '\0', list->fingerprint);
        }
        list->paths = std::move(paths);
        list->labels = std::move(labels);
        list_ = std::move(list);
    }

    [[nodiscard]] std::uint64_t size() const noexcept { return list_->paths.size(); }
    [[nodiscard]] const std::string& path(std::uint64_t i) const noexcept {
        return list_->paths[static_cast<std::size_t>(i)];
    }
    /// The class number of file `i`; -1 where no labels were given.
    [[nodiscard]] std::int32_t label(std::uint64_t i) const noexcept {
        return list_->labels.empty() ? -1 : list_->labels[static_cast<std::size_t>(i)];
    }
    /// Hash of paths and labels, in order.
    [[nodiscard]] std::uint64_t fingerprint() const noexcept { return list_->fingerprint; }

  private:
    struct List {
        std::vector<std::string> paths;
        std::vector<std::int32_t> labels;
        std::uint64_t fingerprint = 0;
    };
    std::shared_ptr<const List> list_;
};

}  // namespace v0
}  // namespace stoker
