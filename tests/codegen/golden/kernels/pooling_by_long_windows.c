// adaptive_avg_pool1d(reshape(very_wide, [8, 8, 40000]), 7)

// --- OpenCL
// workspace 7680 bytes
// kernel0<448x1x1 of 1024x1x1>(input0, 5713, 448, 7, 1, 40000, 5714, workspace+5632)
// kernel1<6x1x1 of 256x1x1>(input0, constants+0, workspace+0, status+0, 21, 1, 40000, 1344)
// kernel2<2x1x1 of 1x256x1>(constants+512, workspace+0, workspace+5632, constants+1024, 3, 448, 7, 3, 21, 3, 7, 0, output0)

KERNEL(1024, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, GLOBAL f32* RESTRICT arg7) {
  const i32 lane = local_id(0), line = local_id(1);
  LOCAL f32 shared_sv0[1024];
  for (i32 base = (i32)group_id(0) * 1; base < arg2; base += (i32)group_count(0) * 1) {
    i32 row = base + line < arg2 ? base + line : arg2 - 1;
    const i32 active = base + line < arg2;
    i32 i1 = (u32)row % (u32)arg3, r1 = (u32)row / (u32)arg3;
    i32 o0 = arg4 + r1 * arg5 + i1 * arg6;
    f32 sv0 = 0.0f;
    UNROLL for (i32 k = 0; k < 8; ++k) {
      const i32 i = lane + k * 1024;
      if (i < arg1) {
        f32 x0 = arg0[o0 + i];
        sv0 = sv0 + x0;
      }
    }
    BARRIER;
    shared_sv0[line * 1024 + lane] = sv0;
    BARRIER;
    for (i32 distance = 512; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f32 other = shared_sv0[line * 1024 + lane + distance]; sv0 = sv0 + other;
        shared_sv0[line * 1024 + lane] = sv0;
      }
      BARRIER;
    }
    sv0 = shared_sv0[line * 1024];
    f32 v0 = sv0;
    if (lane == 0 && active) arg7[row] = v0;
  }
}

// calls resolve
KERNEL(256, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg7; j += (i64)group_count(0) * 256) {
    const i64 from = (j / arg4 * arg6 + resolve(arg1[j % arg4], arg6, arg3)) * arg5;
    for (i64 k = 0; k < arg5; ++k) arg2[j * arg5 + k] = arg0[from + k];
  }
}

KERNEL(1, 256, 1) kernel2(GLOBAL const u8* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL const f32* RESTRICT arg2, GLOBAL const f32* RESTRICT arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, f32 arg11, GLOBAL f32* RESTRICT arg12) {
  const i32 lane = local_id(0), line = local_id(1);
  for (i32 base = (i32)group_id(0) * 256; base < arg5; base += (i32)group_count(0) * 256) {
    i32 row = base + line < arg5 ? base + line : arg5 - 1;
    const i32 active = base + line < arg5;
    i32 i1 = (u32)row % (u32)arg6, r1 = (u32)row / (u32)arg6;
    i32 o0 = i1 * arg7;
    i32 o1 = r1 * arg8 + i1 * arg9;
    i32 o2 = r1 * arg10 + i1;
    i32 o3 = i1;
    f32 x2 = arg2[o2];
    f32 x3 = arg3[o3];
    f32 sv1 = 0.0f;
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i32 i = lane + k * 1;
      if (i < arg4) {
        f32 x1 = arg1[o1 + i];
        i32 x0 = (i32)arg0[o0 + i];
        f32 v0_3 = (x0 ? x1 : arg11);
        f32 v0 = v0_3;
        sv1 = sv1 + v0;
      }
    }
    f32 v1 = sv1;
    f32 v2_2 = v1 + x2;
    f32 v2 = v2_2;
    f32 v3_2 = v2 / x3;
    f32 v3 = v3_2;
    if (lane == 0 && active) arg12[row] = v3;
  }
}

