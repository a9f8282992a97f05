// SPDX-License-Identifier: MIT
/// @file
/// A folder of pictures with one sub-folder per class, as a list with random access.
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <stoker/data/read_file.hpp>
#include <stoker/error.hpp>

namespace stoker {
inline namespace v0 {

/// What a class folder without pictures means.
enum class EmptyClasses : std::uint8_t {
    keep,    ///< It keeps its class number and is named by empty_classes().
    refuse,  ///< It is a DataError that names it.
};

/// What a symbolic link to a folder means. Links to files always count as files.
enum class FolderLinks : std::uint8_t {
    ignore,  ///< It is left out, and counted as ignored.
    follow,  ///< As the folder it leads to; a folder inside itself is not entered again.
};

/// Options of ImageFolder.
struct ImageFolderOptions {
    /// Endings of file names that count as pictures, in any letter case, with the dot.
    std::vector<std::string> extensions = {".jpg", ".jpeg", ".png", ".bmp"};
    EmptyClasses empty_classes = EmptyClasses::keep;
    FolderLinks folder_links = FolderLinks::ignore;
};

namespace detail {

/// 64-bit FNV-1a (Fowler, Noll, Vo), continued from `hash`.
[[nodiscard]] inline std::uint64_t name_hash(std::string_view bytes,
                                             std::uint64_t hash = 0xcbf29ce484222325ull) noexcept {
    for (const char c : bytes) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    }
    return hash;
}

/// Reads folders one after the other; never more than one open at a time.
class FolderScanner {
  public:
    explicit FolderScanner(const ImageFolderOptions& options) : options_{options} {}

    struct Name {
        std::string text;
        bool is_link;
    };
    /// What one folder holds: names only.
    struct Entries {
        std::vector<Name> folders;
        std::vector<std::string> pictures;
    };

    /// @throws DataError  (io) the folder cannot be read.
    [[nodiscard]] Entries read(const std::string& path) {
        struct Close {
            void operator()(DIR* directory) const noexcept { static_cast<void>(::closedir(directory)); }
        };
        const std::unique_ptr<DIR, Close> directory{::opendir(path.c_str())};
        if (directory == nullptr) {
            throw error(path, error_text(errno));
        }
        Entries entries;
        for (;;) {
            errno = 0;
            const dirent* const entry = ::readdir(directory.get());
            if (entry == nullptr) {
                if (errno != 0) {
                    throw error(path, error_text(errno));
                }
                break;
            }
            const std::string_view name{entry->d_name};
            if (name == "." || name == "..") {
                continue;
            }
            const bool is_hidden = name.front() == '.';  // also "._x.jpg", which one system leaves everywhere
            const bool is_picture = !is_hidden && has_extension(name);
            unsigned char type = entry->d_type;
            bool is_link = type == DT_LNK;
            if (!is_hidden && (type == DT_UNKNOWN || type == DT_LNK)) {
                type = kind_of(path + "/" + std::string{name}, is_link);
            }
            if (is_hidden) {
                ++ignored_;
            } else if (type == DT_DIR) {
                if (is_link && options_.folder_links == FolderLinks::ignore) {
                    ++ignored_;
                } else {
                    entries.folders.push_back({std::string{name}, is_link});
                }
            } else if (type == DT_REG && is_picture) {
                entries.pictures.emplace_back(name);
            } else {
                ++ignored_;
            }
        }
        std::sort(entries.folders.begin(), entries.folders.end(),
                  [](const Name& a, const Name& b) { return a.text < b.text; });
        return entries;
    }

    /// Which folder `path` is, whatever it is called; links followed.
    [[nodiscard]] static std::pair<dev_t, ino_t> identity(const std::string& path) {
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0) {
            throw error(path, error_text(errno));
        }
        return {status.st_dev, status.st_ino};
    }

    [[nodiscard]] std::uint64_t ignored() const noexcept { return ignored_; }
    void count_ignored(std::uint64_t number) noexcept { ignored_ += number; }

    [[nodiscard]] static DataError error(const std::string& path, const std::string& cause) {
        return DataError{ErrorKind::io, "cannot list the folder \"" + path + "\": " + cause, path};
    }

  private:
    [[nodiscard]] bool has_extension(std::string_view name) const noexcept {
        const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
        for (const std::string& extension : options_.extensions) {
            if (name.size() > extension.size() &&
                std::equal(extension.begin(), extension.end(),
                           name.end() - static_cast<std::ptrdiff_t>(extension.size()),
                           [&lower](char a, char b) { return lower(a) == lower(b); })) {
                return true;
            }
        }
        return false;
    }

    /// The type behind an entry that the directory did not tell. Anything that cannot be looked at is DT_UNKNOWN.
    [[nodiscard]] static unsigned char kind_of(const std::string& path, bool& is_link) noexcept {
        struct stat status {};
        if (!is_link) {
            if (::lstat(path.c_str(), &status) != 0) {
                return DT_UNKNOWN;
            }
            is_link = S_ISLNK(status.st_mode);
        }
        if (is_link && ::stat(path.c_str(), &status) != 0) {
            return DT_UNKNOWN;  // leads nowhere
        }
        return S_ISDIR(status.st_mode) ? DT_DIR : S_ISREG(status.st_mode) ? DT_REG : DT_UNKNOWN;
    }

    const ImageFolderOptions& options_;
    std::uint64_t ignored_ = 0;
};

}  // namespace detail

