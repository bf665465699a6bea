#include "server/compute/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/threads/stop_scope.h"
#include "eventually.h"
#include "server/compute/thread_priority.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

using namespace std::chrono_literals;

TEST(Turns, NoMoreComputeThanThereAreCores) {
  Turns turns({2, 2, 2});
  std::atomic<int> computing{0}, most{0}, tiles{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&] {
        Turns::Task task(turns);
        for (int i = 0; i < 20; ++i, ++tiles) {
          most = std::max<int>(most, ++computing);
          std::this_thread::sleep_for(2ms);
          --computing;
          task.offer();
        }
      });
  }
  EXPECT_LE(most, 2);
  EXPECT_EQ(tiles, 160);
}

// Of CPU time, however busy the machine is.
void compute(std::chrono::nanoseconds how_long) {
  timespec used{};
  const auto now = [&] {
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  };
  for (const auto until = now() + how_long; now() < until;) {
  }
}

void compute_as(Turns& turns, const std::string& client, std::chrono::nanoseconds how_long) {
  std::jthread([&] {
    const Turns::Task task(turns, client);
    compute(how_long);
  }).join();
}

TEST(Turns, ShortTaskDoesNotWaitForALongOneThatNeverOffersItsTurn) {
  Turns turns({1, 1, 1});
  const Turns::Task task(turns, "long");
  compute(150ms);
  turns.tick();
  std::jthread([&] { const Turns::Task short_one(turns, "short"); }).join();
}

TEST(Turns, WhoHasComputedLittleDoesNotWaitForShortTasksOfBusyClients) {
  Turns turns({1, 1, 1});
  compute_as(turns, "busy", 150ms);
  std::optional<Turns::Task> task(std::in_place, turns, "busy");
  std::jthread([&] { const Turns::Task other(turns, "fresh"); }).join();
  std::atomic<bool> has_computed{false};
  std::jthread same([&] {
    const Turns::Task other(turns, "busy");
    has_computed = true;
  });
  EXPECT_TRUE(test::becomes_true(60s, [&] { return turns.waiting() == 1; }));
  EXPECT_FALSE(has_computed);
  task.reset();
}

TEST(Turns, TaskThatComesToWorkForAFreshClientDoesNotWaitForBusyOnes) {
  Turns turns({1, 1, 1});
  compute_as(turns, "busy", 150ms);
  const Turns::Task holder(turns, "busy");
  std::atomic<Turns::Task*> shared{nullptr};
  std::jthread other([&] {
    Turns::Task task(turns);
    shared = &task;
    const WithoutTurn waiting;
    task.work_for({"busy"});
  });
  EXPECT_TRUE(test::becomes_true(60s, [&] { return turns.waiting() == 1; }));
  shared.load()->work_also_for("fresh");
  other.join();
}

TEST(Turns, ThreadOfALongTaskHasLessPriorityUntilItsEnd) {
  if (!may_prefer_threads()) GTEST_SKIP() << "this user may not prefer threads";
  Turns turns({1, 1, 1}, /*sets_priorities=*/true);
  std::jthread([&] {
    const int before = own_nice();
    {
      const Turns::Task task(turns, "long");
      EXPECT_EQ(own_nice(), before);
      compute(150ms);
      turns.tick();
      EXPECT_GT(own_nice(), before);
      {
        const WithoutTurn has_what_others_wait_for;
        EXPECT_EQ(own_nice(), before);
      }
      EXPECT_GT(own_nice(), before);
    }
    EXPECT_EQ(own_nice(), before);
  }).join();
}

TEST(Turns, LoopsRunInOneThreadWhereOthersHaveAllCores) {
  Turns turns({2, 1, 2});
  const Turns::Task task(turns);
  EXPECT_FALSE(task.is_crowded());
  std::latch has_turn(1), end(1);
  std::jthread other([&] {
    compute_as(turns, "busy", 150ms);
    const Turns::Task brief(turns, "busy");
    has_turn.count_down();
    end.wait();
  });
  has_turn.wait();
  EXPECT_TRUE(task.is_crowded());
  end.count_down();
}

TEST(Turns, LongTaskLetsOthersComputeBetweenTwoTiles) {
  Turns turns({1, 1, 1});
  std::atomic<bool> has_computed{false};
  const StopScope scope(std::stop_token{}, 60s);
  Turns::Task task(turns);
  std::jthread other([&] {
    const Turns::Task short_one(turns);
    has_computed = true;
  });
  EXPECT_NO_THROW({
    while (!has_computed) check_stop();
  });
}

TEST(Turns, WhoseClientHasComputedLeastComesFirst) {
  Turns turns({1, 1, 1});
  for (const char* client : {"busy", "busy", "less busy", "holder"}) compute_as(turns, client, 150ms);
  std::string order;
  std::optional<Turns::Task> holder(std::in_place, turns, "holder");
  std::jthread busy([&] {
    const Turns::Task task(turns, "busy");
    order += 'b';
  });
  EXPECT_TRUE(test::becomes_true(60s, [&] { return turns.waiting() == 1; }));
  std::jthread less_busy([&] {
    const Turns::Task task(turns, "less busy");
    order += 'l';
  });
  EXPECT_TRUE(test::becomes_true(60s, [&] { return turns.waiting() == 2; }));
  holder.reset();
  busy.join();
  less_busy.join();
  EXPECT_EQ(order, "lb");
}

TEST(Turns, ThreadThatSleepsLosesItsTurn) {
  Turns turns({1, 1, 1});
  std::latch has_turn(1), end(1);
  std::jthread sleeper([&] {
    Turns::Task task(turns);
    has_turn.count_down();
    end.wait();
    task.offer();
  });
  has_turn.wait();
  std::atomic<bool> has_computed{false};
  std::jthread other([&] {
    const Turns::Task task(turns);
    has_computed = true;
  });
  EXPECT_TRUE(test::becomes_true(60s, [&] {
    turns.tick();
    return has_computed.load();
  }));
  end.count_down();
}

TEST(Turns, CancelledTaskDoesNotWaitForOne) {
  Turns turns({1, 1, 1});
  std::stop_source stop;
  std::atomic<bool> has_stopped{false};
  {
    const Turns::Task holder(turns);
    std::jthread other([&] {
      const StopScope scope(stop.get_token());
      const Turns::Task task(turns);
      EXPECT_THROW(check_stop(), Error);
      has_stopped = true;
    });
    EXPECT_TRUE(test::becomes_true(60s, [&] { return turns.waiting() == 1; }));
    stop.request_stop();
    EXPECT_TRUE(test::becomes_true(60s, [&] { return has_stopped.load(); }));
  }
}

TEST(Turns, WhoWaitsForSomethingElseHasNone) {
  Turns turns({1, 1, 1});
  Turns::Task task(turns);
  const WithoutTurn waiting;
  {
    const WithoutTurn within;
  }
  task.offer();  // none to offer
  std::jthread([&] { const Turns::Task other(turns); }).join();
  EXPECT_EQ(turns.waiting(), 0u);
}

}  // namespace
}  // namespace tenon::server
