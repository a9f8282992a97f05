// SPDX-License-Identifier: MIT
// Views: shape, element type, which side of the bus.
#include <gtest/gtest.h>
#include <stoker/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using stoker::bfloat16;
using stoker::DType;
using stoker::dtype_of;
using stoker::float16;
using stoker::MemorySpace;
using stoker::Ragged;
using stoker::Tensor;

TEST(TensorTest, ElementTypesHaveDlpacksCodesAndBits) {
    EXPECT_EQ(static_cast<int>(DType::Code::signed_integer), 0);  // kDLInt
    EXPECT_EQ(static_cast<int>(DType::Code::unsigned_integer), 1);
    EXPECT_EQ(static_cast<int>(DType::Code::floating), 2);
    EXPECT_EQ(static_cast<int>(DType::Code::bfloat), 4);
    EXPECT_EQ(static_cast<int>(DType::Code::boolean), 6);
    EXPECT_EQ(dtype_of<std::int8_t>(), (DType{DType::Code::signed_integer, 8}));
    EXPECT_EQ(dtype_of<std::int64_t>(), (DType{DType::Code::signed_integer, 64}));
    EXPECT_EQ(dtype_of<std::uint8_t>(), (DType{DType::Code::unsigned_integer, 8}));
    EXPECT_EQ(dtype_of<std::uint32_t>(), (DType{DType::Code::unsigned_integer, 32}));
    EXPECT_EQ(dtype_of<std::byte>(), (DType{DType::Code::unsigned_integer, 8}));
    EXPECT_EQ(dtype_of<float16>(), (DType{DType::Code::floating, 16}));
    EXPECT_EQ(dtype_of<float>(), (DType{DType::Code::floating, 32}));
    EXPECT_EQ(dtype_of<double>(), (DType{DType::Code::floating, 64}));
    EXPECT_EQ(dtype_of<bfloat16>(), (DType{DType::Code::bfloat, 16}));
    EXPECT_EQ(dtype_of<bool>(), (DType{DType::Code::boolean, 8}));
}

TEST(TensorTest, StorageOnlyFloatsAreSixteenBits) {
    static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2);
    static_assert(std::is_trivially_copyable_v<float16> && std::is_trivially_copyable_v<bfloat16>);
    static_assert(stoker::TensorElement<float16> && stoker::TensorElement<bool> && !stoker::TensorElement<long double>);
    static_assert(!stoker::TensorElement<std::vector<int>>);
    EXPECT_EQ(float16{0x3c00}, float16{0x3c00});
    EXPECT_NE(bfloat16{0x3f80}, bfloat16{0});
}

TEST(TensorTest, DefaultOneIsEmpty) {
    const Tensor<float, 3> tensor;
    EXPECT_EQ(tensor.data(), nullptr);
    EXPECT_EQ(tensor.size(), 0U);
    EXPECT_TRUE(tensor.empty());
    EXPECT_EQ(tensor.size_bytes(), 0U);
    EXPECT_EQ(tensor.space(), MemorySpace::host);
    EXPECT_TRUE(tensor.host().empty());
    for ([[maybe_unused]] const auto part : tensor) {
        ADD_FAILURE();
    }
}

TEST(TensorTest, ShapeExtentAndSizeAgree) {
    std::vector<std::int16_t> memory(24);
    const Tensor<std::int16_t, 3> tensor{memory.data(), {2, 3, 4}};
    EXPECT_EQ(tensor.shape(), (std::array<std::size_t, 3>{2, 3, 4}));
    EXPECT_EQ(tensor.extent(0), 2U);
    EXPECT_EQ(tensor.extent(2), 4U);
    EXPECT_EQ(tensor.size(), 24U);
    EXPECT_EQ(tensor.size_bytes(), 48U);
    EXPECT_FALSE(tensor.empty());
    static_assert(Tensor<std::int16_t, 3>::rank == 3);
    static_assert(std::is_same_v<Tensor<std::int16_t, 3>::value_type, std::int16_t>);
}

