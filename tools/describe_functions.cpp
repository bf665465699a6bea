#include "describe_functions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "tenon/array/dtype.h"
#include "tenon/error.h"
#include "tenon/ops.h"
#include "tenon/tensor/apply.h"

namespace tenon::describe {
namespace {

constexpr std::size_t kWidth = 130;

// Words that cannot name a function or an argument: C++'s own, and macros of the standard headers.
constexpr std::array<std::string_view, 48> kTaken{
    "and",      "asm",     "auto",     "bool",     "break",   "case",   "catch",    "char",     "class",   "const",
    "continue", "default", "delete",   "do",       "double",  "else",   "enum",     "explicit", "export",  "extern",
    "float",    "for",     "friend",   "goto",     "if",      "inline", "int",      "long",     "mutable", "namespace",
    "new",      "not",     "operator", "or",       "private", "public", "register", "return",   "short",   "signed",
    "static",   "struct",  "switch",   "template", "this",    "union",  "assert",   "xor"};

std::string word(const std::string& name) {
  return std::find(kTaken.begin(), kTaken.end(), name) == kTaken.end() ? name : name + "_";
}

std::string_view enumerator(std::string_view dtype_name) {
  constexpr std::array<std::string_view, kDTypeCount> kNames{
      "boolean", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "bfloat8_b", "bfloat4_b"};
  const std::optional<DType> dtype = parse_dtype(dtype_name);
  if (!dtype) throw Error(ErrorCode::internal, fmt::format("{} is no dtype", dtype_name));
  return kNames[static_cast<std::size_t>(*dtype)];
}

struct Argument {
  std::string declaration;  // "std::int64_t axis"
  std::string fallback;     // "-1"; "" for none
  bool is_input = false;
};

bool is_optional(const Parameter& p) { return !p.required && std::holds_alternative<std::monostate>(p.fallback); }

// An op on integers takes integers of 64 bits, which a double cannot hold.
bool takes_integers(const OpInfo& op) { return std::ranges::find(op.dtypes, DType::i64) != op.dtypes.end(); }

std::string type_of(const OpInfo& op, const Parameter& p) {
  const auto maybe = [&](std::string_view type) {
    return is_optional(p) ? fmt::format("std::optional<{}>", type) : std::string(type);
  };
  switch (p.type) {
    case ParameterType::number: return maybe(takes_integers(op) ? "Scalar" : "double");
    case ParameterType::integer: return maybe("std::int64_t");
    case ParameterType::boolean: return maybe("bool");
    case ParameterType::integers: return "const Integers&";
    case ParameterType::dtype: return maybe("DType");
    case ParameterType::text: return maybe("std::string_view");
  }
  throw Error(ErrorCode::internal, "a parameter without a type");
}

struct FallbackText {
  const Parameter& parameter;
  std::string operator()(std::monostate) const { return "std::nullopt"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const {
    return parameter.type == ParameterType::dtype ? fmt::format("DType::{}", enumerator(value)) : fmt::format("\"{}\"", value);
  }
  std::string operator()(const std::vector<std::int64_t>& value) const {
    return value.size() == 1 ? fmt::format("{}", value[0]) : fmt::format("{{{}}}", fmt::join(value, ", "));
  }
};

Argument argument(const OpInfo& op, const Parameter& p) {
  return {fmt::format("{} {}", type_of(op, p), word(p.name)), p.required ? "" : std::visit(FallbackText{p}, p.fallback)};
}

// What must be given comes first: the inputs, then the parameters up to the last one without a default. A list of inputs comes
// after those.
std::vector<Argument> arguments(const OpInfo& op) {
  std::vector<Argument> required_inputs, optional_inputs, result;
  if (op.max_inputs < 0)
    optional_inputs.push_back({fmt::format("const std::vector<Tensor>& {}", word(op.input_names.at(0))), "", true});
  else
    for (std::size_t i = 0; i < static_cast<std::size_t>(op.max_inputs); ++i) {
      const bool optional = static_cast<int>(i) >= op.min_inputs;
      const std::string declaration = fmt::format("const Tensor& {}", word(op.input_names.at(i)));
      (optional ? optional_inputs : required_inputs).push_back({declaration, optional ? "{}" : "", true});
    }
  std::size_t required = 0;
  for (std::size_t i = 0; i < op.parameters.size(); ++i)
    if (op.parameters[i].required) required = i + 1;
  result = required_inputs;
  for (std::size_t i = 0; i < required; ++i) result.push_back({argument(op, op.parameters[i]).declaration, ""});
  result.insert(result.end(), optional_inputs.begin(), optional_inputs.end());
  for (std::size_t i = required; i < op.parameters.size(); ++i) result.push_back(argument(op, op.parameters[i]));
  return result;
}

// |parts| between |head| and |tail|, on as many lines as they need.
std::string wrapped(const std::string& head, const std::vector<std::string>& parts, const std::string& tail) {
  std::string text = head, indent(head.size(), ' ');
  std::size_t column = head.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part = parts[i] + (i + 1 < parts.size() ? "," : tail);
    if (i > 0 && column + 1 + part.size() > kWidth) {
      text += "\n" + indent;
      column = indent.size();
    } else if (i > 0) {
      text += ' ';
      ++column;
    }
    text += part;
    column += part.size();
  }
  return parts.empty() ? text + tail : text;
}

std::string head_of(const OpInfo& op) {
  return fmt::format("{} {}(", has_several_results(op) ? "std::vector<Tensor>" : "Tensor", word(op.name));
}

// |text| in comment lines that begin with |margin|.
std::string comment_lines(const std::string& text, const std::string& margin) {
  std::string out, line = margin;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(' ', from), text.size());
    const std::string next = text.substr(from, end - from);
    if (line.size() + 1 + next.size() > kWidth) {
      out += line + "\n";
      line = margin;
    }
    line += " " + next;
    from = end + 1;
  }
  return out + line + "\n";
}

