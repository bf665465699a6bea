// pad(square, 3)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x131x1 of 128x2x1>(input0, output0, 262, 256, 3, 262, 0, 0, 262, 3, 256, 256)

KERNEL(128, 2, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, f32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11) {
  const f32 outside = arg6;
  for (i32 row = (i32)group_id(1) * 2 + local_id(1); row < arg5; row += (i32)group_count(1) * 2) {
    i32 inside = 1;
    i32 from = arg7;
    i32 rest = row;
    { const i32 c = rest - arg9;
      inside &= c >= 0 && c < arg10;
      from += c * arg11;
    }
    const i32 begin = row * arg2, i = ((i32)group_id(0) * 128 + local_id(0)) * 4 - begin % 4, first = i - arg4;
    if (i < arg2) {
      VARRAY(f32, 4, r);
      if (inside && first >= 0 && first + 4 <= arg3 && (from + first) % 4 == 0) { VLOAD(f32, 4, r, arg0 + from + first); }
      else UNROLL for (i32 l = 0; l < 4; ++l) r[l] = inside && first + l >= 0 && first + l < arg3 ? arg0[from + (first + l)] : outside;
      if (i >= 0 && i + 4 <= arg2) { VSTORE(f32, 4, r, arg1 + begin + i); }
      else for (i32 l = 0; l < 4; ++l) if (i + l >= 0 && i + l < arg2) arg1[begin + i + l] = r[l];
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x131x1 of 128x2x1>(input0, output0, 262, 256, 3, 262, 0, 0, 262, 3, 256, 256)

KERNEL(128, 2, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, f32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11) {
  STARTED;
  const f32 outside = arg6;
  for (i32 row = (i32)group_id(1) * 2 + local_id(1); row < arg5; row += (i32)group_count(1) * 2) {
    i32 inside = 1;
    i32 from = arg7;
    i32 rest = row;
    { const i32 c = rest - arg9;
      inside &= c >= 0 && c < arg10;
      from += c * arg11;
    }
    const i32 begin = row * arg2, i = ((i32)group_id(0) * 128 + local_id(0)) * 4 - begin % 4, first = i - arg4;
    if (i < arg2) {
      VARRAY(f32, 4, r);
      if (inside && first >= 0 && first + 4 <= arg3 && (from + first) % 4 == 0) { VLOAD(f32, 4, r, arg0 + from + first); }
      else UNROLL for (i32 l = 0; l < 4; ++l) r[l] = inside && first + l >= 0 && first + l < arg3 ? arg0[from + (first + l)] : outside;
      if (i >= 0 && i + 4 <= arg2) { VSTORE(f32, 4, r, arg1 + begin + i); }
      else for (i32 l = 0; l < 4; ++l) if (i + l >= 0 && i + l < arg2) arg1[begin + i + l] = r[l];
    }
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1073x1x1 of 1x1x1>(output0, 68644, 64, 0)
// kernel1<1x256x1 of 1x1x1>(input0, output0, 256, 256, 1, 256, 256, 789, 262)

KERNEL(1, 1, 1) kernel0(Global<f32> arg0, i64 arg1, i64 arg2, f32 arg3) {
  i64 first = (i64)group_id(0) * arg2, last = first + arg2 < arg1 ? first + arg2 : arg1;
  i64 o0 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    arg0[o0 + i] = arg3;
  }
}

KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg6;
    i64 o1 = arg7 + row * arg8;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      f32 x0 = arg0[o0 + i];
      arg1[o1 + i] = x0;
    }
  }
}
