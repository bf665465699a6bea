#include "lease/device_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tenon/error.h"

namespace tenon {

std::vector<std::pair<std::string, std::string>> visibility_variables(const DeviceInfo& device) {
  const std::size_t colon = device.id.rfind(':');
  if (colon == std::string::npos || colon + 1 == device.id.size()) return {};
  const std::string index = device.id.substr(colon + 1);
  if (!std::all_of(index.begin(), index.end(), [](char c) { return c >= '0' && c <= '9'; })) return {};
  switch (device.kind) {
    case DeviceKind::gpu:
      // Runtimes of other vendors do not read it.
      if (device.vendor != "NVIDIA") return {};
      return {{"CUDA_VISIBLE_DEVICES", index}};
    case DeviceKind::tenstorrent: return {{"TT_VISIBLE_DEVICES", index}};
    case DeviceKind::tpu: return {{"TPU_VISIBLE_CHIPS", index}};
    case DeviceKind::cpu:
    case DeviceKind::other: break;
  }
  return {};
}

std::string LeaseName::text() const { return fmt::format("{}@{}", device, epoch); }

std::optional<LeaseName> LeaseName::parse(std::string_view text) {
  const std::size_t at = text.rfind('@');
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  LeaseName name{.device = std::string(text.substr(0, at))};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + at + 1, end, name.epoch);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return name;
}

bool is_leased_already(const Turnstile& turnstile, std::string_view lease_variable, TicketKind wanted) {
  for (std::size_t begin = 0; begin < lease_variable.size();) {
    const std::size_t end = std::min(lease_variable.find(',', begin), lease_variable.size());
    const auto outer = LeaseName::parse(lease_variable.substr(begin, end - begin));
    begin = end + 1;
    if (!outer || outer->device != turnstile.device()) continue;
    for (const Turnstile::Position& place : turnstile.queue().places) {
      if (place.ticket != outer->epoch || !place.is_holding) continue;
      if (place.kind == TicketKind::shared && wanted == TicketKind::exclusive)
        throw Error(ErrorCode::failed_precondition, fmt::format("this command already holds {} shared", outer->device),
                    "use the outer lease without --shared, or run this command outside it");
      return true;
    }
  }
  return false;
}

}  // namespace tenon
