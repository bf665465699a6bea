// reshape(square.T, [65536])

// --- OpenCL
// workspace 0 bytes
// kernel0<16x1x1 of 64x4x1>(input0, output0, 256, 256, 256, 256, 4, 4)

KERNEL(64, 4, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7) {
  LOCAL f32 tile[64][65];
  const i32 x = local_id(0), y = local_id(1);
  const i32 number = group_id(0), column = number % arg6 * 64, rest = number / arg6;
  const i32 line = rest % arg7 * 64, row = rest / arg7;
  i32 o0 = 0;
  i32 o1 = 0;
  UNROLL for (i32 k = 0; k < 64; k += 4)
  if (column + x < arg2 && line + y + k < arg3) tile[y + k][x] = arg0[o0 + column + x + (line + y + k) * arg4];
  BARRIER;
  UNROLL for (i32 k = 0; k < 64; k += 4)
  if (column + y + k < arg2 && line + x < arg3) arg1[o1 + (column + y + k) * arg5 + line + x] = tile[x][y + k];
}

// --- CUDA
// workspace 0 bytes
// kernel0<16x1x1 of 64x4x1>(input0, output0, 256, 256, 256, 256, 4, 4)

KERNEL(64, 4, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7) {
  STARTED;
  LOCAL f32 tile[64][65];
  const i32 x = local_id(0), y = local_id(1);
  const i32 number = group_id(0), column = number % arg6 * 64, rest = number / arg6;
  const i32 line = rest % arg7 * 64, row = rest / arg7;
  i32 o0 = 0;
  i32 o1 = 0;
  UNROLL for (i32 k = 0; k < 64; k += 4)
  if (column + x < arg2 && line + y + k < arg3) tile[y + k][x] = arg0[o0 + column + x + (line + y + k) * arg4];
  BARRIER;
  UNROLL for (i32 k = 0; k < 64; k += 4)
  if (column + y + k < arg2 && line + x < arg3) arg1[o1 + (column + y + k) * arg5 + line + x] = tile[x][y + k];
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x256x1 of 1x1x1>(input0, output0, 256, 256, 1, 256, 256, 256)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 piece = begin; piece < end; piece += 32) {
    const i64 stop = piece + 32 < end ? piece + 32 : end;
    for (i64 row = first; row < last; ++row) {
      i64 o0 = row;
      i64 o1 = row * arg6;
      VECTORIZE for (i64 i = piece; i < stop; ++i) {
        f32 x0 = arg0[o0 + i * arg7];
        arg1[o1 + i] = x0;
      }
    }
  }
}
