// The op catalogue: the registry of every user-visible op.
//
// An op is a C++ function that adds primitives to a Graph, plus its description: name, aliases, category, arity, parameters with
// defaults and bounds, accepted dtypes, formula and one line of doc. The command line, the web page, the docs and the conformance
// suite all read this registry; no other list of ops exists.
//
// Thread safety: the registry is immutable after static initialisation; all calls may run concurrently.
//
//   const OpInfo& op = find_op("softmax");   // a name or an alias; throws not_found with the nearest name
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

// The value of a parameter. An integer is also accepted for a number, and a single integer for a list.
using ParameterValue = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;

enum class ParameterType : std::uint8_t {
  number,    // double
  integer,   // int64
  boolean,   // bool
  integers,  // a list of int64: axes, a shape, a kernel size. None (monostate) if the op allows it, e.g. for "all axes"
  dtype,     // the name of a dtype
  text,      // a string, e.g. an einsum equation; |choices| lists the allowed values, if they are limited
};
std::string_view name(ParameterType type) noexcept;

struct Parameter {
  std::string name;
  ParameterType type = ParameterType::number;
  ParameterValue fallback;  // monostate with required = false: "not given" has its own meaning (see doc)
  bool required = false;
  std::optional<double> min, max;    // inclusive bounds
  std::vector<std::string> choices;  // for text
  std::string doc;
};

using NamedValue = std::pair<std::string, ParameterValue>;

struct OpInfo;

// The arguments of an op's builder: the graph, the input nodes, and the parameters, checked and completed with defaults.
class OpCall {
 public:
  OpCall(Graph& graph, const OpInfo& op, std::span<const NodeId> inputs, std::vector<ParameterValue> values);

  Graph& graph() const { return graph_; }
  const OpInfo& op() const { return op_; }
  std::span<const NodeId> inputs() const { return inputs_; }
  NodeId input(std::size_t i) const { return inputs_[i]; }
  const Node& node(std::size_t i) const { return graph_[inputs_[i]]; }
  bool has_input(std::size_t i) const { return i < inputs_.size(); }

  // Values by parameter name. Reading an undeclared parameter, or with the wrong type, is a bug (internal error).
  double number(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  bool boolean(std::string_view name) const;
  DType dtype(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  bool given(std::string_view name) const;  // false if the value is None

  // An axis parameter, normalised for |rank|.
  int axis(std::string_view name, int rank) const;
  // An axes parameter (None = all axes) as a set.
  AxisSet axes(std::string_view name, int rank) const;

  // Throws invalid_argument with the op's name before the message and the shapes of its inputs after it.
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
  std::string example;  // an expression that runs as is
  std::vector<NodeId> (*build)(const OpCall& call) = nullptr;
  // Set for ops that are a single elementwise node (build then adds exactly that node).
  std::optional<ElementwiseOp> elementwise;
};

std::span<const OpInfo> all_ops();  // sorted by name
// nullptr if no op has this name or alias.
const OpInfo* lookup_op(std::string_view name);
// Throws not_found with the nearest name as the hint.
const OpInfo& find_op(std::string_view name);

// Adds the op to the graph and returns its results (most ops have one). Inputs beyond the op's own are positional parameters.
// Throws invalid_argument for a wrong arity, unknown or out-of-bounds parameters, unsupported dtypes and mismatched shapes.
std::vector<NodeId> apply(Graph& graph, const OpInfo& op, std::span<const NodeId> inputs,
                          std::span<const NamedValue> parameters = {});
std::vector<NodeId> apply(Graph& graph, std::string_view op, std::initializer_list<NodeId> inputs,
                          std::initializer_list<NamedValue> parameters = {});

}  // namespace tenon
