#include <algorithm>

#include "backends/cpu/kernels/kernels_testing.h"

namespace tenon::cpu {
namespace {

using namespace testing_kernels;

template <class T>
void expect_transposed(int log2_bytes) {
  constexpr std::pair<std::int64_t, std::int64_t> shapes[] = {{0, 5},    {5, 0},    {1, 1},   {1, 40},  {40, 1},   {3, 7},
                                                              {8, 8},    {16, 16},  {17, 16}, {16, 33}, {64, 64},  {65, 130},
                                                              {100, 70}, {70, 100}, {3, 300}, {300, 3}, {257, 321}};
  for (const Kernels* table : tables())
    for (const auto& [rows, cols] : shapes)
      for (bool stream : {false, true})
        for (std::int64_t offset : {0, 3}) {
          // Once with rows of the target that streaming stores can use, once with odd ones.
          const std::int64_t src_stride = cols + offset, dst_stride = offset == 0 ? (rows + 63) / 64 * 64 : rows + 5;
          std::vector<T> src(static_cast<std::size_t>(rows * src_stride));
          for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<T>(i * 2654435761u >> 3);
          constexpr T sentinel = 77;
          std::vector<T> memory(static_cast<std::size_t>(cols * dst_stride) + 256, sentinel);
          T* dst = memory.data() + 64 + offset;
          table->transpose[log2_bytes](src.data(), src_stride, dst, dst_stride, rows, cols, stream);
          table->stream_fence();
          std::vector<T> expected(memory.size(), sentinel);
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < cols; ++j)
              expected[static_cast<std::size_t>(64 + offset + j * dst_stride + i)] =
                  src[static_cast<std::size_t>(i * src_stride + j)];
          ASSERT_EQ(memory, expected) << rows << 'x' << cols << " of " << sizeof(T) << " bytes, stream " << stream << ", "
                                      << table->isa;
        }
}
TEST(TransposeKernels, TransposeAnySizeAndNothingElse) {
  expect_transposed<std::uint8_t>(0);
  expect_transposed<std::uint16_t>(1);
  expect_transposed<std::uint32_t>(2);
  expect_transposed<std::uint64_t>(3);
}

TEST(StreamCopy, CopiesAnyBytesToAnyPlace) {
  std::vector<unsigned char> src(5000);
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<unsigned char>(i * 7 + i / 256);
  for (const Kernels* table : tables())
    for (std::size_t from : {0, 1, 13})
      for (std::size_t to : {0, 1, 31, 63, 64})
        for (std::size_t n : {0, 1, 15, 63, 64, 65, 127, 128, 200, 1000, 4096}) {
          std::vector<unsigned char> dst(n + 200, 77), expected(n + 200, 77);
          std::copy_n(src.begin() + static_cast<std::ptrdiff_t>(from), n, expected.begin() + static_cast<std::ptrdiff_t>(to));
          table->stream_copy(dst.data() + to, src.data() + from, n);
          table->stream_fence();
          ASSERT_EQ(dst, expected) << n << " bytes to " << to << " on " << table->isa;
        }
}

template <class T>
void expect_steps(int log2_bytes) {
  std::vector<T> src(3000);
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<T>(i * 2654435761u >> 3);
  for (const Kernels* table : tables())
    for (const std::int64_t step : {-7, -1, 0, 1, 2, 3, 4, 5, 9})
      for (const std::int64_t cols : {1, 2, 15, 16, 17, 40, 64, 65, 130}) {
        constexpr std::int64_t rows = 3, src_row = 10;
        const std::int64_t dst_row = cols + 2;
        const T* first = src.data() + (step < 0 ? 2900 : 13);
        std::vector<T> memory(static_cast<std::size_t>(rows * dst_row) + 64, T{77}), expected = memory;
        table->strided[log2_bytes](first, step, src_row, memory.data() + 5, dst_row, rows, cols);
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < cols; ++c)
            expected[static_cast<std::size_t>(5 + r * dst_row + c)] = first[r * src_row + c * step];
        ASSERT_EQ(memory, expected) << cols << " in steps of " << step << " on " << table->isa;
      }
}
TEST(StridedKernels, TakeElementsAtAnyStepAndWriteNothingElse) {
  expect_steps<std::uint8_t>(0);
  expect_steps<std::uint16_t>(1);
  expect_steps<std::uint32_t>(2);
  expect_steps<std::uint64_t>(3);
}

TEST(FillKernels, RepeatOneElementAndWriteNothingElse) {
  const std::uint64_t value = 0x0123456789abcdef;
  for (const Kernels* table : tables())
    for (const bool stream : {false, true})
      for (const std::size_t bytes : {1, 2, 4, 8})
        for (const std::size_t offset : {0, 8, 56})
          for (const std::size_t count : {0, 1, 7, 16, 63, 64, 65, 300, 1000}) {
            alignas(64) unsigned char memory[8200], expected[8200];
            std::fill_n(memory, sizeof memory, 77);
            std::fill_n(expected, sizeof expected, 77);
            (stream ? table->stream_fill : table->fill)(memory + 64 + offset, &value, bytes, count);
            table->stream_fence();
            for (std::size_t i = 0; i < count; ++i)
              std::copy_n(reinterpret_cast<const unsigned char*>(&value), bytes, expected + 64 + offset + i * bytes);
            ASSERT_TRUE(std::equal(memory, memory + sizeof memory, expected))
                << count << " of " << bytes << " bytes on " << table->isa << " stream " << stream;
          }
}

}  // namespace
}  // namespace tenon::cpu
