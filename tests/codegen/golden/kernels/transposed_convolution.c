// conv_transpose2d(picture, filters, stride=2)

// --- OpenCL
// workspace 5608448 bytes
// kernel0<16x1x1 of 256x1x1>(input1, workspace+5575680, 4096, 64, 8, 9, 576, -2, -6)
// kernel1<5x64x8 of 256x1x1>(input0, workspace+0, 1089, 64, 8, 0, 32, 33, 2, 1, 1, 1, 32, 33, 2, 1, 1, 1)
// kernel2<18x1x8 of 256x1x1>(workspace+5575680, workspace+0, workspace+4460544, 64, 1089, 256, 8, 0, 278784, 69696, 256, 1089, 1089)
// kernel3<1x4224x1 of 64x4x1>(workspace+4460544, output0, 33, 16896, 33, 1089, 33, 4225, 130, 2)
// kernel4<4x1x1 of 256x1x1>(input1, workspace+3244032, 1024, 16, 7, 9, 2304, -6, 576)
// kernel1<5x64x8 of 256x1x1>(input0, workspace+0, 1056, 64, 8, 0, 32, 33, 2, 1, 1, 1, 32, 32, 1, 1, 1, 0)
// kernel2<17x1x8 of 256x1x1>(workspace+3244032, workspace+0, workspace+2162688, 64, 1056, 128, 8, 0, 135168, 67584, 128, 1056, 1056)
// kernel5<1x2112x1 of 32x8x1>(workspace+2162688, output0, 32, 16896, 33, 1056, 32, 1, 4225, 130, 2)
// kernel4<4x1x1 of 256x1x1>(input1, workspace+3244032, 1024, 16, 5, 9, 2304, -2, 576)
// kernel1<5x64x8 of 256x1x1>(input0, workspace+0, 1056, 64, 8, 0, 32, 32, 1, 1, 1, 0, 32, 33, 2, 1, 1, 1)
// kernel2<17x1x8 of 256x1x1>(workspace+3244032, workspace+0, workspace+2162688, 64, 1056, 128, 8, 0, 135168, 67584, 128, 1056, 1056)
// kernel6<1x4096x1 of 64x4x1>(workspace+2162688, output0, 33, 16384, 32, 1056, 33, 65, 4225, 130, 2)
// kernel7<1x16x1 of 64x4x1>(input1, workspace+1048576, 64, 64, 4, 9, 64, 576)
// kernel2<16x1x8 of 256x1x1>(workspace+1048576, input0, workspace+0, 64, 1024, 64, 8, 0, 65536, 65536, 64, 1024, 1024)
// kernel5<1x2048x1 of 32x8x1>(workspace+0, output0, 32, 16384, 32, 1024, 32, 66, 4225, 130, 2)

KERNEL(256, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8) {
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg2) {
    i32 i1 = (u32)j % (u32)arg3, r1 = (u32)j / (u32)arg3;
    i32 o0 = arg4 + r1 * arg5 + i1 * arg6;
    u16 p[2][2];
    UNROLL for (i32 b = 0; b < 2; ++b) {
      UNROLL for (i32 s = 0; s < 2; ++s) p[b][s] = arg0[o0 + s * arg8 + b * arg7];
    }
    VARRAY(u16, 4, q);
    UNROLL for (i32 l = 0; l < 4; ++l) q[l] = p[l % 2][l / 2];
    VSTORE(u16, 4, q, arg1 + 0 + j * 4);
  }
}

KERNEL(256, 1, 1) kernel1(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12, i32 arg13, i32 arg14, i32 arg15, i32 arg16, i32 arg17) {
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg2) {
    i32 image = j;
    const i32 y1 = image % arg13 * arg15 - arg17;
    image /= arg13;
    const i32 y0 = image % arg7 * arg9 - arg11;
    image /= arg7;
    for (i32 b = group_id(2); b < arg4; b += group_count(2))
    for (i32 c = group_id(1); c < arg3; c += group_count(1)) {
      const i32 from = ((arg5 + b) * arg3 + c) * (arg6 * arg12);
      i32 to = (b * arg3 + c) * (arg8 * arg14) * arg2 + j;
      for (i32 w0 = 0; w0 < arg8; ++w0) {
        const i32 z0 = y0 + w0 * arg10;
        for (i32 w1 = 0; w1 < arg14; ++w1) {
          const i32 z1 = y1 + w1 * arg16;
          arg1[to] = 1 && z0 >= 0 && z0 < arg6 && z1 >= 0 && z1 < arg12 ? arg0[from + (z0) * arg12 + z1] : 0;
          to += arg2;
        }
      }
    }
  }
}

// calls f32_to_half
// calls half_to_f32
KERNEL(256, 1, 1) kernel2(GLOBAL const u16* RESTRICT arg0, GLOBAL const u16* RESTRICT arg1, GLOBAL u16* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12) {
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
          tile_a[ak][ar] = row + ar < arg3 && k + ak < arg5 ? half_to_f32(arg0[from_a + (row + ar) * arg10 + (k + ak)]) : 0;
          const i32 bc = item % 64, bk = item / 64;
          tile_b[bk][bc] = column + bc < arg4 && k + bk < arg5 ? half_to_f32(arg1[from_b + (k + bk) * arg11 + (column + bc)]) : 0;
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
        if (i < arg3 && j < arg4) arg2[to + i * arg12 + j] = f32_to_half(sum[r][c]);
      }
    }
  }
}

KERNEL(64, 4, 1) kernel3(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9) {
  for (i32 row = (i32)group_id(1) * 4 + local_id(1); row < arg3; row += (i32)group_count(1) * 4) {
    i32 i1 = (u32)row % (u32)arg4, r1 = (u32)row / (u32)arg4;
    i32 o0 = r1 * arg5 + i1 * arg6;
    i32 o1 = r1 * arg7 + i1 * arg8;
    for (i32 i = ((i32)group_id(0) * 64 + local_id(0)) * 1; i < arg2; i = arg2) {
      u16 x0 = arg0[o0 + i];
      arg1[o1 + i * arg9] = x0;
    }
  }
}