std::string comment(const OpInfo& op) {
  return comment_lines(op.doc, "//") + (op.formula.empty() ? "" : comment_lines(op.formula, "//  "));
}

std::map<std::string, std::vector<const OpInfo*>> by_category() {
  std::map<std::string, std::vector<const OpInfo*>> categories;
  for (const OpInfo& op : all_ops()) categories[op.category].push_back(&op);
  return categories;
}

}  // namespace

void print_functions_header() {
  fmt::print(
      "// Every op of the catalogue as a function of tensors. Generated from the catalogue by tools/docs; do not edit.\n"
      "//\n"
      "// The inputs of an op come first, then its parameters, with the names and defaults of docs/ops.md. Optional inputs come\n"
      "// after required parameters. An op whose name is a C++ keyword has a trailing underscore.\n"
      "// The functions compute nothing: see tensor.h. They throw invalid_argument and out_of_range, naming the op and the "
      "shapes.\n"
      "//\n"
      "//   Tensor y = softmax(linear(x, weight, bias), /*axis=*/-1);\n"
      "//   Tensor m = mean(y, {{0, 1}}, /*keepdims=*/true);\n"
      "// clang-format off\n"
      "#pragma once\n\n"
      "#include <cstdint>\n#include <optional>\n#include <string_view>\n#include <vector>\n\n"
      "#include \"tenon/array/dtype.h\"\n#include \"tenon/array/integers.h\"\n#include \"tenon/array/scalar.h\"\n#include "
      "\"tenon/tensor.h\"\n\n"
      "namespace tenon {{\n");
  for (const auto& [category, ops] : by_category()) {
    fmt::print("\n// --- {} ---\n", category);
    for (const OpInfo* op : ops) {
      std::vector<std::string> parts;
      for (const Argument& a : arguments(*op))
        parts.push_back(a.fallback.empty() ? a.declaration : a.declaration + " = " + a.fallback);
      fmt::print("\n{}{}\n", comment(*op), wrapped(head_of(*op), parts, ");"));
    }
  }
  fmt::print("\n}}  // namespace tenon\n");
}

void print_functions_source() {
  fmt::print(
      "// Made by tools/docs from the catalogue; not to be edited.\n"
      "// clang-format off\n"
      "#include \"tenon/tensor/functions.h\"\n\n"
      "#include \"tensor/argument.h\"\n#include \"tensor/node.h\"\n\n"
      "namespace tenon {{\n");
  for (const OpInfo& op : all_ops()) {
    std::vector<std::string> declarations, inputs, values;
    for (const Argument& a : arguments(op)) declarations.push_back(a.declaration);
    for (const Parameter& p : op.parameters) values.push_back(fmt::format("{{\"{}\", parameter({})}}", p.name, word(p.name)));
    std::string given;
    if (op.max_inputs < 0) {
      given = fmt::format("pointers({})", word(op.input_names.at(0)));
    } else {
      for (int i = 0; i < op.max_inputs; ++i) inputs.push_back("&" + word(op.input_names.at(static_cast<std::size_t>(i))));
      given = fmt::format("{{{}}}", fmt::join(inputs, ", "));
    }
    fmt::print("\n{}\n", wrapped(head_of(op), declarations, ") {"));
    // Looked up once.
    const bool is_list = op.max_inputs < 0 || has_several_results(op);
    const std::string looked_up = is_list ? fmt::format("\"{}\"", op.name) : "op";
    if (!is_list) fmt::print("  static const OpInfo& op = find_op(\"{}\");\n", op.name);
    const std::string call =
        fmt::format("  return {}({}, {}", has_several_results(op) ? "apply_several" : "apply_one", looked_up, given);
    if (values.empty())
      fmt::print("{});\n}}\n", call);
    else
      fmt::print("{},\n{}\n}}\n", call, wrapped("      {", values, "});"));
  }
  fmt::print("\n}}  // namespace tenon\n");
}

}  // namespace tenon::describe
