// arange(64)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 32x1x1>(output0, 64)

KERNEL(32, 1, 1) kernel0(GLOBAL i64* RESTRICT arg0, i32 arg1) {
  i32 o0 = 0;
  for (i32 i = ((i32)group_id(0) * 32 + local_id(0)) * 2; i < arg1; i = arg1) {
    const i32 whole = arg1 - i >= 2;
    VARRAY(i64, 2, q0);
    UNROLL for (i32 l = 0; l < 2; ++l) {
      q0[l] = (i64)(i + l);
    }
    if (whole) { VSTORE(i64, 2, q0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 2; ++l) if (i + l < arg1) arg0[o0 + i + l] = q0[l];
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 32x1x1>(output0, 64)

KERNEL(32, 1, 1) kernel0(GLOBAL i64* RESTRICT arg0, i32 arg1) {
  STARTED;
  i32 o0 = 0;
  for (i32 i = ((i32)group_id(0) * 32 + local_id(0)) * 2; i < arg1; i = arg1) {
    const i32 whole = arg1 - i >= 2;
    VARRAY(i64, 2, q0);
    UNROLL for (i32 l = 0; l < 2; ++l) {
      q0[l] = (i64)(i + l);
    }
    if (whole) { VSTORE(i64, 2, q0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 2; ++l) if (i + l < arg1) arg0[o0 + i + l] = q0[l];
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(output0, 64, 64)

KERNEL(1, 1, 1) kernel0(Global<i64> arg0, i64 arg1, i64 arg2) {
  i64 first = (i64)group_id(0) * arg2, last = first + arg2 < arg1 ? first + arg2 : arg1;
  i64 o0 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    arg0[o0 + i] = (i64)i;
  }
}
