// The syntax tree of an expression, as a list in which every node follows its children.
//
// A reader can therefore process the list from front to back without recursion; all operands are already done.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "expression/lexer.h"

namespace tenon::expression {

using AstId = int;

enum class AstKind : std::uint8_t {
  integer,
  number,
  boolean,  // integer is 0 or 1
  none,
  text,
  name,
  list,       // children
  tuple,      // children, in parentheses or at the top of a statement
  unary,      // text: "-" "+" "~" "not"
  binary,     // text: the operator
  compare,    // children a b c ..., operators between them: a < b < c
  call,       // text: the op; children: the arguments; words: their keywords, "" where positional
  transpose,  // x.T
  subscript,  // children[0] is indexed by the others
  slice,      // children: start, stop, step; -1 if omitted. Only in a subscript
  ellipsis,   // only in a subscript
  assign,     // children[0] is assigned to words
  statement,  // children[0], a value that is not assigned
};

struct Ast {
  AstKind kind{};
  Extent extent;
  Extent name_extent;  // of a call's op
  std::string_view text;
  std::int64_t integer = 0;
  double number = 0;
  std::vector<AstId> children;
  std::vector<std::string_view> words;
};

// Every `assign` and `statement` is a statement; the last one of the list is the result. Texts are views of |source|.
std::vector<Ast> parse(std::string_view source);

}  // namespace tenon::expression
