// The gate, tallies and hoards without a server.
#include "server/compute/memory/memory_gate.h"

#include "server/compute/memory/hoard.h"
#include "server/http/problem.h"

#include <gtest/gtest.h>

namespace tenon::server {
namespace {

int status_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Problem& problem) {
    return problem.status();
  }
  return 200;
}

TEST(MemoryGate, AClientHasAQuarterAndAllTogetherTheWhole) {
  MemoryGate gate(100);
  std::vector<MemoryGate::Share> shares;
  for (const char* client : {"a", "b", "c", "d"}) {
    shares.push_back(gate.take(client, 20));
    EXPECT_EQ(status_of([&] { gate.take(client, 6); }), 429);
    EXPECT_EQ(status_of([&] { gate.take(client, 26); }), 413);
    shares.push_back(gate.take(client, 5));
  }
  EXPECT_EQ(gate.used(), 100);
  EXPECT_EQ(gate.used_by("a"), 25);
  EXPECT_EQ(status_of([&] { gate.take("e", 1); }), 503);
  shares.clear();
  EXPECT_EQ(gate.used(), 0);
  EXPECT_EQ(gate.used_by("a"), 0);
}

TEST(MemoryGate, TheServerItselfIsBoundedOnlyByTheWhole) {
  MemoryGate gate(100);
  EXPECT_TRUE(gate.try_take(MemoryGate::kServer, 60));
  EXPECT_FALSE(gate.try_take(MemoryGate::kServer, 101));
  EXPECT_EQ(gate.used(), 0);
}

TEST(MemoryGate, AShareGrowsAndShrinks) {
  MemoryGate gate(100);
  MemoryGate::Share share = gate.take("a", 10);
  share.grow_to(25);
  EXPECT_EQ(status_of([&] { share.grow_to(26); }), 413);
  EXPECT_EQ(gate.used(), 25);
  share.shrink_to(5);
  EXPECT_EQ(gate.used_by("a"), 5);
  share.shrink_to(50);
  EXPECT_EQ(gate.used(), 5);
  const MemoryGate::Share moved = std::move(share);
  share = gate.take("a", 1);
  EXPECT_EQ(gate.used(), 6);
}

TEST(MemoryGate, ALimitNearTheProcesssOwnIsToldWhenItIsSet) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  EXPECT_EQ(excessive_limit(4 * kGiB, 8 * kGiB), "");
  EXPECT_NE(excessive_limit(8 * kGiB, 8 * kGiB).find("MemoryMax="), std::string::npos);
}

TEST(MemoryTally, TakesAShareWhenTheSumIsWorthIt) {
  MemoryGate gate(MemoryGate::kCounted * 16);
  MemoryTally tally({gate, "a"});
  tally.add(MemoryGate::kCounted / 2);
  EXPECT_EQ(gate.used(), 0);
  tally.add(MemoryGate::kCounted);
  EXPECT_EQ(gate.used(), tally.bytes());
  EXPECT_EQ(status_of([&] { tally.add(MemoryGate::kCounted * 3); }), 413);
  EXPECT_EQ(gate.used(), MemoryGate::kCounted * 3 / 2);
  const MemoryGate::Share share = tally.take_share();
  EXPECT_EQ(share.bytes(), MemoryGate::kCounted * 3 / 2);
  EXPECT_EQ(tally.bytes(), 0);
}

TEST(Hoard, WhoHasMostGivesUpTheOldest) {
  Hoard hoard(100, 5);
  hoard.add("mine", "a", 10);
  hoard.add("first", "b", 40);
  hoard.add("second", "b", 40);
  EXPECT_EQ(hoard.excess(10), std::nullopt);
  EXPECT_EQ(hoard.excess(11), "first");
  hoard.remove("first");
  EXPECT_EQ(hoard.excess(50), std::nullopt);
  EXPECT_EQ(hoard.bytes(), 50);
  for (const char* id : {"1", "2", "3"}) hoard.add(id, "c", 1);
  EXPECT_EQ(hoard.excess(0), "1") << "of the owner with the most things";
  EXPECT_EQ(hoard.oldest_of("a"), "mine");
  EXPECT_EQ(hoard.oldest_of("nobody"), std::nullopt);
}

}  // namespace
}  // namespace tenon::server
