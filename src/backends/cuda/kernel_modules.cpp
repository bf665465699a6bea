#include "backends/cuda/kernel_modules.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/context.h"
#include "backends/cuda/libraries.h"
#include "base/log.h"
#include "hal/kernel_cache.h"

namespace tenon::cuda {
namespace {

constexpr std::string_view kArchitecture = "--gpu-architecture=";

struct ProgramOwner {
  const Nvrtc& nvrtc;
  RawProgram program = nullptr;
  ~ProgramOwner() {
    if (program) nvrtc.destroy(&program);
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// The newest capability that the compiler supports and the card can run.
int best_capability(const Nvrtc& nvrtc, int capability) {
  int count = 0;
  if (nvrtc.supported_count(&count) != 0 || count < 1) return capability;
  std::vector<int> known(static_cast<std::size_t>(count));
  if (nvrtc.supported(known.data()) != 0) return capability;
  int best = 0;
  for (const int one : known)
    if (one <= capability) best = std::max(best, one);
  if (best == 0)
    throw Error(ErrorCode::unimplemented,
                fmt::format("this NVRTC supports compute capability {}.{} and newer, but the card has {}.{}", known[0] / 10,
                            known[0] % 10, capability / 10, capability % 10),
                "use an earlier release of the CUDA toolkit");
  return best;
}

std::string log_of(const Nvrtc& nvrtc, RawProgram program) {
  std::size_t bytes = 0;
  if (nvrtc.log_bytes(program, &bytes) != 0 || bytes == 0) return "no log";
  std::string log(bytes, '\0');
  nvrtc.log(program, log.data());
  while (!log.empty() && log.back() == '\0') log.pop_back();
  constexpr std::size_t kEnough = 2000;
  return log.substr(0, kEnough);
}

// Instructions that only this architecture has are not in sm_90, which newer ones run as well, but in sm_90a.
std::string options_for(const KernelTarget& target, std::span<const Kernel* const> kernels, int capability) {
  std::string options = compiler_options(target);
  if (std::ranges::any_of(kernels, &Kernel::needs_warpgroup_products))
    options += fmt::format("\n{}sm_{}a", kArchitecture, capability);
  return options;
}

}  // namespace

std::vector<std::byte> compile(const Nvrtc& nvrtc, const std::string& source, const std::string& options, int capability) {
  const int best = best_capability(nvrtc, capability);
  std::vector<std::string> lines = lines_of(options);
  if (options.find(kArchitecture) == std::string::npos)
    lines.push_back(fmt::format("{}{}_{}", kArchitecture, best == capability ? "sm" : "compute", best));
  std::vector<const char*> arguments;
  for (const std::string& line : lines) arguments.push_back(line.c_str());
  ProgramOwner owner{nvrtc};
  const auto must = [&](int status, const char* what) {
    if (status == 0) return;
    throw Error(ErrorCode::internal, fmt::format("NVRTC: {} failed: {}\n{}", what, nvrtc.error_string(status),
                                                 owner.program ? log_of(nvrtc, owner.program) : ""));
  };
  must(nvrtc.create(&owner.program, source.c_str(), "tenon.cu", 0, nullptr, nullptr), "creating a program");
  must(nvrtc.compile(owner.program, static_cast<int>(arguments.size()), arguments.data()), "compiling a kernel");
  std::size_t bytes = 0;
  std::vector<std::byte> binary;
  if (best == capability) {
    must(nvrtc.cubin_bytes(owner.program, &bytes), "reading the size of a kernel");
    binary.resize(bytes);
    must(nvrtc.cubin(owner.program, reinterpret_cast<char*>(binary.data())), "fetching a kernel");
  } else {
    must(nvrtc.ptx_bytes(owner.program, &bytes), "reading the size of a kernel");
    binary.resize(bytes);
    must(nvrtc.ptx(owner.program, reinterpret_cast<char*>(binary.data())), "fetching a kernel");
  }
  return binary;
}

RawModule KernelModules::module_of(const KernelTarget& target, std::span<const Kernel* const> kernels) {
  const Card& card = context_.card();
  // No compiler version in the key: reading it would load the compiler, and its output for this driver and card stays valid.
  const KernelKey key{.source = module_text(target, kernels),
                      .options = options_for(target, kernels, card.capability),
                      .compiler = "nvrtc",
                      .device = fmt::format("sm_{} driver {}", card.capability, card.driver_version)};
  RawModule module = nullptr;
  if (compiler_) {
    const std::vector<std::byte> binary = compiler_(key.source, key.options, card.capability);
    context_.check(context_.driver().module_load(&module, binary.data()), "loading kernels");
    return module;
  }
  const KernelCache& cache = KernelCache::process();
  if (const auto binary = cache.find(key)) {
    if (context_.driver().module_load(&module, binary->data()) == kSuccess) return module;
    logging::debug("{}: a kept kernel does not load; it is compiled again", card.id);
  }
  const std::vector<std::byte> binary = compile(nvrtc(), key.source, key.options, card.capability);
  context_.check(context_.driver().module_load(&module, binary.data()), "loading kernels");
  cache.store(key, binary);
  return module;
}

std::vector<RawFunction> KernelModules::load(const KernelTarget& target, std::span<const Kernel> kernels) {
  const std::lock_guard lock(mutex_);
  std::vector<const Kernel*> missing;
  for (const Kernel& kernel : kernels)
    if (!functions_.contains(kernel.entry)) missing.push_back(&kernel);
  if (!missing.empty()) {
    const RawModule module = module_of(target, missing);
    modules_.push_back(module);
    for (const Kernel* kernel : missing) {
      RawFunction function = nullptr;
      context_.check(context_.driver().module_function(&function, module, kernel->entry.c_str()), "finding a kernel");
      if (kernel->dynamic_bytes > 0)
        context_.check(context_.driver().function_set(function, kMaxDynamicLocalBytes, kernel->dynamic_bytes),
                       "reserving local memory");
      functions_.emplace(kernel->entry, function);
    }
  }
  std::vector<RawFunction> found;
  for (const Kernel& kernel : kernels) found.push_back(functions_.find(kernel.entry)->second);
  return found;
}

void KernelModules::close(bool is_lost) noexcept {
  const std::lock_guard lock(mutex_);
  if (!is_lost)
    for (const RawModule module : modules_) context_.driver().module_unload(module);
  modules_.clear();
  functions_.clear();
}

}  // namespace tenon::cuda
