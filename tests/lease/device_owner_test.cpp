// The state machine of a device in virtual time: every deadline here is the clock's, which only the test moves.
#include "lease/owner/device_owner.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "lease/owner_testing.h"

namespace tenon::test {
namespace {

using Steps = std::vector<std::string>;

// --- Keeping open ---
TEST_F(DeviceOwnerTest, IdleDeviceClosesWhenThePolicysTimeIsOver) {
  options_.policy = KeepOpen::linger(1, 2);
  lease().release();
  EXPECT_EQ(state(), DeviceState::idle);
  advance(1999ms);
  ASSERT_TRUE(settles());
  EXPECT_EQ(state(), DeviceState::idle);
  EXPECT_EQ(owner().status().reason, "stays open for 1.00 ms more");
  advance(1ms);
  EXPECT_TRUE(reaches(DeviceState::closed));
  EXPECT_EQ(owner().status().reason, "closed after being idle");
  EXPECT_EQ(counters().closes, 1u);
}

TEST_F(DeviceOwnerTest, EveryLeaseBeginsTheIdleTimeAgain) {
  options_.policy = KeepOpen::linger(1, 2);
  lease().release();
  advance(1500ms);
  lease().release();
  advance(1500ms);
  ASSERT_TRUE(settles());
  EXPECT_EQ(state(), DeviceState::idle);
  EXPECT_EQ(counters().opens, 1u);
  advance(500ms);
  EXPECT_TRUE(reaches(DeviceState::closed));
}

TEST_F(DeviceOwnerTest, DeviceThatIsAlwaysKeptOpenNeverCloses) {
  lease().release();
  advance(24h * 365);
  ASSERT_TRUE(settles());
  EXPECT_EQ(state(), DeviceState::idle);
}

TEST_F(DeviceOwnerTest, LeaseIsNotIdleTime) {
  options_.policy = KeepOpen::on_demand(1);
  const Lease held = lease();
  advance(24h);
  ASSERT_TRUE(settles());
  EXPECT_EQ(state(), DeviceState::busy);
}

TEST_F(DeviceOwnerTest, RequestThatMeetsAClosingDeviceReopensIt) {
  options_.policy = KeepOpen::on_demand(1);
  card_->at_close.shut();
  lease().release();
  ASSERT_TRUE(card_->at_close.is_reached());
  Asked<Lease> asking = ask();
  ASSERT_TRUE(has_users(1));
  EXPECT_EQ(state(), DeviceState::closing);
  card_->at_close.open();
  EXPECT_TRUE(asking.get());
  EXPECT_EQ(counters().opens, 2u);
  EXPECT_EQ(counters().requeued_at_close, 1u);
}

// --- The queue of threads ---
TEST_F(DeviceOwnerTest, WaitEndsAtItsTimeout) {
  Lease held = lease();
  Asked<Lease> asking = ask({.timeout = 5s});
  ASSERT_TRUE(has_users(2));
  advance(4999ms);
  ASSERT_TRUE(card_->clock.settle(asking.thread));
  EXPECT_EQ(counters().timeouts, 0u);
  advance(1ms);
  try {
    asking.get();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::deadline_exceeded);
    EXPECT_STREQ(error.what(), "timed out waiting for card:0 after 5.00 s: 1 ahead");
    EXPECT_EQ(error.hint(), "held by this process");
  }
  EXPECT_EQ(counters().timeouts, 1u);
  EXPECT_EQ(owner().queue_length(), 1);
}

TEST_F(DeviceOwnerTest, TimeoutZeroFailsAtOnceWhereSomeoneIsAhead) {
  const Lease held = lease();
  EXPECT_EQ(code_of([&] { ask({.timeout = 0ns}).get(); }), ErrorCode::deadline_exceeded);
}

TEST_F(DeviceOwnerTest, TimeoutZeroFailsAtOnceWhereAnotherProcessHasTheDevice) {
  const Turnstile::Pass elsewhere = turnstile_.enter();
  EXPECT_EQ(code_of([&] { lease({.timeout = 0ns}); }), ErrorCode::deadline_exceeded);
  EXPECT_TRUE(reaches(DeviceState::closed));
  EXPECT_EQ(card_->open_attempts, 0);
}

TEST_F(DeviceOwnerTest, TimeoutZeroWaitsForTheOpenItTriggered) {
  card_->at_open.shut();
  Asked<Lease> asking = ask({.timeout = 0ns});
  ASSERT_TRUE(card_->at_open.is_reached());
  advance(1h);
  ASSERT_TRUE(card_->clock.settle(asking.thread));
  card_->at_open.open();
  EXPECT_TRUE(asking.get());
}

TEST_F(DeviceOwnerTest, PositiveTimeoutEndsDuringTheOpen) {
  card_->at_open.shut();
  Asked<Lease> asking = ask({.timeout = 5s});
  ASSERT_TRUE(card_->at_open.is_reached());
  advance(5s);
  try {
    asking.get();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "timed out waiting for card:0 after 5.00 s: the device is still being opened");
  }
}

