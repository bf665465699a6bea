#include "present/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <type_traits>

namespace tenon::present {
namespace {

// Bounds beyond these only keep numbers representable.
constexpr double kHuge = 1e6, kTiny = 1e-6;

std::string facts_of(const Parameter& p) {
  std::string facts(name(p.type));
  facts += p.required ? ", required" : ", default " + format_value(p.fallback);
  const std::string limits = p.choices.empty() ? range_text(p) : fmt::format("one of {}", fmt::join(p.choices, ", "));
  return limits.empty() ? facts : facts + ", " + limits;
}

}  // namespace

std::string range_text(const Parameter& p) {
  // Which axes exist depends on the input, not on the highest rank.
  if (p.min == -kMaxRank && p.max == kMaxRank - 1) return {};
  const bool has_least = p.min && *p.min >= -kHuge, has_most = p.max && *p.max <= kHuge;
  const bool is_positive = has_least && *p.min > 0 && *p.min < kTiny;
  if (has_least && has_most)
    return is_positive ? fmt::format("more than 0, at most {}", *p.max) : fmt::format("{} to {}", *p.min, *p.max);
  if (has_least) return is_positive ? "more than 0" : fmt::format("at least {}", *p.min);
  return has_most ? fmt::format("at most {}", *p.max) : std::string();
}

void write_parameter_value(JsonWriter& json, const ParameterValue& value) {
  std::visit(
      [&](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          json.null();
        } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
          json.begin_array();
          for (const std::int64_t item : held) json.value(item);
          json.end_array();
        } else {
          json.value(held);
        }
      },
      value);
}

void write_parameters(JsonWriter& json, const OpInfo& op) {
  json.key("parameters").begin_array();
  for (const Parameter& parameter : op.parameters) {
    json.begin_object();
    json.member("name", parameter.name);
    json.member("type", name(parameter.type));
    json.key("default");
    write_parameter_value(json, parameter.fallback);
    json.member("required", parameter.required);
    json.member("min", parameter.min);
    json.member("max", parameter.max);
    json.text_or_null("range", range_text(parameter));
    json.list("choices", parameter.choices);
    json.member("doc", parameter.doc);
    json.end_object();
  }
  json.end_array();
}

void write_operation(JsonWriter& json, const OpInfo& op) {
  json.begin_object();
  json.member("name", op.name);
  json.list("aliases", op.aliases);
  json.member("category", op.category);
  json.member("min_inputs", op.min_inputs);
  json.member("max_inputs", op.max_inputs);
  json.list("input_names", op.input_names);
  json.key("dtypes").begin_array();
  for (const DType dtype : op.dtypes) json.value(name(dtype));
  json.end_array();
  write_parameters(json, op);
  json.member("formula", op.formula);
  json.member("doc", op.doc);
  json.member("example", op.example);
  json.end_object();
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

std::string op_list(const TextStyle& style) {
  // A few names are long; their text begins on a line of its own instead of moving everybody's to the right.
  constexpr std::size_t kColumn = 20;
  std::string out;
  for (const std::string& category : categories()) {
    if (!out.empty()) out += '\n';
    out += style.bold(category) + '\n';
    for (const OpInfo& op : all_ops()) {
      if (op.category != category) continue;
      out += op.name.size() > kColumn ? fmt::format("  {}\n{:{}}", op.name, "", kColumn + 4)
                                      : fmt::format("  {:<{}}  ", op.name, kColumn);
      out += wrap(op.doc, style.width, static_cast<int>(kColumn) + 4) + '\n';
    }
  }
  return out + fmt::format("\n{} ops; tenon ops NAME shows the details of one.\n", all_ops().size());
}

std::string op_page(const OpInfo& op, const TextStyle& style, const std::string& example_output) {
  constexpr int kIndent = 12;
  std::string out = style.bold(wrap(format_signature(op), style.width, 4)) + '\n';
  const auto field = [&](const char* label, const std::string& text) {
    if (!text.empty()) out += fmt::format("{:<{}}{}\n", label, kIndent, wrap(text, style.width, kIndent));
  };
  out += wrap(op.doc, style.width, 0) + "\n\n";
  field("formula", op.formula);
  field("category", op.category);
  field("aliases", fmt::format("{}", fmt::join(op.aliases, ", ")));
  field("dtypes", format_dtypes(op.dtypes));
  if (!op.parameters.empty()) out += "\nparameters\n";
  for (const Parameter& p : op.parameters) {
    out += static_cast<int>(p.name.size()) < kIndent - 2 ? fmt::format("  {:<{}}", p.name, kIndent - 2)
                                                         : fmt::format("  {}\n{:{}}", p.name, "", kIndent);
    out += wrap(facts_of(p), style.width, kIndent) + '\n';
    if (!p.doc.empty()) out += std::string(kIndent, ' ') + wrap(p.doc, style.width, kIndent) + '\n';
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

}  // namespace tenon::present
