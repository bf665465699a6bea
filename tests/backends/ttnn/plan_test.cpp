// Plans of both tiers, without a device: every op of the catalogue, and every call against the signatures of the real package.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "backends/ttnn/functions.h"
#include "backends/ttnn/program.h"
#include "conformance/cases/cases.h"
#include "hal/worker/hosted.h"
#include "tenon/error.h"
#include "tenon/ops.h"
#include "ttnn_testing.h"

namespace tenon::ttnn {
namespace {

using conformance::Case;
using conformance::cases_for;
using conformance::Extent;
using conformance::program_of;

// The first program of an op in a type; none if the op has no case in it.
std::optional<Graph> first_program(const OpInfo& op, DType dtype) {
  if (std::ranges::find(op.dtypes, dtype) == op.dtypes.end()) return std::nullopt;
  const std::vector<Case> cases = cases_for(op, dtype, Extent::quick);
  if (cases.empty()) return std::nullopt;
  return program_of(cases[0], 1).graph;
}

// The calls of a program that runs in the fast tier as a whole; none if a part of it does not.
std::optional<std::vector<CallStep>> fast_steps(const Graph& graph, Trust trust, std::string* why = nullptr) {
  const auto plan = plan_mixed(graph, {.trust = trust}, why);
  if (!plan || plan->tier() != "fast") return std::nullopt;
  std::vector<CallStep> steps;
  for (const PlanPart& part : plan->parts) steps.insert(steps.end(), part.fast.steps.begin(), part.fast.steps.end());
  return steps;
}
std::vector<std::string> calls_of(const std::vector<CallStep>& steps) {
  std::vector<std::string> calls;
  for (const CallStep& step : steps) calls.push_back(step.call);
  return calls;
}

// --- Signatures ---
struct Parameter {
  std::string name, type;
  bool has_default = false, only_named = false;
};
using Overload = std::vector<Parameter>;

std::multimap<std::string, Overload> signatures() {
  std::multimap<std::string, Overload> all;
  std::ifstream file(TENON_SOURCE_DIR "/tests/backends/ttnn/signatures.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream parts(line);
    std::string name, part;
    std::getline(parts, name, '\t');
    Overload overload;
    for (bool only_named = false; std::getline(parts, part, '\t');) {
      if (part == "*") {
        only_named = true;
        continue;
      }
      const bool has_default = part.ends_with(" =");
      if (has_default) part.resize(part.size() - 2);
      const std::size_t colon = part.find(": ");
      overload.push_back({part.substr(0, colon), part.substr(colon + 2), has_default, only_named});
    }
    all.emplace(name, std::move(overload));
  }
  return all;
}

bool fits(const CallArgument& argument, const std::string& type) {
  const auto has = [&](const char* word) { return type.find(word) != std::string::npos; };
  struct {
    decltype(has)& has;
    bool operator()(const TensorArgument&) { return has("Tensor") && !has("ComplexTensor"); }
    bool operator()(const TensorsArgument&) { return has("Sequence[Tensor]"); }
    bool operator()(const AttributeArgument&) { return has("DataType") || has("Layout"); }
    bool operator()(const PreciseArgument&) { return has("ComputeKernelConfig"); }
    bool operator()(const DeviceArgument&) { return has("Device"); }
    bool operator()(bool) { return has("bool"); }
    bool operator()(std::int64_t) { return has("int") || has("float"); }
    bool operator()(double) { return has("float"); }
    bool operator()(const Integers&) { return has("Sequence[int]") || has("Shape"); }
    bool operator()(const IntegerPairs&) { return has("Sequence[Sequence[int]]"); }
  } visitor{has};
  return std::visit(visitor, argument);
}

bool fits(const CallStep& step, const Overload& overload) {
  std::set<std::string> given;
  if (step.arguments.size() > overload.size()) return false;
  for (std::size_t i = 0; i < step.arguments.size(); ++i) {
    if (overload[i].only_named || !fits(step.arguments[i], overload[i].type)) return false;
    given.insert(overload[i].name);
  }
  for (const auto& [name, argument] : step.named) {
    const auto found = std::ranges::find(overload, name, &Parameter::name);
    if (found == overload.end() || !fits(argument, found->type) || !given.insert(name).second) return false;
  }
  return std::ranges::all_of(overload, [&](const Parameter& p) { return p.has_default || given.contains(p.name); });
}

// --- The exact tier ---
TEST(TtnnPlan, EveryOpInEveryTypeHasAnExactPlan) {
  for (const OpInfo& op : all_ops())
    for (const DType dtype : op.dtypes) {
      const std::optional<Graph> graph = first_program(op, dtype);
      if (!graph) continue;
      const ExactPlan plan = plan_exact(*graph);
      for (const ExactLaunch& launch : plan.launches) {
        // TTNN gives a processor at most 341 words, two of them its own.
        EXPECT_LE(launch.words.size(), 339u) << op.name;
        EXPECT_EQ(launch.words[5], launch.buffers.size());
        EXPECT_LT(static_cast<std::size_t>(launch.kernel), plan.kernels.size());
        for (const auto& [word, slot] : launch.buffers) EXPECT_LT(static_cast<std::size_t>(slot), plan.slots.size());
      }
    }
}

TEST(TtnnPlan, ALaunchHasItsNumbersAsWords) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, {1000});
  graph.set_outputs({apply(graph, "leaky_relu", {x}, {{"negative_slope", 0.5}})[0]});
  const ExactPlan plan = plan_exact(graph);
  ASSERT_EQ(plan.launches.size(), 1u);
  const ExactLaunch& launch = plan.launches[0];
  EXPECT_EQ(launch.groups, launch.words[1] * launch.words[2] * launch.words[3]);
  EXPECT_GT(launch.groups, 8u) << "work for many cores";
  ASSERT_EQ(launch.buffers.size(), 2u);
  EXPECT_EQ(plan.slots[0].lines(), 4u);
  EXPECT_NE(plan.kernels[0].source.find("TENON_ENTRY(" + plan.kernels[0].entry + ")"), std::string::npos);
  EXPECT_TRUE(plan.kernels[0].source.starts_with("#pragma GCC optimize(\"no-fast-math\")"));
}

