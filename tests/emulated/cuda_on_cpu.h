// What the text of kernels takes from CUDA C++, for a compiler of this machine. A work-item is a fiber (block.h); where
// work-items exchange something, it hands over to the others. Inline assembly has become calls of functions ptx_...
// (kernel_library.h).
#pragma once

#include <math.h>
#include <string.h>

#include "emulated/runner.h"

extern "C" {
__attribute__((visibility("default"))) tenon::emulated::Runner* tenon_runner;
}

#define __CUDA_ARCH__ 900
#define __global__ __attribute__((visibility("default")))
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct uint2 {
  unsigned x, y;
} __align__(8);
struct uint3 {
  unsigned x, y, z;
};
struct uint4 {
  unsigned x, y, z, w;
} __align__(16);
struct dim3 {
  unsigned x, y, z;
};

namespace emulated {

inline uint3 triple(const unsigned (&v)[3]) { return {v[0], v[1], v[2]}; }
inline dim3 extent(const unsigned (&v)[3]) { return {v[0], v[1], v[2]}; }

// A value as the bits that a lane brings, and back.
template <class T>
unsigned long long bits_of(T x) {
  static_assert(sizeof(T) <= 8);
  unsigned long long bits = 0;
  memcpy(&bits, &x, sizeof x);
  return bits;
}
template <class T>
T value_of(unsigned long long bits) {
  T x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace emulated

#define threadIdx emulated::triple(tenon_runner->thread)
#define blockIdx emulated::triple(tenon_runner->block)
#define blockDim emulated::extent(tenon_runner->threads)
#define gridDim emulated::extent(tenon_runner->blocks)

// --- Work-items that meet ---
inline void __syncthreads(int line = __builtin_LINE()) { tenon_runner->barrier(line); }
inline void __syncwarp(unsigned = ~0u, int line = __builtin_LINE()) { tenon_runner->exchange(0, line); }

// The mask is always that of all lanes.
template <class T>
T __shfl_sync(unsigned, T x, int lane, int line = __builtin_LINE()) {
  return emulated::value_of<T>(tenon_runner->exchange(emulated::bits_of(x), line)[lane & 31]);
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int distance, int line = __builtin_LINE()) {
  const int other = tenon_runner->lane ^ distance;
  return emulated::value_of<T>(tenon_runner->exchange(emulated::bits_of(x), line)[other & 31]);
}
template <class T>
T __shfl_up_sync(unsigned, T x, int distance, int line = __builtin_LINE()) {
  const int other = tenon_runner->lane - distance;
  const T found = emulated::value_of<T>(tenon_runner->exchange(emulated::bits_of(x), line)[other & 31]);
  return other < 0 ? x : found;
}
inline unsigned __ballot_sync(unsigned, int is_set, int line = __builtin_LINE()) {
  const int lanes = tenon_runner->lanes;
  const unsigned long long* const all = tenon_runner->exchange(is_set != 0, line);
  unsigned votes = 0;
  for (int lane = 0; lane < lanes; ++lane) votes |= (unsigned)(all[lane] != 0) << lane;
  return votes;
}
inline int __all_sync(unsigned mask, int is_set, int line = __builtin_LINE()) { return __ballot_sync(mask, !is_set, line) == 0; }
inline int __any_sync(unsigned mask, int is_set, int line = __builtin_LINE()) { return __ballot_sync(mask, is_set, line) != 0; }
template <class T>
unsigned __match_any_sync(unsigned, T x, int line = __builtin_LINE()) {
  const int lanes = tenon_runner->lanes;
  const unsigned long long mine = emulated::bits_of(x), *const all = tenon_runner->exchange(mine, line);
  unsigned same = 0;
  for (int lane = 0; lane < lanes; ++lane) same |= (unsigned)(all[lane] == mine) << lane;
  return same;
}
inline int __syncthreads_or(int is_set, int line = __builtin_LINE()) {
  static int any;
  // The first barrier: none clears the flag before all have read the one of the last time.
  __syncthreads(line);
  any = 0;
  __syncthreads(line);
  if (is_set) any = 1;
  __syncthreads(line);
  return any;
}

// --- Atomic operations: no other work-item runs meanwhile ---
template <class T>
T emulated_add(T* p, T x) {
  const T old = *p;
  *p = old + x;
  return old;
}
inline int atomicAdd(int* p, int x) { return (int)emulated_add((unsigned*)p, (unsigned)x); }
inline unsigned atomicAdd(unsigned* p, unsigned x) { return emulated_add(p, x); }
inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long x) { return emulated_add(p, x); }
inline float atomicAdd(float* p, float x) { return emulated_add(p, x); }
inline double atomicAdd(double* p, double x) { return emulated_add(p, x); }
inline int atomicCAS(int* p, int expected, int x) {
  const int old = *p;
  if (old == expected) *p = x;
  return old;
}
inline int atomicMax(int* p, int x) {
  const int old = *p;
  if (x > old) *p = x;
  return old;
}

// --- Numbers ---
inline unsigned __float_as_uint(float x) { return emulated::value_of<unsigned>(emulated::bits_of(x)); }
inline int __float_as_int(float x) { return emulated::value_of<int>(emulated::bits_of(x)); }
inline float __uint_as_float(unsigned x) { return emulated::value_of<float>(emulated::bits_of(x)); }
inline long long __double_as_longlong(double x) { return emulated::value_of<long long>(emulated::bits_of(x)); }
inline double __longlong_as_double(long long x) { return emulated::value_of<double>(emulated::bits_of(x)); }
inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline float __uint2float_rz(unsigned x) {
  const float nearest = (float)x;
  return (unsigned long long)nearest > x ? __uint_as_float(__float_as_uint(nearest) - 1) : nearest;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)y << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i) r |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return r;
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += (signed char)(a >> 8 * i) * (signed char)(b >> 8 * i);
  return c;
}
inline float rsqrtf(float x) { return (float)(1 / sqrt((double)x)); }
// A rough inverse, made better by Newton's steps.
inline float erfinvf(float y) {
  const double size = fabs((double)y);
  if (!(size < 1)) return size == 1 ? copysignf(INFINITY, y) : NAN;
  const double l = log1p(-size * size), a = 2 / (M_PI * 0.147) + l / 2;
  double x = sqrt(sqrt(a * a - l / 0.147) - a);
  for (int step = 0; step < 4; ++step) {
    const double error = size < 0.5 ? erf(x) - size : 1 - size - erfc(x);
    x -= error * sqrt(M_PI) / 2 * exp(x * x);
  }
  return copysignf((float)x, y);
}
template <class T>
T __ldcs(const T* p) {
  return *p;
}

