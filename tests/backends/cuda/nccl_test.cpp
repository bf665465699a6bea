// Exchanges between cards, on a driver of the tests whose cards are host memory and a library with NCCL's interface that
// computes on it (nccl_stand_in.cpp). The real library is used in card_test.cpp, where there is a card.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <stop_token>
#include <thread>

#include "backends/cuda/fake_driver.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/nccl_stand_in.h"
#include "base/threads/stop_scope.h"
#include "hal/collectives.h"
#include "tenon/error.h"

namespace tenon::cuda {
namespace {

using Kind = GroupCall::Kind;
const std::string kStandIn[] = {TENON_NCCL_STAND_IN};

class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    state() = {22703, state().communicators, 0, 0, 0};
    fake.is_busy = reinterpret_cast<bool (*)(const void*)>(symbol("stand_in_is_busy"));
  }
  static void* symbol(const char* name) {
    static void* const handle = dlopen(TENON_NCCL_STAND_IN, RTLD_NOW);
    return dlsym(handle, name);
  }
  static StandIn& state() { return *reinterpret_cast<StandIn* (*)()>(symbol("stand_in"))(); }
  static const nccl::Library& library() {
    static const NcclLibrary loaded = load_nccl(kStandIn);
    return loaded.table;
  }
  std::unique_ptr<OpenDevice> open() {
    DriverOptions how = fake.how();
    how.nccl = &library();
    return open_with(fake.table(), FakeDriver::card(), {}, how);
  }
  static Collectives& collectives(OpenDevice& device) { return dynamic_cast<Collectives&>(device); }

  struct Member {
    int rank = 0;
    OpenDevice& device;
    DeviceGroup& group;
    // Starts the calls, waits for them, and returns what |received| has become.
    HostArray run(const std::vector<GroupCall>& calls, const Buffer& received) {
      group.start(calls);
      while (!group.is_complete()) std::this_thread::yield();
      return device.download(received);
    }
  };
  // Each in a thread of its own, as the members of a mesh are.
  void with_group(int size, const std::function<void(Member)>& body) {
    std::vector<std::unique_ptr<OpenDevice>> devices;
    for (int rank = 0; rank < size; ++rank) devices.push_back(open());
    const std::string id = collectives(*devices[0]).make_group_id();
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        OpenDevice& device = *devices[static_cast<std::size_t>(rank)];
        const auto group = collectives(device).join(id, rank, size);
        body({rank, device, *group});
      });
  }
  static HostArray numbers(DType dtype, std::int64_t count, int from) {
    HostArray array = HostArray::empty(DType::i64, {count});
    const auto values = array.mutable_view<std::int64_t>();
    std::iota(values.begin(), values.end(), from);
    return array.cast(dtype);
  }
  static Error error_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorCode::ok, "");
  }

  FakeDriver fake;
};

TEST_F(Nccl, TheLibraryTellsItsVersion) { EXPECT_EQ(load_nccl(kStandIn).version, "2.27.3"); }

TEST_F(Nccl, ALibraryThatIsNotThereIsAnErrorWithAHint) {
  const std::string nowhere[] = {"libnccl-of-nobody.so.2"};
  const Error error = error_of([&] { load_nccl(nowhere); });
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_NE(error.hint().find("libnccl2"), std::string::npos);
}

TEST_F(Nccl, ALibraryWithoutItsFunctionsIsAnErrorThatNamesOne) {
  const std::string another[] = {"libm.so.6"};
  EXPECT_NE(std::string(error_of([&] { load_nccl(another); }).what()).find("ncclGetVersion"), std::string::npos);
}

TEST_F(Nccl, AVersionThatCannotBeGivenUpIsRefused) {
  for (const int version : {2708, 21307, 30000}) {
    state().version = version;
    EXPECT_EQ(error_of([] { load_nccl(kStandIn); }).code(), ErrorCode::unavailable) << version;
  }
  state().version = 2708;
  EXPECT_NE(std::string(error_of([] { load_nccl(kStandIn); }).what()).find("2.7.8"), std::string::npos);
}

