#include "manager/exchange.h"

#include "hal/memory_exchange.h"
#include "manager/manager_state.h"

namespace tenon {
namespace {

bool is_at(const DeviceOwner& owner, const dlpack::Device& place) {
  const auto* const able = dynamic_cast<const ExchangingBackend*>(owner.backend().get());
  return able && able->is_at(owner.device(), place);
}

// Among the devices that were used before, which are known at once; else among all, which takes a look at the machine.
std::shared_ptr<DeviceOwner> owner_at(ManagerState& state, const dlpack::Device& place) {
  for (const std::shared_ptr<DeviceOwner>& owner : state.owners.all())
    if (is_at(*owner, place)) return owner;
  for (const DeviceInfo& device : state.routing.offered()) {
    if (!device.available || device.kind != DeviceKind::gpu) continue;
    const std::shared_ptr<DeviceOwner> owner = state.routing.owner_for(device.id);
    if (is_at(*owner, place)) return owner;
  }
  return nullptr;
}

}  // namespace

bool can_borrow(DeviceManager& manager, const dlpack::Device& place) { return owner_at(state_of(manager), place) != nullptr; }

std::shared_ptr<Storage> borrow(DeviceManager& manager, const dlpack::Device& place, const TensorType& type, void* data,
                                std::shared_ptr<const void> owner) {
  ManagerState& state = state_of(manager);
  const std::shared_ptr<DeviceOwner> device = owner_at(state, place);
  if (!device) return nullptr;
  const Lease lease = state.acquire(*device, {});
  DeviceOwner::Operation operation = device->begin(DeviceOwner::grant_of(lease));
  auto* const able = dynamic_cast<MemoryExchange*>(&operation.device());
  if (!able) return nullptr;  // it was opened in a worker before
  std::unique_ptr<Buffer> buffer = able->adopt(type, data, std::move(owner), kDefaultStream);
  return buffer ? Storage::on_device(operation.residency(), std::move(buffer)) : nullptr;
}

}  // namespace tenon
