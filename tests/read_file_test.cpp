// SPDX-License-Identifier: MIT
#include <stoker/data/read_file.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/picture_files.hpp"

namespace {

using stoker::ByteBuffer;
using stoker::DataError;
using stoker::ErrorKind;
using testing_support::TemporaryFolder;

/// What reading `path` throws.
DataError failure(const std::string& path, std::uint64_t max_bytes = 1 << 20) {
    ByteBuffer buffer;
    try {
        stoker::read_file(path, buffer, max_bytes);
    } catch (const DataError& error) {
        return error;
    }
    return DataError{ErrorKind::other, "read"};
}

bool says(const DataError& error, const std::string& text) {
    return std::string{error.what()}.find(text) != std::string::npos;
}

TEST(ReadFileTest, ReadsAllBytesAndUsesItsMemoryAgain) {
    const TemporaryFolder folder;
    std::vector<std::uint8_t> large(300'000);
    for (std::size_t i = 0; i < large.size(); ++i) {
        large[i] = static_cast<std::uint8_t>(i * 7 >> 3);
    }
    const std::string big = folder.write("big", large);
    const std::string small = folder.write("small", {1, 2, 3});
    const std::string empty = folder.write("empty");
    ByteBuffer buffer;
    stoker::read_file(big, buffer);
    ASSERT_EQ(buffer.size(), large.size());
    EXPECT_EQ(std::memcmp(buffer.data(), large.data(), large.size()), 0);
    const std::byte* const memory = buffer.data();
    stoker::read_file(small, buffer);
    ASSERT_EQ(buffer.size(), 3u);
    EXPECT_EQ(std::to_integer<int>(buffer.bytes()[2]), 3);
    stoker::read_file(empty, buffer);
    EXPECT_EQ(buffer.size(), 0u);
    stoker::read_file(big, buffer);
    EXPECT_EQ(buffer.data(), memory);
}

TEST(ReadFileTest, ABufferThatWasMovedFromIsEmpty) {
    ByteBuffer buffer;
    buffer.resize(10);
    const ByteBuffer other{std::move(buffer)};
    EXPECT_EQ(other.size(), 10u);
    EXPECT_EQ(buffer.size(), 0u);      // NOLINT: what a moved-from buffer is, is promised
    EXPECT_EQ(buffer.capacity(), 0u);  // NOLINT
}

// B110: the system's words, and the path.
TEST(ReadFileTest, AMissingFileIsNamed) {
    const TemporaryFolder folder;
    const DataError error = failure(folder / "no\nsuch\xff.jpg");
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.path(), folder / "no\nsuch\xff.jpg");
    EXPECT_TRUE(says(error, "no such file")) << error.what();
}

TEST(ReadFileTest, WhatIsNoRegularFileIsRefusedWithoutWaiting) {
    const TemporaryFolder folder;
    ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
    EXPECT_TRUE(says(failure(folder / "pipe"), "not a regular file"));
    EXPECT_TRUE(says(failure(folder.path()), "directory"));
    EXPECT_TRUE(says(failure("/dev/null"), "not a regular file"));
    EXPECT_TRUE(says(failure(std::string{"a\0b", 3}), "zero byte"));
    EXPECT_TRUE(says(failure(""), "no such file"));
}

TEST(ReadFileTest, AFileAboveTheLimitIsNotRead) {
    const TemporaryFolder folder;
    const std::string path = folder.write("sparse");
    std::filesystem::resize_file(path, std::uint64_t{1} << 40);  // allocating that would fail
    const DataError error = failure(path);
    EXPECT_EQ(error.kind(), ErrorKind::too_large);
    EXPECT_EQ(error.bytes(), std::uint64_t{1} << 40);
    EXPECT_TRUE(says(error, "1048576")) << error.what();
}

// B111: a file that changes between the size query and the read is an error, never a signal.
TEST(ReadFileTest, AFileThatChangesIsAnError) {
    const TemporaryFolder folder;
    const std::string path = folder.write("changing");
    for (const std::uint64_t now : {std::uint64_t{0}, std::uint64_t{999'999}, std::uint64_t{2'000'000}}) {
        std::filesystem::resize_file(path, 1'000'000);
        ByteBuffer buffer;
        try {
            stoker::detail::read_file_hooked(path, buffer, 1 << 30, [&] { std::filesystem::resize_file(path, now); });
            ADD_FAILURE() << "read a file that changed to " << now;
        } catch (const DataError& error) {
            EXPECT_EQ(error.kind(), ErrorKind::io);
            EXPECT_TRUE(says(error, "changed while reading")) << error.what();
            EXPECT_EQ(error.path(), path);
        }
        EXPECT_EQ(buffer.size(), 0u);
    }
}

// B057: a lack of descriptors is called that; and none is kept.
TEST(ReadFileTest, TooManyOpenFilesIsCalledThat) {
    const TemporaryFolder folder;
    const std::string path = folder.write("file", {1});
    ByteBuffer buffer;
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few{32, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < 100; ++i) {
        stoker::read_file(path, buffer);  // keeps none
    }
    const rlimit none{0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const DataError error = failure(path);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_TRUE(says(error, "too many open files")) << error.what();
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(error.path(), path);
    stoker::read_file(path, buffer);
}

}  // namespace