KERNEL(256, 1, 1) kernel4(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8) {
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg2) {
    i32 i1 = (u32)j % (u32)arg3, r1 = (u32)j / (u32)arg3;
    i32 o0 = arg4 + r1 * arg5 + i1 * arg6;
    u16 p[2][4];
    UNROLL for (i32 b = 0; b < 2; ++b) {
      UNROLL for (i32 s = 0; s < 4; ++s) p[b][s] = arg0[o0 + s * arg8 + b * arg7];
    }
    VARRAY(u16, 8, q);
    UNROLL for (i32 l = 0; l < 8; ++l) q[l] = p[l % 2][l / 2];
    VSTORE(u16, 8, q, arg1 + 0 + j * 8);
  }
}

KERNEL(32, 8, 1) kernel5(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10) {
  for (i32 row = (i32)group_id(1) * 8 + local_id(1); row < arg3; row += (i32)group_count(1) * 8) {
    i32 i1 = (u32)row % (u32)arg4, r1 = (u32)row / (u32)arg4;
    i32 o0 = r1 * arg5 + i1 * arg6;
    i32 o1 = arg7 + r1 * arg8 + i1 * arg9;
    for (i32 i = ((i32)group_id(0) * 32 + local_id(0)) * 1; i < arg2; i = arg2) {
      u16 x0 = arg0[o0 + i];
      arg1[o1 + i * arg10] = x0;
    }
  }
}

KERNEL(64, 4, 1) kernel6(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10) {
  for (i32 row = (i32)group_id(1) * 4 + local_id(1); row < arg3; row += (i32)group_count(1) * 4) {
    i32 i1 = (u32)row % (u32)arg4, r1 = (u32)row / (u32)arg4;
    i32 o0 = r1 * arg5 + i1 * arg6;
    i32 o1 = arg7 + r1 * arg8 + i1 * arg9;
    for (i32 i = ((i32)group_id(0) * 64 + local_id(0)) * 1; i < arg2; i = arg2) {
      u16 x0 = arg0[o0 + i];
      arg1[o1 + i * arg10] = x0;
    }
  }
}

KERNEL(64, 4, 1) kernel7(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7) {
  for (i32 row = (i32)group_id(1) * 4 + local_id(1); row < arg3; row += (i32)group_count(1) * 4) {
    i32 o0 = arg4 + row * arg5;
    i32 o1 = row * arg6;
    for (i32 i = ((i32)group_id(0) * 64 + local_id(0)) * 1; i < arg2; i = arg2) {
      u16 x0 = arg0[o0 + i * arg7];
      arg1[o1 + i] = x0;
    }
  }
}

// --- CUDA
// workspace 1148416 bytes
// kernel0<16x1x1 of 256x1x1>(input1, workspace+0, 4096, 64, 8, 9, 576, -2, -6)
// kernel1<32x1x1 of 256x1x1>(workspace+0, workspace+1115136, 64, 64, 4, 4, 8192)
// kernel2<85x1x1 of 128x1x1>(input0, workspace+1115136, workspace+0, 8, 32, 32, 33, 33, 1, 1, 64, 64, 1, 1, 5)
// kernel3<1x4224x1 of 64x4x1>(workspace+0, output0, 33, 16896, 33, 1089, 33, 4225, 130, 2)
// kernel4<4x1x1 of 256x1x1>(input1, workspace+0, 1024, 16, 7, 9, 2304, -6, 576)
// kernel5<16x1x1 of 256x1x1>(workspace+0, workspace+1081344, 64, 64, 4, 4, 4096)
// kernel6<33x1x2 of 128x1x1>(input0, workspace+1081344, workspace+0, 8, 32, 32, 33, 32, 1, 0, 64, 64, 1, 1, 1)
// kernel7<1x2112x1 of 32x8x1>(workspace+0, output0, 32, 16896, 33, 1056, 32, 1, 4225, 130, 2)
// kernel4<4x1x1 of 256x1x1>(input1, workspace+0, 1024, 16, 5, 9, 2304, -2, 576)
// kernel8<16x1x1 of 256x1x1>(workspace+0, workspace+1081344, 64, 64, 4, 4, 4096)
// kernel9<10x1x8 of 128x1x1>(input0, workspace+1081344, workspace+0, 8, 32, 32, 32, 33, 0, 1, 64, 64, 1, 1, 5)
// kernel10<1x4096x1 of 64x4x1>(workspace+0, output0, 33, 16384, 32, 1056, 33, 65, 4225, 130, 2)
// kernel11<1x16x1 of 64x4x1>(input1, workspace+1048576, 64, 64, 4, 9, 64, 576)
// kernel12<16x1x8 of 256x1x1>(workspace+1048576, input0, workspace+0, 64, 1024, 64, 8, 0, 65536, 65536, 64, 1024, 1024)
// kernel7<1x2048x1 of 32x8x1>(workspace+0, output0, 32, 16384, 32, 1024, 32, 66, 4225, 130, 2)

KERNEL(256, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8) {
  STARTED;
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg2) {
    i32 i1 = (u32)j % (u32)arg3, r1 = (u32)j / (u32)arg3;
    i32 o0 = arg4 + r1 * arg5 + i1 * arg6;
    u16 p[2][2];
    UNROLL for (i32 b = 0; b < 2; ++b) {
      UNROLL for (i32 s = 0; s < 2; ++s) p[b][s] = arg0[o0 + s * arg8 + b * arg7];
    }
    VARRAY(u16, 4, q);
    UNROLL for (i32 l = 0; l < 4; ++l) q[l] = p[l % 2][l / 2];
    VSTORE(u16, 4, q, arg1 + 0 + j * 4);
  }
}

KERNEL(256, 1, 1) kernel1(GLOBAL const u16* RESTRICT arg0, GLOBAL u32* arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6) {
  STARTED;
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    enum { TAP_PLANES = 1, TAP_ROWS = 2, TAP_COLUMNS = 2, TAPS = 4 };
    const u32 outs = (u32)arg2;
    const u32 channels = (u32)arg3;
    const u32 channel_pieces = (u32)arg4;
    const u32 out_pieces = (u32)arg5;
    
    u32 rest = (u32)j;
    const u32 word = rest % 4, item = rest / 4 % 32;
    rest /= 128;
    const u32 tx = rest % TAP_COLUMNS;
    rest /= TAP_COLUMNS;
    const u32 half = rest % 2;
    rest /= 2;
    u32 tap = rest % TAP_ROWS * TAP_COLUMNS + tx;
    rest /= TAP_ROWS;
    const u32 channel_piece = rest % (channel_pieces / 2) * 2 + half;
    rest /= channel_pieces / 2;
    tap += rest % TAP_PLANES * TAPS;
    rest /= TAP_PLANES;
    enum { ALL_TAPS = TAP_PLANES * TAPS };
    const u32 o = rest % out_pieces * 16 + item / 4 + word % 2 * 8, c = channel_piece * 16 + item % 4 * 2 + word / 2 * 8;
    const i64 from = ((i64)(rest / out_pieces * outs + o) * channels + c) * ALL_TAPS + tap;
    const u32 low = o < outs && c < channels ? arg0[from] : 0, high = o < outs && c + 1 < channels ? arg0[from + ALL_TAPS] : 0;
    arg1[j] = low | high << 16;
  }
}

