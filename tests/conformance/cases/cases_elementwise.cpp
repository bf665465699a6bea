// The cases of every elementwise op, from what the catalogue says of it.
#include <fmt/format.h>

#include <cmath>

#include "conformance/plan.h"
#include "ops/elementwise/elementwise.h"

namespace tenon::conformance {
namespace {

using Inputs = std::vector<CaseInput>;
using Parameters = std::vector<NamedValue>;

bool has_condition(const OpInfo& op) { return op.elementwise && traits(*op.elementwise).condition; }
bool is_sixteen_bit(DType d) { return d == DType::f16 || d == DType::bf16; }

Inputs inputs_of(const Plan& p, int count, const Shape& shape, Values values) {
  Inputs inputs;
  for (int i = 0; i < count; ++i) {
    const bool mask = i == 0 && has_condition(p.op());
    inputs.push_back(mask ? p.of(DType::boolean, shape, Values::mask) : p.x(shape, values));
  }
  return inputs;
}

// Every combination of special values, as one row.
Inputs special_inputs(const Plan& p, int count) {
  return inputs_of(p, count, Shape{special_count(p.dtype(), count)}, Values::special);
}

// Values worth trying for a parameter besides its default: its bounds, its choices, and something ordinary.
std::vector<ParameterValue> alternatives(const Parameter& parameter) {
  std::vector<ParameterValue> values;
  switch (parameter.type) {
    case ParameterType::number:
      if (parameter.min) values.emplace_back(*parameter.min);
      if (parameter.max) values.emplace_back(*parameter.max);
      values.emplace_back(0.75);
      if (!parameter.min) values.emplace_back(-1.5);
      values.emplace_back(3.0);
      break;
    case ParameterType::integer:
      if (parameter.min) values.emplace_back(static_cast<std::int64_t>(*parameter.min));
      if (parameter.max) values.emplace_back(static_cast<std::int64_t>(*parameter.max));
      values.emplace_back(std::int64_t{2});
      values.emplace_back(std::int64_t{-1});
      break;
    case ParameterType::boolean: values.emplace_back(!std::get<bool>(parameter.fallback)); break;
    case ParameterType::text:
      for (const std::string& choice : parameter.choices) values.emplace_back(choice);
      break;
    default: break;
  }
  std::erase(values, parameter.fallback);
  return values;
}

void add_shapes(Plan& p, int n) {
  p.add("scalar", inputs_of(p, n, Shape{}, Values::mixed));
  p.add("empty", inputs_of(p, n, Shape{0}, Values::mixed));
  p.add("empty, three axes", inputs_of(p, n, Shape{3, 0, 2}, Values::mixed));
  p.add("one element", inputs_of(p, n, Shape{1}, Values::mixed));
  p.add("odd size", inputs_of(p, n, Shape{67}, Values::mixed));
  p.add("odd sizes", inputs_of(p, n, Shape{3, 5, 7}, Values::mixed));

  Inputs transposed = inputs_of(p, n, Shape{13, 37}, Values::mixed);
  for (CaseInput& input : transposed) input.transposed = true;
  p.add("transposed", transposed);
  if (n < 2) return;

  transposed.back().transposed = false;
  p.add("one transposed", transposed);
  Inputs broadcast = inputs_of(p, n, Shape{4, 3, 5}, Values::mixed);
  broadcast.front().shape = Shape{4, 1, 5};
  broadcast.back().shape = Shape{3, 1};
  p.add("broadcast", broadcast);
  broadcast = inputs_of(p, n, Shape{33, 17}, Values::mixed);
  broadcast.back().shape = Shape{};
  p.add("with a scalar", broadcast);
  broadcast.back().shape = Shape{1, 17};
  broadcast.front().shape = Shape{33, 1};
  p.add("column with row", broadcast);
}

void add_values(Plan& p, int n) {
  p.add("special values", special_inputs(p, n));
  const bool every = p.is_full() && n == 1 && is_sixteen_bit(p.dtype());
  if (every) p.add("every value", inputs_of(p, 1, Shape{256, 256}, Values::every));
  const std::int64_t count = !p.is_full() ? 257 : p.is_float() ? 30'011 : 3'001;
  p.add("random", inputs_of(p, n, Shape{count}, Values::mixed)).random = true;
}

// Long enough for several threads and for stores that pass the cache by.
void add_large(Plan& p, int n) {
  if (!p.is_full()) return;
  if (p.dtype() == DType::f32 || p.dtype() == DType::bf16 || p.dtype() == DType::i16)
    p.add("large", inputs_of(p, n, Shape{257, 513}, Values::mixed));
  if (n == 2 && (p.dtype() == DType::f32 || p.dtype() == DType::i64)) {
    Inputs inputs = inputs_of(p, n, Shape{257, 513}, Values::mixed);
    inputs.back().shape = Shape{513};
    p.add("large, row broadcast", inputs);
    inputs.back().shape = Shape{257, 1};
    p.add("large, column broadcast", inputs);
  }
}

void add_parameters(Plan& p, int n) {
  for (const Parameter& parameter : p.op().parameters)
    for (const ParameterValue& value : alternatives(parameter)) {
      const Parameters chosen{{parameter.name, value}};
      const std::string label = parameters_text(chosen);
      p.add(label + ", special values", special_inputs(p, n), chosen);
      p.add(label, inputs_of(p, n, Shape{p.is_full() ? 331 : 67}, Values::mixed), chosen);
    }
}

void add_fused(Plan& p, int n) {
  const auto around = [&](const char* label, Around what, const Shape& shape, Values values) {
    p.add(label, inputs_of(p, n, shape, values)).around = what;
  };
  around("in a chain", Around::chain, Shape{129}, Values::mixed);
  Inputs transposed = inputs_of(p, n, Shape{9, 21}, Values::mixed);
  transposed.front().transposed = true;
  p.add("in a chain, transposed", transposed).around = Around::chain;
  // In (0, 1) or in [1, 3] nearly every function is defined.
  around("summed over the last axis", Around::sum_last, Shape{7, 65}, Values::unit);
  around("summed over the first axis", Around::sum_first, Shape{33, 19}, Values::above_one);
  around("summed", Around::sum_all, Shape{5, 3, 37}, Values::unit);
  around("summed, values from 1 to 3", Around::sum_all, Shape{77}, Values::above_one);
  if (p.is_full() && p.dtype() == DType::f32) around("large, summed", Around::sum_all, Shape{301, 401}, Values::unit);
}

void add_mixed_types(Plan& p, int n) {
  if (n < 2) return;
  Inputs inputs = inputs_of(p, n, Shape{35}, Values::small);
  const bool integers_only = p.op().elementwise && (traits(*p.op().elementwise).kinds & kFloats) == 0;
  inputs.back().dtype = integers_only ? DType::u8 : DType::f32;
  p.add("with another type", inputs);
}

}  // namespace

void plan_elementwise(Plan& p) {
  for (int n = p.op().min_inputs; n <= p.op().max_inputs; ++n) {
    add_shapes(p, n);
    add_values(p, n);
    add_large(p, n);
    add_fused(p, n);
    add_mixed_types(p, n);
    if (n == p.op().min_inputs) add_parameters(p, n);
  }
}

}  // namespace tenon::conformance
