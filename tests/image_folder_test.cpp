// SPDX-License-Identifier: MIT
#include <stoker/data/image_folder.hpp>
#include <stoker/data/path_list.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/picture_files.hpp"

namespace {

using stoker::ImageFolder;
using stoker::ImageFolderOptions;
using testing_support::TemporaryFolder;
using Strings = std::vector<std::string>;

/// The list as paths relative to the root, each with its label behind it.
Strings listed(const ImageFolder& folder) {
    Strings list;
    for (std::uint64_t i = 0; i < folder.size(); ++i) {
        list.push_back(folder.path(i).substr(folder.root().size() + 1) + " " + std::to_string(folder.label(i)));
    }
    return list;
}

std::string failure(const std::string& root, const ImageFolderOptions& options = {}) {
    try {
        const ImageFolder folder{root, options};
    } catch (const stoker::DataError& error) {
        EXPECT_EQ(error.kind(), stoker::ErrorKind::io);
        EXPECT_EQ(error.path(), root);
        return error.what();
    }
    return "listed";
}

// B066: sorted by raw bytes, whatever the order on disk and the locale.
TEST(ImageFolderTest, SortsByRawBytes) {
    const Strings classes{"B", "a", "c10", "c2", "\xc3\xa9t\xc3\xa9"};
    const Strings expected{"B/x.png 0",
                           "B/y.png 0",
                           "a/x.png 1",
                           "a/y.png 1",
                           "c10/x.png 2",
                           "c10/y.png 2",
                           "c2/x.png 3",
                           "c2/y.png 3",
                           "\xc3\xa9t\xc3\xa9/x.png 4",
                           "\xc3\xa9t\xc3\xa9/y.png 4"};
    std::vector<std::uint64_t> prints;
    for (const char* const locale : {"C", "en_US.UTF-8", "C.UTF-8"}) {
        std::setlocale(LC_ALL, locale);  // where it is not installed, nothing changes
        for (const std::vector<std::size_t>& order :
             {std::vector<std::size_t>{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 4, 0, 3, 1}}) {
            const TemporaryFolder folder;
            for (const std::size_t i : order) {
                folder.write(classes[i] + "/y.png");
                folder.write(classes[i] + "/x.png");
            }
            const ImageFolder list{folder.path()};
            EXPECT_EQ(list.classes(), classes);
            EXPECT_EQ(listed(list), expected);
            prints.push_back(list.fingerprint());
        }
    }
    std::setlocale(LC_ALL, "C");
    EXPECT_EQ(std::count(prints.begin(), prints.end(), prints.front()), std::ptrdiff_t{9});
}

TEST(ImageFolderTest, FilesGoByPathAndClassesByName) {
    const TemporaryFolder folder;
    for (const char* const name : {"a/x.png", "a-b/x.png", "a/deep/er/z.png", "a/deep.png"}) {
        folder.write(name);
    }
    const ImageFolder list{folder.path() + "//"};
    EXPECT_EQ(list.root(), folder.path());
    EXPECT_EQ(list.classes(), (Strings{"a", "a-b"}));
    EXPECT_EQ(listed(list), (Strings{"a-b/x.png 1", "a/deep.png 0", "a/deep/er/z.png 0", "a/x.png 0"}));
}

// B105: an empty class keeps its number, or is an error that names it.
TEST(ImageFolderTest, AnEmptyClassShiftsNothing) {
    const TemporaryFolder folder;
    folder.write("a/1.png");
    folder.make_folder("b");
    folder.write("c/2.png");
    const ImageFolder list{folder.path()};
    EXPECT_EQ(listed(list), (Strings{"a/1.png 0", "c/2.png 2"}));
    EXPECT_EQ(list.empty_classes(), Strings{"b"});
    const std::string text = failure(folder.path(), {.empty_classes = stoker::EmptyClasses::refuse});
    EXPECT_NE(text.find("\"b\""), std::string::npos) << text;
}

// B106: what cannot work fails at once, and says what was looked for.
TEST(ImageFolderTest, UselessFoldersAreErrors) {
    const TemporaryFolder folder;
    folder.make_folder("empty");
    folder.write("file");
    folder.write("other/a/x.tga");
    folder.write("other/a/notes.jpg.txt");
    folder.write("other/stray.jpg");
    const std::string empty = failure(folder / "empty");
    EXPECT_NE(empty.find(".jpg, .jpeg, .png, .bmp"), std::string::npos) << empty;
    EXPECT_NE(empty.find("0 other files"), std::string::npos) << empty;
    EXPECT_NE(failure(folder / "missing").find("no such file"), std::string::npos);
    EXPECT_NE(failure(folder / "file").find("it is a file"), std::string::npos);
    const std::string other = failure(folder / "other");
    EXPECT_NE(other.find("3 other files"), std::string::npos) << other;
    EXPECT_NE(failure("").find("no such file"), std::string::npos);
    EXPECT_THROW(ImageFolder(folder / "other", {.extensions = {}}), stoker::OptionError);
    EXPECT_EQ(listed(ImageFolder{folder / "other", {.extensions = {".tga"}}}), Strings{"a/x.tga 0"});
}

TEST(ImageFolderTest, AnyLetterCaseCountsAndLitterIsIgnored) {
    const TemporaryFolder folder;
    for (const char* const name : {"a/1.JPG", "a/2.JpEg", "a/3.png", "a/4.BMP"}) {
        folder.write(name);
    }
    for (const char* const name :
         {"a/Thumbs.db", "a/.DS_Store", "a/._1.jpg", "a/jpg", "a/.jpg", "a/x.jpg~", "a/5.png.part", "readme.png"}) {
        folder.write(name);
    }
    folder.make_folder(".git");
    folder.make_folder("a/looks.png");
    ASSERT_EQ(::mkfifo((folder / "a/pipe.png").c_str(), 0600), 0);
    ASSERT_EQ(::symlink("/nowhere", (folder / "a/gone.png").c_str()), 0);
    ASSERT_EQ(::symlink("/dev/null", (folder / "a/null.png").c_str()), 0);
    const ImageFolder list{folder.path()};
    EXPECT_EQ(listed(list), (Strings{"a/1.JPG 0", "a/2.JpEg 0", "a/3.png 0", "a/4.BMP 0"}));
    EXPECT_EQ(list.ignored(), 8u + 1 + 3);
}

// B107: names are bytes.
TEST(ImageFolderTest, AnyNameIsListedByteForByte) {
    const TemporaryFolder folder;
    const Strings names{"\xc3\xa9\xc3\xa0.png",
                        "\xe6\xbc\xa2\xe5\xad\x97.png",
                        "\xf0\x9f\x90\x88.png",
                        "a b  c.png",
                        "quote\"'`.png",
                        "new\nline.png",
                        std::string(251, 'x') + ".png",
                        "\xff\xfe\x80.png",
                        "$(HOME)%s*?.png",
                        "-rf.png"};
    Strings expected;
    for (const std::string& name : names) {
        folder.write("\xe9 class/" + name);
        expected.push_back("\xe9 class/" + name + " 0");
    }
    std::sort(expected.begin(), expected.end());
    const ImageFolder list{folder.path()};
    EXPECT_EQ(listed(list), expected);
    for (std::uint64_t i = 0; i < list.size(); ++i) {
        EXPECT_TRUE(std::ifstream{list.path(i)}.good()) << list.path(i);
    }
}

// B108: loops end, legitimate links count.
TEST(ImageFolderTest, LinksAreFollowedOnlyIfAskedForAndNeverInCircles) {
    const TemporaryFolder folder;
    folder.write("cls/a.png");
    ASSERT_EQ(::symlink("..", (folder / "cls/loop").c_str()), 0);
    ASSERT_EQ(::symlink("cls", (folder / "cls2").c_str()), 0);
    ASSERT_EQ(::symlink("a.png", (folder / "cls/b.png").c_str()), 0);
    ASSERT_EQ(::symlink(".", (folder / "self").c_str()), 0);
    const ImageFolder off{folder.path()};
    EXPECT_EQ(listed(off), (Strings{"cls/a.png 0", "cls/b.png 0"}));
    EXPECT_EQ(off.classes(), Strings{"cls"});
    EXPECT_EQ(off.ignored(), 3u);
    const Strings once = listed(ImageFolder{folder.path(), {.folder_links = stoker::FolderLinks::follow}});
    EXPECT_EQ(once, (Strings{"cls/a.png 0", "cls/b.png 0", "cls2/a.png 1", "cls2/b.png 1"}));
    EXPECT_EQ(listed(ImageFolder{folder.path(), {.folder_links = stoker::FolderLinks::follow}}), once);
}

// B112: many files are listed in little time and memory. (That there is no stat per file shows in a system-call trace.)
TEST(ImageFolderTest, ManyFilesTakeLittleMemory) {
    const TemporaryFolder folder;
    constexpr std::uint64_t folders = 1000;
    constexpr std::uint64_t per_folder = 20;
    std::uint64_t name_bytes = 0;
    for (std::uint64_t c = 0; c < folders; ++c) {
        const std::string name = "n" + std::to_string(10'000'000 + c);
        folder.make_folder(name);
        for (std::uint64_t i = 0; i < per_folder; ++i) {
            const std::string file = name + "_" + std::to_string(i) + ".JPEG";
            name_bytes += file.size();
            std::ofstream{folder / (name + "/" + file)};
        }
    }
    const ImageFolder list{folder.path()};
    EXPECT_EQ(list.size(), folders * per_folder);
    EXPECT_EQ(list.classes().size(), folders);
    EXPECT_LE(list.size_bytes(), name_bytes + 150 * list.size());
    EXPECT_EQ(list.label(list.size() - 1), 999);
    const ImageFolder copy = list;
    EXPECT_EQ(&copy.classes(), &list.classes());
}

TEST(ImageFolderTest, RealFoldersAreListed) {
    const std::string shared = testing_support::shared_data();
    if (shared.empty()) {
        GTEST_SKIP() << "no shared test data (STOKER_SHARED)";
    }
    const ImageFolder sample{shared + "/imagenet-sample"};
    EXPECT_EQ(sample.size(), 200u);
    EXPECT_EQ(sample.classes().size(), 200u);
    for (const auto& row : testing_support::read_table(shared + "/datasets/expected.tsv")) {
        if (row[1] != "imagefolder" || row[0].find("hymenoptera") != std::string::npos) {
            continue;
        }
        const ImageFolder list{shared + "/datasets/" + row[0]};
        EXPECT_EQ(std::to_string(list.size()), row[3]) << row[0];
        EXPECT_EQ(list.path(0), list.root() + "/" + row[4]);
        EXPECT_EQ(list.path(list.size() - 1), list.root() + "/" + row[5]);
    }
}

TEST(PathListTest, KeepsPathsAndLabels) {
    const stoker::PathList plain{{"b", "a"}};
    EXPECT_EQ(plain.size(), 2u);
    EXPECT_EQ(plain.path(0), "b");
    EXPECT_EQ(plain.label(1), -1);
    const stoker::PathList labelled{{"b", "a"}, {5, 7}};
    EXPECT_EQ(labelled.label(1), 7);
    EXPECT_NE(labelled.fingerprint(), plain.fingerprint());
    EXPECT_NE(stoker::PathList({"a", "b"}).fingerprint(), plain.fingerprint());
    EXPECT_EQ(stoker::PathList({"b", "a"}).fingerprint(), plain.fingerprint());
    EXPECT_THROW(stoker::PathList({"a", "b"}, {1}), stoker::OptionError);
}

}  // namespace
