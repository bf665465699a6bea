// f(a, b, axis=-1): decides which argument is an input of the op and which a parameter.
#include <fmt/format.h>

#include <algorithm>

#include "expression/builder.h"
#include "ops/constant_value.h"
#include "ops/names.h"

namespace tenon::expression {

// The arguments collected for one call.
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

// nullopt if no parameter can have such a value.
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

// Strings and dtypes are never inputs; tensors always are; a number or a list is one while the op still needs inputs, or if its
// next parameter cannot have this value.
bool is_input(const Arguments& arguments, const Value& value) {
  if (std::holds_alternative<std::string>(value) || std::holds_alternative<DType>(value)) return false;
  if (std::holds_alternative<std::monostate>(value)) return arguments.takes_input();
  if (std::holds_alternative<Tensors>(value)) return arguments.takes_input();
  if (arguments.wants_input()) return true;
  const Parameter* parameter = arguments.parameter();
  return arguments.takes_input() && (parameter == nullptr || !fits(*parameter, value));
}

// concat([a, b], axis=0): a single list is replaced by its items, and so are the results of another op: concat(split(x, 2)).
bool spreads(const Arguments& arguments, const Value& value, bool only_one) {
  if (!arguments.inputs.empty() || arguments.op.max_inputs == 1) return false;
  if (const auto* tensors = std::get_if<Tensors>(&value)) return tensors->ids.size() > 1;
  const List* list = as_list(value);
  return list != nullptr && only_one && (list->has_tensor || arguments.op.max_inputs < 0);
}

std::string signature(const OpInfo& op) {
  std::string text = op.name + "(";
  for (std::size_t i = 0; i < op.input_names.size(); ++i) text += (i > 0 ? ", " : "") + op.input_names[i];
  for (const Parameter& p : op.parameters) text += (text.back() == '(' ? "" : ", ") + p.name + (p.required ? "" : "=...");
  return text + ")";
}

}  // namespace

const OpInfo& Builder::called_op(const Ast& ast) const {
  if (const OpInfo* op = lookup_op(ast.text)) return *op;
  if (variables_.contains(ast.text))
    fail(ast.name_extent, fmt::format("'{}' is a tensor, not an op", ast.text), "write * to multiply, [ ] to index");
  std::vector<std::string_view> known;
  for (const OpInfo& info : all_ops()) known.push_back(info.name);
  for (const OpInfo& info : all_ops()) known.insert(known.end(), info.aliases.begin(), info.aliases.end());
  fail(ast.name_extent, fmt::format("unknown op '{}'", ast.text), name_hint(ast.text, known, "check its name in the list of ops"),
       ErrorCode::not_found);
}

void Builder::add_parameter(Arguments& arguments, const Parameter& parameter, AstId id) const {
  const Value& given = value(id);
  const std::string& op = arguments.op.name;
  if (const auto* tensors = std::get_if<Tensors>(&given)) {
    const auto known = tensors->ids.size() == 1 ? constant_value(graph_, tensors->ids[0]) : std::nullopt;
    if (!known)
      fail(part(id).extent, fmt::format("parameter '{}' of {} must be a constant {}, not computed from tensors", parameter.name,
                                        op, tenon::name(parameter.type)));
    arguments.parameters.emplace_back(parameter.name, *known);
    return;
  }
  auto converted = to_parameter(parameter, given);
  if (!converted)
    fail(part(id).extent, fmt::format("parameter '{}' of {} must be {} {}, not {}", parameter.name, op,
                                      parameter.type == ParameterType::integers ? "a list of" : "a", tenon::name(parameter.type),
                                      describe(given)));
  arguments.parameters.emplace_back(parameter.name, std::move(*converted));
}

