// Kernels of the CUDA dialect, compiled for this machine by the compiler that builds Tenon.
//
// Inline assembly becomes calls, "ex2.approx.f32" of ptx_ex2_approx_f32(), of which cuda_on_cpu.h has some. Accesses outside of
// arrays, wrong alignment of vectors and division by zero end in an instruction that is not valid.
// Thread safety: none.
//
//   KernelLibrary library(target, plan.kernels);
//   library.set_runner(block.runner());
//   library.find(kernel.entry).run(arguments);
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "codegen/c/kernel.h"
#include "emulated/runner.h"

namespace tenon::emulated {

struct CompiledKernel {
  void (*run)(const void* const* arguments) = nullptr;
  char* const* local = nullptr;  // where its local memory begins and ends
};

// Why no kernel can be compiled here, or empty.
std::string why_not();
// What |kernel| uses that cuda_on_cpu.h does not have, or empty.
std::string what_is_missing(const Kernel& kernel);

class KernelLibrary {
 public:
  // Throws internal, with what the compiler says.
  KernelLibrary(const KernelTarget& target, std::span<const Kernel* const> kernels);
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  void set_runner(Runner& runner);
  const CompiledKernel& find(const std::string& entry) const { return kernels_.at(entry); }

 private:
  void* handle_ = nullptr;
  std::map<std::string, CompiledKernel> kernels_;
};

// |text| with its inline assembly as calls.
std::string with_calls(std::string_view text);

}  // namespace tenon::emulated
