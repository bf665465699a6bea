// Routing: which of several devices, why, and what is said of the others.
#include "manager/refusal.h"
#include "tenon/manager/routing.h"

#include <gtest/gtest.h>

#include <map>

#include "tenon/error.h"

namespace tenon {
namespace {

using test::contains;
using test::refusal;

Candidate candidate(std::string id, DeviceKind kind, std::optional<double> dollars_per_hour = 0.0) {
  Candidate made;
  made.device.id = std::move(id);
  made.device.kind = kind;
  made.device.name = made.device.id + " model";
  made.device.backends = {"some"};
  made.device.cost_per_hour = dollars_per_hour;
  return made;
}

Candidate simulated(std::string id, DeviceKind kind) {
  Candidate made = candidate(std::move(id), kind);
  made.device.backends = {"sim"};
  made.device.details["simulated"] = "true";
  return made;
}

Candidate unusable(Candidate made, std::string reason, std::string remedy = "") {
  made.device.available = false;
  made.device.reason = std::move(reason);
  made.device.remedy = std::move(remedy);
  return made;
}

// Computing takes so long, by id; the rest nothing.
Predictor seconds(std::map<std::string, double> by_id) {
  return [by_id = std::move(by_id)](const Candidate& one) { return Stages{.compute_seconds = by_id.at(one.device.id)}; };
}

Config with(RoutingMode mode, std::string prefer = "auto") {
  Config config;
  config.routing = mode;
  config.prefer = std::move(prefer);
  return config;
}

const Candidate kCpu = candidate("cpu:0", DeviceKind::cpu);
const Candidate kGpu = candidate("cuda:0", DeviceKind::gpu, 3.6);
const Candidate kTpu = candidate("tpu:0", DeviceKind::tpu, 7.2);
const Candidate kTenstorrent = candidate("tenstorrent:0", DeviceKind::tenstorrent, 1.0);

std::string chosen(const Config& config, std::vector<Candidate> candidates, std::string_view request = "auto",
                   const Predictor& predict = {}) {
  return route(config, request, candidates, predict).device.id;
}

TEST(Router, ByDefaultTheKindOrderDecides) {
  EXPECT_EQ(chosen({}, {kCpu, kGpu, kTpu, kTenstorrent}), "tpu:0");
  EXPECT_EQ(chosen({}, {kCpu, kGpu, kTenstorrent}), "tenstorrent:0");
  EXPECT_EQ(chosen({}, {kCpu, kGpu}), "cuda:0");
  EXPECT_EQ(chosen({}, {kCpu}), "cpu:0");
}

TEST(Router, ThePlatformPriorityIsTheOrderAndKindsOutsideItAreNotUsed) {
  Config config;
  config.platform_priority = {DeviceKind::gpu, DeviceKind::cpu};
  const Decision decision = route(config, "auto", std::vector{kTpu, kCpu, kGpu});
  EXPECT_EQ(decision.device.id, "cuda:0");
  EXPECT_EQ(decision.reason, "first in the order gpu, cpu");
  EXPECT_EQ(decision.considered.back().candidate.device.id, "tpu:0");
  EXPECT_EQ(decision.considered.back().remark, "tpu is not in platform_priority");
}

TEST(Router, WhatCannotBeUsedIsPassedOverWithItsReason) {
  const Decision decision = route({}, "auto", std::vector{kCpu, unusable(kGpu, "no driver", "install it")});
  EXPECT_EQ(decision.device.id, "cpu:0");
  EXPECT_EQ(decision.considered[1].remark, "no driver; install it");
  EXPECT_TRUE(decision.warning.empty());
}

TEST(Router, WithoutLeaveNoTpuIsChosenUnlessTheCallerSaysSo) {
  Config config;
  config.allow_tpu = false;
  EXPECT_EQ(chosen(config, {kCpu, kTpu}), "cpu:0");
  EXPECT_EQ(chosen(config, {kCpu, kTpu}, "tpu"), "tpu:0");
  config.prefer = "tpu";
  const Decision decision = route(config, "auto", std::vector{kCpu, kTpu});
  EXPECT_EQ(decision.device.id, "cpu:0");
  EXPECT_EQ(decision.warning, "tpu requested but tpu:0 cannot be used: allow_tpu is off; using cpu:0");
}

TEST(Router, APreferenceThatIsMissingFallsBackToTheProcessorWithAWarning) {
  const Decision missing = route(with(RoutingMode::prefer, "gpu"), "auto", std::vector{kTpu, kCpu});
  EXPECT_EQ(missing.device.id, "cpu:0");
  EXPECT_EQ(missing.warning, "gpu requested but none was found; using cpu:0");
  const Decision broken = route(with(RoutingMode::prefer, "gpu"), "auto",
                                std::vector{kCpu, unusable(kGpu, "no permission on its node", "join video")});
  EXPECT_EQ(broken.warning, "gpu requested but cuda:0 cannot be used: no permission on its node; join video; using cpu:0");
  const Decision id = route(with(RoutingMode::prefer, "cuda:7"), "auto", std::vector{kCpu, kGpu});
  EXPECT_EQ(id.device.id, "cpu:0");
  EXPECT_EQ(id.warning, "cuda:7 requested but none was found; using cpu:0");
}

TEST(Router, APreferenceOfAnIdOrAnAliasIsFollowed) {
  Candidate second = candidate("cuda:1", DeviceKind::gpu);
  second.device.aliases = {"gpu:1"};
  EXPECT_EQ(chosen(with(RoutingMode::prefer, "cuda:1"), {kCpu, kGpu, second}), "cuda:1");
  EXPECT_EQ(chosen(with(RoutingMode::prefer, "gpu:1"), {kCpu, kGpu, second}), "cuda:1");
  EXPECT_EQ(chosen({}, {kCpu, kGpu, second}, "gpu:1"), "cuda:1");
}

TEST(Router, ADeviceRequestDoesNotFallBack) {
  EXPECT_TRUE(contains(refusal([] { route({}, "gpu", std::vector{kCpu}); }, ErrorCode::not_found),
                       "no gpu was found: no card of NVIDIA, AMD or Intel is on the PCI bus"));
  EXPECT_TRUE(contains(refusal([] { route({}, "cpu:1", std::vector{kCpu}); }, ErrorCode::not_found), "did you mean 'cpu:0'?"));
  const std::string said =
      refusal([] { route({}, "gpu", std::vector{kCpu, unusable(kGpu, "no driver", "install it")}); }, ErrorCode::unavailable);
  EXPECT_EQ(said, "cuda:0 cannot be used: no driver | install it");
}

TEST(Router, PinnedDoesNotFallBackEither) {
  EXPECT_EQ(chosen(with(RoutingMode::pinned, "cuda:0"), {kCpu, kGpu}), "cuda:0");
  EXPECT_TRUE(
      contains(refusal([] { route(with(RoutingMode::pinned, "gpu"), "auto", std::vector{kCpu}); }, ErrorCode::not_found), "gpu"));
  EXPECT_EQ(chosen(with(RoutingMode::pinned, "cuda:0"), {kCpu, kGpu}, "cpu"), "cpu:0");
}

TEST(Router, AProgramADeviceCannotRunGoesElsewhereUnlessItWasAskedFor) {
  Candidate refusing = kGpu;
  refusing.refusal = "arg_sort is not supported";
  const Decision decision = route({}, "auto", std::vector{kCpu, refusing});
  EXPECT_EQ(decision.device.id, "cpu:0");
  EXPECT_EQ(decision.considered[1].remark, "arg_sort is not supported");
  const std::string said = refusal([&] { route({}, "gpu", std::vector{kCpu, refusing}); }, ErrorCode::unimplemented);
  EXPECT_TRUE(contains(said, "arg_sort is not supported")) << said;
}

TEST(Router, FastestIsTheSmallestSumOfAllStages) {
  const Predictor predict = [](const Candidate& one) {
    if (one.device.kind == DeviceKind::cpu) return Stages{.compute_seconds = 0.1};
    return Stages{.open_seconds = one.is_open ? 0 : 0.18, .transfer_seconds = 0.01, .compute_seconds = 0.001};
  };
  const Config config = with(RoutingMode::fastest);
  const Decision cold = route(config, "auto", std::vector{kCpu, kGpu}, predict);
  EXPECT_EQ(cold.device.id, "cpu:0");
  EXPECT_EQ(cold.reason, "fastest: 100 ms, against 191 ms on cuda:0");
  EXPECT_EQ(cold.considered[1].remark, "91.0 ms slower");
  Candidate warm = kGpu;
  warm.is_open = true;
  EXPECT_EQ(chosen(config, {kCpu, warm}, "auto", predict), "cuda:0");
}

TEST(Router, FastestCountsTheQueue) {
  const Predictor predict = [](const Candidate& one) {
    return Stages{.queue_seconds = one.ahead * 1.0, .compute_seconds = one.device.kind == DeviceKind::cpu ? 1.5 : 1.0};
  };
  Candidate busy = kGpu;
  EXPECT_EQ(chosen(with(RoutingMode::fastest), {kCpu, busy}, "auto", predict), "cuda:0");
  busy.ahead = 1;
  EXPECT_EQ(chosen(with(RoutingMode::fastest), {kCpu, busy}, "auto", predict), "cpu:0");
}

TEST(Router, ADeviceThatJustFailedIsTheLastChoice) {
  Candidate failed = kGpu;
  failed.has_failed = true;
  EXPECT_EQ(chosen({}, {kCpu, kGpu}), "cuda:0");
  EXPECT_EQ(chosen({}, {kCpu, failed}), "cpu:0");
  const Decision decision = route({}, "auto", std::vector{kCpu, failed});
  EXPECT_EQ(decision.reason, "cuda:0 failed a moment ago");
  EXPECT_EQ(decision.considered[1].remark, "it failed a moment ago");
  EXPECT_EQ(chosen({}, {failed}), "cuda:0");
}

TEST(Router, CheapestIsThePriceOfTheTimeADeviceIsHeld) {
  Config config = with(RoutingMode::cheapest);
  config.prices["cpu"] = 1;
  // Half a second at $3.6 an hour is more than a second at $1, and less than ten.
  EXPECT_EQ(chosen(config, {kCpu, kGpu}, "auto", seconds({{"cpu:0", 1}, {"cuda:0", 0.5}})), "cpu:0");
  const Decision decision = route(config, "auto", std::vector{kCpu, kGpu}, seconds({{"cpu:0", 10}, {"cuda:0", 0.5}}));
  EXPECT_EQ(decision.device.id, "cuda:0");
  EXPECT_EQ(decision.reason, "cheapest: $0.00050, against $0.0028 on cpu:0");
  EXPECT_NEAR(*decision.considered[0].dollars, 0.0005, 1e-9);
}

TEST(Router, AmongEquallyCheapTheFastestAndUnknownPricesLast) {
  const Candidate other = candidate("cpu:1", DeviceKind::cpu);
  const Candidate unpriced = candidate("other:0", DeviceKind::tenstorrent, std::nullopt);
  const Predictor predict = seconds({{"cpu:0", 2}, {"cpu:1", 1}, {"other:0", 0.1}});
  const Decision decision = route(with(RoutingMode::cheapest), "auto", std::vector{kCpu, other, unpriced}, predict);
  EXPECT_EQ(decision.device.id, "cpu:1");
  EXPECT_EQ(decision.considered[2].remark, "no price is known");
}

TEST(Router, PricesOfTheConfigurationAreStrongerThanWhatIsKnown) {
  Config config;
  EXPECT_EQ(price_of(config, kGpu.device), 3.6);
  config.prices = {{"gpu", 1}};
  EXPECT_EQ(price_of(config, kGpu.device), 1);
  config.prices["cuda:0 model"] = 2;
  EXPECT_EQ(price_of(config, kGpu.device), 2);
  config.prices["cuda:0"] = 3;
  EXPECT_EQ(price_of(config, kGpu.device), 3);
}

TEST(Router, SimulatedDevicesAreUsedWhenAskedForOnly) {
  const Candidate sim = simulated("sim-gpu:0", DeviceKind::gpu);
  EXPECT_EQ(chosen({}, {kCpu, sim}), "cpu:0");
  EXPECT_EQ(chosen({}, {kCpu, sim}, "sim-gpu:0"), "sim-gpu:0");
  EXPECT_EQ(chosen({}, {kCpu, sim}, "gpu"), "sim-gpu:0");
  EXPECT_EQ(chosen({}, {kCpu, sim, kGpu}, "gpu"), "cuda:0");
  EXPECT_EQ(chosen(with(RoutingMode::prefer, "gpu"), {kCpu, sim}), "sim-gpu:0");
  EXPECT_EQ(chosen(with(RoutingMode::prefer, "gpu"), {kCpu, sim, kGpu}), "cuda:0");
  EXPECT_EQ(chosen(with(RoutingMode::prefer, "sim-gpu:0"), {kCpu, sim, kGpu}), "sim-gpu:0");
  EXPECT_EQ(chosen(with(RoutingMode::fastest), {kCpu, sim}, "auto", seconds({{"cpu:0", 2}, {"sim-gpu:0", 1}})), "cpu:0");
  Config config;
  config.allow_simulated = true;
  EXPECT_EQ(chosen(config, {kCpu, sim}), "sim-gpu:0");
  EXPECT_EQ(chosen(config, {kCpu, sim, kGpu}), "cuda:0");
}

TEST(Router, OfEqualDevicesTheOneThatIsFreeThenTheOneThatIsOpen) {
  Candidate busy = kGpu, free = candidate("cuda:1", DeviceKind::gpu), open = candidate("cuda:2", DeviceKind::gpu);
  busy.ahead = 2;
  EXPECT_EQ(chosen({}, {busy, free, kCpu}), "cuda:1");
  open.is_open = true;
  EXPECT_EQ(chosen({}, {busy, free, open, kCpu}), "cuda:2");
  EXPECT_EQ(chosen({}, {kGpu, free, kCpu}), "cuda:0");
}

TEST(Router, WithoutAnyDeviceThereIsAClearError) {
  EXPECT_TRUE(contains(refusal([] { route({}, "auto", {}); }, ErrorCode::unavailable), "no usable device"));
}

TEST(Router, EveryCandidateIsInTheDecisionTheChosenOneFirst) {
  const Decision decision = route({}, "auto", std::vector{kCpu, unusable(kTpu, "in use by pid 7"), kGpu});
  ASSERT_EQ(decision.considered.size(), 3u);
  EXPECT_EQ(decision.considered[0].candidate.device.id, "cuda:0");
  EXPECT_TRUE(decision.considered[0].is_eligible);
  EXPECT_EQ(decision.considered[1].candidate.device.id, "cpu:0");
  EXPECT_EQ(decision.considered[1].remark, "later in platform_priority");
  EXPECT_EQ(decision.considered[2].remark, "in use by pid 7");
  EXPECT_FALSE(decision.considered[2].is_eligible);
}

}  // namespace
}  // namespace tenon
