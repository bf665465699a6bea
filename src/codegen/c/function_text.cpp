// The helper functions of generated kernels that are formulas of src/math, instantiated with value types that write themselves
// down.
#define TENON_FORMULA inline  // once per process: small, not fast

#include <fmt/args.h>
#include <fmt/format.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "codegen/c/body.h"
#include "codegen/c/math_library.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#endif
#include "math/activations.h"
#include "math/float.h"
#include "math/float_ops.h"
#include "math/normal.h"
#include "math/special.h"

namespace tenon::emit {
namespace {

// A term of C: {} in |text| stand for the operands in turn.
struct Expression;
using ExpressionPtr = std::shared_ptr<const Expression>;
struct Expression {
  const char* type;
  std::string text;
  std::vector<ExpressionPtr> operands;
  std::string_view calls;  // a helper
};

ExpressionPtr term(const char* type, std::string text, std::vector<ExpressionPtr> operands = {}, std::string_view calls = {}) {
  return std::make_shared<Expression>(Expression{type, std::move(text), std::move(operands), calls});
}

// --- The value types (math/float.h, math/special.h) ---
struct Condition {
  ExpressionPtr e;
};
Condition operator!(const Condition& x) { return {term("i32", "!({})", {x.e})}; }

struct Word {
  ExpressionPtr e;
};
#define TENON_WORD(op)                                                                                                     \
  [[maybe_unused]] Word operator op(const Word& x, const Word& y) { return {term("u32", "({} " #op " {})", {x.e, y.e})}; } \
  Word operator op(const Word& x, unsigned y) { return {term("u32", fmt::format("({{}} " #op " 0x{:x}u)", y), {x.e})}; }   \
  [[maybe_unused]] Word operator op(unsigned x, const Word& y) {                                                           \
    return {term("u32", fmt::format("(0x{:x}u " #op " {{}})", x), {y.e})};                                                 \
  }
TENON_WORD(+)
TENON_WORD(-)
TENON_WORD(&)
TENON_WORD(^)
#undef TENON_WORD
Word operator<<(const Word& x, int n) { return {term("u32", fmt::format("({{}} << {})", n), {x.e})}; }

template <class T>
struct Number {
  using Type = T;
  using Mask = Condition;
  using Unsigned = Word;
  static constexpr bool kHasFma = true;
  static constexpr int kLookups = 0;  // no permute instruction would do it
  static constexpr DType kDType = std::is_same_v<T, float> ? DType::f32 : DType::f64;
  static constexpr const char* kType = std::is_same_v<T, float> ? "f32" : "f64";
  ExpressionPtr e;

  explicit Number(ExpressionPtr expression) : e(std::move(expression)) {}
  explicit Number(T x) : e(term(kType, literal(kDType, x))) {}

  static Number from_bits(const Word& x) { return Number(term(kType, "AS_F32({})", {x.e})); }
  static Number exponent(const Word& x) { return Number(term(kType, "(f32)((i32){} >> 23)", {x.e})); }
  static Word either(const Condition& mask, unsigned a, unsigned b) {
    return {term("u32", fmt::format("({{}} ? 0x{:x}u : 0x{:x}u)", a, b), {mask.e})};
  }
  static Condition is_zero(const Word& x) { return {term("i32", "({} == 0u)", {x.e})}; }
};
using F32 = Number<float>;
using F64 = Number<double>;
Word bits(const F32& x) { return {term("u32", "AS_U32({})", {x.e})}; }

template <class T, class... More>
Number<T> number_of(const char* text, const Number<T>& x, const More&... more) {
  return Number<T>(term(Number<T>::kType, text, {x.e, more.e...}));
}
#define TENON_NUMBER(op)                                          \
  template <class T>                                              \
  Number<T> operator op(const Number<T>& x, const Number<T>& y) { \
    return number_of("({} " #op " {})", x, y);                    \
  }
TENON_NUMBER(+)
TENON_NUMBER(-)
TENON_NUMBER(*)
TENON_NUMBER(/)
#undef TENON_NUMBER
#define TENON_COMPARE(op)                                         \
  template <class T>                                              \
  Condition operator op(const Number<T>& x, const Number<T>& y) { \
    return {term("i32", "({} " #op " {})", {x.e, y.e})};          \
  }
TENON_COMPARE(<)
TENON_COMPARE(<=)
TENON_COMPARE(>)
TENON_COMPARE(>=)
TENON_COMPARE(==)
#undef TENON_COMPARE
template <class T>
Number<T> operator-(const Number<T>& x) {
  return number_of("(-({}))", x);
}
template <class T>
Number<T> select(const Condition& c, const Number<T>& x, const Number<T>& y) {
  return Number<T>(term(Number<T>::kType, "({} ? {} : {})", {c.e, x.e, y.e}));
}
template <class T>
Number<T> abs(const Number<T>& x) {
  return number_of("fabs({})", x);
}
template <class T>
Condition is_nan(const Number<T>& x) {
  return {term("i32", "({0} != {0})", {x.e})};
}
#define TENON_X(name) \
  F32 name(const F32& x) { return number_of(#name "({})", x); }
TENON_X(trunc)
TENON_X(floor)
TENON_X(rint)
TENON_X(sqrt)
#undef TENON_X
template <class T>
Number<T> copysign(const Number<T>& x, const Number<T>& y) {
  return number_of("copysign({}, {})", x, y);
}
F32 fma(const F32& x, const F32& y, const F32& z) { return number_of("fma({}, {}, {})", x, y, z); }
F32 reciprocal(const F32& x) { return number_of("RECIPROCAL({})", x); }
F32 reciprocal_root(const F32& x) { return F32(term("f32", "reciprocal_root({})", {x.e}, "reciprocal_root")); }
F32 short_exp2(const F32& x) { return F32(term("f32", "short_exp2({})", {x.e}, "short_exp2")); }
F32 short_log2(const F32& x) { return F32(term("f32", "short_log2({})", {x.e}, "short_log2")); }
F32 short_reciprocal(const F32& x) { return F32(term("f32", "short_reciprocal({})", {x.e}, "short_reciprocal")); }
F32 quotient_by_parameter(const F32& x, const F32& y) {
  return F32(term("f32", "quotient_by_row({0}, {1}, row_reciprocal({1}))", {x.e, y.e}, "quotient_by_row"));
}
F32 hardware_min(const F32& x, const F32& y) { return select(x < y, x, y); }
F32 hardware_max(const F32& x, const F32& y) { return select(x > y, x, y); }
F32 clamp_keeping_nan(const F32& x, float low, float high) { return hardware_min(F32(high), hardware_max(F32(low), x)); }
template <int N>
F32 polynomial(const F32& x, const float (&c)[N]) {
  F32 y(c[N - 1]);
  for (int i = N - 2; i >= 0; --i) y = fma(y, x, F32(c[i]));
  return y;
}

// Functions of f64 are the platform's.
#define TENON_X(name) \
  F64 name(const F64& x) { return number_of(#name "({})", x); }
TENON_X(sqrt)
TENON_X(exp)
TENON_X(log)
TENON_X(erf)
TENON_X(erfc)
#undef TENON_X
// So are those of WIDE, which is f64 where the platform has it.
struct WideNumber {
  ExpressionPtr e;

  explicit WideNumber(ExpressionPtr expression) : e(std::move(expression)) {}
  explicit WideNumber(const F32& x) : e(term("WIDE", "(WIDE){}", {x.e})) {}
  // As a sum of two floats: not every platform has a text for doubles.
  explicit WideNumber(double x) {
    const auto head = static_cast<float>(x), rest = static_cast<float>(x - static_cast<double>(head));
    e = term("WIDE", "((WIDE){} + (WIDE){})", {F32(head).e, F32(rest).e});
  }
};
#define TENON_X(name) \
  WideNumber name(const WideNumber& x) { return WideNumber(term("WIDE", #name "({})", {x.e})); }
TENON_X(sin)
TENON_X(cos)
TENON_X(exp)
TENON_X(exp2)
TENON_X(log1p)
#undef TENON_X
WideNumber lgamma(const WideNumber& x) { return WideNumber(term("WIDE", "lgamma_f64({})", {x.e}, "lgamma_f64")); }
#define TENON_X(op)                                                  \
  WideNumber operator op(const WideNumber& x, const WideNumber& y) { \
    return WideNumber(term("WIDE", "({} " #op " {})", {x.e, y.e}));  \
  }
TENON_X(+)
TENON_X(-)
TENON_X(*)
#undef TENON_X
WideNumber fma(const WideNumber& x, const WideNumber& y, const WideNumber& z) {
  return WideNumber(term("WIDE", "fma({}, {}, {})", {x.e, y.e, z.e}));
}
WideNumber select(const Condition& c, const WideNumber& x, const WideNumber& y) {
  return WideNumber(term("WIDE", "({} ? {} : {})", {c.e, x.e, y.e}));
}
template <int N>
WideNumber polynomial(const WideNumber& x, const double (&c)[N]) {
  WideNumber y(c[N - 1]);
  for (int i = N - 2; i >= 0; --i) y = fma(y, x, WideNumber(c[i]));
  return y;
}
// x 2^n where both x and the result are normal numbers; n stands in the low bits.
WideNumber times_power_of_two(const WideNumber& x, const WideNumber& n_bits) {
  return WideNumber(term("WIDE", "AS_F64(AS_U64({}) + (AS_U64({}) << 52))", {x.e, n_bits.e}));
}
template <class V>
V narrow(const WideNumber& x) {
  return V(term("f32", "(f32){}", {x.e}));
}
// Computed only where the mask is set: ?: does not look at the other branch.
template <class F, class... X>
F32 replaced_where_set(const Condition& mask, const F32& y, F f, const X&... x) {
  return select(mask, F32(term("f32", "(f32){}", {f(WideNumber(x)...).e})), y);
}
template <class F>
F32 replaced_where(const Condition& mask, const F32& y, const F32& x, F f) {
  return replaced_where_set(mask, y, f, x);
}
template <class F>
F32 replaced_where(const Condition& mask, const F32& y, const F32& a, const F32& b, F f) {
  return replaced_where_set(mask, y, f, a, b);
}
template <class F>
F32 corrected_where(const Condition&, const F32& y, F f) {
  return f(y);
}

// Formulas call each other's helpers: a platform may have better ones (math_cuda.cpp).
#define TENON_X(name) \
  [[maybe_unused]] F32 name(const F32& x) { return F32(term("f32", #name "_f32({})", {x.e}, #name "_f32")); }
TENON_FLOAT_FUNCTIONS(TENON_X)
#undef TENON_X

// --- From terms to text ---
// What is used once stands where it is used, the rest in variables.
class FunctionWriter {
 public:
  // |parameters|: "f32 x, f32 y".
  std::string text(const std::string& name, const char* parameters, const ExpressionPtr& result) {
    count(result);
    const std::string value = write(result);
    return fmt::format("DEVICE {} {}({}) {{\n{}  return {};\n}}\n", result->type, name, parameters, lines_, value);
  }
  std::string calls() const {
    std::string all;
    for (std::string_view call : calls_) all += fmt::format("{}{}", all.empty() ? "" : " ", call);
    return all;
  }

 private:
  void count(const ExpressionPtr& e) {
    if (++uses_[e.get()] > 1) return;
    for (const ExpressionPtr& operand : e->operands) count(operand);
  }
  std::string write(const ExpressionPtr& e) {
    if (e->operands.empty()) return e->text;
    if (const auto known = variables_.find(e.get()); known != variables_.end()) return known->second;
    if (!e->calls.empty()) calls_.insert(e->calls);
    fmt::dynamic_format_arg_store<fmt::format_context> operands;
    for (const ExpressionPtr& operand : e->operands) operands.push_back(write(operand));
    std::string value = fmt::vformat(e->text, operands);
    if (uses_[e.get()] == 1) return value;
    const std::string variable = fmt::format("t{}", variables_.size());
    lines_ += fmt::format("  const {} {} = {};\n", e->type, variable, value);
    variables_[e.get()] = variable;
    return variable;
  }

  std::map<const Expression*, int> uses_;
  std::map<const Expression*, std::string> variables_;
  std::set<std::string_view> calls_;
  std::string lines_;
};

// Keeps the texts that its helpers show.
class FunctionHelpers {
 public:
  FunctionHelpers() {
    const F32 x(term("f32", "x")), y(term("f32", "y"));
    const F64 x64(term("f64", "x"));
    // Of one argument, or of an input and a parameter.
    const auto formula_of = [&](const std::string& name, auto formula) {
      if constexpr (std::invocable<decltype(formula), F32>)
        add(name, "f32 x", formula(x));
      else
        add(name, "f32 x, f32 y", formula(x, y));
    };
#define TENON_FORMULA_OF(name) \
  formula_of(#name "_f32", [](auto... v) -> decltype(math::name<F32>(v...)) { return math::name<F32>(v...); })
#define TENON_X(name) TENON_FORMULA_OF(name);
#define TENON_OP(Op, name) TENON_FORMULA_OF(name);
    TENON_FLOAT_FUNCTIONS(TENON_X);
    TENON_FLOAT_ACTIVATIONS(TENON_OP);
    TENON_FUSED_FLOAT_ACTIVATIONS(TENON_OP);
    TENON_SHORT_FLOAT_ACTIVATIONS(TENON_OP);
    TENON_SHORT_FLOAT_OPS(TENON_OP);
    TENON_FLOAT_OPS(TENON_OP);
    add("wide_logaddexp_f32", "f32 x, f32 y", math::wide_logaddexp<WideNumber>(x, y));
    add("wide_logaddexp2_f32", "f32 x, f32 y", math::wide_logaddexp2<WideNumber>(x, y));
    TENON_FORMULA_OF(normal_cos);
    TENON_FORMULA_OF(normal_sin);
#undef TENON_OP
#undef TENON_X
#undef TENON_FORMULA_OF
    add("erfinv_f64", "f64 x", math::erfinv_of_platform(x64));
    add("i0_f64", "f64 x", math::i0_of_platform(x64));
  }
  std::span<const Helper> helpers() const { return helpers_; }

 private:
  template <class T>
  void add(const std::string& name, const char* parameters, const Number<T>& result) {
    FunctionWriter writer;
    const std::string text = writer.text(name, parameters, result.e);
    helpers_.push_back({keep(name), keep(writer.calls()), keep(text)});
  }
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  std::deque<std::string> texts_;
  std::vector<Helper> helpers_;
};

}  // namespace

std::span<const Helper> function_helpers() {
  static const FunctionHelpers* const instance = new FunctionHelpers;
  return instance->helpers();
}

}  // namespace tenon::emit

#if defined(__clang__)
#pragma clang attribute pop
#endif
