// KernelModules: the generated kernels of a context, compiled and loaded, each once.
//
// Kernels are asked for together and compiled together: one call of the compiler, one module. The compiled module is looked for
// on disk first (hal/kernel_cache.h); only when it is not there, or the driver refuses it, is the compiler even loaded.
// Thread safety: all calls may run side by side; one compiles at a time.
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

// Source, options (one a line) and compute capability (90: 9.0) to what the driver loads.
using Compiler = std::function<std::vector<std::byte>(const std::string& source, const std::string& options, int capability)>;

// The source as machine code of compute capability |capability| (90: 9.0), or as PTX where the compiler does not know the card
// yet. |options| are one a line. Throws internal with the compiler's log.
std::vector<std::byte> compile(const Nvrtc& nvrtc, const std::string& source, const std::string& options, int capability);

class KernelModules {
 public:
  // Without a |compiler| NVRTC is loaded when there is something to compile, and what it made is kept on disk.
  KernelModules(Context& context, Compiler compiler) : context_(context), compiler_(std::move(compiler)) {}

  // In the order of |kernels|.
  std::vector<RawFunction> load(const KernelTarget& target, std::span<const Kernel> kernels);
  // Unloads everything; |is_lost|: it is gone already.
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