TEST_F(DeviceOwnerTest, GrantsByPriorityThenByArrival) {
  std::optional<Lease> held = lease();
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  const int priorities[] = {0, 0, 5, -1, 5};
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&, i] {
      const Lease mine = lease({.priority = priorities[i]});
      const std::lock_guard lock(mutex);
      order.push_back(i);
    });
    EXPECT_TRUE(has_users(i + 2));
  }
  held.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector{2, 4, 0, 1, 3}));
  EXPECT_EQ(counters().overtakes, 0u);
}

TEST_F(DeviceOwnerTest, ExclusiveRequestThatGivesUpLetsThoseBehindItIn) {
  options_.device.exclusive = false;
  const Lease held = lease();
  Asked<Lease> exclusive = ask({.mode = LeaseMode::exclusive});
  ASSERT_TRUE(has_users(2));
  Asked<Lease> shared = ask();
  ASSERT_TRUE(has_users(3));
  exclusive.stop.request_stop();
  EXPECT_EQ(code_of([&] { exclusive.get(); }), ErrorCode::cancelled);
  EXPECT_TRUE(shared.get());
}

TEST_F(DeviceOwnerTest, ExclusiveLeaseOfASharedDeviceTakesATicketOfItsOwn) {
  options_.device.exclusive = false;
  lease().release();
  const Lease alone = lease({.mode = LeaseMode::exclusive});
  EXPECT_EQ(counters().opens, 2u);
  EXPECT_EQ(turnstile_.queue().places.at(0).kind, TicketKind::exclusive);
}

// --- Opening ---
TEST_F(DeviceOwnerTest, CancelledWhileOpeningTheRequestGoesAndTheDeviceRestsIdle) {
  options_.policy = KeepOpen::linger(1, 2);
  card_->at_open.shut();
  Asked<Lease> asking = ask();
  ASSERT_TRUE(card_->at_open.is_reached());
  EXPECT_EQ(state(), DeviceState::opening);
  asking.stop.request_stop();
  EXPECT_EQ(code_of([&] { asking.get(); }), ErrorCode::cancelled);
  EXPECT_EQ(counters().cancellations, 1u);
  card_->at_open.open();
  EXPECT_TRUE(reaches(DeviceState::idle));
  advance(2s);
  EXPECT_TRUE(reaches(DeviceState::closed));
}

TEST_F(DeviceOwnerTest, CancelledBehindAnotherProcessNothingIsOpened) {
  Turnstile::Pass elsewhere = turnstile_.enter();
  Asked<Lease> asking = ask();
  ASSERT_TRUE(eventually(kLimit, [&] { return owner().status().reason == "held by another process"; }));
  asking.stop.request_stop();
  EXPECT_EQ(code_of([&] { asking.get(); }), ErrorCode::cancelled);
  EXPECT_TRUE(reaches(DeviceState::closed));
  EXPECT_EQ(owner().status().reason, "no request is waiting any more");
  elsewhere.give_back();
  EXPECT_EQ(card_->open_attempts, 0);
}

