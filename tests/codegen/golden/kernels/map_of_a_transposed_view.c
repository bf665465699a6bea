// x + w.T

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 8x32x1>(input0, input1, output0, 8, 4, 8, 8, 4)

KERNEL(8, 32, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7) {
  for (i32 row = (i32)group_id(1) * 32 + local_id(1); row < arg4; row += (i32)group_count(1) * 32) {
    i32 o0 = row * arg5;
    i32 o1 = row;
    i32 o2 = row * arg6;
    for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 1; i < arg3; i = arg3) {
      f32 x0 = arg0[o0 + i];
      f32 x1 = arg1[o1 + i * arg7];
      f32 v0_2 = x0 + x1;
      f32 v0 = v0_2;
      arg2[o2 + i] = v0;
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 8x32x1>(input0, input1, output0, 8, 4, 8, 8, 4)

KERNEL(8, 32, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7) {
  STARTED;
  for (i32 row = (i32)group_id(1) * 32 + local_id(1); row < arg4; row += (i32)group_count(1) * 32) {
    i32 o0 = row * arg5;
    i32 o1 = row;
    i32 o2 = row * arg6;
    for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 1; i < arg3; i = arg3) {
      f32 x0 = arg0[o0 + i];
      f32 x1 = arg1[o1 + i * arg7];
      f32 v0_2 = x0 + x1;
      f32 v0 = v0_2;
      arg2[o2 + i] = v0;
    }
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(input0, input1, output0, 8, 4, 4, 8, 8, 8, 4)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<const f32> arg1, Global<f32> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9) {
  i64 first = (i64)group_id(1) * arg5, last = first + arg5 < arg4 ? first + arg5 : arg4;
  i64 begin = (i64)group_id(0) * arg6, end = begin + arg6 < arg3 ? begin + arg6 : arg3;
  for (i64 piece = begin; piece < end; piece += 32) {
    const i64 stop = piece + 32 < end ? piece + 32 : end;
    for (i64 row = first; row < last; ++row) {
      i64 o0 = row * arg7;
      i64 o1 = row;
      i64 o2 = row * arg8;
      VECTORIZE for (i64 i = piece; i < stop; ++i) {
        f32 x0 = arg0[o0 + i];
        f32 x1 = arg1[o1 + i * arg9];
        f32 v0_2 = x0 + x1;
        f32 v0 = v0_2;
        arg2[o2 + i] = v0;
      }
    }
  }
}