// --- The fast tier ---
TEST(TtnnPlan, EveryCallFitsTheInstalledPackage) {
  const auto known = signatures();
  ASSERT_GT(known.size(), 100u);
  std::set<std::string> called;
  for (const OpInfo& op : all_ops())
    for (const DType dtype : op.dtypes)
      for (const Case& c : cases_for(op, dtype, Extent::quick))
        for (const Trust trust : {Trust::limits, Trust::all}) {
          const auto plan = plan_mixed(program_of(c, 1).graph, {.trust = trust});
          if (!plan) continue;
          for (const PlanPart& part : plan->parts)
            for (const CallStep& step : part.fast.steps) {
              const auto [first, last] = known.equal_range(step.call);
              EXPECT_TRUE(std::any_of(first, last, [&](const auto& entry) { return fits(step, entry.second); }))
                  << op.name << " " << name(dtype) << ", " << c.label << ": no overload of ttnn." << step.call
                  << " takes this call";
              called.insert(step.call);
            }
        }
  EXPECT_GT(called.size(), 90u);
}

TEST(TtnnPlan, MostOfTheCalculatorsOpsAreCallsOfTtnn) {
  for (const auto& [trust, least] : {std::pair(Trust::all, 95), {Trust::limits, 50}}) {
    int fast = 0;
    std::string missing;
    for (const OpInfo& op : all_ops()) {
      if (!op.elementwise) continue;
      const std::optional<Graph> graph = first_program(op, DType::bf16);
      if (graph && fast_steps(*graph, trust))
        ++fast;
      else
        missing += " " + op.name;
    }
    EXPECT_GE(fast, least) << "not:" << missing;
  }
}

