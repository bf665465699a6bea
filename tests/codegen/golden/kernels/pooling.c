// max_pool2d(image, 2)

// --- OpenCL, CUDA
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
