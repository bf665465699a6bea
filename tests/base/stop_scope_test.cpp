#include "base/threads/stop_scope.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/threads/thread_pool.h"
#include "tenon/error.h"

namespace tenon {
namespace {

ErrorCode code_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

TEST(StopScope, WithoutOneNothingStops) {
  EXPECT_EQ(StopScope::current(), nullptr);
  EXPECT_EQ(code_of([] { check_stop(); }), ErrorCode::ok);
  const StopScope unlimited{std::stop_token()};
  EXPECT_EQ(StopScope::current(), nullptr);
}

TEST(StopScope, SaysWhetherItWasCancelledOrExpired) {
  std::stop_source stop;
  {
    const StopScope scope(stop.get_token(), std::chrono::hours(1));
    EXPECT_EQ(code_of([] { check_stop(); }), ErrorCode::ok);
    stop.request_stop();
    EXPECT_EQ(code_of([] { check_stop(); }), ErrorCode::cancelled);
  }
  const StopScope expired({}, std::chrono::nanoseconds(0));
  EXPECT_EQ(code_of([] { check_stop(); }), ErrorCode::deadline_exceeded);
}

TEST(StopScope, InnerScopeObeysTheOuterOne) {
  std::stop_source stop;
  const StopScope outer(stop.get_token());
  const StopScope inner({}, std::chrono::hours(1));
  stop.request_stop();
  EXPECT_EQ(code_of([] { check_stop(); }), ErrorCode::cancelled);
}

TEST(StopScope, EndsALoopOfThePoolBetweenChunks) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::stop_source stop;
    std::atomic<int> chunks{0};
    const StopScope scope(stop.get_token());
    EXPECT_EQ(code_of([&] {
                pool.for_each(1'000'000, [&](std::int64_t, int) {
                  if (++chunks == 10) stop.request_stop();
                });
              }),
              ErrorCode::cancelled);
    EXPECT_LT(chunks, 10 + threads);
  }
}

TEST(StopScope, ThreadsOfThePoolSeeTheScopeOfTheCaller) {
  ThreadPool pool(3);
  const StopScope scope({}, std::chrono::hours(1));
  std::atomic<int> strangers{0};
  pool.for_each(1000, [&](std::int64_t, int) { strangers += StopScope::current() != &scope; });
  EXPECT_EQ(strangers, 0);
}

}  // namespace
}  // namespace tenon
