// The elementwise kernels of f32. Compiled once per instruction set (kernels.cmake).
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels_level.h"
#include "backends/cpu/kernels_native.h"

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

template <class V>
TENON_INLINE V load(const float* p) {
  if constexpr (std::is_same_v<V, F32>)
    return F32(load_vector<FloatV>(p));
  else
    return widen(load_vector<HalfFloatV>(p));
}
TENON_INLINE void store(float* p, F32 x) { store_vector(p, x.v); }
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
TENON_INLINE void store(float* p, Wide x) { store_vector(p, narrow(x)); }

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
template <class Op, class... V>
TENON_INLINE auto apply_body(V... values) {
  if constexpr (requires { native(Op{}, values...); })
    return native(Op{}, values...);
  else
    return Op::apply(values...);
}
template <class Op, std::size_t... P>
constexpr bool has_native(std::index_sequence<P...>) {
  return requires { native(Op{}, (static_cast<void>(P), F32{})...); };
}
template <class Op>
inline constexpr bool kHasNative = has_native<Op>(std::make_index_sequence<Op::traits.inputs + Op::traits.params>());

template <class Op, class V, std::size_t... I, std::size_t... P>
TENON_INLINE auto apply_at(const void* const* in, std::int64_t i, const V* params, std::index_sequence<I...>,
                           std::index_sequence<P...>) {
  if constexpr (Op::traits.condition)
    return Op::apply(load_mask<typename V::Type>(static_cast<const std::uint8_t*>(in[0]) + i),
                     load<V>(static_cast<const float*>(in[I + 1]) + i)..., params[P]...);
  else
    return apply_body<Op>(load<V>(static_cast<const float*>(in[I]) + i)..., params[P]...);
}

// Elements a streaming kernel asks for ahead of those it computes.
inline constexpr std::int64_t kAhead = 512;

template <class Op, bool stream = false>
void kernel(const void* const* in, void* out, std::int64_t n, const double* params) {
  if constexpr (stream)
    if (reinterpret_cast<std::uintptr_t>(out) % sizeof(F32) != 0) return kernel<Op>(in, out, n, params);
  using V = std::conditional_t<Op::traits.wide && !kHasNative<Op>, Wide, F32>;
  using Result = std::conditional_t<Op::traits.returns_bool, std::uint8_t, float>;
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
      for (const void* source : sources) __builtin_prefetch(static_cast<const float*>(source) + i + kAhead);
      store_streaming(result + i, apply_at<Op>(sources, i, constants, values, parameters));
    } else {
      store(result + i, apply_at<Op>(sources, i, constants, values, parameters));
    }
  }
  if (i == n) return;

  // The rest goes through padded copies: nothing beyond n is read or written.
  const auto rest = static_cast<std::size_t>(n - i);
  float padded[inputs][count];
  const void* copies[inputs];
  for (int k = 0; k < inputs; ++k) {
    const std::size_t bytes = Op::traits.condition && k == 0 ? 1 : sizeof(float);
    for (float& x : padded[k]) x = 1;
    __builtin_memcpy(padded[k], static_cast<const char*>(sources[k]) + static_cast<std::size_t>(i) * bytes, rest * bytes);
    copies[k] = padded[k];
  }
  Result last[count];
  store(last, apply_at<Op>(copies, 0, constants, values, parameters));
  __builtin_memcpy(result + i, last, rest * sizeof(Result));
}

template <class Op>
constexpr ElementwiseKernel kernel_of() {
  if constexpr ((Op::traits.kinds & kFloats) != 0)
    return kernel<Op>;
  else
    return nullptr;
}

template <class Op>
constexpr ElementwiseKernel streaming_kernel_of() {
  if constexpr ((Op::traits.kinds & kFloats) != 0 && !Op::traits.returns_bool && (!Op::traits.wide || kHasNative<Op>))
    return kernel<Op, true>;
  else
    return nullptr;
}

template <bool stream>
void scale(const float* in, float factor, float* out, std::int64_t n) {
  if constexpr (stream)
    if (reinterpret_cast<std::uintptr_t>(out) % sizeof(F32) != 0) return scale<false>(in, factor, out, n);
  const F32 f(factor);
  std::int64_t i = 0;
  for (; i + F32::kCount <= n; i += F32::kCount) {
    if constexpr (stream)
      store_streaming(out + i, load<F32>(in + i) * f);
    else
      store(out + i, load<F32>(in + i) * f);
  }
  for (; i < n; ++i) out[i] = in[i] * factor;
}

// Op of a multiply-add: an activation after a scale and a shift, in one pass.
template <class Op>
struct AfterMultiplyAdd {
  static constexpr ElementwiseTraits traits{.inputs = 3, .params = Op::traits.params};
  template <class V, class... P>
  TENON_INLINE static V apply(V x, V y, V z, P... params) {
    return apply_body<Op>(fma(x, y, z), params...);
  }
};

}  // namespace

void level::add_f32_kernels(Kernels& table) {
  static constexpr ElementwiseKernel kernels[] = {
#define TENON_X(Name) kernel_of<elementwise::Name>(),
      TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
  };
  static constexpr ElementwiseKernel streaming[] = {
#define TENON_X(Name) streaming_kernel_of<elementwise::Name>(),
      TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
  };
  for (int op = 0; op < kElementwiseCount; ++op) {
    table.elementwise[op][static_cast<int>(DType::f32)] = kernels[op];
    table.streaming[op] = streaming[op];
  }
  table.scale = scale<false>;
  table.streaming_scale = scale<true>;
  // Without FMA instructions the product would be rounded, or the kernel slow.
#if TENON_CPU_LEVEL >= 3
#define TENON_X(Name)                                                                                            \
  table.after_multiply_add[static_cast<int>(ElementwiseOp::Name)] = kernel<AfterMultiplyAdd<elementwise::Name>>; \
  table.streaming_after_multiply_add[static_cast<int>(ElementwiseOp::Name)] = kernel<AfterMultiplyAdd<elementwise::Name>, true>;
  TENON_X(Relu)
  TENON_X(Sigmoid)
  TENON_X(Silu)
  TENON_X(Tanh)
  TENON_X(Gelu)
  TENON_X(GeluTanh)
  TENON_X(Exp)
  TENON_X(Softplus)
#undef TENON_X
#endif
}

}  // namespace tenon::cpu
