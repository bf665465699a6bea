// The calls of the Tenstorrent device library, for programs written with it: create, initialise, close, default device, host.
//
// They are names for what Tenon does anyway, with its safety: a Device is a handle, not the device. Dropping it, in any order
// with tensors, closes and breaks nothing; tensors on a device that closes move to host memory. docs/device-library.md shows each
// call next to its original. Devices are those of this thread's manager (tensor.h); a simulated card answers where there is no
// real one in the slot.
//
//   using namespace tenon::device_library;
//   Device device = create_device(Arch::grayskull, 0);
//   initialize_device(device);
//   Tensor y = gelu(x.to(device));
//   Tensor result = y.to(get_host());
//   close_device(device);                   // y and result stay valid
//
// Thread safety: all calls may run side by side, on copies of one Device too.
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
  // The id, for Tensor::to and Tensor::on. Throws failed_precondition when the device is not initialised, or closed.
  operator std::string_view() const;

 private:
  friend struct DeviceAccess;  // src/tensor/
  struct State;                // shared by the copies
  explicit Device(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

// The memory of this machine, as something to move tensors to.
class Host {
 public:
  operator std::string_view() const noexcept { return "host"; }
};

// The card in |slot|, which opens nothing. Throws not_found when there is none, or one of another architecture.
Device create_device(Arch arch, int slot);
// Waits for the device's turn and opens it, so that what is wrong with it is known now. Between uses the keep-open policy decides
// whether it stays open; whoever uses a tensor on it takes a lease. Nothing for one that is initialised. Throws unavailable.
void initialize_device(const Device& device);
// Closes it when nothing runs on it; its tensors move to host memory. Nothing for one that is not initialised.
void close_device(const Device& device);

// Where tensors without a wish are evaluated.
void set_default_device(const Device& device);
// None when that is no Tenstorrent device.
std::optional<Device> get_default_device();

Host get_host();

}  // namespace tenon::device_library
