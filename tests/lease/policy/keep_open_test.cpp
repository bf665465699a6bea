#include "lease/policy/keep_open.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "tenon/error.h"

namespace tenon {
namespace {

TEST(BreakEven, FollowsWhatIsMeasured) {
  BreakEven b(0.1, 0.1);
  EXPECT_DOUBLE_EQ(b.seconds(), 2.0);
  b.record_open(0.6);
  EXPECT_DOUBLE_EQ(b.seconds(), 10 * (0.2 + 0.1));
  for (int i = 0; i < 100; ++i) b.record_close(1.1);
  EXPECT_NEAR(b.seconds(), 10 * (0.2 + 1.1), 1e-6);
  EXPECT_DOUBLE_EQ(BreakEven(1, 2, 60).seconds(), 180);
  EXPECT_THROW(b.record_open(-1), Error);
}

TEST(KeepOpen, FixedPoliciesHoldAsLongAsTheySay) {
  EXPECT_EQ(KeepOpen::on_demand(2).threshold(), 0);
  EXPECT_EQ(KeepOpen::linger(2).threshold(), 2);
  EXPECT_EQ(KeepOpen::linger(2, 300).threshold(), 300);
  EXPECT_EQ(KeepOpen::always(2).threshold(), KeepOpen::kForever);
  EXPECT_EQ(KeepOpen::adaptive(2).threshold(), 2) << "before anything is known, the break-even is the safe choice";
  KeepOpen given = KeepOpen::linger(2, 300), relative = KeepOpen::linger(2);
  given.set_break_even(5);
  relative.set_break_even(5);
  EXPECT_EQ(given.threshold(), 300);
  EXPECT_EQ(relative.threshold(), 5);
}

TEST(KeepOpen, WrongNumbersAreRefused) {
  for (const double bad : {0.0, -1.0, std::nan(""), KeepOpen::kForever}) EXPECT_THROW(KeepOpen::adaptive(bad), Error);
  KeepOpen policy = KeepOpen::adaptive(1);
  EXPECT_THROW(policy.record_gap(-1), Error);
  EXPECT_THROW(policy.record_gap(std::nan("")), Error);
}

TEST(KeepOpen, CostsAreThoseOfHoldingAndReopening) {
  KeepOpen policy = KeepOpen::linger(2, 4);  // in units of the break-even: hold for 2
  policy.record_gap(1);
  EXPECT_DOUBLE_EQ(policy.cost(), 0.5);
  EXPECT_DOUBLE_EQ(policy.optimum(), 0.5);
  policy.record_gap(100);
  EXPECT_DOUBLE_EQ(policy.cost(), 0.5 + 3);
  EXPECT_DOUBLE_EQ(policy.optimum(), 0.5 + 1);
  EXPECT_DOUBLE_EQ(policy.cost_over_optimum(), 3.5 / 1.5);
}

TEST(KeepOpen, AdaptiveClosesAtOnceWhenGapsAreLongAndHoldsWhenTheyAreShort) {
  KeepOpen rare = KeepOpen::adaptive(2), dense = KeepOpen::adaptive(2);
  for (int i = 0; i < 50; ++i) rare.record_gap(1000);
  EXPECT_EQ(rare.threshold(), 0);
  EXPECT_LT(rare.cost_over_optimum(), 1.2);
  for (int i = 0; i < 50; ++i) dense.record_gap(1.9);
  EXPECT_GE(dense.threshold(), 2);
  EXPECT_DOUBLE_EQ(dense.cost_over_optimum(), 1);
}

TEST(KeepOpen, AdaptiveFollowsWorkThatChanges) {
  KeepOpen policy = KeepOpen::adaptive(2);
  for (int i = 0; i < 2000; ++i) policy.record_gap(1000);
  int until_held = 0;
  while (policy.threshold() < 1.8 && until_held < 1000) policy.record_gap(1.8), ++until_held;
  EXPECT_LT(until_held, 300);
}

TEST(KeepOpen, AGapThatWasCutShortCountsOnlyIfTheDeviceWasClosedAlready) {
  KeepOpen policy = KeepOpen::adaptive(2);
  policy.record_gap(1, true);
  EXPECT_EQ(policy.optimum(), 0);
  EXPECT_EQ(policy.cost(), 0);
  policy.record_gap(3, true);
  EXPECT_DOUBLE_EQ(policy.cost(), 2);
}

// The promise: cost <= 2 x optimum + 5 B, after every single gap, whoever chooses the gaps.
void play(const std::function<double(const KeepOpen&, std::mt19937_64&)>& adversary, std::uint64_t seed, int gaps) {
  std::mt19937_64 random(seed);
  const double b = std::exp(std::uniform_real_distribution<>(-3, 6)(random));
  KeepOpen policy = KeepOpen::adaptive(b);
  for (int i = 0; i < gaps; ++i) {
    policy.record_gap(adversary(policy, random));
    ASSERT_LE(policy.cost(), 2 * policy.optimum() + 5 + 1e-9) << "seed " << seed << ", gap " << i;
  }
}

TEST(KeepOpen, AdaptiveKeepsItsBoundAgainstRandomGaps) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    play([](const KeepOpen& p, auto& random) { return p.break_even() * std::exp(std::normal_distribution<>(0, 3)(random)); },
         seed, 1000);
    play([](const KeepOpen& p, auto& random) { return p.break_even() * 5 * std::generate_canonical<double, 53>(random); }, seed,
         1000);
    // Phases of one kind, then of another.
    play(
        [phase = 0, left = 0](const KeepOpen& p, auto& random) mutable {
          if (left-- <= 0) {
            left = static_cast<int>(random() % 200);
            phase = static_cast<int>(random() % 4);
          }
          constexpr double gaps[] = {0.01, 0.9, 1.1, 50};
          return p.break_even() * gaps[phase];
        },
        seed, 1000);
  }
}

TEST(KeepOpen, AdaptiveKeepsItsBoundAgainstAnAdversaryThatKnowsItsThreshold) {
  double worst = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    // Work comes just after the device was closed.
    play([](const KeepOpen& p, auto&) { return p.threshold() * (1 + 1e-9) + 1e-9; }, seed, 1000);
    // The same, but only when the threshold is long; short gaps lure it there.
    play(
        [](const KeepOpen& p, auto&) { return p.threshold() > 2 * p.break_even() ? 100 * p.break_even() : 0.3 * p.break_even(); },
        seed, 2000);
    play(
        [&](const KeepOpen& p, auto& random) {
          worst = std::max(worst, p.cost() - 2 * p.optimum());
          switch (random() % 4) {
            case 0: return p.threshold();
            case 1: return p.threshold() + 1e-6 * p.break_even();
            case 2: return 4.001 * p.break_even();
            default: return 3.999 * p.break_even();
          }
        },
        seed, 1000);
    // Looks ahead two gaps and takes what hurts most.
    play(
        [](const KeepOpen& p, auto&) {
          constexpr double choices[] = {1e-6, 0.0626, 0.26, 0.51, 1.0, 1.001, 2.001, 4.001};
          double best = -1e9, gap = 0;
          for (const double first : choices) {
            KeepOpen once = p;
            once.record_gap(first * p.break_even());
            for (const double second : choices) {
              KeepOpen twice = once;
              twice.record_gap(second * p.break_even());
              if (const double hurt = twice.cost() - 2 * twice.optimum(); hurt > best) best = hurt, gap = first * p.break_even();
            }
          }
          return gap;
        },
        seed, 60);
  }
  EXPECT_GT(worst, 0) << "the adversary did not even try";
}

}  // namespace
}  // namespace tenon
