// Builder: walks the syntax tree once and adds the program to a Graph.
//
// Statements and operators are in builder.cpp, calls of ops in call.cpp, x[...] in index.cpp.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "expression/parser.h"
#include "expression/value.h"
#include "tenon/ops.h"

namespace tenon::expression {

// pi, e, inf, nan; nullopt for any other name.
std::optional<double> constant_named(std::string_view name);

struct Arguments;  // the arguments of one call while they are collected

class Builder {
 public:
  Builder(std::string_view source, std::span<const NamedType> inputs, const ExpressionOptions& options);
  Graph run();

 private:
  const Ast& part(AstId id) const { return ast_[static_cast<std::size_t>(id)]; }
  const Value& value(AstId id) const { return values_[static_cast<std::size_t>(id)]; }

  Value evaluate(const Ast& ast);
  Value name(const Ast& ast) const;
  Value list(const Ast& ast);
  Value unary(const Ast& ast);
  Value binary(const Ast& ast);
  Value compare(const Ast& ast);
  void assign(const Ast& ast);
  std::vector<NodeId> outputs();

  Value call(const Ast& ast);
  const OpInfo& called_op(const Ast& ast) const;
  void add_positional(Arguments& arguments, AstId id, bool only_candidate);
  void add_named(Arguments& arguments, std::string_view word, AstId id);
  void add_parameter(Arguments& arguments, const Parameter& parameter, AstId id) const;
  Value subscript(const Ast& ast);
  Value index_tensor(NodeId x, const Ast& ast);
  NodeId index_operand(AstId item);

  // Applies the op of an operator to values.
  Value apply_operator(const Ast& ast, std::string_view op, const Value& x, const Value& y);
  Value apply_op(const Ast& ast, std::string_view op, std::vector<NodeId> inputs);
  // |value| as one tensor; |at| is the place of the error if it is not a tensor.
  NodeId tensor(const Value& value, Extent at);
  NodeId tensor(AstId id) { return tensor(value(id), part(id).extent); }
  NodeId list_tensor(List& list, Extent at);
  bool is_boolean(const Value& value) const;

  // Refuses tensors beyond max_elements among the nodes added since the last call.
  void check_sizes(const Ast& ast);
  std::string suggest_name(std::string_view wanted) const;

  [[noreturn]] void fail(Extent at, const std::string& message, const std::string& hint = {},
                         ErrorCode code = ErrorCode::invalid_argument) const {
    expression::fail(source_, at, message, hint, code);
  }
  // Runs |f|; an Error that it throws is rethrown with the place |at|.
  template <class F>
  auto located(Extent at, F&& f) const {
    try {
      return f();
    } catch (const ExpressionError&) {
      throw;
    } catch (const Error& error) {
      fail(at, error.what(), error.hint(), error.code());
    }
  }

  std::string_view source_;
  ExpressionOptions options_;
  std::vector<Ast> ast_;
  std::vector<Value> values_;
  std::map<std::string, Value, std::less<>> variables_;
  Graph graph_;
  NodeId checked_ = 0;
};

}  // namespace tenon::expression
