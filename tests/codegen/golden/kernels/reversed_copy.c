// flip(square, axis=1)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x64x1 of 64x4x1>(input0, output0, 256, 256, 255, 256, 256)

KERNEL(64, 4, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6) {
  for (i32 row = (i32)group_id(1) * 4 + local_id(1); row < arg3; row += (i32)group_count(1) * 4) {
    i32 o0 = arg4 + row * arg5;
    i32 o1 = row * arg6;
    for (i32 i = ((i32)group_id(0) * 64 + local_id(0)) * 4; i < arg2; i = arg2) {
      const i32 whole = arg2 - i >= 4;
      VARRAY(f32, 4, p0);
      if (whole) { VLOAD(f32, 4, p0, arg0 + o0 - i - 3); }
      else for (i32 l = 0; l < 4; ++l) p0[3 - l] = i + l < arg2 ? arg0[o0 - i - l] : 0;
      VARRAY(f32, 4, q0);
      UNROLL for (i32 l = 0; l < 4; ++l) {
        f32 x0 = p0[3 - l];
        q0[l] = x0;
      }
      if (whole) { VSTORE(f32, 4, q0, arg1 + o1 + i); }
      else for (i32 l = 0; l < 4; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x64x1 of 64x4x1>(input0, output0, 256, 256, 255, 256, 256)

KERNEL(64, 4, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6) {
  STARTED;
  for (i32 row = (i32)group_id(1) * 4 + local_id(1); row < arg3; row += (i32)group_count(1) * 4) {
    i32 o0 = arg4 + row * arg5;
    i32 o1 = row * arg6;
    for (i32 i = ((i32)group_id(0) * 64 + local_id(0)) * 4; i < arg2; i = arg2) {
      const i32 whole = arg2 - i >= 4;
      VARRAY(f32, 4, p0);
      if (whole) { VLOAD(f32, 4, p0, arg0 + o0 - i - 3); }
      else for (i32 l = 0; l < 4; ++l) p0[3 - l] = i + l < arg2 ? arg0[o0 - i - l] : 0;
      VARRAY(f32, 4, q0);
      UNROLL for (i32 l = 0; l < 4; ++l) {
        f32 x0 = p0[3 - l];
        q0[l] = x0;
      }
      if (whole) { VSTORE(f32, 4, q0, arg1 + o1 + i); }
      else for (i32 l = 0; l < 4; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
    }
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x256x1 of 1x1x1>(input0, output0, 256, 256, 1, 256, 255, 256, 256, -1)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 piece = begin; piece < end; piece += 32) {
    const i64 stop = piece + 32 < end ? piece + 32 : end;
    for (i64 row = first; row < last; ++row) {
      i64 o0 = arg6 + row * arg7;
      i64 o1 = row * arg8;
      VECTORIZE for (i64 i = piece; i < stop; ++i) {
        f32 x0 = arg0[o0 + i * arg9];
        arg1[o1 + i] = x0;
      }
    }
  }
}
