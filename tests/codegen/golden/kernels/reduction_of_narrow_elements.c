// sum(narrow_line)

// --- OpenCL
// workspace 32768 bytes
// kernel0<4096x1x1 of 256x1x1>(input0, 16777216, 1, 4096, 1, workspace+0)
// kernel1<1x1x1 of 1024x1x1>(workspace+0, 1, 4096, output0)

// calls bfloat_to_f32
KERNEL(256, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, i32 arg4, GLOBAL f64* arg5) {
  const i32 lane = local_id(0), line = 0;
  LOCAL f64 shared0[256];
  const i32 i = 0, begin = (i32)group_id(0) * arg3, end = begin + arg3 < arg1 ? begin + arg3 : arg1;
  for (i32 row = group_id(1); row < arg4; row += group_count(1)) {
    i32 o0 = 0;
    f64 t0 = 0.0;
    for (i32 b = begin + lane; b < end; b += 4096) {
      f32 s0 = 0.0f;
      if (b < end - 3840) {
        u16 p0[16];
        UNROLL for (i32 k = 0; k < 16; ++k) {
          const i32 n = b + k * 256;
          p0[k] = arg0[o0 + n];
        }
        UNROLL for (i32 k = 0; k < 16; ++k) {
          const i32 n = b + k * 256;
          f32 x0 = bfloat_to_f32(p0[k]);
          s0 = s0 + x0;
        }
      } else {
        for (i32 n = b; n < end; n += 256) {
          f32 x0 = bfloat_to_f32(arg0[o0 + n]);
          s0 = s0 + x0;
        }
      }
      t0 = t0 + (f64)s0;
    }
    BARRIER;
    shared0[line * 256 + lane] = t0;
    BARRIER;
    for (i32 distance = 128; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f64 other = shared0[line * 256 + lane + distance];
        t0 = t0 + other;
        shared0[line * 256 + lane] = t0;
      }
      BARRIER;
    }
    if (lane == 0) {
      arg5[(i32)group_id(0) * (arg4 * arg2) + row] = t0;
    }
  }
}

// calls f32_to_bfloat
KERNEL(1024, 1, 1) kernel1(GLOBAL const f64* RESTRICT arg0, i64 arg1, i64 arg2, GLOBAL u16* RESTRICT arg3) {
  const i32 lane = local_id(0), line = 0;
  LOCAL f64 shared[1024];
  for (i64 j = group_id(0); j < arg1; j += group_count(0)) {
    f64 t = 0.0;
    UNROLL_BY(8) for (i64 s = lane; s < arg2; s += 1024) { const f64 other = arg0[s * arg1 + j]; t = t + other; }
    BARRIER;
    shared[line * 1024 + lane] = t;
    BARRIER;
    for (i32 distance = 512; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f64 other = shared[line * 1024 + lane + distance];
        t = t + other;
        shared[line * 1024 + lane] = t;
      }
      BARRIER;
    }
    if (lane == 0) {
      arg3[j] = f32_to_bfloat((f32)t);
    }
  }
}

// --- CUDA
// workspace 8192 bytes
// kernel0<1024x1x1 of 1024x1x1>(input0, 16777216, 1, 16384, 1, workspace+0)
// kernel1<1x1x1 of 1024x1x1>(workspace+0, 1, 1024, output0)

// calls bfloat_to_f32
KERNEL(1024, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, i32 arg4, GLOBAL f64* arg5) {
  STARTED;
  const i32 lane = local_id(0), line = 0;
  LOCAL f64 shared0[1024];
  const i32 i = 0, begin = (i32)group_id(0) * arg3, end = begin + arg3 < arg1 ? begin + arg3 : arg1;
  for (i32 row = group_id(1); row < arg4; row += group_count(1)) {
    i32 o0 = 0;
    f64 t0 = 0.0;
    for (i32 b = begin + lane * 8; b < end; b += 16384) {
      f32 s0 = 0.0f;
      if (b <= end - 8200) {
        VARRAY(u16, 16, p0);
        UNROLL for (i32 k = 0; k < 2; ++k) {
          const i32 n = b + k * 8192;
          VLOAD(u16, 8, p0 + k * 8, arg0 + o0 + n);
        }
        UNROLL for (i32 k = 0; k < 16; ++k) {
          f32 x0 = bfloat_to_f32(p0[k]);
          s0 = s0 + x0;
        }
      } else {
        for (i32 first = b; first < end; first += 8192)
        for (i32 n = first; n < end && n < first + 8; ++n) {
          f32 x0 = bfloat_to_f32(arg0[o0 + n]);
          s0 = s0 + x0;
        }
      }
      t0 = t0 + (f64)s0;
    }
    { const f64 other = (f64)SHUFFLE(t0, 16); t0 = t0 + other; }
    { const f64 other = (f64)SHUFFLE(t0, 8); t0 = t0 + other; }
    { const f64 other = (f64)SHUFFLE(t0, 4); t0 = t0 + other; }
    { const f64 other = (f64)SHUFFLE(t0, 2); t0 = t0 + other; }
    { const f64 other = (f64)SHUFFLE(t0, 1); t0 = t0 + other; }
    BARRIER;
    if (lane % 32 == 0) shared0[lane / 32] = t0;
    BARRIER;
    t0 = shared0[lane % 32];
    { const f64 other = (f64)SHUFFLE(t0, 16); t0 = t0 + other; }
    { const f64 other = (f64)SHUFFLE(t0, 8); t0 = t0 + other; }
    { const f64 other = (f64)SHUFFLE(t0, 4); t0 = t0 + other; }
    { const f64 other = (f64)SHUFFLE(t0, 2); t0 = t0 + other; }
    { const f64 other = (f64)SHUFFLE(t0, 1); t0 = t0 + other; }
    if (lane == 0) {
      arg5[(i32)group_id(0) * (arg4 * arg2) + row] = t0;
    }
  }
}

