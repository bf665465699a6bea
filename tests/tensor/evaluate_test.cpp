// When, where and how often tensors are computed.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cmath>
#include <thread>

#include "manager/simulated_machine.h"
#include "tenon/tensor.h"
#include "tenon/tensor/functions.h"

namespace tenon {
namespace {

using test::card;
using test::code_of;
using test::SimulatedMachine;

using Doubles = std::vector<double>;

Doubles values(const Tensor& tensor) { return tensor.to_host().to_doubles(); }

// Dropped when the program exits: a value on a device of the process's manager, and a chain that nobody evaluated.
Tensor value_at_exit, expression_at_exit;

// So that what is on a device stays there.
void keep_open(Config& config) { config.keep_open = KeepOpenPolicy::always; }

// Tensors of this test are evaluated on simulated cards. sim:0 is what "auto" means.
class Evaluating : public testing::Test {
 protected:
  Evaluating() : machine_({card(), card()}, keep_open), use_(machine_.manager()) {
    machine_.manager().set_default_device("sim:0");
  }

  std::uint64_t runs(const std::string& device = "sim:0") { return machine_.status(device).counters.runs; }

  SimulatedMachine machine_;
  UseManager use_;
};

TEST_F(Evaluating, ApplyingOpsTouchesNoDevice) {
  const Tensor y = gelu(matmul(tensor({{1.0, 2.0}}), tensor({{3.0}, {4.0}})) + 0.5F);
  EXPECT_EQ(y.shape(), (Shape{1, 1}));
  EXPECT_FALSE(y.is_evaluated());
  EXPECT_EQ(machine_.counters().opens, 0U);
  EXPECT_NEAR(y.item<double>(), 11.5, 1e-5);
  EXPECT_TRUE(y.is_evaluated());
  EXPECT_EQ(machine_.counters().opens, 1U);
  EXPECT_EQ(runs(), 1U);
}

TEST_F(Evaluating, ARepeatedExpressionGivesTheValuesOfItsOwnOperands) {
  const Tensor a = tensor({1.0, 2.0}), b = tensor({10.0, 20.0});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(values(a * 2 + b), (Doubles{12, 24}));
    EXPECT_EQ(values(b * 3 + a), (Doubles{31, 62}));
    EXPECT_EQ(values(a * 2 + a), (Doubles{3, 6}));  // one input where there were two
    EXPECT_EQ(values(2 - a), (Doubles{1, 0}));
    EXPECT_EQ(values(a - 2), (Doubles{-1, 0}));
    EXPECT_EQ(values(tensor({1, 2}) * 2), (Doubles{2, 4}));
    EXPECT_EQ(values(tensor({1, 2}) * 2.5), (Doubles{2.5, 5}));
    EXPECT_EQ(values(sum(a, 0)), (Doubles{3}));
    EXPECT_EQ(values(sum(a, 0, true)), (Doubles{3}));
  }
  EXPECT_EQ((tensor({1, 2}) * 2).dtype(), DType::i64);
  EXPECT_EQ((tensor({1, 2}) * 2.5).dtype(), DType::f32);
  EXPECT_EQ((a.cast(DType::bf16) * 2.001).dtype(), DType::bf16);
}

TEST_F(Evaluating, NumbersThatChangeGiveTheirOwnResults) {
  const Tensor a = tensor({1.0, 2.0});
  for (int i = 1; i < 6; ++i) EXPECT_EQ(values(a * i - 0.5), (Doubles{i - 0.5, 2 * i - 0.5})) << i;
  for (int i = 1; i < 6; ++i) EXPECT_EQ(values(tensor({i, 7}) * i), (Doubles{1.0 * i * i, 7.0 * i})) << i;
}

TEST_F(Evaluating, AValueIsComputedOnce) {
  const Tensor y = tensor({1, 2}) + 1;
  const Tensor copy = y;
  y.eval();
  EXPECT_TRUE(copy.is_evaluated());
  EXPECT_EQ(values(copy), (Doubles{2, 3}));
  EXPECT_EQ(values(y), (Doubles{2, 3}));
  EXPECT_EQ(runs(), 1U);
}

TEST_F(Evaluating, ReadingANumberOpensNothing) {
  EXPECT_EQ(Tensor(2.5).item<double>(), 2.5);
  EXPECT_EQ(tensor({1, 2}).to_vector<int>().size(), 2U);
  EXPECT_EQ(machine_.counters().opens, 0U);
}

TEST_F(Evaluating, SeveralResultsAreOneProgram) {
  const Tensor x = tensor({1.0, 2.0, 3.0});
  const Tensor shared = exp(x), a = shared * 2, b = sum(shared), c = top_k(x, 2)[1];
  const Evaluation done = eval(a, b, c);
  EXPECT_EQ(done.programs, 1);
  EXPECT_EQ(done.device.id, "sim:0");
  EXPECT_FALSE(done.timeline.empty());
  EXPECT_EQ(runs(), 1U);
  EXPECT_EQ(values(c), (Doubles{2, 1}));
  EXPECT_NEAR(b.item<double>(), std::exp(1.0) + std::exp(2.0) + std::exp(3.0), 1e-4);
  EXPECT_EQ(eval(a, b, c).programs, 0);
  EXPECT_FALSE(shared.is_evaluated());
}

TEST_F(Evaluating, TheSameTensorTwiceAndEqualValuesShareOneResult) {
  const Tensor x = tensor({1, 2}) + 1;
  const Tensor same = x.reshape({2}), requested = x.on("sim:0");
  const Tensor all[] = {x, x, same, requested};
  EXPECT_EQ(eval(all).programs, 1);
  for (const Tensor& tensor : all) EXPECT_EQ(values(tensor), (Doubles{2, 3}));
  EXPECT_EQ(runs(), 1U);
}

TEST_F(Evaluating, ResultsStayOnTheDeviceAndAreUsedThere) {
  const Tensor y = tensor({1.0, 2.0}) * 2;
  y.eval();
  EXPECT_EQ(y.device(), "sim:0");
  const std::uint64_t up = machine_.counters().bytes_up;
  const Tensor z = y + 1;
  z.eval();
  EXPECT_EQ(machine_.counters().bytes_up, up);
  EXPECT_EQ(values(z), (Doubles{3, 5}));
}

TEST_F(Evaluating, ADeviceRequestDecidesWhere) {
  const Tensor x = tensor({1.0, 2.0});
  const Tensor direct = (x + 1).on("sim:1"), inherited = x.on("sim:1") * 3, plain = x - 1;
  direct.eval();
  inherited.eval();
  plain.eval();
  EXPECT_EQ(direct.device(), "sim:1");
  EXPECT_EQ(inherited.device(), "sim:1");
  EXPECT_EQ(plain.device(), "sim:0");
  RunOptions options;
  options.device = "sim:0";
  const Tensor overruled = (x + 5).on("sim:1");
  overruled.eval(options);
  EXPECT_EQ(overruled.device(), "sim:0");
}

TEST_F(Evaluating, PartsWithDifferentRequestsRunInTurn) {
  const Tensor x = tensor({1.0, 2.0});
  const Tensor first = (x * 2).on("sim:1"), second = (first + 1).on("sim:0"), third = (second * first).on("sim:1");
  const Evaluation done = eval(third);
  EXPECT_EQ(done.programs, 3);
  EXPECT_EQ(values(third), (Doubles{6, 20}));
  EXPECT_EQ(runs("sim:0"), 1U);
  EXPECT_EQ(runs("sim:1"), 2U);
}

TEST_F(Evaluating, TensorsWithoutARequestJoinThoseWithOne) {
  const Tensor x = tensor({1.0, 2.0});
  const Tensor a = x + 1, b = (x + 2).on("sim:1");
  EXPECT_EQ(eval(a, b).programs, 1);
  EXPECT_EQ(runs("sim:1"), 1U);
  EXPECT_EQ(runs("sim:0"), 0U);
}

TEST_F(Evaluating, ToMovesAValueAndBack) {
  const Tensor x = tensor({1.0, 2.0});
  const Tensor there = x.to("sim:1");
  EXPECT_EQ(there.device(), "sim:1");
  EXPECT_EQ(values(x), (Doubles{1, 2}));
  const Tensor next = there + 1;
  next.eval();
  EXPECT_EQ(next.device(), "sim:1");
  const Tensor moved = next.to("sim:0");
  EXPECT_EQ(moved.device(), "sim:0");
  EXPECT_EQ(moved.to("sim:0").device(), "sim:0");
  const Tensor home = moved.to("host");
  EXPECT_EQ(home.device(), "");
  EXPECT_EQ(values(home), (Doubles{2, 3}));
  EXPECT_EQ((home * 1).eval().device(), "sim:0");
}

TEST_F(Evaluating, AnUnknownDeviceIsAnErrorThatLeavesTheTensorAlone) {
  const Tensor y = (tensor({1, 2}) + 1).on("sim:9");
  EXPECT_EQ(code_of([&] { y.eval(); }), ErrorCode::not_found);
  EXPECT_FALSE(y.is_evaluated());
  RunOptions options;
  options.device = "sim:0";
  EXPECT_EQ(values(y.eval(options)), (Doubles{2, 3}));
}

TEST_F(Evaluating, TensorsOutliveClosingDevicesAndTheirManager) {
  std::optional<SimulatedMachine> machine;
  machine.emplace(std::vector{card()});
  Tensor kept, lazy;
  {
    const UseManager use(machine->manager());
    kept = (tensor({1.0, 2.0}) * 2).on("sim:0");
    kept.eval();
    machine->manager().close("sim:0");
    EXPECT_EQ(values(kept), (Doubles{2, 4}));
    const Tensor again = kept + 1;
    EXPECT_EQ(values(again), (Doubles{3, 5}));
    kept = again * 2;
    kept.eval();
    lazy = kept + 1;
  }
  machine.reset();
  EXPECT_EQ(values(kept), (Doubles{6, 10}));
  RunOptions options;
  options.device = "sim:0";
  EXPECT_EQ(values(lazy.eval(options)), (Doubles{7, 11}));
}

TEST_F(Evaluating, ALostDeviceTakesWhatWasOnlyThere) {
  SimulatedDevice fragile = card();
  fragile.script = {"ok:run", "lost_mid_run:run"};
  SimulatedMachine machine({fragile}, keep_open);
  const UseManager use(machine.manager());
  const Tensor x = tensor({1.0, 2.0}).on("sim:0");
  const Tensor gone = x * 2;
  gone.eval();
  EXPECT_EQ(code_of([&] { (x + 1).eval(); }), ErrorCode::unavailable);
  EXPECT_EQ(code_of([&] { gone.to_host(); }), ErrorCode::data_loss);
  EXPECT_EQ(code_of([&] { (gone + 1).eval(); }), ErrorCode::data_loss);
  EXPECT_EQ(values(x + 1), (Doubles{2, 3}));
}

TEST_F(Evaluating, AFailedEvaluationCanBeTriedAgain) {
  SimulatedDevice shaky = card();
  shaky.script = {"lost_mid_run:run"};
  SimulatedMachine machine({shaky}, keep_open);
  const UseManager use(machine.manager());
  const Tensor y = (tensor({1.0, 2.0}) * 2).on("sim:0");
  EXPECT_EQ(code_of([&] { y.eval(); }), ErrorCode::unavailable);
  EXPECT_FALSE(y.is_evaluated());
  EXPECT_EQ(values(y), (Doubles{2, 4}));
}

TEST_F(Evaluating, ThreadsThatEvaluateOneTensorComputeItOnce) {
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t before = runs();
    const Tensor y = sum(arange(1000).on("sim:0") * (round + 1));
    std::barrier start(4);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        const UseManager use(machine_.manager());
        const Tensor mine = y;
        start.arrive_and_wait();
        EXPECT_EQ(mine.item<std::int64_t>(), 499500 * (round + 1));
      });
    threads.clear();
    EXPECT_EQ(runs(), before + 1);
  }
}

