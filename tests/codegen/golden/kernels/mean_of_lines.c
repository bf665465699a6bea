// mean(square, axis=0)

// --- OpenCL
// workspace 4096 bytes
// kernel0<8x1x2 of 32x8x1>(input0, 256, 256, 128, 1, workspace+0, 256, 256)
// kernel1<256x1x1 of 2x1x1>(workspace+0, 256, 2, 256, output0)

KERNEL(32, 8, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, i32 arg4, GLOBAL f64* arg5, i32 arg6, i32 arg7) {
  const i32 lane = local_id(0), line = local_id(1);
  LOCAL f64 shared0[256];
  const i32 begin = (i32)group_id(2) * arg3, end = begin + arg3 < arg1 ? begin + arg3 : arg1;
  for (i32 row = group_id(1); row < arg4; row += group_count(1)) {
    i32 o0 = 0;
    for (i32 column = (i32)group_id(0) * 32; column < arg2; column += (i32)group_count(0) * 32) {
      const i32 i = column + lane < arg2 ? column + lane : arg2 - 1;
      f64 t0 = 0.0;
      for (i32 b = begin + line; b < end; b += 32) {
        f32 s0 = 0.0f;
        if (b < end - 24) {
          f32 p0[4];
          UNROLL for (i32 k = 0; k < 4; ++k) {
            const i32 n = b + k * 8;
            p0[k] = arg0[o0 + n * arg6 + i];
          }
          UNROLL for (i32 k = 0; k < 4; ++k) {
            const i32 n = b + k * 8;
            f32 x0 = p0[k];
            s0 = s0 + x0;
          }
        } else {
          for (i32 n = b; n < end; n += 8) {
            f32 x0 = arg0[o0 + n * arg7 + i];
            s0 = s0 + x0;
          }
        }
        t0 = t0 + (f64)s0;
      }
      BARRIER;
      shared0[line * 32 + lane] = t0;
      BARRIER;
      for (i32 distance = 4; distance > 0; distance /= 2) {
        if (line < distance) {
          const f64 other = shared0[(line + distance) * 32 + lane];
          t0 = t0 + other;
          shared0[line * 32 + lane] = t0;
        }
        BARRIER;
      }
      if (line == 0 && column + lane < arg2) {
        arg5[(i32)group_id(2) * (arg4 * arg2) + row * arg2 + i] = t0;
      }
    }
  }
}

KERNEL(2, 1, 1) kernel1(GLOBAL const f64* RESTRICT arg0, i64 arg1, i64 arg2, f32 arg3, GLOBAL f32* RESTRICT arg4) {
  const i32 lane = local_id(0), line = 0;
  LOCAL f64 shared[2];
  for (i64 j = group_id(0); j < arg1; j += group_count(0)) {
    f64 t = 0.0;
    UNROLL_BY(8) for (i64 s = lane; s < arg2; s += 2) { const f64 other = arg0[s * arg1 + j]; t = t + other; }
    BARRIER;
    shared[line * 2 + lane] = t;
    BARRIER;
    for (i32 distance = 1; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f64 other = shared[line * 2 + lane + distance];
        t = t + other;
        shared[line * 2 + lane] = t;
      }
      BARRIER;
    }
    if (lane == 0) {
      const f32 x0 = ((f32)t);
      f32 v0_2 = x0 / arg3;
      f32 v0 = v0_2;
      arg4[j] = v0;
    }
  }
}

// --- CUDA
// workspace 16384 bytes
// kernel0<2x1x8 of 128x2x1>(input0, 256, 256, 32, 1, workspace+0, 256, 256)
// kernel1<256x1x1 of 8x1x1>(workspace+0, 256, 8, 256, output0)