TEST(TensorTest, IndexingIsRowMajorDownToElements) {
    std::vector<int> memory(24);
    std::iota(memory.begin(), memory.end(), 0);
    const Tensor<int, 3> tensor{memory.data(), {2, 3, 4}};
    EXPECT_EQ(tensor[1][2][3], 23);
    EXPECT_EQ(tensor[0][1].size(), 4U);
    EXPECT_EQ(tensor[1].shape(), (std::array<std::size_t, 2>{3, 4}));
    static_assert(std::is_same_v<decltype(tensor[0][0][0]), int&>);
    tensor[1][0][0] = 99;
    EXPECT_EQ(memory[12], 99);
}

TEST(TensorTest, IterationGivesPartsAndElements) {
    std::vector<int> memory{1, 2, 3, 4, 5, 6};
    const Tensor<int, 2> tensor{memory.data(), {3, 2}};
    int sum = 0;
    std::size_t rows = 0;
    for (const auto row : tensor) {
        ++rows;
        for (int& value : row) {
            sum += value;
            value = 0;
        }
    }
    EXPECT_EQ(rows, 3U);
    EXPECT_EQ(sum, 21);
    EXPECT_EQ(memory, std::vector<int>(6));
}

TEST(TensorTest, ConstElementsCannotBeWritten) {
    const std::vector<int> memory{1, 2};
    const Tensor<const int, 1> tensor{memory.data(), {2}};
    static_assert(std::is_same_v<decltype(tensor[0]), const int&>);
    EXPECT_EQ(tensor[1], 2);
}

TEST(TensorTest, HostGivesTheElementsAndThrowsOnDeviceMemory) {
    std::vector<int> memory{1, 2, 3, 4};
    const Tensor<int, 2> host{memory.data(), {2, 2}};
    EXPECT_EQ(host.host().data(), memory.data());
    EXPECT_EQ(host.host().size(), 4U);
    const Tensor<int, 2> device{memory.data(), {2, 2}, MemorySpace::device};
    EXPECT_EQ(device.space(), MemorySpace::device);
    EXPECT_THROW(static_cast<void>(device.host()), stoker::Error);
    EXPECT_THROW(static_cast<void>(device[1].host()), stoker::Error);  // parts know it too
    EXPECT_EQ(device[1].data(), memory.data() + 2);
    EXPECT_EQ(device.size_bytes(), 16U);
}

TEST(TensorTest, CopiesAreTheSameView) {
    int value = 0;
    const Tensor<int, 1> tensor{&value, {1}};
    const Tensor<int, 1> copy = tensor;  // NOLINT(performance-unnecessary-copy-initialization): the point of it
    copy[0] = 5;
    EXPECT_EQ(value, 5);
}

TEST(RaggedTest, DefaultOneHasNoRows) {
    const Ragged<int, 1> ragged;
    EXPECT_EQ(ragged.rows(), 0U);
    EXPECT_TRUE(ragged.values().empty());
}

TEST(RaggedTest, RowsAreCutAtTheOffsets) {
    std::vector<float> values(5 * 4);
    std::iota(values.begin(), values.end(), 0.0F);
    const std::vector<std::uint64_t> offsets{0, 2, 2, 5};
    const Ragged<float, 2> ragged{{values.data(), {5, 4}}, {offsets.data(), {4}}};
    EXPECT_EQ(ragged.rows(), 3U);
    EXPECT_EQ(ragged[0].shape(), (std::array<std::size_t, 2>{2, 4}));
    EXPECT_TRUE(ragged[1].empty());
    EXPECT_EQ(ragged[2].extent(0), 3U);
    EXPECT_EQ(ragged[2][0][0], 8.0F);
    EXPECT_EQ(ragged.values().extent(0), 5U);
    EXPECT_EQ(ragged.offsets()[3], 5U);
}

}  // namespace
