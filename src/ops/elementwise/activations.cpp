#include "ops/elementwise/activations.h"

#include "ops/register.h"

namespace tenon {
namespace {

using E = ElementwiseOp;
using Nodes = std::vector<NodeId>;

Nodes build_gelu(const OpCall& call) {
  return add_elementwise(call, call.text("approximate") == "tanh" ? E::GeluTanh : E::Gelu, {});
}

// With beta = 1, the usual case, the product is exact and f32 is enough.
Nodes build_softplus(const OpCall& call) {
  const double beta = call.number("beta"), threshold = call.number("threshold");
  if (beta == 1) return add_elementwise(call, E::Softplus, {threshold});
  return add_elementwise(call, E::SoftplusBeta, {beta, threshold});
}

Nodes build_prelu(const OpCall& call) {
  if (call.has_input(1)) return add_elementwise(call, E::PreluWeights, {});
  return add_elementwise(call, E::Prelu, {call.number("weight")});
}
Nodes build_heaviside(const OpCall& call) {
  if (call.has_input(1)) return add_elementwise(call, E::HeavisideValues, {});
  return add_elementwise(call, E::Heaviside, {call.number("value")});
}

void register_piecewise(OpList& ops) {
  Entry(ops, "relu", E::Relu).formula("max(x, 0)").doc("Rectified linear unit.").example("relu([-1, 0, 2])");
  Entry(ops, "relu6", E::Relu6).formula("min(max(x, 0), 6)").doc("ReLU with an upper limit of 6.").example("relu6([-1, 3, 9])");
  Entry(ops, "relu_squared", E::ReluSquared).formula("max(x, 0)²").doc("Square of ReLU.").example("relu_squared([-1, 3])");
  Entry(ops, "leaky_relu", E::LeakyRelu)
      .formula("x > 0 ? x : negative_slope·x")
      .doc("ReLU with a small slope below 0.")
      .example("leaky_relu([-10, 10])")
      .number("negative_slope", 0.01, "slope below 0");
  Entry(ops, "prelu", E::Prelu)
      .formula("x > 0 ? x : weight·x")
      .doc("ReLU with a learned slope below 0; the weight may be a tensor that broadcasts with x.")
      .example("prelu([-2, 2], 0.5)")
      .optional_input("weights")
      .number("weight", 0.25, "slope below 0")
      .build(build_prelu);
  Entry(ops, "hardtanh", E::Hardtanh)
      .formula("min(max(x, min_val), max_val)")
      .doc("Clamps values to a range, by default [-1, 1].")
      .example("hardtanh([-2, 0.5, 2])")
      .number("min_val", -1, "lower bound")
      .number("max_val", 1, "upper bound");
  Entry(ops, "hardsigmoid", E::Hardsigmoid)
      .formula("min(max(x + 3, 0), 6) / 6")
      .doc("Piecewise linear approximation of sigmoid.")
      .example("hardsigmoid([-4, 0, 4])");
  Entry(ops, "hardswish", E::Hardswish)
      .formula("x·min(max(x + 3, 0), 6) / 6")
      .doc("silu with hardsigmoid instead of sigmoid.")
      .example("hardswish([-4, -1, 4])");
  Entry(ops, "threshold", E::Threshold)
      .formula("x > threshold ? x : value")
      .doc("Replaces values that do not exceed a threshold.")
      .example("threshold([0.5, 2], 1, 99)")
      .number("threshold", 0, "values up to this one are replaced")
      .number("value", 0, "replacement value");
  Entry(ops, "hardshrink", E::Hardshrink)
      .formula("|x| > lambda ? x : 0")
      .doc("Sets small values to 0.")
      .example("hardshrink([-1, 0.2, 1])")
      .at_least_zero("lambda", 0.5, "largest magnitude that becomes 0");
  Entry(ops, "softshrink", E::Softshrink)
      .formula("sign(x)·max(|x| − lambda, 0)")
      .doc("Shrinks values towards 0; small values become 0.")
      .example("softshrink([-1, 0.2, 1])")
      .at_least_zero("lambda", 0.5, "amount by which values shrink");
  Entry(ops, "heaviside", E::Heaviside)
      .formula("x < 0 ? 0 : x = 0 ? value : 1")
      .doc("Unit step; its value at 0 may be a tensor that broadcasts with x.")
      .example("heaviside([-1, 0, 1], 0.5)")
      .optional_input("values")
      .number("value", 0, "result where x is 0")
      .build(build_heaviside);
}

void register_smooth(OpList& ops) {
  for (const char* name : {"sigmoid", "sigmoid_accurate"}) {
    Entry entry(ops, name, E::Sigmoid);
    entry.formula("1 / (1 + e⁻ˣ)");
    if (name[7] == 0)
      entry.aliases({"expit"}).doc("Logistic function.").example("sigmoid([-1, 0, 1])");
    else
      entry.doc("Logistic function; the same as sigmoid.").example("sigmoid_accurate([-1, 0, 1])");
  }
  Entry(ops, "log_sigmoid", E::LogSigmoid)
      .aliases({"logsigmoid"})
      .formula("−ln(1 + e⁻ˣ)")
      .doc("Logarithm of sigmoid, accurate in both tails.")
      .example("log_sigmoid([-100, 0, 100])");
  Entry(ops, "silu", E::Silu).formula("x·sigmoid(x)").doc("Sigmoid linear unit.").example("silu([-1, 0, 1])");
  Entry(ops, "swish", E::Silu).formula("x·sigmoid(x)").doc("The same as silu.").example("swish([-1, 0, 1])");
  Entry(ops, "gelu", E::Gelu)
      .formula("x·Φ(x)")
      .doc("Gaussian error linear unit, exact or with the common tanh approximation.")
      .example("gelu([-1, 0, 1])")
      .choice("approximate", {"none", "tanh"}, "none: exact; tanh: x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))")
      .build(build_gelu);
  Entry(ops, "quick_gelu", E::QuickGelu)
      .formula("x·sigmoid(1.702·x)")
      .doc("GELU approximated by a sigmoid.")
      .example("quick_gelu([-1, 0, 1])");
  Entry(ops, "mish", E::Mish)
      .formula("x·tanh(softplus(x))")
      .doc("A smooth activation that dips below 0.")
      .example("mish([-1, 0, 1])");
  Entry(ops, "softplus", E::Softplus)
      .formula("ln(1 + e^(beta·x)) / beta")
      .doc("Smooth ReLU; x itself where beta·x exceeds the threshold.")
      .example("softplus([-1, 0, 1])")
      .positive("beta", 1, "sharpness of the transition")
      .number("threshold", 20, "value of beta·x above which the result is x")
      .build(build_softplus);
  Entry(ops, "elu", E::Elu)
      .formula("x > 0 ? x : alpha·(eˣ − 1)")
      .doc("Exponential linear unit.")
      .example("elu([-1, 0, 1], alpha=2)")
      .number("alpha", 1, "the limit towards minus infinity is -alpha");
  Entry(ops, "celu", E::Celu)
      .formula("x > 0 ? x : alpha·(e^(x/alpha) − 1)")
      .doc("Exponential linear unit whose slope is continuous for every alpha.")
      .example("celu([-1, 0, 1], alpha=2)")
      .positive("alpha", 1, "the limit towards minus infinity is -alpha");
  Entry(ops, "selu", E::Selu)
      .formula("1.0507·(x > 0 ? x : 1.6733·(eˣ − 1))")
      .doc("Exponential linear unit with self-normalising constants.")
      .example("selu([-1, 0, 1])");
  Entry(ops, "softsign", E::Softsign)
      .formula("x / (1 + |x|)")
      .doc("Smooth function from -1 to 1 that approaches its limits slowly.")
      .example("softsign([-1, 0, 3])");
  Entry(ops, "tanhshrink", E::Tanhshrink)
      .formula("x − tanh x")
      .doc("x minus tanh x, accurate near 0.")
      .example("tanhshrink([-1, 0.001, 1])");
}

}  // namespace

void register_activation_ops(OpList& ops) {
  register_piecewise(ops);
  register_smooth(ops);
}

}  // namespace tenon
