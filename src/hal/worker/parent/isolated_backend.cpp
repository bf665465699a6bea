#include <mutex>

#include "base/log.h"
#include "hal/collectives.h"
#include "hal/memory_exchange.h"
#include "hal/worker/hosted.h"
#include "hal/worker/parent/device.h"
#include "hal/worker/worker.h"
#include "tenon/error.h"

namespace tenon {
namespace {

class IsolatedBackend final : public Backend, public ExchangingBackend, public CollectiveBackend {
 public:
  IsolatedBackend(std::unique_ptr<Backend> backend, bool needs_worker)
      : backend_(std::move(backend)),
        needs_worker_(needs_worker),
        spare_(dynamic_cast<Preloadable*>(backend_.get()) ? std::make_shared<SpareWorker>(std::string(backend_->name()))
                                                          : nullptr) {}

  std::string_view name() const noexcept override { return backend_->name(); }
  std::vector<DeviceInfo> devices() override { return backend_->devices(); }
  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) override {
    if (!needs_worker_ && (is_used_here(device) || !has_worker_program())) return backend_->open(device, options);
    std::shared_ptr<WorkerConnection> connection = spare_ ? spare_->take() : nullptr;
    if (connection)
      connection->name_device(device.id);
    else
      connection = std::make_shared<WorkerConnection>(device.id, WorkerOptions());
    return open_over(std::move(connection), backend_->name(), device, options, spare_);
  }
  void check(const DeviceInfo& device, const Graph& graph) const override { backend_->check(device, graph); }
  void recover(const DeviceInfo& device) override { backend_->recover(device); }
  Latency latency(const DeviceInfo& device) const override { return backend_->latency(device); }

  // This process keeps such a card until it ends, whatever Tenon does. In it, memory can be exchanged without a copy.
  bool is_used_here(const DeviceInfo& device) const override {
    const auto* const able = dynamic_cast<const ExchangingBackend*>(backend_.get());
    return able && able->is_used_here(device);
  }
  bool is_at(const DeviceInfo& device, const dlpack::Device& place) const override {
    const auto* const able = dynamic_cast<const ExchangingBackend*>(backend_.get());
    return able && !needs_worker_ && able->is_at(device, place);
  }

  // Loaded into the workers for use, and into this process to be asked about.
  std::string_view collective_library() const noexcept override {
    const auto* const able = dynamic_cast<const CollectiveBackend*>(backend_.get());
    return able ? able->collective_library() : "";
  }
  std::string collective_version() const override {
    const auto* const able = dynamic_cast<const CollectiveBackend*>(backend_.get());
    return able ? able->collective_version() : "";
  }

 private:
  bool has_worker_program() const {
    try {
      worker_program();
      return true;
    } catch (const Error& error) {
      static std::once_flag once;
      std::call_once(once, [&] {
        logging::warn("{} runs in this process, where it may keep its device after closing, or hang: {}", backend_->name(),
                      error.what());
      });
      return false;
    }
  }

  std::unique_ptr<Backend> backend_;
  bool needs_worker_;
  std::shared_ptr<SpareWorker> spare_;
};

}  // namespace

std::unique_ptr<Backend> isolate(std::unique_ptr<Backend> backend) {
  return std::make_unique<IsolatedBackend>(std::move(backend), true);
}

std::unique_ptr<Backend> isolate_if_possible(std::unique_ptr<Backend> backend) {
  return std::make_unique<IsolatedBackend>(std::move(backend), false);
}

}  // namespace tenon
