// UseDevice: the device on which this thread's tensors without a device request are evaluated, for a scope.
//
//   {
//     UseDevice here("cpu");
//     print(x + 1);                // on the CPU
//     print((x + 1).on("gpu"));    // a request of the tensor's own goes first
//   }
//
// Scopes can be nested. Thread safety: the scope belongs to the thread that made it.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

class UseDevice {
 public:
  explicit UseDevice(std::string_view device);
  ~UseDevice();
  UseDevice(const UseDevice&) = delete;
  UseDevice& operator=(const UseDevice&) = delete;

 private:
  std::string device_;
  const std::string* before_;
};

}  // namespace tenon