TEST_F(DeviceOwnerTest, FailedOpenIsTriedAgainAfterAPause) {
  card_->open_errors = {ErrorCode::unavailable, ErrorCode::aborted};
  Asked<Lease> asking = ask();
  ASSERT_TRUE(card_->at_open.is_reached(1));
  ASSERT_TRUE(settles());
  EXPECT_EQ(card_->open_attempts, 1);
  advance(20ms);
  ASSERT_TRUE(card_->at_open.is_reached(2));
  ASSERT_TRUE(settles());
  advance(40ms);
  EXPECT_TRUE(asking.get());
  EXPECT_EQ(card_->open_attempts, 3);
  EXPECT_DOUBLE_EQ(counters().open_seconds, 0.060);
}

TEST_F(DeviceOwnerTest, OpenThatKeepsFailingIsToldAndTheNextLeaseTriesAgain) {
  card_->open_errors = {ErrorCode::permission_denied};
  EXPECT_EQ(code_of([&] { lease(); }), ErrorCode::permission_denied);
  EXPECT_EQ(card_->open_attempts, 1);
  EXPECT_EQ(state(), DeviceState::failed);
  EXPECT_EQ(owner().status().reason, "could not be opened: it does not open");
  EXPECT_TRUE(lease());
  EXPECT_EQ(counters().open_failures, 1u);
  EXPECT_EQ(counters().dirty_grants, 1u);
}

TEST_F(DeviceOwnerTest, FailedOpenFailsEveryoneWhoWaits) {
  card_->open_errors = {ErrorCode::internal};
  card_->at_open.shut();
  Asked<Lease> first = ask();
  Asked<Lease> second = ask();
  ASSERT_TRUE(has_users(2));
  card_->at_open.open();
  EXPECT_EQ(code_of([&] { first.get(); }), ErrorCode::internal);
  EXPECT_EQ(code_of([&] { second.get(); }), ErrorCode::internal);
}

// --- Other processes ---
TEST_F(DeviceOwnerTest, WaitingProcessEndsAnIdleHoldAtOnce) {
  lease().release();
  advance(1s);
  Asked<Turnstile::Pass> elsewhere = enter_from_elsewhere();
  EXPECT_TRUE(elsewhere.get());
  EXPECT_TRUE(reaches(DeviceState::closed));
  EXPECT_EQ(owner().status().reason, "yielded to another process");
  EXPECT_EQ(counters().yields, 1u);
}

TEST_F(DeviceOwnerTest, ShortPauseEarlyInAHoldIsNotIdle) {
  lease().release();
  Asked<Turnstile::Pass> elsewhere = enter_from_elsewhere();
  ASSERT_TRUE(has_places(2));
  EXPECT_EQ(state(), DeviceState::idle);
  lease().release();
  advance(4ms);
  ASSERT_TRUE(settles());
  EXPECT_EQ(state(), DeviceState::idle);
  advance(1ms);
  EXPECT_TRUE(elsewhere.get());
}

TEST_F(DeviceOwnerTest, LeaseYieldsAtTheEndOfTheOperationInWhichItsQuantumEnded) {
  const Lease held = lease();
  const std::uint64_t first_epoch = held.epoch();
  Asked<Turnstile::Pass> elsewhere = enter_from_elsewhere();
  ASSERT_TRUE(has_places(2));
  advance(9999ms);
  {
    const DeviceOwner::Operation operation = owner().begin(DeviceOwner::grant_of(held));
    ASSERT_TRUE(settles());
    EXPECT_EQ(state(), DeviceState::busy);
    EXPECT_FALSE(held.should_yield());
    advance(1ms);
    ASSERT_TRUE(settles());
    EXPECT_EQ(state(), DeviceState::draining);
    EXPECT_TRUE(held.should_yield());
  }
  Turnstile::Pass theirs = elsewhere.get();
  EXPECT_EQ(held.epoch(), 0u);

  auto next = std::async(std::launch::async, [&] { owner().begin(DeviceOwner::grant_of(held)); });
  ASSERT_TRUE(reaches(DeviceState::waiting));
  theirs.give_back();
  next.get();
  EXPECT_EQ(state(), DeviceState::busy);
  EXPECT_GT(held.epoch(), first_epoch);
}

