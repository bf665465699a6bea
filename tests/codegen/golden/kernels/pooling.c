// max_pool2d(image, 2)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(input0, output0, 5, 2, 2, 2, 1, 0, 5, 2, 2, 2, 1, 0, 8)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg14; j += (i64)group_count(0) * 256) {
    i64 image = j;
    const i64 y1 = image % arg9 * arg11 - arg13;
    image /= arg9;
    const i64 y0 = image % arg3 * arg5 - arg7;
    image /= arg3;
    const i64 from = image * arg2 * arg8;
    f32 best = AS_F32(0xff800000u);
    for (i64 w0 = 0; w0 < arg4; ++w0) {
      const i64 z0 = y0 + w0 * arg6;
      if (z0 < 0 || z0 >= arg2) continue;
      for (i64 w1 = 0; w1 < arg10; ++w1) {
        const i64 z1 = y1 + w1 * arg12;
        if (z1 < 0 || z1 >= arg8) continue;
        const i64 tap = (w0) * arg10 + w1, pixel = (z0) * arg8 + z1;
        const f32 value = arg0[from + pixel];
        best = best == best && !(value <= best) ? value : best;
      }
    }
    arg1[j] = best;
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(input0, output0, 4, 1, 2, 2, 5, 5, 2)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  STARTED;
  enum { SIZE_Y = 2, SIZE_X = 2, STRIDE_Y = 2, STRIDE_X = 2, DILATION_Y = 1, DILATION_X = 1, PAD_Y = 0, PAD_X = 0, TOGETHER = 4, SPAN = 8 };
  const u32 j = blockIdx.x * 256u + threadIdx.x;
  if (j < (u32)arg2) {
    const u32 chunk = j % (u32)arg3, line = j / (u32)arg3, oy = line % (u32)arg4, plane = line / (u32)arg4;
    const i32 x0 = (i32)chunk * (TOGETHER * STRIDE_X) - PAD_X, y0 = (i32)oy * STRIDE_Y - PAD_Y, rows = (i32)arg6, columns = (i32)arg7;
    
    f32 sum[TOGETHER];
    UNROLL for (i32 w = 0; w < TOGETHER; ++w) sum[w] = AS_F32(0xff800000u);
    const auto* const from = arg0 + (i64)plane * (rows * columns);
    UNROLL for (i32 ky = 0; ky < SIZE_Y; ++ky) {
      const i32 y = y0 + ky * DILATION_Y;
      if (y >= 0 && y < rows) {
        f32 values[SPAN];
        UNROLL for (i32 s = 0; s < SPAN; ++s) {
          const i32 x = x0 + s;
          values[s] = x >= 0 && x < columns ? from[y * columns + x] : AS_F32(0xff800000u);
        }
        UNROLL for (i32 kx = 0; kx < SIZE_X; ++kx) {
          const i32 tap = ky * SIZE_X + kx;
          UNROLL for (i32 w = 0; w < TOGETHER; ++w) {
            const f32 value = values[w * STRIDE_X + kx * DILATION_X];
            sum[w] = LARGER(sum[w], value);
          }
        }
      }
    }
    
    const i64 into = (i64)line * arg5 + chunk * TOGETHER;
    VARRAY(f32, TOGETHER, r);
    UNROLL for (i32 w = 0; w < TOGETHER; ++w) r[w] = sum[w];
    UNROLL for (i32 w = 0; w < TOGETHER; ++w) if (chunk * TOGETHER + w < (u32)arg8) arg1[into + w] = r[w];
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(input0, output0, 5, 2, 2, 2, 1, 0, 5, 2, 2, 2, 1, 0, 8, 8)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15) {
  const i64 first = (i64)group_id(0) * arg15, last = first + arg15 < arg14 ? first + arg15 : arg14;
  for (i64 j = first; j < last; ++j) {
    i64 image = j;
    const i64 y1 = image % arg9 * arg11 - arg13;
    image /= arg9;
    const i64 y0 = image % arg3 * arg5 - arg7;
    image /= arg3;
    const i64 from = image * arg2 * arg8;
    f32 best = AS_F32(0xff800000u);
    for (i64 w0 = 0; w0 < arg4; ++w0) {
      const i64 z0 = y0 + w0 * arg6;
      if (z0 < 0 || z0 >= arg2) continue;
      for (i64 w1 = 0; w1 < arg10; ++w1) {
        const i64 z1 = y1 + w1 * arg12;
        if (z1 < 0 || z1 >= arg8) continue;
        const i64 tap = (w0) * arg10 + w1, pixel = (z0) * arg8 + z1;
        const f32 value = arg0[from + pixel];
        best = best == best && !(value <= best) ? value : best;
      }
    }
    arg1[j] = best;
  }
}
