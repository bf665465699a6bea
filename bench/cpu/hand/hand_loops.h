// The bodies of HandLoops, written once on the names of vector_v3.h or vector_v4.h. Included by hand_v3.cpp and hand_v4.cpp
// inside no namespace, with BENCH_VECTOR set to v3 or v4.
//
// The coefficients are our own minimax fits (relative error, weighted least squares, Lawson's iteration): exp to 3e-9 on
// [-ln2/2, ln2/2], tanh(x)/x to 2e-8 on [0, 9] and erf(x)/x to 2e-8 on [0, 3.92], the last two as rational functions of x * x.
#pragma once

#include <cmath>

#include "cpu/hand/hand.h"

namespace bench::BENCH_VECTOR {
namespace {

inline V exp_of(V x) {
  x = min(set(kExpMax), max(set(-87.3f), x));
  const V n = round(mul(x, set(1.44269504f)));
  V r = fnma(n, set(0.693359375f), x);
  r = fnma(n, set(-2.12194440e-4f), r);
  V p = fma(set(0.00138144683f), r, set(0.00836878043f));
  p = fma(p, r, set(0.0416683942f));
  p = fma(p, r, set(0.166665201f));
  p = fma(p, r, set(0.499999934f));
  p = fma(mul(r, r), p, add(r, set(1.0f)));
  return scale(p, n);
}

inline V tanh_of(V x) {
  x = min(set(9.0f), max(set(-9.0f), x));
  const V t = mul(x, x);
  V p = fma(set(1.33547089e-08f), t, set(2.06091221e-05f));
  p = fma(p, t, set(0.00349559079f));
  p = fma(p, t, set(0.13381028f));
  p = fma(p, t, set(1.0f));
  V q = fma(set(7.77657935e-07f), t, set(0.000328563901f));
  q = fma(q, t, set(0.0258769926f));
  q = fma(q, t, set(0.467143436f));
  q = fma(q, t, set(1.0f));
  return divide(mul(x, p), q);
}

inline V erf_of(V x) {
  x = min(set(3.92f), max(set(-3.92f), x));
  const V t = mul(x, x);
  V p = fma(set(2.05007011e-06f), t, set(0.000284882908f));
  p = fma(p, t, set(0.00376565815f));
  p = fma(p, t, set(0.052748854f));
  p = fma(p, t, set(0.19040752f));
  p = fma(p, t, set(1.12837915f));
  V q = fma(set(3.80915456e-05f), t, set(0.00116254399f));
  q = fma(q, t, set(0.014969302f));
  q = fma(q, t, set(0.114109539f));
  q = fma(q, t, set(0.502077012f));
  q = fma(q, t, set(1.0f));
  return divide(mul(x, p), q);
}

inline V sigmoid_of(V x) { return reciprocal(add(set(1.0f), exp_of(mul(x, set(-1.0f))))); }

inline V gelu_of(V x) {
  const V half = mul(x, set(0.5f));
  return fma(half, erf_of(mul(x, set(0.707106781f))), half);
}

inline V gelu_tanh_of(V x) {
  const V half = mul(x, set(0.5f));
  return fma(half, tanh_of(mul(x, fma(mul(x, x), set(0.0356774081f), set(0.797884561f)))), half);
}

// out[i] = f(i) over whole vectors, four to an iteration: one cache line (or four) written at a time.
template <class F>
inline void each(float* out, std::int64_t n, bool to_memory, F f) {
  if (to_memory) {
    for (std::int64_t i = 0; i < n; i += 4 * kWidth) {
      const V a = f(i), b = f(i + kWidth), c = f(i + 2 * kWidth), d = f(i + 3 * kWidth);
      stream(out + i, a);
      stream(out + i + kWidth, b);
      stream(out + i + 2 * kWidth, c);
      stream(out + i + 3 * kWidth, d);
    }
    _mm_sfence();
    return;
  }
  for (std::int64_t i = 0; i < n; i += 4 * kWidth) {
    const V a = f(i), b = f(i + kWidth), c = f(i + 2 * kWidth), d = f(i + 3 * kWidth);
    store(out + i, a);
    store(out + i + kWidth, b);
    store(out + i + 2 * kWidth, c);
    store(out + i + 3 * kWidth, d);
  }
}

float horizontal(V v, float (*combine)(float, float)) {
  alignas(64) float lanes[kWidth];
  store(lanes, v);
  float result = lanes[0];
  for (std::int64_t i = 1; i < kWidth; ++i) result = combine(result, lanes[i]);
  return result;
}
float larger(float a, float b) { return a > b ? a : b; }
float plus(float a, float b) { return a + b; }

void copy(const float* a, float* out, std::int64_t n, bool to_memory) {
  each(out, n, to_memory, [=](std::int64_t i) { return load(a + i); });
}
void add_arrays(const float* a, const float* b, float* out, std::int64_t n, bool to_memory) {
  each(out, n, to_memory, [=](std::int64_t i) { return add(load(a + i), load(b + i)); });
}
void exp_array(const float* a, float* out, std::int64_t n, bool to_memory) {
  each(out, n, to_memory, [=](std::int64_t i) { return exp_of(load(a + i)); });
}
void tanh_array(const float* a, float* out, std::int64_t n, bool to_memory) {
  each(out, n, to_memory, [=](std::int64_t i) { return tanh_of(load(a + i)); });
}
void sigmoid_array(const float* a, float* out, std::int64_t n, bool to_memory) {
  each(out, n, to_memory, [=](std::int64_t i) { return sigmoid_of(load(a + i)); });
}
void gelu_chain(const float* a, const float* b, float* out, std::int64_t n, bool to_memory) {
  each(out, n, to_memory, [=](std::int64_t i) { return gelu_of(fma(load(a + i), load(b + i), set(0.5f))); });
}
void gelu_tanh_chain(const float* a, const float* b, float* out, std::int64_t n, bool to_memory) {
  each(out, n, to_memory, [=](std::int64_t i) { return gelu_tanh_of(fma(load(a + i), load(b + i), set(0.5f))); });
}

// Eight independent sums, added up in double every 8192 elements.
double sum(const float* a, std::int64_t n) {
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += 8192) {
    const std::int64_t end = begin + 8192 < n ? begin + 8192 : n;
    V s[8];
    for (V& lane : s) lane = set(0.0f);
    std::int64_t i = begin;
    for (; i + 8 * kWidth <= end; i += 8 * kWidth)
      for (int k = 0; k < 8; ++k) s[k] = add(s[k], load(a + i + k * kWidth));
    for (; i < end; i += kWidth) s[0] = add(s[0], load(a + i));
    total += horizontal(add(add(add(s[0], s[1]), add(s[2], s[3])), add(add(s[4], s[5]), add(s[6], s[7]))), plus);
  }
  return total;
}

// The exponentials of a row stay in the L1 cache between the sum and the scaling; memory is read once and written once.
void softmax(const float* in, float* out, std::int64_t rows, std::int64_t cols, bool to_memory) {
  alignas(64) float scratch[4096];
  for (std::int64_t r = 0; r < rows; ++r, in += cols, out += cols) {
    V m[4];
    for (int k = 0; k < 4; ++k) m[k] = load(in + k * kWidth);
    for (std::int64_t i = 4 * kWidth; i < cols; i += 4 * kWidth)
      for (int k = 0; k < 4; ++k) m[k] = max(m[k], load(in + i + k * kWidth));
    const V top = set(-horizontal(max(max(m[0], m[1]), max(m[2], m[3])), larger));
    V s[4];
    for (V& lane : s) lane = set(0.0f);
    for (std::int64_t i = 0; i < cols; i += 4 * kWidth)
      for (int k = 0; k < 4; ++k) {
        // The next row's maximum waits for memory alone; asking for it here hides that behind the arithmetic.
        _mm_prefetch(reinterpret_cast<const char*>(in + cols + i + k * kWidth), _MM_HINT_T0);
        const V e = exp_of(add(load(in + i + k * kWidth), top));
        store(scratch + i + k * kWidth, e);
        s[k] = add(s[k], e);
      }
    const V factor = set(1.0f / horizontal(add(add(s[0], s[1]), add(s[2], s[3])), plus));
    each(out, cols, to_memory, [&](std::int64_t i) { return mul(load(scratch + i), factor); });
  }
}

template <bool Stream>
void transpose_rows(const float* in, float* out, std::int64_t size, std::int64_t row, std::int64_t rows) {
  for (std::int64_t j = 0; j < size; j += 16)
    for (std::int64_t i = row; i < row + rows; i += 16) transpose_block<Stream>(in + i * size + j, out + j * size + i, size);
  if (Stream) _mm_sfence();
}
void transpose(const float* in, float* out, std::int64_t size, std::int64_t row, std::int64_t rows, bool to_memory) {
  to_memory ? transpose_rows<true>(in, out, size, row, rows) : transpose_rows<false>(in, out, size, row, rows);
}

constexpr HandLoops loops(const char* isa) {
  return {isa, copy, add_arrays, exp_array, tanh_array, sigmoid_array, gelu_chain, gelu_tanh_chain, sum, softmax, transpose};
}

}  // namespace
}  // namespace bench::BENCH_VECTOR
