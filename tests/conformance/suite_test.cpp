// Tests of the suite itself: that it covers the catalogue, and that it can fail.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>

#include "conformance/judge/bounds.h"
#include "conformance/judge/limits.h"
#include "conformance/report/report.h"
#include "conformance/runner.h"
#include "ops/elementwise/elementwise.h"
#include "reference/reference.h"
#include "tenon/error.h"

namespace tenon::conformance {
namespace {

struct HostBuffer : Buffer {
  explicit HostBuffer(const HostArray& a) : Buffer({a.dtype(), a.shape()}), array(a) {}
  HostArray array;
};

// What a broken device does to the results of a run; it sees the input buffers, too.
using Fault = std::function<void(std::vector<HostArray>& outputs, std::span<const Buffer* const> inputs)>;

// A device that computes with the reference interpreter, and then goes wrong in the way asked for.
class ReferenceDevice : public OpenDevice {
 public:
  explicit ReferenceDevice(Fault fault = {}) : fault_(std::move(fault)) {}

  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Executable> compile(const Graph& graph) override { return std::make_unique<Run>(graph, fault_); }
  std::unique_ptr<Buffer> allocate(const TensorType& type) override {
    return std::make_unique<HostBuffer>(HostArray::zeros(type.dtype, type.shape));
  }
  std::unique_ptr<Buffer> upload(const HostArray& array) override { return std::make_unique<HostBuffer>(array); }
  HostArray download(const Buffer& buffer) override { return dynamic_cast<const HostBuffer&>(buffer).array; }

 private:
  class Run : public Executable {
   public:
    Run(const Graph& graph, const Fault& fault) : graph_(graph), fault_(fault) {
      for (NodeId id : graph.outputs()) types_.push_back({graph[id].dtype, graph[id].shape});
    }
    std::span<const TensorType> input_types() const noexcept override { return {}; }
    std::span<const TensorType> output_types() const noexcept override { return types_; }
    void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override {
      std::vector<HostArray> arrays;
      for (const Buffer* x : inputs) arrays.push_back(dynamic_cast<const HostBuffer&>(*x).array);
      std::vector<HostArray> results = reference_run(graph_, arrays);
      if (fault_) fault_(results, inputs);
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (results[i].bytes() > 0 || results[i].elements() == 0) dynamic_cast<HostBuffer&>(*outputs[i]).array = results[i];
    }

   private:
    Graph graph_;
    Fault fault_;
    std::vector<TensorType> types_;
  };

