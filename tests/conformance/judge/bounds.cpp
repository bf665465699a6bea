#include "conformance/judge/bounds.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "conformance/judge/limits.h"
#include "graph/view.h"
#include "ops/elementwise/elementwise.h"
#include "reference/reference.h"
#include "tenon/error.h"

namespace tenon::conformance {
namespace {

using Errors = std::vector<double>;
constexpr double kUnknown = std::numeric_limits<double>::infinity();

HostArray array_of(const Shape& shape, const Errors& values) { return HostArray::from<double>(shape, values); }

// One node by itself, on values in storage dtypes.
HostArray evaluate(const Node& node, std::span<const HostArray> in) {
  Graph graph;
  Node copy = node;
  copy.inputs.clear();
  for (const HostArray& x : in) copy.inputs.push_back(graph.input("x", x.dtype(), x.shape()));
  // A cast rounds to its own type, random numbers depend on theirs.
  if (is_float(node.dtype) && node.prim != Prim::cast && node.prim != Prim::random && node.prim != Prim::constant)
    copy.dtype = DType::f64;
  graph.set_outputs({graph.append(std::move(copy))});
  if (!is_float(node.dtype)) return reference_run(graph, in)[0];
  return array_of(node.shape, reference_doubles(graph, in)[0]);
}

HostArray evaluate(const Node& node, std::initializer_list<HostArray> in) {
  return evaluate(node, std::span(in.begin(), in.size()));
}

// A node that only moves elements, applied to their errors.
Errors moved(Node node, std::span<const HostArray> in) {
  node.dtype = DType::f64;
  if (node.prim == Prim::pad) std::get<PadAttr>(node.attr).value = 0;
  return evaluate(node, in).to_doubles();
}

Errors errors_of(const Bounded& x) {
  return x.error.empty() ? Errors(static_cast<std::size_t>(x.value.elements()), 0.0) : x.error;
}
HostArray error_array(const Bounded& x) { return array_of(x.value.shape(), errors_of(x)); }

HostArray map(const HostArray& x, const std::function<double(double)>& f) {
  Errors values = x.to_doubles();
  for (double& v : values) v = f(v);
  return array_of(x.shape(), values);
}
HostArray magnitude(const HostArray& x) {
  return map(x, [](double v) { return std::abs(v); });
}

enum class Move { up, down, outward, inward };

// The value with every element at an end of its bound.
HostArray shifted(const Bounded& x, Move move) {
  const DType dtype = x.value.dtype();
  Errors values = x.value.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double e = x.error[i], v = values[i];
    if (e == 0) continue;
    const bool up = move == Move::up || (move == Move::outward && v >= 0) || (move == Move::inward && v < 0);
    values[i] = dtype == DType::boolean ? 1 - v : (up ? v + e : v - e);
  }
  return array_of(x.value.shape(), values).cast(dtype);
}

// What an op makes of inputs that may be anything: nothing, if it gives the same at both ends.
double spread(double value, double up, double down) {
  const auto distance = [&](double other) {
    if (std::isnan(value) && std::isnan(other)) return 0.0;
    if (value == other) return 0.0;
    return std::abs(other - value);
  };
  const double a = distance(up), b = distance(down);
  // At the edge of a domain one side has no value: the other one tells.
  if (std::isnan(a)) return std::isnan(b) ? kUnknown : b;
  if (std::isnan(b)) return a;
  return std::max(a, b);
}

void add_spread(Errors& error, const HostArray& value, const HostArray& up, const HostArray& down) {
  const Errors v = value.to_doubles(), a = up.to_doubles(), b = down.to_doubles();
  for (std::size_t i = 0; i < error.size(); ++i) error[i] += spread(v[i], a[i], b[i]);
}

bool exact(std::span<const Bounded> in) {
  return std::all_of(in.begin(), in.end(), [](const Bounded& x) { return x.error.empty(); });
}

class Bounds {
 public:
  Bounds(const Node& node, std::span<const Bounded> in, Arithmetic arithmetic) : node_(node), in_(in), arithmetic_(arithmetic) {
    for (const Bounded& x : in) values_.push_back(x.value);
  }

  Bounded result() {
    value_ = evaluate(node_, values_);
    error_.assign(static_cast<std::size_t>(value_.elements()), 0.0);
    propagate();
    if (is_float(node_.dtype)) settle();
    if (std::all_of(error_.begin(), error_.end(), [](double e) { return e == 0; })) error_.clear();
    return {value_, std::move(error_), false};
  }

