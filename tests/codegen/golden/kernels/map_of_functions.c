// atan2(x, y) + floor_div(x, asinh(y))

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 8x1x1>(input0, input1, output0, 32)

// calls floor_div_f32
KERNEL(8, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3) {
  i32 o0 = 0;
  i32 o1 = 0;
  i32 o2 = 0;
  for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 4; i < arg3; i = arg3) {
    const i32 whole = arg3 - i >= 4;
    VARRAY(f32, 4, p0);
    if (whole) { VLOAD(f32, 4, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg3 ? arg0[o0 + i + l] : 0;
    VARRAY(f32, 4, p1);
    if (whole) { VLOAD(f32, 4, p1, arg1 + o1 + i); }
    else for (i32 l = 0; l < 4; ++l) p1[l] = i + l < arg3 ? arg1[o1 + i + l] : 0;
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 x0 = p0[l];
      f32 x1 = p1[l];
      f64 v0_0 = (f64)x0;
      f64 v0_1 = (f64)x1;
      f64 v0_2 = atan2(v0_0, v0_1);
      f32 v0 = (f32)v0_2;
      f64 v1_0 = (f64)x1;
      f64 v1_1 = asinh(v1_0);
      f32 v1 = (f32)v1_1;
      f32 v2 = floor_div_f32(x0, v1);
      f32 v3_2 = v0 + v2;
      f32 v3 = v3_2;
      q0[l] = v3;
    }
    if (whole) { VSTORE(f32, 4, q0, arg2 + o2 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg3) arg2[o2 + i + l] = q0[l];
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 8x1x1>(input0, input1, output0, 32)

// calls asinh_f32
// calls atan2_f32
// calls floor_div_f32
KERNEL(8, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3) {
  STARTED;
  i32 o0 = 0;
  i32 o1 = 0;
  i32 o2 = 0;
  for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 4; i < arg3; i = arg3) {
    const i32 whole = arg3 - i >= 4;
    VARRAY(f32, 4, p0);
    if (whole) { VLOAD(f32, 4, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg3 ? arg0[o0 + i + l] : 0;
    VARRAY(f32, 4, p1);
    if (whole) { VLOAD(f32, 4, p1, arg1 + o1 + i); }
    else for (i32 l = 0; l < 4; ++l) p1[l] = i + l < arg3 ? arg1[o1 + i + l] : 0;
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 x0 = p0[l];
      f32 x1 = p1[l];
      f32 v0 = atan2_f32(x0, x1);
      f32 v1 = asinh_f32(x1);
      f32 v2 = floor_div_f32(x0, v1);
      f32 v3_2 = v0 + v2;
      f32 v3 = v3_2;
      q0[l] = v3;
    }
    if (whole) { VSTORE(f32, 4, q0, arg2 + o2 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg3) arg2[o2 + i + l] = q0[l];
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(input0, input1, output0, 32, 64)

// calls floor_div_f32
KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<const f32> arg1, Global<f32> arg2, i64 arg3, i64 arg4) {
  i64 first = (i64)group_id(0) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 o0 = 0;
  i64 o1 = 0;
  i64 o2 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    f32 x1 = arg1[o1 + i];
    f64 v0_0 = (f64)x0;
    f64 v0_1 = (f64)x1;
    f64 v0_2 = atan2(v0_0, v0_1);
    f32 v0 = (f32)v0_2;
    f64 v1_0 = (f64)x1;
    f64 v1_1 = asinh(v1_0);
    f32 v1 = (f32)v1_1;
    f32 v2 = floor_div_f32(x0, v1);
    f32 v3_2 = v0 + v2;
    f32 v3 = v3_2;
    arg2[o2 + i] = v3;
  }
}
