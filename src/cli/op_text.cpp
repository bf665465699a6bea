#include "cli/op_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace tenon::cli {
namespace {

namespace json = boost::json;

std::string bounds(const Parameter& p) {
  if (!p.choices.empty()) return fmt::format("one of {}", fmt::join(p.choices, ", "));
  if (p.min && p.max) return fmt::format("{} to {}", *p.min, *p.max);
  if (p.min) return fmt::format("at least {}", *p.min);
  if (p.max) return fmt::format("at most {}", *p.max);
  return {};
}

json::value to_json(const ParameterValue& value) {
  struct Convert {
    json::value operator()(std::monostate) const { return nullptr; }
    json::value operator()(bool v) const { return v; }
    json::value operator()(std::int64_t v) const { return v; }
    json::value operator()(double v) const {
      // JSON has no infinities; the same texts as in results.
      if (v != v) return "NaN";
      if (v - v != 0) return v > 0 ? "Infinity" : "-Infinity";
      return v;
    }
    json::value operator()(const std::string& v) const { return json::string(v); }
    json::value operator()(const std::vector<std::int64_t>& v) const { return json::array(v.begin(), v.end()); }
  };
  return std::visit(Convert{}, value);
}

json::value to_json(const std::optional<double>& bound) { return bound ? json::value(*bound) : json::value(nullptr); }

template <class List>
json::array texts(const List& list) {
  json::array result;
  for (const auto& item : list) result.emplace_back(json::string(std::string_view(item)));
  return result;
}

}  // namespace

std::string wrap(std::string_view text, int width, int indent) {
  std::string out;
  std::size_t column = static_cast<std::size_t>(indent);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    if (!out.empty() && column + 1 + word.size() > static_cast<std::size_t>(width)) {
      out += '\n' + std::string(static_cast<std::size_t>(indent), ' ');
      column = static_cast<std::size_t>(indent);
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string format_value(const ParameterValue& value) {
  struct Print {
    std::string operator()(std::monostate) const { return "none"; }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(const std::vector<std::int64_t>& v) const { return fmt::format("[{}]", fmt::join(v, ", ")); }
  };
  return std::visit(Print{}, value);
}

std::string format_dtypes(const std::vector<DType>& dtypes) {
  const auto count = [&](auto&& wanted) { return std::count_if(dtypes.begin(), dtypes.end(), wanted); };
  const auto all = [](auto&& wanted) {
    const auto every = all_dtypes();
    return std::count_if(every.begin(), every.end(), wanted);
  };
  struct Group {
    const char* name;
    bool (*holds)(DType);
  };
  constexpr std::array<Group, 3> groups{{{"bool", [](DType d) { return d == DType::boolean; }},
                                         {"integers", [](DType d) { return is_integer(d); }},
                                         {"floats", [](DType d) { return is_float(d); }}}};
  std::vector<std::string> parts;
  for (const Group& group : groups) {
    if (count(group.holds) == all(group.holds)) {
      parts.emplace_back(group.name);
    } else {
      for (const DType dtype : dtypes)
        if (group.holds(dtype)) parts.emplace_back(name(dtype));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string format_signature(const OpInfo& op) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < op.input_names.size(); ++i)
    parts.push_back(static_cast<int>(i) < op.min_inputs ? op.input_names[i] : op.input_names[i] + "=none");
  if (op.max_inputs < 0) parts.emplace_back("...");
  for (const Parameter& p : op.parameters) parts.push_back(p.required ? p.name : p.name + "=" + format_value(p.fallback));
  return fmt::format("{}({})", op.name, fmt::join(parts, ", "));
}

std::vector<std::string> categories() {
  std::set<std::string> names;
  for (const OpInfo& op : all_ops()) names.insert(op.category);
  return {names.begin(), names.end()};
}

std::string op_list(const Console& console) {
  // A few names are long; their text begins on a line of its own instead of moving everybody's to the right.
  constexpr std::size_t kColumn = 20;
  std::string out;
  for (const std::string& category : categories()) {
    if (!out.empty()) out += '\n';
    out += console.bold(category) + '\n';
    for (const OpInfo& op : all_ops()) {
      if (op.category != category) continue;
      out += op.name.size() > kColumn ? fmt::format("  {}\n{:{}}", op.name, "", kColumn + 4)
                                      : fmt::format("  {:<{}}  ", op.name, kColumn);
      out += wrap(op.doc, console.width, static_cast<int>(kColumn) + 4) + '\n';
    }
  }
  return out + fmt::format("\n{} ops; tenon ops NAME shows the details of one.\n", all_ops().size());
}

std::string op_page(const OpInfo& op, const Console& console, const std::string& example_output) {
  constexpr int kIndent = 12;
  std::string out = console.bold(wrap(format_signature(op), console.width, 4)) + '\n';
  const auto field = [&](const char* label, const std::string& text) {
    if (!text.empty()) out += fmt::format("{:<{}}{}\n", label, kIndent, wrap(text, console.width, kIndent));
  };
  out += wrap(op.doc, console.width, 0) + "\n\n";
  field("formula", op.formula);
  field("category", op.category);
  field("aliases", fmt::format("{}", fmt::join(op.aliases, ", ")));
  field("dtypes", format_dtypes(op.dtypes));
  if (!op.parameters.empty()) out += "\nparameters\n";
  for (const Parameter& p : op.parameters) {
    std::string facts(name(p.type));
    facts += p.required ? ", required" : ", default " + format_value(p.fallback);
    if (const std::string limits = bounds(p); !limits.empty()) facts += ", " + limits;
    out += static_cast<int>(p.name.size()) < kIndent - 2 ? fmt::format("  {:<{}}", p.name, kIndent - 2)
                                                         : fmt::format("  {}\n{:{}}", p.name, "", kIndent);
    out += wrap(facts, console.width, kIndent) + '\n';
    if (!p.doc.empty()) out += std::string(kIndent, ' ') + wrap(p.doc, console.width, kIndent) + '\n';
  }
  if (op.example.empty()) return out;
  out += fmt::format("\nexample\n  tenon run '{}'\n", op.example);
  for (std::size_t at = 0; at < example_output.size();) {
    const std::size_t end = std::min(example_output.find('\n', at), example_output.size());
    out += "  " + example_output.substr(at, end - at) + '\n';
    at = end + 1;
  }
  return out;
}

json::object op_json(const OpInfo& op) {
  json::array parameters;
  for (const Parameter& p : op.parameters)
    parameters.push_back({{"name", p.name},
                          {"type", name(p.type)},
                          {"default", to_json(p.fallback)},
                          {"required", p.required},
                          {"min", to_json(p.min)},
                          {"max", to_json(p.max)},
                          {"choices", texts(p.choices)},
                          {"doc", p.doc}});
  json::array dtypes;
  for (const DType dtype : op.dtypes) dtypes.emplace_back(name(dtype));
  return {{"name", op.name},
          {"aliases", texts(op.aliases)},
          {"category", op.category},
          {"arity", op.min_inputs},
          {"max_arity", op.max_inputs < 0 ? json::value(nullptr) : json::value(op.max_inputs)},
          {"inputs", texts(op.input_names)},
          {"parameters", std::move(parameters)},
          {"dtypes", std::move(dtypes)},
          {"formula", op.formula},
          {"doc", op.doc},
          {"example", op.example}};
}

}  // namespace tenon::cli