TEST_F(DeviceOwnerTest, DrainingEndsWhenTheWaitingProcessGoes) {
  const Lease held = lease();
  Asked<Turnstile::Pass> elsewhere = enter_from_elsewhere();
  ASSERT_TRUE(has_places(2));
  const DeviceOwner::Operation operation = owner().begin(DeviceOwner::grant_of(held));
  advance(10s);
  ASSERT_TRUE(reaches(DeviceState::draining));
  elsewhere.stop.request_stop();
  EXPECT_EQ(code_of([&] { elsewhere.get(); }), ErrorCode::cancelled);
  EXPECT_TRUE(reaches(DeviceState::busy));
  EXPECT_EQ(counters().yields, 0u);
}

TEST_F(DeviceOwnerTest, OperationThatRunsOnLongAfterTheQuantumIsLogged) {
  const logging::Capture log;
  const Lease held = lease();
  Asked<Turnstile::Pass> elsewhere = enter_from_elsewhere();
  {
    const DeviceOwner::Operation operation = owner().begin(DeviceOwner::grant_of(held));
    ASSERT_TRUE(has_places(2));
    advance(39s);
    ASSERT_TRUE(settles());
    EXPECT_FALSE(log.has("its quantum is over"));
    advance(1s);
    ASSERT_TRUE(settles());
    EXPECT_TRUE(log.has("its quantum is over"));
  }
  EXPECT_TRUE(elsewhere.get());
}

// --- Closing ---
TEST_F(DeviceOwnerTest, CloseWaitsForTheOperationAndKeepsTheLease) {
  const Lease held = lease();
  std::future<void> closing;
  {
    const DeviceOwner::Operation operation = owner().begin(DeviceOwner::grant_of(held));
    closing = std::async(std::launch::async, [&] { owner().close(); });
    ASSERT_TRUE(reaches(DeviceState::draining));
    ASSERT_TRUE(settles());
    EXPECT_EQ(card_->log(), Steps{"open"});
  }
  closing.get();
  EXPECT_EQ(state(), DeviceState::closed);
  EXPECT_EQ(owner().status().reason, "on request");
  owner().begin(DeviceOwner::grant_of(held));
  EXPECT_EQ(state(), DeviceState::busy);
  EXPECT_EQ(counters().opens, 2u);
}

TEST_F(DeviceOwnerTest, DrainingDeviceIsGrantedToNobody) {
  options_.device.exclusive = false;
  const Lease held = lease();
  std::optional<DeviceOwner::Operation> operation = owner().begin(DeviceOwner::grant_of(held));
  auto closing = std::async(std::launch::async, [&] { owner().close(); });
  EXPECT_TRUE(reaches(DeviceState::draining));
  Asked<Lease> asking = ask();
  EXPECT_TRUE(eventually(kLimit, [&] { return counters().requeued_at_close == 1; }));
  EXPECT_TRUE(settles());
  EXPECT_EQ(counters().leases, 1u);
  operation.reset();
  closing.get();
  EXPECT_TRUE(asking.get());
  EXPECT_EQ(counters().opens, 2u);
}

class ValuesOnTheCard : public DeviceOwnerTest {
 protected:
  // 7, on the card alone.
  std::shared_ptr<Storage> seven() {
    const Lease held = lease();
    const DeviceOwner::Operation operation = owner().begin(DeviceOwner::grant_of(held));
    return Storage::on_device(operation.residency(), operation.residency()->upload(HostArray::full(DType::f32, {}, 7)));
  }
  static float number_of(const std::shared_ptr<Storage>& value) { return value->to_host().view<float>()[0]; }
};

TEST_F(ValuesOnTheCard, MoveToTheHostBeforeItCloses) {
  const std::shared_ptr<Storage> value = seven();
  EXPECT_EQ(owner().status().resident_tensors, 1u);
  owner().close();
  EXPECT_EQ(card_->log(), (Steps{"open", "download", "close"}));
  EXPECT_EQ(number_of(value), 7);
  EXPECT_EQ(counters().spills, 1u);
}

