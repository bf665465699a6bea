#include "expression/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tenon::expression {
namespace {

// Binding strength, as in Python; unary minus binds tighter than * and weaker than **.
enum Strength { kOr = 1, kAnd, kNot, kCompare, kBitOr, kBitXor, kBitAnd, kShift, kSum, kProduct, kSign, kPower };

constexpr std::pair<std::string_view, Strength> kBinary[] = {
    {"or", kOr},      {"and", kAnd},   {"==", kCompare}, {"!=", kCompare}, {"<", kCompare}, {"<=", kCompare}, {">", kCompare},
    {">=", kCompare}, {"|", kBitOr},   {"^", kBitXor},   {"&", kBitAnd},   {"<<", kShift},  {">>", kShift},   {"+", kSum},
    {"-", kSum},      {"*", kProduct}, {"/", kProduct},  {"//", kProduct}, {"%", kProduct}, {"@", kProduct},  {"**", kPower},
};

constexpr std::array<std::string_view, 8> kReserved{"and", "or", "not", "true", "false", "True", "False", "None"};

bool is_reserved(std::string_view name) { return std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end(); }

class Parser {
 public:
  explicit Parser(std::string_view source) : source_(source), tokens_(tokenize(source)) {}

  std::vector<Ast> run() {
    bool any = false;
    while (true) {
      while (token().kind == TokenKind::separator) ++at_;
      if (token().kind == TokenKind::end) break;
      statement();
      any = true;
      if (token().kind != TokenKind::separator && token().kind != TokenKind::end) unexpected("an operator");
    }
    if (!any) fail(source_, {}, "the expression is empty", "for example: 1 + 1");
    return std::move(ast_);
  }

