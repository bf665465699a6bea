// concat(pad(v, [1, 2], value=7), v, axis=0)

// --- OpenCL
// workspace 512 bytes
// kernel0<1x1x1 of 16x1x1>(workspace+0, 11, 7)
// kernel1<1x1x1 of 8x1x1>(input0, workspace+0, 8, 1)
// kernel2<1x1x1 of 16x1x1>(workspace+0, output0, 11)
// kernel1<1x1x1 of 8x1x1>(input0, output0, 8, 11)

KERNEL(16, 1, 1) kernel0(GLOBAL f32* RESTRICT arg0, i32 arg1, f32 arg2) {
  i32 o0 = 0;
  for (i32 i = ((i32)group_id(0) * 16 + local_id(0)) * 1; i < arg1; i = arg1) {
    arg0[o0 + i] = arg2;
  }
}

KERNEL(8, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3) {
  i32 o0 = 0;
  i32 o1 = arg3;
  for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 1; i < arg2; i = arg2) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

KERNEL(16, 1, 1) kernel2(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 16 + local_id(0)) * 1; i < arg2; i = arg2) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

// --- CUDA
// workspace 512 bytes
// kernel0<1x1x1 of 16x1x1>(workspace+0, 11, 7)
// kernel1<1x1x1 of 8x1x1>(input0, workspace+0, 8, 1)
// kernel2<1x1x1 of 16x1x1>(workspace+0, output0, 11)
// kernel1<1x1x1 of 8x1x1>(input0, output0, 8, 11)

KERNEL(16, 1, 1) kernel0(GLOBAL f32* RESTRICT arg0, i32 arg1, f32 arg2) {
  STARTED;
  i32 o0 = 0;
  for (i32 i = ((i32)group_id(0) * 16 + local_id(0)) * 1; i < arg1; i = arg1) {
    arg0[o0 + i] = arg2;
  }
}

KERNEL(8, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3) {
  STARTED;
  i32 o0 = 0;
  i32 o1 = arg3;
  for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 1; i < arg2; i = arg2) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

KERNEL(16, 1, 1) kernel2(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2) {
  STARTED;
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 16 + local_id(0)) * 1; i < arg2; i = arg2) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

// --- Tenstorrent
// workspace 512 bytes
// kernel0<1x1x1 of 1x1x1>(workspace+0, 11, 64, 7)
// kernel1<1x1x1 of 1x1x1>(input0, workspace+0, 8, 64, 1)
// kernel2<1x1x1 of 1x1x1>(workspace+0, output0, 11, 64)
// kernel1<1x1x1 of 1x1x1>(input0, output0, 8, 64, 11)

KERNEL(1, 1, 1) kernel0(Global<f32> arg0, i64 arg1, i64 arg2, f32 arg3) {
  i64 first = (i64)group_id(0) * arg2, last = first + arg2 < arg1 ? first + arg2 : arg1;
  i64 o0 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    arg0[o0 + i] = arg3;
  }
}

KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = arg4;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

KERNEL(1, 1, 1) kernel2(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}