TEST_F(ValuesOnTheCard, KeepItOpenWhileTheyCannotBeMoved) {
  options_.policy = KeepOpen::linger(1, 2);
  const std::shared_ptr<Storage> value = seven();
  card_->download_fails = true;
  EXPECT_EQ(code_of([&] { owner().close(); }), ErrorCode::unavailable);
  EXPECT_EQ(state(), DeviceState::idle);
  EXPECT_EQ(owner().status().reason, "its tensors could not be moved to host memory");
  EXPECT_TRUE(lease());
  advance(2s);
  ASSERT_TRUE(settles());
  EXPECT_EQ(state(), DeviceState::idle);  // tried again, in vain
  card_->download_fails = false;
  advance(2s);
  EXPECT_TRUE(reaches(DeviceState::closed));
  EXPECT_EQ(number_of(value), 7);
}

TEST_F(ValuesOnTheCard, AreLostWithIt) {
  const std::shared_ptr<Storage> value = seven();
  {
    const Lease held = lease();
    DeviceOwner::Operation operation = owner().begin(DeviceOwner::grant_of(held));
    card_->is_lost = true;
    operation.failed();
  }
  EXPECT_TRUE(reaches(DeviceState::lost));
  EXPECT_TRUE(value->is_lost());
  EXPECT_EQ(counters().lost, 1u);
  EXPECT_TRUE(lease());
  EXPECT_EQ(counters().opens, 2u);
  EXPECT_EQ(card_->recoveries, 1);
}

TEST_F(DeviceOwnerTest, OperationUnderTheLeaseOfALostDeviceOpensItAgain) {
  const Lease held = lease();
  {
    DeviceOwner::Operation operation = owner().begin(DeviceOwner::grant_of(held));
    card_->is_lost = true;
    operation.failed();
  }
  owner().begin(DeviceOwner::grant_of(held));
  EXPECT_EQ(counters().lost, 1u);
  EXPECT_EQ(state(), DeviceState::busy);
}

TEST_F(DeviceOwnerTest, FailedCloseMakesTheNextGrantDirty) {
  card_->close_fails = true;
  lease().release();
  owner().close();
  EXPECT_EQ(counters().close_failures, 1u);
  EXPECT_EQ(card_->recoveries, 0);
  lease().release();
  EXPECT_EQ(counters().dirty_grants, 1u);
  EXPECT_EQ(card_->recoveries, 1);
}

// --- The end ---
TEST_F(DeviceOwnerTest, ShutDownCancelsThoseWhoWaitAndClosesAfterTheOperation) {
  const Lease held = lease();
  Asked<Lease> asking = ask();
  ASSERT_TRUE(has_users(2));
  std::future<void> ending;
  {
    const DeviceOwner::Operation operation = owner().begin(DeviceOwner::grant_of(held));
    ending = std::async(std::launch::async, [&] { owner().shut_down(); });
    EXPECT_EQ(code_of([&] { asking.get(); }), ErrorCode::cancelled);
    EXPECT_EQ(state(), DeviceState::draining);
    EXPECT_EQ(card_->log(), Steps{"open"});
  }
  ending.get();
  EXPECT_EQ(card_->log(), (Steps{"open", "close"}));
  EXPECT_EQ(code_of([&] { owner().begin(DeviceOwner::grant_of(held)); }), ErrorCode::failed_precondition);
  EXPECT_EQ(code_of([&] { lease(); }), ErrorCode::failed_precondition);
}

TEST_F(DeviceOwnerTest, ShutDownLeavesADriverThatDoesNotReturnToItself) {
  const logging::Capture log;
  lease().release();
  card_->at_close.shut();
  auto ending = std::async(std::launch::async, [&] { owner().shut_down(10s); });
  ASSERT_TRUE(card_->at_close.is_reached());
  EXPECT_EQ(ending.wait_for(0s), std::future_status::timeout);
  advance(10s);
  ending.get();
  EXPECT_TRUE(log.has("does not come back"));
  card_->at_close.open();
  EXPECT_TRUE(eventually(kLimit, [&] { return owner_.use_count() == 1; }));
}

TEST_F(DeviceOwnerTest, LeaseKeepsItsOwnerAlive) {
  Lease held = lease();
  owner().shut_down();
  owner_.reset();
  EXPECT_EQ(held.device().id, "card:0");
  EXPECT_EQ(held.epoch(), 0u);
}

