// conv2d(picture, many_filters, padding=1)

// --- OpenCL
// workspace 9437184 bytes
// kernel0<4x64x8 of 256x1x1>(input0, workspace+0, 1024, 64, 8, 0, 32, 32, 3, 1, 1, 1, 32, 32, 3, 1, 1, 1)
// kernel1<16x2x8 of 256x1x1>(input1, workspace+0, output0, 128, 1024, 576, 8, 0, 589824, 131072, 576, 1024, 1024)

KERNEL(256, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12, i32 arg13, i32 arg14, i32 arg15, i32 arg16, i32 arg17) {
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
KERNEL(256, 1, 1) kernel1(GLOBAL const u16* RESTRICT arg0, GLOBAL const u16* RESTRICT arg1, GLOBAL u16* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12) {
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

// --- CUDA
// workspace 147968 bytes
// kernel0<144x1x1 of 256x1x1>(input1, workspace+0, 128, 64, 4, 8, 36864)
// kernel1<8x2x8 of 128x1x1>(input0, workspace+0, output0, 8, 32, 32, 32, 32, 1, 1, 64, 128, 1, 2, 2)

KERNEL(256, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL u32* arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6) {
  STARTED;
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    enum { TAP_PLANES = 1, TAP_ROWS = 3, TAP_COLUMNS = 3, TAPS = 9 };
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
KERNEL_LEAST(128, 1, 1, 3) kernel1(GLOBAL const u16* RESTRICT arg0, GLOBAL const u32* arg1, GLOBAL u16* RESTRICT arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14) {
  STARTED;
  enum { THREADS = 128 };
  enum { OUT_TILES = 4 };
  enum { OUT_PARTS = 1 };
  enum { PIXEL_TILES = 4 };
  enum { IMAGES = 1 };
  enum { ROWS = 8 };
  enum { COLUMNS = 16 };
  enum { PATCH_ROWS = 10 };
  enum { PATCH_COLUMNS = 18 };
  enum { TAP_PLANES = 1 };
  enum { TAP_ROWS = 3 };
  enum { TAP_COLUMNS = 3 };
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

// --- CUDA, compute capability 9.0
// workspace 1196032 bytes
// kernel0<128x1x1 of 64x4x1>(input0, workspace+0, 1024, 64, 1024, 64, 16, 1, 65536, 65536)
// kernel1<32x9x1 of 256x1x1>(input1, workspace+1048576, 8192, 9, 8192, 9)
// kernel2<128x1x1 of 384x1x1>(64, 128, 1, 8, 32, 32, 32, 32, 1, 1, 128, workspace+0, workspace+1048576, output0)

KERNEL(64, 4, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9) {
  STARTED;
  LOCAL u16 tile[64][65];
  const i32 x = local_id(0), y = local_id(1);
  const i32 number = group_id(0), column = number % arg6 * 64, rest = number / arg6;
  const i32 line = rest % arg7 * 64, row = rest / arg7;
  i32 o0 = row * arg8;
  i32 o1 = row * arg9;
  UNROLL for (i32 k = 0; k < 64; k += 4)
  if (column + x < arg2 && line + y + k < arg3) tile[y + k][x] = arg0[o0 + column + x + (line + y + k) * arg4];
  BARRIER;
  UNROLL for (i32 k = 0; k < 64; k += 4)
  if (column + y + k < arg2 && line + x < arg3) arg1[o1 + (column + y + k) * arg5 + line + x] = tile[x][y + k];
}

KERNEL(256, 1, 1) kernel1(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5) {
  STARTED;
  for (i32 row = (i32)group_id(1) * 1 + local_id(1); row < arg3; row += (i32)group_count(1) * 1) {
    i32 o0 = row;
    i32 o1 = row * arg4;
    for (i32 i = ((i32)group_id(0) * 256 + local_id(0)) * 1; i < arg2; i = arg2) {
      u16 x0 = arg0[o0 + i * arg5];
      arg1[o1 + i] = x0;
    }
  }
}

KERNEL(384, 1, 1) kernel2(i64 arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, GLOBAL const u16* RESTRICT arg11, GLOBAL const u16* RESTRICT arg12, GLOBAL u16* RESTRICT arg13) {
  STARTED;
  enum { OUTS = 128, PIXELS = 64, STAGES = 8, TAP_ROWS = 3, TAP_COLUMNS = 3, STRIDE_Y = 1, STRIDE_X = 1, STEP_Y = 1, STEP_X = 1 };
  extern __shared__ unsigned char memory[];
  const u32 w_at = ((u32)__cvta_generic_to_shared(memory) + 1023) & ~1023u, x_at = w_at + STAGES * OUTS * 128;
  const u32 full = x_at + STAGES * PIXELS * 128, empty = full + STAGES * 8;
  const i32 t = threadIdx.x, lane = t & 31, group = SHUFFLE_FROM(t >> 7, 0), channels = (i32)arg0, outs = (i32)arg1, blocks = (i32)arg2;
  const i32 plane = (i32)arg6 * (i32)arg7, pixels = (i32)arg3 * plane;
  const auto wait = [](const u32 barrier, const u32 phase) {
    asm volatile("{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@!done bra AGAIN;\n}"
    :: "r"(barrier), "r"(phase) : "memory");
  };
  if (t < 2 * STAGES)
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(full + t * 8), "r"(t < STAGES ? 128 : 8) : "memory");
  BARRIER;
  const auto next = [](u32& stage, u32& phase) { if (++stage == STAGES) { stage = 0; phase ^= 1; } };
  if (group == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 104;");
    u32 stage = 0, phase = 1;
    for (i32 work = blockIdx.x; work < (i32)arg10; work += gridDim.x) {
      const i32 first_out = work % blocks * OUTS, first_pixel = work / blocks * PIXELS;
      const i32 row = (t & 127) / 8, column = t % 8, height = (i32)arg4, width = (i32)arg5;
      i32 from[PIXELS / 16], place[PIXELS / 16];
      UNROLL for (i32 i = 0; i < PIXELS / 16; ++i) {
        const i32 pixel = first_pixel + row + i * 16, image = pixel / plane, rest = pixel % plane;
        const i32 y = rest / (i32)arg7 * STRIDE_Y - (i32)arg8, x = rest % (i32)arg7 * STRIDE_X - (i32)arg9;
        from[i] = ((image * height + y) * width + x) * channels + column * 8;
        place[i] = pixel < pixels ? (i32)((u32)y << 16 | (x & 0xffff)) : (i32)0x80000000u;
      }
      const u32 chunk = row * 128 + ((column ^ row) & 7) * 16;
      for (i32 tap = 0; tap < TAP_ROWS * TAP_COLUMNS; ++tap) {
        const i32 dy = tap / TAP_COLUMNS * STEP_Y, dx = tap % TAP_COLUMNS * STEP_X;
        u32 is_in = 0;
        UNROLL for (i32 i = 0; i < PIXELS / 16; ++i)
        is_in |= (u32)((u32)((place[i] >> 16) + dy) < (u32)height && (u32)((short)place[i] + dx) < (u32)width) << i;
        const u16* const x = arg11 + (dy * width + dx) * channels;
        const u16* const w = arg12 + ((i64)tap * outs + first_out + row) * channels + column * 8;
        for (i32 c = 0; c < channels; c += 64) {
          wait(empty + stage * 8, phase);
          const i32 has_channels = c + column * 8 < channels;
          UNROLL for (i32 i = 0; i < OUTS; i += 16) {
            const i32 bytes = has_channels && first_out + row + i < outs ? 16 : 0;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
            :: "r"(w_at + stage * OUTS * 128 + chunk + i * 128), "l"(bytes ? w + i * channels + c : arg12), "r"(bytes) : "memory");
          }
          UNROLL for (i32 i = 0; i < PIXELS / 16; ++i) {
            const i32 bytes = has_channels && (is_in >> i & 1) ? 16 : 0;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
            :: "r"(x_at + stage * PIXELS * 128 + chunk + i * 2048), "l"(bytes ? x + from[i] + c : arg11), "r"(bytes) : "memory");
          }
          asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(full + stage * 8) : "memory");
          next(stage, phase);
        }
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
  u32 stage = 0, phase = 0;
  for (i32 work = blockIdx.x; work < (i32)arg10; work += gridDim.x) {
    const i32 first_out = work % blocks * OUTS, first_pixel = work / blocks * PIXELS;
    f32 sum[PIXELS / 2];
    const auto release = [&](const u32 of) { if (lane == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(empty + of * 8) : "memory"); };
    const auto matrix = [](const u32 at) -> u64 { return 1ul << 62 | 64ul << 32 | 1ul << 16 | at / 16; };
    const i32 steps = TAP_ROWS * TAP_COLUMNS * ((channels + 63) / 64);
    UNROLL_BY(1) for (i32 step = 0; step < steps; ++step) {
      wait(full + stage * 8, phase);
      // What was copied is visible to the matrix units only after a fence.
      asm volatile("fence.proxy.async.shared::cta;\nwgmma.fence.sync.aligned;" ::: "memory");
      const u64 w = matrix(w_at + (stage * OUTS + group * 64) * 128), x = matrix(x_at + stage * PIXELS * 128);
      UNROLL for (i32 e = 0; e < 4; ++e)
      asm volatile("{\n.reg .pred is_added;\nsetp.ne.b32 is_added, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, is_added, 1, 1, 0, 0;\n}"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]), "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]), "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]), "+f"(sum[14]), "+f"(sum[15]), "+f"(sum[16]), "+f"(sum[17]), "+f"(sum[18]), "+f"(sum[19]), "+f"(sum[20]), "+f"(sum[21]), "+f"(sum[22]), "+f"(sum[23]), "+f"(sum[24]), "+f"(sum[25]), "+f"(sum[26]), "+f"(sum[27]), "+f"(sum[28]), "+f"(sum[29]), "+f"(sum[30]), "+f"(sum[31]) : "l"(w + e * 2), "l"(x + e * 2), "r"(step + e));
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
      if (step > 0) release(stage == 0 ? STAGES - 1 : stage - 1);
      next(stage, phase);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]), "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]), "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]), "+f"(sum[14]), "+f"(sum[15]), "+f"(sum[16]), "+f"(sum[17]), "+f"(sum[18]), "+f"(sum[19]), "+f"(sum[20]), "+f"(sum[21]), "+f"(sum[22]), "+f"(sum[23]), "+f"(sum[24]), "+f"(sum[25]), "+f"(sum[26]), "+f"(sum[27]), "+f"(sum[28]), "+f"(sum[29]), "+f"(sum[30]), "+f"(sum[31]) :: "memory");
    release(stage == 0 ? STAGES - 1 : stage - 1);
    UNROLL for (i32 i = 0; i < PIXELS / 32; ++i) {
      const i32 odd = lane & 1, upper = lane & 2, pixel = first_pixel + i * 32 + (lane & 3) * 8;
      u16* const into = arg13 + (i64)(pixel / plane) * outs * plane + pixel % plane;
      UNROLL for (i32 r = 0; r < 2; ++r) {
        // Four lanes have a pair each of four times eight pixels; then each has eight pixels.
        u32 x[4];
        UNROLL for (i32 c = 0; c < 4; ++c)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(x[c]) : "f"(sum[(i * 4 + c) * 4 + r * 2 + 1]), "f"(sum[(i * 4 + c) * 4 + r * 2]));
        const u32 y0 = SHUFFLE(odd ? x[0] : x[1], 1), y1 = SHUFFLE(odd ? x[2] : x[3], 1);
        if (odd) { x[0] = y0; x[2] = y1; } else { x[1] = y0; x[3] = y1; }
        const u32 z0 = SHUFFLE(upper ? x[0] : x[2], 2), z1 = SHUFFLE(upper ? x[1] : x[3], 2);
        const i32 out = first_out + group * 64 + ((t & 127) >> 5) * 16 + (lane >> 2) + r * 8;
        if (out >= outs || pixel >= pixels) continue;
        const uint4 eight = upper ? make_uint4(z0, z1, x[2], x[3]) : make_uint4(x[0], x[1], z0, z1);
        if (plane % 8 == 0) {
          *(uint4*)(into + (i64)out * plane) = eight;
        } else {
          UNROLL_BY(1) for (i32 e = 0; e < 8 && pixel + e < pixels; ++e) {
            const u32 two = e < 2 ? eight.x : e < 4 ? eight.y : e < 6 ? eight.z : eight.w;
            arg13[((i64)((pixel + e) / plane) * outs + out) * plane + (pixel + e) % plane] = (u16)(two >> e % 2 * 16);
          }
        }
      }
    }
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<2048x1x1 of 1x1x1>(input0, input1, output0, 32, 32, 3, 1, 1, 1, 32, 32, 3, 1, 1, 1, 128, 64, 64, 128, 1048576, 512)

// calls f32_to_half
// calls half_to_f32
KERNEL(1, 1, 1) kernel0(Global<const u16> arg0, Global<const u16> arg1, Global<u16> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20) {
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
          sum = fma(half_to_f32(arg0[from + pixel]), half_to_f32(arg1[taps + tap]), sum);
        }
      }
    }
    arg2[j] = f32_to_half(sum);
  }
}
