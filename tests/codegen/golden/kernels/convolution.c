// conv2d(image, filter, padding=1)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(input0, input1, output0, 5, 5, 3, 1, 1, 1, 5, 5, 3, 1, 1, 1, 3, 2, 2, 3, 75)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg19; j += (i64)group_count(0) * 256) {
    i64 image = j;
    const i64 y1 = image % arg10 * arg12 - arg14;
    image /= arg10;
    const i64 y0 = image % arg4 * arg6 - arg8;
    image /= arg4;
    const i64 o = image % arg15, batch = image / arg15, group = o / arg18;
    f32 sum = 0;
    for (i64 c = 0; c < arg16; ++c) {
      const i64 from = (batch * arg17 + group * arg16 + c) * (arg3 * arg9), taps = (o * arg16 + c) * (arg5 * arg11);
      for (i64 w0 = 0; w0 < arg5; ++w0) {
        const i64 z0 = y0 + w0 * arg7;
        if (z0 < 0 || z0 >= arg3) continue;
        for (i64 w1 = 0; w1 < arg11; ++w1) {
          const i64 z1 = y1 + w1 * arg13;
          if (z1 < 0 || z1 >= arg9) continue;
          const i64 tap = (w0) * arg11 + w1, pixel = (z0) * arg9 + z1;
          sum = fma(arg0[from + pixel], arg1[taps + tap], sum);
        }
      }
    }
    arg2[j] = sum;
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(input0, input1, output0, 5, 5, 3, 1, 1, 1, 5, 5, 3, 1, 1, 1, 3, 2, 2, 3, 75)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19) {
  STARTED;
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg19; j += (i64)group_count(0) * 256) {
    i64 image = j;
    const i64 y1 = image % arg10 * arg12 - arg14;
    image /= arg10;
    const i64 y0 = image % arg4 * arg6 - arg8;
    image /= arg4;
    const i64 o = image % arg15, batch = image / arg15, group = o / arg18;
    f32 sum = 0;
    for (i64 c = 0; c < arg16; ++c) {
      const i64 from = (batch * arg17 + group * arg16 + c) * (arg3 * arg9), taps = (o * arg16 + c) * (arg5 * arg11);
      for (i64 w0 = 0; w0 < arg5; ++w0) {
        const i64 z0 = y0 + w0 * arg7;
        if (z0 < 0 || z0 >= arg3) continue;
        for (i64 w1 = 0; w1 < arg11; ++w1) {
          const i64 z1 = y1 + w1 * arg13;
          if (z1 < 0 || z1 >= arg9) continue;
          const i64 tap = (w0) * arg11 + w1, pixel = (z0) * arg9 + z1;
          sum = fma(arg0[from + pixel], arg1[taps + tap], sum);
        }
      }
    }
    arg2[j] = sum;
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<38x1x1 of 1x1x1>(input0, input1, output0, 5, 5, 3, 1, 1, 1, 5, 5, 3, 1, 1, 1, 3, 2, 2, 3, 75, 2)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<const f32> arg1, Global<f32> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20) {
  const i64 first = (i64)group_id(0) * arg20, last = first + arg20 < arg19 ? first + arg20 : arg19;
  for (i64 j = first; j < last; ++j) {
    i64 image = j;
    const i64 y1 = image % arg10 * arg12 - arg14;
    image /= arg10;
    const i64 y0 = image % arg4 * arg6 - arg8;
    image /= arg4;
    const i64 o = image % arg15, batch = image / arg15, group = o / arg18;
    f32 sum = 0;
    for (i64 c = 0; c < arg16; ++c) {
      const i64 from = (batch * arg17 + group * arg16 + c) * (arg3 * arg9), taps = (o * arg16 + c) * (arg5 * arg11);
      for (i64 w0 = 0; w0 < arg5; ++w0) {
        const i64 z0 = y0 + w0 * arg7;
        if (z0 < 0 || z0 >= arg3) continue;
        for (i64 w1 = 0; w1 < arg11; ++w1) {
          const i64 z1 = y1 + w1 * arg13;
          if (z1 < 0 || z1 >= arg9) continue;
          const i64 tap = (w0) * arg11 + w1, pixel = (z0) * arg9 + z1;
          sum = fma(arg0[from + pixel], arg1[taps + tap], sum);
        }
      }
    }
    arg2[j] = sum;
  }
}
