// The expression language: translates text to a Graph.
//
//   Graph g = parse_expression("t = a @ b; t / norm(t)", {{"a", DType::f32, {4, 8}}, {"b", DType::f32, {8, 2}}});
//   for (const std::string& name : free_names("gelu(x) + y")) ...   // "x", "y"
//
// Python's syntax and precedence, for tensors:
//   numbers     1  0.5  1e-3  true  inf  nan  pi  e         take the dtype of the other operand
//   literals    [[1, 2], [3, 4]]                            int64, or the default float dtype; [a, b] stacks tensors
//   operators   + - * / // % ** @   == != < <= > >=   and or not   & | ^ ~ << >>     0 < x < 1 chains
//   calls       softmax(x, axis=-1)  clamp(x, 0, 1)         any op of the catalogue; parameters follow the inputs in order
//               x.sum(axis=0)  x.T                          the same as sum(x, axis=0), transpose(x)
//   indexing    x[0, 1:5, ::-1]  x[..., None]  x[indices]   a tensor of integers selects along its axis
//   statements  v, i = top_k(x, 3); v / sum(v)              separated by ; or a new line; the last one is the result
//   values      cast(x, bfloat16)  einsum("ij,jk->ik", a, b)  None   # a comment
//
// Limits: kMaxSourceBytes, kMaxTokens, kMaxDepth of nesting, kMaxLiteralElements of one literal, and
// ExpressionOptions::max_elements of any tensor of the program. Exceeding one throws resource_exhausted before any allocation.
// Thread safety: all calls may run concurrently.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/error.h"
#include "tenon/graph.h"

namespace tenon {

// An error in an expression, with its place. what() starts with the place: "column 5: unknown op 'sofmax'".
class ExpressionError : public Error {
 public:
  struct Place {
    int line = 1;             // from 1
    int column = 1;           // from 1, in characters
    int length = 1;           // number of characters on that line
    bool one_line = true;     // the source has only one line
    std::string source_line;  // the text of that line
  };
  ExpressionError(ErrorCode code, std::string message, std::string hint, Place place);

  const std::string& message() const noexcept { return message_; }  // without the place
  const Place& place() const noexcept { return place_; }
  // The source line with a caret line below it, without a final newline; long lines are cut around the place.
  std::string excerpt() const;

 private:
  std::string message_;
  Place place_;
};

struct NamedType {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

struct ExpressionOptions {
  static constexpr std::size_t kMaxSourceBytes = 64 * 1024;
  static constexpr int kMaxTokens = 10'000;
  static constexpr int kMaxDepth = 200;
  static constexpr std::int64_t kMaxLiteralElements = 1 << 20;

  // The dtype of literals with a decimal point, of results computed only from numbers, and of creation ops without a dtype.
  DType default_float = DType::f32;
  // The limit of any tensor in the program, including intermediate results.
  std::int64_t max_elements = std::int64_t{1} << 36;
};

// Translates |source| to a program with one input for each of |inputs|, in that order, whether used or not. A tuple as the last
// statement gives several outputs. Throws ExpressionError: not_found for an unknown op, resource_exhausted beyond a limit,
// invalid_argument for other errors in the text. Errors of an op or of inference keep their code and get the place of the
// call.
Graph parse_expression(std::string_view source, std::span<const NamedType> inputs = {}, const ExpressionOptions& options = {});
Graph parse_expression(std::string_view source, std::initializer_list<NamedType> inputs, const ExpressionOptions& options = {});

// The names that |source| reads without assigning them first, in order of appearance; the caller must supply them. Constants
// (pi, e) and dtype names are not included, although inputs with these names would be used. Throws ExpressionError.
std::vector<std::string> free_names(std::string_view source);

}  // namespace tenon
