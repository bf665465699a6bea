#include <fmt/format.h>

#include <deque>
#include <vector>

#include "codegen/c/body.h"
#include "codegen/c/math_library.h"
#include "math/coefficients.h"

namespace tenon::emit {
namespace {

// What math/double.h asks for: vectors of eight, F64V being two of them.
constexpr std::string_view kPrelude = R"(
typedef double8 DV; typedef long8 IV; typedef ulong8 UV;
#define ALL(x) ((DV)(x))
#define FMA(a, b, c) fma((DV)(a), (DV)(b), (DV)(c))
#define BITS as_ulong8
#define FROM_BITS as_double8
#define SCALED(x, n) __builtin_ia32_scalefpd512_mask(x, n, x, -1, 4)
#define POLYNOMIAL(c, x) c##_of(x)
#define PIECES(c, x) c##_of(x)
DEVICE DV abs_d(DV x) { return FROM_BITS(BITS(x) & 0x7ffffffffffffffful); }
DEVICE DV copysign_d(DV x, DV s) { return FROM_BITS((BITS(x) & 0x7ffffffffffffffful) | (BITS(s) & 0x8000000000000000ul)); }
DEVICE DV sqrt_d(DV x) { return __builtin_ia32_sqrtpd512(x, 4); }
DEVICE DV look_up_d(__constant const f64* row, IV index) { return __builtin_ia32_permvardf512(*(__constant const DV*)row, index); }
DEVICE DV between_d(DV x, f64 low, f64 high) { x = x < low ? ALL(low) : x; return x > high ? ALL(high) : x; }
)";

constexpr Helper kFunctions[] = {
#define TENON_TYPE(name, ...) {#name, "double_lanes", #__VA_ARGS__ "\n"},
#define TENON_HELPER(name, needs, ...) {#name, "double_lanes " needs, "DEVICE " #__VA_ARGS__ "\n"},
#define TENON_FUNCTION(name, needs, ...)                                                                        \
  {#name "_exact_v", "double_lanes " needs,                                                                     \
   "DEVICE " #__VA_ARGS__ "\nDEVICE F64V " #name "_exact_v(F64V x) { return joined_w(" #name "_d(x.lo), " #name \
   "_d(x.hi)); }\n"},
#define TENON_LOOKUP_FUNCTION TENON_FUNCTION
#include "math/double.h"
#undef TENON_LOOKUP_FUNCTION
#undef TENON_TYPE
#undef TENON_HELPER
#undef TENON_FUNCTION
};

// Keeps the texts that its helpers show.
class DoubleHelpers {
 public:
  DoubleHelpers() {
    helpers_.push_back({"double_lanes", "wide_lanes", kPrelude});
    add("kDoubleExp", coefficients::kDoubleExp);
    add("kWideLog", coefficients::kWideLog);
    add("kDoubleAtan", coefficients::kDoubleAtan);
    add("kDoubleAsin", coefficients::kDoubleAsin);
    add_table("kDoubleErfcx8", coefficients::kDoubleErfcx8, coefficients::kDoubleErfcx8Bias);
    helpers_.insert(helpers_.end(), std::begin(kFunctions), std::end(kFunctions));
  }
  std::span<const Helper> helpers() const { return helpers_; }

 private:
  void add(std::string_view name, std::span<const double> coefficients) {
    const std::string& text = texts_.emplace_back(polynomial_text("DV", "FMA", fmt::format("{}_of", name), coefficients));
    helpers_.push_back({name, "double_lanes", text});
  }
  // As pieces_d of backends/cpu/kernels/math_f64.h.
  template <std::size_t rows>
  void add_table(std::string_view name, const double (&table)[rows][8], double bias) {
    std::string text = fmt::format("__constant f64 {}[{}][8] __attribute__((aligned(64))) = {{\n", name, rows);
    for (const auto& row : table) {
      text += "  {";
      for (double c : row) text += literal(DType::f64, c) + ", ";
      text += "},\n";
    }
    text += fmt::format("}};\nDEVICE DV {}_of(DV x) {{\n  IV index = as_long8(x + {}) >> 51;\n", name, literal(DType::f64, bias));
    text += fmt::format("  DV u = x - look_up_d({0}[0], index), y = look_up_d({0}[{1}], index);\n", name, rows - 1);
    for (std::size_t row = rows - 2; row > 0; --row)
      text += fmt::format("  y = FMA(y, u, look_up_d({}[{}], index));\n", name, row);
    text += "  return y;\n}\n";
    helpers_.push_back({name, "double_lanes", texts_.emplace_back(std::move(text))});
  }

  std::deque<std::string> texts_;
  std::vector<Helper> helpers_;
};

}  // namespace

std::string polynomial_text(std::string_view type, std::string_view fma, std::string_view name,
                            std::span<const double> coefficients) {
  std::string text = fmt::format("DEVICE {0} {1}({0} x) {{\n", type, name), power = "x";
  std::vector<std::string> terms;
  for (double c : coefficients) terms.push_back(literal(DType::f64, c));
  while (terms.size() > 1) {
    std::vector<std::string> pairs;
    for (std::size_t i = 0; i + 1 < terms.size(); i += 2)
      pairs.push_back(fmt::format("{}({}, {}, {})", fma, terms[i + 1], power, terms[i]));
    if (terms.size() % 2 != 0) pairs.push_back(terms.back());
    terms = std::move(pairs);
    if (terms.size() == 1) break;
    text += fmt::format("  {0} {1}2 = {1} * {1};\n", type, power);
    power += "2";
  }
  return text + fmt::format("  return {};\n}}\n", terms[0]);
}

std::span<const Helper> f64_lanes_helpers() {
  static const DoubleHelpers* const instance = new DoubleHelpers;
  return instance->helpers();
}

}  // namespace tenon::emit
