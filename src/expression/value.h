// The value of a part of an expression while the program is built, and arithmetic on plain numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/graph.h"

namespace tenon::expression {

struct List;
struct Tensors {
  std::vector<NodeId> ids;  // the results of one op; most have one
};

// monostate is None. Numbers stay numbers until a tensor is needed, so they can be parameters and are folded exactly.
using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, DType, std::shared_ptr<List>, Tensors>;

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
  bool has_tensor = false;         // if true, |dims| and |kind| have no meaning
  std::vector<std::int64_t> dims;  // of the nested list; all its parts have the same shape
  DType kind = DType::boolean;     // boolean, i64 or f64: the widest of its numbers
  std::int64_t elements = 0;
  int depth = 1;     // of nested lists; at most kMaxRank, with or without tensors
  NodeId node = -1;  // the constant created from it, if any
};

bool is_number(const Value& value);  // bool included
double as_double(const Value& number);
const List* as_list(const Value& value);

// The name of a value in messages: "a list", "the string \"ij\"", "a tensor".
std::string describe(const Value& value);

// Applies the operator to plain numbers as Python does; an integer result beyond 64 bits becomes a float. nullopt if an operand
// is not a number or Python would raise an error (integer division by zero); the op then decides.
std::optional<Value> fold(std::string_view op, const Value& x);
std::optional<Value> fold(std::string_view op, const Value& x, const Value& y);

// All integers of a number or (nested) list in order; nullopt if there is anything else.
std::optional<std::vector<std::int64_t>> as_integers(const Value& value);
// The numbers of a list without tensors as a constant: bool, int64, or |default_float|.
HostArray to_array(const List& list, DType default_float);

}  // namespace tenon::expression
