// cross(wide[:, 0:3], wide[:, 3:6])

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 64x1x1>(input0, input0, input0, input0, input0, input0, output0, output0, output0, 64, 1, 5, 2, 4, 3, 1, 2, 1000, 1000, 1000, 1000, 1000, 1000, 3, 3, 3)

KERNEL(64, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL const f32* RESTRICT arg2, GLOBAL const f32* RESTRICT arg3, GLOBAL const f32* RESTRICT arg4, GLOBAL const f32* RESTRICT arg5, GLOBAL f32* RESTRICT arg6, GLOBAL f32* RESTRICT arg7, GLOBAL f32* RESTRICT arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12, i32 arg13, i32 arg14, i32 arg15, i32 arg16, i32 arg17, i32 arg18, i32 arg19, i32 arg20, i32 arg21, i32 arg22, i32 arg23, i32 arg24, i32 arg25) {
  i32 o0 = arg10;
  i32 o1 = arg11;
  i32 o2 = arg12;
  i32 o3 = arg13;
  i32 o4 = arg14;
  i32 o5 = 0;
  i32 o6 = 0;
  i32 o7 = arg15;
  i32 o8 = arg16;
  for (i32 i = ((i32)group_id(0) * 64 + local_id(0)) * 1; i < arg9; i = arg9) {
    f32 x0 = arg0[o0 + i * arg17];
    f32 x1 = arg1[o1 + i * arg18];
    f32 x2 = arg2[o2 + i * arg19];
    f32 x3 = arg3[o3 + i * arg20];
    f32 x4 = arg4[o4 + i * arg21];
    f32 x5 = arg5[o5 + i * arg22];
    f32 v0_2 = x0 * x1;
    f32 v0 = v0_2;
    f32 v1_2 = x2 * x3;
    f32 v1 = v1_2;
    f32 v2_2 = v0 - v1;
    f32 v2 = v2_2;
    f32 v3_2 = x2 * x4;
    f32 v3 = v3_2;
    f32 v4_2 = x5 * x1;
    f32 v4 = v4_2;
    f32 v5_2 = v3 - v4;
    f32 v5 = v5_2;
    f32 v6_2 = x5 * x3;
    f32 v6 = v6_2;
    f32 v7_2 = x0 * x4;
    f32 v7 = v7_2;
    f32 v8_2 = v6 - v7;
    f32 v8 = v8_2;
    arg6[o6 + i * arg23] = v2;
    arg7[o7 + i * arg24] = v5;
    arg8[o8 + i * arg25] = v8;
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 64x1x1>(input0, input0, input0, input0, input0, input0, output0, output0, output0, 64, 1, 5, 2, 4, 3, 1, 2, 1000, 1000, 1000, 1000, 1000, 1000, 3, 3, 3)

KERNEL(64, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL const f32* RESTRICT arg2, GLOBAL const f32* RESTRICT arg3, GLOBAL const f32* RESTRICT arg4, GLOBAL const f32* RESTRICT arg5, GLOBAL f32* RESTRICT arg6, GLOBAL f32* RESTRICT arg7, GLOBAL f32* RESTRICT arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12, i32 arg13, i32 arg14, i32 arg15, i32 arg16, i32 arg17, i32 arg18, i32 arg19, i32 arg20, i32 arg21, i32 arg22, i32 arg23, i32 arg24, i32 arg25) {
  STARTED;
  i32 o0 = arg10;
  i32 o1 = arg11;
  i32 o2 = arg12;
  i32 o3 = arg13;
  i32 o4 = arg14;
  i32 o5 = 0;
  i32 o6 = 0;
  i32 o7 = arg15;
  i32 o8 = arg16;
  for (i32 i = ((i32)group_id(0) * 64 + local_id(0)) * 1; i < arg9; i = arg9) {
    f32 x0 = arg0[o0 + i * arg17];
    f32 x1 = arg1[o1 + i * arg18];
    f32 x2 = arg2[o2 + i * arg19];
    f32 x3 = arg3[o3 + i * arg20];
    f32 x4 = arg4[o4 + i * arg21];
    f32 x5 = arg5[o5 + i * arg22];
    f32 v0_2 = x0 * x1;
    f32 v0 = v0_2;
    f32 v1_2 = x2 * x3;
    f32 v1 = v1_2;
    f32 v2_2 = v0 - v1;
    f32 v2 = v2_2;
    f32 v3_2 = x2 * x4;
    f32 v3 = v3_2;
    f32 v4_2 = x5 * x1;
    f32 v4 = v4_2;
    f32 v5_2 = v3 - v4;
    f32 v5 = v5_2;
    f32 v6_2 = x5 * x3;
    f32 v6 = v6_2;
    f32 v7_2 = x0 * x4;
    f32 v7 = v7_2;
    f32 v8_2 = v6 - v7;
    f32 v8 = v8_2;
    arg6[o6 + i * arg23] = v2;
    arg7[o7 + i * arg24] = v5;
    arg8[o8 + i * arg25] = v8;
  }
}

// --- Tenstorrent
// workspace 1536 bytes
// kernel0<1x1x1 of 1x1x1>(input0, input0, input0, input0, workspace+0, 64, 64, 4, 1, 3, 1000, 1000, 1000, 1000)
// kernel1<1x1x1 of 1x1x1>(input0, input0, input0, input0, workspace+512, 64, 64, 2, 3, 5, 1000, 1000, 1000, 1000)
// kernel2<1x1x1 of 1x1x1>(input0, input0, input0, input0, workspace+1024, 64, 64, 1, 5, 2, 4, 1000, 1000, 1000, 1000)
// kernel3<1x1x1 of 1x1x1>(workspace+1024, output0, 64, 64, 3)
// kernel4<1x1x1 of 1x1x1>(workspace+512, output0, 64, 64, 1, 3)
// kernel4<1x1x1 of 1x1x1>(workspace+0, output0, 64, 64, 2, 3)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<const f32> arg1, Global<const f32> arg2, Global<const f32> arg3, Global<f32> arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13) {
  i64 first = (i64)group_id(0) * arg6, last = first + arg6 < arg5 ? first + arg6 : arg5;
  i64 o0 = 0;
  i64 o1 = arg7;
  i64 o2 = arg8;
  i64 o3 = arg9;
  i64 o4 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i * arg10];
    f32 x1 = arg1[o1 + i * arg11];
    f32 x2 = arg2[o2 + i * arg12];
    f32 x3 = arg3[o3 + i * arg13];
    f32 v0_2 = x0 * x1;
    f32 v0 = v0_2;
    f32 v1_2 = x2 * x3;
    f32 v1 = v1_2;
    f32 v2_2 = v0 - v1;
    f32 v2 = v2_2;
    arg4[o4 + i] = v2;
  }
}

KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<const f32> arg1, Global<const f32> arg2, Global<const f32> arg3, Global<f32> arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13) {
  i64 first = (i64)group_id(0) * arg6, last = first + arg6 < arg5 ? first + arg6 : arg5;
  i64 o0 = arg7;
  i64 o1 = arg8;
  i64 o2 = 0;
  i64 o3 = arg9;
  i64 o4 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i * arg10];
    f32 x1 = arg1[o1 + i * arg11];
    f32 x2 = arg2[o2 + i * arg12];
    f32 x3 = arg3[o3 + i * arg13];
    f32 v0_2 = x0 * x1;
    f32 v0 = v0_2;
    f32 v1_2 = x2 * x3;
    f32 v1 = v1_2;
    f32 v2_2 = v0 - v1;
    f32 v2 = v2_2;
    arg4[o4 + i] = v2;
  }
}

KERNEL(1, 1, 1) kernel2(Global<const f32> arg0, Global<const f32> arg1, Global<const f32> arg2, Global<const f32> arg3, Global<f32> arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14) {
  i64 first = (i64)group_id(0) * arg6, last = first + arg6 < arg5 ? first + arg6 : arg5;
  i64 o0 = arg7;
  i64 o1 = arg8;
  i64 o2 = arg9;
  i64 o3 = arg10;
  i64 o4 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i * arg11];
    f32 x1 = arg1[o1 + i * arg12];
    f32 x2 = arg2[o2 + i * arg13];
    f32 x3 = arg3[o3 + i * arg14];
    f32 v0_2 = x0 * x1;
    f32 v0 = v0_2;
    f32 v1_2 = x2 * x3;
    f32 v1 = v1_2;
    f32 v2_2 = v0 - v1;
    f32 v2 = v2_2;
    arg4[o4 + i] = v2;
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

KERNEL(1, 1, 1) kernel4(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = arg4;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i * arg5] = x0;
  }
}
