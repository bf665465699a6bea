#include "backends/pjrt/environment.h"

#include <algorithm>

namespace tenon::pjrt {
namespace {

// The number in "tpu:2"; "" if there is none.
std::string index_of(const DeviceInfo& device) {
  const std::string index = device.id.substr(device.id.rfind(':') + 1);
  const bool is_number = std::all_of(index.begin(), index.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? index : std::string();
}

std::string first_of(const std::string& wanted, const std::string& otherwise) { return wanted.empty() ? otherwise : wanted; }

}  // namespace

std::map<std::string, std::string> pinning_variables(const DeviceInfo& device) {
  std::map<std::string, std::string> variables;
  const std::string index = index_of(device);
  switch (device.kind) {
    case DeviceKind::tenstorrent: variables["TT_VISIBLE_DEVICES"] = first_of(device.pci_address, index); break;
    case DeviceKind::tpu:
      variables["TPU_VISIBLE_CHIPS"] = index;
      // A process that uses part of a host must declare it; otherwise the runtime waits for the other processes.
      variables["TPU_CHIPS_PER_PROCESS_BOUNDS"] = "1,1,1";
      variables["TPU_PROCESS_BOUNDS"] = "1,1,1";
      break;
    case DeviceKind::gpu:
      if (device.vendor == "NVIDIA") variables["CUDA_VISIBLE_DEVICES"] = first_of(device.uuid, index);
      if (device.vendor == "AMD") variables["ROCR_VISIBLE_DEVICES"] = index;
      break;
    case DeviceKind::cpu:
    case DeviceKind::other: break;
  }
  std::erase_if(variables, [](const auto& entry) { return entry.second.empty(); });
  return variables;
}

std::string xla_flags(const std::string& library, const std::string& already) {
  const auto is_called = [&](const char* part) { return library.find(part) != std::string::npos; };
  std::string flags;
  // The algebraic simplifier rewrites (a / b) / c as a / (b c), and exp(a) exp(b) as exp(a + b), which round and overflow
  // differently.
  if (is_called("cpu"))
    flags =
        "--xla_disable_hlo_passes=algsimp --xla_allow_excess_precision=false --xla_cpu_enable_fast_math=false "
        "--xla_cpu_enable_fast_min_max=false";
  else if (is_called("cuda") || is_called("rocm"))
    flags = "--xla_allow_excess_precision=false --xla_gpu_deterministic_ops=true";  // sums of a scatter in one order
  if (flags.empty()) return {};
  return already.empty() ? flags : already + " " + flags;
}

}  // namespace tenon::pjrt