 private:
  void propagate() {
    switch (node_.prim) {
      case Prim::input:
      case Prim::constant:
      case Prim::iota: return;
      case Prim::random: return random();
      case Prim::elementwise: return elementwise();
      case Prim::cast: return cast();
      case Prim::broadcast:
      case Prim::reshape:
      case Prim::transpose:
      case Prim::slice:
      case Prim::pad:
      case Prim::concat:
      case Prim::take:
      case Prim::gather: return structure();
      case Prim::scatter: return scatter();
      case Prim::reduce: return reduce();
      case Prim::arg_reduce:
      case Prim::arg_sort:
        if (!exact(in_)) error_.assign(error_.size(), kUnknown);
        return;
      case Prim::matmul:
      case Prim::conv: return product();
      case Prim::window: return window();
      case Prim::cumulative: return cumulative();
      case Prim::region: throw Error(ErrorCode::internal, "a region in a graph that no backend rewrote");
    }
  }

  double u() const { return unit_roundoff(compute_dtype(node_.dtype)); }
  bool floating() const { return is_float(node_.dtype); }

  // Infinities and NaN have no neighbours: they must be met exactly, unless the inputs leave it open.
  void settle() {
    const Errors v = value_.to_doubles();
    for (std::size_t i = 0; i < error_.size(); ++i) {
      if (std::isnan(error_[i])) error_[i] = std::isfinite(v[i]) ? kUnknown : 0;
      if (!std::isfinite(v[i]) && std::isfinite(error_[i])) error_[i] = 0;
    }
  }

  void add_local(double ulps) {
    if (ulps == 0) return;
    const DType compute = compute_dtype(node_.dtype);
    const Errors v = value_.to_doubles();
    // What is rounded correctly and needs no rounding is exact.
    const auto needs_none = [&](std::size_t i) {
      return ulps <= 0.5 && error_[i] == 0 && compute == DType::f32 && static_cast<double>(static_cast<float>(v[i])) == v[i];
    };
    for (std::size_t i = 0; i < error_.size(); ++i)
      if (std::isfinite(v[i]) && !needs_none(i)) error_[i] += ulps * ulp(v[i], compute);
  }

  // Terms that are infinite make an infinite result, or NaN, and no error.
  void add_scaled(const Errors& sizes, double factor) {
    if (factor == 0) return;
    for (std::size_t i = 0; i < error_.size(); ++i)
      if (std::isfinite(sizes[i])) error_[i] += factor * sizes[i];
  }

  void random() {
    if (!node_.as<RandomAttr>().normal) return;
    const bool wide = node_.dtype == DType::f64;
    if (!wide) add_local(4);
    for (double& e : error_) e += 0x1p-48;  // the angle 2 pi v is rounded before its cosine is taken
  }

  void elementwise() {
    const ElementwiseOp op = node_.as<ElementwiseAttr>().op;
    for (std::size_t i = 0; i < in_.size(); ++i) {
      if (in_[i].error.empty()) continue;
      std::vector<HostArray> at = values_;
      at[i] = shifted(in_[i], Move::up);
      const HostArray up = evaluate(node_, at);
      at[i] = shifted(in_[i], Move::down);
      add_spread(error_, value_, up, evaluate(node_, at));
    }
    const double limit = elementwise_limit(op, compute_dtype(node_.dtype)).ulp;
    if (node_.dtype == DType::f64 && limit >= 4) add_condition();
    if (floating()) add_local(limit);
  }

  // In float64 there is no wider type to compute in: where terms cancel, the rounding of one function call shows. What a few
  // ULP of an input change is allowed for, jumps aside.
  void add_condition() {
    const Errors v = value_.to_doubles();
    const double most_ulps = arithmetic_.f64_input_ulps();
    Errors most(v.size(), 0.0);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (!is_float(values_[i].dtype())) continue;
      for (const double ulps : {most_ulps, -most_ulps}) {
        std::vector<HostArray> at = values_;
        at[i] = map(values_[i], [&](double x) { return std::isfinite(x) ? x + ulps * ulp(x, DType::f64) : x; });
        const Errors moved_values = evaluate(node_, at).to_doubles();
        for (std::size_t k = 0; k < v.size(); ++k)
          if (const double d = std::abs(moved_values[k] - v[k]); std::isfinite(d)) most[k] = std::max(most[k], d);
      }
    }
    for (std::size_t k = 0; k < v.size(); ++k)
      if (std::isfinite(v[k])) error_[k] += std::min(most[k], 0x1p-44 * (1 + std::abs(v[k])));
  }

