// NCCL itself on a real card, in a group of one: skipped where there is no card or no libnccl.so.2.
//
//   LD_LIBRARY_PATH=FOLDER_OF_LIBNCCL build/release/test_cuda --gtest_filter='*NcclOnACard*'
#include <gtest/gtest.h>

#include <cstring>

#include <numeric>

#include "backends/cuda/backend.h"
#include "backends/cuda/libraries.h"
#include "eventually.h"
#include "hal/collectives.h"
#include "hal/worker/worker.h"
#include "tenon/error.h"
#include "tenon/expression.h"

namespace tenon::cuda {
namespace {

using namespace std::chrono_literals;
using Kind = GroupCall::Kind;

// In this process, and in a worker, as Tenon opens cards by default.
class NcclOnACard : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const std::vector<DeviceInfo> cards = make_backend()->devices();
    if (cards.empty() || !cards[0].available) GTEST_SKIP() << "there is no usable NVIDIA card here";
    try {
      RecordProperty("nccl", nccl_library().version);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    device = GetParam() ? open_in_worker("cuda", cards[0], {}) : open_with(driver(), cards[0]);
    group = collectives().join(collectives().make_group_id(), 0, 1);
  }
  void TearDown() override {
    group.reset();
    if (device) device->close();
  }
  Collectives& collectives() { return dynamic_cast<Collectives&>(*device); }
  static HostArray numbers(DType dtype, std::int64_t count) {
    HostArray array = HostArray::empty(DType::f32, {count});
    const auto values = array.mutable_view<float>();
    std::iota(values.begin(), values.end(), -3.0F);
    return array.cast(dtype);
  }
  void run(const std::vector<GroupCall>& calls) {
    group->start(calls);
    ASSERT_TRUE(test::eventually(20s, [&] { return group->is_complete(); }));
  }
  void expect_same(const Buffer& got, const Buffer& wanted, const std::string& what) {
    const HostArray a = device->download(got), b = device->download(wanted);
    ASSERT_EQ(a.bytes(), b.bytes());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0) << what;
  }

  std::unique_ptr<OpenDevice> device;
  std::unique_ptr<DeviceGroup> group;
};

TEST_P(NcclOnACard, ReducesEveryTypeInEveryWay) {
  for (const std::int64_t count : {7, 100'000})
    for (const DType dtype : all_dtypes())
      for (const ReduceKind kind :
           {ReduceKind::sum, ReduceKind::prod, ReduceKind::max, ReduceKind::min, ReduceKind::any, ReduceKind::all}) {
        if (!is_reducible(kind, dtype)) continue;
        const auto mine = device->upload(numbers(dtype, count));
        const auto a = device->allocate(mine->type()), b = device->allocate(mine->type()), c = device->allocate(mine->type());
        const std::string what = std::string(name(dtype)) + " " + std::string(name(kind));
        run({{Kind::all_reduce, 0, kind, mine.get(), a.get()}});
        expect_same(*a, *mine, what);
        run({{Kind::reduce_scatter, 0, kind, mine.get(), b.get()}, {Kind::reduce, 0, kind, mine.get(), c.get()}});
        expect_same(*b, *mine, what);
        expect_same(*c, *mine, what);
      }
}

TEST_P(NcclOnACard, MovesEveryType) {
  for (const std::int64_t count : {32, 1'000'000})
    for (const DType dtype : all_dtypes()) {
      const auto mine = device->upload(numbers(dtype, count));
      const auto a = device->allocate(mine->type()), b = device->allocate(mine->type()), c = device->allocate(mine->type());
      run({{Kind::all_gather, 0, {}, mine.get(), a.get()}, {Kind::broadcast, 0, {}, mine.get(), b.get()}});
      run({{Kind::send, 0, {}, mine.get(), nullptr}, {Kind::receive, 0, {}, nullptr, c.get()}});
      for (const auto* got : {&a, &b, &c}) expect_same(**got, *mine, std::string(name(dtype)));
    }
}

TEST_P(NcclOnACard, FollowsTheProgramsBeforeAndComesBeforeThoseAfter) {
  const Shape shape{1 << 22};
  const auto program = device->compile(parse_expression("sin(a) + 1", {{"a", DType::f32, shape}}));
  auto x = device->upload(HostArray::full(DType::f32, shape, 0.5));
  const auto wanted = device->allocate(x->type()), got = device->allocate(x->type()), sum = device->allocate(x->type());
  program->run({x.get()}, {wanted.get()});
  for (int i = 0; i < 20; ++i) {
    program->run({x.get()}, {got.get()});
    run({{Kind::all_reduce, 0, ReduceKind::sum, got.get(), sum.get()}});
    expect_same(*sum, *wanted, "round " + std::to_string(i));
  }
}

TEST_P(NcclOnACard, JoinsAgainAfterItsGroupEnded) {
  for (int i = 0; i < 3; ++i) {
    group.reset();
    group = collectives().join(collectives().make_group_id(), 0, 1);
    const auto mine = device->upload(numbers(DType::f32, 1000)), sum = device->allocate(mine->type());
    run({{Kind::all_reduce, 0, ReduceKind::sum, mine.get(), sum.get()}});
    expect_same(*sum, *mine, "all-reduce");
  }
}

INSTANTIATE_TEST_SUITE_P(Card, NcclOnACard, testing::Bool(),
                         [](const auto& of) { return std::string(of.param ? "InAWorker" : "InThisProcess"); });

}  // namespace
}  // namespace tenon::cuda
