// Groups of devices that are in processes of their own: what the messages to a worker carry.
#include <gtest/gtest.h>

#include <cstdlib>

#include "hal/worker/worker.h"
#include "mesh/grouped_backend.h"

namespace tenon {
namespace {

using Kind = GroupCall::Kind;

class WorkerGroups : public testing::Test {
 protected:
  static std::unique_ptr<OpenDevice> open() {
    setenv("TENON_WORKER", TENON_GROUPED_WORKER, 1);
    auto device = open_in_worker("grp", GroupedBackend(1, nullptr).devices()[0], {});
    unsetenv("TENON_WORKER");
    return device;
  }
  static Collectives& collectives(OpenDevice& device) { return dynamic_cast<Collectives&>(device); }
  static ErrorCode code_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::ok;
  }
};

TEST_F(WorkerGroups, CallsReachTheWorkerWithTheirBuffers) {
  const auto device = open();
  const auto group = collectives(*device).join(collectives(*device).make_group_id(), 0, 1);
  const HostArray values = HostArray::from<float>({3}, {1, 2, 3}), large = HostArray::full(DType::f32, {100'000}, 7);
  const auto x = device->upload(values), y = device->upload(large);
  const auto a = device->allocate(x->type()), b = device->allocate(y->type()), c = device->allocate(x->type());
  const GroupCall sums[] = {{Kind::all_reduce, 0, ReduceKind::sum, x.get(), a.get()},
                            {Kind::reduce, 0, ReduceKind::sum, y.get(), b.get()}};
  group->start(sums);
  EXPECT_TRUE(group->is_complete());
  EXPECT_EQ(device->download(*a).to_doubles(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(device->download(*b).value(99'999), 7);
  const GroupCall messages[] = {{Kind::send, 0, {}, x.get(), nullptr}, {Kind::receive, 0, {}, nullptr, c.get()}};
  group->start(messages);
  EXPECT_TRUE(group->is_complete());
  EXPECT_EQ(device->download(*c).to_doubles(), (std::vector<double>{1, 2, 3}));
}

TEST_F(WorkerGroups, EndWithTheirDeviceAndFailAfterIt) {
  const auto device = open();
  const auto group = collectives(*device).join(collectives(*device).make_group_id(), 0, 1);
  device->close();
  EXPECT_EQ(code_of([&] { group->is_complete(); }), ErrorCode::failed_precondition);
}

TEST_F(WorkerGroups, AreRefusedByADeviceThatHasNone) {
  const auto cpus = open_in_worker("cpu", cpu::make_backend()->devices()[0], {});
  EXPECT_EQ(code_of([&] { collectives(*cpus).make_group_id(); }), ErrorCode::unimplemented);
}

TEST_F(WorkerGroups, AnIsolatedBackendHasTheLibraryOfItsOwn) {
  const auto grouped = isolate(std::make_unique<GroupedBackend>(1, std::make_shared<Grouping>()));
  EXPECT_EQ(dynamic_cast<CollectiveBackend&>(*grouped).collective_library(), "GRP");
  EXPECT_EQ(dynamic_cast<CollectiveBackend&>(*grouped).collective_version(), "1.0");
  const auto cpus = isolate(cpu::make_backend());
  EXPECT_EQ(dynamic_cast<CollectiveBackend&>(*cpus).collective_library(), "");
}

}  // namespace
}  // namespace tenon
