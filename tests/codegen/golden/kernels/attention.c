// attention(heads, heads, heads)

// --- OpenCL
// workspace 160768 bytes
// kernel0<2x2x2 of 256x1x1>(input0, input0, workspace+0, 100, 100, 64, 2, 6400, 6400, 10000, 64, 64, 100)
// kernel1<25x1x1 of 32x8x1>(workspace+0, 100, 200, 100, 0.125, workspace+80384)
// kernel2<1x2x2 of 256x1x1>(workspace+80384, input0, output0, 100, 64, 100, 2, 10000, 6400, 6400, 100, 64, 64)

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
          const i32 bc = item / 16, bk = item % 16;
          tile_b[bk][bc] = column + bc < arg4 && k + bk < arg5 ? arg1[from_b + (k + bk) + (column + bc) * arg11] : 0;
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

// calls exp_f32
KERNEL(32, 8, 1) kernel1(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, f32 arg4, GLOBAL f32* RESTRICT arg5) {
  f32 kv0[4];
  f32 kv3[4];
  const i32 lane = local_id(0), line = local_id(1);
  LOCAL f32 shared_sv1[256];
  LOCAL f32 shared_sv4[256];
  for (i32 base = (i32)group_id(0) * 8; base < arg2; base += (i32)group_count(0) * 8) {
    i32 row = base + line < arg2 ? base + line : arg2 - 1;
    const i32 active = base + line < arg2;
    i32 o0 = row * arg3;
    f32 sv1 = AS_F32(0xff800000u);
    UNROLL for (i32 g = 0; g < 1; ++g) {
      const i32 c = (lane + g * 32) * 4;
      if (c < arg1) {
        VARRAY(f32, 4, p0);
        VLOAD(f32, 4, p0, arg0 + o0 + c);
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 x0 = p0[l];
          f32 v0_2 = x0 * arg4;
          f32 v0 = v0_2;
          kv0[k] = v0;
          sv1 = LARGER(sv1, v0);
        }
      }
    }
    BARRIER;
    shared_sv1[line * 32 + lane] = sv1;
    BARRIER;
    for (i32 distance = 16; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f32 other = shared_sv1[line * 32 + lane + distance]; sv1 = LARGER(sv1, other);
        shared_sv1[line * 32 + lane] = sv1;
      }
      BARRIER;
    }
    sv1 = shared_sv1[line * 32];
    f32 v1 = sv1;
    f32 sv4 = 0.0f;
    UNROLL for (i32 g = 0; g < 1; ++g) {
      const i32 c = (lane + g * 32) * 4;
      if (c < arg1) {
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 v0 = kv0[k];
          f32 v2_2 = v0 - v1;
          f32 v2 = v2_2;
          f32 v3_1 = exp_f32(v2);
          f32 v3 = v3_1;
          kv3[k] = v3;
          sv4 = sv4 + v3;
        }
      }
    }
    BARRIER;
    shared_sv4[line * 32 + lane] = sv4;
    BARRIER;
    for (i32 distance = 16; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f32 other = shared_sv4[line * 32 + lane + distance]; sv4 = sv4 + other;
        shared_sv4[line * 32 + lane] = sv4;
      }
      BARRIER;
    }
    sv4 = shared_sv4[line * 32];
    f32 v4 = sv4;
    UNROLL for (i32 g = 0; g < 1; ++g) {
      const i32 c = (lane + g * 32) * 4;
      if (c < arg1) {
        VARRAY(f32, 4, qarg5);
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 v3 = kv3[k];
          f32 v5_2 = v3 / v4;
          f32 v5 = v5_2;
          qarg5[l] = v5;
        }
        if (active) { VSTORE(f32, 4, qarg5, arg5 + row * arg1 + c); }
      }
    }
  }
}

