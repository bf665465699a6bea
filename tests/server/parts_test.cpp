// The server's pure parts: workers, routes, percent signs, streams.

#include <atomic>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include "eventually.h"
#include "server/access/rate_limit.h"
#include "server/compute/task_pool.h"
#include "server/http/body/event_stream.h"
#include "server/http_client.h"
#include "server/routes/routes.h"

namespace tenon::server {
namespace {

using namespace std::chrono_literals;
using test::eventually;

TEST(PercentDecode, RefusesWhatIsMalformed) {
  EXPECT_EQ(percent_decode("a%20b+c", true), "a b c");
  EXPECT_EQ(percent_decode("a%2", false), std::nullopt);
  EXPECT_EQ(percent_decode("%zz", false), std::nullopt);
  EXPECT_EQ(percent_decode("%00", false), std::nullopt);
  EXPECT_EQ(percent_decode("%41%7a", false), "Az");
}

TEST(RouteTable, FindsFixedPathsAndPatterns) {
  RouteTable routes;
  routes.add({.method = Method::get, .path = "/a"});
  routes.add({.method = Method::post, .path = "/a"});
  routes.add({.method = Method::get, .path = "/a/{id}/b"});
  EXPECT_NE(routes.find(Method::head, "/a").route, nullptr);
  EXPECT_EQ(routes.find(Method::delete_, "/a").route, nullptr);
  EXPECT_EQ(routes.find(Method::delete_, "/a").allow, "GET, POST, HEAD, OPTIONS");
  EXPECT_EQ(routes.find(Method::get, "/a/x%20y/b").arguments, std::vector<std::string>{"x y"});
  EXPECT_EQ(routes.find(Method::get, "/a//b").route, nullptr);
  EXPECT_EQ(routes.find(Method::get, "/a/x/c").allow, "");
}

// Eight threads: two for one client, one of them in one queue; four for one queue.
TaskPool::Limits eight_threads() { return TaskPool::shared_fairly(8, 100); }

TEST(TaskPool, OneQueueCannotTakeAllThreads) {
  std::latch block(1), others(3);
  std::atomic<int> blocked{0};
  {
    TaskPool workers(eight_threads());
    for (int i = 0; i < 10; ++i)
      ASSERT_TRUE(workers.submit("client " + std::to_string(i), "busy", [&] {
        ++blocked;
        block.wait();
      }));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(workers.submit("client 0", "other", [&] { others.count_down(); }));
    others.wait();
    EXPECT_LE(blocked, 4);
    block.count_down();
    EXPECT_TRUE(eventually(60s, [&] { return workers.running() + workers.waiting() == 0; }));
  }
  EXPECT_EQ(blocked, 10);
}

TEST(TaskPool, OneClientCannotTakeAllThreads) {
  std::latch block(1), others(6);
  std::atomic<int> blocked{0};
  {
    TaskPool workers(eight_threads());
    for (int i = 0; i < 20; ++i)
      ASSERT_TRUE(workers.submit("greedy", "device " + std::to_string(i), [&] {
        ++blocked;
        block.wait();
      }));
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(workers.submit("modest", "device 0", [&] { others.count_down(); }));
    others.wait();
    EXPECT_LE(blocked, 2);
    block.count_down();
    EXPECT_TRUE(eventually(60s, [&] { return workers.running() + workers.waiting() == 0; }));
  }
  EXPECT_EQ(blocked, 20);
}

TEST(TaskPool, OneQueueCannotTakeAllThreadsOfItsClient) {
  std::latch block(1), other(1);
  {
    TaskPool workers(eight_threads());
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(workers.submit("client", "busy", [&] { block.wait(); }));
    ASSERT_TRUE(workers.submit("client", "other", [&] { other.count_down(); }));
    other.wait();
    block.count_down();
    EXPECT_TRUE(eventually(60s, [&] { return workers.running() + workers.waiting() == 0; }));
  }
}

TEST(TaskPool, ClientsAreServedInTurn) {
  std::latch block(1);
  std::mutex mutex;
  std::string order;
  {
    TaskPool workers({.threads = 1,
                      .waiting = 100,
                      .threads_of_client = 1,
                      .waiting_of_client = 100,
                      .threads_of_queue = 1,
                      .threads_of_client_in_queue = 1});
    ASSERT_TRUE(workers.submit("first", "a", [&] { block.wait(); }));
    const auto submit = [&](const char* client, char letter) {
      ASSERT_TRUE(workers.submit(client, "a", [&, letter] {
        const std::lock_guard lock(mutex);
        order += letter;
      }));
    };
    for (int i = 0; i < 4; ++i) submit("greedy", 'g');
    for (int i = 0; i < 2; ++i) submit("modest", 'm');
    block.count_down();
    EXPECT_TRUE(eventually(60s, [&] { return workers.running() + workers.waiting() == 0; }));
  }
  EXPECT_EQ(order, "gmgmgg");
}

TEST(TaskPool, RefusesWhenTooManyWait) {
  std::latch block(1);
  TaskPool workers({.threads = 2,
                    .waiting = 4,
                    .threads_of_client = 1,
                    .waiting_of_client = 3,
                    .threads_of_queue = 1,
                    .threads_of_client_in_queue = 1});
  ASSERT_TRUE(workers.submit("a", "q", [&] { block.wait(); }));
  EXPECT_TRUE(eventually(60s, [&] { return workers.running() == 1; }));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(workers.submit("a", "q", [] {}));
  EXPECT_FALSE(workers.submit("a", "q", [] {})) << "of this client";
  EXPECT_TRUE(workers.submit("b", "q", [] {}));
  EXPECT_FALSE(workers.submit("b", "q", [] {})) << "of all";
  block.count_down();
}

TEST(TaskPool, EveryTaskOfManyThreadsRunsOnce) {
  constexpr int kThreads = 8, kTasks = 2000;
  std::atomic<int> taken{0}, run{0};
  TaskPool workers(eight_threads());
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, client = "client " + std::to_string(t)] {
        for (int i = 0; i < kTasks; ++i)
          while (!workers.submit(client, "queue " + std::to_string(i % 3), [&] { ++run; })) std::this_thread::yield();
        taken += kTasks;
      });
  }
  EXPECT_EQ(taken, kThreads * kTasks);
  EXPECT_TRUE(eventually(60s, [&] { return run == kThreads * kTasks; })) << run;
  EXPECT_EQ(workers.waiting(), 0u);
}