TEST_F(Evaluating, ThreadsThatEvaluateOverlappingSetsDoNotBlockEachOther) {
  for (int round = 0; round < 20; ++round) {
    const Tensor base = arange(100) + round;
    const Tensor a = base * 2, b = base * 3;
    std::jthread one([&] {
      const UseManager use(machine_.manager());
      eval(a, b);
    });
    std::jthread two([&] {
      const UseManager use(machine_.manager());
      eval(b, a);
    });
    one.join();
    two.join();
    EXPECT_EQ(a[0].item<int>(), 2 * round);
    EXPECT_EQ(b[1].item<int>(), 3 * (round + 1));
  }
}

TEST_F(Evaluating, WaitingForAnotherThreadsEvaluationEndsAtItsTimeLimitOrWhenCancelled) {
  const Tensor y = (tensor({1.0, 2.0}) * 2).on("sim:0");
  Lease lease = machine_.manager().lease({.device = "sim:0"});
  const auto evaluate = [&](RunOptions options) {
    const UseManager use(machine_.manager());
    return code_of([&] { y.eval(options); });
  };
  std::jthread first([&] { EXPECT_EQ(evaluate({}), ErrorCode::ok); });
  machine_.wait_for_users(2);
  std::jthread second([&] { EXPECT_EQ(evaluate({.timeout = std::chrono::milliseconds(5)}), ErrorCode::deadline_exceeded); });
  std::stop_source stop;
  std::jthread third([&] { EXPECT_EQ(evaluate({.cancel = stop.get_token()}), ErrorCode::cancelled); });
  second.join();
  stop.request_stop();
  third.join();
  lease.release();
}

