// gather(v, i, axis=0)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(input0, input1, output0, status+0, 8, 1, 3)

// calls resolve
KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i64 arg5, i64 arg6) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    i64 o0 = 0;
    const i64 from = o0 + resolve(arg1[j], arg4, arg3) * arg5;
    arg2[j] = arg0[from];
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 256x1x1>(input0, input1, output0, status+0, 8, 1, 3)

// calls resolve
KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i64 arg5, i64 arg6) {
  STARTED;
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    i64 o0 = 0;
    const i64 from = o0 + resolve(arg1[j], arg4, arg3) * arg5;
    arg2[j] = arg0[from];
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(input0, input1, output0, status+0, 8, 1, 3, 3)

// calls resolve
KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<const i64> arg1, Global<f32> arg2, Global<i64> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  const i64 first = (i64)group_id(0) * arg7, last = first + arg7 < arg6 ? first + arg7 : arg6;
  for (i64 j = first; j < last; ++j) {
    i64 o0 = 0;
    const i64 from = o0 + resolve(arg1[j], arg4, arg3) * arg5;
    arg2[j] = arg0[from];
  }
}
