// scatter(v, i, [1.0, 2, 3], axis=0)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 8x1x1>(input0, output0, 8)
// kernel1<1x1x1 of 256x1x1>(input1, constants+0, output0, status+0, 1, 1, 3, 8, 1)

KERNEL(8, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 1; i < arg2; i = arg2) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

// calls resolve
KERNEL(256, 1, 1) kernel1(GLOBAL const i64* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* arg2, GLOBAL i64* arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg8; j += (i64)group_count(0) * 256) {
    i64 o0 = 0;
    i64 o1 = 0;
    for (i64 a = 0; a < arg6; ++a) {
      const i64 from = o0 + a * arg4;
      const i64 place = o1 + resolve(arg0[from], arg7, arg3) * arg5;
      arg2[place] = arg1[from];
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 8x1x1>(input0, output0, 8)
// kernel1<1x1x1 of 256x1x1>(input1, constants+0, output0, status+0, 1, 1, 3, 8, 1)

KERNEL(8, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2) {
  STARTED;
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 1; i < arg2; i = arg2) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

// calls resolve
KERNEL(256, 1, 1) kernel1(GLOBAL const i64* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* arg2, GLOBAL i64* arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  STARTED;
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg8; j += (i64)group_count(0) * 256) {
    i64 o0 = 0;
    i64 o1 = 0;
    for (i64 a = 0; a < arg6; ++a) {
      const i64 from = o0 + a * arg4;
      const i64 place = o1 + resolve(arg0[from], arg7, arg3) * arg5;
      arg2[place] = arg1[from];
    }
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(input0, output0, 8, 64)
// kernel1<1x1x1 of 1x1x1>(input1, constants+0, output0, status+0, 1, 1, 3, 8, 1, 1)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

// calls resolve
KERNEL(1, 1, 1) kernel1(Global<const i64> arg0, Global<const f32> arg1, Global<f32> arg2, Global<i64> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9) {
  const i64 first = (i64)group_id(0) * arg9, last = first + arg9 < arg8 ? first + arg9 : arg8;
  for (i64 j = first; j < last; ++j) {
    i64 o0 = 0;
    i64 o1 = 0;
    for (i64 a = 0; a < arg6; ++a) {
      const i64 from = o0 + a * arg4;
      const i64 place = o1 + resolve(arg0[from], arg7, arg3) * arg5;
      arg2[place] = arg1[from];
    }
  }
}