TEST_F(DeviceOwnerTest, ForkedChildIsRefused) {
  lease().release();
  const pid_t child = fork();
  if (child == 0) {
    owner_->shut_down();  // returns although the thread is not here
    _exit(code_of([&] { lease(); }) == ErrorCode::failed_precondition ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(lease());
}

// --- What is counted ---
TEST_F(DeviceOwnerTest, TimesIncludeThePeriodThatIsRunning) {
  Lease held = lease();
  advance(3s);
  EXPECT_DOUBLE_EQ(counters().busy_seconds, 3);
  held.release();
  advance(1000s);
  EXPECT_DOUBLE_EQ(counters().idle_seconds, 1000);
  EXPECT_DOUBLE_EQ(counters().busy_seconds, 3);
  EXPECT_DOUBLE_EQ(owner().status().state_seconds, 1000);
}

TEST_F(DeviceOwnerTest, OpeningAndClosingCountWhileTheyRun) {
  card_->at_open.shut();
  card_->at_close.shut();
  Asked<Lease> asking = ask();
  ASSERT_TRUE(card_->at_open.is_reached());
  advance(2s);
  EXPECT_DOUBLE_EQ(counters().open_seconds, 2);
  card_->at_open.open();
  asking.get().release();
  auto closing = std::async(std::launch::async, [&] { owner().close(); });
  ASSERT_TRUE(card_->at_close.is_reached());
  advance(3s);
  EXPECT_DOUBLE_EQ(counters().close_seconds, 3);
  card_->at_close.open();
  closing.get();
  advance(5s);
  EXPECT_DOUBLE_EQ(counters().open_seconds + counters().close_seconds, 5);
}

TEST_F(DeviceOwnerTest, LeaseOfAClosedDeviceIsNoOpenTime) {
  Lease held = lease();
  advance(2s);
  owner().close();
  advance(100s);
  held.release();
  EXPECT_DOUBLE_EQ(counters().busy_seconds, 2);
  EXPECT_DOUBLE_EQ(counters().idle_seconds, 0);
}

TEST_F(DeviceOwnerTest, RequestThatCameDuringTheOpenWaitedForTheRestOnly) {
  options_.device.exclusive = false;
  card_->at_open.shut();
  Asked<Lease> first = ask();
  ASSERT_TRUE(card_->at_open.is_reached());
  advance(3s);
  Asked<Lease> second = ask();
  ASSERT_TRUE(has_users(2));
  advance(1s);
  card_->at_open.open();
  EXPECT_DOUBLE_EQ(DeviceOwner::grant_of(first.get()).open_seconds, 4);
  EXPECT_DOUBLE_EQ(DeviceOwner::grant_of(second.get()).open_seconds, 1);
  EXPECT_DOUBLE_EQ(counters().cold_waits.seconds, 5);
}

TEST_F(DeviceOwnerTest, UsualHoldFollowsRecentLeases) {
  EXPECT_EQ(owner().usual_hold_seconds(), std::nullopt);
  Lease held = lease();
  advance(10s);
  held.release();
  EXPECT_DOUBLE_EQ(owner().usual_hold_seconds().value(), 10);
  held = lease();
  advance(20s);
  held.release();
  EXPECT_DOUBLE_EQ(owner().usual_hold_seconds().value(), 11);
}

TEST_F(DeviceOwnerTest, AdaptivePolicyLearnsTheTimeBetweenLeases) {
  options_.policy = KeepOpen::adaptive(1);
  options_.break_even = BreakEven(0.05, 0.05);  // 1 s of holding
  for (int i = 0; i < 30; ++i) {
    advance(100s);
    lease().release();
  }
  EXPECT_EQ(owner().status().threshold_seconds, 0);  // holding never paid
}

TEST(WaitHistogram, PutsAWaitBelowItsLimit) {
  WaitHistogram waits;
  waits.record(0);
  waits.record(WaitHistogram::kLimitSeconds[3]);
  waits.record(1e9);
  EXPECT_EQ(waits.counts.front(), 1u);
  EXPECT_EQ(waits.counts[3], 1u);
  EXPECT_EQ(waits.counts.back(), 1u);
}

}  // namespace
}  // namespace tenon::test
