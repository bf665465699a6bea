// layer_norm(x)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 2x128x1>(input0, 8, 4, 8, 8, 1e-05, output0)

KERNEL(2, 128, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, f32 arg4, f32 arg5, GLOBAL f32* RESTRICT arg6) {
  f32 kx0[4];
  f32 kv2[4];
  const i32 lane = local_id(0), line = local_id(1);
  LOCAL f32 shared_sv0[256];
  LOCAL f32 shared_sv4[256];
  for (i32 base = (i32)group_id(0) * 128; base < arg2; base += (i32)group_count(0) * 128) {
    i32 row = base + line < arg2 ? base + line : arg2 - 1;
    const i32 active = base + line < arg2;
    i32 o0 = row * arg3;
    f32 sv0 = 0.0f;
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i32 i = lane + k * 2;
      if (i < arg1) {
        f32 x0 = arg0[o0 + i];
        kx0[k] = x0;
        sv0 = sv0 + x0;
      }
    }
    BARRIER;
    shared_sv0[line * 2 + lane] = sv0;
    BARRIER;
    for (i32 distance = 1; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f32 other = shared_sv0[line * 2 + lane + distance]; sv0 = sv0 + other;
        shared_sv0[line * 2 + lane] = sv0;
      }
      BARRIER;
    }
    sv0 = shared_sv0[line * 2];
    f32 v0 = sv0;
    f32 v1_2 = v0 / arg4;
    f32 v1 = v1_2;
    f32 sv4 = 0.0f;
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i32 i = lane + k * 2;
      if (i < arg1) {
        f32 x0 = kx0[k];
        f32 v2_2 = x0 - v1;
        f32 v2 = v2_2;
        kv2[k] = v2;
        f32 v3_1 = v2 * v2;
        f32 v3 = v3_1;
        sv4 = sv4 + v3;
      }
    }
    BARRIER;
    shared_sv4[line * 2 + lane] = sv4;
    BARRIER;
    for (i32 distance = 1; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f32 other = shared_sv4[line * 2 + lane + distance]; sv4 = sv4 + other;
        shared_sv4[line * 2 + lane] = sv4;
      }
      BARRIER;
    }
    sv4 = shared_sv4[line * 2];
    f32 v4 = sv4;
    f32 v5_2 = v4 / arg4;
    f32 v5 = v5_2;
    f32 v6_2 = v5 + arg5;
    f32 v6 = v6_2;
    f32 v7_1 = sqrt(v6);
    f32 v7 = v7_1;
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i32 i = lane + k * 2;
      if (i < arg1) {
        f32 v2 = kv2[k];
        f32 v8_2 = v2 / v7;
        f32 v8 = v8_2;
        if (active) arg6[row * arg1 + i] = v8;
      }
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 2x128x1>(input0, 8, 4, 8, 8, 1e-05, output0)

// calls quotient_by_row
KERNEL(2, 128, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, f32 arg4, f32 arg5, GLOBAL f32* RESTRICT arg6) {
  STARTED;
  f32 kx0[4];
  f32 kv2[4];
  const i32 lane = local_id(0), line = local_id(1);
  for (i32 base = (i32)group_id(0) * 128; base < arg2; base += (i32)group_count(0) * 128) {
    i32 row = base + line < arg2 ? base + line : arg2 - 1;
    const i32 active = base + line < arg2;
    i32 o0 = row * arg3;
    f32 sv0 = 0.0f;
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i32 i = lane + k * 2;
      if (i < arg1) {
        f32 x0 = arg0[o0 + i];
        kx0[k] = x0;
        sv0 = sv0 + x0;
      }
    }
    { const f32 other = (f32)SHUFFLE(sv0, 1); sv0 = sv0 + other; }
    f32 v0 = sv0;
    f32 v1_2 = v0 / arg4;
    f32 v1 = v1_2;
    f32 sv4 = 0.0f;
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i32 i = lane + k * 2;
      if (i < arg1) {
        f32 x0 = kx0[k];
        f32 v2_2 = x0 - v1;
        f32 v2 = v2_2;
        kv2[k] = v2;
        f32 v3_1 = v2 * v2;
        f32 v3 = v3_1;
        sv4 = sv4 + v3;
      }
    }
    { const f32 other = (f32)SHUFFLE(sv4, 1); sv4 = sv4 + other; }
    f32 v4 = sv4;
    f32 v5_2 = v4 / arg4;
    f32 v5 = v5_2;
    f32 v6_2 = v5 + arg5;
    f32 v6 = v6_2;
    f32 v7_1 = sqrt(v6);
    f32 v7 = v7_1;
    const f32 reciprocal_v7 = row_reciprocal(v7);
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i32 i = lane + k * 2;
      if (i < arg1) {
        f32 v2 = kv2[k];
        f32 v8 = quotient_by_row(v2, v7, reciprocal_v7);
        if (active) arg6[row * arg1 + i] = v8;
      }
    }
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(input0, 8, 4, 4, 8, 8, 1e-05, output0)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, f32 arg5, f32 arg6, Global<f32> arg7) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg4;
    f64 sv0 = 0.0;
    VECTORIZE for (i64 i = 0; i < arg1; ++i) {
      f32 x0 = arg0[o0 + i];
      { ANY_ORDER sv0 = sv0 + (f64)x0; }
    }
    f32 v0 = (f32)sv0;
    f32 v1_2 = v0 / arg5;
    f32 v1 = v1_2;
    f64 sv4 = 0.0;
    VECTORIZE for (i64 i = 0; i < arg1; ++i) {
      f32 x0 = arg0[o0 + i];
      f32 v2_2 = x0 - v1;
      f32 v2 = v2_2;
      f32 v3_1 = v2 * v2;
      f32 v3 = v3_1;
      { ANY_ORDER sv4 = sv4 + (f64)v3; }
    }
    f32 v4 = (f32)sv4;
    f32 v5_2 = v4 / arg5;
    f32 v5 = v5_2;
    f32 v6_2 = v5 + arg6;
    f32 v6 = v6_2;
    f32 v7_1 = sqrt(v6);
    f32 v7 = v7_1;
    VECTORIZE for (i64 i = 0; i < arg1; ++i) {
      f32 x0 = arg0[o0 + i];
      f32 v2_2 = x0 - v1;
      f32 v2 = v2_2;
      f32 v8_2 = v2 / v7;
      f32 v8 = v8_2;
      arg7[row * arg1 + i] = v8;
    }
  }
}
