#include "tenon/tensor/device_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <string>
#include <vector>

#include "tenon/device/simulated.h"
#include "tenon/error.h"
#include "tensor/node.h"

namespace tenon::device_library {

struct Device::State {
  DeviceInfo info;
  Arch arch{};
  int slot = 0;
  std::atomic<bool> is_initialized = false;
};

namespace {

struct Card {
  DeviceInfo info;
  int slot = 0;
};

int slot_of(const DeviceInfo& device, int simulated_before) {
  if (is_simulated(device)) return simulated_before;
  const std::size_t colon = device.id.find(':');
  return colon == std::string::npos ? 0 : std::atoi(device.id.c_str() + colon + 1);
}

// Real cards first, simulated ones numbered on their own.
std::vector<Card> cards() {
  std::vector<Card> real, simulated;
  for (DeviceInfo& device : current_manager().devices()) {
    if (device.kind != DeviceKind::tenstorrent) continue;
    const int slot = slot_of(device, static_cast<int>(simulated.size()));
    std::vector<Card>& list = is_simulated(device) ? simulated : real;
    list.push_back({std::move(device), slot});
  }
  real.insert(real.end(), simulated.begin(), simulated.end());
  return real;
}

std::optional<Arch> arch_of(const DeviceInfo& device) {
  for (const Arch arch : {Arch::grayskull, Arch::wormhole, Arch::blackhole})
    if (device.architecture == name(arch)) return arch;
  return std::nullopt;
}

}  // namespace

struct DeviceAccess {
  static Device make(Card card, Arch arch) {
    auto state = std::make_shared<Device::State>();
    state->info = std::move(card.info);
    state->arch = arch;
    state->slot = card.slot;
    return Device(std::move(state));
  }
  static std::atomic<bool>& is_initialized(const Device& device) noexcept { return device.state_->is_initialized; }
};

std::string_view name(Arch arch) noexcept {
  constexpr std::string_view names[] = {"grayskull", "wormhole", "blackhole"};
  return names[static_cast<int>(arch)];
}

const DeviceInfo& Device::info() const noexcept { return state_->info; }
Arch Device::arch() const noexcept { return state_->arch; }
int Device::slot() const noexcept { return state_->slot; }
bool Device::is_initialized() const noexcept { return state_->is_initialized; }

Device::operator std::string_view() const {
  if (!is_initialized())
    throw Error(ErrorCode::failed_precondition, fmt::format("{} is not initialised, or closed", state_->info.id),
                "call initialize_device first");
  return state_->info.id;
}

Device create_device(Arch arch, int slot) {
  std::vector<std::string> there;
  for (Card& card : cards()) {
    if (card.slot == slot && arch_of(card.info) == arch) return DeviceAccess::make(std::move(card), arch);
    there.push_back(fmt::format("{} in slot {} ({})", card.info.architecture, card.slot, card.info.id));
  }
  throw Error(ErrorCode::not_found, fmt::format("no {} card in slot {}", name(arch), slot),
              there.empty()
                  ? fmt::format("no Tenstorrent card was found; check its driver, or add a simulated card: --sim {}", name(arch))
                  : fmt::format("available cards: {}", fmt::join(there, ", ")));
}

void initialize_device(const Device& device) {
  if (device.is_initialized()) return;
  current_manager().lease({.device = device.info().id});
  DeviceAccess::is_initialized(device) = true;
}

void close_device(const Device& device) {
  if (!DeviceAccess::is_initialized(device).exchange(false)) return;
  current_manager().close(device.info().id);
}

void set_default_device(const Device& device) { current_manager().set_default_device(device.info().id); }

std::optional<Device> get_default_device() {
  const DeviceInfo chosen = current_manager().default_device();
  for (Card& card : cards()) {
    if (card.info.id != chosen.id) continue;
    if (const std::optional<Arch> arch = arch_of(card.info)) {
      Device device = DeviceAccess::make(std::move(card), *arch);
      DeviceAccess::is_initialized(device) = true;
      return device;
    }
  }
  return std::nullopt;
}

Host get_host() { return {}; }

}  // namespace tenon::device_library
