// The syntax of Jinja as far as chat templates use it: a tree of statements and expressions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/generate/jinja/value.h"

namespace tenon::jinja {

struct Node {
  enum class Kind : std::uint8_t {
    nothing,  // an optional child that is not there
    // Expressions. |children| are their parts in the order of the text.
    literal,      // |value|
    name,         // |text|
    list,         // children
    map,          // keys and values in turns
    attribute,    // child 0 . text
    item,         // child 0 [ child 1 ]
    slice,        // child 0 [ child 1 : child 2 : child 3 ]
    call,         // child 0 ( the others, keywords )
    filter,       // child 0 | text ( the others, keywords )
    test,         // child 0 is text ( the others )
    negation,     // not child 0
    minus,        // - child 0
    plus,         // + child 0
    binary,       // child 0 text child 1; also "and", "or", "in", "not in"
    comparison,   // child 0 names[0] child 1 names[1] child 2 ...
    conditional,  // child 0 if child 1 else child 2
    // Statements.
    block,       // children, one after the other
    output,      // {{ child 0 }}
    loop,        // for names in child 0 if child 1: child 2, else child 3
    choice,      // if child 0: child 1, else child 2
    assignment,  // set names = child 0
    member,      // set text.names[0] = child 0
    captured,    // set names[0] = what child 0 writes
    macro,       // text(names...), with defaults in children 1...; child 0 is its body
    filtered,    // {% filter %}: child 0 is a filter of a name, child 1 the body
    break_loop,
    continue_loop,
  };
  // Not inline, as those of values.
  Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  Node(Node&&) noexcept;
  Node& operator=(Node&&) noexcept;
  ~Node();

  Kind kind = Kind::nothing;
  std::uint32_t line = 0;
  std::string text;
  Value value;
  std::vector<std::string> names;
  std::vector<Node> children;
  std::vector<std::string> keywords;  // names of the arguments that have one, with their values
  std::vector<Node> keyword_values;
};

// Whitespace as transformers sets it: the line end after a statement and the spaces before one on its line are dropped. Throws
// invalid_argument for what is not Jinja, unimplemented for statements that templates of models do not use, both with the line.
Node parse(std::string_view source);

// --- Tokens, for the parser ---
struct Token {
  enum class Kind : std::uint8_t {
    text,
    output_begin,
    output_end,
    statement_begin,
    statement_end,
    name,
    string,
    integer,
    real,
    sign,
    end
  };
  Kind kind = Kind::end;
  std::uint32_t line = 0;
  std::string text;  // of signs and names as written, of strings with escapes replaced
};
std::vector<Token> tokens_of(std::string_view source);

[[noreturn]] void fail_at(std::uint32_t line, const std::string& what);

}  // namespace tenon::jinja
