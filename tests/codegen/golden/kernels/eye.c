// eye(512)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x256x1 of 128x2x1>(constants+0, constants+2048, output0, 512, 512, 512)

KERNEL(128, 2, 1) kernel0(GLOBAL const i32* RESTRICT arg0, GLOBAL const i32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5) {
  for (i32 row = (i32)group_id(1) * 2 + local_id(1); row < arg4; row += (i32)group_count(1) * 2) {
    i32 o0 = 0;
    i32 o1 = row;
    i32 o2 = row * arg5;
    for (i32 i = ((i32)group_id(0) * 128 + local_id(0)) * 4; i < arg3; i = arg3) {
      const i32 whole = arg3 - i >= 4;
      VARRAY(i32, 4, p0);
      if (whole) { VLOAD(i32, 4, p0, arg0 + o0 + i); }
      else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg3 ? arg0[o0 + i + l] : 0;
      VARRAY(f32, 4, q0);
      UNROLL for (i32 l = 0; l < 4; ++l) {
        i32 x0 = p0[l];
        i32 x1 = arg1[o1];
        i32 v0_2 = (x0 == x1);
        i32 v0 = v0_2;
        f32 v1 = (f32)v0;
        q0[l] = v1;
      }
      if (whole) { VSTORE(f32, 4, q0, arg2 + o2 + i); }
      else for (i32 l = 0; l < 4; ++l) if (i + l < arg3) arg2[o2 + i + l] = q0[l];
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x256x1 of 128x2x1>(constants+0, constants+2048, output0, 512, 512, 512)

KERNEL(128, 2, 1) kernel0(GLOBAL const i32* RESTRICT arg0, GLOBAL const i32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5) {
  STARTED;
  for (i32 row = (i32)group_id(1) * 2 + local_id(1); row < arg4; row += (i32)group_count(1) * 2) {
    i32 o0 = 0;
    i32 o1 = row;
    i32 o2 = row * arg5;
    for (i32 i = ((i32)group_id(0) * 128 + local_id(0)) * 4; i < arg3; i = arg3) {
      const i32 whole = arg3 - i >= 4;
      VARRAY(i32, 4, p0);
      if (whole) { VLOAD(i32, 4, p0, arg0 + o0 + i); }
      else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg3 ? arg0[o0 + i + l] : 0;
      VARRAY(f32, 4, q0);
      UNROLL for (i32 l = 0; l < 4; ++l) {
        i32 x0 = p0[l];
        i32 x1 = arg1[o1];
        i32 v0_2 = (x0 == x1);
        i32 v0 = v0_2;
        f32 v1 = (f32)v0;
        q0[l] = v1;
      }
      if (whole) { VSTORE(f32, 4, q0, arg2 + o2 + i); }
      else for (i32 l = 0; l < 4; ++l) if (i + l < arg3) arg2[o2 + i + l] = q0[l];
    }
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x512x1 of 1x1x1>(constants+0, constants+2048, output0, 512, 512, 1, 512, 512)

KERNEL(1, 1, 1) kernel0(Global<const i32> arg0, Global<const i32> arg1, Global<f32> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  i64 first = (i64)group_id(1) * arg5, last = first + arg5 < arg4 ? first + arg5 : arg4;
  i64 begin = (i64)group_id(0) * arg6, end = begin + arg6 < arg3 ? begin + arg6 : arg3;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = 0;
    i64 o1 = row;
    i64 o2 = row * arg7;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      i32 x0 = arg0[o0 + i];
      i32 x1 = arg1[o1];
      i32 v0_2 = (x0 == x1);
      i32 v0 = v0_2;
      f32 v1 = (f32)v0;
      arg2[o2 + i] = v1;
    }
  }
}