/// The pictures below a folder whose sub-folders are the classes: root/class/picture.jpg, root/class/any/depth.png.
///
/// Order: by the raw bytes of the path relative to the root, whatever the locale and the order on disk. Classes are
/// numbered from 0 by the raw bytes of their names. Paths are byte strings, whatever their encoding.
/// What is left out, and counted by ignored(): files with other endings, files directly in the root, names that begin
/// with a dot, sockets, pipes and devices, links that lead nowhere. Contents are not looked at.
/// Ownership: copies share one immutable list; copying is cheap. Thread-safety: all members may be called at once.
/// Cost: one pass over the folders at construction, no stat per file (but for links, and on file systems that tell no
/// types); about 12 bytes of heap per file beyond its name, while it is built at most three times its final size.
class ImageFolder {
  public:
    /// Lists `root`.
    /// @throws DataError    (io) the root is missing, is no folder, or a folder in it cannot be read; it holds no
    /// picture
    ///                      in any class; an empty class with EmptyClasses::refuse. It names the path, what was looked
    ///                      for and how many files were ignored.
    /// @throws OptionError  no extensions.
    explicit ImageFolder(std::string root, const ImageFolderOptions& options = {}) {
        if (options.extensions.empty()) {
            throw OptionError{"cannot use the option extensions = {}: allowed is one ending or more, such as \".jpg\""};
        }
        while (root.size() > 1 && root.back() == '/') {
            root.pop_back();
        }
        auto list = std::make_shared<List>();
        list->root = std::move(root);
        list->build(options);
        list_ = std::move(list);
    }

    /// Pictures in all classes together.
    [[nodiscard]] std::uint64_t size() const noexcept { return list_->labels.size(); }
    /// The folder, as given, without trailing slashes.
    [[nodiscard]] const std::string& root() const noexcept { return list_->root; }
    /// Path of picture `i` < size(), beginning with root(); a byte string that `open` takes.
    [[nodiscard]] std::string path(std::uint64_t i) const {
        std::string path;
        const std::string_view relative = relative_path(i);
        path.reserve(list_->root.size() + 1 + list_->classes[static_cast<std::size_t>(label(i))].size() + 1 +
                     relative.size());
        path += list_->root;
        if (path.back() != '/') {
            path += '/';
        }
        path += list_->classes[static_cast<std::size_t>(label(i))];
        path += '/';
        path += relative;
        return path;
    }
    /// Class number of picture `i` < size(): its place in classes().
    [[nodiscard]] std::int32_t label(std::uint64_t i) const noexcept {
        return list_->labels[static_cast<std::size_t>(i)];
    }
    /// Names of the class folders, in the order of their numbers.
    [[nodiscard]] const std::vector<std::string>& classes() const noexcept { return list_->classes; }
    /// Names of the classes that hold no picture, in order.
    [[nodiscard]] const std::vector<std::string>& empty_classes() const noexcept { return list_->empty_classes; }
    /// Files, and folders, that were seen and left out.
    [[nodiscard]] std::uint64_t ignored() const noexcept { return list_->ignored; }
    /// Hash of all relative paths and class numbers, the root left out: equal lists on any machine give equal values.
    [[nodiscard]] std::uint64_t fingerprint() const noexcept { return list_->fingerprint; }
    /// Heap of the list, in bytes.
    [[nodiscard]] std::uint64_t size_bytes() const noexcept {
        return list_->names.capacity() + list_->offsets.capacity() * sizeof(std::uint64_t) +
               list_->labels.capacity() * sizeof(std::int32_t);
    }

  private:
    using Identity = std::pair<dev_t, ino_t>;

    struct List {
        std::string root;
        std::vector<std::string> classes;
        std::vector<std::string> empty_classes;
        std::string names;                   // paths inside their class folders, one after the other
        std::vector<std::uint64_t> offsets;  // where each begins, and the end of the last
        std::vector<std::int32_t> labels;
        std::uint64_t ignored = 0;
        std::uint64_t fingerprint = 0;

