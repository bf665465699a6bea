// square @ square

// --- OpenCL, CUDA
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