KERNEL(256, 1, 1) kernel2(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12) {
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
// kernel0<4x1x1 of 128x1x1>(2, 2, 1, 100, 100, 0.18033688, input0, 0, 12800, 6400, 64, input0, 0, 12800, 6400, 64, input0, 0, 12800, 6400, 64, output0)

KERNEL(128, 1, 1) kernel0(i64 arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, f32 arg5, GLOBAL const f32* RESTRICT arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, GLOBAL const f32* RESTRICT arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, GLOBAL const f32* RESTRICT arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20, GLOBAL f32* RESTRICT arg21) {
  STARTED;
  enum { E = 64, D = 64, WIDTH = 64, V_WIDTH = 64, THREADS = 128, ROWS = 64, KEYS = 64, ROW_EACH = 8, KEY_EACH = 4, COLUMN_EACH = 4, Q_LINE = 68, K_LINE = 68, KV_SIZE = 4352, WHOLE = 1, CAUSAL = 0 };
  extern __shared__ __align__(16) unsigned char memory[];
  #define INFINITY_F32 AS_F32(0x7f800000u)
  f32* const q_part = (f32*)memory;
  f32* const kv_part = q_part + E * Q_LINE;
  f32* const weights = kv_part + KV_SIZE;
  const i32 t = threadIdx.x, across = t & 15, down = t >> 4;
  const u32 block = (u32)arg0 - 1u - blockIdx.x % (u32)arg0, head = blockIdx.x / (u32)arg0;
  const u32 n = head / (u32)arg1, h = head % (u32)arg1, g = h / (u32)arg2;
  const f32* const q = arg6 + arg7 + n * arg8 + h * arg9;
  const f32* const k = arg11 + arg12 + n * arg13 + g * arg14;
  const f32* const v = arg16 + arg17 + n * arg18 + g * arg19;
  const i32 first_row = block * ROWS, rows = (i32)arg3, keys = (i32)arg4;
  const auto power = [](const f32 x) -> f32 { f32 r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; };
  const auto quad = [](f32 (&to)[4], const f32* from, const i32 column, const i32 width, const i32 is_in) {
    if (WHOLE) {
      if (is_in && column < width) { VLOAD(f32, 4, to, from + column); }
      else UNROLL for (i32 i = 0; i < 4; ++i) to[i] = 0;
    } else {
      UNROLL for (i32 i = 0; i < 4; ++i) to[i] = is_in && column + i < width ? from[column + i] : 0.0f;
    }
  };
  const auto fetch_turned = [&](f32* to, const i32 line, const f32* from, const i64 stride, const i32 first, const i32 last,
  const i32 count, const f32 factor) {
    for (i32 c = t; c < count * (E / 4); c += THREADS) {
      const i32 row = c % count, column = c / count * 4;
      VARRAY(f32, 4, x);
      quad(x, from + (i64)(first + row < last ? first + row : 0) * stride, column, WIDTH, first + row < last);
      UNROLL for (i32 i = 0; i < 4; ++i) to[(column + i) * line + row] = x[i] * factor;
    }
  };
  f32 result[ROW_EACH][COLUMN_EACH], largest[ROW_EACH], total[ROW_EACH];
  UNROLL for (i32 r = 0; r < ROW_EACH; ++r) {
    UNROLL for (i32 c = 0; c < COLUMN_EACH; ++c) result[r][c] = 0;
    largest[r] = -INFINITY_F32;
    total[r] = 0;
  }
  fetch_turned(q_part, Q_LINE, q, arg10, first_row, rows, ROWS, arg5);
  const i32 needed = CAUSAL && first_row + ROWS < keys ? first_row + ROWS : keys;
  for (i32 start = 0; start < needed; start += KEYS) {
    BARRIER;
    fetch_turned(kv_part, K_LINE, k, arg15, start, keys, KEYS, 1.0f);
    BARRIER;
    f32 score[ROW_EACH][KEY_EACH];
    UNROLL for (i32 r = 0; r < ROW_EACH; ++r) UNROLL for (i32 c = 0; c < KEY_EACH; ++c) score[r][c] = 0;
    UNROLL_BY(4) for (i32 e = 0; e < E; ++e) {
      VARRAY(f32, ROW_EACH, a);
      VARRAY(f32, KEY_EACH, b);
      UNROLL for (i32 r = 0; r < ROW_EACH; r += 4) { VLOAD(f32, 4, a + r, q_part + e * Q_LINE + down * ROW_EACH + r); }
      VLOAD(f32, KEY_EACH, b, kv_part + e * K_LINE + across * KEY_EACH);
      UNROLL for (i32 r = 0; r < ROW_EACH; ++r) UNROLL for (i32 c = 0; c < KEY_EACH; ++c) score[r][c] = fmaf(a[r], b[c], score[r][c]);
    }
    UNROLL for (i32 r = 0; r < ROW_EACH; ++r) {
      const i32 row = first_row + down * ROW_EACH + r;
      f32 top = largest[r];
      UNROLL for (i32 c = 0; c < KEY_EACH; ++c) {
        const i32 key = start + across * KEY_EACH + c;
        const f32 s = score[r][c];
        score[r][c] = key < keys && row < rows && (!CAUSAL || key <= row) ? s : -INFINITY_F32;
        top = fmaxf(top, score[r][c]);
      }
      UNROLL for (i32 distance = 1; distance < 16; distance *= 2) top = fmaxf(top, SHUFFLE(top, distance));
      const f32 base = top == -INFINITY_F32 ? 0.0f : top, change = power(largest[r] - base);
      largest[r] = top;
      f32 sum = 0;
      UNROLL for (i32 c = 0; c < KEY_EACH; ++c) {
        score[r][c] = power(score[r][c] - base);
        sum += score[r][c];
      }
      total[r] = fmaf(total[r], change, sum);
      UNROLL for (i32 c = 0; c < COLUMN_EACH; ++c) result[r][c] *= change;
    }
    BARRIER;
    UNROLL for (i32 c = 0; c < KEY_EACH; ++c) UNROLL for (i32 r = 0; r < ROW_EACH; r += 4) {
      VARRAY(f32, 4, x);
      UNROLL for (i32 i = 0; i < 4; ++i) x[i] = score[r + i][c];
      VSTORE(f32, 4, x, weights + (across * KEY_EACH + c) * Q_LINE + down * ROW_EACH + r);
    }
    for (i32 c = t; c < KEYS * (D / 4); c += THREADS) {
      const i32 row = c / (D / 4), column = c % (D / 4) * 4;
      VARRAY(f32, 4, x);
      quad(x, v + (i64)(start + row < keys ? start + row : 0) * arg20, column, V_WIDTH, start + row < keys);
      VSTORE(f32, 4, x, kv_part + row * D + column);
    }
    BARRIER;
    UNROLL_BY(4) for (i32 key = 0; key < KEYS; ++key) {
      VARRAY(f32, ROW_EACH, a);
      VARRAY(f32, COLUMN_EACH, b);
      UNROLL for (i32 r = 0; r < ROW_EACH; r += 4) { VLOAD(f32, 4, a + r, weights + key * Q_LINE + down * ROW_EACH + r); }
      UNROLL for (i32 c = 0; c < COLUMN_EACH; c += 4) { VLOAD(f32, 4, b + c, kv_part + key * D + across * 4 + c * 16); }
      UNROLL for (i32 r = 0; r < ROW_EACH; ++r) UNROLL for (i32 c = 0; c < COLUMN_EACH; ++c) result[r][c] = fmaf(a[r], b[c], result[r][c]);
    }
  }
  UNROLL for (i32 r = 0; r < ROW_EACH; ++r) {
    f32 sum = total[r];
    UNROLL for (i32 distance = 1; distance < 16; distance *= 2) sum += SHUFFLE(sum, distance);
    const f32 share = sum == 0 ? 0.0f : 1.0f / sum;
    const i32 row = first_row + down * ROW_EACH + r;
    if (row < rows) UNROLL for (i32 c = 0; c < COLUMN_EACH; ++c) {
      const i32 column = across * 4 + c / 4 * 64 + c % 4;
      if (column < V_WIDTH) {
        const f32 x = result[r][c] * share;
        arg21[((i64)head * rows + row) * V_WIDTH + column] = x;
      }
    }
  }
  #undef INFINITY_F32
}

// --- Tenstorrent
// workspace 160768 bytes
// kernel0<1x128x1 of 1x1x1>(input0, workspace+80384, 100, 128, 1, 100, 64, 6400, 6400, 100, 64)
// kernel1<7x25x2 of 1x1x1>(input0, workspace+80384, workspace+0, 100, 100, 64, 2, 6400, 6400, 10000, 64, 64, 64, 64, 100, 64, 64, 64, 64, 100, 100)
// kernel2<200x1x1 of 1x1x1>(workspace+0, 100, 200, 1, 100, 0.125, workspace+80384)
// kernel1<4x25x2 of 1x1x1>(workspace+80384, input0, output0, 100, 64, 100, 2, 10000, 6400, 6400, 100, 100, 100, 100, 64, 100, 100, 100, 100, 64, 64)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 piece = begin; piece < end; piece += 32) {
    const i64 stop = piece + 32 < end ? piece + 32 : end;
    for (i64 row = first; row < last; ++row) {
      i64 i1 = row % arg6, r1 = row / arg6;
      i64 o0 = r1 * arg7 + i1;
      i64 o1 = r1 * arg8 + i1 * arg9;
      VECTORIZE for (i64 i = piece; i < stop; ++i) {
        f32 x0 = arg0[o0 + i * arg10];
        arg1[o1 + i] = x0;
      }
    }
  }
}

KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<const f32> arg1, Global<f32> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20) {
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

// calls exp_f32
// calls order_f32
// calls unorder_f32
KERNEL(1, 1, 1) kernel2(Global<const f32> arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, f32 arg5, Global<f32> arg6) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg4;
    i32 sv1 = order_f32(AS_F32(0xff800000u));
    i32 nsv1 = 0;
    VECTORIZE for (i64 i = 0; i < arg1; ++i) {
      f32 x0 = arg0[o0 + i];
      f32 v0_2 = x0 * arg5;
      f32 v0 = v0_2;
      { const i32 o = order_f32(v0); sv1 = o > sv1 ? o : sv1; nsv1 |= v0 != v0; }
    }
    f32 v1 = nsv1 ? AS_F32(0x7fc00000u) : unorder_f32(sv1);
    f64 sv4 = 0.0;
    VECTORIZE for (i64 i = 0; i < arg1; ++i) {
      f32 x0 = arg0[o0 + i];
      f32 v0_2 = x0 * arg5;
      f32 v0 = v0_2;
      f32 v2_2 = v0 - v1;
      f32 v2 = v2_2;
      f32 v3_1 = exp_f32(v2);
      f32 v3 = v3_1;
      { ANY_ORDER sv4 = sv4 + (f64)v3; }
    }
    f32 v4 = (f32)sv4;
    VECTORIZE for (i64 i = 0; i < arg1; ++i) {
      f32 x0 = arg0[o0 + i];
      f32 v0_2 = x0 * arg5;
      f32 v0 = v0_2;
      f32 v2_2 = v0 - v1;
      f32 v2 = v2_2;
      f32 v3_1 = exp_f32(v2);
      f32 v3 = v3_1;
      f32 v5_2 = v3 / v4;
      f32 v5 = v5_2;
      arg6[row * arg1 + i] = v5;
    }
  }
}
