// attention(one_query, heads, heads)

// --- OpenCL
// workspace 2048 bytes
// kernel0<2x1x2 of 256x1x1>(input1, input0, workspace+0, 1, 100, 64, 2, 64, 6400, 100, 64, 64, 100)
// kernel1<1x1x1 of 32x8x1>(workspace+0, 100, 2, 100, 0.125, workspace+1024)
// kernel2<1x1x2 of 256x1x1>(workspace+1024, input0, output0, 1, 64, 100, 2, 100, 6400, 64, 100, 64, 64)

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
// kernel0<2x1x1 of 512x1x1>(1, 1, 128, 2, 2, 1, 1, 100, 0.18033688, input1, 0, 128, 64, 64, input0, 0, 12800, 6400, 64, input0, 0, 12800, 6400, 64, output0)

KERNEL_LEAST(512, 1, 1, 1) kernel0(i64 arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, f32 arg8, GLOBAL const f32* RESTRICT arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, GLOBAL const f32* RESTRICT arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, GLOBAL const f32* RESTRICT arg19, i64 arg20, i64 arg21, i64 arg22, i64 arg23, GLOBAL f32* RESTRICT arg24) {
  STARTED;
  enum { E = 64, WIDTH = 64, VECTOR = 4, EACH = 4, LANES = 16, TEAMS = 32, THREADS = 512, R = 1, AHEAD = 2, SPAN = TEAMS * AHEAD, BUFFERS = 4, CAUSAL = 0 };
  #define INFINITY_F32 AS_F32(0x7f800000u)
  const i32 t = threadIdx.x, team = t / LANES, part = t % LANES;
  const u32 split = blockIdx.x % (u32)arg0, chunk = blockIdx.x / (u32)arg0 % (u32)arg1;
  const u32 shared_head = blockIdx.x / ((u32)arg0 * (u32)arg1), n = shared_head / (u32)arg4, g = shared_head % (u32)arg4;
  const i32 keys = (i32)arg7, rows = (i32)arg6, group = (i32)arg5;
  const i32 begin = (i32)((i64)split * arg2), end = begin + (i32)arg2 < keys ? begin + (i32)arg2 : keys;
  const f32* const k = arg14 + arg15 + n * arg16 + g * arg17;
  const f32* const v = arg19 + arg20 + n * arg21 + g * arg22;
  
  const auto place_of = [&](const i32 i) -> i32 { return (i / VECTOR * LANES + part) * VECTOR + i % VECTOR; };
  const auto is_in_row = [&](const i32 i, const i32 width) -> bool { return width == LANES * EACH || place_of(i) < width; };
  const auto load_row = [&](f32* to, const f32* from, const i32 width) {
    UNROLL for (i32 i = 0; i < EACH; i += VECTOR) {
      if (is_in_row(i, width)) { VLOAD(f32, VECTOR, to + i, from + place_of(i)); }
      else UNROLL for (i32 j = 0; j < VECTOR; ++j) to[i + j] = 0;
    }
  };
  const auto power = [](const f32 x) -> f32 { f32 r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; };
  
  VARRAY(f32, EACH, k_part[BUFFERS][AHEAD]);
  VARRAY(f32, EACH, v_part[BUFFERS][AHEAD]);
  const auto fetch = [&](const i32 buffer, const i32 start) {
    UNROLL for (i32 a = 0; a < AHEAD; ++a) {
      const i32 wanted = start + team + a * TEAMS;
      const i64 key = wanted < end ? wanted : end - 1;
      load_row(k_part[buffer][a], k + key * arg18, E);
      load_row(v_part[buffer][a], v + key * arg23, WIDTH);
    }
  };
  UNROLL for (i32 b = 0; b < BUFFERS; ++b) fetch(b, begin + b * SPAN);
  
  
  f32 query[R][EACH], sum[R][EACH], largest[R], total[R];
  i32 row_of[R], head_of[R];
  UNROLL for (i32 r = 0; r < R; ++r) {
    const i32 number = chunk * R + r, is_in = number < rows * group;
    row_of[r] = is_in ? number % rows : 0;
    head_of[r] = g * group + (is_in ? number / rows : 0);
    const f32* const q = arg9 + arg10 + n * arg11 + head_of[r] * arg12 + row_of[r] * arg13;
    UNROLL for (i32 i = 0; i < EACH; ++i) {
      query[r][i] = sum[r][i] = 0;
      if (is_in_row(i, E)) {
        const i32 place = place_of(i);
        
        query[r][i] = is_in ? q[place] * arg8 : 0.0f;
      }
    }
    largest[r] = -INFINITY_F32;
    total[r] = 0;
  }
  const auto use = [&](f32 (&k_now)[AHEAD][EACH], f32 (&v_now)[AHEAD][EACH], const i32 start, const i32 end) {
    f32 score[R][AHEAD], mask[R][AHEAD];
    UNROLL for (i32 r = 0; r < R; ++r) UNROLL for (i32 a = 0; a < AHEAD; ++a) {
      const i32 row = row_of[r], h = head_of[r], wanted = start + team + a * TEAMS, key = wanted < end ? wanted : end - 1;
      mask[r][a] = 0.0f;
    }
    UNROLL for (i32 a = 0; a < AHEAD; ++a) {
      f32 wide[EACH];
      UNROLL for (i32 i = 0; i < EACH; ++i) wide[i] = k_now[a][i];
      UNROLL for (i32 r = 0; r < R; ++r) {
        f32 s = 0;
        UNROLL for (i32 i = 0; i < EACH; ++i) s = fmaf(query[r][i], wide[i], s);
        score[r][a] = s;
      }
    }
    UNROLL for (i32 distance = LANES / 2; distance > 0; distance /= 2) {
      UNROLL for (i32 r = 0; r < R; ++r) UNROLL for (i32 a = 0; a < AHEAD; ++a) score[r][a] += SHUFFLE(score[r][a], distance);
    }
    UNROLL for (i32 r = 0; r < R; ++r) {
      f32 top = largest[r];
      UNROLL for (i32 a = 0; a < AHEAD; ++a) {
        const i32 key = start + team + a * TEAMS;
        const f32 s = score[r][a];
        score[r][a] = key < end && (!CAUSAL || key <= row_of[r]) ? s : -INFINITY_F32;
        top = fmaxf(top, score[r][a]);
      }
      const f32 base = top == -INFINITY_F32 ? 0.0f : top, change = power(largest[r] - base);
      largest[r] = top;
      total[r] *= change;
      UNROLL for (i32 i = 0; i < EACH; ++i) sum[r][i] *= change;
      UNROLL for (i32 a = 0; a < AHEAD; ++a) {
        const f32 p = power(score[r][a] - base);
        total[r] += p;
        score[r][a] = p;
      }
    }
    UNROLL for (i32 a = 0; a < AHEAD; ++a) {
      f32 wide[EACH];
      UNROLL for (i32 i = 0; i < EACH; ++i) wide[i] = v_now[a][i];
      UNROLL for (i32 r = 0; r < R; ++r) UNROLL for (i32 i = 0; i < EACH; ++i) sum[r][i] = fmaf(score[r][a], wide[i], sum[r][i]);
    }
  };
  for (i32 first = begin; first < end; first += BUFFERS * SPAN) {
    UNROLL for (i32 buffer = 0; buffer < BUFFERS; ++buffer) {
      const i32 start = first + buffer * SPAN;
      if (start < end) use(k_part[buffer], v_part[buffer], start, end);
      if (start + BUFFERS * SPAN < end) fetch(buffer, start + BUFFERS * SPAN);
    }
  }
  
  // The teams of a warp are joined first.
  LOCAL f32 sums[THREADS / 32][LANES * EACH], tops[THREADS / 32], totals[THREADS / 32];
  UNROLL for (i32 r = 0; r < R; ++r) {
    UNROLL for (i32 distance = LANES; distance < 32; distance *= 2) {
      const f32 other = SHUFFLE(largest[r], distance), top = fmaxf(largest[r], other), base = top == -INFINITY_F32 ? 0.0f : top;
      const f32 mine = power(largest[r] - base), its = power(other - base);
      total[r] = fmaf(SHUFFLE(total[r], distance), its, total[r] * mine);
      UNROLL for (i32 i = 0; i < EACH; ++i) sum[r][i] = fmaf(SHUFFLE(sum[r][i], distance), its, sum[r][i] * mine);
      largest[r] = top;
    }
    BARRIER;
    if (t % 32 < LANES) UNROLL for (i32 i = 0; i < EACH; ++i) sums[t / 32][place_of(i)] = sum[r][i];
    if (t % 32 == 0) { tops[t / 32] = largest[r]; totals[t / 32] = total[r]; }
    BARRIER;
    const i32 number = chunk * R + r;
    if (number < rows * group) for (i32 c = t; c < WIDTH; c += THREADS) {
      f32 top = -INFINITY_F32, all = 0, x = 0;
      UNROLL for (i32 m = 0; m < THREADS / 32; ++m) top = fmaxf(top, tops[m]);
      const f32 base = top == -INFINITY_F32 ? 0.0f : top;
      UNROLL for (i32 m = 0; m < THREADS / 32; ++m) {
        const f32 weight = power(tops[m] - base);
        all = fmaf(totals[m], weight, all);
        x = fmaf(sums[m][c], weight, x);
      }
      const i64 line = ((i64)n * arg3 + head_of[r]) * rows + row_of[r];
      x = all == 0 ? 0.0f : x / all;
      arg24[line * WIDTH + c] = x;
      if (c == 0) {}
    }
  }
  #undef INFINITY_F32
}

// --- Tenstorrent
// workspace 52224 bytes
// kernel0<1x128x1 of 1x1x1>(input0, workspace+0, 100, 128, 1, 100, 64, 6400, 6400, 100, 64)
// kernel1<7x1x2 of 1x1x1>(input1, workspace+0, workspace+51200, 1, 100, 64, 2, 64, 6400, 100, 64, 64, 64, 64, 100, 64, 64, 64, 64, 100, 100)
// kernel2<2x1x1 of 1x1x1>(workspace+51200, 100, 2, 1, 100, 0.125, workspace+0)
// kernel1<4x1x2 of 1x1x1>(workspace+0, input0, output0, 1, 64, 100, 2, 100, 6400, 64, 100, 100, 100, 100, 64, 100, 100, 100, 100, 64, 64)

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
