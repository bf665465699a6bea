// The parts of NVIDIA's C interfaces that Tenon calls, declared by hand: the driver (libcuda), the compiler (NVRTC) and the
// matrix products (cuBLASLt).
//
// Nothing is linked: a table is filled with the exports of a library (libraries.h), under the versioned names to which the
// vendor's headers map the functions, so that the layouts below match these names on every driver. A table is a plain struct, so
// tests can fill one with their own functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::cuda {

// --- The driver ---
using Result = int;
inline constexpr Result kSuccess = 0, kOutOfMemory = 2, kDeinitialized = 4, kNotReady = 600;
using Device = int;
using DevicePointer = unsigned long long;
using RawContext = struct ContextHandle*;
using RawModule = struct ModuleHandle*;
using RawFunction = struct FunctionHandle*;
using RawStream = struct StreamHandle*;
using RawEvent = struct EventHandle*;
using RawGraph = struct GraphHandle*;
using RawGraphExec = struct GraphExecHandle*;
static_assert(sizeof(DevicePointer) == 8 && sizeof(void*) == 8);

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr int kCaptureRelaxed = 2;
inline constexpr int kMaxDynamicLocalBytes = 8;  // of a function
enum Attribute : int {
  kMaxThreadsPerBlock = 1,
  kMultiprocessors = 16,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
};

// member, exported name, signature
#define TENON_CUDA_DRIVER(X)                                                                                                     \
  X(init, "cuInit", Result(unsigned flags))                                                                                      \
  X(error_name, "cuGetErrorName", Result(Result, const char**))                                                                  \
  X(error_string, "cuGetErrorString", Result(Result, const char**))                                                              \
  X(driver_version, "cuDriverGetVersion", Result(int*))                                                                          \
  X(device_get, "cuDeviceGet", Result(Device*, int ordinal))                                                                     \
  X(device_by_pci, "cuDeviceGetByPCIBusId", Result(Device*, const char*))                                                        \
  X(device_attribute, "cuDeviceGetAttribute", Result(int*, Attribute, Device))                                                   \
  X(context_retain, "cuDevicePrimaryCtxRetain", Result(RawContext*, Device))                                                     \
  X(context_release, "cuDevicePrimaryCtxRelease_v2", Result(Device))                                                             \
  X(context_reset, "cuDevicePrimaryCtxReset_v2", Result(Device))                                                                 \
  X(context_set_current, "cuCtxSetCurrent", Result(RawContext))                                                                  \
  X(context_state, "cuDevicePrimaryCtxGetState", Result(Device, unsigned* flags, int* is_active))                                \
  X(context_synchronize, "cuCtxSynchronize", Result(void))                                                                       \
  X(memory_info, "cuMemGetInfo_v2", Result(std::size_t* free, std::size_t* total))                                               \
  X(memory_allocate, "cuMemAlloc_v2", Result(DevicePointer*, std::size_t))                                                       \
  X(memory_free, "cuMemFree_v2", Result(DevicePointer))                                                                          \
  X(host_allocate, "cuMemHostAlloc", Result(void**, std::size_t, unsigned flags))                                                \
  X(host_free, "cuMemFreeHost", Result(void*))                                                                                   \
  X(host_register, "cuMemHostRegister_v2", Result(void*, std::size_t, unsigned flags))                                           \
  X(host_unregister, "cuMemHostUnregister", Result(void*))                                                                       \
  X(copy_to_device, "cuMemcpyHtoDAsync_v2", Result(DevicePointer, const void*, std::size_t, RawStream))                          \
  X(copy_to_host, "cuMemcpyDtoHAsync_v2", Result(void*, DevicePointer, std::size_t, RawStream))                                  \
  X(fill_bytes, "cuMemsetD8Async", Result(DevicePointer, unsigned char, std::size_t, RawStream))                                 \
  X(stream_create, "cuStreamCreate", Result(RawStream*, unsigned flags))                                                         \
  X(stream_destroy, "cuStreamDestroy_v2", Result(RawStream))                                                                     \
  X(stream_synchronize, "cuStreamSynchronize", Result(RawStream))                                                                \
  X(stream_wait_event, "cuStreamWaitEvent", Result(RawStream, RawEvent, unsigned flags))                                         \
  X(event_create, "cuEventCreate", Result(RawEvent*, unsigned flags))                                                            \
  X(event_destroy, "cuEventDestroy_v2", Result(RawEvent))                                                                        \
  X(event_record, "cuEventRecord", Result(RawEvent, RawStream))                                                                  \
  X(event_query, "cuEventQuery", Result(RawEvent))                                                                               \
  X(event_synchronize, "cuEventSynchronize", Result(RawEvent))                                                                   \
  X(capture_begin, "cuStreamBeginCapture_v2", Result(RawStream, int mode))                                                       \
  X(capture_end, "cuStreamEndCapture", Result(RawStream, RawGraph*))                                                             \
  X(graph_destroy, "cuGraphDestroy", Result(RawGraph))                                                                           \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", Result(RawGraphExec*, RawGraph, unsigned long long flags))                 \
  X(graph_launch, "cuGraphLaunch", Result(RawGraphExec, RawStream))                                                              \
  X(graph_exec_destroy, "cuGraphExecDestroy", Result(RawGraphExec))                                                              \
  X(module_load, "cuModuleLoadData", Result(RawModule*, const void* image))                                                      \
  X(module_unload, "cuModuleUnload", Result(RawModule))                                                                          \
  X(module_function, "cuModuleGetFunction", Result(RawFunction*, RawModule, const char*))                                        \
  X(function_set, "cuFuncSetAttribute", Result(RawFunction, int attribute, int value))                                           \
  X(launch, "cuLaunchKernel",                                                                                                    \
    Result(RawFunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, \
           unsigned shared_bytes, RawStream, void** arguments, void** extra))

