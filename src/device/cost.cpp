#include "device/cost.h"

namespace tenon {
namespace {

struct Price {
  DeviceKind kind;
  std::string_view part;  // of the name or the architecture
  double dollars;
};

// Public on-demand prices of one card per hour, rounded; the first matching row applies.
constexpr Price kPrices[] = {
    {DeviceKind::gpu, "B200", 5.5},  {DeviceKind::gpu, "H200", 3.5}, {DeviceKind::gpu, "H100", 3.0},
    {DeviceKind::gpu, "A100", 1.8},  {DeviceKind::gpu, "L40", 1.2},  {DeviceKind::gpu, "L4", 0.7},
    {DeviceKind::gpu, "T4", 0.35},   {DeviceKind::gpu, "V100", 1.2}, {DeviceKind::gpu, "MI300X", 3.0},
    {DeviceKind::gpu, "MI250", 1.6}, {DeviceKind::tpu, "v6e", 2.7},  {DeviceKind::tpu, "v5e", 1.2},
    {DeviceKind::tpu, "v5p", 4.2},   {DeviceKind::tpu, "v4", 3.22},  {DeviceKind::gpu, "", 0.5},
    {DeviceKind::tpu, "", 2.0},
};

}  // namespace

void estimate_cost(DeviceInfo& device) {
  if (device.cost_per_hour) return;
  if (device.kind == DeviceKind::cpu) {
    device.cost_per_hour = 0;
    device.cost_is_estimate = true;
    return;
  }
  for (const Price& price : kPrices) {
    if (price.kind != device.kind) continue;
    if (device.name.find(price.part) == std::string::npos && device.architecture.find(price.part) == std::string::npos) continue;
    device.cost_per_hour = price.dollars;
    device.cost_is_estimate = true;
    return;
  }
}

void apply_prices(DeviceInfo& device, const std::map<std::string, double>& prices) {
  std::vector<std::string> names{device.id};
  names.insert(names.end(), device.aliases.begin(), device.aliases.end());
  names.push_back(device.name);
  names.emplace_back(name(device.kind));
  for (const std::string& each : names) {
    const auto found = prices.find(each);
    if (found == prices.end()) continue;
    device.cost_per_hour = found->second;
    device.cost_is_estimate = false;
    return;
  }
}

}  // namespace tenon