// --- CUDA
// workspace 7680 bytes
// kernel0<448x1x1 of 1024x1x1>(input0, 5713, 448, 7, 1, 40000, 5714, workspace+5632)
// kernel1<2x1x1 of 256x1x1>(input0, constants+0, workspace+0, status+0, 1344, 1, 40000, 21)
// kernel2<2x1x1 of 1x256x1>(constants+512, workspace+0, workspace+5632, constants+1024, 3, 448, 7, 3, 21, 3, 7, 0, output0)

KERNEL(1024, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, GLOBAL f32* RESTRICT arg7) {
  STARTED;
  const i32 lane = local_id(0), line = local_id(1);
  LOCAL f32 shared_sv0[32];
  for (i32 base = (i32)group_id(0) * 1; base < arg2; base += (i32)group_count(0) * 1) {
    i32 row = base + line < arg2 ? base + line : arg2 - 1;
    const i32 active = base + line < arg2;
    i32 i1 = (u32)row % (u32)arg3, r1 = (u32)row / (u32)arg3;
    i32 o0 = arg4 + r1 * arg5 + i1 * arg6;
    f32 sv0 = 0.0f;
    UNROLL for (i32 k = 0; k < 8; ++k) {
      const i32 i = lane + k * 1024;
      if (i < arg1) {
        f32 x0 = arg0[o0 + i];
        sv0 = sv0 + x0;
      }
    }
    { const f32 other = (f32)SHUFFLE(sv0, 16); sv0 = sv0 + other; }
    { const f32 other = (f32)SHUFFLE(sv0, 8); sv0 = sv0 + other; }
    { const f32 other = (f32)SHUFFLE(sv0, 4); sv0 = sv0 + other; }
    { const f32 other = (f32)SHUFFLE(sv0, 2); sv0 = sv0 + other; }
    { const f32 other = (f32)SHUFFLE(sv0, 1); sv0 = sv0 + other; }
    BARRIER;
    if (lane % 32 == 0) shared_sv0[line * 32 + lane / 32] = sv0;
    BARRIER;
    sv0 = shared_sv0[line * 32 + lane % 32];
    { const f32 other = (f32)SHUFFLE(sv0, 16); sv0 = sv0 + other; }
    { const f32 other = (f32)SHUFFLE(sv0, 8); sv0 = sv0 + other; }
    { const f32 other = (f32)SHUFFLE(sv0, 4); sv0 = sv0 + other; }
    { const f32 other = (f32)SHUFFLE(sv0, 2); sv0 = sv0 + other; }
    { const f32 other = (f32)SHUFFLE(sv0, 1); sv0 = sv0 + other; }
    f32 v0 = sv0;
    if (lane == 0 && active) arg7[row] = v0;
  }
}

// calls resolve
KERNEL(256, 1, 1) kernel1(GLOBAL const u32* arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL u32* arg2, GLOBAL i64* arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  STARTED;
  u32 moved[4];
  const u32 first = blockIdx.x * 1024 + threadIdx.x;
  UNROLL for (u32 k = 0; k < 4; ++k) {
    const u32 j = first + k * 256;
    if (j < (u32)arg4) {
      const u32 row = j / (u32)arg5;
      moved[k] = arg0[((i64)(row / (u32)arg7) * arg6 + resolve(arg1[row % (u32)arg7], arg6, arg3)) * arg5 + (j - row * (u32)arg5)];
    }
  }
  UNROLL for (u32 k = 0; k < 4; ++k) if (first + k * 256 < (u32)arg4) arg2[first + k * 256] = moved[k];
}

