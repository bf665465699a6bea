// x[i]

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(input0, input1, output0, status+0, 3, 8, 4, 24)

// calls resolve
KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg7; j += (i64)group_count(0) * 256) {
    const i64 row = j / arg5, k = j % arg5;
    const i64 from = (row / arg4 * arg6 + resolve(arg1[row % arg4], arg6, arg3)) * arg5;
    arg2[j] = arg0[from + k];
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(input0, input1, output0, status+0, 6, 2, 4, 3)

// calls resolve
KERNEL(256, 1, 1) kernel0(GLOBAL const uint4* arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL uint4* arg2, GLOBAL i64* arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  STARTED;
  uint4 moved[4];
  const u32 first = blockIdx.x * 1024 + threadIdx.x;
  UNROLL for (u32 k = 0; k < 4; ++k) {
    const u32 j = first + k * 256;
    if (j < (u32)arg4) {
      const u32 row = j / (u32)arg5;
      moved[k] = arg0[((i64)(row / (u32)arg7) * arg6 + resolve(arg1[row % (u32)arg7], arg6, arg3)) * arg5 + (j - row * (u32)arg5)];
    }
  }
  UNROLL for (u32 k = 0; k < 4; ++k) if (first + k * 256 < (u32)arg4) arg2[first + k * 256] = moved[k];
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(input0, input1, output0, status+0, 3, 8, 4, 3, 3)

// calls resolve
KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<const i64> arg1, Global<f32> arg2, Global<i64> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  const i64 first = (i64)group_id(0) * arg8, last = first + arg8 < arg7 ? first + arg8 : arg7;
  for (i64 j = first; j < last; ++j) {
    const i64 from = (j / arg4 * arg6 + resolve(arg1[j % arg4], arg6, arg3)) * arg5;
    for (i64 k = 0; k < arg5; ++k) arg2[j * arg5 + k] = arg0[from + k];
  }
}
