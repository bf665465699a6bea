// The calls of the Tenstorrent device library, for porting programs: create, initialise, close, default device, host.
//
// The calls are thin wrappers: a Device is a handle, not the device. Destroying it, in any order with tensors, closes nothing and
// is safe; tensors on a device that closes move to host memory. docs/device-library.md shows each call next to its original.
// Devices belong to this thread's manager (tensor.h); a simulated card is used if the slot has no
// real one.
//
//   using namespace tenon::device_library;
//   Device device = create_device(Arch::grayskull, 0);
//   initialize_device(device);
//   Tensor y = gelu(x.to(device));
//   Tensor result = y.to(get_host());
//   close_device(device);                   // y and result stay valid
//
// Thread safety: all calls may run concurrently, also on copies of one Device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "tenon/device.h"

namespace tenon::device_library {

enum class Arch : std::uint8_t { grayskull, wormhole, blackhole };
std::string_view name(Arch arch) noexcept;

class Device {
 public:
  const DeviceInfo& info() const noexcept;
  Arch arch() const noexcept;
  int slot() const noexcept;
  bool is_initialized() const noexcept;
  // The id, for Tensor::to and Tensor::on. Throws failed_precondition if the device is not initialised or closed.
  operator std::string_view() const;

 private:
  friend struct DeviceAccess;  // src/tensor/
  struct State;                // shared by the copies
  explicit Device(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// The host memory as a destination for tensors.
class Host {
 public:
  operator std::string_view() const noexcept { return "host"; }
};

// The card in |slot|; opens nothing. Throws not_found if the slot is empty or has a card of another architecture.
Device create_device(Arch arch, int slot);
// Waits in the queue for the device and opens it, so that errors appear now. Between uses the keep-open policy decides whether it
// stays open; every use of a tensor on it takes a lease. Does nothing if it is already initialised. Throws unavailable.
void initialize_device(const Device& device);
// Closes it when no program runs on it; its tensors move to host memory. Does nothing if it is not initialised.
void close_device(const Device& device);

// The device on which tensors without a device request are evaluated.
void set_default_device(const Device& device);
// nullopt if the default is not a Tenstorrent device.
std::optional<Device> get_default_device();

Host get_host();

}  // namespace tenon::device_library