KERNEL(1, 256, 1) kernel2(GLOBAL const u8* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL const f32* RESTRICT arg2, GLOBAL const f32* RESTRICT arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, f32 arg11, GLOBAL f32* RESTRICT arg12) {
  STARTED;
  const i32 lane = local_id(0), line = local_id(1);
  for (i32 base = (i32)group_id(0) * 256; base < arg5; base += (i32)group_count(0) * 256) {
    i32 row = base + line < arg5 ? base + line : arg5 - 1;
    const i32 active = base + line < arg5;
    i32 i1 = (u32)row % (u32)arg6, r1 = (u32)row / (u32)arg6;
    i32 o0 = i1 * arg7;
    i32 o1 = r1 * arg8 + i1 * arg9;
    i32 o2 = r1 * arg10 + i1;
    i32 o3 = i1;
    f32 x2 = arg2[o2];
    f32 x3 = arg3[o3];
    f32 sv1 = 0.0f;
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i32 i = lane + k * 1;
      if (i < arg4) {
        f32 x1 = arg1[o1 + i];
        i32 x0 = (i32)arg0[o0 + i];
        f32 v0_3 = (x0 ? x1 : arg11);
        f32 v0 = v0_3;
        sv1 = sv1 + v0;
      }
    }
    f32 v1 = sv1;
    f32 v2_2 = v1 + x2;
    f32 v2 = v2_2;
    f32 v3_2 = v2 / x3;
    f32 v3 = v3_2;
    if (lane == 0 && active) arg12[row] = v3;
  }
}

// --- Tenstorrent
// workspace 7680 bytes
// kernel0<448x1x1 of 1x1x1>(input0, 5713, 448, 1, 7, 1, 40000, 5714, workspace+5632)
// kernel1<42x1x1 of 1x1x1>(input0, constants+0, workspace+0, status+0, 21, 1, 40000, 1344, 32)
// kernel2<41x1x1 of 1x1x1>(constants+512, workspace+0, workspace+5632, constants+1024, 3, 448, 11, 7, 3, 21, 3, 7, 0, output0)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, Global<f32> arg8) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 i1 = row % arg4, r1 = row / arg4;
    i64 o0 = arg5 + r1 * arg6 + i1 * arg7;
    f64 sv0 = 0.0;
    VECTORIZE for (i64 i = 0; i < arg1; ++i) {
      f32 x0 = arg0[o0 + i];
      { ANY_ORDER sv0 = sv0 + (f64)x0; }
    }
    f32 v0 = (f32)sv0;
    arg8[row] = v0;
  }
}

// calls resolve
KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<const i64> arg1, Global<f32> arg2, Global<i64> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  const i64 first = (i64)group_id(0) * arg8, last = first + arg8 < arg7 ? first + arg8 : arg7;
  for (i64 j = first; j < last; ++j) {
    const i64 from = (j / arg4 * arg6 + resolve(arg1[j % arg4], arg6, arg3)) * arg5;
    for (i64 k = 0; k < arg5; ++k) arg2[j * arg5 + k] = arg0[from + k];
  }
}

KERNEL(1, 1, 1) kernel2(Global<const u8> arg0, Global<const f32> arg1, Global<const f32> arg2, Global<const f32> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, f32 arg12, Global<f32> arg13) {
  i64 first = (i64)group_id(0) * arg6, last = first + arg6 < arg5 ? first + arg6 : arg5;
  for (i64 row = first; row < last; ++row) {
    i64 i1 = row % arg7, r1 = row / arg7;
    i64 o0 = i1 * arg8;
    i64 o1 = r1 * arg9 + i1 * arg10;
    i64 o2 = r1 * arg11 + i1;
    i64 o3 = i1;
    f32 x2 = arg2[o2];
    f32 x3 = arg3[o3];
    f64 sv1 = 0.0;
    VECTORIZE for (i64 i = 0; i < arg4; ++i) {
      f32 x1 = arg1[o1 + i];
      i32 x0 = (i32)arg0[o0 + i];
      f32 v0_3 = (x0 ? x1 : arg12);
      f32 v0 = v0_3;
      { ANY_ORDER sv1 = sv1 + (f64)v0; }
    }
    f32 v1 = (f32)sv1;
    f32 v2_2 = v1 + x2;
    f32 v2 = v2_2;
    f32 v3_2 = v2 / x3;
    f32 v3 = v3_2;
    arg13[row] = v3;
  }
}