// calls f32_to_half
// calls load_matrices
// calls multiply_matrices_f16
KERNEL_LEAST(128, 1, 1, 3) kernel2(GLOBAL const u16* RESTRICT arg0, GLOBAL const u32* arg1, GLOBAL u16* RESTRICT arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14) {
  STARTED;
  enum { THREADS = 128 };
  enum { OUT_TILES = 4 };
  enum { OUT_PARTS = 1 };
  enum { PIXEL_TILES = 4 };
  enum { IMAGES = 8 };
  enum { ROWS = 2 };
  enum { COLUMNS = 8 };
  enum { PATCH_ROWS = 3 };
  enum { PATCH_COLUMNS = 9 };
  enum { TAP_PLANES = 1 };
  enum { TAP_ROWS = 2 };
  enum { TAP_COLUMNS = 2 };
  enum { STRIDE_Z = 1 };
  enum { STRIDE_Y = 1 };
  enum { STRIDE_X = 1 };
  enum { STEP_Z = 1 };
  enum { STEP_Y = 1 };
  enum { STEP_X = 1 };
  enum { depth = 1 };
  enum { out_depth = 1 };
  enum { pad_z = 0 };
  const i32 images = (i32)arg3;
  const i32 height = (i32)arg4;
  const i32 width = (i32)arg5;
  const i32 out_height = (i32)arg6;
  const i32 out_width = (i32)arg7;
  const i32 pad_y = (i32)arg8;
  const i32 pad_x = (i32)arg9;
  const i32 channels = (i32)arg10;
  const i32 outs = (i32)arg11;
  const i32 groups = (i32)arg12;
  const i32 out_blocks = (i32)arg13;
  const i32 tiles_across = (i32)arg14;
  const u16* const x = arg0;
  const u32* const pieces = arg1;
  u16* const result = arg2;
  
  const i32 item = local_id(0) % 32, warp = local_id(0) / 32;
  const i32 part = warp % OUT_PARTS, first_pixel = warp / OUT_PARTS * (PIXEL_TILES * 8);
  const i32 top = group_id(0) / tiles_across * ROWS, left = group_id(0) % tiles_across * COLUMNS;
  const i32 group = group_id(1) / out_blocks, first_out = (group_id(1) % out_blocks * OUT_PARTS + part) * (OUT_TILES * 16);
  const i32 channel_pieces = (channels + 31) / 32 * 2, first_image = group_id(2) * IMAGES;
  const i32 plane = height * width, volume = depth * plane;  // of the input
  const i32 out_plane = group_id(2) % (u32)out_depth;        // 0 for images
  const i64 first_volume = first_image / out_depth;
  const u16* const image = x + (first_volume * groups + group) * channels * (i64)volume;
  enum { TILE = ROWS * COLUMNS, PATCH_PLANE = PATCH_ROWS * PATCH_COLUMNS, PATCH = IMAGES * PATCH_PLANE, TAPS = TAP_ROWS * TAP_COLUMNS };
  
  // The pixels of the patch that this work-item brings.
  LOCAL uint4 patch[PATCH * 5];
  enum { SHARE = (PATCH + THREADS - 1) / THREADS };
  i32 place[SHARE];
  UNROLL for (i32 s = 0; s < SHARE; ++s) {
      const i32 pixel = local_id(0) + s * THREADS, in_image = IMAGES > 1 ? pixel / PATCH_PLANE : 0;
      const i32 py = top * STRIDE_Y - pad_y + pixel % PATCH_PLANE / PATCH_COLUMNS, px = left * STRIDE_X - pad_x + pixel % PATCH_COLUMNS;
      const i32 is_inside = pixel < PATCH && first_image + in_image < images && py >= 0 && py < height && px >= 0 && px < width;
      place[s] = is_inside ? in_image * groups * channels * volume + py * width + px : -1;
  }
  // Where this work-item's rows of the 8 x 8 matrices begin: 16 pixels and 16 channels at a time.
  u32 from[PIXEL_TILES / 2];
  UNROLL for (i32 q = 0; q < PIXEL_TILES / 2; ++q) {
      const i32 pixel = first_pixel + q * 16 + item / 16 * 8 + item % 8;
      const i32 where = pixel / TILE * PATCH_PLANE + pixel % TILE / COLUMNS * STRIDE_Y * PATCH_COLUMNS + pixel % COLUMNS * STRIDE_X;
      from[q] = (u32)__cvta_generic_to_shared(patch + where * 5 + item / 8 % 2);
  }
  const uint4* weight[OUT_TILES];
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m)
    weight[m] = (const uint4*)pieces + ((i64)(group * out_blocks * OUT_PARTS * OUT_TILES + first_out / 16 + m) * TAP_PLANES * channel_pieces * TAPS) * 32 + item;
  uint4 a[OUT_TILES];
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m) a[m] = *weight[m];
  
  f32 sum[OUT_TILES][PIXEL_TILES][4];
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m) UNROLL for (i32 n = 0; n < PIXEL_TILES; ++n) UNROLL for (i32 e = 0; e < 4; ++e) sum[m][n][e] = 0.0f;
  
  for (i32 tz = 0; tz < TAP_PLANES; ++tz) {
    const i32 pz = out_plane * STRIDE_Z - pad_z + tz * STEP_Z;
    if (pz < 0 || pz >= depth) {
        UNROLL for (i32 m = 0; m < OUT_TILES; ++m) a[m] = *(weight[m] += channel_pieces * TAPS * 32);
        continue;
    }
    const u16* const source = image + pz * plane;
    for (i32 channel = 0; channel < channels; channel += 32) {
        if (tz > 0 || channel > 0) BARRIER;
        UNROLL for (i32 s = 0; s < SHARE; ++s) {
            const i32 pixel = local_id(0) + s * THREADS;
            if (pixel >= PATCH) break;
            UNROLL for (i32 eight = 0; eight < 4; ++eight) {
                u32 word[4];
                UNROLL for (i32 w = 0; w < 4; ++w) {
                    const i32 c = channel + eight * 8 + w * 2;
                    const u32 low = place[s] >= 0 && c < channels ? source[(i64)c * volume + place[s]] : 0;
                    const u32 high = place[s] >= 0 && c + 1 < channels ? source[(i64)(c + 1) * volume + place[s]] : 0;
                    word[w] = low | high << 16;
                  }
                patch[pixel * 5 + eight] = make_uint4(word[0], word[1], word[2], word[3]);
              }
          }
        BARRIER;
      
        UNROLL_BY(1) for (i32 ty = 0; ty < TAP_ROWS; ++ty) UNROLL for (i32 half = 0; half < 2; ++half) UNROLL for (i32 tx = 0; tx < TAP_COLUMNS; ++tx) {
            const u32 shift = ((ty * STEP_Y * PATCH_COLUMNS + tx * STEP_X) * 5 + half * 2) * 16;
            u32 b[PIXEL_TILES / 2][4];
            UNROLL for (i32 q = 0; q < PIXEL_TILES / 2; ++q) load_matrices(b[q], from[q] + shift);
            uint4 next[OUT_TILES];
            UNROLL for (i32 m = 0; m < OUT_TILES; ++m) next[m] = *(weight[m] += 32);
            UNROLL for (i32 m = 0; m < OUT_TILES; ++m) {
                UNROLL for (i32 n = 0; n < PIXEL_TILES; ++n) multiply_matrices_f16(sum[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
                a[m] = next[m];
              }
          }
    }
  }
  
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m) UNROLL for (i32 e = 0; e < 2; ++e) {
      const i32 o = first_out + m * 16 + item / 4 + e * 8;
      if (o >= outs) continue;
      u16* const channel = result + (((first_volume * groups + group) * outs + o) * out_depth + out_plane) * out_height * out_width;
      UNROLL for (i32 n = 0; n < PIXEL_TILES; ++n) {
          const i32 pixel = first_pixel + n * 8 + item % 4 * 2, in_image = IMAGES > 1 ? pixel / TILE : 0;
          const i32 ry = top + pixel % TILE / COLUMNS, rx = left + pixel % COLUMNS;
          if (first_image + in_image >= images || ry >= out_height || rx >= out_width) continue;
          u16* const row = channel + (i64)in_image * groups * outs * out_height * out_width;
          const u32 low = f32_to_half(sum[m][n][e * 2]), high = f32_to_half(sum[m][n][e * 2 + 1]);
          if (out_width % 2 == 0) {
              *(u32*)(row + ry * out_width + rx) = low | high << 16;
            } else {
              row[ry * out_width + rx] = (u16)low;
              if (rx + 1 < out_width) row[ry * out_width + rx + 1] = (u16)high;
            }
        }
  }
}

