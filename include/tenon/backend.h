// Backend, OpenDevice, Buffer, Executable: the interfaces that a backend implements.
//
// Discovery and opening are separate: Backend::devices() is cheap and opens nothing; Backend::open() is expensive. An OpenDevice
// compiles a Graph into an Executable and moves tensors between host and device.
//
// Lifetime: Buffers and Executables keep the parts of the device alive that they need; they may be destroyed in any order, even
// after the OpenDevice. Thread safety: OpenDevice and Executable may be used by several threads at once. A Buffer must be written
// by one run at a time.
//
//   auto device = registry().open("cpu:0");
//   auto program = device->compile(graph);
//   auto x = device->upload(array);
//   auto y = device->allocate(program->output_types()[0]);
//   program->run({x.get()}, {y.get()});
//   HostArray result = device->download(*y);
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/array.h"
#include "tenon/backend/memory_budget.h"
#include "tenon/device.h"
#include "tenon/graph.h"

namespace tenon {

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// The memory of one tensor on one device.
class Buffer {
 public:
  virtual ~Buffer() = default;
  const TensorType& type() const noexcept { return type_; }

 protected:
  explicit Buffer(TensorType type) : type_(std::move(type)) {}

 private:
  TensorType type_;
};

// A graph compiled for one device. It is compiled once and run many times; a run allocates no memory.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual std::span<const TensorType> input_types() const noexcept = 0;
  virtual std::span<const TensorType> output_types() const noexcept = 0;

  // Blocks until the outputs are complete. The buffers must have the types above and belong to this device; an output must not
  // overlap an input. Throws the errors of the device.
  virtual void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) = 0;
  void run(std::initializer_list<const Buffer*> inputs, std::initializer_list<Buffer*> outputs) {
    run(std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()));
  }
};

class OpenDevice {
 public:
  virtual ~OpenDevice() = default;
  virtual const DeviceInfo& info() const noexcept = 0;
  virtual std::unique_ptr<Executable> compile(const Graph& graph) = 0;
  // Uninitialised. Throws resource_exhausted.
  virtual std::unique_ptr<Buffer> allocate(const TensorType& type) = 0;
  // If host and device share memory, the buffer may share the array's bytes.
  virtual std::unique_ptr<Buffer> upload(const HostArray& array) = 0;
  virtual HostArray download(const Buffer& buffer) = 0;

  // Ends the use of the device. Called once, when no run is active; remaining buffers and executables may only be destroyed
  // afterwards. The device counts as closed even if this throws.
  virtual void close() {}
  // True if the device has failed: it fell off the bus, its process died, or its runtime refuses all further work. The contents
  // of its memory are lost. Called after an error.
  virtual bool is_lost() const noexcept { return false; }
  // Gives up a device that does not answer, while calls on it are active in other threads: they fail soon and the device is lost.
  // Returns false if the runtime offers no way to do this. May be called from any thread, and repeatedly. Does not block.
  virtual bool abandon() noexcept { return false; }
};

struct OpenOptions {
  // Each buffer holds a share of it; without a budget only the device's own memory is the limit.
  std::shared_ptr<MemoryBudget> budget;
  // If false, every node is a separate step; for debugging.
  bool fuse = true;
};

// Estimated times to open and close a device, used until they have been measured.
struct Latency {
  double open_seconds = 0, close_seconds = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const noexcept = 0;
  virtual std::vector<DeviceInfo> devices() = 0;
  // Throws unavailable, resource_exhausted, permission_denied.
  virtual std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) = 0;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device) { return open(device, {}); }

  // Throws unimplemented, naming the unsupported part, for a graph that compile() would refuse. Opens nothing.
  virtual void check(const DeviceInfo& /*device*/, const Graph& /*graph*/) const {}
  // Resets a device whose last user died to a state in which it can be opened. Throws unavailable.
  virtual void recover(const DeviceInfo& /*device*/) {}
  virtual Latency latency(const DeviceInfo& /*device*/) const { return {}; }
};

}  // namespace tenon
