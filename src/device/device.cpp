#include "tenon/device.h"

namespace tenon {

std::string_view name(DeviceKind kind) noexcept {
  constexpr std::string_view names[] = {"cpu", "gpu", "tpu", "tenstorrent", "other"};
  return names[static_cast<int>(kind)];
}

}  // namespace tenon