KERNEL(64, 4, 1) kernel3(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9) {
  STARTED;
  for (i32 row = (i32)group_id(1) * 4 + local_id(1); row < arg3; row += (i32)group_count(1) * 4) {
    i32 i1 = (u32)row % (u32)arg4, r1 = (u32)row / (u32)arg4;
    i32 o0 = r1 * arg5 + i1 * arg6;
    i32 o1 = r1 * arg7 + i1 * arg8;
    for (i32 i = ((i32)group_id(0) * 64 + local_id(0)) * 1; i < arg2; i = arg2) {
      u16 x0 = arg0[o0 + i];
      arg1[o1 + i * arg9] = x0;
    }
  }
}

KERNEL(256, 1, 1) kernel4(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8) {
  STARTED;
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg2) {
    i32 i1 = (u32)j % (u32)arg3, r1 = (u32)j / (u32)arg3;
    i32 o0 = arg4 + r1 * arg5 + i1 * arg6;
    u16 p[2][4];
    UNROLL for (i32 b = 0; b < 2; ++b) {
      UNROLL for (i32 s = 0; s < 4; ++s) p[b][s] = arg0[o0 + s * arg8 + b * arg7];
    }
    VARRAY(u16, 8, q);
    UNROLL for (i32 l = 0; l < 8; ++l) q[l] = p[l % 2][l / 2];
    VSTORE(u16, 8, q, arg1 + 0 + j * 8);
  }
}

KERNEL(256, 1, 1) kernel5(GLOBAL const u16* RESTRICT arg0, GLOBAL u32* arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6) {
  STARTED;
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    enum { TAP_PLANES = 1, TAP_ROWS = 2, TAP_COLUMNS = 1, TAPS = 2 };
    const u32 outs = (u32)arg2;
    const u32 channels = (u32)arg3;
    const u32 channel_pieces = (u32)arg4;
    const u32 out_pieces = (u32)arg5;
    
    u32 rest = (u32)j;
    const u32 word = rest % 4, item = rest / 4 % 32;
    rest /= 128;
    const u32 tx = rest % TAP_COLUMNS;
    rest /= TAP_COLUMNS;
    const u32 half = rest % 2;
    rest /= 2;
    u32 tap = rest % TAP_ROWS * TAP_COLUMNS + tx;
    rest /= TAP_ROWS;
    const u32 channel_piece = rest % (channel_pieces / 2) * 2 + half;
    rest /= channel_pieces / 2;
    tap += rest % TAP_PLANES * TAPS;
    rest /= TAP_PLANES;
    enum { ALL_TAPS = TAP_PLANES * TAPS };
    const u32 o = rest % out_pieces * 16 + item / 4 + word % 2 * 8, c = channel_piece * 16 + item % 4 * 2 + word / 2 * 8;
    const i64 from = ((i64)(rest / out_pieces * outs + o) * channels + c) * ALL_TAPS + tap;
    const u32 low = o < outs && c < channels ? arg0[from] : 0, high = o < outs && c + 1 < channels ? arg0[from + ALL_TAPS] : 0;
    arg1[j] = low | high << 16;
  }
}

