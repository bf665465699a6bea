// The elementwise kernels of f32. Compiled once per instruction set (kernels.cmake).
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/elementwise_kernel.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/level.h"
#include "backends/cpu/kernels/native.h"

namespace tenon::cpu {
namespace {

template <class Op, std::size_t... P>
constexpr bool has_native(std::index_sequence<P...>) {
  return requires { native(Op{}, (static_cast<void>(P), F32{})...); };
}
template <class Op>
inline constexpr bool kHasNative = has_native<Op>(std::make_index_sequence<Op::traits.inputs + Op::traits.params>());

template <class Op, bool stream = false>
void kernel(const void* const* in, void* out, std::int64_t n, const double* params) {
  using V = std::conditional_t<Op::traits.wide && !kHasNative<Op>, Wide, F32>;
  lanes_kernel<Op, float, V, stream>(in, out, n, params);
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
  if constexpr ((Op::traits.kinds & kFloats) != 0 && !Op::traits.returns_bool &&
                (!Op::traits.wide || (kHasNative<Op> && !kIsLong<Op>)))
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
  if (i < n) store_some(out + i, load_some<F32>(in + i, n - i) * f, n - i);
}

// One element on the right for all on the left: for a multiply-add, one factor and one addend.
template <class Op, bool stream = false>
void kernel_with_one(const void* const* in, void* out, std::int64_t n, const double* params) {
  if constexpr (stream)
    if (reinterpret_cast<std::uintptr_t>(out) % sizeof(F32) != 0) return kernel_with_one<Op>(in, out, n, params);
  const auto* left = static_cast<const float*>(in[0]);
  const F32 right(*static_cast<const float*>(in[1]));
  const F32 addend(Op::traits.inputs == 3 ? *static_cast<const float*>(in[2]) : 0.0f);
  const auto of = [&](F32 x) {
    if constexpr (Op::traits.inputs == 3)
      return apply_body<Op>(x, right, addend);
    else
      return Op::apply(x, right);
  };
  auto* result = static_cast<float*>(out);
  std::int64_t i = 0;
  for (; i + F32::kCount <= n; i += F32::kCount) {
    const F32 value = of(load<F32>(left + i));
    if constexpr (stream)
      store_streaming(result + i, value);
    else
      store(result + i, value);
  }
  if (i < n) store_some(result + i, of(load_some<F32>(left + i, n - i)), n - i);
}

// The deviation of a row from one value, combined with another value: the last step of a normalisation. Also for f64, whose other
// kernels are in f64.cpp.
template <class Op, class T, bool stream = false>
void kernel_of_deviation(const void* const* in, void* out, std::int64_t n, const double* params) {
  using V = Lanes<T>;
  if constexpr (stream)
    if (reinterpret_cast<std::uintptr_t>(out) % sizeof(V) != 0) return kernel_of_deviation<Op, T>(in, out, n, params);
  const auto* source = static_cast<const T*>(in[0]);
  const V shift(*static_cast<const T*>(in[1]));
  const T one = *static_cast<const T*>(in[2]);
  if constexpr (std::is_same_v<Op, elementwise::Div> && std::is_same_v<T, float>)
    // The reciprocal of an ordinary number is a normal number; of 0, a subnormal or an infinity it is not.
    if (__builtin_fabsf(one) > 0x1p-100f && __builtin_fabsf(one) < 0x1p100f) {
      const T reciprocal = 1 / one;
      const void* product[] = {in[0], in[1], &reciprocal};
      return kernel_of_deviation<elementwise::Mul, T, stream>(product, out, n, params);
    }
  const V operand(one);
  auto* result = static_cast<T*>(out);
  std::int64_t i = 0;
  for (; i + V::kCount <= n; i += V::kCount) {
    const V value = Op::apply(load<V>(source + i) - shift, operand);
    if constexpr (stream)
      store_streaming(result + i, value);
    else
      store(result + i, value);
  }
  if (i < n) store_some(result + i, Op::apply(load_some<V>(source + i, n - i) - shift, operand), n - i);
}

template <bool stream>
void normalize(const void* in, const float* rows, void* out, std::int64_t n) {
  if constexpr (stream)
    if (reinterpret_cast<std::uintptr_t>(out) % sizeof(F32) != 0) return normalize<false>(in, rows, out, n);
  const auto* source = static_cast<const float*>(in);
  auto* result = static_cast<float*>(out);
  with_normalization(rows, [&](const auto& by) {
    std::int64_t i = 0;
    for (; i + F32::kCount <= n; i += F32::kCount) {
      const F32 value = by.of(load<F32>(source + i));
      if constexpr (stream)
        store_streaming(result + i, value);
      else
        store(result + i, value);
    }
    if (i < n) store_some(result + i, by.of(load_some<F32>(source + i, n - i)), n - i);
  });
}

// The quotient by a product with the reciprocal is at most 2^-22.9 of it away from that in doubles: limited to 512, 2^-13.9. Only
// where it is so close to half-way between two integers does the division in doubles decide.
void quantize(const void* const* in, void* out, std::int64_t n, const double* params) {
  const auto* source = static_cast<const float*>(in[0]);
  auto* result = static_cast<std::uint8_t*>(out);
  const double scale = params[0], zero_point = params[1], low = params[2], high = params[3];
  const F32 zero(zero_point), lowest(low), highest(high);
  const F32 first(low - zero_point - 1), last(high - zero_point + 1);
  // The reciprocal of an ordinary number is a normal number. Of others, every division is in doubles.
  const bool is_ordinary = scale > 0x1p-100 && scale < 0x1p100;
  const F32 reciprocal(is_ordinary ? 1 / scale : 1.0);
  const F32 close(is_ordinary ? 0.5f - 0x1p-13f : -1.0f);
  const auto of = [&](F32 x) {
    const F32 quotient = hardware_min(last, hardware_max(first, x * reciprocal)), nearest = rint(quotient);
    const F32 steps = hardware_min(highest, hardware_max(lowest, nearest + zero));
    const F32 y = replaced_where(abs(quotient - nearest) > close, steps, x, [&](Wide a) {
      return min(max(rint(a / Wide(scale)) + Wide(zero_point), Wide(low)), Wide(high));
    });
    return __builtin_convertvector(__builtin_convertvector(select(is_nan(x), F32(0.0f), y).v, Int32V), FloatBytesV);
  };
  std::int64_t i = 0;
  for (; i + F32::kCount <= n; i += F32::kCount) store_vector(result + i, of(load<F32>(source + i)));
  if (i < n) store_first(result + i, n - i, of(load_some<F32>(source + i, n - i)));
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
#define TENON_X(Name, ...) kernel_of<elementwise::Name>(),
      TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
  };
  static constexpr ElementwiseKernel streaming[] = {
#define TENON_X(Name, ...) streaming_kernel_of<elementwise::Name>(),
      TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
  };
  for (int op = 0; op < kElementwiseCount; ++op) {
    table.elementwise[op][static_cast<int>(DType::f32)] = kernels[op];
    table.streaming[op] = streaming[op];
  }
#define TENON_X(Name)                                                                         \
  table.with_one[static_cast<int>(ElementwiseOp::Name)] = kernel_with_one<elementwise::Name>; \
  table.streaming_with_one[static_cast<int>(ElementwiseOp::Name)] = kernel_with_one<elementwise::Name, true>;
  TENON_X(Add)
  TENON_X(Sub)
  TENON_X(Mul)
  TENON_X(Maximum)
  TENON_X(Minimum)
#if TENON_CPU_LEVEL >= 3
  TENON_X(Mac)  // elsewhere it needs wide lanes
#endif
#undef TENON_X
#define TENON_X(Name, dtype, Type)                                                                 \
  table.deviation_with[static_cast<int>(ElementwiseOp::Name)][static_cast<int>(dtype)] =           \
      kernel_of_deviation<elementwise::Name, Type>;                                                \
  table.streaming_deviation_with[static_cast<int>(ElementwiseOp::Name)][static_cast<int>(dtype)] = \
      kernel_of_deviation<elementwise::Name, Type, true>;
  TENON_X(Sub, DType::f32, float)
  TENON_X(Mul, DType::f32, float)
  TENON_X(Div, DType::f32, float)
  TENON_X(Sub, DType::f64, double)
  TENON_X(Mul, DType::f64, double)
  TENON_X(Div, DType::f64, double)
#undef TENON_X
  table.quantize = quantize;
  table.scale = scale<false>;
  table.streaming_scale = scale<true>;
  // Without FMA instructions the product would be rounded, or the kernel slow.
#if TENON_CPU_LEVEL >= 3
  table.normalize = normalize<false>;
  table.streaming_normalize = normalize<true>;
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
