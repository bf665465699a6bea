// bernoulli([63], p=0.3, seed=7)

// --- OpenCL
// workspace 512 bytes
// kernel0<1x1x1 of 32x1x1>(workspace+0, 63, 7)
// kernel1<1x1x1 of 32x1x1>(workspace+0, output0, 63, 0.3)

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

KERNEL(32, 1, 1) kernel1(GLOBAL const f64* RESTRICT arg0, GLOBAL u8* RESTRICT arg1, i32 arg2, f64 arg3) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 32 + local_id(0)) * 2; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 2;
    VARRAY(f64, 2, p0);
    if (whole) { VLOAD(f64, 2, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 2; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(u8, 2, q0);
    UNROLL for (i32 l = 0; l < 2; ++l) {
      f64 x0 = p0[l];
      i32 v0_2 = (x0 < arg3);
      i32 v0 = v0_2;
      q0[l] = (u8)v0;
    }
    if (whole) { VSTORE(u8, 2, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 2; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(7, 0.3, output0, 63, 16)

// calls philox
// calls unit_f64
KERNEL(256, 1, 1) kernel0(i64 arg0, f64 arg1, GLOBAL u8* RESTRICT arg2, i32 arg3, i64 arg4) {
  STARTED;
  for (u32 j = blockIdx.x * 256u + threadIdx.x; j < (u32)arg4; j += gridDim.x * 256u) {
    const i32 first = (i32)j * 4;
    f64 values[4];
    UNROLL for (i32 pair = 0; pair < 2; ++pair) {
      const Words words = philox((u64)arg0, (u64)j * 2 + pair, 1u);
      values[pair * 2 + 0] = unit_f64(words.w[0], words.w[1]);
      values[pair * 2 + 1] = unit_f64(words.w[2], words.w[3]);
    }
    VARRAY(u8, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      const f64 x0 = values[l];
      i32 v0_2 = (x0 < arg1);
      i32 v0 = v0_2;
      q0[l] = (u8)v0;
    }
    if (arg3 - first >= 4) {
      VSTORE(u8, 4, q0 + 0, arg2 + first + 0);
    } else {
      for (i32 l = 0; l < 4; ++l) if (first + l < arg3) arg2[first + l] = q0[l];
    }
  }
}

// --- Tenstorrent
// workspace 512 bytes
// kernel0<1x1x1 of 1x1x1>(workspace+0, 63, 64, 7)
// kernel1<1x1x1 of 1x1x1>(workspace+0, output0, 63, 64, 0.3)

// calls uniform_f64
KERNEL(1, 1, 1) kernel0(Global<f64> arg0, i64 arg1, i64 arg2, i64 arg3) {
  i64 first = (i64)group_id(0) * arg2, last = first + arg2 < arg1 ? first + arg2 : arg1;
  i64 o0 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f64 value = uniform_f64((u64)arg3, (u64)i);
    arg0[o0 + i] = value;
  }
}

KERNEL(1, 1, 1) kernel1(Global<const f64> arg0, Global<u8> arg1, i64 arg2, i64 arg3, f64 arg4) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f64 x0 = arg0[o0 + i];
    i32 v0_2 = (x0 < arg4);
    i32 v0 = v0_2;
    arg1[o1 + i] = (u8)v0;
  }
}
