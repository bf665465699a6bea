#include <algorithm>

#include "array/convert.h"
#include "backends/cpu/kernels/kernels_testing.h"

namespace tenon::cpu {
namespace {

using namespace testing_kernels;

// Bytes of |count| elements of |dtype| that include everything a conversion has to decide about.
std::vector<char> varied_elements(DType dtype, std::size_t count) {
  std::vector<char> bytes(count * element_bytes(dtype));
  const auto fill = [&](const auto& values) { std::memcpy(bytes.data(), values.data(), bytes.size()); };
  switch (dtype) {
    case DType::boolean: {
      auto values = varied_integers<std::uint8_t>(count, 1);
      for (auto& x : values) x &= 1;
      fill(values);
      break;
    }
    case DType::u8: fill(varied_integers<std::uint8_t>(count, 2)); break;
    case DType::i8: fill(varied_integers<std::int8_t>(count, 3)); break;
    case DType::u32: fill(varied_integers<std::uint32_t>(count, 4)); break;
    case DType::i32: fill(varied_integers<std::int32_t>(count, 5)); break;
    case DType::u64: fill(varied_integers<std::uint64_t>(count, 6)); break;
    case DType::i64: fill(varied_integers<std::int64_t>(count, 7)); break;
    case DType::f32: fill(varied_floats(count, 8)); break;
    case DType::f64: {
      const std::vector<float> floats = varied_floats(count, 9);
      std::vector<double> values(floats.begin(), floats.end());
      // Doubles between floats, so that rounding once and twice differ.
      for (std::size_t i = 0; i < count; i += 2) values[i] = std::nextafter(values[i], i % 4 == 0 ? 1e300 : -1e300);
      fill(values);
      break;
    }
    default: {  // 16 bits: every pattern in turn
      for (std::size_t i = 0; i < count; ++i) {
        const auto pattern = static_cast<std::uint16_t>(i);
        std::memcpy(bytes.data() + 2 * i, &pattern, 2);
      }
    }
  }
  return bytes;
}

TEST(ConvertKernels, FollowTheRulesOfCastForEveryPairOfTypes) {
  constexpr std::size_t count = 65536 + 13;
  for (int from = 0; from < kStorageTypes; ++from) {
    const auto source = static_cast<DType>(from);
    const std::vector<char> in = varied_elements(source, count);
    for (int to = 0; to < kStorageTypes; ++to) {
      const auto target = static_cast<DType>(to);
      const std::size_t bytes = element_bytes(target);
      std::vector<char> expected(count * bytes), got(count * bytes);
      convert_elements(source, in.data(), target, expected.data(), count);
      for (const Kernels* table : tables()) {
        std::fill(got.begin(), got.end(), char{77});
        table->convert[from][to](in.data(), got.data(), count);
        if (got == expected) continue;
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(std::memcmp(got.data() + i * bytes, expected.data() + i * bytes, bytes), 0)
              << name(source) << " to " << name(target) << " on " << table->isa << ", element " << i;
      }
    }
  }
}

TEST(ConvertKernels, ReadAndWriteNothingBeyondTheirElements) {
  for (const Kernels* table : tables())
    for (int from = 0; from < kStorageTypes; ++from)
      for (int to = 0; to < kStorageTypes; ++to)
        for (std::size_t n = 0; n <= 40; ++n) {
          const std::vector<char> in(n * element_bytes(static_cast<DType>(from)), char{1});
          const std::size_t bytes = n * element_bytes(static_cast<DType>(to));
          std::vector<char> out(bytes + 128, char{77});
          table->convert[from][to](in.data(), out.data() + 64, static_cast<std::int64_t>(n));
          const auto untouched = [](char c) { return c == 77; };
          ASSERT_TRUE(std::all_of(out.begin(), out.begin() + 64, untouched) && std::all_of(out.end() - 64, out.end(), untouched))
              << name(static_cast<DType>(from)) << " to " << name(static_cast<DType>(to)) << ", " << n << ", " << table->isa;
        }
}

}  // namespace
}  // namespace tenon::cpu
