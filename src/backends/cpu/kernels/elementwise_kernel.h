// The loop of an elementwise kernel over lanes (lanes.h): f32 (per_level/f32.cpp) and f64 (per_level/f64.cpp).
//
// Compiled once per instruction set, like lanes.h.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/partial.h"

namespace tenon::cpu {
namespace {

// --- Loads and stores; no alignment ---
template <class Vector>
TENON_INLINE Vector load_vector(const void* p) {
  Vector v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class Vector>
TENON_INLINE void store_vector(void* p, Vector v) {
  __builtin_memcpy(p, &v, sizeof v);
}

template <class V, class T>
TENON_INLINE V load(const T* p) {
  if constexpr (std::is_same_v<typename V::Type, T>)
    return V(load_vector<typename V::Vector>(p));
  else
    return widen(load_vector<HalfFloatV>(p));
}
template <class T>
TENON_INLINE void store(T* p, Lanes<T> x) {
  store_vector(p, x.v);
}
TENON_INLINE void store(float* p, Wide x) { store_vector(p, narrow(x)); }
// Streaming stores; p is aligned to a vector.
TENON_INLINE void store_streaming(float* p, F32 x) {
#if TENON_CPU_LEVEL == 4
  _mm512_stream_ps(p, (__m512)x.v);
#elif TENON_CPU_LEVEL == 3
  _mm256_stream_ps(p, (__m256)x.v);
#elif TENON_CPU_LEVEL == 2
  _mm_stream_ps(p, (__m128)x.v);
#else
  store(p, x);
#endif
}

TENON_INLINE void store_streaming(double* p, Wide x) {
#if TENON_CPU_LEVEL == 4
  _mm512_stream_pd(p, (__m512d)x.v);
#elif TENON_CPU_LEVEL == 3
  _mm256_stream_pd(p, (__m256d)x.v);
#elif TENON_CPU_LEVEL == 2
  _mm_stream_pd(p, (__m128d)x.v);
#else
  store(p, x);
#endif
}

// Bools are bytes of 0 and 1.
template <class T>
TENON_INLINE LaneMask<T> load_mask(const std::uint8_t* p) {
  const auto bytes = load_vector<typename LaneTypes<T>::Bytes>(p);
  return LaneMask<T>(__builtin_convertvector(bytes, typename Lanes<T>::Signed) != 0);
}
template <class T>
TENON_INLINE void store(std::uint8_t* p, LaneMask<T> m) {
  store_vector(p, __builtin_convertvector(m.v & 1, typename LaneTypes<T>::Bytes));
}

// --- The first elements of a vector, where there are no more: |n| of them; the others are 1, or true ---
template <class V, class T>
TENON_INLINE V load_some(const T* p, std::int64_t n) {
  using Vector = std::conditional_t<std::is_same_v<typename V::Type, T>, typename V::Vector, HalfFloatV>;
  const Vector vector = load_first<Vector>(p, n * static_cast<std::int64_t>(sizeof(T)), T{1} - Vector{});
  if constexpr (std::is_same_v<typename V::Type, T>)
    return V(vector);
  else
    return widen(vector);
}
template <class T>
TENON_INLINE LaneMask<T> load_some_mask(const std::uint8_t* p, std::int64_t n) {
  using Bytes = typename LaneTypes<T>::Bytes;
  const Bytes bytes = load_first<Bytes>(p, n, std::uint8_t{1} - Bytes{});
  return LaneMask<T>(__builtin_convertvector(bytes, typename Lanes<T>::Signed) != 0);
}
template <class T>
TENON_INLINE void store_some(T* p, Lanes<T> x, std::int64_t n) {
  store_first(p, n * static_cast<std::int64_t>(sizeof(T)), x.v);
}
TENON_INLINE void store_some(float* p, Wide x, std::int64_t n) {
  store_first(p, n * static_cast<std::int64_t>(sizeof(float)), narrow(x));
}
template <class T>
TENON_INLINE void store_some(std::uint8_t* p, LaneMask<T> m, std::int64_t n) {
  store_first(p, n, __builtin_convertvector(m.v & 1, typename LaneTypes<T>::Bytes));
}

// --- One op on one vector ---
// By the type's own formula where there is one (native.h), or by the op's body.
template <class Op, class... V>
TENON_INLINE auto apply_body(V... values) {
  if constexpr (requires { native(Op{}, values...); })
    return native(Op{}, values...);
  else
    return Op::apply(values...);
}

template <class Op, class T, class V, std::size_t... I, std::size_t... P>
TENON_INLINE auto apply_at(const void* const* in, std::int64_t i, const V* params, std::index_sequence<I...>,
                           std::index_sequence<P...>) {
  if constexpr (Op::traits.condition)
    return Op::apply(load_mask<typename V::Type>(static_cast<const std::uint8_t*>(in[0]) + i),
                     load<V>(static_cast<const T*>(in[I + 1]) + i)..., params[P]...);
  else
    return apply_body<Op>(load<V>(static_cast<const T*>(in[I]) + i)..., params[P]...);
}
// The same where only |n| elements are left.
template <class Op, class T, class V, std::size_t... I, std::size_t... P>
TENON_INLINE auto apply_to_last(const void* const* in, std::int64_t i, std::int64_t n, const V* params, std::index_sequence<I...>,
                                std::index_sequence<P...>) {
  if constexpr (Op::traits.condition)
    return Op::apply(load_some_mask<typename V::Type>(static_cast<const std::uint8_t*>(in[0]) + i, n),
                     load_some<V>(static_cast<const T*>(in[I + 1]) + i, n)..., params[P]...);
  else
    return apply_body<Op>(load_some<V>(static_cast<const T*>(in[I]) + i, n)..., params[P]...);
}

// What a NormalizeKernel (kernels.h) computes of x; |multiplies|: by the reciprocal of rows[1].
template <bool multiplies>
struct Normalization {
  F32 shift, divisor, scale, addend;

  explicit Normalization(const float* rows)
      : shift(rows[0]),
        divisor(multiplies ? 1 / rows[1] : rows[1]),
        scale(rows[2]),
        addend(rows[3]) {}
  TENON_INLINE F32 of(F32 x) const { return fma(multiplies ? (x - shift) * divisor : (x - shift) / divisor, scale, addend); }
};
// Calls f(Normalization). The reciprocal of an ordinary number is a normal number; of 0, a subnormal or an infinity it is not.
template <class F>
TENON_INLINE void with_normalization(const float* rows, F f) {
  const float size = __builtin_fabsf(rows[1]);
  if (size > 0x1p-100f && size < 0x1p100f)
    f(Normalization<true>(rows));
  else
    f(Normalization<false>(rows));
}

// How many elements ahead a streaming kernel prefetches.
inline constexpr std::int64_t kAhead = 512;

// An ElementwiseKernel (kernels.h) of elements T, computed in V; |stream| selects streaming stores.
template <class Op, class T, class V, bool stream = false>
void lanes_kernel(const void* const* in, void* out, std::int64_t n, const double* params) {
  if constexpr (stream)
    if (reinterpret_cast<std::uintptr_t>(out) % sizeof(V) != 0) return lanes_kernel<Op, T, V>(in, out, n, params);
  using Result = std::conditional_t<Op::traits.returns_bool, std::uint8_t, T>;
  constexpr int count = V::kCount;
  constexpr int inputs = Op::traits.inputs;
  constexpr auto values = std::make_index_sequence<inputs - (Op::traits.condition ? 1 : 0)>();
  constexpr auto parameters = std::make_index_sequence<Op::traits.params>();

  V constants[Op::traits.params + 1];
  for (int p = 0; p < Op::traits.params; ++p) constants[p] = V(params[p]);

  // Copies of the pointers: for all the compiler knows, a store could change the originals.
  const void* sources[inputs];
  for (int k = 0; k < inputs; ++k) sources[k] = in[k];
  auto* result = static_cast<Result*>(out);
  std::int64_t i = 0;
  for (; i + count <= n; i += count) {
    if constexpr (stream) {
      // The hardware prefetcher does not look far enough ahead for a long computation.
      for (const void* source : sources) __builtin_prefetch(static_cast<const T*>(source) + i + kAhead);
      store_streaming(result + i, apply_at<Op, T>(sources, i, constants, values, parameters));
    } else {
      store(result + i, apply_at<Op, T>(sources, i, constants, values, parameters));
    }
  }
  if (i < n) store_some(result + i, apply_to_last<Op, T>(sources, i, n - i, constants, values, parameters), n - i);
}

}  // namespace
}  // namespace tenon::cpu