void Builder::add_positional(Arguments& arguments, AstId id, bool only_candidate) {
  const Value& given = value(id);
  const Extent at = part(id).extent;
  if (spreads(arguments, given, only_candidate)) {
    if (const auto* tensors = std::get_if<Tensors>(&given)) {
      arguments.inputs.assign(tensors->ids.begin(), tensors->ids.end());
    } else {
      for (const Value& item : as_list(given)->items) arguments.inputs.emplace_back(tensor(item, at));
    }
  } else if (is_input(arguments, given)) {
    const bool optional = arguments.op.max_inputs >= 0 && !arguments.wants_input();
    const bool skipped = optional && std::holds_alternative<std::monostate>(given);
    arguments.inputs.push_back(skipped ? std::nullopt : std::optional(tensor(id)));
  } else if (const Parameter* parameter = arguments.parameter()) {
    add_parameter(arguments, *parameter, id);
    ++arguments.next_parameter;
  } else {
    fail(at, fmt::format("too many arguments for {}", arguments.op.name), "it is " + signature(arguments.op));
  }
}

void Builder::add_named(Arguments& arguments, std::string_view word, AstId id) {
  const OpInfo& op = arguments.op;
  const auto begin = static_cast<std::uint32_t>(word.data() - source_.data());
  const Extent at{begin, begin + static_cast<std::uint32_t>(word.size())};
  for (const Parameter& parameter : op.parameters) {
    if (parameter.name != word) continue;
    if (arguments.given(word)) fail(at, fmt::format("parameter '{}' of {} is set twice", word, op.name));
    return add_parameter(arguments, parameter, id);
  }
  const auto input = std::find(op.input_names.begin(), op.input_names.end(), word);
  if (input == op.input_names.end()) {
    std::vector<std::string> known = op.input_names;
    for (const Parameter& p : op.parameters) known.push_back(p.name);
    const std::string near = nearest(word, known);
    fail(at, fmt::format("{} has no parameter '{}'", op.name, word),
         near.empty() ? "it is " + signature(op) : fmt::format("did you mean '{}'?", near));
  }
  const auto slot = static_cast<std::size_t>(input - op.input_names.begin());
  if (std::holds_alternative<std::monostate>(value(id))) return;
  if (slot < arguments.inputs.size() && arguments.inputs[slot])
    fail(at, fmt::format("parameter '{}' of {} is set twice", word, op.name));
  if (slot >= arguments.inputs.size()) arguments.inputs.resize(slot + 1);
  arguments.inputs[slot] = tensor(id);
}

Value Builder::call(const Ast& ast) {
  const OpInfo& op = called_op(ast);
  Arguments arguments{op};
  int candidates = 0;
  for (std::size_t i = 0; i < ast.children.size(); ++i) {
    const Value& given = value(ast.children[i]);
    candidates += ast.words[i].empty() && (as_list(given) != nullptr || std::holds_alternative<Tensors>(given)) ? 1 : 0;
  }
  for (std::size_t i = 0; i < ast.children.size(); ++i) {
    if (ast.words[i].empty()) {
      add_positional(arguments, ast.children[i], candidates == 1);
    } else {
      add_named(arguments, ast.words[i], ast.children[i]);
    }
  }

  while (!arguments.inputs.empty() && !arguments.inputs.back()) arguments.inputs.pop_back();
  std::vector<NodeId> inputs;
  for (const std::optional<NodeId>& input : arguments.inputs) {
    if (!input)
      fail(ast.extent,
           fmt::format("{}: input '{}' is missing, but a later input is given", op.name, op.input_names.at(inputs.size())),
           "it is " + signature(op));
    inputs.push_back(*input);
  }
  // zeros, rand, ... use the session's float dtype unless a dtype is given.
  if (options_.default_float != DType::f32 && op.min_inputs == 0)
    for (const Parameter& p : op.parameters)
      if (p.type == ParameterType::dtype && p.fallback == ParameterValue(std::string("float32")) && !arguments.given(p.name))
        arguments.parameters.emplace_back(p.name, std::string(tenon::name(options_.default_float)));

  return located(ast.extent, [&]() -> Value { return Tensors{apply(graph_, op, inputs, arguments.parameters)}; });
}

}  // namespace tenon::expression
