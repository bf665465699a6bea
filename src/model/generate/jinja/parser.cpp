#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/text/printable.h"
#include "model/generate/jinja/syntax.h"
#include "tenon/error.h"

namespace tenon::jinja {
namespace {

constexpr int kDeepest = 100;              // of nested statements and expressions
constexpr std::size_t kMostTokens = 2000;  // of one tag; chains such as a + b + c are as deep as they are long

using Kind = Node::Kind;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Node run() {
    std::size_t length = 0;
    for (const Token& token : tokens_) {
      const bool is_begin = token.kind == Token::Kind::output_begin || token.kind == Token::Kind::statement_begin;
      if ((length = is_begin ? 0 : length + 1) > kMostTokens && token.kind != Token::Kind::text)
        fail_at(token.line, "a tag is too long");
    }
    Node all = block({});
    if (now().kind != Token::Kind::end) fail(fmt::format("'{}' ends nothing", printable(tokens_[at_ + 1].text)));
    return all;
  }

 private:
  // --- Tokens ---
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  [[noreturn]] void fail(const std::string& what) const { fail_at(now().line, what); }
  [[noreturn]] void fail_here() const {
    const std::string text = now().text;
    fail(text.empty() ? std::string("an expression is not complete") : fmt::format("unexpected '{}'", printable(text)));
  }
  bool is_sign(std::string_view sign) const { return now().kind == Token::Kind::sign && now().text == sign; }
  bool is_word(std::string_view word) const { return now().kind == Token::Kind::name && now().text == word; }
  bool take_sign(std::string_view sign) {
    if (!is_sign(sign)) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (!is_word(word)) return false;
    ++at_;
    return true;
  }
  void expect_sign(std::string_view sign) {
    if (!take_sign(sign)) fail(fmt::format("'{}' is missing before '{}'", sign, printable(now().text)));
  }
  std::string expect_name() {
    if (now().kind != Token::Kind::name) fail_here();
    return tokens_[at_++].text;
  }
  void expect_end() {
    if (now().kind != Token::Kind::statement_end) fail_here();
    ++at_;
  }
  Node make(Kind kind, std::string text = {}) const {
    Node node;
    node.kind = kind;
    node.line = now().line;
    node.text = std::move(text);
    return node;
  }
  static Node with(Node node, Node child) {
    node.children.push_back(std::move(child));
    return node;
  }
  static Node with(Node node, Node first, Node second) {
    return with(with(std::move(node), std::move(first)), std::move(second));
  }

  // Counts how deep the parser is.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest) parser_.fail("it is nested too deeply");
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  // --- Statements ---

  // Up to a statement that begins with one of |ends|, which is not taken.
  Node block(std::initializer_list<std::string_view> ends) {
    const Level level(*this);
    Node out = make(Kind::block);
    for (;;) {
      switch (now().kind) {
        case Token::Kind::end: return out;
        case Token::Kind::text: {
          Node text = make(Kind::literal);
          text.value = Value::text(now().text);
          ++at_;
          out.children.push_back(with(make(Kind::output), std::move(text)));
          break;
        }
        case Token::Kind::output_begin: {
          Node output = make(Kind::output);
          ++at_;
          output.children.push_back(tuple());
          if (now().kind != Token::Kind::output_end) fail_here();
          ++at_;
          out.children.push_back(std::move(output));
          break;
        }
        case Token::Kind::statement_begin: {
          if (std::find(ends.begin(), ends.end(), ahead().text) != ends.end() || ahead().text.starts_with("end")) return out;
          ++at_;
          out.children.push_back(statement());
          break;
        }
        default: fail_here();
      }
    }
  }
  // A block and the statement that ends it, of which |end| is the only word.
  Node body(std::string_view end) {
    Node out = block({});
    finish(end);
    return out;
  }
  void finish(std::string_view end) {
    if (now().kind != Token::Kind::statement_begin || ahead().text != end) fail(fmt::format("'{}' is missing", end));
    at_ += 2;
    if (now().kind == Token::Kind::name) ++at_;  // {% endmacro name %}
    expect_end();
  }

