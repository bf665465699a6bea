#include "backends/opencl/api.h"

#include <fmt/format.h>

#include <vector>

#include "base/system/dynamic_library.h"
#include "tenon/error.h"

namespace tenon::opencl {
namespace {

Api load() {
  Api table;
  const std::vector<std::string> names = {"libOpenCL.so.1", "libOpenCL.so"};
  const DynamicLibrary library = DynamicLibrary::load(names);
  if (!library) {
    table.error = library.error();
    return table;
  }
  std::string missing;
#define TENON_X(name, result, ...)                           \
  table.name = library.function<result(__VA_ARGS__)>(#name); \
  if (!table.name) missing += std::string(missing.empty() ? "" : ", ") + #name;
  TENON_OPENCL_FUNCTIONS(TENON_X)
#undef TENON_X
  if (!missing.empty()) table.error = fmt::format("{} lacks {}", library.name(), missing);
  return table;
}

}  // namespace

const Api& api() {
  static const Api table = load();
  return table;
}

std::string status_text(Int status) {
  switch (status) {
    case kDeviceNotFound: return "no device found";
    case kDeviceNotAvailable: return "the device is not available";
    case kAllocationFailure: return "the device's memory is full";
    case kOutOfResources: return "out of resources";
    case kOutOfHostMemory: return "out of host memory";
    case kBuildFailure: return "the kernel did not compile";
    case kInvalidBufferSize: return "the tensor is larger than the device's limit for one tensor";
    case kInvalidQueue: return "the command queue is invalid";
    case kPlatformNotFound: return "no OpenCL platform";
    default: return fmt::format("OpenCL error {}", status);
  }
}

bool means_lost(Int status) {
  constexpr Int kNvidiaFault = -9999;
  return status == kDeviceNotAvailable || status == kInvalidQueue || status == kInvalidContext || status == kNvidiaFault;
}

void check(Int status, const std::string& what) {
  if (status == kSuccess) return;
  const bool memory = status == kAllocationFailure || status == kOutOfHostMemory || status == kInvalidBufferSize;
  const ErrorCode code = memory               ? ErrorCode::resource_exhausted
                         : means_lost(status) ? ErrorCode::unavailable
                                              : ErrorCode::internal;
  throw Error(code, fmt::format("{}: {}", what, status_text(status)), memory ? "use smaller tensors or another device" : "");
}

}  // namespace tenon::opencl