TEST_F(Nccl, AllReduceKnowsEveryTypeAndReduction) {
  with_group(3, [](Member member) {
    for (const DType dtype :
         {DType::f32, DType::f64, DType::i8, DType::u8, DType::i32, DType::u32, DType::i64, DType::u64, DType::boolean})
      for (const ReduceKind kind :
           {ReduceKind::sum, ReduceKind::prod, ReduceKind::max, ReduceKind::min, ReduceKind::any, ReduceKind::all}) {
        if (!is_reducible(kind, dtype)) continue;
        const auto mine = member.device.upload(numbers(dtype, 5, member.rank));
        const auto sum = member.device.allocate(mine->type());
        const HostArray got = member.run({{Kind::all_reduce, 0, kind, mine.get(), sum.get()}}, *sum);
        for (int i = 0; i < 5; ++i) {
          const bool is_truth = dtype == DType::boolean;
          const double a = is_truth ? i != 0 : i, b = is_truth ? 1 : i + 1, c = is_truth ? 1 : i + 2;
          const bool is_most = kind == ReduceKind::max || kind == ReduceKind::any || is_truth;
          const double wanted = kind == ReduceKind::sum && !is_truth                 ? a + b + c
                                : kind == ReduceKind::prod                           ? a * b * c
                                : kind == ReduceKind::min || kind == ReduceKind::all ? std::min({a, b, c})
                                                                                     : (is_most ? std::max({a, b, c}) : -1);
          EXPECT_EQ(got.value(i), wanted) << name(dtype) << " " << name(kind) << " " << i;
        }
      }
  });
}

TEST_F(Nccl, ReduceScatterAndAllGatherAreInTheOrderOfRanks) {
  with_group(3, [](Member member) {
    const auto mine = member.device.upload(numbers(DType::f32, 6, 10 * member.rank));
    const auto part = member.device.allocate({DType::f32, {2}});
    const HostArray sum = member.run({{Kind::reduce_scatter, 0, ReduceKind::sum, mine.get(), part.get()}}, *part);
    const double first = 30 + 6 * member.rank;
    EXPECT_EQ(sum.to_doubles(), (std::vector<double>{first, first + 3}));
    const auto all = member.device.allocate({DType::f32, {6}});
    const HostArray got = member.run({{Kind::all_gather, 0, {}, part.get(), all.get()}}, *all);
    EXPECT_EQ(got.to_doubles(), (std::vector<double>{30, 33, 36, 39, 42, 45}));
  });
}

TEST_F(Nccl, ReduceAndBroadcastHaveARootAndSeveralCallsAreOneGroup) {
  with_group(3, [](Member member) {
    std::vector<std::unique_ptr<Buffer>> mine;
    std::vector<GroupCall> calls;
    const auto part = member.device.allocate({DType::i32, {2 + member.rank}});
    for (int root = 0; root < 3; ++root) {
      mine.push_back(member.device.upload(numbers(DType::i32, 2 + root, member.rank)));
      calls.push_back({Kind::reduce, root, ReduceKind::sum, mine.back().get(), root == member.rank ? part.get() : nullptr});
    }
    EXPECT_EQ(member.run(calls, *part).value(1 + member.rank), 3 + 3 * (1 + member.rank));
    const auto told = member.device.allocate({DType::i32, {3}});
    const Buffer* const from = member.rank == 1 ? mine[1].get() : nullptr;
    EXPECT_EQ(member.run({{Kind::broadcast, 1, {}, from, told.get()}}, *told).to_doubles(), (std::vector<double>{1, 2, 3}));
  });
}

TEST_F(Nccl, MessagesOfOneStartCrossAndBytesMoveWhateverTheirType) {
  for (const DType dtype : all_dtypes())
    with_group(2, [&](Member member) {
      const int other = 1 - member.rank;
      const auto mine = member.device.upload(numbers(dtype, 32, member.rank));
      const auto theirs = member.device.allocate(mine->type()), own = member.device.allocate(mine->type());
      const HostArray got = member.run({{Kind::send, other, {}, mine.get(), nullptr},
                                        {Kind::receive, other, {}, nullptr, theirs.get()},
                                        {Kind::send, member.rank, {}, mine.get(), nullptr},
                                        {Kind::receive, member.rank, {}, nullptr, own.get()}},
                                       *theirs);
      EXPECT_EQ(got.to_doubles(), numbers(dtype, 32, other).to_doubles()) << name(dtype);
      EXPECT_EQ(member.device.download(*own).to_doubles(), numbers(dtype, 32, member.rank).to_doubles());
    });
}

TEST_F(Nccl, AnExchangeFollowsTheWorkBeforeItAndHasAStreamOfItsOwn) {
  with_group(1, [this](Member member) {
    const auto mine = member.device.upload(numbers(DType::f32, 4, 0)), sum = member.device.allocate(mine->type());
    fake.ordered.clear();
    member.run({{Kind::all_reduce, 0, ReduceKind::sum, mine.get(), sum.get()}}, *sum);
    ASSERT_EQ(fake.ordered.size(), 1u);
    EXPECT_NE(fake.ordered[0].first, fake.ordered[0].second);
  });
}

