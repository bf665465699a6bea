#include "ops/elementwise/symbolic.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <unordered_map>
#include <utility>

#include "tenon/error.h"

namespace tenon {
namespace value {

struct Term;
using TermPtr = std::shared_ptr<const Term>;
struct Term {
  SymbolicNode node;
  std::array<TermPtr, 3> operands;
};

inline TermPtr term(ScalarPrim prim, TermPtr a = {}, TermPtr b = {}, TermPtr c = {}) {
  return std::make_shared<Term>(Term{{.prim = prim}, {std::move(a), std::move(b), std::move(c)}});
}
inline TermPtr leaf(ScalarPrim prim, int index) { return std::make_shared<Term>(Term{{.prim = prim, .index = index}, {}}); }
inline TermPtr constant(double value) {
  return std::make_shared<Term>(Term{{.prim = ScalarPrim::constant, .constant = value}, {}});
}

struct SymMask {
  TermPtr t;
};
inline SymMask operator&(const SymMask& a, const SymMask& b) { return {term(ScalarPrim::mask_and, a.t, b.t)}; }
inline SymMask operator|(const SymMask& a, const SymMask& b) { return {term(ScalarPrim::mask_or, a.t, b.t)}; }
inline SymMask operator^(const SymMask& a, const SymMask& b) { return {term(ScalarPrim::mask_xor, a.t, b.t)}; }
inline SymMask operator!(const SymMask& a) { return {term(ScalarPrim::mask_not, a.t)}; }

template <bool kInteger>
struct Sym {
  using Mask = SymMask;
  TermPtr t;

  explicit Sym(TermPtr recorded) : t(std::move(recorded)) {}
  explicit Sym(double x) : t(constant(x)) {}
  explicit Sym(int x) : t(constant(x)) {}
};
template <>
inline constexpr bool kIsInteger<Sym<true>> = true;

#define TENON_SYM_UNARY(function, prim)                \
  template <bool kInteger>                             \
  Sym<kInteger> function(const Sym<kInteger>& x) {     \
    return Sym<kInteger>(term(ScalarPrim::prim, x.t)); \
  }
#define TENON_SYM_BINARY(function, prim)                                   \
  template <bool kInteger>                                                 \
  Sym<kInteger> function(const Sym<kInteger>& x, const Sym<kInteger>& y) { \
    return Sym<kInteger>(term(ScalarPrim::prim, x.t, y.t));                \
  }
#define TENON_SYM_COMPARE(function, prim)                            \
  template <bool kInteger>                                           \
  SymMask function(const Sym<kInteger>& x, const Sym<kInteger>& y) { \
    return {term(ScalarPrim::prim, x.t, y.t)};                       \
  }
#define TENON_SYM_TEST(function)              \
  template <bool kInteger>                    \
  SymMask function(const Sym<kInteger>& x) {  \
    return {term(ScalarPrim::function, x.t)}; \
  }
#define TENON_SAME_UNARY(function) TENON_SYM_UNARY(function, function)
#define TENON_SAME_BINARY(function) TENON_SYM_BINARY(function, function)

TENON_SYM_UNARY(operator-, neg)
TENON_SYM_UNARY(operator~, bit_not)
TENON_SAME_UNARY(abs)
TENON_SAME_UNARY(floor)
TENON_SAME_UNARY(ceil)
TENON_SAME_UNARY(trunc)
TENON_SAME_UNARY(rint)
TENON_SAME_UNARY(sqrt)
TENON_SAME_UNARY(cbrt)
TENON_SAME_UNARY(exp)
TENON_SAME_UNARY(exp2)
TENON_SAME_UNARY(expm1)
TENON_SAME_UNARY(log)
TENON_SAME_UNARY(log2)
TENON_SAME_UNARY(log10)
TENON_SAME_UNARY(log1p)
TENON_SAME_UNARY(sin)
TENON_SAME_UNARY(cos)
TENON_SAME_UNARY(tan)
TENON_SAME_UNARY(asin)
TENON_SAME_UNARY(acos)
TENON_SAME_UNARY(atan)
TENON_SAME_UNARY(sinh)
TENON_SAME_UNARY(cosh)
TENON_SAME_UNARY(tanh)
TENON_SAME_UNARY(asinh)
TENON_SAME_UNARY(acosh)
TENON_SAME_UNARY(atanh)
TENON_SAME_UNARY(erf)
TENON_SAME_UNARY(erfc)
TENON_SAME_UNARY(erfinv)
TENON_SAME_UNARY(lgamma)
TENON_SAME_UNARY(i0)
TENON_SYM_BINARY(operator+, add)
TENON_SYM_BINARY(operator-, sub)
TENON_SYM_BINARY(operator*, mul)
TENON_SYM_BINARY(operator/, div)
TENON_SYM_BINARY(operator&, bit_and)
TENON_SYM_BINARY(operator|, bit_or)
TENON_SYM_BINARY(operator^, bit_xor)
TENON_SYM_BINARY(operator<<, shift_left)
TENON_SYM_BINARY(operator>>, shift_right)
TENON_SAME_BINARY(min)
TENON_SAME_BINARY(max)
TENON_SAME_BINARY(copysign)
TENON_SAME_BINARY(fmod)
TENON_SAME_BINARY(pow)
TENON_SAME_BINARY(atan2)
TENON_SAME_BINARY(gcd)
TENON_SYM_COMPARE(operator<, lt)
TENON_SYM_COMPARE(operator<=, le)
TENON_SYM_COMPARE(operator>, gt)
TENON_SYM_COMPARE(operator>=, ge)
TENON_SYM_COMPARE(operator==, eq)
TENON_SYM_COMPARE(operator!=, ne)
TENON_SYM_TEST(signbit)
TENON_SYM_TEST(is_nan)
TENON_SYM_TEST(is_inf)
#undef TENON_SYM_UNARY
#undef TENON_SYM_BINARY
#undef TENON_SYM_COMPARE
#undef TENON_SYM_TEST
#undef TENON_SAME_UNARY
#undef TENON_SAME_BINARY

template <bool kInteger>
Sym<kInteger> select(const SymMask& condition, const Sym<kInteger>& x, const Sym<kInteger>& y) {
  return Sym<kInteger>(term(ScalarPrim::select, condition.t, x.t, y.t));
}

}  // namespace value

namespace {

using value::Sym;
using value::TermPtr;

template <class Op, bool kInteger, std::size_t... I, std::size_t... P>
TermPtr record(std::index_sequence<I...>, std::index_sequence<P...>) {
  using V = Sym<kInteger>;
  const auto param = [](int p) { return V(value::leaf(ScalarPrim::parameter, p)); };
  if constexpr (Op::traits.condition) {
    const auto input = [](int i) { return V(value::leaf(ScalarPrim::input, i + 1)); };
    return Op::template apply<V>(value::SymMask{value::leaf(ScalarPrim::condition, 0)}, input(I)..., param(P)...).t;
  } else {
    const auto input = [](int i) { return V(value::leaf(ScalarPrim::input, i)); };
    return Op::template apply<V>(input(I)..., param(P)...).t;
  }
}

template <class Op>
TermPtr record(bool integers) {
  constexpr std::size_t values = Op::traits.inputs - (Op::traits.condition ? 1 : 0);
  constexpr std::make_index_sequence<values> inputs{};
  constexpr std::make_index_sequence<Op::traits.params> params{};
  if constexpr ((Op::traits.kinds & kIntegers) != 0) {
    if (integers) return record<Op, true>(inputs, params);
  }
  if constexpr ((Op::traits.kinds & kFloats) != 0) {
    if (!integers) return record<Op, false>(inputs, params);
  }
  return nullptr;
}

TermPtr record(ElementwiseOp op, bool integers) {
  switch (op) {
#define TENON_X(Name, ...) \
  case ElementwiseOp::Name: return record<elementwise::Name>(integers);
    TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
  }
  return nullptr;
}

// Records terms in order, without duplicates.
class Flattener {
 public:
  int add(const TermPtr& term) {
    if (const auto seen = seen_.find(term.get()); seen != seen_.end()) return seen->second;
    SymbolicNode node = term->node;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (term->operands[i]) node.operands[i] = add(term->operands[i]);
    const int id = place(node);
    seen_.emplace(term.get(), id);
    return id;
  }
  SymbolicBody take() { return std::move(body_); }