  Node statement() {
    const std::string word = expect_name();
    if (word == "for") return loop();
    if (word == "if") return choice();
    if (word == "set") return set();
    if (word == "macro") return macro();
    if (word == "filter") {
      Node node = make(Kind::filtered);
      Node filters = filters_of(make(Kind::nothing), true);
      expect_end();
      return with(std::move(node), std::move(filters), body("endfilter"));
    }
    if (word == "break" || word == "continue") {
      expect_end();
      return make(word == "break" ? Kind::break_loop : Kind::continue_loop);
    }
    // Marks what the assistant says, for training.
    if (word == "generation") {
      expect_end();
      return body("endgeneration");
    }
    if (word == "do") fail("'do' is not a statement of chat templates");
    throw Error(ErrorCode::unimplemented,
                fmt::format("the chat template, line {}: the statement '{}' is not supported", now().line, printable(word)));
  }

  Node loop() {
    Node node = make(Kind::loop);
    do node.names.push_back(expect_name());
    while (take_sign(","));
    if (!take_word("in")) fail_here();
    Node values = either();
    Node condition = take_word("if") ? expression() : make(Kind::nothing);
    if (take_word("recursive"))
      throw Error(ErrorCode::unimplemented,
                  fmt::format("the chat template, line {}: recursive loops are not supported", node.line));
    expect_end();
    Node inside = block({"else"}), otherwise = make(Kind::nothing);
    if (ahead().text == "else" && now().kind == Token::Kind::statement_begin) {
      at_ += 2;
      expect_end();
      otherwise = block({});
    }
    finish("endfor");
    return with(with(std::move(node), std::move(values), std::move(condition)), std::move(inside), std::move(otherwise));
  }

  Node choice() {
    const Level level(*this);
    Node node = make(Kind::choice);
    node.children.push_back(tuple());
    expect_end();
    node.children.push_back(block({"else", "elif"}));
    if (now().kind == Token::Kind::statement_begin && ahead().text == "elif") {
      at_ += 2;
      node.children.push_back(choice());  // which takes the end
      return node;
    }
    if (now().kind == Token::Kind::statement_begin && ahead().text == "else") {
      at_ += 2;
      expect_end();
      node.children.push_back(block({}));
    } else {
      node.children.push_back(make(Kind::nothing));
    }
    finish("endif");
    return node;
  }

  Node set() {
    Node node = make(Kind::assignment);
    node.names.push_back(expect_name());
    if (take_sign(".")) {
      node.kind = Kind::member;
      node.text = std::exchange(node.names[0], expect_name());
    }
    while (node.kind == Kind::assignment && take_sign(",")) node.names.push_back(expect_name());
    if (take_sign("=")) {
      node.children.push_back(tuple());
      expect_end();
      return node;
    }
    if (node.kind != Kind::assignment || node.names.size() > 1) fail_here();
    node.kind = Kind::captured;
    Node filters = is_sign("|") ? filters_of(make(Kind::nothing), false) : make(Kind::nothing);
    expect_end();
    return with(std::move(node), body("endset"), std::move(filters));
  }

  Node macro() {
    Node node = make(Kind::macro, expect_name());
    expect_sign("(");
    std::vector<Node> defaults;
    while (!take_sign(")")) {
      node.names.push_back(expect_name());
      defaults.push_back(take_sign("=") ? expression() : make(Kind::nothing));
      if (!is_sign(")")) expect_sign(",");
    }
    expect_end();
    node.children.push_back(body("endmacro"));
    for (Node& each : defaults) node.children.push_back(std::move(each));
    return node;
  }

  // --- Expressions, from what binds least ---

  // One expression, or several between commas: a list.
  Node tuple() {
    Node first = expression();
    if (!is_sign(",")) return first;
    Node list = with(make(Kind::list), std::move(first));
    while (take_sign(",")) {
      if (now().kind == Token::Kind::statement_end || now().kind == Token::Kind::output_end || is_sign(")")) break;
      list.children.push_back(expression());
    }
    return list;
  }

