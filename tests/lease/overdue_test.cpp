// Operations that do not end within their limit, in virtual time.
#include "lease/owner/device_owner.h"
#include "lease/owner_testing.h"

namespace tenon::test {
namespace {

TEST_F(DeviceOwnerTest, OverdueOperationLosesTheDevice) {
  card_->can_be_abandoned = true;
  const Lease held = lease();
  {
    DeviceOwner::Operation operation = owner().begin(DeviceOwner::grant_of(held), {}, 10s);
    advance(11s);
    ASSERT_TRUE(settles());
    EXPECT_EQ(card_->abandoned, 0) << "a moment to end by itself";
    advance(1s);
    EXPECT_TRUE(eventually(kLimit, [&] { return card_->abandoned == 1; }));
    EXPECT_EQ(state(), DeviceState::busy) << "its calls fail first";
    operation.failed();
  }
  EXPECT_TRUE(reaches(DeviceState::lost));
  EXPECT_EQ(counters().lost, 1u);
  {
    const DeviceOwner::Operation next = owner().begin(DeviceOwner::grant_of(held));
  }
  EXPECT_EQ(counters().opens, 2u);
  EXPECT_EQ(card_->recoveries, 1) << "it was dirty";
}

TEST_F(DeviceOwnerTest, OperationThatEndsInTimeCostsNothing) {
  card_->can_be_abandoned = true;
  const Lease held = lease();
  {
    const DeviceOwner::Operation operation = owner().begin(DeviceOwner::grant_of(held), {}, 10s);
  }
  advance(1h);
  ASSERT_TRUE(settles());
  {
    const DeviceOwner::Operation operation = owner().begin(DeviceOwner::grant_of(held), {}, 10s);
  }
  ASSERT_TRUE(settles());
  EXPECT_EQ(card_->abandoned, 0);
  EXPECT_EQ(state(), DeviceState::busy);
}

TEST_F(DeviceOwnerTest, DeviceIsUsableAgainWhileALostOperationHangs) {
  Lease held = lease();
  auto hanging = std::make_unique<DeviceOwner::Operation>(owner().begin(DeviceOwner::grant_of(held), {}, 10s));
  advance(12s);
  EXPECT_TRUE(reaches(DeviceState::lost));
  EXPECT_EQ(card_->abandoned, 1) << "this runtime has no means";
  EXPECT_EQ(turnstile_.queue().places.size(), 0u) << "other processes may have it";
  held.release();
  {
    const Lease next = lease();
  }
  EXPECT_EQ(card_->recoveries, 1);
  hanging.reset();  // it returns after all
  EXPECT_EQ(state(), DeviceState::idle);
}

TEST_F(DeviceOwnerTest, OperationThatSurvivesItsDeviceIsLeftToItself) {
  card_->can_be_abandoned = true;
  const Lease held = lease();
  const DeviceOwner::Operation hanging = owner().begin(DeviceOwner::grant_of(held), {}, 10s);
  advance(12s);
  EXPECT_TRUE(eventually(kLimit, [&] { return card_->abandoned == 1; }));
  ASSERT_TRUE(settles());
  EXPECT_EQ(state(), DeviceState::busy);
  advance(5s);
  EXPECT_TRUE(reaches(DeviceState::lost));
}

TEST_F(DeviceOwnerTest, CloseWithPatienceEndsAHungOperation) {
  card_->can_be_abandoned = true;
  const Lease held = lease();
  auto hanging = std::make_unique<DeviceOwner::Operation>(owner().begin(DeviceOwner::grant_of(held)));
  Asked<bool> closed([this](const std::stop_token&) {
    owner().close(30s);
    return true;
  });
  EXPECT_TRUE(reaches(DeviceState::draining));
  advance(29s);
  ASSERT_TRUE(settles());
  EXPECT_EQ(card_->abandoned, 0);
  advance(1s);
  EXPECT_TRUE(eventually(kLimit, [&] { return card_->abandoned == 1; }));
  hanging->failed();
  hanging.reset();
  EXPECT_TRUE(closed.get());
  EXPECT_EQ(state(), DeviceState::lost);
}

TEST_F(DeviceOwnerTest, CloseWithPatienceGivesUpAnOpening) {
  card_->at_open.shut();
  card_->open_errors = {ErrorCode::cancelled};
  Asked<Lease> waiting = ask();
  ASSERT_TRUE(card_->at_open.is_reached());
  EXPECT_EQ(code_of([&] { owner().close(0s); }), ErrorCode::unavailable) << "this driver does not return";
  card_->at_open.open();
  EXPECT_EQ(code_of([&] { waiting.get(); }), ErrorCode::unavailable) << "given up, and not retried";
  EXPECT_EQ(card_->open_attempts, 1);
  EXPECT_TRUE(reaches(DeviceState::failed));
}

TEST_F(DeviceOwnerTest, ShutDownEndsAlthoughAnOperationHangs) {
  card_->can_be_abandoned = true;
  const Lease held = lease();
  auto hanging = std::make_unique<DeviceOwner::Operation>(owner().begin(DeviceOwner::grant_of(held)));
  Asked<bool> ended([this](const std::stop_token&) {
    owner().shut_down(10s);
    return true;
  });
  EXPECT_TRUE(reaches(DeviceState::draining));
  advance(5s);
  EXPECT_TRUE(eventually(kLimit, [&] { return card_->abandoned == 1; }));
  hanging->failed();
  hanging.reset();
  EXPECT_TRUE(ended.get());
}

}  // namespace
}  // namespace tenon::test
