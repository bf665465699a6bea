// h * 2

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 4x1x1>(input0, output0, 32, 2)

// calls bfloat_to_f32
// calls f32_to_bfloat
KERNEL(4, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, f32 arg3) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 4 + local_id(0)) * 8; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 8;
    VARRAY(u16, 8, p0);
    if (whole) { VLOAD(u16, 8, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 8; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(u16, 8, q0);
    UNROLL for (i32 l = 0; l < 8; ++l) {
      f32 x0 = bfloat_to_f32(p0[l]);
      f32 v0_2 = x0 * arg3;
      f32 v0 = v0_2;
      q0[l] = f32_to_bfloat(v0);
    }
    if (whole) { VSTORE(u16, 8, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 8; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 4x1x1>(input0, output0, 32, 2)

// calls bfloat_to_f32
// calls f32_to_bfloat
KERNEL(4, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, f32 arg3) {
  STARTED;
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 4 + local_id(0)) * 8; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 8;
    VARRAY(u16, 8, p0);
    if (whole) { VLOAD(u16, 8, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 8; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(u16, 8, q0);
    UNROLL for (i32 l = 0; l < 8; ++l) {
      f32 x0 = bfloat_to_f32(p0[l]);
      f32 v0_2 = x0 * arg3;
      f32 v0 = v0_2;
      q0[l] = f32_to_bfloat(v0);
    }
    if (whole) { VSTORE(u16, 8, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 8; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(input0, output0, 32, 64, 2)

// calls bfloat_to_f32
// calls f32_to_bfloat
KERNEL(1, 1, 1) kernel0(Global<const u16> arg0, Global<u16> arg1, i64 arg2, i64 arg3, f32 arg4) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = bfloat_to_f32(arg0[o0 + i]);
    f32 v0_2 = x0 * arg4;
    f32 v0 = v0_2;
    arg1[o1 + i] = f32_to_bfloat(v0);
  }
}