TEST(TtnnPlan, WhatKeepsTheLimitsRunsFastByDefault) {
  for (const auto& [op, dtype, tier] :
       {std::tuple("add", DType::f32, "fast"), {"add", DType::i32, "fast"},         {"exp", DType::bf16, "fast"},
        {"sqrt", DType::bf16, "fast"},         {"div", DType::bf16, "fast"},        {"sigmoid", DType::bf16, "fast"},
        {"gelu", DType::bf16, "fast"},         {"softmax", DType::bf16, "fast"},    {"log_softmax", DType::bf16, "fast"},
        {"layer_norm", DType::bf16, "fast"},   {"matmul", DType::bf16, "fast"},     {"linear", DType::bf16, "fast"},
        {"conv2d", DType::bf16, "fast"},       {"max_pool2d", DType::bf16, "fast"}, {"sum", DType::f32, "fast"},
        {"max", DType::f32, "fast"},           {"minimum", DType::f32, "fast"},     {"matmul", DType::f32, "exact"},
        {"div", DType::f32, "exact"},          {"sqrt", DType::f32, "exact"},       {"pow", DType::bf16, "exact"},
        {"prod", DType::bf16, "exact"},        {"sort", DType::bf16, "exact"},      {"add", DType::f64, "exact"}}) {
    const std::optional<Graph> graph = first_program(find_op(op), dtype);
    ASSERT_TRUE(graph);
    std::string why;
    const auto plan = plan_mixed(*graph, {.trust = Trust::limits}, &why);
    EXPECT_EQ(plan ? plan->tier() : "exact", tier) << op << " " << name(dtype) << ": " << why;
  }
}

TEST(TtnnPlan, WholeOpsAreOneCallWhereSpeedIsAskedFor) {
  for (const char* op : {"softmax", "layer_norm", "rms_norm"}) {
    const std::optional<Graph> graph = first_program(find_op(op), DType::bf16);
    const auto steps = fast_steps(*graph, Trust::all);
    ASSERT_TRUE(steps) << op;
    EXPECT_TRUE(std::ranges::any_of(*steps, [&](const CallStep& step) { return step.call == op; })) << op;
  }
}

TEST(TtnnPlan, OneOpThatTtnnLacksDoesNotMakeAProgramExact) {
  Graph graph;
  const NodeId x = graph.input("x", DType::bf16, {4, 8}), w = graph.input("w", DType::bf16, {8, 8});
  const NodeId y = apply(graph, "relu", {apply(graph, "matmul", {x, w})[0]})[0];
  const NodeId sorted = apply(graph, "sort", {y})[0];
  graph.set_outputs({apply(graph, "tanh", {sorted})[0]});
  const auto plan = plan_mixed(graph, {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->tier(), "mixed");
  ASSERT_EQ(plan->parts.size(), 3u);
  EXPECT_TRUE(plan->parts[0].is_fast && !plan->parts[1].is_fast && plan->parts[2].is_fast);
  EXPECT_EQ(plan->parts[1].inputs, plan->parts[0].outputs);
  EXPECT_EQ(plan->values[static_cast<std::size_t>(plan->parts[0].outputs[0])].dtype, DType::f32) << "no digit is lost on the way";
  EXPECT_EQ(plan->ops_by_tier.at("fast"), (std::vector<std::string>{"matmul", "relu", "tanh"}));
  EXPECT_EQ(plan->ops_by_tier.at("exact"), (std::vector<std::string>{"arg_sort", "gather"}));
  EXPECT_EQ(translate(graph, {}, Math::by_limits).tier, "mixed");
}

TEST(TtnnPlan, ResultsInBlockFormatsAreRoundedByTheExactTier) {
  Graph graph;
  const NodeId x = graph.input("x", DType::bfloat8_b, {4, 32}), w = graph.input("w", DType::bfloat8_b, {32, 32});
  graph.set_outputs({apply(graph, "matmul", {x, w})[0]});
  const auto plan = plan_mixed(graph, {});
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->parts.size(), 2u);
  EXPECT_EQ(plan->parts[0].fast.inputs[0].form, "bf8") << "a product reads blocks as they are";
  EXPECT_FALSE(plan->parts[1].is_fast);
}

