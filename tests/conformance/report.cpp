#include "conformance/report.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "conformance/limits.h"
#include "ops/elementwise/elementwise.h"

namespace tenon::conformance {
namespace {

constexpr std::string_view kShortNames[] = {"bool", "u8",  "u16",  "u32", "u64", "i8",  "i16", "i32",
                                            "i64",  "f16", "bf16", "f32", "f64", "bf8", "bf4"};
static_assert(sizeof kShortNames / sizeof kShortNames[0] == kDTypeCount);

std::string_view short_name(DType dtype) { return kShortNames[static_cast<int>(dtype)]; }

std::string_view mark(Status status) {
  switch (status) {
    case Status::pass: return ".";
    case Status::fail: return "F";
    case Status::unsupported: return "-";
    case Status::unavailable: return "?";
  }
  return "";
}

std::set<std::string> ops_in(const Results& results) {
  std::set<std::string> ops;
  for (const auto& [key, verdict] : results) ops.insert(key.first);
  return ops;
}

std::string ulp_text(double value) {
  if (value == 0) return "0";
  return value < 0.1 ? "<0.1" : fmt::format("{:.3g}", value);
}

std::string limit_text(double value) { return value == 0 ? "exact" : value == 0.5 ? "rounded" : fmt::format("{:g}", value); }

std::string limits_table() {
  std::string text = "| elementwise primitive | float32 | float64 | |\n| --- | --- | --- | --- |\n";
  for (int i = 0; i < kElementwiseCount; ++i) {
    const ElementwiseOp op = static_cast<ElementwiseOp>(i);
    if ((traits(op).kinds & kFloats) == 0 || traits(op).returns_bool) continue;
    const Limit f32 = elementwise_limit(op, DType::f32), f64 = elementwise_limit(op, DType::f64);
    text += fmt::format("| {} | {} | {} | {} |\n", name(op), limit_text(f32.ulp), limit_text(f64.ulp),
                        !f32.reason.empty() ? f32.reason : f64.reason);
  }
  return text;
}

std::string cell(const OpInfo& op, const Verdict& v, DType dtype) {
  if (v.status != Status::pass) return std::string(name(v.status));
  if (op.elementwise) return v.worst_ulp == 0 ? "ok" : ulp_text(v.worst_ulp);
  return v.worst_share > 0 && compute_dtype(dtype) == dtype ? fmt::format("{:.0f} %", std::ceil(100 * v.worst_share)) : "ok";
}

constexpr std::string_view kRules = R"(# Conformance

Every op of the catalogue, in every element type it accepts, on every backend, is compared with the reference interpreter, which evaluates
the same program in double, one element at a time. This page has the limits and what was measured. It is made by

