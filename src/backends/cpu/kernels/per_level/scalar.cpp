// The elementwise kernels of the integers, bool, and f64 where f64.cpp has none: loops over Scalar<T>, which the compiler
// vectorises where it can.
// Compiled once per instruction set (kernels.cmake).
//
// The bodies and Scalar are included into an unnamed namespace: this file's instantiations of them are its own, and the linker
// cannot take one compiled for AVX-512 for all. What they include themselves must therefore come first.
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>
#include <utility>

#include "backends/cpu/kernels/level.h"
#include "tenon/graph.h"

namespace tenon::cpu {
namespace {

#include "ops/elementwise/elementwise.h"

namespace elementwise = tenon::elementwise;
template <class T>
using Scalar = tenon::value::Scalar<T>;

template <class Op, class T, std::size_t... I, std::size_t... P>
[[gnu::always_inline]] inline auto apply_at(const void* const* in, std::int64_t i, const Scalar<T>* params,
                                            std::index_sequence<I...>, std::index_sequence<P...>) {
  using V = Scalar<T>;
  if constexpr (Op::traits.condition) {
    const typename V::Mask condition(static_cast<const std::uint8_t*>(in[0])[i] != 0);
    return Op::template apply<V>(condition, V(static_cast<const T*>(in[I + 1])[i])..., params[P]...);
  } else {
    return Op::template apply<V>(V(static_cast<const T*>(in[I])[i])..., params[P]...);
  }
}

template <class Op, class T>
void kernel(const void* const* in, void* out, std::int64_t n, const double* params) {
  constexpr auto values = std::make_index_sequence<Op::traits.inputs - (Op::traits.condition ? 1 : 0)>();
  constexpr auto parameters = std::make_index_sequence<Op::traits.params>();
  // Local copies, which the compiler knows nothing else writes to.
  const void* inputs[Op::traits.inputs];
  for (int k = 0; k < Op::traits.inputs; ++k) inputs[k] = in[k];
  Scalar<T> constants[Op::traits.params + 1] = {};
  for (int p = 0; p < Op::traits.params; ++p) constants[p] = Scalar<T>(params[p]);

  if constexpr (Op::traits.returns_bool) {
    auto* result = static_cast<std::uint8_t*>(out);
    TENON_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) result[i] = apply_at<Op, T>(inputs, i, constants, values, parameters) ? 1 : 0;
  } else {
    auto* result = static_cast<T*>(out);
    TENON_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) result[i] = apply_at<Op, T>(inputs, i, constants, values, parameters).v;
  }
}

// --- Divisions of integers of up to 32 bits: by floats that hold their quotients, because CPUs divide no vectors of integers ---
// Rounded towards zero; 0 where y is 0. A quotient that is not whole is farther from the next integer than a rounding.
template <class T>
[[gnu::always_inline]] inline T truncated_quotient(T x, T y) {
  using F = std::conditional_t<(sizeof(T) < 4), float, double>;
  using Whole = std::conditional_t<(sizeof(T) < 4), std::int32_t, T>;
  using Bits = std::make_unsigned_t<T>;
  const bool is_negation = std::is_signed_v<T> && y == static_cast<T>(-1), is_ordinary = y != 0 && !is_negation;
  const F quotient = static_cast<F>(x) / static_cast<F>(is_ordinary ? y : T{1});
  const T negated = static_cast<T>(Bits{0} - static_cast<Bits>(x));  // wraps
  return is_ordinary ? static_cast<T>(static_cast<Whole>(quotient)) : is_negation ? negated : T{0};
}

template <class Op, class T>
[[gnu::always_inline]] inline T divided(T x, T y) {
  const T quotient = truncated_quotient(x, y);
  if constexpr (std::is_same_v<Op, elementwise::TruncDiv>) return quotient;
  const auto product = static_cast<std::uint32_t>(quotient) * static_cast<std::uint32_t>(y);
  const T rest = y == 0 ? T{0} : static_cast<T>(static_cast<std::uint32_t>(x) - product);
  if constexpr (std::is_same_v<Op, elementwise::Fmod>) return rest;
  bool rounds_down = false;
  if constexpr (std::is_signed_v<T>) rounds_down = rest != 0 && (x < 0) != (y < 0);
  if constexpr (std::is_same_v<Op, elementwise::FloorDiv>) return static_cast<T>(quotient - (rounds_down ? 1 : 0));
  return static_cast<T>(rest + (rounds_down ? y : T{0}));
}

template <class Op, class T>
void division(const void* const* in, void* out, std::int64_t n, const double*) {
  const auto *x = static_cast<const T*>(in[0]), *y = static_cast<const T*>(in[1]);
  auto* result = static_cast<T*>(out);
  TENON_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) result[i] = divided<Op>(x[i], y[i]);
}

template <class Op>
inline constexpr bool kDivides = std::is_same_v<Op, elementwise::TruncDiv> || std::is_same_v<Op, elementwise::FloorDiv> ||
                                 std::is_same_v<Op, elementwise::Fmod> || std::is_same_v<Op, elementwise::Remainder>;

template <class Op, class T>
constexpr auto integer_kernel() {
  if constexpr (kDivides<Op> && sizeof(T) <= 4)
    return division<Op, T>;
  else
    return kernel<Op, T>;
}

// Where the C library has functions of vectors, f64.cpp has the others.
template <class Op>
constexpr bool computes_f64() {
#ifdef TENON_HAS_VECTOR_FUNCTIONS
  return (Op::traits.kinds & tenon::kFloats) != 0 && Op::traits.cancels;
#else
  return (Op::traits.kinds & tenon::kFloats) != 0;
#endif
}

template <class Op>
void add_op(ElementwiseRow& row) {
  if constexpr (computes_f64<Op>()) row[static_cast<int>(DType::f64)] = kernel<Op, double>;
  if constexpr ((Op::traits.kinds & tenon::kBools) != 0) row[static_cast<int>(DType::boolean)] = kernel<Op, std::uint8_t>;
  if constexpr ((Op::traits.kinds & tenon::kIntegers) != 0) {
    row[static_cast<int>(DType::u8)] = integer_kernel<Op, std::uint8_t>();
    row[static_cast<int>(DType::u16)] = integer_kernel<Op, std::uint16_t>();
    row[static_cast<int>(DType::u32)] = integer_kernel<Op, std::uint32_t>();
    row[static_cast<int>(DType::u64)] = integer_kernel<Op, std::uint64_t>();
    row[static_cast<int>(DType::i8)] = integer_kernel<Op, std::int8_t>();
    row[static_cast<int>(DType::i16)] = integer_kernel<Op, std::int16_t>();
    row[static_cast<int>(DType::i32)] = integer_kernel<Op, std::int32_t>();
    row[static_cast<int>(DType::i64)] = integer_kernel<Op, std::int64_t>();
  }
}

}  // namespace

void level::add_scalar_kernels(ElementwiseRow* row) {
#define TENON_X(Name, ...) add_op<elementwise::Name>(*row++);
  TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
}

}  // namespace tenon::cpu
