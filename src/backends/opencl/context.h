// Context: one open OpenCL device: its context, its in-order queue, its compiled kernels.
//
// Lifetime: shared by the device, its buffers and its executables. close() releases the OpenCL objects; objects destroyed after
// that only release themselves. Thread safety: all calls may run concurrently; the queue requires mutex().
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/opencl/memory.h"
#include "codegen/c/kernel.h"

namespace tenon::opencl {

// The properties of a device once its platform is loaded.
struct Hardware {
  PlatformId platform = nullptr;
  DeviceId device = nullptr;
  std::string platform_name, name, vendor, driver_version, version, extensions, pci_address;
  bool is_cpu = false, correctly_rounded_divide = false;
  std::uint64_t memory_bytes = 0, largest_allocation_bytes = 0;
  std::size_t base_alignment_bytes = 128;
  KernelTarget target;
};
// Every device of every platform. Loads them all: see api().
std::vector<Hardware> all_hardware();

// A compiled module, released with its last user.
class Module {
 public:
  explicit Module(ProgramId program) : program_(program) {}
  ~Module() { api().clReleaseProgram(program_); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ProgramId get() const { return program_; }

 private:
  ProgramId program_;
};

class Context {
 public:
  explicit Context(const Hardware& hardware);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Hardware& hardware() const { return hardware_; }
  ContextId get() const { return context_; }
  QueueId queue() const { return queue_; }  // null if closed
  std::mutex& mutex() { return mutex_; }

  // The module of each kernel; kernels not cached in this process or on disk are compiled together.
  std::vector<std::shared_ptr<Module>> modules(std::span<const Kernel> kernels);

  // Like opencl::check; also records that the device is lost.
  void check(Int status, const std::string& what);
  bool is_lost() const noexcept { return lost_.load(); }
  void close();

 private:
  std::shared_ptr<Module> compile(const std::vector<const Kernel*>& kernels);
  ProgramId build(const std::string& source, const std::string& options);
  std::vector<std::byte> binary_of(ProgramId program) const;

  Hardware hardware_;
  ContextId context_ = nullptr;
  QueueId queue_ = nullptr;
  std::mutex mutex_, modules_mutex_;
  std::map<std::string, std::weak_ptr<Module>> modules_;  // by a kernel's entry
  std::deque<std::shared_ptr<Module>> recent_;            // kept although no executable currently uses them
  std::atomic<bool> lost_{false};
};

}  // namespace tenon::opencl