TEST(TtnnPlan, TheTierIsWhatTheSettingSays) {
  const std::optional<Graph> graph = first_program(find_op("div"), DType::f32);
  DeviceInfo device;
  EXPECT_EQ(translate(*graph, device, Math::exact).tier, "exact");
  EXPECT_EQ(translate(*graph, device, Math::fast).tier, "fast");
  EXPECT_EQ(translate(*graph, device, Math::by_limits).tier, "exact");
  const std::optional<Graph> sum = first_program(find_op("add"), DType::f32);
  EXPECT_EQ(translate(*sum, device, Math::by_limits).tier, "fast");
  EXPECT_THROW(
      {
        const Variable wrong("TENON_TENSTORRENT_MATH", "quick");
        configured_math();
      },
      Error);
}

TEST(TtnnPlan, TheSimulatedWormholeHasNo32BitTypes) {
  DeviceInfo device;
  device.details = {{"chip", "wormhole"}, {"simulator", "/sim/libttsim.so"}};
  for (const Math math : {Math::by_limits, Math::fast})
    EXPECT_EQ(translate(*first_program(find_op("add"), DType::f32), device, math).tier, "exact");
  // Of bfloat16, what stays bfloat16 by itself.
  for (const char* op : {"relu", "maximum", "max", "where", "gt"})
    EXPECT_EQ(translate(*first_program(find_op(op), DType::bf16), device, Math::by_limits).tier, "fast") << op;
  EXPECT_EQ(translate(*first_program(find_op("add"), DType::bf16), device, Math::by_limits).tier, "exact");
  EXPECT_EQ(translate(*first_program(find_op("add"), DType::bf16), device, Math::fast).tier, "fast");
  EXPECT_EQ(translate(*first_program(find_op("matmul"), DType::bf16), device, Math::fast).tier, "fast");
  device.details.erase("simulator");
  EXPECT_EQ(translate(*first_program(find_op("add"), DType::f32), device, Math::by_limits).tier, "fast") << "a real one has them";
}

// --- Golden plans ---
TEST(TtnnPlan, AProgramIsTextThatStaysTheSame) {
  Graph graph;
  const NodeId x = graph.input("x", DType::bf16, {2, 3}), y = graph.input("y", DType::bf16, {3, 4});
  graph.set_outputs({apply(graph, "relu", {apply(graph, "matmul", {x, y})[0]})[0]});
  std::vector<std::byte> constants;
  EXPECT_EQ(
      program_text(*plan_mixed(graph, {}), constants),
      R"({"values":[{"dtype":"bfloat16","shape":[2,3]},{"dtype":"bfloat16","shape":[3,4]},{"dtype":"bfloat16","shape":[2,4]}],)"
      R"("outputs":[2],"parts":[{"from":[0,1],"to":[2],"slots":5,"inputs":[[0,"bf16",0],[1,"bf16",1]],)"
      R"("outputs":[[4,"bf16",0]],"constants":[],"steps":[)"
      R"({"call":"matmul","arguments":[{"tensor":0},{"tensor":1}],"named":{"transpose_a":false,"transpose_b":false,)"
      R"("dtype":{"ttnn":"float32"},"compute_kernel_config":{"precise":true}},"outputs":[2],"drop":[]},)"
      R"({"call":"relu","arguments":[{"tensor":2}],"named":{},"outputs":[3],"drop":[2]},)"
      R"({"call":"typecast","arguments":[{"tensor":3},{"ttnn":"bfloat16"}],"named":{},"outputs":[4],"drop":[3]}]}]})");
}

std::vector<std::string> calls_by_default(const char* op, std::vector<TensorType> inputs) {
  Graph graph;
  std::vector<NodeId> in;
  for (const TensorType& type : inputs)
    in.push_back(graph.input(std::string(1, static_cast<char>('a' + in.size())), type.dtype, type.shape));
  graph.set_outputs({apply(graph, find_op(op), in)[0]});
  const auto steps = fast_steps(graph, Trust::limits);
  return steps ? calls_of(*steps) : std::vector<std::string>{"exact"};
}
using Calls = std::vector<std::string>;