// calls f32_to_half
// calls load_matrices
// calls multiply_matrices_f16
KERNEL_LEAST(128, 1, 1, 3) kernel6(GLOBAL const u16* RESTRICT arg0, GLOBAL const u32* arg1, GLOBAL u16* RESTRICT arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14) {
  STARTED;
  enum { THREADS = 128 };
  enum { OUT_TILES = 4 };
  enum { OUT_PARTS = 1 };
  enum { PIXEL_TILES = 4 };
  enum { IMAGES = 4 };
  enum { ROWS = 1 };
  enum { COLUMNS = 32 };
  enum { PATCH_ROWS = 2 };
  enum { PATCH_COLUMNS = 32 };
  enum { TAP_PLANES = 1 };
  enum { TAP_ROWS = 2 };
  enum { TAP_COLUMNS = 1 };
  enum { STRIDE_Z = 1 };
  enum { STRIDE_Y = 1 };
  enum { STRIDE_X = 1 };
  enum { STEP_Z = 1 };
  enum { STEP_Y = 1 };
  enum { STEP_X = 1 };
  enum { depth = 1 };
  enum { out_depth = 1 };
  enum { pad_z = 0 };
  const i32 images = (i32)arg3;
  const i32 height = (i32)arg4;
  const i32 width = (i32)arg5;
  const i32 out_height = (i32)arg6;
  const i32 out_width = (i32)arg7;
  const i32 pad_y = (i32)arg8;
  const i32 pad_x = (i32)arg9;
  const i32 channels = (i32)arg10;
  const i32 outs = (i32)arg11;
  const i32 groups = (i32)arg12;
  const i32 out_blocks = (i32)arg13;
  const i32 tiles_across = (i32)arg14;
  const u16* const x = arg0;
  const u32* const pieces = arg1;
  u16* const result = arg2;
  
  const i32 item = local_id(0) % 32, warp = local_id(0) / 32;
  const i32 part = warp % OUT_PARTS, first_pixel = warp / OUT_PARTS * (PIXEL_TILES * 8);
  const i32 top = group_id(0) / tiles_across * ROWS, left = group_id(0) % tiles_across * COLUMNS;
  const i32 group = group_id(1) / out_blocks, first_out = (group_id(1) % out_blocks * OUT_PARTS + part) * (OUT_TILES * 16);
  const i32 channel_pieces = (channels + 31) / 32 * 2, first_image = group_id(2) * IMAGES;
  const i32 plane = height * width, volume = depth * plane;  // of the input
  const i32 out_plane = group_id(2) % (u32)out_depth;        // 0 for images
  const i64 first_volume = first_image / out_depth;
  const u16* const image = x + (first_volume * groups + group) * channels * (i64)volume;
  enum { TILE = ROWS * COLUMNS, PATCH_PLANE = PATCH_ROWS * PATCH_COLUMNS, PATCH = IMAGES * PATCH_PLANE, TAPS = TAP_ROWS * TAP_COLUMNS };
  
  // The pixels of the patch that this work-item brings.
  LOCAL uint4 patch[PATCH * 5];
  enum { SHARE = (PATCH + THREADS - 1) / THREADS };
  i32 place[SHARE];
  UNROLL for (i32 s = 0; s < SHARE; ++s) {
      const i32 pixel = local_id(0) + s * THREADS, in_image = IMAGES > 1 ? pixel / PATCH_PLANE : 0;
      const i32 py = top * STRIDE_Y - pad_y + pixel % PATCH_PLANE / PATCH_COLUMNS, px = left * STRIDE_X - pad_x + pixel % PATCH_COLUMNS;
      const i32 is_inside = pixel < PATCH && first_image + in_image < images && py >= 0 && py < height && px >= 0 && px < width;
      place[s] = is_inside ? in_image * groups * channels * volume + py * width + px : -1;
  }
  // Where this work-item's rows of the 8 x 8 matrices begin: 16 pixels and 16 channels at a time.
  u32 from[PIXEL_TILES / 2];
  UNROLL for (i32 q = 0; q < PIXEL_TILES / 2; ++q) {
      const i32 pixel = first_pixel + q * 16 + item / 16 * 8 + item % 8;
      const i32 where = pixel / TILE * PATCH_PLANE + pixel % TILE / COLUMNS * STRIDE_Y * PATCH_COLUMNS + pixel % COLUMNS * STRIDE_X;
      from[q] = (u32)__cvta_generic_to_shared(patch + where * 5 + item / 8 % 2);
  }
  const uint4* weight[OUT_TILES];
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m)
    weight[m] = (const uint4*)pieces + ((i64)(group * out_blocks * OUT_PARTS * OUT_TILES + first_out / 16 + m) * TAP_PLANES * channel_pieces * TAPS) * 32 + item;
  uint4 a[OUT_TILES];
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m) a[m] = *weight[m];
  
  f32 sum[OUT_TILES][PIXEL_TILES][4];
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m) UNROLL for (i32 n = 0; n < PIXEL_TILES; ++n) UNROLL for (i32 e = 0; e < 4; ++e) sum[m][n][e] = 0.0f;
  
  for (i32 tz = 0; tz < TAP_PLANES; ++tz) {
    const i32 pz = out_plane * STRIDE_Z - pad_z + tz * STEP_Z;
    if (pz < 0 || pz >= depth) {
        UNROLL for (i32 m = 0; m < OUT_TILES; ++m) a[m] = *(weight[m] += channel_pieces * TAPS * 32);
        continue;
    }
    const u16* const source = image + pz * plane;
    for (i32 channel = 0; channel < channels; channel += 32) {
        if (tz > 0 || channel > 0) BARRIER;
        UNROLL for (i32 s = 0; s < SHARE; ++s) {
            const i32 pixel = local_id(0) + s * THREADS;
            if (pixel >= PATCH) break;
            UNROLL for (i32 eight = 0; eight < 4; ++eight) {
                u32 word[4];
                UNROLL for (i32 w = 0; w < 4; ++w) {
                    const i32 c = channel + eight * 8 + w * 2;
                    const u32 low = place[s] >= 0 && c < channels ? source[(i64)c * volume + place[s]] : 0;
                    const u32 high = place[s] >= 0 && c + 1 < channels ? source[(i64)(c + 1) * volume + place[s]] : 0;
                    word[w] = low | high << 16;
                  }
                patch[pixel * 5 + eight] = make_uint4(word[0], word[1], word[2], word[3]);
              }
          }
        BARRIER;
      
        UNROLL_BY(1) for (i32 ty = 0; ty < TAP_ROWS; ++ty) UNROLL for (i32 half = 0; half < 2; ++half) UNROLL for (i32 tx = 0; tx < TAP_COLUMNS; ++tx) {
            const u32 shift = ((ty * STEP_Y * PATCH_COLUMNS + tx * STEP_X) * 5 + half * 2) * 16;
            u32 b[PIXEL_TILES / 2][4];
            UNROLL for (i32 q = 0; q < PIXEL_TILES / 2; ++q) load_matrices(b[q], from[q] + shift);
            uint4 next[OUT_TILES];
            UNROLL for (i32 m = 0; m < OUT_TILES; ++m) next[m] = *(weight[m] += 32);
            UNROLL for (i32 m = 0; m < OUT_TILES; ++m) {
                UNROLL for (i32 n = 0; n < PIXEL_TILES; ++n) multiply_matrices_f16(sum[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
                a[m] = next[m];
              }
          }
    }
  }
  
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m) UNROLL for (i32 e = 0; e < 2; ++e) {
      const i32 o = first_out + m * 16 + item / 4 + e * 8;
      if (o >= outs) continue;
      u16* const channel = result + (((first_volume * groups + group) * outs + o) * out_depth + out_plane) * out_height * out_width;
      UNROLL for (i32 n = 0; n < PIXEL_TILES; ++n) {
          const i32 pixel = first_pixel + n * 8 + item % 4 * 2, in_image = IMAGES > 1 ? pixel / TILE : 0;
          const i32 ry = top + pixel % TILE / COLUMNS, rx = left + pixel % COLUMNS;
          if (first_image + in_image >= images || ry >= out_height || rx >= out_width) continue;
          u16* const row = channel + (i64)in_image * groups * outs * out_height * out_width;
          const u32 low = f32_to_half(sum[m][n][e * 2]), high = f32_to_half(sum[m][n][e * 2 + 1]);
          if (out_width % 2 == 0) {
              *(u32*)(row + ry * out_width + rx) = low | high << 16;
            } else {
              row[ry * out_width + rx] = (u16)low;
              if (rx + 1 < out_width) row[ry * out_width + rx + 1] = (u16)high;
            }
        }
  }
}

