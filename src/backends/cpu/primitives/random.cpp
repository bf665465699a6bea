#include "graph/random.h"

#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/primitives/split.h"
#include "backends/cpu/primitives/typed.h"

namespace tenon::cpu {
namespace {

// Four numbers come from one block of the generator: whole blocks at a time, the ends one by one.
void uniform(std::uint64_t seed, float* out, std::int64_t begin, std::int64_t end) {
  std::int64_t i = begin;
  for (; i < end && i % 4 != 0; ++i) out[i] = random_uniform_f32(seed, static_cast<std::uint64_t>(i));
  for (; i + 4 <= end; i += 4) {
    const PhiloxWords words =
        philox4x32(seed, static_cast<std::uint64_t>(i) / 4, static_cast<std::uint32_t>(RandomStream::uniform_f32));
    for (std::size_t j = 0; j < 4; ++j) out[i + static_cast<std::int64_t>(j)] = static_cast<float>(words[j] >> 8) * 0x1p-24f;
  }
  for (; i < end; ++i) out[i] = random_uniform_f32(seed, static_cast<std::uint64_t>(i));
}

void uniform(std::uint64_t seed, double* out, std::int64_t begin, std::int64_t end) {
  std::int64_t i = begin;
  for (; i < end && i % 2 != 0; ++i) out[i] = random_uniform_f64(seed, static_cast<std::uint64_t>(i));
  for (; i + 2 <= end; i += 2) {
    const PhiloxWords words =
        philox4x32(seed, static_cast<std::uint64_t>(i) / 2, static_cast<std::uint32_t>(RandomStream::uniform_f64));
    out[i] = unit_double(words[0], words[1]);
    out[i + 1] = unit_double(words[2], words[3]);
  }
  for (; i < end; ++i) out[i] = random_uniform_f64(seed, static_cast<std::uint64_t>(i));
}

void normal(std::uint64_t seed, float* out, std::int64_t begin, std::int64_t end) {
  std::int64_t i = begin;
  for (; i < end && i % 4 != 0; ++i) out[i] = random_normal_f32(seed, static_cast<std::uint64_t>(i));
  for (; i + 4 <= end; i += 4) {
    const PhiloxWords w =
        philox4x32(seed, static_cast<std::uint64_t>(i) / 4, static_cast<std::uint32_t>(RandomStream::normal_f32));
    const std::array<float, 2> first = random_normal_pair(w[0], w[1]), second = random_normal_pair(w[2], w[3]);
    std::copy(first.begin(), first.end(), out + i);
    std::copy(second.begin(), second.end(), out + i + 2);
  }
  for (; i < end; ++i) out[i] = random_normal_f32(seed, static_cast<std::uint64_t>(i));
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
