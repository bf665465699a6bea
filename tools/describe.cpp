// describe: prints the files that are made from the code: `describe ops` is docs/ops.md, `describe promotion` the table of
// docs/dtypes.md, `describe functions.h` and `describe functions.cpp` the ops as C++ functions. tests/docs compares what it
// prints with what is in the repository.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>

#include "describe_functions.h"
#include "tenon/array/dtype.h"
#include "tenon/error.h"
#include "tenon/ops.h"

namespace {

// A cell of a Markdown table: a bar would end it, and a star or an underscore between letters would set it in italics.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '<') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string code(const std::string& text) {
  if (text.empty()) return "";
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return fmt::format("`{}`", out);
}

struct ValueText {
  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return value; }
  std::string operator()(const std::vector<std::int64_t>& value) const { return fmt::format("[{}]", fmt::join(value, ", ")); }
};

std::string call_of(const tenon::OpInfo& op) {
  std::vector<std::string> parts = op.input_names;
  if (op.max_inputs < 0) parts.push_back("...");
  for (const tenon::Parameter& p : op.parameters)
    parts.push_back(p.required ? p.name : fmt::format("{}={}", p.name, std::visit(ValueText{}, p.fallback)));
  return fmt::format("{}({})", op.name, fmt::join(parts, ", "));
}

// "any", or the kinds of which all dtypes are accepted, and by name those of the other kinds.
std::string dtypes_of(const tenon::OpInfo& op) {
  struct Kind {
    const char* name;
    bool (*is)(tenon::DType);
  };
  constexpr Kind kKinds[] = {
      {"bool", [](tenon::DType d) { return d == tenon::DType::boolean; }},
      {"integer", [](tenon::DType d) { return tenon::is_integer(d); }},
      {"float", [](tenon::DType d) { return tenon::is_float(d); }},
  };
  if (op.dtypes.size() == static_cast<std::size_t>(tenon::kDTypeCount)) return "any";
  std::vector<std::string> parts;
  for (const Kind& kind : kKinds) {
    std::vector<std::string> accepted;
    bool all = true;
    for (const tenon::DType d : tenon::all_dtypes()) {
      if (!kind.is(d)) continue;
      if (std::find(op.dtypes.begin(), op.dtypes.end(), d) != op.dtypes.end())
        accepted.emplace_back(name(d));
      else
        all = false;
    }
    if (all)
      parts.emplace_back(kind.name);
    else
      parts.insert(parts.end(), accepted.begin(), accepted.end());
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void print_ops() {
  std::map<std::string, std::vector<const tenon::OpInfo*>> categories;
  for (const tenon::OpInfo& op : tenon::all_ops()) categories[op.category].push_back(&op);

  fmt::print("# The ops\n\n");
  fmt::print(
      "{} ops in {} categories. This page is generated from the catalogue (`tools/docs`); `tenon ops NAME` shows one op with\n",
      tenon::all_ops().size(), categories.size());
  fmt::print(
      "its parameters and bounds. *float* stands for float16, bfloat16, float32, float64, bfloat8_b and bfloat4_b; *integer* "
      "for\n");
  fmt::print("int8 to int64 and uint8 to uint64.\n");
  for (const auto& [category, ops] : categories) {
    fmt::print("\n## {}\n\n| op | aliases | dtypes | formula | description |\n|---|---|---|---|---|\n", category);
    for (const tenon::OpInfo* op : ops)
      fmt::print("| {} | {} | {} | {} | {} |\n", code(call_of(*op)), cell(fmt::format("{}", fmt::join(op->aliases, ", "))),
                 dtypes_of(*op), code(op->formula), cell(op->doc));
  }
}

// Short names, in the order of the enumeration: full ones make the table too wide to read.
constexpr const char* kShort[] = {"bool", "u8",  "u16",  "u32", "u64", "i8",   "i16", "i32",
                                  "i64",  "f16", "bf16", "f32", "f64", "bfp8", "bfp4"};
static_assert(std::size(kShort) == tenon::kDTypeCount);
const char* short_name(tenon::DType d) { return kShort[static_cast<int>(d)]; }

void print_promotion() {
  fmt::print("| |");
  for (const tenon::DType d : tenon::all_dtypes()) fmt::print(" {} |", short_name(d));
  fmt::print("\n|---|");
  for (int i = 0; i < tenon::kDTypeCount; ++i) fmt::print("---|");
  fmt::print("\n");
  for (const tenon::DType a : tenon::all_dtypes()) {
    fmt::print("| **{}** |", short_name(a));
    for (const tenon::DType b : tenon::all_dtypes()) fmt::print(" {} |", short_name(promote(a, b)));
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 2 ? argv[1] : "";
  try {
    if (what == "ops") return print_ops(), 0;
    if (what == "promotion") return print_promotion(), 0;
    if (what == "functions.h") return tenon::describe::print_functions_header(), 0;
    if (what == "functions.cpp") return tenon::describe::print_functions_source(), 0;
  } catch (const tenon::Error& e) {
    fmt::print(stderr, "describe: {}\n", e.what());
    return 1;
  }
  fmt::print(stderr, "usage: describe ops|promotion|functions.h|functions.cpp\n");
  return 2;
}
