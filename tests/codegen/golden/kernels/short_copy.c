// pixel_shuffle(picture, 2)

// --- OpenCL
// workspace 0 bytes
// kernel0<256x1x1 of 256x1x1>(input0, output0, 65536, 8, 2, 32, 4096, 32, 2048, 4, 1024)

KERNEL(256, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10) {
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg2) {
    i32 i3 = (u32)j % (u32)arg3, r3 = (u32)j / (u32)arg3;
    i32 i2 = (u32)r3 % (u32)arg4, r2 = (u32)r3 / (u32)arg4;
    i32 i1 = (u32)r2 % (u32)arg5, r1 = (u32)r2 / (u32)arg5;
    i32 o0 = r1 * arg6 + i1 * arg7 + i2 * arg8 + i3 * arg9;
    u16 p[2][4];
    UNROLL for (i32 b = 0; b < 2; ++b) {
      VARRAY(u16, 4, n);
      VLOAD(u16, 4, n, arg0 + o0 + b * arg10);
      UNROLL for (i32 s = 0; s < 4; ++s) p[b][s] = n[s];
    }
    VARRAY(u16, 8, q);
    UNROLL for (i32 l = 0; l < 8; ++l) q[l] = p[l % 2][l / 2];
    VSTORE(u16, 8, q, arg1 + 0 + j * 8);
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<256x1x1 of 256x1x1>(input0, output0, 65536, 8, 2, 32, 4096, 32, 2048, 4, 1024)

KERNEL(256, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10) {
  STARTED;
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg2) {
    i32 i3 = (u32)j % (u32)arg3, r3 = (u32)j / (u32)arg3;
    i32 i2 = (u32)r3 % (u32)arg4, r2 = (u32)r3 / (u32)arg4;
    i32 i1 = (u32)r2 % (u32)arg5, r1 = (u32)r2 / (u32)arg5;
    i32 o0 = r1 * arg6 + i1 * arg7 + i2 * arg8 + i3 * arg9;
    u16 p[2][4];
    UNROLL for (i32 b = 0; b < 2; ++b) {
      VARRAY(u16, 4, n);
      VLOAD(u16, 4, n, arg0 + o0 + b * arg10);
      UNROLL for (i32 s = 0; s < 4; ++s) p[b][s] = n[s];
    }
    VARRAY(u16, 8, q);
    UNROLL for (i32 l = 0; l < 8; ++l) q[l] = p[l % 2][l / 2];
    VSTORE(u16, 8, q, arg1 + 0 + j * 8);
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x2048x1 of 1x1x1>(input0, output0, 2, 262144, 128, 2, 32, 2, 32, 4096, 32, 2048, 4096, 128, 64, 2, 1024)

KERNEL(1, 1, 1) kernel0(Global<const u16> arg0, Global<u16> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 piece = begin; piece < end; piece += 32) {
    const i64 stop = piece + 32 < end ? piece + 32 : end;
    for (i64 row = first; row < last; ++row) {
      i64 i3 = row % arg6, r3 = row / arg6;
      i64 i2 = r3 % arg7, r2 = r3 / arg7;
      i64 i1 = r2 % arg8, r1 = r2 / arg8;
      i64 o0 = r1 * arg9 + i1 * arg10 + i2 * arg11 + i3;
      i64 o1 = r1 * arg12 + i1 * arg13 + i2 * arg14 + i3 * arg15;
      VECTORIZE for (i64 i = piece; i < stop; ++i) {
        u16 x0 = arg0[o0 + i * arg16];
        arg1[o1 + i] = x0;
      }
    }
  }
}
