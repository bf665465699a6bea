// Clients that use one exclusive device through one process, in virtual time.
#include "lease/owner/device_owner.h"
#include "lease/owner_testing.h"

namespace tenon::test {
namespace {

class FairUseTest : public DeviceOwnerTest {
 protected:
  // A lease of |client| on which |client| computes; offered by a thread of its own when the test says so.
  void use(const std::string& client, Clock::Duration how_long) {
    const Lease held = lease({.client = client});
    advance(how_long);
  }
  Asked<bool> offers(Lease& held) {
    return Asked<bool>([this, &held](const std::stop_token&) {
      owner().offer(DeviceOwner::grant_of(held));
      return true;
    });
  }
};

TEST_F(FairUseTest, WhoHasUsedTheDeviceLeastComesFirst) {
  use("greedy", 900ms);
  std::optional<Lease> held = lease({.client = "other"});
  Asked<Lease> greedy = ask({.client = "greedy"});
  ASSERT_TRUE(has_users(2));
  advance(1ms);
  Asked<Lease> modest = ask({.client = "modest"});
  ASSERT_TRUE(has_users(3));
  held.reset();
  const Lease first = modest.get();
  EXPECT_TRUE(first);
  EXPECT_EQ(greedy.answer.wait_for(0s), std::future_status::timeout);
}

TEST_F(FairUseTest, WhoHasUsedMuchIsNotBehindForLong) {
  use("greedy", 1h);
  std::optional<Lease> held = lease({.client = "other"});
  Asked<Lease> greedy = ask({.client = "greedy"});
  ASSERT_TRUE(has_users(2));
  advance(2s);
  Asked<Lease> modest = ask({.client = "modest"});
  ASSERT_TRUE(has_users(3));
  held.reset();
  const Lease first = greedy.get();
  EXPECT_EQ(modest.answer.wait_for(0s), std::future_status::timeout);
}

TEST_F(FairUseTest, LongRunMakesRoomForAShortOneAndGoesOnAfterIt) {
  Lease long_one = lease({.client = "greedy"});
  advance(500ms);
  Asked<Lease> asked = ask({.client = "modest"});
  ASSERT_TRUE(has_users(2));
  Asked<bool> offered = offers(long_one);
  std::optional<Lease> short_one = asked.get();
  EXPECT_EQ(offered.answer.wait_for(0s), std::future_status::timeout);
  EXPECT_EQ(owner().status().users.size(), 2u) << "both have it";
  advance(1ms);
  short_one.reset();
  EXPECT_TRUE(offered.get());
  EXPECT_EQ(state(), DeviceState::busy);
}

TEST_F(FairUseTest, NobodyMakesRoomForHisOwnNorForWhoHasUsedAsMuch) {
  Lease held = lease({.client = "a"});
  Asked<Lease> own = ask({.client = "a"});
  ASSERT_TRUE(has_users(2));
  advance(100ms);
  EXPECT_TRUE(offers(held).get());
  EXPECT_EQ(own.answer.wait_for(0s), std::future_status::timeout);
  own.stop.request_stop();
  EXPECT_THROW(own.get(), Error);

  Asked<Lease> unknown = ask();
  ASSERT_TRUE(has_users(2));
  EXPECT_TRUE(offers(held).get()) << "a lease without a client has the device for itself";
  EXPECT_EQ(unknown.answer.wait_for(0s), std::future_status::timeout);
}

TEST_F(FairUseTest, NobodyMakesRoomForALowerPriority) {
  Lease held = lease({.priority = 1, .client = "greedy"});
  Asked<Lease> low = ask({.client = "modest"});
  ASSERT_TRUE(has_users(2));
  advance(500ms);
  EXPECT_TRUE(offers(held).get());
  EXPECT_EQ(low.answer.wait_for(0s), std::future_status::timeout);
}

TEST_F(FairUseTest, RunThatMadeRoomEndsBeforeTheDeviceCloses) {
  Lease long_one = lease({.client = "greedy"});
  std::optional<DeviceOwner::Operation> operation = owner().begin(DeviceOwner::grant_of(long_one));
  advance(500ms);
  Asked<Lease> asked = ask({.client = "modest"});
  ASSERT_TRUE(has_users(2));
  Asked<bool> offered = offers(long_one);
  std::optional<Lease> short_one = asked.get();
  Asked<bool> closed([this](const std::stop_token&) {
    owner().close();
    return true;
  });
  EXPECT_TRUE(offered.get()) << "it goes on, beside the other one";
  operation.reset();
  EXPECT_TRUE(closed.get());
  long_one.release();
  short_one.reset();
  EXPECT_EQ(card_->log(), (std::vector<std::string>{"open", "close"}));
}

}  // namespace
}  // namespace tenon::test
