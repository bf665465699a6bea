// How ops enter the catalogue: one function for each file of ops, all declared here and called in catalogue.cpp, and in them one
// Entry for each op.
//
//   Entry(ops, "elu", ElementwiseOp::Elu).formula("...").doc("...").example("elu([-1, 0, 1])").number("alpha", 1, "...");
//   Entry(ops, {.category = "sorting"}, "sort", sort).parameters({axis_parameter(-1,
//   "...")}).formula("...").doc("...").example("...");
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "tenon/ops.h"

namespace tenon {

using OpList = std::vector<OpInfo>;

// The dtype sets ops accept.
std::vector<DType> float_dtypes();  // f16 bf16 f32 f64 and the block formats
std::vector<DType> integer_dtypes();
std::vector<DType> number_dtypes();  // both
std::vector<DType> every_dtype();    // and bool

// What several composed ops have in common.
struct Family {
  std::string category;
  std::vector<std::string> inputs = {"x"};
  int min_inputs = -1;  // -1: all of them
  std::vector<DType> dtypes = every_dtype();
  std::vector<Parameter> parameters = {};  // before those of the op
};

class Entry {
 public:
  using Builder = std::vector<NodeId> (*)(const OpCall& call);

  // One elementwise node. Category, arity, input names and dtypes follow from the body's traits; the parameters, in the order
  // declared, are its params.
  Entry(OpList& ops, const char* name, ElementwiseOp op);
  // Whatever |builder| adds.
  Entry(OpList& ops, Family family, std::string name, Builder builder);

  Entry& formula(std::string text);
  Entry& doc(std::string text);
  Entry& example(std::string expression);
  Entry& aliases(std::initializer_list<const char*> names);
  Entry& category(const char* name);
  Entry& dtypes(std::vector<DType> accepted);

  // For elementwise ops the names alone: how many there are is the body's.
  Entry& inputs(std::vector<std::string> names);
  // The last ones may be left out.
  Entry& inputs(std::vector<std::string> names, int min_inputs);
  Entry& any_number_of(const char* name);  // at least one
  // A second input that may stand in for the first parameter.
  Entry& optional_input(const char* name);

  Entry& parameters(std::vector<Parameter> more);  // parameters.h has those that many ops share
  Entry& number(const char* name, double fallback, const char* doc);
  Entry& positive(const char* name, double fallback, const char* doc);  // >= the smallest normal float
  Entry& at_least_zero(const char* name, double fallback, const char* doc);
  Entry& optional_number(const char* name, const char* doc);  // None when not given
  Entry& integer(const char* name, std::int64_t fallback, std::int64_t min, std::int64_t max, const char* doc);
  Entry& boolean(const char* name, bool fallback, const char* doc);
  Entry& choice(const char* name, std::initializer_list<const char*> choices, const char* doc);  // default: the first

  Entry& build(Builder builder);
  // Not one node of its own: the builder adds casts around it.
  Entry& composed();

 private:
  Parameter& parameter(const char* name, ParameterType type, ParameterValue fallback, const char* doc);

  OpInfo& info_;
};

// One elementwise node on the call's inputs. Integers given a fractional parameter are computed in f32: clamp([1, 2], 0.5) keeps
// its bound.
std::vector<NodeId> add_elementwise(const OpCall& call, ElementwiseOp op, std::initializer_list<double> params);

// elementwise/
void register_arithmetic_ops(OpList& ops);
void register_logic_ops(OpList& ops);
void register_function_ops(OpList& ops);
void register_activation_ops(OpList& ops);
// composed/
void register_reduction_ops(OpList& ops);
void register_normalization_ops(OpList& ops);
void register_order_ops(OpList& ops);
void register_linear_algebra_ops(OpList& ops);
void register_einsum_ops(OpList& ops);
void register_distance_ops(OpList& ops);
void register_convolution_ops(OpList& ops);
void register_pooling_ops(OpList& ops);
void register_shape_ops(OpList& ops);
void register_layout_ops(OpList& ops);
void register_indexing_ops(OpList& ops);
void register_creation_ops(OpList& ops);
void register_neural_ops(OpList& ops);
void register_attention_ops(OpList& ops);
void register_loss_ops(OpList& ops);

}  // namespace tenon
