// HandLoops: the limit. Each op of the comparison written by hand for one instruction set: fused, polynomial functions, ordinary
// or non-temporal stores. They handle exactly what the benchmark asks for and nothing else: f32, contiguous, 64-byte aligned,
// a multiple of 64 elements.
#pragma once

#include <cstdint>

namespace bench {

struct HandLoops {
  const char* isa;
  // Elementwise over [0, n); |stream| writes past the caches.
  void (*copy)(const float* a, float* out, std::int64_t n, bool stream);
  void (*add)(const float* a, const float* b, float* out, std::int64_t n, bool stream);
  void (*exp)(const float* a, float* out, std::int64_t n, bool stream);
  void (*tanh)(const float* a, float* out, std::int64_t n, bool stream);
  void (*sigmoid)(const float* a, float* out, std::int64_t n, bool stream);
  void (*gelu_chain)(const float* a, const float* b, float* out, std::int64_t n, bool stream);  // gelu(a * b + 0.5)
  void (*gelu_tanh_chain)(const float* a, const float* b, float* out, std::int64_t n, bool stream);
  double (*sum)(const float* a, std::int64_t n);
  // |rows| rows of |cols| (at most 4096) elements each.
  void (*softmax)(const float* in, float* out, std::int64_t rows, std::int64_t cols, bool stream);
  // out[j][i] = in[i][j] for i in [row, row + rows), all j, of a |size| x |size| matrix.
  void (*transpose)(const float* in, float* out, std::int64_t size, std::int64_t row, std::int64_t rows, bool stream);
};

const HandLoops* hand_loops_v3();  // AVX2 and FMA
const HandLoops* hand_loops_v4();  // AVX-512

}  // namespace bench
