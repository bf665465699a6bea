// avg_pool3d(volume, 2)

// --- OpenCL
// workspace 16384 bytes
// kernel0<16x1x1 of 256x1x1>(input0, workspace+0, 8, 4, 2, 2, 1, 0, 8, 4, 2, 2, 1, 0, 8, 4, 2, 2, 1, 0, 4096)
// kernel1<4x1x1 of 256x1x1>(workspace+0, output0, 4096, 8)

// calls half_to_f32
KERNEL(256, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg20; j += (i64)group_count(0) * 256) {
    i64 image = j;
    const i64 y2 = image % arg15 * arg17 - arg19;
    image /= arg15;
    const i64 y1 = image % arg9 * arg11 - arg13;
    image /= arg9;
    const i64 y0 = image % arg3 * arg5 - arg7;
    image /= arg3;
    const i64 from = image * arg2 * arg8 * arg14;
    f64 sum = 0;
    for (i64 w0 = 0; w0 < arg4; ++w0) {
      const i64 z0 = y0 + w0 * arg6;
      if (z0 < 0 || z0 >= arg2) continue;
      for (i64 w1 = 0; w1 < arg10; ++w1) {
        const i64 z1 = y1 + w1 * arg12;
        if (z1 < 0 || z1 >= arg8) continue;
        for (i64 w2 = 0; w2 < arg16; ++w2) {
          const i64 z2 = y2 + w2 * arg18;
          if (z2 < 0 || z2 >= arg14) continue;
          const i64 tap = ((w0) * arg10 + w1) * arg16 + w2, pixel = ((z0) * arg8 + z1) * arg14 + z2;
          sum += (f64)half_to_f32(arg0[from + pixel]);
        }
      }
    }
    arg1[j] = (f32)sum;
  }
}

