// The part of the OpenCL API that Tenon uses, declared by hand after the published specification (1.2), and the table of
// functions loaded from the ICD loader at run time. Building Tenon does not require OpenCL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::opencl {

using Int = std::int32_t;
using Uint = std::uint32_t;
using Ulong = std::uint64_t;
using Bool = Uint;
using Bits = Ulong;
struct PlatformObject;
struct DeviceObject;
struct ContextObject;
struct QueueObject;
struct MemoryObject;
struct ProgramObject;
struct KernelObject;
struct EventObject;
using PlatformId = PlatformObject*;
using DeviceId = DeviceObject*;
using ContextId = ContextObject*;
using QueueId = QueueObject*;
using MemoryId = MemoryObject*;
using ProgramId = ProgramObject*;
using KernelId = KernelObject*;
using EventId = EventObject*;

inline constexpr Int kSuccess = 0, kDeviceNotFound = -1, kDeviceNotAvailable = -2, kAllocationFailure = -4, kOutOfResources = -5,
                     kOutOfHostMemory = -6, kBuildFailure = -11, kInvalidBufferSize = -61, kInvalidQueue = -36,
                     kInvalidContext = -34, kPlatformNotFound = -1001;
inline constexpr Bits kDeviceTypeCpu = 2, kDeviceTypeAll = 0xffffffff;
inline constexpr Bits kReadWrite = 1, kUseHostPointer = 8;

inline constexpr Uint kPlatformName = 0x0902;
inline constexpr Uint kDeviceType = 0x1000, kDeviceMaxComputeUnits = 0x1002, kDeviceMaxGroupSize = 0x1004,
                      kDeviceMaxAllocation = 0x1010, kDeviceBaseAlignment = 0x1019, kDeviceSingleConfig = 0x101B,
                      kDeviceGlobalMemory = 0x101F, kDeviceLocalMemory = 0x1023, kDeviceAvailable = 0x1027, kDeviceName = 0x102B,
                      kDeviceVendor = 0x102C, kDriverVersion = 0x102D, kDeviceVersion = 0x102F, kDeviceExtensions = 0x1030,
                      kDeviceDoubleConfig = 0x1032;
inline constexpr Uint kDevicePciInfoKhr = 0x410F, kDevicePciBusNv = 0x4008, kDevicePciSlotNv = 0x4009,
                      kDevicePciDomainNv = 0x400A;
inline constexpr Bits kCorrectlyRoundedDivide = 1 << 7;
inline constexpr Uint kProgramBinarySizes = 0x1165, kProgramBinaries = 0x1166, kProgramBuildLog = 0x1183;

struct PciInfo {
  Uint domain, bus, device, function;
};

// X(name, result, parameters...)
#define TENON_OPENCL_FUNCTIONS(X)                                                                                              \
  X(clGetPlatformIDs, Int, Uint, PlatformId*, Uint*)                                                                           \
  X(clGetPlatformInfo, Int, PlatformId, Uint, std::size_t, void*, std::size_t*)                                                \
  X(clGetDeviceIDs, Int, PlatformId, Bits, Uint, DeviceId*, Uint*)                                                             \
  X(clGetDeviceInfo, Int, DeviceId, Uint, std::size_t, void*, std::size_t*)                                                    \
  X(clCreateContext, ContextId, const std::intptr_t*, Uint, const DeviceId*, void*, void*, Int*)                               \
  X(clReleaseContext, Int, ContextId)                                                                                          \
  X(clCreateCommandQueue, QueueId, ContextId, DeviceId, Bits, Int*)                                                            \
  X(clReleaseCommandQueue, Int, QueueId)                                                                                       \
  X(clCreateBuffer, MemoryId, ContextId, Bits, std::size_t, void*, Int*)                                                       \
  X(clReleaseMemObject, Int, MemoryId)                                                                                         \
  X(clEnqueueReadBuffer, Int, QueueId, MemoryId, Bool, std::size_t, std::size_t, void*, Uint, const EventId*, EventId*)        \
  X(clEnqueueWriteBuffer, Int, QueueId, MemoryId, Bool, std::size_t, std::size_t, const void*, Uint, const EventId*, EventId*) \
  X(clCreateProgramWithSource, ProgramId, ContextId, Uint, const char**, const std::size_t*, Int*)                             \
  X(clCreateProgramWithBinary, ProgramId, ContextId, Uint, const DeviceId*, const std::size_t*, const unsigned char**, Int*,   \
    Int*)                                                                                                                      \
  X(clBuildProgram, Int, ProgramId, Uint, const DeviceId*, const char*, void*, void*)                                          \
  X(clGetProgramInfo, Int, ProgramId, Uint, std::size_t, void*, std::size_t*)                                                  \
  X(clGetProgramBuildInfo, Int, ProgramId, DeviceId, Uint, std::size_t, void*, std::size_t*)                                   \
  X(clReleaseProgram, Int, ProgramId)                                                                                          \
  X(clCreateKernel, KernelId, ProgramId, const char*, Int*)                                                                    \
  X(clSetKernelArg, Int, KernelId, Uint, std::size_t, const void*)                                                             \
  X(clReleaseKernel, Int, KernelId)                                                                                            \
  X(clEnqueueNDRangeKernel, Int, QueueId, KernelId, Uint, const std::size_t*, const std::size_t*, const std::size_t*, Uint,    \
    const EventId*, EventId*)                                                                                                  \
  X(clFinish, Int, QueueId)

struct Api {
#define TENON_X(name, result, ...) result (*name)(__VA_ARGS__) = nullptr;
  TENON_OPENCL_FUNCTIONS(TENON_X)
#undef TENON_X
  std::string error;  // why loading failed; "" if every function was found

  explicit operator bool() const { return error.empty(); }
};

// Loads the ICD loader at the first call, and with it the platforms and their compilers, which takes a third of a second.
const Api& api();

// Throws an Error for a status other than kSuccess, naming what failed: resource_exhausted, unavailable or internal.
void check(Int status, const std::string& what);
std::string status_text(Int status);
// Whether the device is lost, with the contents of its memory.
bool means_lost(Int status);

}  // namespace tenon::opencl
