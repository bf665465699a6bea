#include "codegen/stablehlo/elementwise.h"

#include <fmt/format.h>

#include "codegen/stablehlo/conversion.h"
#include "codegen/stablehlo/functions.h"
#include "ops/elementwise/symbolic.h"
#include "tenon/error.h"

namespace tenon::stablehlo {
namespace {

// --- Integers: wrapping, and 0 for a divisor of 0 ---
struct Division {
  Term quotient, remainder;
};
Division divide_integers(const Term& x, const Term& y) {
  const Term zero = y == 0.0;
  Term special = zero;
  if (is_signed_integer(y.dtype())) special = special | (y == -1.0);  // the smallest number has no negation
  const Term safe = select(special, 1.0, y);
  const Term quotient = select(zero, 0.0, select(special, is_signed_integer(y.dtype()) ? -x : x, binary("divide", x, safe)));
  return {quotient, select(special, 0.0, binary("remainder", x, safe))};
}

Term negative(const Term& x) { return is_signed_integer(x.dtype()) ? x < 0.0 : x != x; }

// By squaring, one step for each bit of the exponent.
Term power_integers(const Term& x, const Term& y) {
  const bool is_signed = is_signed_integer(x.dtype());
  const Term below = negative(y);
  const Term one_bit = y.like(1);
  Term exponent = is_signed ? select(below, y & one_bit, y) : y;
  Term result = x.like(1), factor = x;
  for (std::size_t bit = 0; bit < element_bytes(x.dtype()) * 8; ++bit) {
    result = select((exponent & one_bit) != 0.0, result * factor, result);
    factor = factor * factor;
    exponent = exponent >> 1;
  }
  if (!is_signed) return result;
  const Term has_inverse = (x == 1.0) | (x == -1.0);
  return select(below & !has_inverse, 0.0, result);
}

DType unsigned_of(DType dtype) {
  switch (element_bytes(dtype)) {
    case 1: return DType::u8;
    case 2: return DType::u16;
    case 4: return DType::u32;
    default: return DType::u64;
  }
}

// Euclid's algorithm on all elements at once, until all remainders are 0.
Term gcd_integers(const Term& x, const Term& y) {
  Writer& w = x.writer();
  const auto magnitude = [](const Term& v) { return bitcast(select(negative(v), -v, v), unsigned_of(v.dtype())); };
  const Term a = magnitude(x), b = magnitude(y);
  const std::string type = type_text(a), element = type_text(a.dtype(), {}), mask = type_text(DType::boolean, a.shape());
  std::string axes;
  for (int i = 0; i < a.shape().rank(); ++i) axes += fmt::format("{}{}", i == 0 ? ": " : ", ", i);
  const std::pair<DType, Shape> results[] = {{a.dtype(), a.shape()}, {a.dtype(), a.shape()}};
  const std::string text = fmt::format(
      "\"stablehlo.while\"({0}, {1}) ({{\n"
      "    ^bb0(%a: {2}, %b: {2}):\n"
      "      %zero = stablehlo.constant dense<0> : {3}\n"
      "      %most = \"stablehlo.reduce\"(%b, %zero) ({{\n"
      "      ^bb0(%p: {3}, %q: {3}):\n"
      "        %m = stablehlo.maximum %p, %q : {3}\n"
      "        \"stablehlo.return\"(%m) : ({3}) -> ()\n"
      "      }}) {{dimensions = array<i64{5}>}} : ({2}, {3}) -> {3}\n"
      "      %go = stablehlo.compare NE, %most, %zero, UNSIGNED : ({3}, {3}) -> tensor<i1>\n"
      "      \"stablehlo.return\"(%go) : (tensor<i1>) -> ()\n"
      "    }}, {{\n"
      "    ^bb0(%a: {2}, %b: {2}):\n"
      "      %none = stablehlo.constant dense<{6}> : {2}\n"
      "      %one = stablehlo.constant dense<{7}> : {2}\n"
      "      %done = stablehlo.compare EQ, %b, %none, UNSIGNED : ({2}, {2}) -> {4}\n"
      "      %safe = stablehlo.select %done, %one, %b : {4}, {2}\n"
      "      %rest = stablehlo.remainder %a, %safe : {2}\n"
      "      %next = stablehlo.select %done, %a, %b : {4}, {2}\n"
      "      \"stablehlo.return\"(%next, %rest) : ({2}, {2}) -> ()\n"
      "    }}) : ({2}, {2}) -> ({2}, {2})",
      w.name(a), w.name(b), type, element, mask, axes, a.shape().elements() == 0 ? "" : "0",
      a.shape().elements() == 0 ? "" : "1");
  const DType dtype = x.dtype();
  return bitcast(w.add(text, results)[0], dtype);
}

Term integer_primitive(ScalarPrim prim, const Term& x, const Term& y) {
  const bool is_signed = is_signed_integer(x.dtype());
  switch (prim) {
    case ScalarPrim::neg: return -x;
    case ScalarPrim::abs: return is_signed ? select(x < 0.0, -x, x) : x;
    case ScalarPrim::signbit: return negative(x);
    case ScalarPrim::floor:
    case ScalarPrim::ceil:
    case ScalarPrim::trunc:
    case ScalarPrim::rint: return x;
    case ScalarPrim::is_nan:
    case ScalarPrim::is_inf: return x != x;
    case ScalarPrim::bit_not: return !x;
    case ScalarPrim::div: return divide_integers(x, y).quotient;
    case ScalarPrim::fmod: return divide_integers(x, y).remainder;
    case ScalarPrim::min: return binary("minimum", x, y);
    case ScalarPrim::max: return binary("maximum", x, y);
    case ScalarPrim::pow: return power_integers(x, y);
    case ScalarPrim::gcd: return gcd_integers(x, y);
    case ScalarPrim::bit_and: return x & y;
    case ScalarPrim::bit_or: return x | y;
    case ScalarPrim::bit_xor: return x ^ y;
    case ScalarPrim::shift_left:
    case ScalarPrim::shift_right: {
      // Amounts of at least the width, and negative amounts, shift out every bit.
      const double width = static_cast<double>(element_bytes(x.dtype())) * 8;
      const Term whole = (y >= width) | negative(y);
      const Term amount = select(whole, width - 1, y);
      if (prim == ScalarPrim::shift_left) return select(whole, 0.0, binary("shift_left", x, amount));
      if (is_signed) return binary("shift_right_arithmetic", x, amount);
      return select(whole, 0.0, binary("shift_right_logical", x, amount));
    }
    default: break;
  }
  throw Error(ErrorCode::internal, fmt::format("{} of integers is not known to StableHLO", name(prim)));
}

Term float_primitive(ScalarPrim prim, const Term& x, const Term& y) {
  switch (prim) {
    case ScalarPrim::neg: return -x;
    case ScalarPrim::div: return quotient(x, y);
#define TENON_FUNCTION(name) \
  case ScalarPrim::name: return name(x);
      TENON_FUNCTION(abs)
      TENON_FUNCTION(signbit)
      TENON_FUNCTION(floor)
      TENON_FUNCTION(ceil)
      TENON_FUNCTION(trunc)
      TENON_FUNCTION(rint)
      TENON_FUNCTION(sqrt)
      TENON_FUNCTION(cbrt)
      TENON_FUNCTION(exp)
      TENON_FUNCTION(exp2)
      TENON_FUNCTION(expm1)
      TENON_FUNCTION(log)
      TENON_FUNCTION(log2)
      TENON_FUNCTION(log10)
      TENON_FUNCTION(log1p)
      TENON_FUNCTION(sin)
      TENON_FUNCTION(cos)
      TENON_FUNCTION(tan)
      TENON_FUNCTION(asin)
      TENON_FUNCTION(acos)
      TENON_FUNCTION(atan)
      TENON_FUNCTION(sinh)
      TENON_FUNCTION(cosh)
      TENON_FUNCTION(tanh)
      TENON_FUNCTION(asinh)
      TENON_FUNCTION(acosh)
      TENON_FUNCTION(atanh)
      TENON_FUNCTION(erf)
      TENON_FUNCTION(erfc)
      TENON_FUNCTION(erfinv)
      TENON_FUNCTION(lgamma)
      TENON_FUNCTION(i0)
      TENON_FUNCTION(is_nan)
      TENON_FUNCTION(is_inf)
#undef TENON_FUNCTION
    case ScalarPrim::min: return min(x, y);
    case ScalarPrim::max: return max(x, y);
    case ScalarPrim::copysign: return copysign(x, y);
    case ScalarPrim::fmod: return fmod(x, y);
    case ScalarPrim::pow: return pow(x, y);
    case ScalarPrim::atan2: return atan2(x, y);
    default: break;
  }
  throw Error(ErrorCode::internal, fmt::format("{} of floats is not known to StableHLO", name(prim)));
}

// The rounded product. Compilers may contract a product and a sum into one rounding, which the formulas of the ops do not intend,
// so the bits are combined with a zero that is opaque to the compiler.
Term rounded_product(const Term& x, const Term& y) {
  const Term product = x * y;
  if (product.dtype() != DType::f64) return product;
  const Term bits = bitcast(product, DType::i64);
  return bitcast(bits | convert(is_nan(product), DType::i64), DType::f64);
}

// For a subnormal divisor, which counts as zero in some steps only, the rounded quotient is the plain quotient.
Term mended_quotient(ElementwiseOp op, const Term& result, const Term& x, const Term& y) {
  const Term plain = quotient(x, y);
  return select(is_nan(result), op == ElementwiseOp::FloorDiv ? floor(plain) : trunc(plain), result);
}

// |exactly|: the result is not rounded to f32 afterwards.
Term primitive(const SymbolicNode& node, std::span<const Term> known, bool exactly) {
  const auto operand = [&](std::size_t i) {
    return node.operands[i] < 0 ? Term() : known[static_cast<std::size_t>(node.operands[i])];
  };
  const Term x = operand(0), y = operand(1);
  switch (node.prim) {
    case ScalarPrim::add: return x + y;
    case ScalarPrim::sub: return x - y;
    case ScalarPrim::mul: return rounded_product(x, y);
    case ScalarPrim::lt: return x < y;
    case ScalarPrim::le: return x <= y;
    case ScalarPrim::gt: return x > y;
    case ScalarPrim::ge: return x >= y;
    case ScalarPrim::eq: return x == y;
    case ScalarPrim::ne: return x != y;
    case ScalarPrim::mask_and: return x & y;
    case ScalarPrim::mask_or: return x | y;
    case ScalarPrim::mask_xor: return x ^ y;
    case ScalarPrim::mask_not: return !x;
    case ScalarPrim::select: return select(x, y, operand(2));
    case ScalarPrim::exp: return exactly ? exact_exp(x) : exp(x);
    default: return is_float(x.dtype()) ? float_primitive(node.prim, x, y) : integer_primitive(node.prim, x, y);
  }
}

}  // namespace

Term elementwise(const Node& node, std::span<const Term> operands) {
  const ElementwiseAttr& attr = node.as<ElementwiseAttr>();
  const ElementwiseTraits& about = traits(attr.op);
  const DType given = operands.back().dtype();
  const bool as_bytes = given == DType::boolean;
  // The remainder of a division is often subnormal in f32, where it may be flushed to zero.
  const bool is_wide = about.wide || attr.op == ElementwiseOp::Remainder;
  const bool as_doubles = is_wide && given == DType::f32 && operands[0].writer().target().wide;
  const DType computed = as_bytes ? DType::u8 : as_doubles ? DType::f64 : given;
  const Shape shape = node.shape;
  Writer& w = operands[0].writer();

  const SymbolicBody body = expand(attr.op, !is_float(given));
  std::vector<Term> values;
  for (const SymbolicNode& n : body.nodes) {
    switch (n.prim) {
      case ScalarPrim::input: values.push_back(convert(operands[static_cast<std::size_t>(n.index)], computed)); break;
      case ScalarPrim::condition: values.push_back(operands[static_cast<std::size_t>(n.index)]); break;
      case ScalarPrim::parameter:
        values.push_back(w.splat(attr.params[static_cast<std::size_t>(n.index)], computed, shape));
        break;
      case ScalarPrim::constant: values.push_back(w.splat(n.constant, computed, shape)); break;
      default: values.push_back(primitive(n, values, given == DType::f64)); break;
    }
  }
  Term result = values.back();
  if ((attr.op == ElementwiseOp::FloorDiv || attr.op == ElementwiseOp::TruncDiv) && is_float(computed))
    result = mended_quotient(attr.op, result, convert(operands[0], computed), convert(operands[1], computed));
  if (about.returns_bool) return result;
  if (as_bytes) return to_boolean(result);
  return convert(result, given);
}

}  // namespace tenon::stablehlo