        void build(const ImageFolderOptions& options) {
            check_root();
            detail::FolderScanner scanner{options};
            const bool follows = options.folder_links == FolderLinks::follow;
            detail::FolderScanner::Entries top = scanner.read(root);
            scanner.count_ignored(top.pictures.size());  // no class
            std::vector<Identity> chain;
            if (follows) {
                chain.push_back(detail::FolderScanner::identity(root));
            }
            std::vector<std::string> found;  // per class: its paths, each with a zero behind it
            for (detail::FolderScanner::Name& folder : top.folders) {
                std::vector<std::string> pictures;
                if (!collect(scanner, root + "/" + folder.text, "", follows, chain, pictures)) {
                    scanner.count_ignored(1);  // the root once more
                    continue;
                }
                classes.push_back(std::move(folder.text));
                if (pictures.empty()) {
                    empty_classes.push_back(classes.back());
                }
                std::sort(pictures.begin(), pictures.end());
                // Packed per class, so that at no time a string object per file is alive for all of them.
                std::string packed;
                for (const std::string& picture : pictures) {
                    packed += picture;
                    packed += '\0';
                }
                found.push_back(std::move(packed));
            }
            ignored = scanner.ignored();
            if (options.empty_classes == EmptyClasses::refuse && !empty_classes.empty()) {
                throw failure(options, "the class folder \"" + empty_classes.front() + "\" holds no picture");
            }
            // "a-b/x" comes before "a/x", but "a" before "a-b": files go by path, numbers by name.
            std::vector<std::size_t> order(classes.size());
            for (std::size_t i = 0; i < order.size(); ++i) {
                order[i] = i;
            }
            std::sort(order.begin(), order.end(),
                      [this](std::size_t a, std::size_t b) { return classes[a] + '/' < classes[b] + '/'; });
            offsets.push_back(0);
            std::uint64_t hash = detail::name_hash("stoker::ImageFolder");
            for (const std::size_t number : order) {
                const std::string packed = std::move(found[number]);
                for (std::size_t begin = 0; begin < packed.size();) {
                    const std::size_t end = packed.find('\0', begin);
                    names.append(packed, begin, end - begin);
                    offsets.push_back(names.size());
                    labels.push_back(static_cast<std::int32_t>(number));
                    hash = detail::name_hash(std::string_view{packed}.substr(begin, end - begin + 1), hash);
                    begin = end + 1;
                }
                hash = detail::name_hash(classes[number] + "/" + std::to_string(number) + "/", hash);
            }
            fingerprint = hash;
            if (labels.empty()) {
                throw failure(
                    options, "no picture was found in any of its " + std::to_string(classes.size()) + " class folders");
            }
            names.shrink_to_fit();
            offsets.shrink_to_fit();
            labels.shrink_to_fit();
        }

        /// Adds the pictures below `folder`, as paths that begin with `prefix`. @return false: it is inside itself
        static bool collect(detail::FolderScanner& scanner, const std::string& folder, const std::string& prefix,
                            bool follows, std::vector<Identity>& chain, std::vector<std::string>& pictures) {
            if (follows) {
                const Identity self = detail::FolderScanner::identity(folder);
                if (std::find(chain.begin(), chain.end(), self) != chain.end()) {
                    return false;
                }
                chain.push_back(self);
            }
            detail::FolderScanner::Entries entries = scanner.read(folder);
            for (const std::string& picture : entries.pictures) {
                pictures.push_back(prefix + picture);
            }
            entries.pictures = {};
            for (const detail::FolderScanner::Name& inner : entries.folders) {
                if (!collect(scanner, folder + "/" + inner.text, prefix + inner.text + "/", follows, chain, pictures)) {
                    scanner.count_ignored(1);
                }
            }
            if (follows) {
                chain.pop_back();
            }
            return true;
        }

        void check_root() const {
            struct stat status {};
            if (root.empty() || root.find('\0') != std::string::npos || ::stat(root.c_str(), &status) != 0) {
                const int error = root.empty() || root.find('\0') != std::string::npos ? ENOENT : errno;
                throw DataError{
                    ErrorKind::io,
                    "cannot list the folder \"" + root +
                        "\" (looked for one sub-folder per class, 0 files ignored): " + detail::error_text(error),
                    root};
            }
            if (!S_ISDIR(status.st_mode)) {
                throw DataError{ErrorKind::io,
                                "cannot list \"" + root +
                                    "\" (looked for one sub-folder per class, 0 files ignored): it is a file, "
                                    "not a folder; name the folder that holds the class folders",
                                root};
            }
        }

        [[nodiscard]] DataError failure(const ImageFolderOptions& options, const std::string& cause) const {
            std::string wanted;
            for (const std::string& extension : options.extensions) {
                wanted += (wanted.empty() ? "" : ", ") + extension;
            }
            return DataError{ErrorKind::io,
                             "cannot use the folder \"" + root + "\": " + cause + " (looked for files that end in " +
                                 wanted + " in one sub-folder per class; " + std::to_string(ignored) +
                                 " other files or links were ignored); check the path, or the option extensions",
                             root};
        }
    };

    [[nodiscard]] std::string_view relative_path(std::uint64_t i) const noexcept {
        const auto at = static_cast<std::size_t>(i);
        const auto begin = static_cast<std::size_t>(list_->offsets[at]);
        return std::string_view{list_->names}.substr(begin, static_cast<std::size_t>(list_->offsets[at + 1]) - begin);
    }

    std::shared_ptr<const List> list_;
};

}  // namespace v0
}  // namespace stoker