// calls f32_to_bfloat
KERNEL(1024, 1, 1) kernel1(GLOBAL const f64* RESTRICT arg0, i64 arg1, i64 arg2, GLOBAL u16* RESTRICT arg3) {
  STARTED;
  const i32 lane = local_id(0), line = 0;
  LOCAL f64 shared[1024];
  for (i64 j = group_id(0); j < arg1; j += group_count(0)) {
    f64 t = 0.0;
    UNROLL_BY(8) for (i64 s = lane; s < arg2; s += 1024) { const f64 other = arg0[s * arg1 + j]; t = t + other; }
    { const f64 other = (f64)SHUFFLE(t, 16); t = t + other; }
    { const f64 other = (f64)SHUFFLE(t, 8); t = t + other; }
    { const f64 other = (f64)SHUFFLE(t, 4); t = t + other; }
    { const f64 other = (f64)SHUFFLE(t, 2); t = t + other; }
    { const f64 other = (f64)SHUFFLE(t, 1); t = t + other; }
    BARRIER;
    if (lane % 32 == 0) shared[lane / 32] = t;
    BARRIER;
    t = shared[lane % 32];
    { const f64 other = (f64)SHUFFLE(t, 16); t = t + other; }
    { const f64 other = (f64)SHUFFLE(t, 8); t = t + other; }
    { const f64 other = (f64)SHUFFLE(t, 4); t = t + other; }
    { const f64 other = (f64)SHUFFLE(t, 2); t = t + other; }
    { const f64 other = (f64)SHUFFLE(t, 1); t = t + other; }
    if (lane == 0) {
      arg3[j] = f32_to_bfloat((f32)t);
    }
  }
}

// --- Tenstorrent
// workspace 8192 bytes
// kernel0<1024x1x1 of 1x1x1>(input0, 16777216, 1, 16384, 1, workspace+0)
// kernel1<1x1x1 of 1x1x1>(workspace+0, 1, 1024, output0)

// calls bfloat_to_f32
KERNEL(1, 1, 1) kernel0(Global<const u16> arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, Global<f64> arg5) {
  i64 begin = (i64)group_id(0) * arg3, end = begin + arg3 < arg1 ? begin + arg3 : arg1;
  const i64 i = 0;
  for (i64 row = group_id(1); row < arg4; row += group_count(1)) {
    i64 o0 = 0;
    f64 t0 = 0.0;
    const i64 stretch = 128;
    for (i64 b = begin; b < end; b += stretch) {
      const i64 stop = b + stretch < end ? b + stretch : end;
      f32 s0 = 0.0f;
      VECTORIZE for (i64 n = b; n < stop; ++n) {
        f32 x0 = bfloat_to_f32(arg0[o0 + n]);
        { ANY_ORDER s0 = s0 + x0; }
      }
      t0 = t0 + (f64)s0;
    }
    arg5[(i64)group_id(0) * (arg4 * arg2) + row] = t0;
  }
}

// calls f32_to_bfloat
KERNEL(1, 1, 1) kernel1(Global<const f64> arg0, i64 arg1, i64 arg2, Global<u16> arg3) {
  for (i64 j = (i64)group_id(0) * 4096; j < arg1 && j < ((i64)group_id(0) + 1) * 4096; ++j) {
    f64 t = 0.0;
    for (i64 s = 0; s < arg2; ++s) t = t + arg0[s * arg1 + j];
    arg3[j] = f32_to_bfloat((f32)t);
  }
}