TEST(TaskPool, EndSaysWhatDoesNotEnd) {
  std::latch block(1);
  TaskPool workers(eight_threads());
  ASSERT_TRUE(workers.submit("a", "q", [&] { block.wait(); }));
  EXPECT_TRUE(eventually(60s, [&] { return workers.running() == 1; }));
  EXPECT_FALSE(workers.end(1ms));
  block.count_down();
  EXPECT_TRUE(workers.end(60s));
}

TEST(RateLimit, AllowsABurstAndThenTheRate) {
  RateLimit limit(2);
  auto now = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limit.take("a", now), 0) << i;
  EXPECT_NEAR(limit.take("a", now), 0.5, 1e-9);
  EXPECT_EQ(limit.take("b", now), 0);
  now += std::chrono::milliseconds(500);
  EXPECT_EQ(limit.take("a", now), 0);
  EXPECT_GT(limit.take("a", now), 0);
}

TEST(EventStream, DropsTheOldestForASlowReaderAndSaysSo) {
  EventStream stream;
  for (std::size_t i = 0; i < EventStream::kMaxWaiting + 5; ++i) stream.send("device", "{}", i + 1);
  const std::vector<EventStream::Piece> pieces = stream.take();
  ASSERT_EQ(pieces.size(), 1u);
  const std::string& text = pieces[0].own;
  EXPECT_TRUE(text.starts_with("event: lag\ndata: {\"dropped\":5}\n\nevent: device\nid: 6\n")) << text.substr(0, 100);
  EXPECT_TRUE(stream.take().empty());
}

TEST(EventStream, BoundsWhatWaitsInBytesButSendsASharedTextUncopied) {
  EventStream stream;
  const std::string large(EventStream::kMaxWaitingBytes / 4, 'x');
  for (int i = 0; i < 10; ++i) stream.send("snapshot", large);
  std::size_t bytes = 0;
  for (const EventStream::Piece& piece : stream.take()) bytes += piece.own.size();
  EXPECT_LE(bytes, EventStream::kMaxWaitingBytes + 100);
  EXPECT_GE(bytes, EventStream::kMaxWaitingBytes / 2);

  const auto shared = std::make_shared<const SharedText>(SharedText{std::string(EventStream::kMaxWaitingBytes * 2, 'y'), {}});
  stream.send("done", "{\"result\":", shared, "}");
  const std::vector<EventStream::Piece> pieces = stream.take();
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].own, "event: done\ndata: {\"result\":");
  EXPECT_EQ(pieces[0].shared, shared);
  EXPECT_EQ(pieces[1].own, "}\n\n");
}

}  // namespace
}  // namespace tenon::server
