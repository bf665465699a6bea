// f(a, b, axis=-1): which argument is an input of the op and which a parameter.
#include <fmt/format.h>

#include <algorithm>

#include "graph/expression_builder.h"
#include "graph/ops/constant_value.h"
#include "graph/ops/names.h"

namespace tenon::expression {
namespace {

bool fits(const Parameter& parameter, const Value& value) {
  switch (parameter.type) {
    case ParameterType::number: return is_number(value) && !std::holds_alternative<bool>(value);
    case ParameterType::integer: return std::holds_alternative<std::int64_t>(value);
    case ParameterType::boolean: return std::holds_alternative<bool>(value);
    case ParameterType::integers: return as_integers(value).has_value();
    case ParameterType::dtype: return std::holds_alternative<DType>(value) || std::holds_alternative<std::string>(value);
    case ParameterType::text: return std::holds_alternative<std::string>(value);
  }
  return false;
}

// nullopt when no parameter can hold such a value.
std::optional<ParameterValue> to_parameter(const Parameter& parameter, const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return ParameterValue{};
  if (const bool* b = std::get_if<bool>(&value)) return ParameterValue(*b);
  if (const DType* dtype = std::get_if<DType>(&value)) return ParameterValue(std::string(tenon::name(*dtype)));
  if (const auto* text = std::get_if<std::string>(&value)) return ParameterValue(*text);
  if (const double* number = std::get_if<double>(&value)) return ParameterValue(*number);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    if (parameter.type == ParameterType::integers) return ParameterValue(std::vector{*integer});
    return ParameterValue(*integer);
  }
  if (auto integers = as_integers(value)) return ParameterValue(std::move(*integers));
  return std::nullopt;
}

// What is being collected for one call.
struct Arguments {
  const OpInfo& op;
  std::vector<std::optional<NodeId>> inputs;  // a hole is an optional input given as None
  std::vector<NamedValue> parameters;
  std::size_t next_parameter = 0;

  bool wants_input() const { return static_cast<int>(inputs.size()) < op.min_inputs; }
  bool takes_input() const { return op.max_inputs < 0 || static_cast<int>(inputs.size()) < op.max_inputs; }
  const Parameter* parameter() const { return next_parameter < op.parameters.size() ? &op.parameters[next_parameter] : nullptr; }
  bool given(std::string_view name) const {
    return std::any_of(parameters.begin(), parameters.end(), [&](const NamedValue& p) { return p.first == name; });
  }
};

// Texts and dtypes are never inputs; tensors always are; a number or a list is one while the op still needs inputs, or when its
// next parameter could not hold it.
bool is_input(const Arguments& arguments, const Value& value) {
  if (std::holds_alternative<std::string>(value) || std::holds_alternative<DType>(value)) return false;
  if (std::holds_alternative<std::monostate>(value)) return arguments.takes_input();
  if (std::holds_alternative<Tensors>(value)) return arguments.takes_input();
  if (arguments.wants_input()) return true;
  const Parameter* parameter = arguments.parameter();
  return arguments.takes_input() && (parameter == nullptr || !fits(*parameter, value));
}

// concat([a, b], axis=0): the one list stands for its items. So do the results of another op: concat(split(x, 2)).
bool spreads(const Arguments& arguments, const Value& value, bool only_one) {
  if (!arguments.inputs.empty() || arguments.op.max_inputs == 1) return false;
  if (const auto* tensors = std::get_if<Tensors>(&value)) return tensors->ids.size() > 1;
  const List* list = as_list(value);
  return list != nullptr && only_one && (list->has_tensor || arguments.op.max_inputs < 0);
}

std::string signature(const OpInfo& op) {
  std::string text = op.name + "(";
  for (std::size_t i = 0; i < op.input_names.size(); ++i) text += (i > 0 ? ", " : "") + op.input_names[i];
  for (const Parameter& p : op.parameters) text += (text.back() == '(' ? "" : ", ") + p.name + (p.required ? "" : "=");
  return text + ")";
}

}  // namespace