  void cast() {
    if (in_[0].error.empty()) return;
    const auto at = [&](Move move) { return evaluate(node_, {shifted(in_[0], move)}); };
    add_spread(error_, value_, at(Move::up), at(Move::down));
    if (!is_block(node_.dtype)) return;
    // The shared exponent follows the largest magnitude of its sixteen.
    Errors together(error_.size(), 0.0);
    add_spread(together, value_, at(Move::outward), at(Move::inward));
    for (std::size_t i = 0; i < error_.size(); ++i) error_[i] = std::max(error_[i], together[i]);
  }

  // The inputs with elements of their own; indices are not among them.
  std::size_t data_inputs() const { return node_.prim == Prim::take || node_.prim == Prim::gather ? 1 : in_.size(); }

  void structure() {
    for (std::size_t i = data_inputs(); i < in_.size(); ++i)
      if (!in_[i].error.empty()) return error_.assign(error_.size(), kUnknown);
    if (exact(in_)) return;
    std::vector<HostArray> errors;
    for (std::size_t i = 0; i < in_.size(); ++i) errors.push_back(i < data_inputs() ? error_array(in_[i]) : values_[i]);
    error_ = moved(node_, errors);
  }

  void scatter() {
    const bool add = node_.as<ScatterAttr>().add;
    if (!in_[1].error.empty()) return error_.assign(error_.size(), kUnknown);
    const HostArray errors[] = {error_array(in_[0]), values_[1], error_array(in_[2])};
    error_ = moved(node_, errors);
    if (!add || !floating()) return;
    Node node = node_;
    node.dtype = DType::f64;
    const Errors size = evaluate(node, {magnitude(values_[0]), values_[1], magnitude(values_[2])}).to_doubles();
    const Errors count = evaluate(node, {HostArray::zeros(DType::f64, values_[0].shape()), values_[1],
                                         HostArray::full(DType::f64, values_[2].shape(), 1)})
                             .to_doubles();
    for (std::size_t i = 0; i < error_.size(); ++i)
      if (std::isfinite(size[i])) error_[i] += u() * count[i] * size[i];
  }

  // error += sum of the inputs' errors + limit * u * sum of magnitudes, where |node| with f64 inputs forms such sums.
  void add_sum(double limit) {
    if (!floating()) {
      if (!exact(in_)) error_.assign(error_.size(), kUnknown);
      return;
    }
    if (!in_[0].error.empty()) error_ = evaluate(node_, {error_array(in_[0])}).to_doubles();
    add_scaled(evaluate(node_, {magnitude(values_[0])}).to_doubles(), limit * u());
  }

  // The relative errors of the factors add up, and each product rounds once. |sums| is the node that sums instead.
  void add_product(const Node& sums, std::int64_t n) {
    if (!floating()) {
      if (!exact(in_)) error_.assign(error_.size(), kUnknown);
      return;
    }
    if (!in_[0].error.empty()) {
      Errors relative = in_[0].error;
      const Errors v = values_[0].to_doubles();
      for (std::size_t i = 0; i < v.size(); ++i) relative[i] = relative[i] == 0 ? 0 : relative[i] / std::abs(v[i]);
      error_ = evaluate(sums, {array_of(values_[0].shape(), relative)}).to_doubles();
    }
    const Errors v = value_.to_doubles();
    const double smallest = ulp(0, compute_dtype(node_.dtype));
    for (std::size_t i = 0; i < error_.size(); ++i)
      if (std::isfinite(v[i])) error_[i] = std::abs(v[i]) * (error_[i] + static_cast<double>(n) * u()) + smallest;
  }

  // Of a node that is monotone in all of its input.
  void add_monotone() {
    if (in_[0].error.empty()) return;
    add_spread(error_, value_, evaluate(node_, {shifted(in_[0], Move::up)}), evaluate(node_, {shifted(in_[0], Move::down)}));
  }

  std::int64_t reduced_elements() const { return value_.elements() == 0 ? 0 : values_[0].elements() / value_.elements(); }

  void reduce() {
    const ReduceAttr& attr = node_.as<ReduceAttr>();
    if (attr.kind == ReduceKind::sum) return add_sum(sum_limit(reduced_elements()));
    if (attr.kind != ReduceKind::prod) return add_monotone();
    Node sums = node_;
    sums.attr = ReduceAttr{ReduceKind::sum, attr.axes};
    add_product(sums, reduced_elements());
  }

  void cumulative() {
    const CumulativeAttr& attr = node_.as<CumulativeAttr>();
    const std::int64_t n = node_.shape[attr.axis];
    if (!attr.product) return add_sum(accumulation_limit(n));
    Node sums = node_;
    sums.attr = CumulativeAttr{attr.axis, false};
    add_product(sums, n);
  }