  DeviceInfo info_;
  Fault fault_;
};

Verdict verdict_of(const Fault& fault, std::string_view op, DType dtype) {
  ReferenceDevice device(fault);
  Runner runner(device, {.extent = Extent::quick, .command = "tenon_conformance"});
  return runner.run(find_op(op), dtype);
}

// Every float32 result moved by |ulps| steps towards zero (away from it, steps are twice as long behind a power of two).
Fault moved_by(int ulps) {
  return [ulps](std::vector<HostArray>& outputs, auto) {
    for (HostArray& y : outputs)
      if (y.dtype() == DType::f32)
        for (float& v : y.mutable_view<float>())
          for (int i = 0; i < ulps && std::isfinite(v); ++i) v = std::nextafter(v, 0.0f);
  };
}

TEST(Conformance, EveryOpHasCasesThatBuildForEveryDtypeItAccepts) {
  for (const OpInfo& op : all_ops())
    for (DType dtype : op.dtypes) {
      try {
        for (const Case& c : cases_for(op, dtype, Extent::quick)) program_of(c, 1);
      } catch (const Error& e) {
        ADD_FAILURE() << op.name << " " << name(dtype) << ": " << e.what() << "\n" << e.hint();
      }
    }
}

TEST(Conformance, AnOpWithoutCasesIsAnErrorThatSaysWhereToAddThem) {
  OpInfo op = find_op("softmax");
  op.name = "an_op_of_tomorrow";
  try {
    cases_for(op, DType::f32, Extent::quick);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("an_op_of_tomorrow"), std::string::npos);
    EXPECT_NE(e.hint().find("cases_"), std::string::npos);
  }
}

TEST(Conformance, TheReferencePassesAgainstItself) {
  for (const char* op : {"exp", "add", "softmax", "sum", "matmul", "conv2d", "sort", "layer_norm", "cast", "rope"})
    for (DType dtype : find_op(op).dtypes) {
      const Verdict v = verdict_of({}, op, dtype);
      EXPECT_EQ(v.status, Status::pass) << (v.failures.empty() ? v.reason : v.failures[0]);
      EXPECT_GT(v.cases, 0);
    }
}

TEST(Conformance, FourUlpPassForAFunctionAndFiveFail) {
  const OpInfo& exp = find_op("exp");
  for (const Case& c : cases_for(exp, DType::f32, Extent::quick)) {
    if (!c.random) continue;
    const auto status = [&](int ulps) {
      ReferenceDevice device(moved_by(ulps));
      return Runner(device, {.extent = Extent::quick, .only_case = c.number}).run(exp, DType::f32).status;
    };
    EXPECT_EQ(status(3), Status::pass);  // and what the result was rounded by
    EXPECT_EQ(status(5), Status::fail);
  }
}

TEST(Conformance, OneUlpIsTooMuchForAnAddition) { EXPECT_EQ(verdict_of(moved_by(1), "add", DType::f32).status, Status::fail); }

TEST(Conformance, AFailureNamesOpTypeShapePlaceValuesAndHowToRepeatIt) {
  const Verdict v = verdict_of(moved_by(9), "exp", DType::f32);
  ASSERT_FALSE(v.failures.empty());
  for (const char* part : {"exp float32, case ", "inputs: float32 [", "the worst at [", "got ", "expected ", " ULP, limit 4",
                           "repeat: tenon_conformance --op exp --dtype float32 --case "})
    EXPECT_NE(v.failures[0].find(part), std::string::npos) << v.failures[0];
}

TEST(Conformance, ANumberWhereNanIsDueFails) {
  const Fault fault = [](std::vector<HostArray>& outputs, auto) {
    for (HostArray& y : outputs)
      if (y.dtype() == DType::f32)
        for (float& v : y.mutable_view<float>())
          if (std::isnan(v)) v = 0;
  };
  EXPECT_EQ(verdict_of(fault, "log", DType::f32).status, Status::fail);
}

TEST(Conformance, AnIntegerOffByOneFails) {
  const Fault fault = [](std::vector<HostArray>& outputs, auto) {
    if (outputs[0].dtype() == DType::i32 && outputs[0].elements() > 60) outputs[0].mutable_view<std::int32_t>()[60] += 1;
  };
  EXPECT_EQ(verdict_of(fault, "mul", DType::i32).status, Status::fail);
}

TEST(Conformance, AWrongRoundingOfHalfPrecisionFails) {
  const Fault fault = [](std::vector<HostArray>& outputs, auto) {
    if (outputs[0].dtype() == DType::bf16 && outputs[0].elements() > 60) outputs[0].mutable_data()[40] ^= std::byte{1};
  };
  EXPECT_EQ(verdict_of(fault, "mul", DType::bf16).status, Status::fail);
}

TEST(Conformance, AChangedInputFails) {
  const Fault fault = [](std::vector<HostArray>&, std::span<const Buffer* const> inputs) {
    for (const Buffer* x : inputs) {
      auto& buffer = const_cast<HostBuffer&>(dynamic_cast<const HostBuffer&>(*x));
      if (buffer.array.elements() == 67) buffer.array.mutable_data()[3] ^= std::byte{1};
    }
  };
  const Verdict v = verdict_of(fault, "neg", DType::f32);
  ASSERT_EQ(v.status, Status::fail);
  EXPECT_NE(v.failures[0].find("was changed"), std::string::npos);
}

TEST(Conformance, AnElementLeftUnwrittenFails) {
  // Unwritten: the output keeps what was there, which the runner made sure is not the result.
  const Fault fault = [](std::vector<HostArray>& outputs, auto) {
    if (outputs[0].elements() == 67) outputs[0] = HostArray::full(outputs[0].dtype(), outputs[0].shape(), -77);
  };
  EXPECT_EQ(verdict_of(fault, "relu", DType::f32).status, Status::fail);
}

TEST(Conformance, ASecondRunWithAnotherResultFails) {
  int runs = 0;
  const Fault fault = [&](std::vector<HostArray>& outputs, auto) {
    if (outputs[0].elements() == 67 && outputs[0].dtype() == DType::f32 && ++runs % 2 == 0)
      outputs[0].mutable_view<float>()[5] = 1234;
  };
  EXPECT_EQ(verdict_of(fault, "relu", DType::f32).status, Status::fail);
}

TEST(Conformance, WhatABackendNeverSupportsIsNoFailure) {
  const Fault fault = [](std::vector<HostArray>&, auto) { throw Error(ErrorCode::unimplemented, "no such thing here"); };
  const Verdict v = verdict_of(fault, "exp", DType::f32);
  EXPECT_EQ(v.status, Status::unsupported);
  EXPECT_EQ(v.reason, "no such thing here");
}

TEST(Conformance, AnyOtherErrorOfTheBackendIsAFailure) {
  const Fault fault = [](std::vector<HostArray>&, auto) { throw Error(ErrorCode::internal, "lost"); };
  EXPECT_EQ(verdict_of(fault, "exp", DType::f32).status, Status::fail);
}

// --- Bounds ---
struct Small {
  Graph graph;
  std::vector<HostArray> inputs;

