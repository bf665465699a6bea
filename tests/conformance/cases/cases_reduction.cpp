// Reductions, normalisations, orderings, scans.
#include <limits>

#include "conformance/plan.h"

namespace tenon::conformance {
namespace {

using Axes = std::vector<NamedValue>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

NamedValue axis(std::int64_t i) { return {"axis", integer(i)}; }

// Shapes and axes that take every way through a reduction: rows, columns, the middle, several at once, all, one element, and
// rows long enough to be cut into pieces.
void reductions(Plan& p, Values values) {
  p.add("all", {p.x({5, 17}, values)});
  p.add("scalar", {p.x({}, values)});
  p.add("one element", {p.x({1}, values)});
  p.add("last axis", {p.x({5, 67}, values)}, {axis(-1)});
  p.add("first axis", {p.x({33, 19}, values)}, {axis(0)});
  p.add("middle axis", {p.x({3, 21, 5}, values)}, {{"axis", integers({1})}});
  p.add("outer axes, kept", {p.x({4, 3, 9}, values)}, {{"axis", integers({0, 2})}, {"keepdims", true}});
  p.add("two last axes", {p.x({3, 4, 9}, values)}, {{"axis", integers({-1, -2})}});
  p.add("long row", {p.x({p.is_full() ? 10'007 : 1'009}, values)});
  p.add("no rows", {p.x({0, 4}, values)}, {axis(1)});
  if (p.is_full() && (p.dtype() == DType::f32 || p.dtype() == DType::bf16)) {
    p.add("large", {p.x({331, 353}, values)});
    p.add("large, last axis", {p.x({331, 353}, values)}, {axis(1)});
    p.add("large, first axis", {p.x({331, 353}, values)}, {axis(0)});
  }
}

void hard(Plan& p) {
  p.add("special values, last axis", {p.x({7, 19}, Values::hard_rows)}, {axis(-1)});
  p.add("special values, first axis", {p.x({7, 19}, Values::hard_rows)}, {axis(0)});
}

void sum(Plan& p) {
  reductions(p, Values::wide);
  p.add("nothing", {p.x({0})});
  p.add("nothing in each", {p.x({3, 0})}, {axis(1)});
  hard(p);
}
void mean(Plan& p) {
  reductions(p, Values::wide);
  p.add("nothing", {p.x({0})});
  hard(p);
}
void prod(Plan& p) {
  p.add("all", {p.x({5, 7}, Values::near_one)});
  p.add("last axis", {p.x({5, 23}, Values::near_one)}, {axis(-1)});
  p.add("first axis", {p.x({23, 9}, Values::near_one)}, {axis(0)});
  p.add("outer axes, kept", {p.x({4, 3, 5}, Values::near_one)}, {{"axis", integers({0, 2})}, {"keepdims", true}});
  p.add("scalar", {p.x({}, Values::near_one)});
  p.add("nothing", {p.x({0})});
  if (!p.is_float()) p.add("wrapping", {p.x({3, 9}, Values::wide)}, {axis(-1)});
  hard(p);
}
void extreme(Plan& p) {
  reductions(p, Values::wide);
  hard(p);
  p.add("ties", {p.x({9, 13}, Values::ties)}, {axis(1)});
  p.add("integer limits and specials", {p.x({special_count(p.dtype(), 1)}, Values::special)});
}
void truth(Plan& p) {
  reductions(p, Values::mask);
  p.add("nothing", {p.x({0})});
  p.add("nothing in each", {p.x({3, 0})}, {axis(1)});
  p.add("ones", {p.x({4, 33}, Values::one)}, {axis(1)});
  p.add("zeros", {p.x({4, 33}, Values::zero)}, {axis(1)});
  p.add("ties", {p.x({9, 13}, Values::ties)}, {axis(1)});
}
void logsumexp(Plan& p) {
  reductions(p, Values::small);
  hard(p);
}
void spread(Plan& p) {
  reductions(p, Values::small);
  p.add("population", {p.x({5, 17})}, {axis(1), {"correction", 0.0}});
  hard(p);
}
void norm(Plan& p) {
  reductions(p, Values::small);
  for (double order : {0.0, 1.0, 3.0, 0.5, kInfinity, -kInfinity})
    p.add("order", {p.x({5, 17}, Values::positive)}, {{"p", order}, axis(1)});
  p.add("zeros", {p.x({3, 9}, Values::zero)}, {axis(1)});
  hard(p);
}
void arg(Plan& p) {
  p.add("flat", {p.x({5, 17}, Values::wide)});
  p.add("scalar", {p.x({}, Values::wide)});
  p.add("last axis", {p.x({5, 67}, Values::wide)}, {axis(-1)});
  p.add("first axis", {p.x({33, 19}, Values::wide)}, {axis(0)});
  p.add("middle axis, kept", {p.x({3, 21, 5}, Values::wide)}, {axis(1), {"keepdims", true}});
  p.add("ties", {p.x({9, 33}, Values::ties)}, {axis(1)});
  p.add("ties, first axis", {p.x({33, 9}, Values::ties)}, {axis(0)});
  p.add("long", {p.x({p.is_full() ? 50'021 : 1'009}, Values::wide)});
}
void quantile_of(Plan& p, std::vector<NamedValue> parameters) {
  const auto with = [&](std::vector<NamedValue> more) {
    more.insert(more.end(), parameters.begin(), parameters.end());
    return more;
  };
  p.add("flat", {p.x({5, 7})}, with({}));
  p.add("even count", {p.x({4, 6})}, with({axis(1)}));
  p.add("first axis, kept", {p.x({9, 5})}, with({axis(0), {"keepdims", true}}));
  p.add("ties and NaN", {p.x({7, 9}, Values::hard_rows)}, with({axis(1)}));
  p.add("one element", {p.x({1})}, with({}));
}
void median(Plan& p) { quantile_of(p, {}); }
void quantile(Plan& p) {
  quantile_of(p, {{"q", 0.25}});
  p.add("smallest", {p.x({5, 7})}, {{"q", 0.0}});
  p.add("largest", {p.x({5, 7})}, {{"q", 1.0}});
}
void order(Plan& p) {
  p.add("vector", {p.x({37}, Values::wide)});
  p.add("last axis", {p.x({5, 33}, Values::wide)}, {axis(-1)});
  p.add("first axis, descending", {p.x({33, 5}, Values::wide)}, {axis(0), {"descending", true}});
  p.add("ties", {p.x({7, 41}, Values::ties)}, {axis(1)});
  p.add("ties, descending", {p.x({7, 41}, Values::ties)}, {axis(1), {"descending", true}});
  p.add("empty", {p.x({0, 3})}, {axis(0)});
  if (p.is_full() && p.dtype() == DType::f32) p.add("long", {p.x({100'003}, Values::wide)});
}
void top_k(Plan& p) {
  p.add("three", {p.x({37}, Values::wide)}, {{"k", integer(3)}});
  p.add("smallest", {p.x({5, 33}, Values::wide)}, {{"k", integer(4)}, {"largest", false}});
  p.add("first axis", {p.x({21, 5}, Values::wide)}, {{"k", integer(21)}, axis(0)});
  p.add("ties", {p.x({4, 41}, Values::ties)}, {{"k", integer(7)}});
  p.add("none", {p.x({5})}, {{"k", integer(0)}});
}
void cumulative(Plan& p, Values values) {
  p.add("vector", {p.x({37}, values)});
  p.add("last axis", {p.x({5, 33}, values)}, {axis(-1)});
  p.add("first axis", {p.x({33, 5}, values)}, {axis(0)});
  p.add("middle axis", {p.x({3, 9, 5}, values)}, {axis(1)});
  p.add("empty", {p.x({0, 3}, values)}, {axis(0)});
  hard(p);
}
void cumsum(Plan& p) {
  cumulative(p, Values::wide);
  if (p.is_full() && p.dtype() == DType::f32) p.add("long", {p.x({100'003}, Values::small)});
}
void cumprod(Plan& p) { cumulative(p, Values::near_one); }

void softmax(Plan& p) {
  p.add("last axis", {p.x({5, 17})}, {axis(-1)});
  p.add("first axis", {p.x({33, 9})}, {axis(0)});
  p.add("middle axis", {p.x({3, 21, 5})}, {axis(1)});
  p.add("scalar", {p.x({})});
  p.add("one element", {p.x({4, 1})});
  p.add("empty", {p.x({0, 5})});
  p.add("large values", {p.x({5, 33}, Values::wide)});
  p.add("long row", {p.x({2, p.is_full() ? 5'003 : 603})});
  if (p.is_full() && p.dtype() == DType::f32) p.add("large", {p.x({257, 513})});
  hard(p);
}
void layer_norm(Plan& p) {
  p.add("plain", {p.x({5, 17})});
  p.add("weight and bias", {p.x({5, 33}), p.x({33}, Values::positive), p.x({33})});
  p.add("two axes", {p.x({4, 3, 9}), p.x({3, 9})}, {{"axis", integers({-2, -1})}});
  p.add("first axis", {p.x({33, 5})}, {{"axis", integers({0})}, {"eps", 0.01}});
  p.add("empty", {p.x({0, 5})});
  if (p.is_full() && p.dtype() == DType::f32) p.add("large", {p.x({257, 513}), p.x({513}), p.x({513})});
  p.add("special values", {p.x({7, 19}, Values::hard_rows)});
}
void batch_norm(Plan& p) {
  p.add("plain", {p.x({3, 5, 7}), p.x({5}), p.x({5}, Values::positive)});
  p.add("weight and bias", {p.x({3, 4, 2, 5}), p.x({4}), p.x({4}, Values::positive), p.x({4}), p.x({4})});
  p.add("last axis", {p.x({6, 9}), p.x({9}), p.x({9}, Values::positive)}, {axis(-1), {"eps", 0.1}});
}
void group_norm(Plan& p) {
  p.add("two groups", {p.x({3, 4, 7})}, {{"groups", integer(2)}});
  p.add("weight and bias", {p.x({2, 6, 3, 5}), p.x({6}), p.x({6})}, {{"groups", integer(3)}});
  p.add("one group", {p.x({2, 5})}, {{"groups", integer(1)}, {"eps", 0.1}});
}
void instance_norm(Plan& p) {
  p.add("plain", {p.x({3, 4, 7})});
  p.add("weight and bias", {p.x({2, 5, 3, 4}), p.x({5}), p.x({5})});
}
void normalize(Plan& p) {
  p.add("last axis", {p.x({5, 17})});
  p.add("first axis, order 1", {p.x({9, 5}, Values::positive)}, {{"axis", integers({0})}, {"p", 1.0}});
  p.add("zeros", {p.x({3, 9}, Values::zero)});
  p.add("special values", {p.x({7, 19}, Values::hard_rows)});
}

}  // namespace

const PlanTable& reduction_plans() {
  static const PlanTable table{
      {"sum", sum},
      {"mean", mean},
      {"prod", prod},
      {"max", extreme},
      {"min", extreme},
      {"any", truth},
      {"all", truth},
      {"count_nonzero", truth},
      {"logsumexp", logsumexp},
      {"var", spread},
      {"std", spread},
      {"norm", norm},
      {"argmax", arg},
      {"argmin", arg},
      {"median", median},
      {"quantile", quantile},
      {"sort", order},
      {"argsort", order},
      {"top_k", top_k},
      {"cumsum", cumsum},
      {"cumprod", cumprod},
      {"softmax", softmax},
      {"log_softmax", softmax},
      {"softmin", softmax},
      {"layer_norm", layer_norm},
      {"rms_norm", layer_norm},
      {"batch_norm", batch_norm},
      {"group_norm", group_norm},
      {"instance_norm", instance_norm},
      {"normalize", normalize},
  };
  return table;
}

}  // namespace tenon::conformance
