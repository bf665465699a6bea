// concat(pad(v, [1, 2], value=7), v, axis=0)

// --- OpenCL
// workspace 512 bytes
// kernel0<1x1x1 of 4x64x1>(input0, workspace+0, 11, 8, 1, 1, 7, 0)
// kernel1<1x1x1 of 16x1x1>(workspace+0, output0, 11)
// kernel2<1x1x1 of 8x1x1>(input0, output0, 8, 11)

KERNEL(4, 64, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, f32 arg6, i32 arg7) {
  const f32 outside = arg6;
  for (i32 row = (i32)group_id(1) * 64 + local_id(1); row < arg5; row += (i32)group_count(1) * 64) {
    i32 inside = 1;
    i32 from = arg7;
    const i32 begin = row * arg2, i = ((i32)group_id(0) * 4 + local_id(0)) * 4, first = i - arg4;
    if (i < arg2) {
      VARRAY(f32, 4, r);
      if (inside && first >= 0 && first + 4 <= arg3 && (from + first) % 4 == 0) { VLOAD(f32, 4, r, arg0 + from + first); }
      else UNROLL for (i32 l = 0; l < 4; ++l) r[l] = inside && first + l >= 0 && first + l < arg3 ? arg0[from + (first + l)] : outside;
      if (i >= 0 && i + 4 <= arg2) { VSTORE(f32, 4, r, arg1 + begin + i); }
      else for (i32 l = 0; l < 4; ++l) if (i + l >= 0 && i + l < arg2) arg1[begin + i + l] = r[l];
    }
  }
}

KERNEL(16, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 16 + local_id(0)) * 1; i < arg2; i = arg2) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

KERNEL(8, 1, 1) kernel2(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3) {
  i32 o0 = 0;
  i32 o1 = arg3;
  for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 1; i < arg2; i = arg2) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

// --- CUDA
// workspace 512 bytes
// kernel0<1x1x1 of 4x64x1>(input0, workspace+0, 11, 8, 1, 1, 7, 0)
// kernel1<1x1x1 of 16x1x1>(workspace+0, output0, 11)
// kernel2<1x1x1 of 8x1x1>(input0, output0, 8, 11)

KERNEL(4, 64, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, f32 arg6, i32 arg7) {
  STARTED;
  const f32 outside = arg6;
  for (i32 row = (i32)group_id(1) * 64 + local_id(1); row < arg5; row += (i32)group_count(1) * 64) {
    i32 inside = 1;
    i32 from = arg7;
    const i32 begin = row * arg2, i = ((i32)group_id(0) * 4 + local_id(0)) * 4, first = i - arg4;
    if (i < arg2) {
      VARRAY(f32, 4, r);
      if (inside && first >= 0 && first + 4 <= arg3 && (from + first) % 4 == 0) { VLOAD(f32, 4, r, arg0 + from + first); }
      else UNROLL for (i32 l = 0; l < 4; ++l) r[l] = inside && first + l >= 0 && first + l < arg3 ? arg0[from + (first + l)] : outside;
      if (i >= 0 && i + 4 <= arg2) { VSTORE(f32, 4, r, arg1 + begin + i); }
      else for (i32 l = 0; l < 4; ++l) if (i + l >= 0 && i + l < arg2) arg1[begin + i + l] = r[l];
    }
  }
}

KERNEL(16, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2) {
  STARTED;
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 16 + local_id(0)) * 1; i < arg2; i = arg2) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

KERNEL(8, 1, 1) kernel2(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3) {
  STARTED;
  i32 o0 = 0;
  i32 o1 = arg3;
  for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 1; i < arg2; i = arg2) {
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