  NodeId input(std::initializer_list<float> values) {
    const Shape shape{static_cast<std::int64_t>(values.size())};
    inputs.push_back(HostArray::from<float>(shape, values));
    return graph.input("x", DType::f32, shape);
  }
  NodeId op(std::string_view name, std::initializer_list<NodeId> in) { return apply(graph, name, in)[0]; }
  Bounded run(NodeId y, Arithmetic arithmetic = {}) {
    graph.set_outputs({y});
    return bounded_run(graph, inputs, arithmetic)[0];
  }
};

TEST(Bounds, OfOneOpIsItsLimit) {
  Small s;
  const Bounded y = s.run(s.op("exp", {s.input({1, 3})}));
  EXPECT_EQ(y.error[0], 4 * ulp(std::exp(1.0), DType::f32));
  EXPECT_EQ(y.error[1], 4 * ulp(std::exp(3.0), DType::f32));
}

TEST(Bounds, OfMovedElementsIsNothing) {
  Small s;
  EXPECT_TRUE(s.run(s.op("flip", {s.input({1, 2, 3})})).error.empty());
}

TEST(Bounds, GrowWithTheSlopeOfWhatComesAfter) {
  Small s;
  const Bounded y = s.run(s.op("exp", {s.op("mul", {s.input({3}), s.input({3.1f})})}));
  const double product = 3.0 * 3.1f, value = std::exp(product);
  const double expected = value * 0.5 * ulp(product, DType::f32) + 4 * ulp(value, DType::f32);
  EXPECT_NEAR(y.error[0], expected, 0.01 * expected);
}

TEST(Bounds, JumpWhereAnInexactValueMayCrossAStep) {
  Small s;
  const NodeId product = s.op("mul", {s.input({10, 5}), s.input({0.1f, 0.3f})});
  const Bounded y = s.run(s.op("ceil", {product}));
  EXPECT_EQ(y.error[0], 1);  // 10 times the float next to 0.1 is just above 1, and 1 in float32
  EXPECT_EQ(y.error[1], 0);  // 1.5 is nowhere near a whole number
}

TEST(Bounds, OfACorrectlyRoundedOpAreNothingWhereNoRoundingIsNeeded) {
  Small s;
  EXPECT_TRUE(s.run(s.op("mul", {s.input({3, 0.5f}), s.input({7, 5})})).error.empty());
}

TEST(Bounds, WhereSubnormalsCountAsZeroTheyMayBecomeZero) {
  const auto product = [](bool flushes) {
    Small s;
    return s.run(s.op("mul", {s.input({0x1p-130f, 0x1p-100f, 3}), s.input({2, 0x1p-40f, 7})}), {.flushes_subnormals = flushes});
  };
  const Bounded kept = product(false), flushed = product(true);
  EXPECT_EQ(kept.error_at(0), 0);
  EXPECT_GE(flushed.error_at(0), 0x1p-129);  // an operand
  EXPECT_GE(flushed.error_at(1), 0x1p-140);  // the result
  EXPECT_EQ(flushed.error_at(2), 0);
}

TEST(Bounds, OfSortedElementsAreNothingAlsoWhereSubnormalsCountAsZero) {
  Small s;
  EXPECT_TRUE(s.run(s.op("argsort", {s.input({0x1p-130f, 0, 1})}), {.flushes_subnormals = true}).error.empty());
}

TEST(Bounds, OfASumAreRelativeToItsMagnitudes) {
  Small s;
  const Bounded y = s.run(s.op("sum", {s.input({1000, -1000, 1, 0})}));
  EXPECT_EQ(y.value.value(0), 1);
  EXPECT_EQ(y.error[0], 4 * 0x1p-24 * 2001);
}

TEST(Bounds, OfAnInfinityAreNothing) {
  Small s;
  EXPECT_TRUE(s.run(s.op("exp", {s.input({std::numeric_limits<float>::infinity()})})).error.empty());
}

TEST(Bounds, AreUnknownBehindAnOverflowOfFloat32) {
  Small s;
  const Bounded y = s.run(s.op("mul", {s.op("square", {s.input({1e30f})}), s.input({1e-30f})}));
  EXPECT_TRUE(std::isinf(y.error[0]));
}

TEST(Limits, AnUlpIsTheDistanceToTheNextNumber) {
  EXPECT_EQ(ulp(1, DType::f32), 0x1p-23);
  EXPECT_EQ(ulp(-3, DType::f32), 0x1p-22);
  EXPECT_EQ(ulp(0, DType::f32), 0x1p-149);
  EXPECT_EQ(ulp(1, DType::bf16), 0x1p-7);
  EXPECT_EQ(ulp(1, DType::f16), 0x1p-10);
  EXPECT_EQ(ulp(1e-6, DType::f16), 0x1p-24);
}

TEST(Limits, NoElementwiseFloat32LimitExceedsFourUlpWithoutAReason) {
  for (int i = 0; i < kElementwiseCount; ++i) {
    const Limit limit = elementwise_limit(static_cast<ElementwiseOp>(i), DType::f32);
    EXPECT_TRUE(limit.ulp <= 4 || !limit.reason.empty()) << name(static_cast<ElementwiseOp>(i));
  }
}

TEST(Limits, ArePublishedInTheDocumentation) {
  std::ifstream file(TENON_SOURCE_DIR "/docs/conformance.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_TRUE(page.starts_with(limits_markdown())) << "make it again: tenon_conformance --markdown > docs/conformance.md";
}

TEST(Report, TheMatrixHasALineForEachOpAndAMarkForEachResult) {
  Results results;
  results[{"exp", DType::f32}] = {};
  results[{"exp", DType::bf16}] = {.status = Status::unsupported, .reason = "no bf16 here"};
  results[{"sort", DType::i32}] = {.status = Status::fail, .failures = {"sort int32, case 3"}};
  const std::string matrix = matrix_text(results), summary = summary_text(results);
  EXPECT_NE(matrix.find("exp" + std::string(31 + 10 * 5 + 4, ' ') + "-    .\n"), std::string::npos) << matrix;
  EXPECT_NE(summary.find("FAIL sort int32, case 3"), std::string::npos);
  EXPECT_NE(summary.find("unsupported exp: no bf16 here"), std::string::npos);
  EXPECT_NE(summary.find("3 ops and types: 1 pass, 1 fail, 1 unsupported, 0 unavailable"), std::string::npos) << summary;
}

}  // namespace
}  // namespace tenon::conformance