TEST_F(Nccl, WhatNcclCannotReduceIsRefusedBeforeAnyCall) {
  with_group(1, [](Member member) {
    const auto floats = member.device.upload(numbers(DType::f32, 4, 0)), shorts = member.device.upload(numbers(DType::i16, 4, 0));
    const auto to = member.device.allocate(floats->type());
    for (const GroupCall& call : {GroupCall{Kind::all_reduce, 0, ReduceKind::max, floats.get(), to.get()},
                                  GroupCall{Kind::all_reduce, 0, ReduceKind::sum, shorts.get(), to.get()}})
      EXPECT_EQ(error_of([&] { member.group.start({&call, 1}); }).code(), ErrorCode::unimplemented);
    // The group was not left half begun.
    EXPECT_EQ(member.run({{Kind::all_reduce, 0, ReduceKind::sum, floats.get(), to.get()}}, *to).value(3), 3);
  });
}

TEST_F(Nccl, ABufferOfAnotherCardIsRefused) {
  const auto another = open();
  const auto theirs = another->upload(numbers(DType::f32, 4, 0));
  with_group(1, [&](Member member) {
    const auto to = member.device.allocate(theirs->type());
    const GroupCall call{Kind::all_reduce, 0, ReduceKind::sum, theirs.get(), to.get()};
    EXPECT_EQ(error_of([&] { member.group.start({&call, 1}); }).code(), ErrorCode::failed_precondition);
  });
}

TEST_F(Nccl, AnErrorOfACallIsToldWithItsCardAndText) {
  with_group(1, [](Member member) {
    const auto mine = member.device.upload(numbers(DType::f32, 4, 0)), sum = member.device.allocate(mine->type());
    const GroupCall call{Kind::all_reduce, 0, ReduceKind::sum, mine.get(), sum.get()};
    state().next_call = 2;
    const Error error = error_of([&] { member.group.start({&call, 1}); });
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_EQ(std::string(error.what()),
              "cuda:0: starting an exchange between cards failed: NCCL: made to fail: the stand-in says so");
    EXPECT_NE(error.hint().find("NCCL_DEBUG"), std::string::npos);
  });
}

TEST_F(Nccl, AnErrorThatComesLaterIsToldByTheNextQuestion) {
  with_group(1, [](Member member) {
    const auto mine = member.device.upload(numbers(DType::f32, 4, 0)), sum = member.device.allocate(mine->type());
    const GroupCall call{Kind::all_reduce, 0, ReduceKind::sum, mine.get(), sum.get()};
    member.group.start({&call, 1});
    state().next_state = 6;
    EXPECT_EQ(error_of([&] { member.group.is_complete(); }).code(), ErrorCode::unavailable);
  });
}

TEST_F(Nccl, AnExchangeWhosePeerDoesNotComeIsAbortedWithItsGroup) {
  const auto a = open(), b = open();
  const std::string id = collectives(*a).make_group_id();
  std::unique_ptr<DeviceGroup> second;
  std::jthread other([&] { second = collectives(*b).join(id, 1, 2); });
  auto first = collectives(*a).join(id, 0, 2);
  other.join();
  const auto mine = a->upload(numbers(DType::f32, 4, 0)), sum = a->allocate(mine->type());
  const GroupCall call{Kind::all_reduce, 0, ReduceKind::sum, mine.get(), sum.get()};
  first->start({&call, 1});
  EXPECT_FALSE(first->is_complete());
  first.reset();
  EXPECT_EQ(state().aborted, 1);
  second.reset();
  EXPECT_EQ(state().communicators, 0);
}

TEST_F(Nccl, JoiningEndsWhenItsRunIsStopped) {
  const auto device = open();
  const std::string id = collectives(*device).make_group_id();
  std::stop_source stop;
  const StopScope scope(stop.get_token());
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(error_of([&] { collectives(*device).join(id, 0, 2); }).code(), ErrorCode::cancelled);
  EXPECT_EQ(state().communicators, 0) << "it is aborted, not left behind";
}

TEST_F(Nccl, GroupsGiveBackTheirStreamsAndEvents) {
  auto device = open();
  const int streams = fake.streams, events = fake.events;
  collectives(*device).join(collectives(*device).make_group_id(), 0, 1);
  EXPECT_EQ(fake.streams, streams);
  EXPECT_EQ(fake.events, events);
  device->close();
}

TEST_F(Nccl, AnIdOfAnotherLengthIsRefused) {
  const auto device = open();
  EXPECT_EQ(error_of([&] { collectives(*device).join("short", 0, 1); }).code(), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace tenon::cuda
