// randint([63], low=-3, high=1000, seed=7)

// --- OpenCL
// workspace 512 bytes
// kernel0<1x1x1 of 32x1x1>(workspace+0, 63, 7)
// kernel1<1x1x1 of 32x1x1>(workspace+0, output0, 63, 1003, -3)

// calls uniform_f64
KERNEL(32, 1, 1) kernel0(GLOBAL f64* RESTRICT arg0, i32 arg1, i64 arg2) {
  i32 o0 = 0;
  for (i32 i = ((i32)group_id(0) * 32 + local_id(0)) * 2; i < arg1; i = arg1) {
    const i32 whole = arg1 - i >= 2;
    VARRAY(f64, 2, q0);
    UNROLL for (i32 l = 0; l < 2; ++l) {
      f64 value = uniform_f64((u64)arg2, (u64)(i + l));
      q0[l] = value;
    }
    if (whole) { VSTORE(f64, 2, q0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 2; ++l) if (i + l < arg1) arg0[o0 + i + l] = q0[l];
  }
}

// calls from_f64_i64
KERNEL(32, 1, 1) kernel1(GLOBAL const f64* RESTRICT arg0, GLOBAL i64* RESTRICT arg1, i32 arg2, f64 arg3, i64 arg4) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 32 + local_id(0)) * 2; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 2;
    VARRAY(f64, 2, p0);
    if (whole) { VLOAD(f64, 2, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 2; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(i64, 2, q0);
    UNROLL for (i32 l = 0; l < 2; ++l) {
      f64 x0 = p0[l];
      f64 v0_2 = x0 * arg3;
      f64 v0 = v0_2;
      f64 v1_1 = floor(v0);
      f64 v1 = v1_1;
      i64 v2 = from_f64_i64(v1);
      i64 v3_2 = (i64)((u64)v2 + (u64)(i64)arg4);
      i64 v3 = v3_2;
      q0[l] = v3;
    }
    if (whole) { VSTORE(i64, 2, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 2; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(7, 1003, -3, output0, 63, 32)

// calls philox
// calls unit_below
KERNEL(256, 1, 1) kernel0(i64 arg0, i64 arg1, i64 arg2, GLOBAL i64* RESTRICT arg3, i32 arg4, i64 arg5) {
  STARTED;
  for (u32 j = blockIdx.x * 256u + threadIdx.x; j < (u32)arg5; j += gridDim.x * 256u) {
    const i32 first = (i32)j * 2;
    Words words[1];
    UNROLL for (i32 pair = 0; pair < 1; ++pair) words[pair] = philox((u64)arg0, (u64)j * 1 + pair, 1u);
    VARRAY(i64, 2, q0);
    UNROLL for (i32 l = 0; l < 2; ++l) {
      const f64 x0 = 0.0;
      const i64 v2 = unit_below(words[l / 2].w[l % 2 * 2], words[l / 2].w[l % 2 * 2 + 1], (u32)arg1);
      i64 v3_2 = (i64)((u64)v2 + (u64)(i64)arg2);
      i64 v3 = v3_2;
      q0[l] = v3;
    }
    if (arg4 - first >= 2) {
      VSTORE(i64, 2, q0 + 0, arg3 + first + 0);
    } else {
      for (i32 l = 0; l < 2; ++l) if (first + l < arg4) arg3[first + l] = q0[l];
    }
  }
}

// --- Tenstorrent
// workspace 512 bytes
// kernel0<1x1x1 of 1x1x1>(workspace+0, 63, 64, 7)
// kernel1<1x1x1 of 1x1x1>(workspace+0, output0, 63, 64, 1003, -3)

// calls uniform_f64
KERNEL(1, 1, 1) kernel0(Global<f64> arg0, i64 arg1, i64 arg2, i64 arg3) {
  i64 first = (i64)group_id(0) * arg2, last = first + arg2 < arg1 ? first + arg2 : arg1;
  i64 o0 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f64 value = uniform_f64((u64)arg3, (u64)i);
    arg0[o0 + i] = value;
  }
}

// calls from_f64_i64
KERNEL(1, 1, 1) kernel1(Global<const f64> arg0, Global<i64> arg1, i64 arg2, i64 arg3, f64 arg4, i64 arg5) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f64 x0 = arg0[o0 + i];
    f64 v0_2 = x0 * arg4;
    f64 v0 = v0_2;
    f64 v1_1 = floor(v0);
    f64 v1 = v1_1;
    i64 v2 = from_f64_i64(v1);
    i64 v3_2 = (i64)((u64)v2 + (u64)(i64)arg5);
    i64 v3 = v3_2;
    arg1[o1 + i] = v3;
  }
}
