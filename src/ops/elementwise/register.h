// How elementwise ops enter the catalogue: what an entry needs beyond its body's traits, in one chain.
//
//   Entry(ops, "elu", ElementwiseOp::Elu).formula("...").doc("...").example("elu([-1, 0, 1])").number("alpha", 1, "...");
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/elementwise/elementwise.h"
#include "ops/register.h"

namespace tenon {

class Entry {
 public:
  // Category, arity, input names and dtypes follow from the body's traits; the parameters, in the order declared, are its params.
  Entry(OpList& ops, const char* name, ElementwiseOp op);

  Entry& formula(const char* text);
  Entry& doc(const char* text);
  Entry& example(const char* expression);
  Entry& aliases(std::initializer_list<const char*> names);
  Entry& inputs(std::initializer_list<const char*> names);
  Entry& number(const char* name, double fallback, const char* doc);
  Entry& positive(const char* name, double fallback, const char* doc);  // >= the smallest normal float
  Entry& at_least_zero(const char* name, double fallback, const char* doc);
  Entry& optional_number(const char* name, const char* doc);  // None when not given
  Entry& integer(const char* name, std::int64_t fallback, std::int64_t min, std::int64_t max, const char* doc);
  Entry& boolean(const char* name, bool fallback, const char* doc);
  Entry& choice(const char* name, std::initializer_list<const char*> choices, const char* doc);  // default: the first
  // A second input that may stand in for the first parameter.
  Entry& optional_input(const char* name);
  Entry& build(std::vector<NodeId> (*builder)(const OpCall& call));
  // Not one node of its own: the builder adds casts around it.
  Entry& composed();

 private:
  Parameter& parameter(const char* name, ParameterType type, ParameterValue fallback, const char* doc);

  OpInfo& info_;
};

// One elementwise node on the call's inputs. Integers given a fractional parameter are computed in f32: clamp([1, 2], 0.5) keeps
// its bound.
std::vector<NodeId> add_elementwise(const OpCall& call, ElementwiseOp op, std::initializer_list<double> params);

void register_arithmetic_ops(OpList& ops);  // elementwise_arithmetic.cpp
void register_logic_ops(OpList& ops);       // elementwise_logic.cpp
void register_function_ops(OpList& ops);    // elementwise_functions.cpp
void register_activation_ops(OpList& ops);  // elementwise_activations.cpp

}  // namespace tenon
