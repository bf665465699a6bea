// The elementwise ops: one struct each, its body written once.
//
// A body is a template over the value type V (value.h): instantiated with the CPU's SIMD lanes it is that op's kernel, with
// Scalar<double> the reference, with Sym the primitives every code emitter starts from. Bodies are branch-free (select, not if)
// and numerically stable. What users read about an op (parameters, formula, doc) is where they are registered (elementwise.cpp).
//
// A struct has a name, its traits, and apply(inputs..., params...): all of type V, except that a condition is V::Mask. Several
// ops of the catalogue may share one struct (mul, multiply), and one op may choose between several (gelu: Gelu, GeluTanh).
//
// These headers are compiled for several instruction sets; everything in them is a template or constexpr.
#pragma once

#include "ops/elementwise/activations.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/functions.h"
#include "ops/elementwise/logic.h"
#include "tenon/graph.h"

namespace tenon {

// Every elementwise op, once. The order is the numbering of ElementwiseOp.
// clang-format off
#define TENON_ELEMENTWISE_OPS(X) \
  X(Add) X(Sub) X(Mul) X(Div) X(AddAlpha) X(SubAlpha) X(ReverseSub) X(DivNoNan) X(FloorDiv) X(TruncDiv) X(Remainder) \
  X(Fmod) X(Pow) X(Gcd) X(Lcm) X(SquaredDifference) X(Maximum) X(Minimum) X(Fmax) X(Fmin) X(CopySign) X(Ldexp) X(Neg) \
  X(Abs) X(Sign) X(Square) X(Reciprocal) X(Identity) X(Clamp) X(NanToNum) X(Floor) X(Ceil) X(Trunc) X(Round) \
  X(RoundDecimals) X(Frac) X(AddCMul) X(AddCDiv) X(Mac) X(Lerp) X(Where) \
  X(Eq) X(Ne) X(Lt) X(Le) X(Gt) X(Ge) X(Eqz) X(Nez) X(Ltz) X(Lez) X(Gtz) X(Gez) X(IsClose) X(LogicalAnd) X(LogicalOr) \
  X(LogicalXor) X(LogicalNot) X(IsNan) X(IsInf) X(IsFinite) X(IsPosInf) X(IsNegInf) X(SignBit) X(BitwiseAnd) \
  X(BitwiseOr) X(BitwiseXor) X(BitwiseNot) X(LeftShift) X(RightShift) \
  X(Sqrt) X(Rsqrt) X(Cbrt) X(Exp) X(Exp2) X(Expm1) X(Log) X(Log2) X(Log10) X(Log1p) X(Exp10) X(LogAddExp) \
  X(LogAddExp2) X(XLogY) X(XLog1pY) X(Entropy) X(Hypot) X(Sin) X(Cos) X(Tan) X(Asin) X(Acos) X(Atan) X(Sinh) X(Cosh) \
  X(Tanh) X(Asinh) X(Acosh) X(Atanh) X(Atan2) X(Sinc) X(Deg2Rad) X(Rad2Deg) X(Erf) X(Erfc) X(Erfinv) X(Lgamma) X(I0) \
  X(Digamma) X(Ndtr) \
  X(Relu) X(Relu6) X(ReluSquared) X(LeakyRelu) X(Prelu) X(PreluWeights) X(Hardtanh) X(Hardsigmoid) X(Hardswish) \
  X(Threshold) X(Hardshrink) X(Softshrink) X(Heaviside) X(HeavisideValues) X(Sigmoid) X(LogSigmoid) X(Silu) \
  X(Softplus) X(SoftplusBeta) X(Mish) X(Gelu) X(GeluTanh) X(QuickGelu) X(Elu) X(Celu) X(Selu) X(Softsign) \
  X(Tanhshrink) X(Logit)
// clang-format on

enum class ElementwiseOp : std::uint16_t {
#define TENON_X(Name) Name,
  TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
};

inline constexpr ElementwiseTraits kElementwiseTraits[] = {
#define TENON_X(Name) elementwise::Name::traits,
    TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
};
inline constexpr const char* kElementwiseNames[] = {
#define TENON_X(Name) elementwise::Name::name,
    TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
};
inline constexpr int kElementwiseCount = static_cast<int>(sizeof kElementwiseTraits / sizeof kElementwiseTraits[0]);
constexpr const ElementwiseTraits& traits(ElementwiseOp op) { return kElementwiseTraits[static_cast<int>(op)]; }
constexpr const char* name(ElementwiseOp op) { return kElementwiseNames[static_cast<int>(op)]; }

}  // namespace tenon
