// gather(square, places, axis=1)

// --- OpenCL
// workspace 0 bytes
// kernel0<64x1x1 of 256x1x1>(input0, input1, output0, status+0, 256, 16384, 64, 256, 1)

// calls resolve
KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8) {
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg5) {
    i32 i1 = (u32)j % (u32)arg6, r1 = (u32)j / (u32)arg6;
    i32 o0 = r1 * arg7;
    VARRAY(i64, 4, w);
    VLOAD(i64, 2, w + 0, arg1 + j * 4 + 0);
    VLOAD(i64, 2, w + 2, arg1 + j * 4 + 2);
    VARRAY(f32, 4, r);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      r[l] = arg0[o0 + (i32)resolve(w[l], arg4, arg3) * arg8];
    }
    VSTORE(f32, 4, r, arg2 + j * 4);
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<64x1x1 of 256x1x1>(input0, input1, output0, status+0, 256, 16384, 64, 256, 1)

// calls resolve
KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8) {
  STARTED;
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg5) {
    i32 i1 = (u32)j % (u32)arg6, r1 = (u32)j / (u32)arg6;
    i32 o0 = r1 * arg7;
    VARRAY(i64, 4, w);
    VLOAD(i64, 2, w + 0, arg1 + j * 4 + 0);
    VLOAD(i64, 2, w + 2, arg1 + j * 4 + 2);
    VARRAY(f32, 4, r);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      r[l] = arg0[o0 + (i32)resolve(w[l], arg4, arg3) * arg8];
    }
    VSTORE(f32, 4, r, arg2 + j * 4);
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<2048x1x1 of 1x1x1>(input0, input1, output0, status+0, 256, 256, 256, 1, 65536, 32)

// calls resolve
KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<const i64> arg1, Global<f32> arg2, Global<i64> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9) {
  const i64 first = (i64)group_id(0) * arg9, last = first + arg9 < arg8 ? first + arg9 : arg8;
  for (i64 j = first; j < last; ++j) {
    i64 i1 = j % arg4, r1 = j / arg4;
    i64 o0 = r1 * arg5;
    const i64 from = o0 + resolve(arg1[j], arg6, arg3) * arg7;
    arg2[j] = arg0[from];
  }
}
