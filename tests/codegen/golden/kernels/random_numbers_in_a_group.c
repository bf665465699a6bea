// where(x > rand([4, 8], seed=7), x, 0) * v

// --- OpenCL
// workspace 512 bytes
// kernel0<1x1x1 of 8x1x1>(workspace+0, 32, 7)
// kernel1<1x1x1 of 8x32x1>(input0, workspace+0, input1, output0, 8, 4, 8, 8, 8, 0)

// calls uniform_f32
KERNEL(8, 1, 1) kernel0(GLOBAL f32* RESTRICT arg0, i32 arg1, i64 arg2) {
  i32 o0 = 0;
  for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 4; i < arg1; i = arg1) {
    const i32 whole = arg1 - i >= 4;
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 value = uniform_f32((u64)arg2, (u64)(i + l));
      q0[l] = value;
    }
    if (whole) { VSTORE(f32, 4, q0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg1) arg0[o0 + i + l] = q0[l];
  }
}

KERNEL(8, 32, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL const f32* RESTRICT arg2, GLOBAL f32* RESTRICT arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, f32 arg9) {
  for (i32 row = (i32)group_id(1) * 32 + local_id(1); row < arg5; row += (i32)group_count(1) * 32) {
    i32 o0 = row * arg6;
    i32 o1 = row * arg7;
    i32 o2 = 0;
    i32 o3 = row * arg8;
    for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 1; i < arg4; i = arg4) {
      f32 x0 = arg0[o0 + i];
      f32 x1 = arg1[o1 + i];
      f32 x2 = arg2[o2 + i];
      i32 v0_2 = (x0 > x1);
      i32 v0 = v0_2;
      f32 v1_3 = (v0 ? x0 : arg9);
      f32 v1 = v1_3;
      f32 v2_2 = v1 * x2;
      f32 v2 = v2_2;
      arg3[o3 + i] = v2;
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(7, 8, input0, input1, 0, output0, 8)

// calls philox
KERNEL(256, 1, 1) kernel0(i64 arg0, i32 arg1, GLOBAL const f32* RESTRICT arg2, GLOBAL const f32* RESTRICT arg3, f32 arg4, GLOBAL f32* RESTRICT arg5, i64 arg6) {
  STARTED;
  for (u32 j = blockIdx.x * 256u + threadIdx.x; j < (u32)arg6; j += gridDim.x * 256u) {
    const i32 first = (i32)j * 4;
    f32 values[4];
    const Words words = philox((u64)arg0, (u64)j, 0u);
    UNROLL for (i32 l = 0; l < 4; ++l) values[l] = (f32)(words.w[l] >> 8) * 5.9604645e-8f;
    VARRAY(f32, 4, p0);
    VLOAD(f32, 4, p0 + 0, arg2 + first + 0);
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      const i32 i = first + l;
      i32 i1 = (u32)i % (u32)arg1, r1 = (u32)i / (u32)arg1;
      i32 o0 = i1;
      const f32 x0 = p0[l];
      const f32 x1 = values[l];
      const f32 x2 = arg3[o0];
      i32 v0_2 = (x0 > x1);
      i32 v0 = v0_2;
      f32 v1_3 = (v0 ? x0 : arg4);
      f32 v1 = v1_3;
      f32 v2_2 = v1 * x2;
      f32 v2 = v2_2;
      q0[l] = v2;
    }
    VSTORE(f32, 4, q0 + 0, arg5 + first + 0);
  }
}

// --- Tenstorrent
// workspace 512 bytes
// kernel0<1x1x1 of 1x1x1>(workspace+0, 32, 64, 7)
// kernel1<1x1x1 of 1x1x1>(input0, workspace+0, input1, output0, 8, 4, 4, 8, 8, 8, 8, 0)

// calls uniform_f32
KERNEL(1, 1, 1) kernel0(Global<f32> arg0, i64 arg1, i64 arg2, i64 arg3) {
  i64 first = (i64)group_id(0) * arg2, last = first + arg2 < arg1 ? first + arg2 : arg1;
  i64 o0 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 value = uniform_f32((u64)arg3, (u64)i);
    arg0[o0 + i] = value;
  }
}

KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<const f32> arg1, Global<const f32> arg2, Global<f32> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, f32 arg11) {
  i64 first = (i64)group_id(1) * arg6, last = first + arg6 < arg5 ? first + arg6 : arg5;
  i64 begin = (i64)group_id(0) * arg7, end = begin + arg7 < arg4 ? begin + arg7 : arg4;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg8;
    i64 o1 = row * arg9;
    i64 o2 = 0;
    i64 o3 = row * arg10;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      f32 x0 = arg0[o0 + i];
      f32 x1 = arg1[o1 + i];
      f32 x2 = arg2[o2 + i];
      i32 v0_2 = (x0 > x1);
      i32 v0 = v0_2;
      f32 v1_3 = (v0 ? x0 : arg11);
      f32 v1 = v1_3;
      f32 v2_2 = v1 * x2;
      f32 v2 = v2_2;
      arg3[o3 + i] = v2;
    }
  }
}