// --- Launches that may begin before the kernel in front of them has ended; drivers before 11.8 lack the function ---
struct LaunchAttribute {
  int id;
  int padding;
  std::uint64_t value[8];
};
struct LaunchShape {
  unsigned groups[3];
  unsigned group_size[3];
  unsigned local_bytes;
  RawStream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchShape) == 56);
inline constexpr int kMayBeginEarly = 6;
#define TENON_CUDA_DRIVER_OPTIONAL(X) \
  X(launch_with, "cuLaunchKernelEx", Result(const LaunchShape*, RawFunction, void** arguments, void** extra))

// --- The compiler ---
using RawProgram = struct ProgramHandle*;

#define TENON_CUDA_NVRTC(X)                                                                                                  \
  X(error_string, "nvrtcGetErrorString", const char*(int))                                                                   \
  X(supported_count, "nvrtcGetNumSupportedArchs", int(int*))                                                                 \
  X(supported, "nvrtcGetSupportedArchs", int(int*))                                                                          \
  X(create, "nvrtcCreateProgram",                                                                                            \
    int(RawProgram*, const char* source, const char* name, int headers, const char* const* texts, const char* const* names)) \
  X(destroy, "nvrtcDestroyProgram", int(RawProgram*))                                                                        \
  X(compile, "nvrtcCompileProgram", int(RawProgram, int count, const char* const* options))                                  \
  X(log_bytes, "nvrtcGetProgramLogSize", int(RawProgram, std::size_t*))                                                      \
  X(log, "nvrtcGetProgramLog", int(RawProgram, char*))                                                                       \
  X(cubin_bytes, "nvrtcGetCUBINSize", int(RawProgram, std::size_t*))                                                         \
  X(cubin, "nvrtcGetCUBIN", int(RawProgram, char*))                                                                          \
  X(ptx_bytes, "nvrtcGetPTXSize", int(RawProgram, std::size_t*))                                                             \
  X(ptx, "nvrtcGetPTX", int(RawProgram, char*))

