// Client: the client of a PJRT plugin; C++ objects own the handles that it returns.
//
// Lifetime: handles keep their client alive, and the client is destroyed after the last of them. Thread safety: a client may be
// used by several threads at once; a BufferHandle by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backends/pjrt/plugin.h"
#include "tenon/array.h"

namespace tenon::pjrt {

class Client;

// A tensor on the device.
class BufferHandle {
 public:
  BufferHandle() = default;
  BufferHandle(std::shared_ptr<const Client> client, RawBuffer* raw) : client_(std::move(client)), raw_(raw) {}
  BufferHandle(BufferHandle&& other) noexcept : client_(std::move(other.client_)), raw_(std::exchange(other.raw_, nullptr)) {}
  BufferHandle& operator=(BufferHandle&& other) noexcept {
    std::swap(client_, other.client_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~BufferHandle();

  RawBuffer* get() const noexcept { return raw_; }
  explicit operator bool() const noexcept { return raw_ != nullptr; }

 private:
  std::shared_ptr<const Client> client_;
  RawBuffer* raw_ = nullptr;
};

// A compiled program.
class ExecutableHandle {
 public:
  ExecutableHandle(std::shared_ptr<const Client> client, RawLoadedExecutable* raw) : client_(std::move(client)), raw_(raw) {}
  ExecutableHandle(const ExecutableHandle&) = delete;
  ExecutableHandle& operator=(const ExecutableHandle&) = delete;
  ~ExecutableHandle();

  RawLoadedExecutable* get() const noexcept { return raw_; }
  const Client& client() const noexcept { return *client_; }
  // Runs the program and waits for it. |outputs| gets one handle for each result.
  void run(std::span<RawBuffer* const> inputs, std::span<BufferHandle> outputs) const;

 private:
  std::shared_ptr<const Client> client_;
  RawLoadedExecutable* raw_;
};

using OptionValue = std::variant<std::string, std::int64_t, bool, float>;

class Client : public std::enable_shared_from_this<Client> {
 public:
  struct Device {
    RawDevice* raw = nullptr;
    int id = 0;        // the device to which a compilation is pinned
    std::string kind;  // the vendor's name of the model
    std::optional<std::uint64_t> memory_bytes;
  };

  // Throws the plugin's errors, and unavailable if the client has no device.
  static std::shared_ptr<Client> create(const Plugin& plugin, std::span<const std::pair<std::string, OptionValue>> options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Plugin& plugin() const noexcept { return plugin_; }
  const std::string& platform() const noexcept { return platform_; }
  const std::vector<Device>& devices() const noexcept { return devices_; }

  // |code| is StableHLO text; compiled for |device| only.
  std::unique_ptr<ExecutableHandle> compile(std::string code, const Device& device) const;
  // Returns when the bytes may change again.
  BufferHandle upload(const void* bytes, ElementType type, const Shape& shape, const Device& device) const;
  // Row-major. |bytes| is the size of the tensor in host memory.
  void download(RawBuffer* buffer, const Shape& shape, void* to, std::size_t bytes) const;

 private:
  Client(const Plugin& plugin, RawClient* raw) : plugin_(plugin), raw_(raw) {}
  void read_devices();

  const Plugin& plugin_;
  RawClient* raw_;
  std::string platform_;
  std::vector<Device> devices_;
};

// The options of a compilation for one device, as the bytes of a CompileOptionsProto.
std::string compile_options(int device_id);

}  // namespace tenon::pjrt
