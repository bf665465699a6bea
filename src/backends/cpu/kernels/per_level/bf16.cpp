// Elementwise kernels that read and write bf16 or f16 and compute in f32 lanes: for cheap ops, whose time would otherwise go into
// passes that convert. Compiled once per instruction set (kernels.cmake).
//
// A vector holds pairs of bf16. Those in the upper halves of its words are f32 numbers once the lower halves are cleared, those
// in the lower halves once they are shifted up, so that no element has to change places.
#include "backends/cpu/kernels/elementwise_kernel.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/level.h"
#include "backends/cpu/kernels/native.h"

namespace tenon::cpu {
namespace {

inline constexpr std::uint32_t kUpper = 0xffff'0000u;

TENON_INLINE F32 lower_half(Uint32V pairs) { return F32((FloatV)(pairs << 16)); }
TENON_INLINE F32 upper_half(Uint32V pairs) { return F32((FloatV)(pairs & kUpper)); }

// Rounded to nearest even, in the upper halves; a NaN stays one.
TENON_INLINE Uint32V rounded(F32 x) {
  const auto bits = (Uint32V)x.v;
  const Uint32V nearest = bits + 0x7fffu + ((bits >> 16) & 1u);
  return (Uint32V)((Int32V)(x.v != x.v) ? (Int32V)(bits | 0x0040'0000u) : (Int32V)nearest);
}

// The results of bf16 operands are bf16 numbers.
template <class Op>
inline constexpr bool kIsExact = false;
template <>
inline constexpr bool kIsExact<elementwise::Abs> = true;
template <>
inline constexpr bool kIsExact<elementwise::Neg> = true;
template <>
inline constexpr bool kIsExact<elementwise::CopySign> = true;
template <>
inline constexpr bool kIsExact<elementwise::Identity> = true;
template <>
inline constexpr bool kIsExact<elementwise::Relu> = true;
template <>
inline constexpr bool kIsExact<elementwise::Round> = true;

TENON_INLINE Uint32V rounded_pairs(F32 lower, F32 upper) { return (rounded(lower) >> 16) | (rounded(upper) & kUpper); }

// Two vectors of f32 from one of a format's elements, and back.
struct Bf16Pairs {
  static constexpr std::uint32_t kOnes = 0x3f80'3f80u;
  static constexpr bool kOverflows = true;  // it has the exponents of f32
  TENON_INLINE static F32 first(Uint32V pairs) { return lower_half(pairs); }
  TENON_INLINE static F32 second(Uint32V pairs) { return upper_half(pairs); }
  template <class Op>
  TENON_INLINE static Uint32V of(F32 lower, F32 upper) {
    if constexpr (kIsExact<Op>)
      return ((Uint32V)lower.v >> 16) | (Uint32V)upper.v;
    else
      return rounded_pairs(lower, upper);
  }
};
#if TENON_CPU_LEVEL >= 3
struct F16Halves {
  static constexpr std::uint32_t kOnes = 0x3c00'3c00u;
  static constexpr bool kOverflows = false;
#if TENON_CPU_LEVEL == 4
  TENON_INLINE static F32 first(Uint32V x) { return F32((FloatV)_mm512_cvtph_ps(_mm512_castsi512_si256((__m512i)x))); }
  TENON_INLINE static F32 second(Uint32V x) { return F32((FloatV)_mm512_cvtph_ps(_mm512_extracti64x4_epi64((__m512i)x, 1))); }
  template <class Op>
  TENON_INLINE static Uint32V of(F32 first, F32 second) {
    const __m256i low = _mm512_cvtps_ph((__m512)first.v, 0), high = _mm512_cvtps_ph((__m512)second.v, 0);
    return (Uint32V)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
#else
  TENON_INLINE static F32 first(Uint32V x) { return F32((FloatV)_mm256_cvtph_ps(_mm256_castsi256_si128((__m256i)x))); }
  TENON_INLINE static F32 second(Uint32V x) { return F32((FloatV)_mm256_cvtph_ps(_mm256_extracti128_si256((__m256i)x, 1))); }
  template <class Op>
  TENON_INLINE static Uint32V of(F32 first, F32 second) {
    const __m128i low = _mm256_cvtps_ph((__m256)first.v, 0), high = _mm256_cvtps_ph((__m256)second.v, 0);
    return (Uint32V)_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
  }
#endif
};
#endif

// Of several operations one may overflow where the result does not, if |overflows|. Those lanes are wide.
template <class Op, bool overflows, class... V>
TENON_INLINE F32 apply_in_f32(V... values) {
  const F32 result = [&] {
    if constexpr (std::is_same_v<Op, elementwise::Lerp>)
      return Op::apply(values...);  // 16 bits do not show what the native one corrects
    else
      return apply_body<Op>(values...);
  }();
  if constexpr (overflows && Op::traits.wide && !(kLevelHasFma && std::is_same_v<Op, elementwise::Mac>)) {
    const LaneMask<float> infinite = !(abs(result) <= F32(std::numeric_limits<float>::max()));
    if (any(infinite)) {
      const F32 wide(join(narrow(Op::apply(widen(low_half(values.v))...)), narrow(Op::apply(widen(high_half(values.v))...))));
      return select(infinite, wide, result);
    }
  }
  return result;
}

template <class Op, class Format, std::size_t... I, std::size_t... P>
TENON_INLINE Uint32V apply_to_pairs(const Uint32V* in, const F32* params, std::index_sequence<I...>, std::index_sequence<P...>) {
  return Format::template of<Op>(apply_in_f32<Op, Format::kOverflows>(Format::first(in[I])..., params[P]...),
                                 apply_in_f32<Op, Format::kOverflows>(Format::second(in[I])..., params[P]...));
}

template <class Op, class Format>
void kernel_of_16_bits(const void* const* in, void* out, std::int64_t n, const double* params) {
  constexpr std::int64_t count = 2 * F32::kCount;
  constexpr int inputs = Op::traits.inputs;
  constexpr auto operands = std::make_index_sequence<inputs>();
  constexpr auto parameters = std::make_index_sequence<Op::traits.params>();
  F32 constants[Op::traits.params + 1];
  for (int p = 0; p < Op::traits.params; ++p) constants[p] = F32(params[p]);
  const std::uint16_t* sources[inputs];
  for (int k = 0; k < inputs; ++k) sources[k] = static_cast<const std::uint16_t*>(in[k]);
  auto* result = static_cast<std::uint16_t*>(out);
  Uint32V pairs[inputs];
  std::int64_t i = 0;
  for (; i + count <= n; i += count) {
    for (int k = 0; k < inputs; ++k) pairs[k] = load_vector<Uint32V>(sources[k] + i);
    store_vector(result + i, apply_to_pairs<Op, Format>(pairs, constants, operands, parameters));
  }
  if (i == n) return;
  const std::int64_t bytes = 2 * (n - i);
  for (int k = 0; k < inputs; ++k) pairs[k] = load_first<Uint32V>(sources[k] + i, bytes, Uint32V{} + Format::kOnes);
  store_first(result + i, bytes, apply_to_pairs<Op, Format>(pairs, constants, operands, parameters));
}

#if TENON_CPU_LEVEL >= 3
void normalize_bf16(const void* in, const float* rows, void* out, std::int64_t n) {
  constexpr std::int64_t count = 2 * F32::kCount;
  const auto* source = static_cast<const std::uint16_t*>(in);
  auto* result = static_cast<std::uint16_t*>(out);
  with_normalization(rows, [&](const auto& by) {
    const auto of = [&](Uint32V pairs) { return rounded_pairs(by.of(lower_half(pairs)), by.of(upper_half(pairs))); };
    std::int64_t i = 0;
    for (; i + count <= n; i += count) store_vector(result + i, of(load_vector<Uint32V>(source + i)));
    if (i < n) store_first(result + i, 2 * (n - i), of(load_first<Uint32V>(source + i, 2 * (n - i), Uint32V{})));
  });
}
#endif

}  // namespace

void level::add_bf16_kernels(Kernels& table) {
#if TENON_CPU_LEVEL >= 3
#define TENON_X(Name)                                                                                              \
  table.elementwise_bf16[static_cast<int>(ElementwiseOp::Name)] = kernel_of_16_bits<elementwise::Name, Bf16Pairs>; \
  table.elementwise_f16[static_cast<int>(ElementwiseOp::Name)] = kernel_of_16_bits<elementwise::Name, F16Halves>;
#else
#define TENON_X(Name) \
  table.elementwise_bf16[static_cast<int>(ElementwiseOp::Name)] = kernel_of_16_bits<elementwise::Name, Bf16Pairs>;
#endif
  TENON_X(Add)
  TENON_X(Sub)
  TENON_X(AddAlpha)
  TENON_X(SubAlpha)
  TENON_X(Mul)
  TENON_X(Div)
  TENON_X(Mac)
  TENON_X(Lerp)
  TENON_X(Neg)
  TENON_X(Abs)
  TENON_X(CopySign)
  TENON_X(Identity)
  TENON_X(Relu)
  TENON_X(Round)
  TENON_X(Square)
  TENON_X(Sqrt)
  TENON_X(Rsqrt)
  TENON_X(Reciprocal)
#undef TENON_X
  // In f16 too many digits of the quotient are left when it cancels.
  table.elementwise_bf16[static_cast<int>(ElementwiseOp::AddCDiv)] = kernel_of_16_bits<elementwise::AddCDiv, Bf16Pairs>;
#if TENON_CPU_LEVEL >= 3
  table.normalize_bf16 = normalize_bf16;
#endif
}

}  // namespace tenon::cpu
