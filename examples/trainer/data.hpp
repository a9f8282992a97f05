// Which pictures are trained on, and which validate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <stoker/data/image_folder.hpp>

#include "options.hpp"
#include "progress.hpp"

struct Data {
    stoker::ImageFolder train, validation;
    std::vector<std::uint64_t> train_ids, validation_ids;  // no validation_ids: no validation
};

/// DIR/train and DIR/val, or one folder of which every fifth picture of each class is for validation (of a class with
/// two to six pictures one, of a class with one none).
inline Data open_data(const std::filesystem::path& folder, Validation validation, Progress& progress) {
    namespace fs = std::filesystem;
    const bool is_split = fs::is_directory(folder / "train") && fs::is_directory(folder / "val");
    const stoker::ImageFolder train{is_split ? folder / "train" : folder};
    Data data{train, is_split ? stoker::ImageFolder{folder / "val"} : train, {}, {}};
    if (is_split && data.train.classes() != data.validation.classes()) {
        throw BadInput{"cannot train on \"" + folder.string() + "\": train and val have different classes"};
    }
    const bool has_none = validation == Validation::none;
    std::vector<std::uint64_t> seen(train.classes().size());
    for (std::uint64_t i = 0; i < train.size(); ++i) {
        const std::uint64_t n = seen[static_cast<std::size_t>(train.label(i))]++;
        (!is_split && !has_none && n % 5 == 1 ? data.validation_ids : data.train_ids).push_back(i);
    }
    for (std::uint64_t i = 0; is_split && !has_none && i < data.validation.size(); ++i) {
        data.validation_ids.push_back(i);
    }
    std::string note;
    const auto alone = std::count(seen.begin(), seen.end(), 1U);
    if (data.validation_ids.empty() && !has_none) {
        note = "note: no class has two pictures, so the training pictures validate, too: the accuracy says nothing";
        data.validation_ids = data.train_ids;
    } else if (!is_split && !has_none && alone != 0) {
        note = text("note: %lld classes have one picture only, which is trained on but not validated",
                    static_cast<long long>(alone));
    }
    progress.say(text("%zu pictures to train on, %zu to validate, %zu classes; %llu ignored in the folder",
                      data.train_ids.size(), data.validation_ids.size(), train.classes().size(),
                      static_cast<unsigned long long>(train.ignored())));
    if (!note.empty()) {
        progress.say(note);
    }
    if (train.classes().size() == 1) {
        progress.say("note: there is one class only, so there is nothing to tell apart");
    }
    return data;
}
