// KernelModules: compiles and loads the generated kernels of a context, each once.
//
// Kernels that are requested together are compiled together, in one compiler call and one module. The compiled module is first
// looked up on disk (hal/kernel_cache.h); the compiler is loaded only if it is missing or the driver refuses it.
// Thread safety: all calls may run concurrently; only one compiles at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/api.h"
#include "codegen/c/kernel.h"

namespace tenon::cuda {

class Context;

// Compiles source, with options (one per line) and compute capability (90: 9.0), to a binary for the driver.
using Compiler = std::function<std::vector<std::byte>(const std::string& source, const std::string& options, int capability)>;

// Compiles the source to machine code for compute capability |capability| (90: 9.0), or to PTX if the compiler does not know the
// card yet. |options| has one option per line, and may name the architecture. Throws internal with the compiler's log.
std::vector<std::byte> compile(const Nvrtc& nvrtc, const std::string& source, const std::string& options, int capability);

class KernelModules {
 public:
  // Without a |compiler|, NVRTC is loaded on demand and its output is cached on disk.
  KernelModules(Context& context, Compiler compiler) : context_(context), compiler_(std::move(compiler)) {}

  // In the order of |kernels|.
  std::vector<RawFunction> load(const KernelTarget& target, std::span<const Kernel> kernels);
  // Unloads everything; |is_lost|: the modules are already gone.
  void close(bool is_lost) noexcept;

 private:
  RawModule module_of(const KernelTarget& target, std::span<const Kernel* const> kernels);

  Context& context_;
  Compiler compiler_;
  std::mutex mutex_;
  std::map<std::string, RawFunction, std::less<>> functions_;  // by entry
  std::vector<RawModule> modules_;
};

}  // namespace tenon::cuda
