// sum(x * y)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 8x32x1>(input0, input1, 32, 1, output0)

KERNEL(8, 32, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, i32 arg2, i32 arg3, GLOBAL f32* RESTRICT arg4) {
  const i32 lane = local_id(0), line = local_id(1);
  LOCAL f32 shared_sv1[256];
  for (i32 base = (i32)group_id(0) * 32; base < arg3; base += (i32)group_count(0) * 32) {
    i32 row = base + line < arg3 ? base + line : arg3 - 1;
    const i32 active = base + line < arg3;
    i32 o0 = 0;
    i32 o1 = 0;
    f32 sv1 = 0.0f;
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i32 i = lane + k * 8;
      if (i < arg2) {
        f32 x1 = arg1[o1 + i];
        f32 x0 = arg0[o0 + i];
        f32 v0_2 = x0 * x1;
        f32 v0 = v0_2;
        sv1 = sv1 + v0;
      }
    }
    BARRIER;
    shared_sv1[line * 8 + lane] = sv1;
    BARRIER;
    for (i32 distance = 4; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f32 other = shared_sv1[line * 8 + lane + distance]; sv1 = sv1 + other;
        shared_sv1[line * 8 + lane] = sv1;
      }
      BARRIER;
    }
    sv1 = shared_sv1[line * 8];
    f32 v1 = sv1;
    if (lane == 0 && active) arg4[row] = v1;
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 8x32x1>(input0, input1, 32, 1, output0)

KERNEL(8, 32, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, i32 arg2, i32 arg3, GLOBAL f32* RESTRICT arg4) {
  STARTED;
  const i32 lane = local_id(0), line = local_id(1);
  for (i32 base = (i32)group_id(0) * 32; base < arg3; base += (i32)group_count(0) * 32) {
    i32 row = base + line < arg3 ? base + line : arg3 - 1;
    const i32 active = base + line < arg3;
    i32 o0 = 0;
    i32 o1 = 0;
    f32 sv1 = 0.0f;
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i32 i = lane + k * 8;
      if (i < arg2) {
        f32 x1 = arg1[o1 + i];
        f32 x0 = arg0[o0 + i];
        f32 v0_2 = x0 * x1;
        f32 v0 = v0_2;
        sv1 = sv1 + v0;
      }
    }
    { const f32 other = (f32)SHUFFLE(sv1, 4); sv1 = sv1 + other; }
    { const f32 other = (f32)SHUFFLE(sv1, 2); sv1 = sv1 + other; }
    { const f32 other = (f32)SHUFFLE(sv1, 1); sv1 = sv1 + other; }
    f32 v1 = sv1;
    if (lane == 0 && active) arg4[row] = v1;
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(input0, input1, 32, 1, 1, output0)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<const f32> arg1, i64 arg2, i64 arg3, i64 arg4, Global<f32> arg5) {
  i64 first = (i64)group_id(0) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = 0;
    i64 o1 = 0;
    f64 sv1 = 0.0;
    VECTORIZE for (i64 i = 0; i < arg2; ++i) {
      f32 x1 = arg1[o1 + i];
      f32 x0 = arg0[o0 + i];
      f32 v0_2 = x0 * x1;
      f32 v0 = v0_2;
      { ANY_ORDER sv1 = sv1 + (f64)v0; }
    }
    f32 v1 = (f32)sv1;
    arg5[row] = v1;
  }
}