 private:
  int place(const SymbolicNode& node) {
    const auto same = [&](const SymbolicNode& other) {
      // Compares bits: a NaN equals itself, and -0.0 differs from 0.0.
      SymbolicNode a = node, b = other;
      a.constant = b.constant = 0;
      return a == b && std::bit_cast<std::uint64_t>(node.constant) == std::bit_cast<std::uint64_t>(other.constant);
    };
    const auto found = std::find_if(body_.nodes.begin(), body_.nodes.end(), same);
    if (found != body_.nodes.end()) return static_cast<int>(found - body_.nodes.begin());
    body_.nodes.push_back(node);
    return body_.result();
  }

  SymbolicBody body_;
  std::unordered_map<const value::Term*, int> seen_;
};

}  // namespace

std::string_view name(ScalarPrim prim) noexcept {
  constexpr std::string_view names[] = {
#define TENON_X(name) #name,
      TENON_SCALAR_LEAVES(TENON_X) TENON_SCALAR_UNARY(TENON_X) TENON_SCALAR_BINARY(TENON_X) "select"
#undef TENON_X
  };
  return names[static_cast<int>(prim)];
}

int operand_count(ScalarPrim prim) noexcept {
  if (prim <= ScalarPrim::constant) return 0;
  if (prim <= ScalarPrim::bit_not) return 1;
  return prim == ScalarPrim::select ? 3 : 2;
}

bool returns_mask(ScalarPrim prim) noexcept {
  switch (prim) {
    case ScalarPrim::condition:
    case ScalarPrim::signbit:
    case ScalarPrim::is_nan:
    case ScalarPrim::is_inf:
    case ScalarPrim::mask_not:
    case ScalarPrim::mask_and:
    case ScalarPrim::mask_or:
    case ScalarPrim::mask_xor:
    case ScalarPrim::lt:
    case ScalarPrim::le:
    case ScalarPrim::gt:
    case ScalarPrim::ge:
    case ScalarPrim::eq:
    case ScalarPrim::ne: return true;
    default: return false;
  }
}

SymbolicBody expand(ElementwiseOp op, bool integers) {
  const TermPtr result = record(op, integers);
  if (!result)
    throw Error(ErrorCode::internal, fmt::format("{} has no implementation for {}", name(op), integers ? "integers" : "floats"));
  Flattener flattener;
  flattener.add(result);
  return flattener.take();
}

}  // namespace tenon
