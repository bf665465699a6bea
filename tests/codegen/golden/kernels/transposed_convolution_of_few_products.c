// conv_transpose2d(image, image_filter, stride=2, padding=1)

// --- OpenCL
// workspace 0 bytes
// kernel0<3x1x1 of 128x1x1>(input0, input1, output0, 300, 10, 1, 10, 1, 2, 4, 5, 1, 2, 4, 5, 1, 3, 2, 25, 48, 3, 2, 16)

KERNEL(128, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12, i32 arg13, i32 arg14, i32 arg15, i32 arg16, i32 arg17, i32 arg18, i32 arg19, i32 arg20, i32 arg21, i32 arg22) {
  const i32 j = (i32)group_id(0) * 128 + local_id(0);
  if (j < arg3) {
    i32 rest = j;
    const i32 q1 = (i32)((u32)rest % (u32)arg4) + arg5;
    rest = (i32)((u32)rest / (u32)arg4);
    const i32 q0 = (i32)((u32)rest % (u32)arg6) + arg7;
    rest = (i32)((u32)rest / (u32)arg6);
    const i32 o = (i32)((u32)rest % (u32)arg20), batch = (i32)((u32)rest / (u32)arg20), group = o / arg16;
    const i32 from = (batch * arg21 + group * arg17) * arg18, first = group * arg17 * arg19 + o % arg16 * arg22;
    f32 sum = 0.0f;
    for (i32 t0 = q0 % arg8; t0 < arg9; t0 += arg8) {
      const i32 i0 = (q0 - t0 * arg11) / arg8;
      if (q0 >= t0 * arg11 && i0 < arg10) {
        for (i32 t1 = q1 % arg12; t1 < arg13; t1 += arg12) {
          const i32 i1 = (q1 - t1 * arg15) / arg12;
          if (q1 >= t1 * arg15 && i1 < arg14) {
            const i32 at = from + ((0 * arg10 + i0) * arg14 + i1), by = first + ((0 * arg9 + t0) * arg13 + t1);
            UNROLL_BY(8) for (i32 c = 0; c < arg17; ++c) sum = fma(arg0[at + c * arg18], arg1[by + c * arg19], sum);
          }
        }
      }
    }
    arg2[j] = sum;
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<3x1x1 of 128x1x1>(input0, input1, output0, 300, 10, 1, 10, 1, 2, 4, 5, 1, 2, 4, 5, 1, 3, 2, 25, 48, 3, 2, 16)

KERNEL(128, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12, i32 arg13, i32 arg14, i32 arg15, i32 arg16, i32 arg17, i32 arg18, i32 arg19, i32 arg20, i32 arg21, i32 arg22) {
  STARTED;
  const i32 j = (i32)group_id(0) * 128 + local_id(0);
  if (j < arg3) {
    i32 rest = j;
    const i32 q1 = (i32)((u32)rest % (u32)arg4) + arg5;
    rest = (i32)((u32)rest / (u32)arg4);
    const i32 q0 = (i32)((u32)rest % (u32)arg6) + arg7;
    rest = (i32)((u32)rest / (u32)arg6);
    const i32 o = (i32)((u32)rest % (u32)arg20), batch = (i32)((u32)rest / (u32)arg20), group = o / arg16;
    const i32 from = (batch * arg21 + group * arg17) * arg18, first = group * arg17 * arg19 + o % arg16 * arg22;
    f32 sum = 0.0f;
    for (i32 t0 = q0 % arg8; t0 < arg9; t0 += arg8) {
      const i32 i0 = (q0 - t0 * arg11) / arg8;
      if (q0 >= t0 * arg11 && i0 < arg10) {
        for (i32 t1 = q1 % arg12; t1 < arg13; t1 += arg12) {
          const i32 i1 = (q1 - t1 * arg15) / arg12;
          if (q1 >= t1 * arg15 && i1 < arg14) {
            const i32 at = from + ((0 * arg10 + i0) * arg14 + i1), by = first + ((0 * arg9 + t0) * arg13 + t1);
            UNROLL_BY(8) for (i32 c = 0; c < arg17; ++c) sum = fma(arg0[at + c * arg18], arg1[by + c * arg19], sum);
          }
        }
      }
    }
    arg2[j] = sum;
  }
}

// --- Tenstorrent
// workspace 3072 bytes
// kernel0<2x1x1 of 1x1x1>(workspace+0, 100, 64, 0)
// kernel1<1x1x1 of 1x1x1>(input0, workspace+0, 5, 10, 10, 5, 5, 10)
// kernel0<3x1x1 of 1x1x1>(workspace+1536, 130, 64, 0)
// kernel2<1x2x1 of 1x1x1>(workspace+0, workspace+1536, 45, 2, 1, 45, 50, 10, 65)
// kernel0<5x1x1 of 1x1x1>(workspace+0, 260, 64, 0)
// kernel3<3x1x1 of 1x1x1>(workspace+1536, workspace+0, 130, 64, 2)
// kernel0<6x1x1 of 1x1x1>(workspace+1536, 338, 64, 0)
// kernel2<1x7x1 of 1x1x1>(workspace+0, workspace+1536, 9, 26, 4, 9, 10, 2, 13)
// kernel4<1x3x1 of 1x1x1>(input1, workspace+0, 16, 6, 2, 16, 2, 15, 16, 48, 32, 16, -1)
// kernel5<300x1x1 of 1x1x1>(workspace+1536, workspace+0, output0, 13, 10, 4, 1, 1, 0, 13, 10, 4, 1, 1, 0, 3, 2, 2, 3, 300, 1)

KERNEL(1, 1, 1) kernel0(Global<f32> arg0, i64 arg1, i64 arg2, f32 arg3) {
  i64 first = (i64)group_id(0) * arg2, last = first + arg2 < arg1 ? first + arg2 : arg1;
  i64 o0 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    arg0[o0 + i] = arg3;
  }
}

KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg6;
    i64 o1 = row * arg7;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      f32 x0 = arg0[o0 + i];
      arg1[o1 + i] = x0;
    }
  }
}

KERNEL(1, 1, 1) kernel2(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg6;
    i64 o1 = arg7 + row * arg8;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      f32 x0 = arg0[o0 + i];
      arg1[o1 + i] = x0;
    }
  }
}

KERNEL(1, 1, 1) kernel3(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i * arg4] = x0;
  }
}

KERNEL(1, 1, 1) kernel4(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 piece = begin; piece < end; piece += 32) {
    const i64 stop = piece + 32 < end ? piece + 32 : end;
    for (i64 row = first; row < last; ++row) {
      i64 i1 = row % arg6, r1 = row / arg6;
      i64 o0 = arg7 + r1 * arg8 + i1 * arg9;
      i64 o1 = r1 * arg10 + i1 * arg11;
      VECTORIZE for (i64 i = piece; i < stop; ++i) {
        f32 x0 = arg0[o0 + i * arg12];
        arg1[o1 + i] = x0;
      }
    }
  }
}

KERNEL(1, 1, 1) kernel5(Global<const f32> arg0, Global<const f32> arg1, Global<f32> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20) {
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
