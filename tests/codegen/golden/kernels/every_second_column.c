// square[:, 0::2]

// --- OpenCL
// workspace 0 bytes
// kernel0<32x1x1 of 256x1x1>(input0, output0, 32768, 2)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 256 + local_id(0)) * 4; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 4;
    f32 p0[4];
    UNROLL for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg2 ? arg0[o0 + (i + l) * arg3] : 0;
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 x0 = p0[l];
      q0[l] = x0;
    }
    if (whole) { VSTORE(f32, 4, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<32x1x1 of 256x1x1>(input0, output0, 32768, 2)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3) {
  STARTED;
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 256 + local_id(0)) * 4; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 4;
    f32 p0[4];
    UNROLL for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg2 ? arg0[o0 + (i + l) * arg3] : 0;
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 x0 = p0[l];
      q0[l] = x0;
    }
    if (whole) { VSTORE(f32, 4, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<512x1x1 of 1x1x1>(input0, output0, 32768, 64, 2)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i * arg4];
    arg1[o1 + i] = x0;
  }
}
