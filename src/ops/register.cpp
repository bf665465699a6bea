#include "ops/register.h"

#include <limits>
#include <utility>

namespace tenon {

Entry::Entry(OpList& ops, Family family, std::string name, Builder builder) : info_(ops.emplace_back()) {
  info_.name = std::move(name);
  info_.category = std::move(family.category);
  info_.max_inputs = static_cast<int>(family.inputs.size());
  info_.min_inputs = family.min_inputs < 0 ? info_.max_inputs : family.min_inputs;
  info_.input_names = std::move(family.inputs);
  info_.dtypes = std::move(family.dtypes);
  info_.parameters = std::move(family.parameters);
  info_.build = builder;
}

Entry& Entry::formula(std::string text) {
  info_.formula = std::move(text);
  return *this;
}
Entry& Entry::doc(std::string text) {
  info_.doc = std::move(text);
  return *this;
}
Entry& Entry::example(std::string expression) {
  info_.example = std::move(expression);
  return *this;
}
Entry& Entry::aliases(std::initializer_list<const char*> names) {
  info_.aliases.assign(names.begin(), names.end());
  return *this;
}
Entry& Entry::category(const char* name) {
  info_.category = name;
  return *this;
}
Entry& Entry::dtypes(std::vector<DType> accepted) {
  info_.dtypes = std::move(accepted);
  return *this;
}
Entry& Entry::inputs(std::vector<std::string> names) {
  const int count = static_cast<int>(names.size());
  if (info_.elementwise) {
    info_.input_names = std::move(names);
    return *this;
  }
  return inputs(std::move(names), count);
}
Entry& Entry::inputs(std::vector<std::string> names, int min_inputs) {
  info_.min_inputs = min_inputs;
  info_.max_inputs = static_cast<int>(names.size());
  info_.input_names = std::move(names);
  return *this;
}
Entry& Entry::any_number_of(const char* name) {
  info_.min_inputs = 1;
  info_.max_inputs = -1;
  info_.input_names = {name};
  return *this;
}
Entry& Entry::parameters(std::vector<Parameter> more) {
  for (Parameter& one : more) info_.parameters.push_back(std::move(one));
  return *this;
}
Entry& Entry::build(Builder builder) {
  info_.build = builder;
  return *this;
}
Entry& Entry::composed() {
  info_.elementwise.reset();
  return *this;
}

Parameter& Entry::parameter(const char* name, ParameterType type, ParameterValue fallback, const char* doc) {
  return info_.parameters.emplace_back(Parameter{.name = name, .type = type, .fallback = std::move(fallback), .doc = doc});
}
Entry& Entry::number(const char* name, double fallback, const char* doc) {
  parameter(name, ParameterType::number, fallback, doc);
  return *this;
}
Entry& Entry::positive(const char* name, double fallback, const char* doc) {
  parameter(name, ParameterType::number, fallback, doc).min = std::numeric_limits<float>::min();
  return *this;
}
Entry& Entry::at_least_zero(const char* name, double fallback, const char* doc) {
  parameter(name, ParameterType::number, fallback, doc).min = 0;
  return *this;
}
Entry& Entry::optional_number(const char* name, const char* doc) {
  parameter(name, ParameterType::number, std::monostate{}, doc);
  return *this;
}
Entry& Entry::integer(const char* name, std::int64_t fallback, std::int64_t min, std::int64_t max, const char* doc) {
  Parameter& p = parameter(name, ParameterType::integer, fallback, doc);
  p.min = static_cast<double>(min);
  p.max = static_cast<double>(max);
  return *this;
}
Entry& Entry::boolean(const char* name, bool fallback, const char* doc) {
  parameter(name, ParameterType::boolean, fallback, doc);
  return *this;
}
Entry& Entry::choice(const char* name, std::initializer_list<const char*> choices, const char* doc) {
  Parameter& p = parameter(name, ParameterType::text, std::string(*choices.begin()), doc);
  p.choices.assign(choices.begin(), choices.end());
  return *this;
}
Entry& Entry::optional_input(const char* name) {
  info_.max_inputs = info_.min_inputs + 1;
  info_.input_names.emplace_back(name);
  return *this;
}

}  // namespace tenon
