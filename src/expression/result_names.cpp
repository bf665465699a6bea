#include "expression/result_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "expression/parser.h"
#include "tenon/ops.h"

namespace tenon {

std::vector<std::string> numbered_results(std::size_t count) {
  if (count == 1) return {"result"};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("result{}", i));
  return names;
}

namespace {

using expression::Ast;
using expression::AstKind;

// |given| where it is a name, and numbers elsewhere. A name that occurs twice would hide a result in a file.
std::vector<std::string> completed(const std::vector<std::string_view>& given, std::size_t count) {
  std::vector<std::string> names = numbered_results(count);
  if (given.size() != count) return names;
  for (std::size_t i = 0; i < count; ++i)
    if (!given[i].empty() && std::find(names.begin(), names.end(), given[i]) == names.end()) names[i] = given[i];
  return names;
}

std::vector<std::string_view> names_in_tuple(const std::vector<Ast>& ast, const Ast& tuple) {
  std::vector<std::string_view> names;
  for (const expression::AstId child : tuple.children) {
    const Ast& item = ast[static_cast<std::size_t>(child)];
    names.push_back(item.kind == AstKind::name ? item.text : std::string_view());
  }
  return names;
}

}  // namespace

std::vector<std::string> op_result_names(std::string_view op, std::size_t count) {
  const OpInfo* const info = lookup_op(op);
  if (info != nullptr && info->name == "top_k") return completed({"values", "indices"}, count);
  return numbered_results(count);
}

std::vector<std::string> result_names(std::string_view source, std::size_t count) {
  if (count == 1) return numbered_results(count);
  const std::vector<Ast> ast = expression::parse(source);
  const auto last = std::find_if(ast.rbegin(), ast.rend(),
                                 [](const Ast& node) { return node.kind == AstKind::assign || node.kind == AstKind::statement; });
  if (last == ast.rend()) return numbered_results(count);
  if (last->kind == AstKind::assign && last->words.size() == count) return completed(last->words, count);
  const Ast& value = ast[static_cast<std::size_t>(last->children[0])];
  if (value.kind == AstKind::tuple) return completed(names_in_tuple(ast, value), count);
  if (value.kind == AstKind::call) return op_result_names(value.text, count);
  return numbered_results(count);
}

}  // namespace tenon