// calls f32_to_half
KERNEL(256, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, f32 arg3) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 256 + local_id(0)) * 4; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 4;
    VARRAY(f32, 4, p0);
    if (whole) { VLOAD(f32, 4, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(u16, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 x0 = p0[l];
      f32 v0_2 = x0 / arg3;
      f32 v0 = v0_2;
      q0[l] = f32_to_half(v0);
    }
    if (whole) { VSTORE(u16, 4, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// --- CUDA
// workspace 16384 bytes
// kernel0<4x1x1 of 256x1x1>(input0, workspace+0, 1024, 1, 4, 4, 8, 8, 4, 8)
// kernel1<4x1x1 of 256x1x1>(workspace+0, output0, 4096, 8)

// calls half_to_f32
KERNEL(256, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9) {
  STARTED;
  enum { SIZE_Y = 2, SIZE_X = 2, STRIDE_Y = 2, STRIDE_X = 2, DILATION_Y = 1, DILATION_X = 1, PAD_Y = 0, PAD_X = 0, TOGETHER = 4, SPAN = 8, SHIFT = 0, SIZE_Z = 2, STRIDE_Z = 2, DILATION_Z = 1, PAD_Z = 0 };
  const u32 j = blockIdx.x * 256u + threadIdx.x;
  if (j < (u32)arg2) {
    const u32 chunk = j % (u32)arg3, line = j / (u32)arg3, oy = line % (u32)arg4, slice = line / (u32)arg4, oz = slice % (u32)arg8, plane = slice / (u32)arg8;
    const i32 x0 = (i32)chunk * (TOGETHER * STRIDE_X) - PAD_X, y0 = (i32)oy * STRIDE_Y - PAD_Y, rows = (i32)arg6, columns = (i32)arg7;
    
    f64 sum[TOGETHER];
    UNROLL for (i32 w = 0; w < TOGETHER; ++w) sum[w] = 0;
    const i32 planes = (i32)arg9;
    const auto* const volume = arg0 + (i64)plane * (planes * rows * columns);
    for (i32 kz = 0; kz < SIZE_Z; ++kz) {
      const i32 z = (i32)oz * STRIDE_Z - PAD_Z + kz * DILATION_Z;
      if (z >= 0 && z < planes) {
        const auto* const from = volume + z * (rows * columns);
        UNROLL for (i32 ky = 0; ky < SIZE_Y; ++ky) {
          const i32 y = y0 + ky * DILATION_Y;
          if (y >= 0 && y < rows) {
            f32 values[SPAN];
            UNROLL for (i32 s = -SHIFT; s < SPAN; s += 4) {
              const i32 x = x0 + s, inside = x >= 0 && x < columns;
              VARRAY(u16, 4, word);
              if (inside) { VLOAD(u16, 4, word, from + y * columns + x); }
              UNROLL for (i32 l = 0; l < 4; ++l) if (s + l >= 0 && s + l < SPAN) values[s + l] = inside ? half_to_f32(word[l]) : 0.0f;
            }
            UNROLL for (i32 kx = 0; kx < SIZE_X; ++kx) {
              const i32 tap = ky * SIZE_X + kx;
              UNROLL for (i32 w = 0; w < TOGETHER; ++w) {
                const f32 value = values[w * STRIDE_X + kx * DILATION_X];
                sum[w] += (f64)value;
              }
            }
          }
        }
      }
    }
    const i64 into = (i64)line * arg5 + chunk * TOGETHER;
    VARRAY(f32, TOGETHER, r);
    UNROLL for (i32 w = 0; w < TOGETHER; ++w) r[w] = (f32)sum[w];
    VSTORE(f32, TOGETHER, r, arg1 + into);
  }
}

// calls f32_to_half
KERNEL(256, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, f32 arg3) {
  STARTED;
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 256 + local_id(0)) * 4; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 4;
    VARRAY(f32, 4, p0);
    if (whole) { VLOAD(f32, 4, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(u16, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 x0 = p0[l];
      f32 v0_2 = x0 / arg3;
      f32 v0 = v0_2;
      q0[l] = f32_to_half(v0);
    }
    if (whole) { VSTORE(u16, 4, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// --- Tenstorrent
// workspace 16384 bytes
// kernel0<1024x1x1 of 1x1x1>(input0, workspace+0, 8, 4, 2, 2, 1, 0, 8, 4, 2, 2, 1, 0, 8, 4, 2, 2, 1, 0, 4096, 4)
// kernel1<64x1x1 of 1x1x1>(workspace+0, output0, 4096, 64, 8)

// calls half_to_f32
KERNEL(1, 1, 1) kernel0(Global<const u16> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20, i64 arg21) {
  const i64 first = (i64)group_id(0) * arg21, last = first + arg21 < arg20 ? first + arg21 : arg20;
  for (i64 j = first; j < last; ++j) {
    i64 image = j;
    const i64 y2 = image % arg15 * arg17 - arg19;
    image /= arg15;
    const i64 y1 = image % arg9 * arg11 - arg13;
    image /= arg9;
    const i64 y0 = image % arg3 * arg5 - arg7;
    image /= arg3;
    const i64 from = image * arg2 * arg8 * arg14;
    f64 sum = 0;
    for (i64 w0 = 0; w0 < arg4; ++w0) {
      const i64 z0 = y0 + w0 * arg6;
      if (z0 < 0 || z0 >= arg2) continue;
      for (i64 w1 = 0; w1 < arg10; ++w1) {
        const i64 z1 = y1 + w1 * arg12;
        if (z1 < 0 || z1 >= arg8) continue;
        for (i64 w2 = 0; w2 < arg16; ++w2) {
          const i64 z2 = y2 + w2 * arg18;
          if (z2 < 0 || z2 >= arg14) continue;
          const i64 tap = ((w0) * arg10 + w1) * arg16 + w2, pixel = ((z0) * arg8 + z1) * arg14 + z2;
          sum += (f64)half_to_f32(arg0[from + pixel]);
        }
      }
    }
    arg1[j] = (f32)sum;
  }
}

// calls f32_to_half
KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<u16> arg1, i64 arg2, i64 arg3, f32 arg4) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    f32 v0_2 = x0 / arg4;
    f32 v0 = v0_2;
    arg1[o1 + i] = f32_to_half(v0);
  }
}