KERNEL(32, 8, 1) kernel7(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10) {
  STARTED;
  for (i32 row = (i32)group_id(1) * 8 + local_id(1); row < arg3; row += (i32)group_count(1) * 8) {
    i32 i1 = (u32)row % (u32)arg4, r1 = (u32)row / (u32)arg4;
    i32 o0 = r1 * arg5 + i1 * arg6;
    i32 o1 = arg7 + r1 * arg8 + i1 * arg9;
    for (i32 i = ((i32)group_id(0) * 32 + local_id(0)) * 1; i < arg2; i = arg2) {
      u16 x0 = arg0[o0 + i];
      arg1[o1 + i * arg10] = x0;
    }
  }
}

KERNEL(256, 1, 1) kernel8(GLOBAL const u16* RESTRICT arg0, GLOBAL u32* arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6) {
  STARTED;
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    enum { TAP_PLANES = 1, TAP_ROWS = 1, TAP_COLUMNS = 2, TAPS = 2 };
    const u32 outs = (u32)arg2;
    const u32 channels = (u32)arg3;
    const u32 channel_pieces = (u32)arg4;
    const u32 out_pieces = (u32)arg5;
    
    u32 rest = (u32)j;
    const u32 word = rest % 4, item = rest / 4 % 32;
    rest /= 128;
    const u32 tx = rest % TAP_COLUMNS;
    rest /= TAP_COLUMNS;
    const u32 half = rest % 2;
    rest /= 2;
    u32 tap = rest % TAP_ROWS * TAP_COLUMNS + tx;
    rest /= TAP_ROWS;
    const u32 channel_piece = rest % (channel_pieces / 2) * 2 + half;
    rest /= channel_pieces / 2;
    tap += rest % TAP_PLANES * TAPS;
    rest /= TAP_PLANES;
    enum { ALL_TAPS = TAP_PLANES * TAPS };
    const u32 o = rest % out_pieces * 16 + item / 4 + word % 2 * 8, c = channel_piece * 16 + item % 4 * 2 + word / 2 * 8;
    const i64 from = ((i64)(rest / out_pieces * outs + o) * channels + c) * ALL_TAPS + tap;
    const u32 low = o < outs && c < channels ? arg0[from] : 0, high = o < outs && c + 1 < channels ? arg0[from + ALL_TAPS] : 0;
    arg1[j] = low | high << 16;
  }
}

