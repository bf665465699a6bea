// randn([64], seed=7)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 16x1x1>(output0, 64, 7)

// calls normal_f32
KERNEL(16, 1, 1) kernel0(GLOBAL f32* RESTRICT arg0, i32 arg1, i64 arg2) {
  i32 o0 = 0;
  for (i32 i = ((i32)group_id(0) * 16 + local_id(0)) * 4; i < arg1; i = arg1) {
    const i32 whole = arg1 - i >= 4;
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 value = normal_f32((u64)arg2, (u64)(i + l));
      q0[l] = value;
    }
    if (whole) { VSTORE(f32, 4, q0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg1) arg0[o0 + i + l] = q0[l];
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(output0, 7, 16)

// calls normal_pair
// calls philox
KERNEL(256, 1, 1) kernel0(GLOBAL f32* RESTRICT arg0, i64 arg1, i64 arg2) {
  STARTED;
  for (u32 j = blockIdx.x * 256u + threadIdx.x; j < (u32)arg2; j += gridDim.x * 256u) {
    const i64 first = (i64)j * 4;
    f32 values[4];
    const Words words = philox((u64)arg1, (u64)j, 3u);
    normal_pair(words.w[0], words.w[0 + 1], values + 0);
    normal_pair(words.w[2], words.w[2 + 1], values + 2);
    VARRAY(f32, 4, r);
    UNROLL for (i32 l = 0; l < 4; ++l) r[l] = values[l];
    VSTORE(f32, 4, r + 0, arg0 + first + 0);
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(output0, 64, 64, 7)

// calls normal_f32
KERNEL(1, 1, 1) kernel0(Global<f32> arg0, i64 arg1, i64 arg2, i64 arg3) {
  i64 first = (i64)group_id(0) * arg2, last = first + arg2 < arg1 ? first + arg2 : arg1;
  i64 o0 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 value = normal_f32((u64)arg3, (u64)i);
    arg0[o0 + i] = value;
  }
}