KERNEL(128, 2, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, i32 arg4, GLOBAL f64* arg5, i32 arg6, i32 arg7) {
  STARTED;
  const i32 lane = local_id(0), line = local_id(1);
  LOCAL f64 shared0[256];
  const i32 begin = (i32)group_id(2) * arg3, end = begin + arg3 < arg1 ? begin + arg3 : arg1;
  for (i32 row = group_id(1); row < arg4; row += group_count(1)) {
    i32 o0 = 0;
    for (i32 column = (i32)group_id(0) * 128; column < arg2; column += (i32)group_count(0) * 128) {
      const i32 i = column + lane < arg2 ? column + lane : arg2 - 1;
      f64 t0 = 0.0;
      for (i32 b = begin + line; b < end; b += 8) {
        f32 s0 = 0.0f;
        if (b < end - 6) {
          f32 p0[4];
          UNROLL for (i32 k = 0; k < 4; ++k) {
            const i32 n = b + k * 2;
            p0[k] = arg0[o0 + n * arg6 + i];
          }
          UNROLL for (i32 k = 0; k < 4; ++k) {
            const i32 n = b + k * 2;
            f32 x0 = p0[k];
            s0 = s0 + x0;
          }
        } else {
          for (i32 n = b; n < end; n += 2) {
            f32 x0 = arg0[o0 + n * arg7 + i];
            s0 = s0 + x0;
          }
        }
        t0 = t0 + (f64)s0;
      }
      BARRIER;
      shared0[line * 128 + lane] = t0;
      BARRIER;
      for (i32 distance = 1; distance > 0; distance /= 2) {
        if (line < distance) {
          const f64 other = shared0[(line + distance) * 128 + lane];
          t0 = t0 + other;
          shared0[line * 128 + lane] = t0;
        }
        BARRIER;
      }
      if (line == 0 && column + lane < arg2) {
        arg5[(i32)group_id(2) * (arg4 * arg2) + row * arg2 + i] = t0;
      }
    }
  }
}

KERNEL(8, 1, 1) kernel1(GLOBAL const f64* RESTRICT arg0, i64 arg1, i64 arg2, f32 arg3, GLOBAL f32* RESTRICT arg4) {
  STARTED;
  const i32 lane = local_id(0), line = 0;
  LOCAL f64 shared[8];
  for (i64 j = group_id(0); j < arg1; j += group_count(0)) {
    f64 t = 0.0;
    UNROLL_BY(8) for (i64 s = lane; s < arg2; s += 8) { const f64 other = arg0[s * arg1 + j]; t = t + other; }
    BARRIER;
    shared[line * 8 + lane] = t;
    BARRIER;
    for (i32 distance = 4; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f64 other = shared[line * 8 + lane + distance];
        t = t + other;
        shared[line * 8 + lane] = t;
      }
      BARRIER;
    }
    if (lane == 0) {
      const f32 x0 = ((f32)t);
      f32 v0_2 = x0 / arg3;
      f32 v0 = v0_2;
      arg4[j] = v0;
    }
  }
}

// --- Tenstorrent
// workspace 9216 bytes
// kernel0<16x1x4 of 1x1x1>(input0, 256, 256, 64, 1, workspace+0, 256)
// kernel1<1x1x1 of 1x1x1>(workspace+0, 256, 4, workspace+8192)
// kernel2<4x1x1 of 1x1x1>(workspace+8192, output0, 256, 64, 256)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, Global<f64> arg5, i64 arg6) {
  i64 begin = (i64)group_id(2) * arg3, end = begin + arg3 < arg1 ? begin + arg3 : arg1;
  const i64 first = (i64)group_id(0) * 16, width = arg2 - first < 16 ? arg2 - first : 16;
  f32 s0[16];
  f64 t0[16];
  for (i64 row = group_id(1); row < arg4; row += group_count(1)) {
    i64 o0 = 0;
    VECTORIZE for (i64 j = 0; j < width; ++j) {
      t0[j] = 0.0;
    }
    for (i64 b = begin; b < end; b += 32) {
      const i64 stop = b + 32 < end ? b + 32 : end;
      VECTORIZE for (i64 j = 0; j < width; ++j) {
        s0[j] = 0.0f;
      }
      for (i64 n = b; n < stop; ++n) {
        VECTORIZE for (i64 j = 0; j < width; ++j) {
          const i64 i = first + j;
          f32 x0 = arg0[o0 + n * arg6 + i];
          s0[j] = s0[j] + x0;
        }
      }
      VECTORIZE for (i64 j = 0; j < width; ++j) {
        t0[j] = t0[j] + (f64)s0[j];
      }
    }
    VECTORIZE for (i64 j = 0; j < width; ++j) {
      arg5[(i64)group_id(2) * (arg4 * arg2) + row * arg2 + first + j] = t0[j];
    }
  }
}

KERNEL(1, 1, 1) kernel1(Global<const f64> arg0, i64 arg1, i64 arg2, Global<f32> arg3) {
  for (i64 j = (i64)group_id(0) * 4096; j < arg1 && j < ((i64)group_id(0) + 1) * 4096; ++j) {
    f64 t = 0.0;
    for (i64 s = 0; s < arg2; ++s) t = t + arg0[s * arg1 + j];
    arg3[j] = (f32)t;
  }
}

KERNEL(1, 1, 1) kernel2(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, f32 arg4) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    f32 v0_2 = x0 / arg4;
    f32 v0 = v0_2;
    arg1[o1 + i] = v0;
  }
}