 private:
  const Token& token(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is_symbol(std::string_view symbol) const { return token().kind == TokenKind::symbol && token().text == symbol; }
  bool is_word(std::string_view word) const { return token().kind == TokenKind::name && token().text == word; }
  bool accept(std::string_view symbol) {
    if (!is_symbol(symbol)) return false;
    ++at_;
    return true;
  }

  [[noreturn]] void unexpected(const std::string& wanted) const {
    std::string hint;
    if (is_symbol("=")) hint = "use == to compare; only a name may stand before =";
    if (is_symbol("{") || is_symbol("}")) hint = "lists are written with [ ]";
    fail(source_, token().extent, fmt::format("expected {}, found {}", wanted, describe(token())), hint);
  }

  void close(std::string_view symbol, const Token& opening) {
    if (accept(symbol)) return;
    const ExpressionError::Place place = locate(source_, opening.extent);
    const std::string where =
        place.one_line ? fmt::format("column {}", place.column) : fmt::format("line {}, column {}", place.line, place.column);
    unexpected(fmt::format("'{}' to close the '{}' of {}", symbol, opening.text, where));
  }

  AstId add(Ast ast) {
    ast_.push_back(std::move(ast));
    return static_cast<AstId>(ast_.size()) - 1;
  }
  const Extent& extent(AstId id) const { return ast_[static_cast<std::size_t>(id)].extent; }
  Extent since(std::uint32_t begin) const { return {begin, tokens_[at_ > 0 ? at_ - 1 : 0].extent.end}; }

  // Whether a list of names and a single = follow.
  bool is_assignment() const {
    for (std::size_t i = 0;; i += 2) {
      if (token(i).kind != TokenKind::name || token(i + 1).kind != TokenKind::symbol) return false;
      if (token(i + 1).text == "=") return true;
      if (token(i + 1).text != ",") return false;
    }
  }

  void statement() {
    const std::uint32_t begin = token().extent.begin;
    if (!is_assignment()) {
      const AstId value = tuple();
      add({.kind = AstKind::statement, .extent = extent(value), .children = {value}});
      return;
    }
    Ast assign{.kind = AstKind::assign};
    do {
      const Token& name = token();
      if (is_reserved(name.text)) fail(source_, name.extent, fmt::format("'{}' cannot be assigned to", name.text));
      if (std::find(assign.words.begin(), assign.words.end(), name.text) != assign.words.end())
        fail(source_, name.extent, fmt::format("'{}' is assigned twice", name.text));
      assign.words.push_back(name.text);
      ++at_;
    } while (accept(","));
    ++at_;
    assign.children = {tuple()};
    assign.extent = since(begin);
    add(std::move(assign));
  }

  AstId tuple() {
    const std::uint32_t begin = token().extent.begin;
    std::vector<AstId> items{expression(kOr)};
    if (!is_symbol(",")) return items[0];
    while (accept(",")) {
      if (token().kind == TokenKind::separator || token().kind == TokenKind::end) break;
      items.push_back(expression(kOr));
    }
    return add({.kind = AstKind::tuple, .extent = since(begin), .children = std::move(items)});
  }

  AstId expression(int strength) {
    struct Level {
      Parser& parser;
      explicit Level(Parser& p) : parser(p) {
        if (++parser.depth_ > ExpressionOptions::kMaxDepth)
          fail(parser.source_, parser.token().extent,
               fmt::format("the expression is nested more than {} deep", ExpressionOptions::kMaxDepth),
               "name a part of it: t = ...; f(t)", ErrorCode::resource_exhausted);
      }
      ~Level() { --parser.depth_; }
    } level(*this);

    AstId left = prefix();
    while (true) {
      const auto* op = binary_operator();
      if (op == nullptr || op->second < strength) return left;
      if (op->second == kCompare) {
        left = comparison(left);
        continue;
      }
      ++at_;
      const AstId right = expression(op->second == kPower ? kSign : op->second + 1);
      left = add({.kind = AstKind::binary,
                  .extent = {extent(left).begin, extent(right).end},
                  .text = op->first,
                  .children = {left, right}});
    }
  }

  const std::pair<std::string_view, Strength>* binary_operator() const {
    if (token().kind != TokenKind::symbol && token().kind != TokenKind::name) return nullptr;
    for (const auto& op : kBinary)
      if (op.first == token().text) return &op;
    return nullptr;
  }

  AstId comparison(AstId first) {
    Ast chain{.kind = AstKind::compare, .children = {first}};
    for (auto* op = binary_operator(); op != nullptr && op->second == kCompare; op = binary_operator()) {
      ++at_;
      chain.words.push_back(op->first);
      chain.children.push_back(expression(kCompare + 1));
    }
    chain.extent = {extent(first).begin, extent(chain.children.back()).end};
    return add(std::move(chain));
  }

  AstId prefix() {
    const Token& op = token();
    const bool sign = is_symbol("-") || is_symbol("+") || is_symbol("~");
    if (!sign && !is_word("not")) return postfix();
    ++at_;
    const AstId operand = expression(sign ? kSign : kNot);
    return add(
        {.kind = AstKind::unary, .extent = {op.extent.begin, extent(operand).end}, .text = op.text, .children = {operand}});
  }

  AstId postfix() {
    AstId value = primary();
    while (true) {
      const std::uint32_t begin = extent(value).begin;
      const Token& opening = token();
      if (accept("[")) {
        Ast index{.kind = AstKind::subscript, .children = {value}};
        do {
          if (is_symbol("]")) break;
          index.children.push_back(index_item());
        } while (accept(","));
        close("]", opening);
        if (index.children.size() == 1) fail(source_, since(opening.extent.begin), "expected an index between [ and ]");
        index.extent = since(begin);
        value = add(std::move(index));
      } else if (accept(".")) {
        const Token& name = token();
        if (name.kind != TokenKind::name) unexpected("a name after '.'");
        ++at_;
        if (is_symbol("(")) {
          value = call(name, begin, {value});
        } else if (name.text == "T") {
          value = add({.kind = AstKind::transpose, .extent = since(begin), .children = {value}});
        } else {
          fail(source_, name.extent, fmt::format("unknown attribute .{}", name.text),
               fmt::format("call the op: x.{}(), or {}(x)", name.text, name.text));
        }
      } else if (is_symbol("(")) {
        fail(source_, token().extent, "only an op can be called", "write * to multiply");
      } else {
        return value;
      }
    }
  }

  AstId index_item() {
    const std::uint32_t begin = token().extent.begin;
    if (accept("...")) return add({.kind = AstKind::ellipsis, .extent = since(begin)});
    const auto ends = [&] { return is_symbol(",") || is_symbol("]") || is_symbol(":"); };
    AstId start = -1;
    if (!is_symbol(":")) {
      start = expression(kOr);
      if (!is_symbol(":")) return start;
    }
    std::vector<AstId> parts{start, -1, -1};
    for (std::size_t i = 1; i < 3 && accept(":"); ++i)
      if (!ends()) parts[i] = expression(kOr);
    return add({.kind = AstKind::slice, .extent = since(begin), .children = std::move(parts)});
  }

  AstId call(const Token& name, std::uint32_t begin, std::vector<AstId> arguments) {
    const Token& opening = token();
    ++at_;
    Ast result{.kind = AstKind::call, .name_extent = name.extent, .text = name.text, .children = std::move(arguments)};
    result.words.resize(result.children.size());
    while (!is_symbol(")")) {
      std::string_view keyword;
      if (token().kind == TokenKind::name && token(1).kind == TokenKind::symbol && token(1).text == "=") {
        keyword = token().text;
        if (std::find(result.words.begin(), result.words.end(), keyword) != result.words.end())
          fail(source_, token().extent, fmt::format("'{}' is given twice", keyword));
        at_ += 2;
      } else if (!result.words.empty() && !result.words.back().empty()) {
        fail(source_, token().extent, fmt::format("a positional argument follows {}=", result.words.back()),
             "put named arguments last");
      }
      result.words.push_back(keyword);
      result.children.push_back(expression(kOr));
      if (!accept(",")) break;
    }
    close(")", opening);
    result.extent = since(begin);
    return add(std::move(result));
  }

  AstId primary() {
    const Token& t = token();
    switch (t.kind) {
      case TokenKind::integer: ++at_; return add({.kind = AstKind::integer, .extent = t.extent, .integer = t.integer});
      case TokenKind::number: ++at_; return add({.kind = AstKind::number, .extent = t.extent, .number = t.number});
      case TokenKind::text: ++at_; return add({.kind = AstKind::text, .extent = t.extent, .text = t.text});
      case TokenKind::name: return name();
      default: break;
    }
    if (accept("(")) return parenthesis(t);
    if (accept("[")) {
      std::vector<AstId> items;
      while (!is_symbol("]")) {
        items.push_back(expression(kOr));
        if (!accept(",")) break;
      }
      close("]", t);
      return add({.kind = AstKind::list, .extent = since(t.extent.begin), .children = std::move(items)});
    }
    unexpected("a value");
  }

  AstId parenthesis(const Token& opening) {
    std::vector<AstId> items;
    bool comma = false;
    while (!is_symbol(")")) {
      items.push_back(expression(kOr));
      comma = accept(",");
      if (!comma) break;
    }
    close(")", opening);
    if (items.size() == 1 && !comma) return items[0];
    return add({.kind = AstKind::tuple, .extent = since(opening.extent.begin), .children = std::move(items)});
  }

  AstId name() {
    const Token& t = token();
    if (is_word("and") || is_word("or")) unexpected("a value");
    ++at_;
    if (is_symbol("(") && !is_reserved(t.text)) return call(t, t.extent.begin, {});
    if (t.text == "None") return add({.kind = AstKind::none, .extent = t.extent});
    if (t.text == "true" || t.text == "True") return add({.kind = AstKind::boolean, .extent = t.extent, .integer = 1});
    if (t.text == "false" || t.text == "False") return add({.kind = AstKind::boolean, .extent = t.extent});
    return add({.kind = AstKind::name, .extent = t.extent, .text = t.text});
  }

  std::string_view source_;
  std::vector<Token> tokens_;
  std::vector<Ast> ast_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<Ast> parse(std::string_view source) { return Parser(source).run(); }

}  // namespace tenon::expression
