// DeviceManager::close_all() where a device refuses.
#include <gtest/gtest.h>

#include "backends/cpu/backend.h"
#include "manager/evaluate.h"
#include "manager/simulated_machine.h"

namespace tenon::test {
namespace {

// The CPU, but what is on it cannot be read.
class Unreadable final : public OpenDevice {
 public:
  explicit Unreadable(std::unique_ptr<OpenDevice> inner) : inner_(std::move(inner)) {}
  const DeviceInfo& info() const noexcept override { return inner_->info(); }
  std::unique_ptr<Executable> compile(const Graph& graph) override { return inner_->compile(graph); }
  std::unique_ptr<Buffer> allocate(const TensorType& type) override { return inner_->allocate(type); }
  std::unique_ptr<Buffer> upload(const HostArray& array) override { return inner_->upload(array); }
  HostArray download(const Buffer&) override { throw Error(ErrorCode::unavailable, "no answer"); }

 private:
  std::unique_ptr<OpenDevice> inner_;
};

class UnreadableBackend final : public Backend {
 public:
  std::string_view name() const noexcept override { return "unreadable"; }
  std::vector<DeviceInfo> devices() override {
    DeviceInfo info;
    info.id = "a:0";  // closed before every other device
    info.kind = DeviceKind::other;
    info.backends = {"unreadable"};
    return {info};
  }
  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) override {
    return std::make_unique<Unreadable>(cpu_->open(device, options));
  }

 private:
  std::unique_ptr<Backend> cpu_ = cpu::make_backend();
};

TEST(CloseAll, ClosesTheOthersAndThenThrows) {
  SimulatedMachine machine({card()});
  machine.manager().add_backend(std::make_unique<UnreadableBackend>());
  EXPECT_EQ(machine.add(1, 2), 3);
  Graph graph;
  graph.set_outputs(apply(graph, "exp", {graph.input("x", DType::f32, {})}));
  const std::shared_ptr<Storage> x = Storage::from_host(HostArray::full(DType::f32, {}, 1));
  const EvaluateResult kept = evaluate(machine.manager(), graph, std::span(&x, 1), {.device = "a:0"});
  EXPECT_EQ(code_of([&] { machine.manager().close_all(); }), ErrorCode::unavailable);
  EXPECT_EQ(machine.status("a:0").state, DeviceState::idle) << "its tensor is not lost";
  EXPECT_EQ(machine.status("sim:0").state, DeviceState::closed);
}

}  // namespace
}  // namespace tenon::test