    build/release/tenon_conformance --backend cpu --markdown > docs/conformance.md

What runs on other backends: [support.md](support.md). One op: `--op softmax --dtype bf16`; `--list` shows its cases.

A column of that page: `tenon_conformance --device ID [--backend NAME] --save tests/conformance/results/FILE.txt` (in shares: each with `--op ...`
and a file of its own, `cat` them together; the names are in `tests/conformance/support.cpp`), then `tenon_conformance --support
tests/conformance/results > docs/support.md`. `--check FILE` fails where a run disagrees with a file.

## What is run

For an elementwise op: a scalar, nothing, one element, odd sizes, broadcast and transposed inputs, all combinations of special values (zeros of
both signs, subnormals, the largest numbers, infinities, NaN, edges of domains; the limits of integers), random values over all magnitudes, every
one of the 65,536 values of float16 and bfloat16 where there is one input, each parameter at its bounds and at other values, and the op inside a
fused chain and in front of sums over the last, the first and all axes. For other ops: shapes and parameters of a table in
`tests/conformance/cases_*.cpp`, each also with transposed inputs. A new op without cases fails the suite.

Around each run: outputs hold something else before, so that an element left out is seen; inputs, and tensors allocated beside the outputs, must
be unchanged; a second run must give the same bytes.

## Limits

A limit belongs to a primitive, and composed ops follow from them: with each value of the reference goes a bound on its error, which is the limit
of the node's own primitive plus what the bounds of its inputs make of it at these very values. softmax, for example, may be off by what a
subtraction, exp, a sum and a division may be off together. The rule in full: `tests/conformance/bounds.h`.

| primitive | limit |
| --- | --- |
| integers, bool; moving elements; casts; comparisons; max, min; index of the largest, sorting | exact; a cast rounds to nearest even |
| elementwise, float32 and float64 | the table below, in ULP of the type; "rounded": correctly rounded. In float64, which has no wider type to compute in, functions with 4 ULP may also be off by what one ULP of an input changes, at most 2^-44 of the value |
| float16, bfloat16 | computed in float32 within its limit, then rounded: never more than 1 ULP off, and in at least 99.9 % of random cases the correctly rounded result |
| bfloat8_b, bfloat4_b | computed in float32 within its limit, then rounded to the block: at most one step of the block's grid off (a largest element next to a power of two sets the exponent of all 16), and equal where nothing is computed inexactly |
| sum over n elements, sum over a window | (2 + log2 n) u times the sum of magnitudes, u = 2^-24 for float32, 2^-53 for float64 |
| matmul, convolution, running sum of n products or terms | (4 + 2 sqrt n) u times the sum of magnitudes |
| product of n factors, running product | n u, relative |
| scatter_add of n terms | n u times the sum of magnitudes |
| random normal | 1 ULP |

NaN must be NaN, infinities must agree in sign. The sign of a zero is checked where IEEE 754 fixes it (neg, abs, copysign, add, sub, mul, div, sqrt).
A device that says it flushes subnormal numbers to zero (XLA's on processors and TPUs) may do so, in operands and results, and in float64 it
has two ULP of an input where others have one.
Where an intermediate result is beyond float32, the element is not judged; a case in which that is so for more than half of the elements fails.

)";

}  // namespace

std::string matrix_text(const Results& results) {
  std::string text = fmt::format("{:34}", "");
  for (DType dtype : all_dtypes()) text += fmt::format("{:>5}", short_name(dtype));
  text += "\n";
  for (const std::string& op : ops_in(results)) {
    text += fmt::format("{:34}", op);
    for (DType dtype : all_dtypes()) {
      const auto found = results.find({op, dtype});
      text += fmt::format("{:>5}", found == results.end() ? "" : mark(found->second.status));
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text + "\n. pass   F fail   - unsupported   ? unavailable   blank: not accepted by the op\n";
}

std::string summary_text(const Results& results) {
  std::string text;
  std::int64_t count[4] = {}, cases = 0, elements = 0;
  std::set<std::string> reasons;
  for (const auto& [key, v] : results) {
    ++count[static_cast<int>(v.status)];
    cases += v.cases;
    elements += v.elements;
    for (const std::string& failure : v.failures) text += fmt::format("FAIL {}\n\n", failure);
    if (!v.reason.empty()) reasons.insert(fmt::format("{} {}: {}", name(v.status), key.first, v.reason));
  }
  for (const std::string& reason : reasons) text += reason + "\n";
  return text + fmt::format("{} ops and types: {} pass, {} fail, {} unsupported, {} unavailable; {} cases, {} elements\n",
                            results.size(), count[0], count[1], count[2], count[3], cases, elements);
}

std::string limits_markdown() { return std::string(kRules) + limits_table(); }

std::string markdown_text(const Results& results, std::string_view device) {
  std::string text = limits_markdown();
  text += fmt::format(
      "\n## Support matrix: {}\n\nElementwise ops: the largest error seen, in ULP of the result's type (block formats: steps of "
      "the "
      "grid). Other ops: the largest part of\nits bound that an error took up. \"ok\": every result was the correctly rounded "
      "one, or "
      "the type is rounded after float32. Blank: not accepted.\n\n| op |",
      device);
  for (DType dtype : all_dtypes()) text += fmt::format(" {} |", short_name(dtype));
  text += "\n| --- |";
  for (int i = 0; i < kDTypeCount; ++i) text += " --- |";
  text += "\n";
  for (const std::string& op : ops_in(results)) {
    text += fmt::format("| {} |", op);
    for (DType dtype : all_dtypes()) {
      const auto found = results.find({op, dtype});
      text += fmt::format(" {} |", found == results.end() ? "" : cell(find_op(op), found->second, dtype));
    }
    text += "\n";
  }
  return text;
}

}  // namespace tenon::conformance
