// max(x, axis=0)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(input0, 4, 8, 4, 1, 8, 8, 8, output0)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, GLOBAL f32* RESTRICT arg8) {
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg5) {
    const i32 row = j / arg2, i = j - row * arg2, end = arg1;
    i32 o0 = 0;
    f32 t0 = AS_F32(0xff800000u);
    for (i32 b = 0; b < end; b += 4) {
      f32 s0 = AS_F32(0xff800000u);
      if (b < end - 3) {
        f32 p0[4];
        UNROLL for (i32 k = 0; k < 4; ++k) {
          const i32 n = b + k * 1;
          p0[k] = arg0[o0 + n * arg6 + i];
        }
        UNROLL for (i32 k = 0; k < 4; ++k) {
          const i32 n = b + k * 1;
          f32 x0 = p0[k];
          s0 = LARGER(s0, x0);
        }
      } else {
        for (i32 n = b; n < end; n += 1) {
          f32 x0 = arg0[o0 + n * arg7 + i];
          s0 = LARGER(s0, x0);
        }
      }
      t0 = LARGER(t0, s0);
    }
    arg8[j] = t0;
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(input0, 4, 8, 4, 1, 8, 8, 8, output0)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, GLOBAL f32* RESTRICT arg8) {
  STARTED;
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg5) {
    const i32 row = j / arg2, i = j - row * arg2, end = arg1;
    i32 o0 = 0;
    f32 t0 = AS_F32(0xff800000u);
    for (i32 b = 0; b < end; b += 4) {
      f32 s0 = AS_F32(0xff800000u);
      if (b < end - 3) {
        f32 p0[4];
        UNROLL for (i32 k = 0; k < 4; ++k) {
          const i32 n = b + k * 1;
          p0[k] = arg0[o0 + n * arg6 + i];
        }
        UNROLL for (i32 k = 0; k < 4; ++k) {
          const i32 n = b + k * 1;
          f32 x0 = p0[k];
          s0 = LARGER(s0, x0);
        }
      } else {
        for (i32 n = b; n < end; n += 1) {
          f32 x0 = arg0[o0 + n * arg7 + i];
          s0 = LARGER(s0, x0);
        }
      }
      t0 = LARGER(t0, s0);
    }
    arg8[j] = t0;
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(input0, 4, 8, 4, 1, output0, 8)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, Global<f32> arg5, i64 arg6) {
  i64 begin = (i64)group_id(2) * arg3, end = begin + arg3 < arg1 ? begin + arg3 : arg1;
  const i64 first = (i64)group_id(0) * 16, width = arg2 - first < 16 ? arg2 - first : 16;
  f32 s0[16];
  f32 t0[16];
  for (i64 row = group_id(1); row < arg4; row += group_count(1)) {
    i64 o0 = 0;
    VECTORIZE for (i64 j = 0; j < width; ++j) {
      t0[j] = AS_F32(0xff800000u);
    }
    for (i64 b = begin; b < end; b += 32) {
      const i64 stop = b + 32 < end ? b + 32 : end;
      VECTORIZE for (i64 j = 0; j < width; ++j) {
        s0[j] = AS_F32(0xff800000u);
      }
      for (i64 n = b; n < stop; ++n) {
        VECTORIZE for (i64 j = 0; j < width; ++j) {
          const i64 i = first + j;
          f32 x0 = arg0[o0 + n * arg6 + i];
          s0[j] = LARGER(s0[j], x0);
        }
      }
      VECTORIZE for (i64 j = 0; j < width; ++j) {
        t0[j] = LARGER(t0[j], s0[j]);
      }
    }
    VECTORIZE for (i64 j = 0; j < width; ++j) {
      arg5[row * arg2 + first + j] = t0[j];
    }
  }
}