  Node expression() {
    const Level level(*this);
    Node value = either();
    while (is_word("if")) {
      Node node = make(Kind::conditional);
      ++at_;
      Node condition = either();
      Node otherwise = take_word("else") ? expression() : make(Kind::nothing);
      value = with(with(std::move(node), std::move(value), std::move(condition)), std::move(otherwise));
    }
    return value;
  }

  Node either() {
    Node left = both();
    while (is_word("or")) left = binary(std::move(left), &Parser::both);
    return left;
  }
  Node both() {
    Node left = inverse();
    while (is_word("and")) left = binary(std::move(left), &Parser::inverse);
    return left;
  }
  Node inverse() {
    if (!is_word("not")) return comparison();
    const Level level(*this);
    Node node = make(Kind::negation);
    ++at_;
    return with(std::move(node), inverse());
  }
  Node comparison() {
    Node node = make(Kind::comparison);
    node.children.push_back(sum());
    for (;;) {
      constexpr std::array<std::string_view, 6> signs{"==", "!=", "<", ">", "<=", ">="};
      if (now().kind == Token::Kind::sign && std::find(signs.begin(), signs.end(), now().text) != signs.end()) {
        node.names.push_back(tokens_[at_++].text);
      } else if (is_word("in")) {
        node.names.push_back(tokens_[at_++].text);
      } else if (is_word("not") && ahead().kind == Token::Kind::name && ahead().text == "in") {
        at_ += 2;
        node.names.emplace_back("not in");
      } else {
        break;
      }
      node.children.push_back(sum());
    }
    return node.names.empty() ? std::move(node.children[0]) : std::move(node);
  }
  Node binary(Node left, Node (Parser::*right)()) {
    Node node = make(Kind::binary, now().text);
    ++at_;
    return with(std::move(node), std::move(left), (this->*right)());
  }
  Node sum() {
    Node left = joined();
    while (is_sign("+") || is_sign("-")) left = binary(std::move(left), &Parser::joined);
    return left;
  }
  Node joined() {
    Node left = product();
    while (is_sign("~")) left = binary(std::move(left), &Parser::product);
    return left;
  }
  Node product() {
    Node left = power();
    while (is_sign("*") || is_sign("/") || is_sign("//") || is_sign("%")) left = binary(std::move(left), &Parser::power);
    return left;
  }
  Node power() {
    Node left = unary(true);
    while (is_sign("**")) left = binary(std::move(left), &Parser::signed_value);
    return left;
  }
  Node signed_value() { return unary(true); }
  Node unary(bool with_filters) {
    const Level level(*this);
    Node node;
    if (is_sign("-") || is_sign("+")) {
      node = make(is_sign("-") ? Kind::minus : Kind::plus);
      ++at_;
      node.children.push_back(unary(false));
    } else {
      node = primary();
    }
    node = postfix(std::move(node));
    return with_filters ? filters_of(std::move(node), false) : std::move(node);
  }

  Node primary() {
    const Level level(*this);
    Node node = make(Kind::literal);
    const Token& token = now();
    switch (token.kind) {
      case Token::Kind::string: {
        std::string text;
        while (now().kind == Token::Kind::string) text += tokens_[at_++].text;
        node.value = Value::text(text);
        return node;
      }
      case Token::Kind::integer: {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
        if (error != std::errc{}) fail("a number is too large");
        node.value = value;
        ++at_;
        return node;
      }
      case Token::Kind::real:
        node.value = std::strtod(token.text.c_str(), nullptr);
        ++at_;
        return node;
      case Token::Kind::name: return name();
      default: break;
    }
    if (take_sign("(")) {
      if (take_sign(")")) return make(Kind::list);
      Node inner = tuple();
      expect_sign(")");
      return inner;
    }
    if (take_sign("[")) {
      node.kind = Kind::list;
      while (!take_sign("]")) {
        node.children.push_back(expression());
        if (!is_sign("]")) expect_sign(",");
      }
      return node;
    }
    if (take_sign("{")) {
      node.kind = Kind::map;
      while (!take_sign("}")) {
        node.children.push_back(expression());
        expect_sign(":");
        node.children.push_back(expression());
        if (!is_sign("}")) expect_sign(",");
      }
      return node;
    }
    fail_here();
  }
  Node name() {
    Node node = make(Kind::literal);
    const std::string word = expect_name();
    if (word == "true" || word == "True" || word == "false" || word == "False") {
      node.value = word == "true" || word == "True";
    } else if (word == "none" || word == "None") {
      node.value = None{};
    } else {
      node.kind = Kind::name;
      node.text = word;
    }
    return node;
  }

