#include "codegen/c/target.h"

#include "codegen/c/kernel.h"
#include "codegen/c/math.h"

namespace tenon {
namespace {

constexpr std::string_view kOpenCl = R"kernel(#pragma OPENCL FP_CONTRACT OFF
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef char i8; typedef short i16; typedef int i32; typedef long i64; typedef float f32;
#define KERNEL(x, y, z) __attribute__((reqd_work_group_size(x, y, z))) __kernel void
#define GLOBAL __global
#define LOCAL __local
#define DEVICE static inline __attribute__((always_inline))
#define RESTRICT restrict
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define group_id(d) get_group_id(d)
#define group_count(d) get_num_groups(d)
#define local_id(d) get_local_id(d)
#define AS_U32 as_uint
#define AS_I32 as_int
#define AS_F32 as_float
#define AS_U64 as_ulong
#define AS_I64 as_long
#define AS_F64 as_double
#define ATOMIC_CAS(p, old, now) atomic_cmpxchg((volatile __global int*)(p), old, now)
#define ATOMIC_MAX(p, x) atomic_max((volatile __global int*)(p), x)
#define ATOMIC_ADD(p, x) atomic_add((volatile __global int*)(p), (int)(x))
#define VARRAY(T, N, a) T a[N]
#define VLOAD(T, N, a, p) vstore##N(vload##N(0, p), 0, a)
#define VSTORE(T, N, a, p) vstore##N(vload##N(0, a), 0, p)
#define UNROLL __attribute__((opencl_unroll_hint))
#define UNROLL_BY(n) __attribute__((opencl_unroll_hint(n)))
// The larger and the smaller, or NaN where one is.
#define LARGER(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define RECIPROCAL(x) (1.0f / (x))
#define HIGH_PRODUCT(x, y) mul_hi((u32)(x), (u32)(y))
// A sum or product whose order does not matter: processors may then vectorise it.
#ifdef __clang__
#define ANY_ORDER _Pragma("clang fp reassociate(on)")
#define VECTORIZE _Pragma("clang loop vectorize(assume_safety) vectorize_width(16)")
#else
#define ANY_ORDER
#define VECTORIZE
#endif
)kernel";

constexpr std::string_view kCuda =
    R"kernel(typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef signed char i8; typedef short i16; typedef int i32; typedef long i64; typedef float f32; typedef double f64;
#define KERNEL(x, y, z) extern "C" __global__ void __launch_bounds__((x) * (y) * (z))
#define KERNEL_LEAST(x, y, z, groups) extern "C" __global__ void __launch_bounds__((x) * (y) * (z), groups)
// Kernels may begin before the one in front of them has ended (backends/cuda/executable.cpp), and let the next one do so.
#if __CUDA_ARCH__ >= 900
#define LET_NEXT_BEGIN asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define WAIT_FOR_LAST asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define LET_NEXT_BEGIN
#define WAIT_FOR_LAST
#endif
#define STARTED LET_NEXT_BEGIN; WAIT_FOR_LAST
#define GLOBAL
#define LOCAL __shared__
#define DEVICE static __device__ __forceinline__
#define RESTRICT __restrict__
#define BARRIER __syncthreads()
DEVICE u32 axis(dim3 v, int d) { return d == 0 ? v.x : d == 1 ? v.y : v.z; }
DEVICE u32 axis(uint3 v, int d) { return d == 0 ? v.x : d == 1 ? v.y : v.z; }
#define group_id(d) axis(blockIdx, d)
#define group_count(d) axis(gridDim, d)
#define local_id(d) axis(threadIdx, d)
#define AS_U32(x) __float_as_uint(x)
#define AS_I32(x) __float_as_int(x)
#define AS_F32(x) __uint_as_float(x)
#define AS_U64(x) ((u64)__double_as_longlong(x))
#define AS_I64(x) ((i64)__double_as_longlong(x))
#define AS_F64(x) __longlong_as_double((long long)(x))
#define ATOMIC_CAS(p, old, now) atomicCAS((int*)(p), old, now)
#define ATOMIC_MAX(p, x) atomicMax((int*)(p), x)
DEVICE void ATOMIC_ADD(i32* p, i32 x) { atomicAdd(p, x); }
DEVICE void ATOMIC_ADD(u32* p, u32 x) { atomicAdd(p, x); }
DEVICE void ATOMIC_ADD(i64* p, i64 x) { atomicAdd((unsigned long long*)p, (unsigned long long)x); }
DEVICE void ATOMIC_ADD(u64* p, u64 x) { atomicAdd((unsigned long long*)p, (unsigned long long)x); }
template <int bytes> struct Word;
template <> struct Word<1> { typedef unsigned char type; };
template <> struct Word<2> { typedef unsigned short type; };
template <> struct Word<4> { typedef unsigned int type; };
template <> struct Word<8> { typedef uint2 type; };
template <> struct Word<16> { typedef uint4 type; };
#define VARRAY(T, N, a) __align__(16) T a[N]
#define VLOAD(T, N, a, p) *(Word<sizeof(T) * N>::type*)(a) = *(const Word<sizeof(T) * N>::type*)(p)
#define VSTORE(T, N, a, p) *(Word<sizeof(T) * N>::type*)(p) = *(const Word<sizeof(T) * N>::type*)(a)
#define UNROLL _Pragma("unroll")
#define AS_PRAGMA(text) _Pragma(#text)
#define UNROLL_BY(n) AS_PRAGMA(unroll n)
#if __CUDA_ARCH__ >= 800
DEVICE f32 LARGER(f32 a, f32 b) { f32 r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
DEVICE f32 SMALLER(f32 a, f32 b) { f32 r; asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
#else
DEVICE f32 LARGER(f32 a, f32 b) { return a > b || a != a ? a : b; }
DEVICE f32 SMALLER(f32 a, f32 b) { return a < b || a != a ? a : b; }
#endif
#define ANY_ORDER
// Within one unit in the last place, for numbers far from the ends of the range.
DEVICE f32 RECIPROCAL(f32 x) { f32 r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return fma(r, fma(-x, r, 1.0f), r); }
#define HIGH_PRODUCT(x, y) __umulhi(x, y)
#define SHUFFLE(x, distance) __shfl_xor_sync(0xffffffffu, x, distance)
#define SHUFFLE_UP(x, distance) __shfl_up_sync(0xffffffffu, x, distance)
#define SHUFFLE_FROM(x, lane) __shfl_sync(0xffffffffu, x, lane)
#define WIDE f64
)kernel";

}  // namespace

std::string prelude(const KernelTarget& target) {
  if (target.dialect == Dialect::cuda) return std::string(kCuda);
  if (target.dialect == Dialect::tensix) return tensix_prelude();
  std::string text;
  if (target.has_f64) text += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
  text += kOpenCl;
  text += target.has_f64 ? "typedef double f64;\n#define WIDE f64\n" : "#define WIDE f32\n";
  return text;
}

std::string module_text(const KernelTarget& target, std::span<const Kernel* const> kernels) {
  std::set<std::string> helpers;
  for (const Kernel* kernel : kernels) helpers.insert(kernel->helpers.begin(), kernel->helpers.end());
  std::string text = prelude(target) + helper_text(target, helpers);
  for (const Kernel* kernel : kernels) {
    text += kernel->text;
    if (target.dialect == Dialect::tensix) text += "TENON_ENTRY(" + kernel->entry + ")\n";
  }
  return text;
}

std::string compiler_options(const KernelTarget& target) {
  if (target.dialect == Dialect::cuda) return "--std=c++17\n--fmad=false\n--ftz=false\n--prec-div=true\n--prec-sqrt=true";
  return "-w -cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt";
}

}  // namespace tenon
