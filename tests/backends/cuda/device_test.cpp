// The backend on a driver of the test's own: what it promises whatever the card does.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "backends/cuda/fake_driver.h"
#include "tenon/error.h"
#include "tenon/expression.h"

namespace tenon::cuda {
namespace {

class CudaDeviceOnAFake : public testing::Test {
 protected:
  std::unique_ptr<OpenDevice> open(std::shared_ptr<MemoryBudget> budget = nullptr) {
    return open_with(fake.table(), FakeDriver::card(), {std::move(budget)}, fake.how());
  }
  static HostArray numbers(std::int64_t count) {
    HostArray array = HostArray::empty(DType::i32, {count});
    const auto values = array.mutable_view<std::int32_t>();
    std::iota(values.begin(), values.end(), 0);
    return array;
  }
  static void expect_equal(const HostArray& a, const HostArray& b) {
    ASSERT_EQ(a.bytes(), b.bytes());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0);
  }
  static ErrorCode code_of(const std::function<void()>& call) {
    try {
      call();
      return ErrorCode::ok;
    } catch (const Error& error) {
      return error.code();
    }
  }

  FakeDriver fake;
};

TEST_F(CudaDeviceOnAFake, ArraysOfEverySizeComeBackAsTheyWere) {
  const auto device = open();
  for (const std::int64_t count : {0, 1, 1000, 16384, 16385, 100'000, 262'144, 262'145, 9'000'001}) {
    const HostArray array = numbers(count);
    expect_equal(device->download(*device->upload(array)), array);
  }
}

TEST_F(CudaDeviceOnAFake, ManySmallUploadsInARowKeepTheirBytes) {
  const auto device = open();
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 300; ++i) buffers.push_back(device->upload(HostArray::full(DType::i32, {3000}, i)));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(device->download(*buffers[static_cast<std::size_t>(i)]).value(2999), i);
}

TEST_F(CudaDeviceOnAFake, TransfersFromSeveralThreadsDoNotMix) {
  const auto device = open();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (const std::int64_t count : {100, 20'000, 1'000'000}) {
        const HostArray array = HostArray::full(DType::i32, {count}, t);
        for (int i = 0; i < 5; ++i) {
          const HostArray back = device->download(*device->upload(array));
          if (std::memcmp(back.data(), array.data(), array.bytes()) != 0) ++wrong;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(CudaDeviceOnAFake, ClosingLeavesNothingBehindAndBuffersMayBeDroppedLater) {
  auto device = open();
  const auto small = device->upload(numbers(10)), large = device->upload(numbers(1'000'000));
  const auto program = device->compile(parse_expression("a + 1", {{"a", DType::f32, {100}}}));
  EXPECT_EQ(fake.contexts, 1);
  device->close();
  EXPECT_EQ(fake.contexts, 0);
  EXPECT_EQ(fake.streams, 0);
  EXPECT_EQ(fake.events, 0);
  EXPECT_EQ(fake.modules, 0);
  EXPECT_TRUE(fake.memory.empty());
  EXPECT_TRUE(fake.pinned.empty());
  EXPECT_EQ(code_of([&] { device->upload(numbers(1)); }), ErrorCode::failed_precondition);
  EXPECT_EQ(code_of([&] { device->download(*small); }), ErrorCode::failed_precondition);
  device.reset();
}

TEST_F(CudaDeviceOnAFake, ADroppedDeviceClosesItself) {
  {
    const auto device = open();
  }
  EXPECT_EQ(fake.contexts, 0);
}

TEST_F(CudaDeviceOnAFake, RunningLaunchesTheKernelsOfThePlanOnTheBuffersGiven) {
  const auto device = open();
  const auto program = device->compile(parse_expression("a + b", {{"a", DType::f32, {1000}}, {"b", DType::f32, {1000}}}));
  EXPECT_EQ(fake.compiled, 1);
  const auto a = device->allocate({DType::f32, {1000}}), b = device->allocate({DType::f32, {1000}});
  const auto c = device->allocate({DType::f32, {1000}});
  program->run({a.get(), b.get()}, {c.get()});
  ASSERT_EQ(fake.launches.size(), 1u);
  EXPECT_EQ(fake.launches[0].arguments[0], static_cast<DeviceBuffer&>(*a).address());
  EXPECT_EQ(fake.launches[0].arguments[1], static_cast<DeviceBuffer&>(*b).address());
  program->run({b.get(), a.get()}, {c.get()});
  EXPECT_EQ(fake.launches[1].arguments[0], static_cast<DeviceBuffer&>(*b).address());
}

// Sums along the middle axis cannot share a kernel, so that this is a program of several calls.
constexpr const char* kSeveralCalls = "cumsum(cumsum(cumsum(cumsum(a, axis=0), axis=1), axis=0), axis=1)";

TEST_F(CudaDeviceOnAFake, CallsOnTheSameBuffersAreCapturedOnceAndLaunchedTogether) {
  const auto device = open();
  const auto program = device->compile(parse_expression(kSeveralCalls, {{"a", DType::f32, {30, 20}}}));
  const auto a = device->allocate({DType::f32, {30, 20}}), b = device->allocate({DType::f32, {30, 20}});
  const auto c = device->allocate({DType::f32, {30, 20}});
  program->run({a.get()}, {c.get()});
  const std::size_t calls = fake.launches.size();
  ASSERT_GE(calls, 4u);
  EXPECT_EQ(fake.live_graphs, 0) << "once is no reason to capture";
  program->run({a.get()}, {c.get()});
  EXPECT_EQ(fake.graph_launches, 1);
  program->run({b.get()}, {c.get()});
  EXPECT_EQ(fake.graph_launches, 1) << "other buffers";
  program->run({b.get()}, {c.get()});
  program->run({a.get()}, {c.get()});
  EXPECT_EQ(fake.graph_launches, 3);
  EXPECT_EQ(fake.live_graphs, 2);
  EXPECT_EQ(fake.launches.size(), 5 * calls);
  EXPECT_EQ(fake.launches[3 * calls].arguments[0], static_cast<DeviceBuffer&>(*b).address());
  EXPECT_EQ(fake.launches[4 * calls].arguments[0], static_cast<DeviceBuffer&>(*a).address());
  device->close();
  EXPECT_EQ(fake.live_graphs, 0);
  EXPECT_EQ(fake.streams, 0);
}

TEST_F(CudaDeviceOnAFake, GraphsEndWithTheirProgramAndOnlyTheLatestAreKept) {
  const auto device = open();
  auto program = device->compile(parse_expression(kSeveralCalls, {{"a", DType::f32, {30, 20}}}));
  const auto c = device->allocate({DType::f32, {30, 20}});
  std::vector<std::unique_ptr<Buffer>> inputs;
  for (int i = 0; i < 20; ++i) {
    inputs.push_back(device->allocate({DType::f32, {30, 20}}));
    for (int k = 0; k < 2; ++k) program->run({inputs.back().get()}, {c.get()});
  }
  EXPECT_EQ(fake.graph_launches, 20);
  EXPECT_LE(fake.live_graphs, 16);
  program.reset();
  EXPECT_EQ(fake.live_graphs, 0);
}

TEST_F(CudaDeviceOnAFake, ADriverThatCannotCaptureRunsTheCallsOneByOne) {
  const auto device = open();
  const auto program = device->compile(parse_expression(kSeveralCalls, {{"a", DType::f32, {30, 20}}}));
  const auto a = device->allocate({DType::f32, {30, 20}}), c = device->allocate({DType::f32, {30, 20}});
  program->run({a.get()}, {c.get()});
  const std::size_t calls = fake.launches.size();
  fake.next_capture = 900;
  for (int i = 0; i < 3; ++i) program->run({a.get()}, {c.get()});
  EXPECT_EQ(fake.launches.size(), 4 * calls);
  EXPECT_EQ(fake.graph_launches, 0);
}

TEST_F(CudaDeviceOnAFake, AKernelThatIsThereIsNotCompiledAgainForAnotherShape) {
  const auto device = open();
  const auto one = device->compile(parse_expression("exp(a)", {{"a", DType::f32, {4096}}}));
  const auto two = device->compile(parse_expression("exp(a)", {{"a", DType::f32, {8192}}}));
  EXPECT_EQ(fake.compiled, 1);
}

TEST_F(CudaDeviceOnAFake, OnlyKernelsThatNeedItAreCompiledForOneArchitecture) {
  const auto device = open();
  const auto specific = [&] { return fake.compiled_with.find("--gpu-architecture=sm_90a") != std::string::npos; };
  const NamedType heads{"x", DType::bf16, {1, 2, 100, 64}};
  const auto attention = device->compile(parse_expression("attention(x, x, x)", {heads}));
  EXPECT_TRUE(specific());
  const auto masked = device->compile(parse_expression("attention(x, x, x, m)", {heads, {"m", DType::f32, {100, 100}}}));
  EXPECT_EQ(fake.compiled, 2);
  EXPECT_FALSE(specific());
}

TEST_F(CudaDeviceOnAFake, ResultsThatAreReadAfterEachRunComeAlongWithTheRun) {
  const auto device = open();
  const auto program = device->compile(parse_expression("a + 1", {{"a", DType::f32, {100}}}));
  const auto a = device->upload(HostArray::full(DType::f32, {100}, 3));
  const auto b = device->allocate({DType::f32, {100}});
  program->run({a.get()}, {b.get()});
  EXPECT_EQ(fake.downloads, 0) << "nobody has read a result yet";
  device->download(*b);
  EXPECT_EQ(fake.downloads, 1);
  program->run({a.get()}, {b.get()});
  EXPECT_EQ(fake.downloads, 2);
  device->download(*b);
  EXPECT_EQ(fake.downloads, 2) << "it was there already";
  program->run({a.get()}, {b.get()});
  program->run({a.get()}, {b.get()});
  EXPECT_EQ(fake.downloads, 3) << "the run before was not read";
}

TEST_F(CudaDeviceOnAFake, BuffersOfAnotherOpenDeviceOrTypeAreRefused) {
  const auto device = open(), other = open();
  const auto program = device->compile(parse_expression("a + 1", {{"a", DType::f32, {100}}}));
  const auto mine = device->allocate({DType::f32, {100}}), theirs = other->allocate({DType::f32, {100}});
  const auto wrong = device->allocate({DType::f32, {101}});
  EXPECT_EQ(code_of([&] { program->run({theirs.get()}, {mine.get()}); }), ErrorCode::failed_precondition);
  EXPECT_EQ(code_of([&] { program->run({wrong.get()}, {mine.get()}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { program->run({}, {mine.get()}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { device->download(*theirs); }), ErrorCode::failed_precondition);
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(CudaDeviceOnAFake, AFatalErrorMakesTheDeviceLostAndItMayStillBeClosed) {
  const auto device = open();
  const auto program = device->compile(parse_expression("a + 1", {{"a", DType::f32, {100}}}));
  const auto a = device->allocate({DType::f32, {100}}), b = device->allocate({DType::f32, {100}});
  fake.next_wait = 700;
  EXPECT_EQ(code_of([&] { program->run({a.get()}, {b.get()}); }), ErrorCode::unavailable);
  EXPECT_TRUE(device->is_lost());
  EXPECT_EQ(code_of([&] { program->run({a.get()}, {b.get()}); }), ErrorCode::unavailable);
  EXPECT_EQ(code_of([&] { device->allocate({DType::f32, {1}}); }), ErrorCode::unavailable);
  device->close();
  EXPECT_EQ(fake.contexts, 0);
  EXPECT_EQ(fake.resets, 1) << "the broken context must not be found again by whoever opens the card next";
  const auto again = open();
  EXPECT_FALSE(again->is_lost());
}

TEST_F(CudaDeviceOnAFake, ADriverThatWentBeforeUsIsClosedAlready) {
  const auto device = open();
  const auto buffer = device->allocate({DType::f32, {100}});
  fake.next_wait = 4;
  EXPECT_NO_THROW(device->close());
}

TEST_F(CudaDeviceOnAFake, ARefusedLaunchIsAnErrorOfThatRunAlone) {
  const auto device = open();
  const auto program = device->compile(parse_expression("a + 1", {{"a", DType::f32, {100}}}));
  const auto a = device->allocate({DType::f32, {100}}), b = device->allocate({DType::f32, {100}});
  fake.next_launch = 701;
  EXPECT_EQ(code_of([&] { program->run({a.get()}, {b.get()}); }), ErrorCode::resource_exhausted);
  EXPECT_FALSE(device->is_lost());
  program->run({a.get()}, {b.get()});
}

TEST_F(CudaDeviceOnAFake, ACardThatDoesNotOpenSaysWhy) {
  fake.next_open = 46;
  try {
    open();
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_NE(std::string(error.what()).find("cuda:0: opening the card failed"), std::string::npos) << error.what();
  }
  EXPECT_EQ(fake.contexts, 0);
}

TEST_F(CudaDeviceOnAFake, AContextThatAnEarlierErrorBrokeIsAReasonToStartAnew) {
  fake.next_stream = 700;
  try {
    open();
    FAIL() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_NE(error.hint().find("restart the process"), std::string::npos) << error.hint();
  }
  EXPECT_EQ(fake.contexts, 0);
}

TEST_F(CudaDeviceOnAFake, AllocationsStayWithinTheBudgetAndTheCard) {
  fake.capacity = std::size_t{64} << 20;
  const auto budget = MemoryBudget::make("cuda:0", std::uint64_t{32} << 20);
  const auto device = open(budget);
  const auto first = device->allocate({DType::u8, {std::int64_t{20} << 20}});
  EXPECT_EQ(budget->used_bytes(), std::uint64_t{20} << 20);
  EXPECT_EQ(code_of([&] { device->allocate({DType::u8, {std::int64_t{20} << 20}}); }), ErrorCode::resource_exhausted);
  budget->set_limit(std::uint64_t{1} << 40);
  EXPECT_EQ(code_of([&] { device->allocate({DType::u8, {std::int64_t{60} << 20}}); }), ErrorCode::resource_exhausted);
  EXPECT_EQ(budget->used_bytes(), std::uint64_t{20} << 20) << "a failed allocation holds no share";
}

TEST_F(CudaDeviceOnAFake, AProgramGivesItsWorkspaceBack) {
  const auto budget = MemoryBudget::make("cuda:0", std::uint64_t{1} << 30);
  const auto device = open(budget);
  auto program = device->compile(parse_expression("cumsum(sort(a), axis=0)", {{"a", DType::f32, {100'000}}}));
  EXPECT_GT(budget->used_bytes(), 0u);
  program.reset();
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST_F(CudaDeviceOnAFake, ABadIndexIsAnErrorOfTheRun) {
  const auto device = open();
  const auto program = device->compile(parse_expression("take(a, i, axis=0)", {{"a", DType::f32, {10}}, {"i", DType::i64, {4}}}));
  const auto a = device->allocate({DType::f32, {10}}), i = device->allocate({DType::i64, {4}});
  const auto out = device->allocate({DType::f32, {4}});
  program->run({a.get(), i.get()}, {out.get()});
  EXPECT_GE(fake.downloads, 1) << "the status was read";
}

TEST(CudaBackend, FindsCardsWithoutOpeningAnything) {
  for (const DeviceInfo& card : make_backend()->devices()) {
    EXPECT_TRUE(card.id.starts_with("cuda:")) << card.id;
    EXPECT_EQ(card.backends, std::vector<std::string>{"cuda"});
    EXPECT_FALSE(card.pci_address.empty() && card.uuid.empty());
  }
}

}  // namespace
}  // namespace tenon::cuda