  Node postfix(Node node) {
    for (;;) {
      if (take_sign(".")) {
        Node next = make(now().kind == Token::Kind::integer ? Kind::item : Kind::attribute, now().text);
        if (next.kind == Kind::item)
          node = with(std::move(next), std::move(node), primary());
        else
          next.text = expect_name(), node = with(std::move(next), std::move(node));
      } else if (is_sign("[")) {
        node = subscript(std::move(node));
      } else if (is_sign("(")) {
        Node call = with(make(Kind::call), std::move(node));
        arguments(call);
        node = std::move(call);
      } else {
        return node;
      }
    }
  }
  Node subscript(Node of) {
    Node node = with(make(Kind::item), std::move(of));
    ++at_;
    std::array<std::optional<Node>, 3> parts;
    std::size_t part = 0;
    while (!take_sign("]")) {
      if (take_sign(":")) {
        if (++part > 2) fail_here();
      } else if (parts[part]) {
        fail_here();
      } else {
        parts[part] = tuple();
      }
    }
    if (part > 0)
      node.kind = Kind::slice;
    else if (!parts[0])
      fail_here();
    for (std::size_t i = 0; i < (part > 0 ? 3 : 1); ++i)
      node.children.push_back(parts[i] ? std::move(*parts[i]) : make(Kind::nothing));
    return node;
  }
  void arguments(Node& call) {
    expect_sign("(");
    while (!take_sign(")")) {
      if (is_sign("*") || is_sign("**")) fail("arguments with '*' are not supported");
      if (now().kind == Token::Kind::name && ahead().kind == Token::Kind::sign && ahead().text == "=") {
        call.keywords.push_back(expect_name());
        ++at_;
        call.keyword_values.push_back(expression());
      } else {
        call.children.push_back(expression());
      }
      if (!is_sign(")")) expect_sign(",");
    }
  }

  // Filters and tests after a value. |begins|: the first filter has no '|' before it.
  Node filters_of(Node node, bool begins) {
    for (;;) {
      if (begins || take_sign("|")) {
        begins = false;
        Node filter = make(Kind::filter);
        filter.text = expect_name();
        filter.children.push_back(std::move(node));
        if (is_sign("(")) arguments(filter);
        node = std::move(filter);
      } else if (is_word("is")) {
        node = test(std::move(node));
      } else if (is_sign("(")) {
        Node call = with(make(Kind::call), std::move(node));
        arguments(call);
        node = std::move(call);
      } else {
        return node;
      }
    }
  }
  Node test(Node of) {
    Node node = make(Kind::test);
    ++at_;
    const bool is_negated = take_word("not");
    node.text = expect_name();
    node.children.push_back(std::move(of));
    const bool has_value = now().kind == Token::Kind::string || now().kind == Token::Kind::integer ||
                           now().kind == Token::Kind::real || is_sign("[") || is_sign("{") ||
                           (now().kind == Token::Kind::name && !is_word("else") && !is_word("or") && !is_word("and") &&
                            !is_word("is") && !is_word("if") && !is_word("in") && !is_word("not"));
    if (is_sign("("))
      arguments(node);
    else if (has_value)
      node.children.push_back(postfix(primary()));
    if (!is_negated) return node;
    return with(make(Kind::negation), std::move(node));
  }

  const std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Node::Node() = default;
Node::Node(Node&&) noexcept = default;
Node& Node::operator=(Node&&) noexcept = default;
Node::~Node() = default;

Node parse(std::string_view source) { return Parser(tokens_of(source)).run(); }

}  // namespace tenon::jinja
