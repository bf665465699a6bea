// Backend, OpenDevice, Buffer, Executable: what a way of driving devices must implement.
//
// Discovery is apart from opening: Backend::devices() is cheap and opens nothing; Backend::open() pays. An OpenDevice
// compiles a Graph into an Executable and moves tensors between host and device.
//
// Lifetime: Buffers and Executables keep alive what they need of their device; they may be dropped in any order, after the
// OpenDevice too. Thread safety: OpenDevice and Executable may be used from several threads at once. A Buffer is written by one
// run at a time.
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
#include "tenon/device.h"
#include "tenon/graph.h"
#include "tenon/memory_budget.h"

namespace tenon {

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// Memory of one tensor on one device.
class Buffer {
 public:
  virtual ~Buffer() = default;
  const TensorType& type() const noexcept { return type_; }

 protected:
  explicit Buffer(TensorType type) : type_(std::move(type)) {}

 private:
  TensorType type_;
};

// A graph compiled for one device. Prepared once, run many times; running allocates nothing.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual std::span<const TensorType> input_types() const noexcept = 0;
  virtual std::span<const TensorType> output_types() const noexcept = 0;

  // Blocks until the outputs are complete. Buffers must have the types above and belong to this device;
  // an output must not overlap an input. Throws the device's errors.
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
  // Where host and device share memory the buffer may share the array's bytes.
  virtual std::unique_ptr<Buffer> upload(const HostArray& array) = 0;
  virtual HostArray download(const Buffer& buffer) = 0;

  // Ends the use of the device. Called once, when nothing runs on it; what is left of its buffers and executables may only be
  // dropped afterwards. The device counts as closed even when this throws.
  virtual void close() {}
  // The device is gone: it fell off the bus, its process died, or its runtime refuses all further work. What was in its memory is
  // gone with it. Asked after an error.
  virtual bool is_lost() const noexcept { return false; }
};

struct OpenOptions {
  // Buffers hold their share of it; without one memory has no limit but the device's own.
  std::shared_ptr<MemoryBudget> budget;
  // Off: every node is a step of its own, for those who look for what is wrong.
  bool fuse = true;
};

// What opening and closing a device takes, before it was measured.
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

  // Throws unimplemented, naming what cannot be run, for a graph that compile() would refuse. Opens nothing.
  virtual void check(const DeviceInfo& /*device*/, const Graph& /*graph*/) const {}
  // Brings a device whose last user died into a state in which it can be opened. Throws unavailable.
  virtual void recover(const DeviceInfo& /*device*/) {}
  virtual Latency latency(const DeviceInfo& /*device*/) const { return {}; }
};

}  // namespace tenon
