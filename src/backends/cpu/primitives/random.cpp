#include "graph/random.h"

#include <algorithm>
#include <bit>

#include "backends/cpu/primitives/clones.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/split.h"
#include "backends/cpu/primitives/typed.h"
#include "math/normal.h"

namespace tenon::cpu {
namespace {

// A float with what math/normal.h needs: the compiler makes lanes of it.
struct Plain {
  using Type = float;
  using Unsigned = std::uint32_t;
  float v;

  TENON_FORMULA static Plain from_bits(std::uint32_t x) { return Plain(std::bit_cast<float>(x)); }
  TENON_FORMULA static Plain exponent(std::uint32_t x) { return Plain(static_cast<float>(static_cast<std::int32_t>(x) >> 23)); }
};
TENON_FORMULA std::uint32_t bits(Plain x) { return std::bit_cast<std::uint32_t>(x.v); }
TENON_FORMULA Plain operator+(Plain x, Plain y) { return Plain(x.v + y.v); }
TENON_FORMULA Plain operator-(Plain x, Plain y) { return Plain(x.v - y.v); }
TENON_FORMULA Plain operator*(Plain x, Plain y) { return Plain(x.v * y.v); }
TENON_FORMULA Plain operator-(Plain x) { return Plain(-x.v); }
TENON_FORMULA Plain fma(Plain x, Plain y, Plain z) { return Plain(__builtin_fmaf(x.v, y.v, z.v)); }
// By Newton's method: a loop with a square root, which may set errno, is not vectorised.
TENON_FORMULA Plain reciprocal_root(Plain x) {
  float y = std::bit_cast<float>(0x5f3759dfu - (std::bit_cast<std::uint32_t>(x.v) >> 1));
  for (int i = 0; i < 3; ++i) y = y * (1.5f - 0.5f * x.v * y * y);
  return Plain(y);
}
template <int N>
TENON_FORMULA Plain polynomial(Plain x, const float (&c)[N]) {
  Plain y(c[N - 1]);
  for (int i = N - 2; i >= 0; --i) y = fma(y, x, Plain(c[i]));
  return y;
}

// The words of |kBlocks| blocks of the generator, from |block| on. This and what follows are loops that the compiler vectorises.
constexpr int kBlocks = 32;
using BlockWords = std::uint32_t[4][kBlocks];
TENON_CLONES void fill_words(std::uint64_t seed, std::uint64_t block, RandomStream stream, BlockWords& words) {
  for (int b = 0; b < kBlocks; ++b) {
    const std::uint64_t counter = block + static_cast<std::uint64_t>(b);
    words[0][b] = static_cast<std::uint32_t>(counter);
    words[1][b] = static_cast<std::uint32_t>(counter >> 32);
    words[2][b] = static_cast<std::uint32_t>(stream);
    words[3][b] = 0;
  }
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  TENON_ROLLED for (int round = 0; round < 10; ++round, k0 += kPhiloxKeys[0], k1 += kPhiloxKeys[1]) for (int b = 0; b < kBlocks;
                                                                                                         ++b) {
    const std::uint64_t p0 = kPhiloxFactors[0] * words[0][b], p1 = kPhiloxFactors[1] * words[2][b];
    words[0][b] = static_cast<std::uint32_t>(p1 >> 32) ^ words[1][b] ^ k0;
    words[2][b] = static_cast<std::uint32_t>(p0 >> 32) ^ words[3][b] ^ k1;
    words[1][b] = static_cast<std::uint32_t>(p1);
    words[3][b] = static_cast<std::uint32_t>(p0);
  }
}
TENON_FORMULA void interleave(const float (&values)[4][kBlocks], float* out) {
  TENON_ROLLED for (int b = 0; b < kBlocks; ++b) for (int i = 0; i < 4; ++i) out[4 * b + i] = values[i][b];
}

TENON_CLONES void uniform_blocks(std::uint64_t seed, std::uint64_t block, float* out) {
  BlockWords words;
  fill_words(seed, block, RandomStream::uniform_f32, words);
  float values[4][kBlocks];
  TENON_ROLLED for (int i = 0; i < 4; ++i) for (int b = 0; b < kBlocks; ++b) values[i][b] =
      static_cast<float>(static_cast<std::int32_t>(words[i][b] >> 8)) * 0x1p-24f;
  interleave(values, out);
}
TENON_CLONES void uniform_blocks(std::uint64_t seed, std::uint64_t block, double* out) {
  BlockWords words;
  fill_words(seed, block, RandomStream::uniform_f64, words);
  TENON_ROLLED for (int b = 0; b < kBlocks; ++b) for (int i = 0; i < 2; ++i) out[2 * b + i] =
      unit_double(words[2 * i][b], words[2 * i + 1][b]);
}
// Only with FMA: without, each is a call.
TENON_CLONES void normal_blocks(std::uint64_t seed, std::uint64_t block, float* out) {
  BlockWords words;
  fill_words(seed, block, RandomStream::normal_f32, words);
  float values[4][kBlocks];
  TENON_ROLLED for (int pair = 0; pair < 4; pair += 2) TENON_ROLLED for (int b = 0; b < kBlocks; ++b) {
    const std::uint32_t radius = words[pair][b] | 1u, angle = words[pair + 1][b];
    // Towards zero: the sum of two exact parts, and the float below where it was rounded up.
    const float high = static_cast<float>(static_cast<std::int32_t>(radius >> 8)) * 256.0f;
    const float low = static_cast<float>(static_cast<std::int32_t>(radius & 255u)), sum = high + low;
    const Plain v = Plain::from_bits(std::bit_cast<std::uint32_t>(sum) - (low < sum - high ? 1u : 0u));
    const Plain x(static_cast<float>((static_cast<std::int32_t>(angle << 2) >> 8) | 1) * 0x1p-23f);
    const std::uint32_t sign = angle & 0x80000000u;
    const std::uint32_t c = bits(math::normal_cos(v, x)) ^ sign, s = bits(math::normal_sin(v, x)) ^ sign;
    const bool exchanged = (angle & 0x40000000u) != 0;
    values[pair][b] = std::bit_cast<float>(exchanged ? s : c);
    values[pair + 1][b] = std::bit_cast<float>(exchanged ? c : s);
  }
  interleave(values, out);
}
bool has_fma() {
#if defined(__x86_64__) && !TENON_THREAD_SANITIZER
  return __builtin_cpu_supports("x86-64-v3");
#else
  return false;
#endif
}

// The elements from |begin| to |end|, the ends by blocks too: an element is the same whichever part of the tensor a thread has.
template <class T>
void fill_by_blocks(void (*blocks)(std::uint64_t, std::uint64_t, T*), std::uint64_t seed, T* out, std::int64_t begin,
                    std::int64_t end) {
  constexpr std::int64_t of_block = 16 / sizeof(T), step = of_block * kBlocks;
  for (std::int64_t i = begin - begin % of_block; i < end; i += step) {
    const auto block = static_cast<std::uint64_t>(i / of_block);
    if (i >= begin && i + step <= end) {
      blocks(seed, block, out + i);
    } else {
      T some[step];
      blocks(seed, block, some);
      const std::int64_t first = std::max(begin, i), last = std::min(end, i + step);
      std::copy(some + (first - i), some + (last - i), out + first);
    }
  }
}

template <class T>
void uniform(std::uint64_t seed, T* out, std::int64_t begin, std::int64_t end) {
  fill_by_blocks<T>(uniform_blocks, seed, out, begin, end);
}
void normal(std::uint64_t seed, float* out, std::int64_t begin, std::int64_t end) {
  static const bool by_blocks = has_fma();
  if (by_blocks) return fill_by_blocks(normal_blocks, seed, out, begin, end);
  for (std::int64_t i = begin; i < end; ++i) out[i] = random_normal_f32(seed, static_cast<std::uint64_t>(i));
}

void normal(std::uint64_t seed, double* out, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) out[i] = random_normal_f64(seed, static_cast<std::uint64_t>(i));
}

}  // namespace

void random(ThreadPool& pool, const RandomAttr& attr, const Target& out) {
  const auto run = [&](auto* to) {
    for_ranges(pool, out.shape.elements(), attr.normal ? 40 : 8, [&](std::int64_t begin, std::int64_t end, int) {
      if (attr.normal) {
        normal(attr.seed, to, begin, end);
      } else {
        uniform(attr.seed, to, begin, end);
      }
    });
  };
  if (out.dtype == DType::f32) return run(static_cast<float*>(out.data));
  if (out.dtype == DType::f64) return run(static_cast<double*>(out.data));
  throw Error(ErrorCode::internal, "random numbers of " + std::string(name(out.dtype)));
}

}  // namespace tenon::cpu