// calls f32_to_half
// calls load_matrices
// calls multiply_matrices_f16
KERNEL_LEAST(128, 1, 1, 3) kernel9(GLOBAL const u16* RESTRICT arg0, GLOBAL const u32* arg1, GLOBAL u16* RESTRICT arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14) {
  STARTED;
  enum { THREADS = 128 };
  enum { OUT_TILES = 4 };
  enum { OUT_PARTS = 1 };
  enum { PIXEL_TILES = 4 };
  enum { IMAGES = 1 };
  enum { ROWS = 16 };
  enum { COLUMNS = 8 };
  enum { PATCH_ROWS = 16 };
  enum { PATCH_COLUMNS = 9 };
  enum { TAP_PLANES = 1 };
  enum { TAP_ROWS = 1 };
  enum { TAP_COLUMNS = 2 };
  enum { STRIDE_Z = 1 };
  enum { STRIDE_Y = 1 };
  enum { STRIDE_X = 1 };
  enum { STEP_Z = 1 };
  enum { STEP_Y = 1 };
  enum { STEP_X = 1 };
  enum { depth = 1 };
  enum { out_depth = 1 };
  enum { pad_z = 0 };
  const i32 images = (i32)arg3;
  const i32 height = (i32)arg4;
  const i32 width = (i32)arg5;
  const i32 out_height = (i32)arg6;
  const i32 out_width = (i32)arg7;
  const i32 pad_y = (i32)arg8;
  const i32 pad_x = (i32)arg9;
  const i32 channels = (i32)arg10;
  const i32 outs = (i32)arg11;
  const i32 groups = (i32)arg12;
  const i32 out_blocks = (i32)arg13;
  const i32 tiles_across = (i32)arg14;
  const u16* const x = arg0;
  const u32* const pieces = arg1;
  u16* const result = arg2;
  
  const i32 item = local_id(0) % 32, warp = local_id(0) / 32;
  const i32 part = warp % OUT_PARTS, first_pixel = warp / OUT_PARTS * (PIXEL_TILES * 8);
  const i32 top = group_id(0) / tiles_across * ROWS, left = group_id(0) % tiles_across * COLUMNS;
  const i32 group = group_id(1) / out_blocks, first_out = (group_id(1) % out_blocks * OUT_PARTS + part) * (OUT_TILES * 16);
  const i32 channel_pieces = (channels + 31) / 32 * 2, first_image = group_id(2) * IMAGES;
  const i32 plane = height * width, volume = depth * plane;  // of the input
  const i32 out_plane = group_id(2) % (u32)out_depth;        // 0 for images
  const i64 first_volume = first_image / out_depth;
  const u16* const image = x + (first_volume * groups + group) * channels * (i64)volume;
  enum { TILE = ROWS * COLUMNS, PATCH_PLANE = PATCH_ROWS * PATCH_COLUMNS, PATCH = IMAGES * PATCH_PLANE, TAPS = TAP_ROWS * TAP_COLUMNS };
  
  // The pixels of the patch that this work-item brings.
  LOCAL uint4 patch[PATCH * 5];
  enum { SHARE = (PATCH + THREADS - 1) / THREADS };
  i32 place[SHARE];
  UNROLL for (i32 s = 0; s < SHARE; ++s) {
      const i32 pixel = local_id(0) + s * THREADS, in_image = IMAGES > 1 ? pixel / PATCH_PLANE : 0;
      const i32 py = top * STRIDE_Y - pad_y + pixel % PATCH_PLANE / PATCH_COLUMNS, px = left * STRIDE_X - pad_x + pixel % PATCH_COLUMNS;
      const i32 is_inside = pixel < PATCH && first_image + in_image < images && py >= 0 && py < height && px >= 0 && px < width;
      place[s] = is_inside ? in_image * groups * channels * volume + py * width + px : -1;
  }
  // Where this work-item's rows of the 8 x 8 matrices begin: 16 pixels and 16 channels at a time.
  u32 from[PIXEL_TILES / 2];
  UNROLL for (i32 q = 0; q < PIXEL_TILES / 2; ++q) {
      const i32 pixel = first_pixel + q * 16 + item / 16 * 8 + item % 8;
      const i32 where = pixel / TILE * PATCH_PLANE + pixel % TILE / COLUMNS * STRIDE_Y * PATCH_COLUMNS + pixel % COLUMNS * STRIDE_X;
      from[q] = (u32)__cvta_generic_to_shared(patch + where * 5 + item / 8 % 2);
  }
  const uint4* weight[OUT_TILES];
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m)
    weight[m] = (const uint4*)pieces + ((i64)(group * out_blocks * OUT_PARTS * OUT_TILES + first_out / 16 + m) * TAP_PLANES * channel_pieces * TAPS) * 32 + item;
  uint4 a[OUT_TILES];
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m) a[m] = *weight[m];
  
  f32 sum[OUT_TILES][PIXEL_TILES][4];
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m) UNROLL for (i32 n = 0; n < PIXEL_TILES; ++n) UNROLL for (i32 e = 0; e < 4; ++e) sum[m][n][e] = 0.0f;
  
  for (i32 tz = 0; tz < TAP_PLANES; ++tz) {
    const i32 pz = out_plane * STRIDE_Z - pad_z + tz * STEP_Z;
    if (pz < 0 || pz >= depth) {
        UNROLL for (i32 m = 0; m < OUT_TILES; ++m) a[m] = *(weight[m] += channel_pieces * TAPS * 32);
        continue;
    }
    const u16* const source = image + pz * plane;
    for (i32 channel = 0; channel < channels; channel += 32) {
        if (tz > 0 || channel > 0) BARRIER;
        UNROLL for (i32 s = 0; s < SHARE; ++s) {
            const i32 pixel = local_id(0) + s * THREADS;
            if (pixel >= PATCH) break;
            UNROLL for (i32 eight = 0; eight < 4; ++eight) {
                u32 word[4];
                UNROLL for (i32 w = 0; w < 4; ++w) {
                    const i32 c = channel + eight * 8 + w * 2;
                    const u32 low = place[s] >= 0 && c < channels ? source[(i64)c * volume + place[s]] : 0;
                    const u32 high = place[s] >= 0 && c + 1 < channels ? source[(i64)(c + 1) * volume + place[s]] : 0;
                    word[w] = low | high << 16;
                  }
                patch[pixel * 5 + eight] = make_uint4(word[0], word[1], word[2], word[3]);
              }
          }
        BARRIER;
      
        UNROLL_BY(1) for (i32 ty = 0; ty < TAP_ROWS; ++ty) UNROLL for (i32 half = 0; half < 2; ++half) UNROLL for (i32 tx = 0; tx < TAP_COLUMNS; ++tx) {
            const u32 shift = ((ty * STEP_Y * PATCH_COLUMNS + tx * STEP_X) * 5 + half * 2) * 16;
            u32 b[PIXEL_TILES / 2][4];
            UNROLL for (i32 q = 0; q < PIXEL_TILES / 2; ++q) load_matrices(b[q], from[q] + shift);
            uint4 next[OUT_TILES];
            UNROLL for (i32 m = 0; m < OUT_TILES; ++m) next[m] = *(weight[m] += 32);
            UNROLL for (i32 m = 0; m < OUT_TILES; ++m) {
                UNROLL for (i32 n = 0; n < PIXEL_TILES; ++n) multiply_matrices_f16(sum[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
                a[m] = next[m];
              }
          }
    }
  }
  
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m) UNROLL for (i32 e = 0; e < 2; ++e) {
      const i32 o = first_out + m * 16 + item / 4 + e * 8;
      if (o >= outs) continue;
      u16* const channel = result + (((first_volume * groups + group) * outs + o) * out_depth + out_plane) * out_height * out_width;
      UNROLL for (i32 n = 0; n < PIXEL_TILES; ++n) {
          const i32 pixel = first_pixel + n * 8 + item % 4 * 2, in_image = IMAGES > 1 ? pixel / TILE : 0;
          const i32 ry = top + pixel % TILE / COLUMNS, rx = left + pixel % COLUMNS;
          if (first_image + in_image >= images || ry >= out_height || rx >= out_width) continue;
          u16* const row = channel + (i64)in_image * groups * outs * out_height * out_width;
          const u32 low = f32_to_half(sum[m][n][e * 2]), high = f32_to_half(sum[m][n][e * 2 + 1]);
          if (out_width % 2 == 0) {
              *(u32*)(row + ry * out_width + rx) = low | high << 16;
            } else {
              row[ry * out_width + rx] = (u16)low;
              if (rx + 1 < out_width) row[ry * out_width + rx + 1] = (u16)high;
            }
        }
  }
}

