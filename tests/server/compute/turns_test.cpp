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
#include "tenon/error.h"

namespace tenon::server {
namespace {

using namespace std::chrono_literals;

TEST(Turns, NoMoreComputeThanThereAreCores) {
  Turns turns(2, 0);
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

TEST(Turns, ShortTaskDoesNotWaitForOneThatNeverOffersItsTurn) {
  Turns turns(1, 1);
  const Turns::Task task(turns);
  std::jthread([&] { const Turns::Task short_one(turns); }).join();
}

TEST(Turns, LongTaskLetsOthersComputeBetweenTwoTiles) {
  Turns turns(1, 0);
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

TEST(Turns, WhoHasComputedLeastComesFirst) {
  Turns turns(1, 0);
  std::string order;
  std::atomic<int> ready{0};
  std::optional<Turns::Task> holder;
  const auto take_away = [&] { holder.emplace(turns); };
  std::jthread long_one([&] {
    Turns::Task task(turns);
    std::this_thread::sleep_for(500ms);
    {
      const WithoutTurn waiting;
      ready = 1;
      while (ready != 2) std::this_thread::yield();
    }
    order += 'l';
  });
  while (ready != 1) std::this_thread::yield();
  take_away();
  ready = 2;
  EXPECT_TRUE(test::becomes_true(60s, [&] { return turns.waiting() == 1; }));
  std::jthread short_one([&] {
    const Turns::Task task(turns);
    order += 's';
  });
  EXPECT_TRUE(test::becomes_true(60s, [&] { return turns.waiting() == 2; }));
  holder.reset();
  long_one.join();
  short_one.join();
  EXPECT_EQ(order, "sl");
}

TEST(Turns, ThreadThatSleepsLosesItsTurn) {
  Turns turns(1, 0);
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
  Turns turns(1, 0);
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
  Turns turns(1, 0);
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