TEST(TtnnPlan, AQuotientKeepsNanAndDivisionsByZero) {
  EXPECT_EQ(calls_by_default("div", {{DType::bf16, {2, 3}}, {DType::bf16, {2, 3}}}),
            (Calls{"typecast", "typecast", "divide", "reciprocal", "multiply", "eq", "where", "isnan", "where", "typecast"}));
}
TEST(TtnnPlan, FunctionsThatWereNotMeasuredAreMadeOfThoseThatWere) {
  const auto of_one = [](const char* op) { return calls_by_default(op, {{DType::bf16, {2, 3}}}); };
  EXPECT_EQ(of_one("relu6"), (Calls{"typecast", "lt", "where", "gt", "where", "typecast"}));
  EXPECT_EQ(of_one("log2"), (Calls{"typecast", "log", "multiply", "typecast"}));
  EXPECT_EQ(of_one("hardsigmoid"), (Calls{"typecast", "add", "lt", "where", "gt", "where", "multiply", "typecast"}));
  EXPECT_EQ(calls_by_default("squared_difference", {{DType::bf16, {3}}, {DType::bf16, {3}}}),
            (Calls{"typecast", "typecast", "subtract", "multiply", "typecast"}));
  // 2^x as exp(x log 2) would be zero at the smallest normal number.
  EXPECT_EQ(of_one("exp2"), Calls{"exact"});
}
TEST(TtnnPlan, ASumIsAMean) {
  EXPECT_EQ(calls_by_default("sum", {{DType::f32, {2, 3}}}), (Calls{"mean", "multiply", "reshape"}));
}
TEST(TtnnPlan, TheLargestOfFloat32IsFoundPairByPair) {
  EXPECT_EQ(calls_by_default("amax", {{DType::f32, {5}}}),
            (Calls{"slice", "slice", "maximum", "slice", "slice", "maximum", "slice", "slice", "maximum", "isnan", "max", "where",
                   "reshape"}));
}
TEST(TtnnPlan, ARootKeepsTheSignOfZero) {
  EXPECT_EQ(calls_by_default("sqrt", {{DType::bf16, {4}}}), (Calls{"typecast", "sqrt", "eq", "where", "typecast"}));
}
TEST(TtnnPlan, ComparisonsOfBfloat16NeedNoOtherType) {
  EXPECT_EQ(calls_by_default("gt", {{DType::bf16, {4}}, {DType::bf16, {4}}}), (Calls{"gt"}));
}

// --- The worker's environment ---
TEST(TtnnEnvironment, OneChipIsVisibleAndNothingIsLeftBehind) {
  DeviceInfo card;
  card.id = "tenstorrent:1";
  card.details["node"] = "/dev/tenstorrent/3";
  auto variables = worker_environment(card);
  EXPECT_EQ(variables.at("TT_VISIBLE_DEVICES"), "3");
  EXPECT_EQ(variables.at("TT_METAL_SIMULATOR"), "") << "a card is not opened through a simulator";
  EXPECT_EQ(variables.at("OMPI_MCA_btl"), "self");
  EXPECT_EQ(variables.at("TT_METAL_INSPECTOR"), "0");
  EXPECT_FALSE(variables.contains("TT_METAL_SLOW_DISPATCH_MODE"));
  DeviceInfo chip;
  chip.id = "ttsim:0";
  chip.details["simulator"] = "/opt/sim/libttsim.so";
  const Variable own("TT_METAL_CACHE", "/elsewhere");
  variables = worker_environment(chip);
  EXPECT_EQ(variables.at("TT_METAL_SIMULATOR"), "/opt/sim/libttsim.so");
  EXPECT_EQ(variables.at("TT_METAL_SLOW_DISPATCH_MODE"), "1");
  EXPECT_FALSE(variables.contains("TT_METAL_CACHE")) << "the user's own value stays";
  EXPECT_FALSE(variables.contains("TT_VISIBLE_DEVICES"));
}

}  // namespace
}  // namespace tenon::ttnn
