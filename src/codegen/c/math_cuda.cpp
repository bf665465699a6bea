#include "codegen/c/math_library.h"

namespace tenon::emit {
namespace {

// The functions for which CUDA's own take the place of the formulas of src/math: as exact (within 2 ULP), and faster, since they
// use the instructions for powers and logarithms of two that no formula can name. Then those that would be computed in f64.
#define TENON_CUDA_FUNCTION(name) {#name "_f32", "", "DEVICE f32 " #name "_f32(f32 x) { return " #name "f(x); }\n"},
#define TENON_X(Op, name) TENON_CUDA_FUNCTION(name)
#define TENON_X2(Op, name) {#name "_f32", "", "DEVICE f32 " #name "_f32(f32 x, f32 y) { return " #name "f(x, y); }\n"},
constexpr Helper kCuda[] = {
    TENON_CUDA_FUNCTION(exp) TENON_CUDA_FUNCTION(exp2) TENON_CUDA_FUNCTION(expm1) TENON_CUDA_FUNCTION(log)
        TENON_CUDA_FUNCTION(log2) TENON_CUDA_FUNCTION(log10) TENON_CUDA_FUNCTION(log1p) TENON_CUDA_FUNCTION(tanh)
            TENON_CUDA_FUNCTION(erf) TENON_CUDA_FUNCTION(sin) TENON_CUDA_FUNCTION(cos) TENON_CUDA_OPS_OF_ONE(TENON_X)
                TENON_CUDA_OPS_OF_TWO(TENON_X2){"reciprocal_root", "", R"(
DEVICE f32 reciprocal_root(f32 x) {
  f32 r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
)"},
    {"short_exp2", "", R"(
DEVICE f32 short_exp2(f32 x) {
  f32 r;
  asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
)"},
    {"short_log2", "", R"(
DEVICE f32 short_log2(f32 x) {
  f32 r;
  asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
)"},
    {"short_reciprocal", "", R"(
DEVICE f32 short_reciprocal(f32 x) {
  f32 r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
)"},
    // One wide product for both halves: the compiler makes two of a high and a low one.
    {"philox", "", R"(
typedef struct { u32 w[4]; } Words;
DEVICE u64 wide_product(u32 x, u32 y) { u64 r; asm("mul.wide.u32 %0, %1, %2;" : "=l"(r) : "r"(x), "r"(y)); return r; }
DEVICE Words philox(u64 seed, u64 block, u32 stream) {
  u32 c0 = (u32)block, c1 = (u32)(block >> 32), c2 = stream, c3 = 0u, k0 = (u32)seed, k1 = (u32)(seed >> 32);
  UNROLL for (i32 round = 0; round < 10; ++round) {
    u64 a = wide_product(0xCD9E8D57u, c2), b = wide_product(0xD2511F53u, c0);
    c0 = (u32)(a >> 32) ^ c1 ^ k0;
    c2 = (u32)(b >> 32) ^ c3 ^ k1;
    c1 = (u32)a;
    c3 = (u32)b;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  Words words;
  words.w[0] = c0; words.w[1] = c1; words.w[2] = c2; words.w[3] = c3;
  return words;
}
)"},
    // floor(unit_f64(low, high) * range) for whole numbers from 1 on, in integers. The product of doubles is rounded to 53 bits,
    // which reaches the next whole number from half a unit in the last place below it.
    {"unit_below", "philox", R"(
DEVICE i64 unit_below(u32 low, u32 high, u32 range) {
  const u64 m = (((u64)high << 32) | low) >> 11;
  const u64 below = wide_product((u32)m, range), above = wide_product((u32)(m >> 32), range) + (below >> 32);
  u32 whole = (u32)(above >> 21);
  if ((~(u32)above & 0x1fffffu) == 0u && whole != 0u) {
    u32 bits = whole | whole >> 1;
    bits |= bits >> 2; bits |= bits >> 4; bits |= bits >> 8; bits |= bits >> 16;
    whole += (u32)(((u64)(u32)below + (bits - (bits >> 1))) >> 32);
  }
  return (i64)whole;
}
)"},
    {"f32_towards_zero", "", "DEVICE f32 f32_towards_zero(u32 x) { return __uint2float_rz(x); }\n"},
    // The instructions forget the sign of what is no number.
    {"half_to_f32", "", R"(
DEVICE f32 half_to_f32(u16 h) {
  f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return AS_F32((AS_U32(x) & 0x7fffffffu) | (u32)(h & 0x8000u) << 16);
}
)"},
    {"f32_to_half", "", R"(
DEVICE u16 f32_to_half(f32 x) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return (u16)((h & 0x7fffu) | (AS_U32(x) >> 16 & 0x8000u));
}
)"},
    {"bfloat_to_f32", "", "DEVICE f32 bfloat_to_f32(u16 b) { return AS_F32((u32)b << 16); }\n"},
    {"f32_to_bfloat", "", R"(
DEVICE u16 f32_to_bfloat(f32 x) {
#if __CUDA_ARCH__ >= 800
  u16 b;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(x));
  return (u16)((b & 0x7fffu) | (AS_U32(x) >> 16 & 0x8000u));
#else
  u32 bits = AS_U32(x);
  return (u16)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x0040u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#endif
}
)"},
    // Four matrices of 8 x 8 elements of 16 bits: |row| is where this work-item's row of one of them begins.
    {"load_matrices", "", R"(
DEVICE void load_matrices(u32* to, u32 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(row));
}
)"},
    // sum += a b, a of 16 x 16 and b of 16 x 8 elements; each work-item of a warp has its share.
    {"multiply_matrices_f16", "", R"(
DEVICE void multiply_matrices_f16(f32* sum, uint4 a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}
)"},
    {"multiply_matrices_bf16", "", R"(
DEVICE void multiply_matrices_bf16(f32* sum, uint4 a, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}
)"},
};

}  // namespace

std::span<const Helper> cuda_helpers() { return kCuda; }

}  // namespace tenon::emit