KERNEL(64, 4, 1) kernel10(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10) {
  STARTED;
  for (i32 row = (i32)group_id(1) * 4 + local_id(1); row < arg3; row += (i32)group_count(1) * 4) {
    i32 i1 = (u32)row % (u32)arg4, r1 = (u32)row / (u32)arg4;
    i32 o0 = r1 * arg5 + i1 * arg6;
    i32 o1 = arg7 + r1 * arg8 + i1 * arg9;
    for (i32 i = ((i32)group_id(0) * 64 + local_id(0)) * 1; i < arg2; i = arg2) {
      u16 x0 = arg0[o0 + i];
      arg1[o1 + i * arg10] = x0;
    }
  }
}

KERNEL(64, 4, 1) kernel11(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7) {
  STARTED;
  for (i32 row = (i32)group_id(1) * 4 + local_id(1); row < arg3; row += (i32)group_count(1) * 4) {
    i32 o0 = arg4 + row * arg5;
    i32 o1 = row * arg6;
    for (i32 i = ((i32)group_id(0) * 64 + local_id(0)) * 1; i < arg2; i = arg2) {
      u16 x0 = arg0[o0 + i * arg7];
      arg1[o1 + i] = x0;
    }
  }
}

// calls f32_to_half
// calls half_to_f32
KERNEL(256, 1, 1) kernel12(GLOBAL const u16* RESTRICT arg0, GLOBAL const u16* RESTRICT arg1, GLOBAL u16* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12) {
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
          tile_a[ak][ar] = row + ar < arg3 && k + ak < arg5 ? half_to_f32(arg0[from_a + (row + ar) * arg10 + (k + ak)]) : 0;
          const i32 bc = item % 64, bk = item / 64;
          tile_b[bk][bc] = column + bc < arg4 && k + bk < arg5 ? half_to_f32(arg1[from_b + (k + bk) * arg11 + (column + bc)]) : 0;
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
        if (i < arg3 && j < arg4) arg2[to + i * arg12 + j] = f32_to_half(sum[r][c]);
      }
    }
  }
}

// --- Tenstorrent
// workspace 17975296 bytes
// kernel0<2048x1x1 of 1x1x1>(workspace+4390912, 1048576, 512, 0)
// kernel1<1x2048x1 of 1x1x1>(input0, workspace+4390912, 32, 16384, 8, 32, 32, 64)
// kernel0<1906x1x1 of 1x1x1>(workspace+0, 1097728, 576, 0)
// kernel2<2x512x1 of 1x1x1>(workspace+4390912, workspace+0, 2016, 512, 1, 1008, 2048, 64, 2144)
// kernel0<2018x1x1 of 1x1x1>(workspace+9193472, 2195456, 1088, 0)
// kernel3<1906x1x1 of 1x1x1>(workspace+0, workspace+9193472, 1097728, 576, 2)
// kernel0<1996x1x1 of 1x1x1>(workspace+0, 2298368, 1152, 0)
// kernel2<1x2018x1 of 1x1x1>(workspace+9193472, workspace+0, 63, 34304, 17, 63, 64, 2, 67)
// kernel4<1x1024x1 of 1x1x1>(input1, workspace+9193472, 9, 4096, 4, 9, 64, 8, 9, 576, 576, 9, -1)
// kernel5<2047x1x1 of 1x1x1>(workspace+0, workspace+9193472, output0, 67, 65, 3, 1, 1, 0, 67, 65, 3, 1, 1, 0, 64, 64, 64, 64, 2163200, 1057)

KERNEL(1, 1, 1) kernel0(Global<f32> arg0, i64 arg1, i64 arg2, f32 arg3) {
  i64 first = (i64)group_id(0) * arg2, last = first + arg2 < arg1 ? first + arg2 : arg1;
  i64 o0 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    arg0[o0 + i] = arg3;
  }
}

// calls half_to_f32
KERNEL(1, 1, 1) kernel1(Global<const u16> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg6;
    i64 o1 = row * arg7;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      f32 x0 = half_to_f32(arg0[o0 + i]);
      arg1[o1 + i] = x0;
    }
  }
}

KERNEL(1, 1, 1) kernel2(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg6;
    i64 o1 = arg7 + row * arg8;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      f32 x0 = arg0[o0 + i];
      arg1[o1 + i] = x0;
    }
  }
}

KERNEL(1, 1, 1) kernel3(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i * arg4] = x0;
  }
}

KERNEL(1, 1, 1) kernel4(Global<const u16> arg0, Global<u16> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 piece = begin; piece < end; piece += 32) {
    const i64 stop = piece + 32 < end ? piece + 32 : end;
    for (i64 row = first; row < last; ++row) {
      i64 i1 = row % arg6, r1 = row / arg6;
      i64 o0 = arg7 + r1 * arg8 + i1 * arg9;
      i64 o1 = r1 * arg10 + i1 * arg11;
      VECTORIZE for (i64 i = piece; i < stop; ++i) {
        u16 x0 = arg0[o0 + i * arg12];
        arg1[o1 + i] = x0;
      }
    }
  }
}

// calls f32_to_half
// calls half_to_f32
KERNEL(1, 1, 1) kernel5(Global<const f32> arg0, Global<const u16> arg1, Global<u16> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20) {
  const i64 first = (i64)group_id(0) * arg20, last = first + arg20 < arg19 ? first + arg20 : arg19;
  for (i64 j = first; j < last; ++j) {
    i64 image = j;
    const i64 y1 = image % arg10 * arg12 - arg14;
    image /= arg10;
    const i64 y0 = image % arg4 * arg6 - arg8;
    image /= arg4;
    const i64 o = image % arg15, batch = image / arg15, group = o / arg18;
    f32 sum = 0;
    for (i64 c = 0; c < arg16; ++c) {
      const i64 from = (batch * arg17 + group * arg16 + c) * (arg3 * arg9), taps = (o * arg16 + c) * (arg5 * arg11);
      for (i64 w0 = 0; w0 < arg5; ++w0) {
        const i64 z0 = y0 + w0 * arg7;
        if (z0 < 0 || z0 >= arg3) continue;
        for (i64 w1 = 0; w1 < arg11; ++w1) {
          const i64 z1 = y1 + w1 * arg13;
          if (z1 < 0 || z1 >= arg9) continue;
          const i64 tap = (w0) * arg11 + w1, pixel = (z0) * arg9 + z1;
          sum = fma(arg0[from + pixel], half_to_f32(arg1[taps + tap]), sum);
        }
      }
    }
    arg2[j] = f32_to_half(sum);
  }
}
