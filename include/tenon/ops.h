// The op catalogue: every op a user sees, in one registry.
//
// An op is a C++ function that adds primitives to a Graph, plus what there is to know about it: name, aliases, category, arity,
// parameters with defaults and bounds, accepted dtypes, formula and one line of doc. The command line, the web page, the docs and
// the conformance suite all read this registry, and nothing else lists ops.
//
// Thread safety: the registry is immutable after static initialisation; all calls may run side by side.
//
//   const OpInfo& op = find_op("softmax");  // or an alias; throws not_found naming the nearest
//   NodeId y = apply(graph, "softmax", {x}, {{"axis", std::int64_t{-1}}})[0];
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tenon/graph.h"

namespace tenon {

// The value of a parameter. Integers given where a number is wanted are accepted, and one integer where a list is wanted.
using ParameterValue = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;

enum class ParameterType : std::uint8_t {
  number,    // double
  integer,   // int64
  boolean,   // bool
  integers,  // a list of int64: axes, a shape, a kernel size. None (monostate) where the op allows it: "all axes"
  dtype,     // a dtype's name
  text,      // free text, e.g. an einsum equation; |choices| lists the values allowed, if limited
};
std::string_view name(ParameterType type) noexcept;

struct Parameter {
  std::string name;
  ParameterType type = ParameterType::number;
  ParameterValue fallback;  // monostate with required = false: "not given" is a meaning of its own (see doc)
  bool required = false;
  std::optional<double> min, max;    // inclusive bounds
  std::vector<std::string> choices;  // for text
  std::string doc;
};

using NamedValue = std::pair<std::string, ParameterValue>;

struct OpInfo;

// What an op's builder sees: the graph, the input nodes and the parameters, checked and completed with defaults.
class OpCall {
 public:
  OpCall(Graph& graph, const OpInfo& op, std::span<const NodeId> inputs, std::vector<ParameterValue> values);

  Graph& graph() const { return graph_; }
  const OpInfo& op() const { return op_; }
  std::span<const NodeId> inputs() const { return inputs_; }
  NodeId input(std::size_t i) const { return inputs_[i]; }
  const Node& node(std::size_t i) const { return graph_[inputs_[i]]; }
  bool has_input(std::size_t i) const { return i < inputs_.size(); }

  // By parameter name; asking for one the op does not declare, or with the wrong type, is a bug (internal error).
  double number(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  bool boolean(std::string_view name) const;
  DType dtype(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  bool given(std::string_view name) const;  // false when the value is None

  // An axis parameter, normalised against |rank|.
  int axis(std::string_view name, int rank) const;
  // An axes parameter (None = all axes) as a set.
  AxisSet axes(std::string_view name, int rank) const;

  // invalid_argument with the op's name before the message and the shapes of its inputs behind it.
  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const;

 private:
  const ParameterValue& value(std::string_view name, ParameterType type) const;

  Graph& graph_;
  const OpInfo& op_;
  std::span<const NodeId> inputs_;
  std::vector<ParameterValue> values_;
};

struct OpInfo {
  std::string name;
  std::vector<std::string> aliases;
  std::string category;  // "unary", "binary", "ternary", "reduction", "normalization", "linear algebra", ...
  int min_inputs = 1;
  int max_inputs = 1;  // -1: any number
  std::vector<std::string> input_names;
  std::vector<Parameter> parameters;
  std::vector<DType> dtypes;  // accepted for the (first) data input
  std::string formula;
  std::string doc;      // one line
  std::string example;  // an expression that runs as it stands
  std::vector<NodeId> (*build)(const OpCall& call) = nullptr;
  // Set for the ops that are one elementwise node (build then adds exactly that).
  std::optional<ElementwiseOp> elementwise;
};

std::span<const OpInfo> all_ops();  // sorted by name
// nullptr when there is no such name or alias.
const OpInfo* lookup_op(std::string_view name) noexcept;
// Throws not_found with "did you mean".
const OpInfo& find_op(std::string_view name);

// Adds the op to the graph; returns its results (most have one). Inputs beyond the op's own may be given as parameters.
// Throws invalid_argument for wrong arity, unknown or out-of-bounds parameters, unaccepted dtypes, mismatching shapes.
std::vector<NodeId> apply(Graph& graph, const OpInfo& op, std::span<const NodeId> inputs,
                          std::span<const NamedValue> parameters = {});
std::vector<NodeId> apply(Graph& graph, std::string_view op, std::initializer_list<NodeId> inputs,
                          std::initializer_list<NamedValue> parameters = {});

}  // namespace tenon
