// The elementwise ops of a graph: number, name and traits of each. Their formulas are in src/ops/elementwise.
//
// Several ops of the catalogue may share one of these (mul, multiply), and one op may choose between several (gelu: Gelu,
// GeluTanh).
#pragma once

#include <cstdint>

#include "tenon/graph.h"

namespace tenon {

enum ValueKinds : std::uint8_t {
  kFloats = 1,
  kIntegers = 2,
  kBools = 4,
  kNumbers = kFloats | kIntegers,
  kBits = kIntegers | kBools,
  kAll = 7
};

struct ElementwiseTraits {
  int inputs = 1;
  int params = 0;
  // The types on which the body computes. Inputs of another kind are converted: bool to i32 if integers are allowed, integers
  // (and bool) to f32 if only floats are; float inputs of an integer op are refused.
  ValueKinds kinds = kFloats;
  bool returns_bool = false;
  bool condition = false;  // the first input is a bool mask, not converted
  // Evaluate f32 in double lanes and round once. For bodies whose f32 evaluation would lose more than 4 ULP and that are not
  // worth a careful f32 version, and for bodies that compare with a parameter, so that f32 and the reference agree on the side
  // on which a value lies.
  bool wide = false;
  // The result can be a small difference of large terms, so only the last digits of a function remain: in f64 use the C library's
  // scalar functions, which are more accurate than its vector functions.
  bool cancels = false;
};

// X(Name, "name", traits): every elementwise op, once. The order is the numbering of ElementwiseOp.
// clang-format off
#define TENON_ELEMENTWISE_OPS(X) \
  X(Add, "add", .inputs = 2, .kinds = kNumbers) \
  X(Sub, "sub", .inputs = 2, .kinds = kNumbers) \
  X(Mul, "mul", .inputs = 2, .kinds = kNumbers) \
  X(Div, "div", .inputs = 2) \
  X(AddAlpha, "addalpha", .inputs = 2, .params = 1, .kinds = kNumbers, .wide = true) \
  X(SubAlpha, "subalpha", .inputs = 2, .params = 1, .kinds = kNumbers, .wide = true) \
  X(ReverseSub, "rsub", .inputs = 2, .params = 1, .kinds = kNumbers, .wide = true) \
  X(DivNoNan, "div_no_nan", .inputs = 2) \
  X(FloorDiv, "floor_div", .inputs = 2, .kinds = kNumbers, .wide = true) \
  X(TruncDiv, "trunc_div", .inputs = 2, .kinds = kNumbers, .wide = true) \
  X(Remainder, "remainder", .inputs = 2, .kinds = kNumbers) \
  X(Fmod, "fmod", .inputs = 2, .kinds = kNumbers) \
  X(Pow, "pow", .inputs = 2, .kinds = kNumbers, .wide = true) \
  X(Gcd, "gcd", .inputs = 2, .kinds = kIntegers) \
  X(Lcm, "lcm", .inputs = 2, .kinds = kIntegers) \
  X(SquaredDifference, "squared_difference", .inputs = 2, .kinds = kNumbers) \
  X(Maximum, "maximum", .inputs = 2, .kinds = kAll) \
  X(Minimum, "minimum", .inputs = 2, .kinds = kAll) \
  X(Fmax, "fmax", .inputs = 2, .kinds = kNumbers) \
  X(Fmin, "fmin", .inputs = 2, .kinds = kNumbers) \
  X(CopySign, "copysign", .inputs = 2) \
  X(Ldexp, "ldexp", .inputs = 2, .wide = true) \
  X(Neg, "neg", .kinds = kNumbers) \
  X(Abs, "abs", .kinds = kNumbers) \
  X(Sign, "sign", .kinds = kNumbers) \
  X(Square, "square", .kinds = kNumbers) \
  X(Reciprocal, "reciprocal") \
  X(Identity, "identity", .kinds = kAll) \
  X(Clamp, "clamp", .params = 2, .kinds = kNumbers) \
  X(NanToNum, "nan_to_num", .params = 3, .kinds = kNumbers) \
  X(Floor, "floor", .kinds = kNumbers) \
  X(Ceil, "ceil", .kinds = kNumbers) \
  X(Trunc, "trunc", .kinds = kNumbers) \
  X(Round, "round", .kinds = kNumbers) \
  X(RoundDecimals, "round_decimals", .params = 2, .wide = true) \
  X(Frac, "frac") \
  X(AddCMul, "addcmul", .inputs = 3, .params = 1, .kinds = kNumbers, .wide = true) \
  X(AddCDiv, "addcdiv", .inputs = 3, .params = 1, .wide = true) \
  X(Mac, "mac", .inputs = 3, .kinds = kNumbers, .wide = true) \
  X(Lerp, "lerp", .inputs = 3, .wide = true) \
  X(Where, "where", .inputs = 3, .kinds = kAll, .condition = true) \
  X(Eq, "eq", .inputs = 2, .kinds = kAll, .returns_bool = true) \
  X(Ne, "ne", .inputs = 2, .kinds = kAll, .returns_bool = true) \
  X(Lt, "lt", .inputs = 2, .kinds = kAll, .returns_bool = true) \
  X(Le, "le", .inputs = 2, .kinds = kAll, .returns_bool = true) \
  X(Gt, "gt", .inputs = 2, .kinds = kAll, .returns_bool = true) \
  X(Ge, "ge", .inputs = 2, .kinds = kAll, .returns_bool = true) \
  X(Eqz, "eqz", .kinds = kAll, .returns_bool = true) \
  X(Nez, "nez", .kinds = kAll, .returns_bool = true) \
  X(Ltz, "ltz", .kinds = kAll, .returns_bool = true) \
  X(Lez, "lez", .kinds = kAll, .returns_bool = true) \
  X(Gtz, "gtz", .kinds = kAll, .returns_bool = true) \
  X(Gez, "gez", .kinds = kAll, .returns_bool = true) \
  X(IsClose, "isclose", .inputs = 2, .params = 3, .returns_bool = true, .wide = true) \
  X(LogicalAnd, "logical_and", .inputs = 2, .kinds = kAll, .returns_bool = true) \
  X(LogicalOr, "logical_or", .inputs = 2, .kinds = kAll, .returns_bool = true) \
  X(LogicalXor, "logical_xor", .inputs = 2, .kinds = kAll, .returns_bool = true) \
  X(LogicalNot, "logical_not", .kinds = kAll, .returns_bool = true) \
  X(IsNan, "isnan", .returns_bool = true) \
  X(IsInf, "isinf", .returns_bool = true) \
  X(IsFinite, "isfinite", .returns_bool = true) \
  X(IsPosInf, "isposinf", .returns_bool = true) \
  X(IsNegInf, "isneginf", .returns_bool = true) \
  X(SignBit, "signbit", .kinds = kNumbers, .returns_bool = true) \
  X(BitwiseAnd, "bitwise_and", .inputs = 2, .kinds = kBits) \
  X(BitwiseOr, "bitwise_or", .inputs = 2, .kinds = kBits) \
  X(BitwiseXor, "bitwise_xor", .inputs = 2, .kinds = kBits) \
  X(BitwiseNot, "bitwise_not", .kinds = kIntegers) \
  X(LeftShift, "left_shift", .inputs = 2, .kinds = kIntegers) \
  X(RightShift, "right_shift", .inputs = 2, .kinds = kIntegers) \
  X(Sqrt, "sqrt") \
  X(Rsqrt, "rsqrt") \
  X(Cbrt, "cbrt", .wide = true) \
  X(Exp, "exp") \
  X(Exp2, "exp2") \
  X(Expm1, "expm1") \
  X(Log, "log") \
  X(Log2, "log2") \
  X(Log10, "log10") \
  X(Log1p, "log1p") \
  X(Exp10, "exp10", .wide = true) \
  X(LogAddExp, "logaddexp", .inputs = 2, .wide = true, .cancels = true) \
  X(LogAddExp2, "logaddexp2", .inputs = 2, .wide = true, .cancels = true) \
  X(XLogY, "xlogy", .inputs = 2) \
  X(XLog1pY, "xlog1py", .inputs = 2) \
  X(Entropy, "entr") \
  X(Hypot, "hypot", .inputs = 2, .wide = true) \
  X(Sin, "sin") \
  X(Cos, "cos") \
  X(Tan, "tan", .wide = true) \
  X(Asin, "asin", .wide = true) \
  X(Acos, "acos", .wide = true) \
  X(Atan, "atan", .wide = true) \
  X(Sinh, "sinh", .wide = true) \
  X(Cosh, "cosh", .wide = true) \
  X(Tanh, "tanh") \
  X(Asinh, "asinh", .wide = true) \
  X(Acosh, "acosh", .wide = true) \
  X(Atanh, "atanh", .wide = true) \
  X(Atan2, "atan2", .inputs = 2, .wide = true) \
  X(Sinc, "sinc", .wide = true) \
  X(Deg2Rad, "deg2rad") \
  X(Rad2Deg, "rad2deg") \
  X(Erf, "erf") \
  X(Erfc, "erfc", .wide = true) \
  X(Erfinv, "erfinv", .wide = true) \
  X(Lgamma, "lgamma", .wide = true) \
  X(I0, "i0", .wide = true) \
  X(Digamma, "digamma", .wide = true, .cancels = true) \
  X(Ndtr, "ndtr", .wide = true) \
  X(Relu, "relu", .kinds = kNumbers) \
  X(Relu6, "relu6", .kinds = kNumbers) \
  X(ReluSquared, "relu_squared", .kinds = kNumbers) \
  X(LeakyRelu, "leaky_relu", .params = 1) \
  X(Prelu, "prelu", .params = 1) \
  X(PreluWeights, "prelu_weights", .inputs = 2) \
  X(Hardtanh, "hardtanh", .params = 2, .kinds = kNumbers) \
  X(Hardsigmoid, "hardsigmoid") \
  X(Hardswish, "hardswish") \
  X(Threshold, "threshold", .params = 2, .kinds = kNumbers, .wide = true) \
  X(Hardshrink, "hardshrink", .params = 1, .wide = true) \
  X(Softshrink, "softshrink", .params = 1, .wide = true) \
  X(Heaviside, "heaviside", .params = 1, .kinds = kNumbers) \
  X(HeavisideValues, "heaviside_values", .inputs = 2, .kinds = kNumbers) \
  X(Sigmoid, "sigmoid") \
  X(LogSigmoid, "log_sigmoid") \
  X(Silu, "silu") \
  X(Softplus, "softplus", .params = 1) \
  X(SoftplusBeta, "softplus_beta", .params = 2, .wide = true) \
  X(Mish, "mish", .wide = true) \
  X(Gelu, "gelu", .wide = true) \
  X(GeluTanh, "gelu_tanh", .wide = true) \
  X(QuickGelu, "quick_gelu", .wide = true) \
  X(Elu, "elu", .params = 1) \
  X(Celu, "celu", .params = 1) \
  X(Selu, "selu") \
  X(Softsign, "softsign") \
  X(Tanhshrink, "tanhshrink", .wide = true) \
  X(Logit, "logit", .params = 1, .wide = true)
// clang-format on

enum class ElementwiseOp : std::uint16_t {
#define TENON_X(Name, ...) Name,
  TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
};

inline constexpr ElementwiseTraits kElementwiseTraits[] = {
#define TENON_X(Name, text, ...) ElementwiseTraits{__VA_ARGS__},
    TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
};
inline constexpr const char* kElementwiseNames[] = {
#define TENON_X(Name, text, ...) text,
    TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
};
inline constexpr int kElementwiseCount = static_cast<int>(sizeof kElementwiseTraits / sizeof kElementwiseTraits[0]);
constexpr const ElementwiseTraits& traits(ElementwiseOp op) { return kElementwiseTraits[static_cast<int>(op)]; }
constexpr const char* name(ElementwiseOp op) { return kElementwiseNames[static_cast<int>(op)]; }

namespace elementwise {
// The base of a struct with the formula of |op|.
template <ElementwiseOp op>
struct Body {
  static constexpr ElementwiseTraits traits = kElementwiseTraits[static_cast<int>(op)];
};
}  // namespace elementwise

}  // namespace tenon
