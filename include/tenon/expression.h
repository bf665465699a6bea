// The expression language: text in, Graph out.
//
//   Graph g = parse_expression("t = a @ b; t / norm(t)", {{"a", DType::f32, {4, 8}}, {"b", DType::f32, {8, 2}}});
//   for (const std::string& name : free_names("gelu(x) + y")) ...   // "x", "y"
//
// Python's syntax and precedence, for tensors:
//   numbers     1  0.5  1e-3  true  inf  nan  pi  e         take the dtype of what they meet
//   literals    [[1, 2], [3, 4]]                            int64, or the default float dtype; [a, b] stacks tensors
//   operators   + - * / // % ** @   == != < <= > >=   and or not   & | ^ ~ << >>     0 < x < 1 chains
//   calls       softmax(x, axis=-1)  clamp(x, 0, 1)         any op of the catalogue; after the inputs, parameters in order
//               x.sum(axis=0)  x.T                          the same as sum(x, axis=0), transpose(x)
//   indexing    x[0, 1:5, ::-1]  x[..., None]  x[indices]   a tensor of integers takes along its axis
//   statements  v, i = top_k(x, 3); v / sum(v)              separated by ; or a new line; the last one is the result
//   values      cast(x, bfloat16)  einsum("ij,jk->ik", a, b)  None   # a comment
//
// Bounds: kMaxSourceBytes, kMaxTokens, kMaxDepth of nesting, kMaxLiteralElements in one literal, and
// ExpressionOptions::max_elements in any tensor of the program. Beyond them: resource_exhausted, before anything is allocated.
// Thread safety: plain functions; all calls may run side by side.
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

// What is wrong with an expression, and where. what() begins with the place: "column 5: no op is called 'sofmax'".
class ExpressionError : public Error {
 public:
  struct Place {
    int line = 1;             // from 1
    int column = 1;           // from 1, in characters
    int length = 1;           // characters meant, on that line
    bool one_line = true;     // the source has no second line
    std::string source_line;  // the line meant
  };
  ExpressionError(ErrorCode code, std::string message, std::string hint, Place place);

  const std::string& message() const noexcept { return message_; }  // without the place
  const Place& place() const noexcept { return place_; }
  // The source line with a caret below, two lines without a final newline; long lines are cut around the place.
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

  // Of literals with a decimal point, of results computed from numbers alone, and of creation ops that are not given a dtype.
  DType default_float = DType::f32;
  // Of any tensor in the program, results of inner steps included.
  std::int64_t max_elements = std::int64_t{1} << 36;
};

// The program |source| stands for. It has one input for each of |inputs|, in that order, used or not; a tuple as the last
// statement gives several outputs. Throws ExpressionError: not_found for an unknown op, resource_exhausted beyond a bound,
// invalid_argument for everything else in the text; what an op or its inference refuses keeps its code and gets the place of
// the call.
Graph parse_expression(std::string_view source, std::span<const NamedType> inputs = {}, const ExpressionOptions& options = {});
Graph parse_expression(std::string_view source, std::initializer_list<NamedType> inputs, const ExpressionOptions& options = {});

// The names |source| reads without assigning them first, in order of appearance: what a caller must supply. Constants (pi, e)
// and dtype names are not among them, though inputs of these names would be used. Throws ExpressionError for bad syntax.
std::vector<std::string> free_names(std::string_view source);

}  // namespace tenon