// --- Instructions, with their results first ---
inline float emulated_flushed(float x) { return fabsf(x) < 1.17549435e-38f ? copysignf(0.0f, x) : x; }
inline void ptx_griddepcontrol_launch_dependents() {}
inline void ptx_griddepcontrol_wait() { tenon_runner->wait_for_last(); }
inline void ptx_max_NaN_f32(float& r, float a, float b) { r = a > b || a != a ? a : b; }
inline void ptx_min_NaN_f32(float& r, float a, float b) { r = a < b || a != a ? a : b; }
inline void ptx_rcp_approx_ftz_f32(float& r, float x) { r = emulated_flushed(1.0f / emulated_flushed(x)); }
inline void ptx_rsqrt_approx_ftz_f32(float& r, float x) { r = 1.0f / sqrtf(emulated_flushed(x)); }
inline void ptx_ex2_approx_f32(float& r, float x) { r = exp2f(x); }
inline void ptx_ex2_approx_ftz_f32(float& r, float x) { r = emulated_flushed(exp2f(emulated_flushed(x))); }
inline void ptx_lg2_approx_f32(float& r, float x) { r = log2f(x); }
inline void ptx_mul_wide_u32(unsigned long& r, unsigned x, unsigned y) { r = (unsigned long)x * y; }
// What is no number has some pattern of bits.
inline void ptx_cvt_f32_f16(float& r, unsigned short h) {
  const unsigned magnitude = (unsigned)(h & 0x7fff) << 13;
  const float scaled = __uint_as_float(magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : magnitude) *
                       (magnitude >= 0x0f800000u ? 1.0f : __uint_as_float(0x77800000u));
  r = copysignf(scaled, h & 0x8000 ? -1.0f : 1.0f);
}
inline void ptx_cvt_rn_f16_f32(unsigned short& h, float x) {
  const unsigned sign = __float_as_uint(x) >> 16 & 0x8000u;
  const float size = fabsf(x);
  if (size != size) {
    h = 0x7fff;
  } else if (size >= 65520.0f) {
    h = (unsigned short)(sign | 0x7c00u);
  } else {
    // In units of the last place, which is that of the smallest numbers at least.
    int exponent = 0;
    frexpf(size, &exponent);
    const int unit = (exponent < -13 || size == 0 ? -13 : exponent) - 11;
    const unsigned units = (unsigned)rintf(ldexpf(size, -unit));
    h = (unsigned short)(sign | (units + ((unsigned)(unit + 24) << 10)));
  }
}
inline void ptx_cvt_rn_bf16_f32(unsigned short& b, float x) {
  const unsigned bits = __float_as_uint(x);
  b = (unsigned short)(x != x ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline void ptx_cvt_rn_f16x2_f32(unsigned& r, float high, float low) {
  unsigned short h, l;
  ptx_cvt_rn_f16_f32(h, high);
  ptx_cvt_rn_f16_f32(l, low);
  r = (unsigned)h << 16 | l;
}
inline void ptx_cvt_rn_bf16x2_f32(unsigned& r, float high, float low) {
  unsigned short h, l;
  ptx_cvt_rn_bf16_f32(h, high);
  ptx_cvt_rn_bf16_f32(l, low);
  r = (unsigned)h << 16 | l;
}

// --- Matrices of which each lane of a warp holds a share ---
namespace emulated {

inline float f16_value(unsigned short h) {
  float x;
  ptx_cvt_f32_f16(x, h);
  return x;
}
inline float bf16_value(unsigned short b) { return __uint_as_float((unsigned)b << 16); }
// What all lanes bring, copied before they bring the next.
struct Brought {
  unsigned long long of[32];
};
inline Brought brought(unsigned low, unsigned high, int line) {
  Brought all;
  memcpy(all.of, tenon_runner->exchange((unsigned long long)high << 32 | low, line), sizeof all.of);
  return all;
}
// Element |i| of four, of which two lie in each word.
inline unsigned short half_of(unsigned long long words, int i) { return (unsigned short)(words >> 16 * i); }

// c += a b, of 16 x 16 and 16 x 8 elements. Words of a: rows quad and quad + 8, then both with columns from 8 on.
inline void multiply_matrices(float (*value)(unsigned short), float* const (&c)[4], const unsigned (&a)[4], unsigned b0,
                              unsigned b1, int line) {
  const Brought left = brought(a[0], a[1], line), right = brought(a[2], a[3], line), b = brought(b0, b1, line);
  const int quad = tenon_runner->lane / 4, part = tenon_runner->lane % 4;
  for (int i = 0; i < 4; ++i) {
    const int low = i >= 2, column = part * 2 + i % 2;
    for (int k = 0; k < 16; ++k) {
      const int pair = k % 8 / 2;
      const float x = value(half_of((k < 8 ? left : right).of[quad * 4 + pair], low * 2 + k % 2));
      *c[i] = fmaf(x, value(half_of(b.of[column * 4 + pair], k / 8 * 2 + k % 2)), *c[i]);
    }
  }
}

}  // namespace emulated

inline void ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(float& c0, float& c1, float& c2, float& c3, unsigned a0,
                                                                  unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1,
                                                                  int line = __builtin_LINE()) {
  emulated::multiply_matrices(emulated::f16_value, {&c0, &c1, &c2, &c3}, {a0, a1, a2, a3}, b0, b1, line);
}
inline void ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(float& c0, float& c1, float& c2, float& c3, unsigned a0,
                                                                    unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                                                    unsigned b1, int line = __builtin_LINE()) {
  emulated::multiply_matrices(emulated::bf16_value, {&c0, &c1, &c2, &c3}, {a0, a1, a2, a3}, b0, b1, line);
}
inline void ptx_movmatrix_sync_aligned_m8n8_trans_b16(unsigned& r, unsigned x, int line = __builtin_LINE()) {
  const emulated::Brought all = emulated::brought(x, 0, line);
  const int quad = tenon_runner->lane / 4, part = tenon_runner->lane % 4;
  r = 0;
  for (int i = 0; i < 2; ++i) r |= (unsigned)emulated::half_of(all.of[(part * 2 + i) * 4 + quad / 2], quad % 2) << 16 * i;
}

// A kernel's parameters, each behind a pointer.
namespace emulated {

template <int... i>
struct Places {};
template <int n, int... i>
struct PlacesTo : PlacesTo<n - 1, n - 1, i...> {};
template <int... i>
struct PlacesTo<0, i...> {
  using type = Places<i...>;
};

template <class... A, int... i>
void call(void (*kernel)(A...), const void* const* arguments, Places<i...>) {
  kernel(*(const A*)arguments[i]...);
}
template <class... A>
void call(void (*kernel)(A...), const void* const* arguments) {
  call(kernel, arguments, typename PlacesTo<sizeof...(A)>::type());
}

}  // namespace emulated

#define TENON_RUN(entry)                                                                                             \
  extern "C" __global__ void run_##entry(const void* const* arguments) { emulated::call(entry, arguments); }         \
  extern "C" __attribute__((weak, visibility("hidden"))) char __start_local_of_##entry[], __stop_local_of_##entry[]; \
  extern "C" __global__ char* const local_##entry[2] = {__start_local_of_##entry, __stop_local_of_##entry};
