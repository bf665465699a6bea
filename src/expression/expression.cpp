#include "tenon/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "expression/builder.h"

namespace tenon {
namespace {

constexpr int kExcerptWidth = 100;

std::string with_place(const std::string& message, const ExpressionError::Place& place) {
  if (place.one_line) return fmt::format("column {}: {}", place.column, message);
  return fmt::format("line {}, column {}: {}", place.line, place.column, message);
}

// Characters [first, first + count) of UTF-8 |text|; control characters become spaces so the caret stays below its place.
std::string cut(std::string_view text, int first, int count) {
  std::string result;
  int at = -1;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++at;
    if (at >= first && at < first + count) result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result;
}

}  // namespace

ExpressionError::ExpressionError(ErrorCode code, std::string message, std::string hint, Place place)
    : Error(code, with_place(message, place), std::move(hint)),
      message_(std::move(message)),
      place_(std::move(place)) {}

std::string ExpressionError::excerpt() const {
  const int column = place_.column - 1;
  const int first = column < kExcerptWidth - 20 ? 0 : column - kExcerptWidth / 2;
  const int length = std::clamp(place_.length, 1, std::max(1, kExcerptWidth - (column - first)));
  return fmt::format("{}\n{:{}}^{:~<{}}", cut(place_.source_line, first, kExcerptWidth), "", column - first, "", length - 1);
}

Graph parse_expression(std::string_view source, std::span<const NamedType> inputs, const ExpressionOptions& options) {
  return expression::Builder(source, inputs, options).run();
}

Graph parse_expression(std::string_view source, std::initializer_list<NamedType> inputs, const ExpressionOptions& options) {
  return parse_expression(source, std::span(inputs.begin(), inputs.size()), options);
}

std::vector<std::string> free_names(std::string_view source) {
  using expression::AstKind;
  std::vector<std::string> free;
  std::vector<std::string_view> bound;
  const auto contains = [](const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const expression::Ast& ast : expression::parse(source)) {
    if (ast.kind == AstKind::assign) bound.insert(bound.end(), ast.words.begin(), ast.words.end());
    if (ast.kind != AstKind::name || contains(bound, ast.text) || contains(free, ast.text)) continue;
    if (!expression::constant_named(ast.text) && !parse_dtype(ast.text)) free.emplace_back(ast.text);
  }
  return free;
}

}  // namespace tenon
