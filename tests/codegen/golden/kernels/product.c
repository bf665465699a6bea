// square @ square

// --- OpenCL
// workspace 0 bytes
// kernel0<4x4x1 of 256x1x1>(input0, input0, output0, 256, 256, 256, 1, 0, 0, 65536, 256, 256, 256)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12) {
  const i32 lane = local_id(0), tx = lane % 16, ty = lane / 16;
  LOCAL f32 tile_a[16][64 + 1];
  LOCAL f32 tile_b[16][64 + 1];
  for (i32 batch = group_id(2); batch < arg6; batch += group_count(2)) {
    const i32 from_a = batch * arg7;
    const i32 from_b = batch * arg8;
    const i32 to = batch * arg9;
    for (i32 row = (i32)group_id(1) * 64; row < arg3; row += (i32)group_count(1) * 64) {
      const i32 column = (i32)group_id(0) * 64;
      f32 sum[4][4];
      UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) sum[r][c] = 0;
      for (i32 k = 0; k < arg5; k += 16) {
        UNROLL for (i32 e = 0; e < 4; ++e) {
          const i32 item = lane + e * 256;
          const i32 ar = item / 16, ak = item % 16;
          tile_a[ak][ar] = row + ar < arg3 && k + ak < arg5 ? arg0[from_a + (row + ar) * arg10 + (k + ak)] : 0;
          const i32 bc = item % 64, bk = item / 64;
          tile_b[bk][bc] = column + bc < arg4 && k + bk < arg5 ? arg1[from_b + (k + bk) * arg11 + (column + bc)] : 0;
        }
        BARRIER;
        UNROLL for (i32 d = 0; d < 16; ++d) {
          f32 a[4], b[4];
          UNROLL for (i32 r = 0; r < 4; ++r) { a[r] = tile_a[d][ty + r * 16]; b[r] = tile_b[d][tx + r * 16]; }
          UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) sum[r][c] = fma(a[r], b[c], sum[r][c]);
        }
        BARRIER;
      }
      UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) {
        const i32 i = row + ty + r * 16, j = column + tx + c * 16;
        if (i < arg3 && j < arg4) arg2[to + i * arg12 + j] = sum[r][c];
      }
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<4x4x1 of 256x1x1>(input0, input0, output0, 256, 256, 256, 1, 0, 0, 65536, 256, 256, 256)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12) {
  STARTED;
  const i32 lane = local_id(0), tx = lane % 16, ty = lane / 16;
  LOCAL f32 tile_a[16][64 + 1];
  LOCAL f32 tile_b[16][64 + 1];
  for (i32 batch = group_id(2); batch < arg6; batch += group_count(2)) {
    const i32 from_a = batch * arg7;
    const i32 from_b = batch * arg8;
    const i32 to = batch * arg9;
    for (i32 row = (i32)group_id(1) * 64; row < arg3; row += (i32)group_count(1) * 64) {
      const i32 column = (i32)group_id(0) * 64;
      f32 sum[4][4];
      UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) sum[r][c] = 0;
      for (i32 k = 0; k < arg5; k += 16) {
        UNROLL for (i32 e = 0; e < 4; ++e) {
          const i32 item = lane + e * 256;
          const i32 ar = item / 16, ak = item % 16;
          tile_a[ak][ar] = row + ar < arg3 && k + ak < arg5 ? arg0[from_a + (row + ar) * arg10 + (k + ak)] : 0;
          const i32 bc = item % 64, bk = item / 64;
          tile_b[bk][bc] = column + bc < arg4 && k + bk < arg5 ? arg1[from_b + (k + bk) * arg11 + (column + bc)] : 0;
        }
        BARRIER;
        UNROLL for (i32 d = 0; d < 16; ++d) {
          f32 a[4], b[4];
          UNROLL for (i32 r = 0; r < 4; ++r) { a[r] = tile_a[d][ty + r * 16]; b[r] = tile_b[d][tx + r * 16]; }
          UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) sum[r][c] = fma(a[r], b[c], sum[r][c]);
        }
        BARRIER;
      }
      UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) {
        const i32 i = row + ty + r * 16, j = column + tx + c * 16;
        if (i < arg3 && j < arg4) arg2[to + i * arg12 + j] = sum[r][c];
      }
    }
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<16x64x1 of 1x1x1>(input0, input0, output0, 256, 256, 256, 1, 0, 0, 65536, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256, 256)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<const f32> arg1, Global<f32> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20) {
  const i64 column = (i64)group_id(0) * 16, width = arg4 - column < 16 ? arg4 - column : 16;
  for (i64 batch = group_id(2); batch < arg6; batch += group_count(2)) {
    const i64 from_a = batch * arg7;
    const i64 from_b = batch * arg8;
    const i64 to = batch * arg9;
    for (i64 row = (i64)group_id(1) * 4; row < arg3; row += (i64)group_count(1) * 4) {
      f32 sum[4][16];
      for (i32 r = 0; r < 4; ++r) for (i32 c = 0; c < 16; ++c) sum[r][c] = 0;
      const i64 row0 = row + 0 < arg3 ? row + 0 : arg3 - 1;
      const i64 row1 = row + 1 < arg3 ? row + 1 : arg3 - 1;
      const i64 row2 = row + 2 < arg3 ? row + 2 : arg3 - 1;
      const i64 row3 = row + 3 < arg3 ? row + 3 : arg3 - 1;
      if (width == 16) {
        for (i64 k = 0; k < arg5; ++k) {
          const f32 a0 = arg0[from_a + row0 * arg10 + k];
          const f32 a1 = arg0[from_a + row1 * arg11 + k];
          const f32 a2 = arg0[from_a + row2 * arg12 + k];
          const f32 a3 = arg0[from_a + row3 * arg13 + k];
          for (i32 c = 0; c < 16; ++c) {
            const f32 b = arg1[from_b + k * arg14 + (column + c)];
            sum[0][c] = fma(a0, b, sum[0][c]);
            sum[1][c] = fma(a1, b, sum[1][c]);
            sum[2][c] = fma(a2, b, sum[2][c]);
            sum[3][c] = fma(a3, b, sum[3][c]);
          }
        }
      } else {
        for (i64 k = 0; k < arg5; ++k) {
          const f32 a0 = arg0[from_a + row0 * arg15 + k];
          const f32 a1 = arg0[from_a + row1 * arg16 + k];
          const f32 a2 = arg0[from_a + row2 * arg17 + k];
          const f32 a3 = arg0[from_a + row3 * arg18 + k];
          for (i32 c = 0; c < width; ++c) {
            const f32 b = arg1[from_b + k * arg19 + (column + c)];
            sum[0][c] = fma(a0, b, sum[0][c]);
            sum[1][c] = fma(a1, b, sum[1][c]);
            sum[2][c] = fma(a2, b, sum[2][c]);
            sum[3][c] = fma(a3, b, sum[3][c]);
          }
        }
      }
      for (i32 r = 0; r < 4 && row + r < arg3; ++r) for (i32 c = 0; c < width; ++c) arg2[to + (row + r) * arg20 + (column + c)] = sum[r][c];
    }
  }
}