TEST_F(Evaluating, AHolderOfTheDeviceDoesNotWaitForAThreadThatWaitsForTheDevice) {
  const Tensor y = (tensor({1.0, 2.0}) * 2).on("sim:0");
  Lease lease = machine_.manager().lease({.device = "sim:0"});
  std::jthread other([&] {
    const UseManager use(machine_.manager());
    EXPECT_EQ(values(y), (Doubles{2, 4}));
  });
  machine_.wait_for_users(2);  // the other one evaluates y, and waits for the device
  EXPECT_EQ(values(y), (Doubles{2, 4}));
  lease.release();
}

TEST_F(Evaluating, AChainOfAHundredThousandOpsNeedsNoStack) {
  Tensor x = tensor({1.0, 2.0}).on("sim:0");
  for (int i = 0; i < 100'000; ++i) x = x + 1;
  EXPECT_EQ(values(x), (Doubles{100001, 100002}));
  Tensor dropped = tensor({1.0});
  for (int i = 0; i < 100'000; ++i) dropped = dropped + 1;
}

TEST_F(Evaluating, AChainOfNumbersKeepsItsPrecisionAcrossPrograms) {
  Tensor x = 0.0;
  for (int i = 0; i < 30'000; ++i) x = x + 1e-9;
  const Tensor y = tensor({1.0}, DType::f64) + x;
  const Evaluation done = eval(y);
  EXPECT_GT(done.programs, 1);
  EXPECT_EQ(y.dtype(), DType::f64);
  EXPECT_NEAR(y.item<double>(), 1.00003, 1e-13);
}

TEST_F(Evaluating, WhatIsSharedIsComputedOnce) {
  Tensor x = tensor({1});
  for (int i = 0; i < 62; ++i) x = x + x;  // as a tree it would have 2^62 leaves
  EXPECT_EQ(x.item<std::int64_t>(), std::int64_t{1} << 62);
}

TEST_F(Evaluating, TensorsWithoutElementsAreEvaluatedToo) {
  const Tensor none = zeros({0, 3}) + 1, sums = sum(none, 0);
  eval(none, sums);
  EXPECT_EQ(none.to_host().elements(), 0);
  EXPECT_EQ(values(sums), (Doubles{0, 0, 0}));
}

TEST_F(Evaluating, ALargeExpressionWithSharedPartsIsCutCorrectly) {
  // Each step uses the results of the last two, and every thousandth is kept.
  Tensor a = tensor({0}), b = tensor({1});
  std::vector<Tensor> kept;
  std::vector<std::uint64_t> expected;
  std::uint64_t fa = 0, fb = 1;
  for (int i = 0; i < 25'000; ++i) {
    const Tensor next = a + b;
    a = b;
    b = next;
    const std::uint64_t sum = fa + fb;
    fa = fb;
    fb = sum;
    if (i % 1000 == 0) {
      kept.push_back(b);
      expected.push_back(fb);
    }
  }
  EXPECT_GT(eval(kept).programs, 1);
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(static_cast<std::uint64_t>(kept[i].item<std::int64_t>()), expected[i]) << i;
}

TEST_F(Evaluating, TensorsCanBeDroppedByAnyThread) {
  std::vector<Tensor> tensors;
  Tensor x = tensor({1.0});
  for (int i = 0; i < 10'000; ++i) tensors.push_back(x = x * 1);
  x = {};
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&tensors, t] {
      for (std::size_t i = t; i < tensors.size(); i += 4) tensors[i] = {};
    });
  threads.clear();
  for (const Tensor& tensor : tensors) EXPECT_TRUE(tensor.is_none());
}

TEST(EvaluatingAtExit, TensorsOfStaticDurationAreDroppedAfterMain) {
  value_at_exit = (tensor({1.0, 2.0}) * 2).eval();
  expression_at_exit = value_at_exit;
  for (int i = 0; i < 100'000; ++i) expression_at_exit = expression_at_exit + 1;
  EXPECT_FALSE(expression_at_exit.is_evaluated());
}

}  // namespace
}  // namespace tenon
