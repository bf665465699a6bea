// The loop of an elementwise kernel over lanes (lanes.h): f32 (kernels_f32.cc) and f64 (kernels_f64.cc).
//
// Compiled once per instruction set, like lanes.h.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/lanes.h"

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
// Past the caches; p aligned to a vector.
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

// --- One op on one vector ---
// By the type's own formula where there is one (kernels_native.h), or by the op's body.
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

// Elements a streaming kernel asks for ahead of those it computes.
inline constexpr std::int64_t kAhead = 512;

// An ElementwiseKernel (kernels.h) of elements T, computed in V; |stream| asks for stores past the caches.
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
      // The hardware does not look as far ahead as a long computation needs.
      for (const void* source : sources) __builtin_prefetch(static_cast<const T*>(source) + i + kAhead);
      store_streaming(result + i, apply_at<Op, T>(sources, i, constants, values, parameters));
    } else {
      store(result + i, apply_at<Op, T>(sources, i, constants, values, parameters));
    }
  }
  if (i == n) return;

  // The rest goes through padded copies: nothing beyond n is read or written.
  const auto rest = static_cast<std::size_t>(n - i);
  T padded[inputs][count];
  const void* copies[inputs];
  for (int k = 0; k < inputs; ++k) {
    const std::size_t bytes = Op::traits.condition && k == 0 ? 1 : sizeof(T);
    for (T& x : padded[k]) x = 1;
    __builtin_memcpy(padded[k], static_cast<const char*>(sources[k]) + static_cast<std::size_t>(i) * bytes, rest * bytes);
    copies[k] = padded[k];
  }
  Result last[count];
  store(last, apply_at<Op, T>(copies, 0, constants, values, parameters));
  __builtin_memcpy(result + i, last, rest * sizeof(Result));
}

}  // namespace
}  // namespace tenon::cpu