  void window() {
    const WindowAttr& attr = node_.as<WindowAttr>();
    if (attr.max) return add_monotone();
    add_sum(sum_limit(attr.size[0] * attr.size[1] * attr.size[2]));
  }

  void product() {
    if (!floating()) {
      if (!exact(in_)) error_.assign(error_.size(), kUnknown);
      return;
    }
    const Shape &a = values_[0].shape(), &b = values_[1].shape();
    const std::int64_t terms = node_.prim == Prim::matmul ? a[node_.as<MatMulAttr>().transpose_a ? a.rank() - 2 : a.rank() - 1]
                                                          : b.elements() / std::max<std::int64_t>(b[0], 1);
    const HostArray size_a = magnitude(values_[0]), size_b = magnitude(values_[1]);
    const auto add = [&](const HostArray& x, const HostArray& y, double factor) {
      const Errors sums = evaluate(node_, {x, y}).to_doubles();
      for (std::size_t i = 0; i < error_.size(); ++i) error_[i] += factor * sums[i];
    };
    add_scaled(evaluate(node_, {size_a, size_b}).to_doubles(), accumulation_limit(terms) * u());
    if (!in_[0].error.empty()) add(error_array(in_[0]), size_b, 1);
    if (!in_[1].error.empty()) add(size_a, error_array(in_[1]), 1);
    if (!in_[0].error.empty() && !in_[1].error.empty()) add(error_array(in_[0]), error_array(in_[1]), 1);
  }

  const Node& node_;
  std::span<const Bounded> in_;
  Arithmetic arithmetic_;
  std::vector<HostArray> values_;
  HostArray value_;
  Errors error_;
};

// Beyond the range of f32 a backend that computes in f32 has an infinity where the reference has a number.
Bounded as_operand(const Bounded& x, const Node& node) {
  if (!is_float(node.dtype) || compute_dtype(node.dtype) != DType::f32) return x;
  constexpr double largest = std::numeric_limits<float>::max();
  Bounded result = x;
  const Errors v = x.value.to_doubles();
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (!(std::abs(v[i]) > largest) || std::isinf(v[i])) continue;
    if (result.error.empty()) result.error.assign(v.size(), 0.0);
    result.error[i] = kUnknown;
  }
  return result;
}

double smallest_normal(DType compute) {
  return compute == DType::f64 ? std::numeric_limits<double>::min() : static_cast<double>(std::numeric_limits<float>::min());
}

// Elements are moved, or compared as bits: nothing is flushed.
bool only_moves(const Node& node) {
  switch (node.prim) {
    case Prim::input:
    case Prim::constant:
    case Prim::broadcast:
    case Prim::reshape:
    case Prim::transpose:
    case Prim::slice:
    case Prim::pad:
    case Prim::concat:
    case Prim::take:
    case Prim::gather:
    case Prim::iota:
    case Prim::arg_reduce:
    case Prim::arg_sort: return true;
    default: return false;
  }
}

// An op of several steps may flush one of them, though its operands and its result are a little larger.
double flush_margin(const Node& node) {
  if (node.prim != Prim::elementwise) return 1;
  return elementwise_limit(node.as<ElementwiseAttr>().op, compute_dtype(node.dtype)).ulp <= 0.5 ? 1 : 64;
}

// The result where it may have become zero; one that is rounded up to a normal number may have been cut off before.
void flush_result(Bounded& x, const Node& node) {
  if (!is_float(node.dtype)) return;
  const double normal = smallest_normal(compute_dtype(node.dtype)), largest = normal * flush_margin(node);
  const Errors v = x.value.to_doubles();
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (v[i] == 0 || !(std::abs(v[i]) <= largest)) continue;
    if (x.error.empty()) x.error.assign(v.size(), 0.0);
    x.error[i] += std::max(normal, std::abs(v[i]));
  }
}

// |x| with zeros where it is subnormal, or may have become zero before.
HostArray flushed(const Bounded& x, DType dtype, double margin) {
  if (!is_float(dtype)) return x.value;
  const double least = margin * smallest_normal(compute_dtype(dtype));
  Errors values = x.value.to_doubles();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double size = std::abs(values[i]);
    if (size < least || (size <= x.error_at(static_cast<std::int64_t>(i)) && std::isfinite(size)))
      values[i] = std::copysign(0.0, values[i]);
  }
  return array_of(x.value.shape(), values);
}

