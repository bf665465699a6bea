// BackendRegistry: the backends of this process and their devices.
//
// Lifetime: backends live as long as the registry or any other owner. Thread safety: add() must come before all other calls,
// which may run concurrently.
#pragma once

#include <memory>
#include <vector>

#include "tenon/backend.h"

namespace tenon {

class BackendRegistry {
 public:
  // Throws already_exists if a backend with this name exists.
  void add(std::unique_ptr<Backend> backend);
  // nullptr if no backend has this name.
  std::shared_ptr<Backend> find(std::string_view name) const noexcept;
  std::span<const std::shared_ptr<Backend>> backends() const noexcept { return backends_; }
  // Every device of every backend; a failing backend does not affect the others.
  std::vector<DeviceInfo> devices() const;

 private:
  std::vector<std::shared_ptr<Backend>> backends_;
};

}  // namespace tenon
