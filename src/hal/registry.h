// BackendRegistry: the backends this process has, and their devices.
//
// Lifetime: backends live as long as the registry, or whoever holds one. Thread safety: add() comes before everything else; other
// calls may run side by side.
#pragma once

#include <memory>
#include <vector>

#include "tenon/backend.h"

namespace tenon {

class BackendRegistry {
 public:
  // Throws already_exists for a second backend of one name.
  void add(std::unique_ptr<Backend> backend);
  // nullptr if there is none of that name.
  std::shared_ptr<Backend> find(std::string_view name) const noexcept;
  std::span<const std::shared_ptr<Backend>> backends() const noexcept { return backends_; }
  // Every device of every backend; a backend that fails to answer hides no other.
  std::vector<DeviceInfo> devices() const;

 private:
  std::vector<std::shared_ptr<Backend>> backends_;
};

}  // namespace tenon