// What subnormal operands that count as zero make of the result.
void flush_operands(Bounded& to, const Graph& graph, const Node& node, std::span<const Bounded> in) {
  const auto with_flushed = [&](double margin) {
    std::vector<HostArray> operands;
    for (std::size_t i = 0; i < in.size(); ++i) operands.push_back(flushed(in[i], graph[node.inputs[i]].dtype, margin));
    return evaluate(node, operands).to_doubles();
  };
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  const double margin = flush_margin(node);
  const Errors v = to.value.to_doubles(), other = with_flushed(1), wider = margin > 1 ? with_flushed(margin) : other;
  // Of what is unknown nothing is known after an op either, also where the reference has a NaN.
  const auto unknown = [&](std::size_t i) {
    return node.prim == Prim::elementwise && std::any_of(in.begin(), in.end(), [&](const Bounded& x) {
             return std::isinf(x.error_at(static_cast<std::int64_t>(i)));
           });
  };
  // A choice between zero and a number that counts as zero may fall on either.
  const double normal = smallest_normal(compute_dtype(node.dtype));
  const auto chooses_subnormal = [&](std::size_t i) {
    return node.prim == Prim::elementwise && is_float(node.dtype) && v[i] == 0 &&
           std::any_of(in.begin(), in.end(), [&](const Bounded& x) {
             const double size = is_float(x.value.dtype()) ? std::abs(x.value.value(static_cast<std::int64_t>(i))) : 0;
             return size > 0 && size < normal;
           });
  };
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (same(v[i], other[i]) && same(v[i], wider[i]) && !unknown(i) && !chooses_subnormal(i)) continue;
    if (to.error.empty()) to.error.assign(v.size(), 0.0);
    if (chooses_subnormal(i)) to.error[i] += normal;
    // Inside an op of several steps some may see the number and others the zero: where that may be infinite, anything goes.
    const bool known = !unknown(i) && std::isfinite(v[i]) && std::isfinite(other[i]) && std::isfinite(wider[i]);
    // A little more than the distance: tiny numbers beside 1 do not change it.
    to.error[i] += known ? (1 + 0x1p-40) * std::max(std::abs(v[i] - other[i]), std::abs(v[i] - wider[i])) : kUnknown;
  }
}

// One more ULP of |dtype|.
void add_rounding(Bounded& x, DType dtype) {
  if (is_block(dtype)) return;
  const Errors v = x.value.to_doubles();
  if (x.error.empty()) x.error.assign(v.size(), 0.0);
  for (std::size_t i = 0; i < v.size(); ++i) x.error[i] += ulp(v[i], dtype);
}

// The rounding of the probabilities of attention, where a backend that takes the region may round before it normalises.
std::set<NodeId> probabilities(const Graph& graph) {
  std::set<NodeId> found;
  for (const Region& region : graph.regions()) {
    if (!std::holds_alternative<AttentionAttr>(region.attr)) continue;
    const NodeId p = graph[region.output].inputs[0];
    if (is_rounding(graph, graph[p])) found.insert(p);
  }
  return found;
}

std::vector<Bounded> bounded_run_with(const Graph& graph, std::span<const HostArray> inputs, Arithmetic arithmetic,
                                      const std::set<NodeId>& roundings) {
  std::vector<Bounded> values(static_cast<std::size_t>(graph.size()));
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    Bounded& to = values[static_cast<std::size_t>(id)];
    if (node.prim == Prim::input) {
      const HostArray& x = inputs[static_cast<std::size_t>(node.as<InputAttr>().index)];
      to.value = is_float(node.dtype) ? x.cast(DType::f64) : x;
      continue;
    }
    std::vector<Bounded> in;
    const bool flushes = arithmetic.flushes_subnormals && !only_moves(node);
    for (NodeId used : node.inputs) in.push_back(as_operand(values[static_cast<std::size_t>(used)], graph[used]));
    to = Bounds(node, in, arithmetic).result();
    if (roundings.contains(id)) add_rounding(to, node.dtype);
    if (flushes) {
      flush_operands(to, graph, node, in);
      flush_result(to, node);
    }
    to.flushes_subnormals = arithmetic.flushes_subnormals;
  }
  std::vector<Bounded> outputs;
  for (NodeId id : graph.outputs()) outputs.push_back(values[static_cast<std::size_t>(id)]);
  return outputs;
}

}  // namespace

std::vector<Bounded> bounded_run(const Graph& graph, std::span<const HostArray> inputs, Arithmetic arithmetic) {
  return bounded_run_with(graph, inputs, arithmetic, probabilities(graph));
}

}  // namespace tenon::conformance
