#include "hal/registry.h"

#include "tenon/error.h"

namespace tenon {

void BackendRegistry::add(std::unique_ptr<Backend> backend) {
  if (find(backend->name()))
    throw Error(ErrorCode::already_exists, "a backend named " + std::string(backend->name()) + " is registered already");
  backends_.push_back(std::move(backend));
}

std::shared_ptr<Backend> BackendRegistry::find(std::string_view name) const noexcept {
  for (const auto& backend : backends_)
    if (backend->name() == name) return backend;
  return nullptr;
}

std::vector<DeviceInfo> BackendRegistry::devices() const {
  std::vector<DeviceInfo> all;
  for (const auto& backend : backends_) {
    try {
      for (DeviceInfo& device : backend->devices()) all.push_back(std::move(device));
    } catch (const std::exception& e) {
      DeviceInfo broken;
      broken.id = std::string(backend->name()) + ":?";
      broken.kind = DeviceKind::other;
      broken.available = false;
      broken.reason = e.what();
      all.push_back(std::move(broken));
    }
  }
  return all;
}

}  // namespace tenon