// --- Matrix products ---
using RawBlas = struct BlasHandle*;
using RawMatmul = struct MatmulHandle*;
using RawLayout = struct LayoutHandle*;
using RawPreference = struct PreferenceHandle*;

struct MatmulAlgorithm {
  std::uint64_t data[8];
};
struct MatmulHeuristic {
  MatmulAlgorithm algorithm;
  std::size_t workspace_bytes;
  int state;  // 0: usable
  float waves;
  int reserved[4];
};
static_assert(sizeof(MatmulHeuristic) == 96);

enum DataType : int { kR32F = 0, kR64F = 1, kR16F = 2, kR16BF = 14 };
enum ComputeType : int { kCompute32F = 68, kCompute64F = 70 };
enum MatmulAttribute : int { kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8, kBiasDataType = 26 };
enum LayoutAttribute : int { kBatchCount = 5, kBatchStride = 6 };
enum PreferenceAttribute : int { kMaxWorkspaceBytes = 1, kAlignmentA = 5, kAlignmentB = 6, kAlignmentC = 7, kAlignmentD = 8 };
enum Epilogue : std::uint32_t { kEpilogueNone = 1, kEpilogueRelu = 2, kEpilogueBias = 4 };  // bits

#define TENON_CUDA_BLAS(X)                                                                                                     \
  X(create, "cublasLtCreate", int(RawBlas*))                                                                                   \
  X(destroy, "cublasLtDestroy", int(RawBlas))                                                                                  \
  X(matmul_create, "cublasLtMatmulDescCreate", int(RawMatmul*, ComputeType, DataType scale))                                   \
  X(matmul_destroy, "cublasLtMatmulDescDestroy", int(RawMatmul))                                                               \
  X(matmul_set, "cublasLtMatmulDescSetAttribute", int(RawMatmul, MatmulAttribute, const void*, std::size_t))                   \
  X(layout_create, "cublasLtMatrixLayoutCreate",                                                                               \
    int(RawLayout*, DataType, std::uint64_t rows, std::uint64_t columns, std::int64_t leading))                                \
  X(layout_destroy, "cublasLtMatrixLayoutDestroy", int(RawLayout))                                                             \
  X(layout_set, "cublasLtMatrixLayoutSetAttribute", int(RawLayout, LayoutAttribute, const void*, std::size_t))                 \
  X(preference_create, "cublasLtMatmulPreferenceCreate", int(RawPreference*))                                                  \
  X(preference_destroy, "cublasLtMatmulPreferenceDestroy", int(RawPreference))                                                 \
  X(preference_set, "cublasLtMatmulPreferenceSetAttribute", int(RawPreference, PreferenceAttribute, const void*, std::size_t)) \
  X(heuristic, "cublasLtMatmulAlgoGetHeuristic",                                                                               \
    int(RawBlas, RawMatmul, RawLayout, RawLayout, RawLayout, RawLayout, RawPreference, int wanted, MatmulHeuristic*,           \
        int* found))                                                                                                           \
  X(matmul, "cublasLtMatmul",                                                                                                  \
    int(RawBlas, RawMatmul, const void* alpha, const void* a, RawLayout, const void* b, RawLayout, const void* beta,           \
        const void* c, RawLayout, void* d, RawLayout, const MatmulAlgorithm*, void* workspace, std::size_t workspace_bytes,    \
        RawStream))

template <class Signature>
struct FunctionPointer {
  using Type = Signature*;
};
#define TENON_CUDA_MEMBER(member, symbol, ...) FunctionPointer<__VA_ARGS__>::Type member = nullptr;
struct Driver {
  TENON_CUDA_DRIVER(TENON_CUDA_MEMBER)
  TENON_CUDA_DRIVER_OPTIONAL(TENON_CUDA_MEMBER)
};
struct Nvrtc {
  TENON_CUDA_NVRTC(TENON_CUDA_MEMBER)
};
struct BlasLibrary {
  TENON_CUDA_BLAS(TENON_CUDA_MEMBER)
};
#undef TENON_CUDA_MEMBER

}  // namespace tenon::cuda