Value Builder::call(const Ast& ast) {
  const OpInfo* op = lookup_op(ast.text);
  if (op == nullptr) {
    if (variables_.contains(ast.text))
      fail(ast.name_extent, fmt::format("'{}' is a tensor, not an op", ast.text), "write * to multiply, [ ] to index");
    std::vector<std::string> known;
    for (const OpInfo& info : all_ops()) {
      known.push_back(info.name);
      known.insert(known.end(), info.aliases.begin(), info.aliases.end());
    }
    const std::string near = nearest(ast.text, known);
    fail(ast.name_extent, fmt::format("no op is called '{}'", ast.text),
         near.empty() ? "tenon ops lists them" : fmt::format("did you mean '{}'?", near), ErrorCode::not_found);
  }

  Arguments arguments{*op};
  const auto add_parameter = [&](const Parameter& parameter, AstId id) {
    const Value& given = value(id);
    if (const auto* tensors = std::get_if<Tensors>(&given)) {
      const auto known = tensors->ids.size() == 1 ? constant_value(graph_, tensors->ids[0]) : std::nullopt;
      if (known) {
        arguments.parameters.emplace_back(parameter.name, *known);
        return;
      }
      fail(part(id).extent, fmt::format("'{}' of {} is a parameter: it must be a plain {}, not computed from tensors",
                                        parameter.name, op->name, tenon::name(parameter.type)));
    }
    auto converted = to_parameter(parameter, given);
    if (!converted)
      fail(part(id).extent, fmt::format("'{}' of {} is {} {}, not {}", parameter.name, op->name,
                                        parameter.type == ParameterType::integers ? "a list of" : "a",
                                        tenon::name(parameter.type), describe(given)));
    arguments.parameters.emplace_back(parameter.name, std::move(*converted));
  };

  const auto could_be_input = [&](std::size_t i) {
    return ast.words[i].empty() &&
           (as_list(value(ast.children[i])) != nullptr || std::holds_alternative<Tensors>(value(ast.children[i])));
  };
  int candidates = 0;
  for (std::size_t i = 0; i < ast.children.size(); ++i) candidates += could_be_input(i) ? 1 : 0;

  std::vector<std::pair<std::size_t, NodeId>> named_inputs;
  for (std::size_t i = 0; i < ast.children.size(); ++i) {
    const AstId child = ast.children[i];
    const Value& given = value(child);
    const Extent at = part(child).extent;
    const std::string_view word = ast.words[i];
    if (word.empty()) {
      if (spreads(arguments, given, candidates == 1)) {
        if (const auto* tensors = std::get_if<Tensors>(&given)) {
          arguments.inputs.assign(tensors->ids.begin(), tensors->ids.end());
        } else {
          for (const Value& item : as_list(given)->items) arguments.inputs.emplace_back(tensor(item, at));
        }
      } else if (is_input(arguments, given)) {
        const bool skipped = std::holds_alternative<std::monostate>(given) && !arguments.wants_input();
        arguments.inputs.push_back(skipped ? std::nullopt : std::optional(tensor(child)));
      } else if (const Parameter* parameter = arguments.parameter()) {
        add_parameter(*parameter, child);
        ++arguments.next_parameter;
      } else {
        fail(at, fmt::format("{} takes no more arguments", op->name), "it is " + signature(*op));
      }
      continue;
    }
    const auto parameter =
        std::find_if(op->parameters.begin(), op->parameters.end(), [&](const Parameter& p) { return p.name == word; });
    if (parameter != op->parameters.end()) {
      if (arguments.given(word)) fail(at, fmt::format("'{}' of {} is given twice", word, op->name));
      add_parameter(*parameter, child);
      continue;
    }
    const auto input = std::find(op->input_names.begin(), op->input_names.end(), word);
    if (input != op->input_names.end()) {
      const auto slot = static_cast<std::size_t>(input - op->input_names.begin());
      if (!std::holds_alternative<std::monostate>(given)) named_inputs.emplace_back(slot, tensor(child));
      continue;
    }
    std::vector<std::string> known = op->input_names;
    for (const Parameter& p : op->parameters) known.push_back(p.name);
    const std::string near = nearest(word, known);
    fail(at, fmt::format("{} has no parameter '{}'", op->name, word),
         near.empty() ? "it is " + signature(*op) : fmt::format("did you mean '{}'?", near));
  }

  for (const auto& [slot, id] : named_inputs) {
    if (slot < arguments.inputs.size() && arguments.inputs[slot])
      fail(ast.extent, fmt::format("'{}' of {} is given twice", op->input_names[slot], op->name));
    if (slot >= arguments.inputs.size()) arguments.inputs.resize(slot + 1);
    arguments.inputs[slot] = id;
  }
  while (!arguments.inputs.empty() && !arguments.inputs.back()) arguments.inputs.pop_back();
  std::vector<NodeId> inputs;
  for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
    if (!arguments.inputs[i])
      fail(ast.extent,
           fmt::format("{} needs '{}' when a later input is given", op->name,
                       i < op->input_names.size() ? op->input_names[i] : std::to_string(i)),
           "it is " + signature(*op));
    inputs.push_back(*arguments.inputs[i]);
  }

  // zeros, rand, ... follow the session's float dtype unless told otherwise.
  if (options_.default_float != DType::f32)
    for (const Parameter& p : op->parameters)
      if (p.type == ParameterType::dtype && p.fallback == ParameterValue(std::string("float32")) && op->min_inputs == 0 &&
          !arguments.given(p.name))
        arguments.parameters.emplace_back(p.name, std::string(tenon::name(options_.default_float)));

  return located(ast.extent, [&]() -> Value { return Tensors{apply(graph_, *op, inputs, arguments.parameters)}; });
}

}  // namespace tenon::expression
