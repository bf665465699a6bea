#include "ops/elementwise/reference.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "tenon/error.h"

namespace tenon {
namespace {

using value::Scalar;

using Evaluator = void (*)(const void* const* in, void* out, std::int64_t n, const double* params);

template <class Op, class T, std::size_t... I, std::size_t... P>
auto apply_at(const void* const* in, std::int64_t i, const Scalar<T>* params, std::index_sequence<I...>,
              std::index_sequence<P...>) {
  using V = Scalar<T>;
  const auto element = [&](std::size_t k) { return V(static_cast<const T*>(in[k])[i]); };
  if constexpr (Op::traits.condition) {
    const typename V::Mask condition(static_cast<const std::uint8_t*>(in[0])[i] != 0);
    return Op::template apply<V>(condition, element(I + 1)..., params[P]...);
  } else {
    return Op::template apply<V>(element(I)..., params[P]...);
  }
}

template <class Op, class T>
void evaluate_all(const void* const* in, void* out, std::int64_t n, const double* params) {
  constexpr std::size_t values = Op::traits.inputs - (Op::traits.condition ? 1 : 0);
  std::array<Scalar<T>, Op::traits.params + 1> converted{};
  for (std::size_t p = 0; p < Op::traits.params; ++p) converted[p] = Scalar<T>(params[p]);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto result = apply_at<Op, T>(in, i, converted.data(), std::make_index_sequence<values>{},
                                        std::make_index_sequence<Op::traits.params>{});
    if constexpr (Op::traits.returns_bool)
      static_cast<std::uint8_t*>(out)[i] = result ? 1 : 0;
    else
      static_cast<T*>(out)[i] = result.v;
  }
}

template <class Op>
Evaluator evaluator_of(DType dtype) {
  constexpr ValueKinds kinds = Op::traits.kinds;
  if constexpr ((kinds & kFloats) != 0) {
    if (dtype == DType::f64) return evaluate_all<Op, double>;
  }
  if constexpr ((kinds & kBools) != 0) {
    if (dtype == DType::boolean) return evaluate_all<Op, std::uint8_t>;
  }
  if constexpr ((kinds & kIntegers) != 0) {
    switch (dtype) {
      case DType::u8: return evaluate_all<Op, std::uint8_t>;
      case DType::u16: return evaluate_all<Op, std::uint16_t>;
      case DType::u32: return evaluate_all<Op, std::uint32_t>;
      case DType::u64: return evaluate_all<Op, std::uint64_t>;
      case DType::i8: return evaluate_all<Op, std::int8_t>;
      case DType::i16: return evaluate_all<Op, std::int16_t>;
      case DType::i32: return evaluate_all<Op, std::int32_t>;
      case DType::i64: return evaluate_all<Op, std::int64_t>;
      default: break;
    }
  }
  return nullptr;
}

Evaluator evaluator(ElementwiseOp op, DType dtype) {
  switch (op) {
#define TENON_X(Name, ...) \
  case ElementwiseOp::Name: return evaluator_of<elementwise::Name>(dtype);
    TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
  }
  return nullptr;
}

}  // namespace

void evaluate_block(ElementwiseOp op, DType dtype, const void* const* in, void* out, std::int64_t n, const double* params) {
  const Evaluator run = evaluator(op, dtype);
  if (!run) throw Error(ErrorCode::internal, fmt::format("{} cannot be evaluated in {}", name(op), name(dtype)));
  run(in, out, n, params);
}

double evaluate(ElementwiseOp op, const double* in, const double* params) {
  const ElementwiseTraits& t = traits(op);
  const bool floats = (t.kinds & kFloats) != 0;
  constexpr int kMaxInputs = 3;
  std::int64_t integers[kMaxInputs] = {};
  std::uint8_t condition = 0;
  const void* pointers[kMaxInputs] = {};
  for (int i = 0; i < t.inputs; ++i) {
    integers[i] = Scalar<std::int64_t>(in[i]).v;
    pointers[i] = floats ? static_cast<const void*>(&in[i]) : &integers[i];
  }
  if (t.condition) {
    condition = in[0] != 0 ? 1 : 0;
    pointers[0] = &condition;
  }
  double real = 0;
  std::int64_t whole = 0;
  std::uint8_t truth = 0;
  void* out = t.returns_bool ? static_cast<void*>(&truth) : floats ? static_cast<void*>(&real) : &whole;
  evaluate_block(op, floats ? DType::f64 : DType::i64, pointers, out, 1, params);
  return t.returns_bool ? truth : floats ? real : static_cast<double>(whole);
}

}  // namespace tenon
