// concat(pad(v, [1, 2], value=7), v, axis=0)

// --- OpenCL, CUDA
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
