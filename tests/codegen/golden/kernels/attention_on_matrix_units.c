// attention(half_heads, half_heads, half_heads)

// --- OpenCL
// workspace 120832 bytes
// kernel0<2x2x2 of 256x1x1>(input0, input0, workspace+0, 100, 100, 64, 2, 6400, 6400, 10000, 64, 64, 100)
// kernel1<25x1x1 of 32x8x1>(workspace+0, 100, 200, 100, 0.125, workspace+80384)
// kernel2<1x2x2 of 256x1x1>(workspace+80384, input0, output0, 100, 64, 100, 2, 10000, 6400, 6400, 100, 64, 64)

// calls bfloat_to_f32
KERNEL(256, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL const u16* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12) {
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
          tile_a[ak][ar] = row + ar < arg3 && k + ak < arg5 ? bfloat_to_f32(arg0[from_a + (row + ar) * arg10 + (k + ak)]) : 0;
          const i32 bc = item / 16, bk = item % 16;
          tile_b[bk][bc] = column + bc < arg4 && k + bk < arg5 ? bfloat_to_f32(arg1[from_b + (k + bk) + (column + bc) * arg11]) : 0;
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

// calls bfloat_to_f32
// calls exp_f32
// calls f32_to_bfloat
KERNEL(32, 8, 1) kernel1(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, f32 arg4, GLOBAL u16* RESTRICT arg5) {
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
        VARRAY(u16, 4, qarg5);
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 v3 = kv3[k];
          f32 v5_2 = v3 / v4;
          f32 v5 = v5_2;
          f32 v6 = bfloat_to_f32(f32_to_bfloat(v5));
          qarg5[l] = f32_to_bfloat(v6);
        }
        if (active) { VSTORE(u16, 4, qarg5, arg5 + row * arg1 + c); }
      }
    }
  }
}

// calls bfloat_to_f32
// calls f32_to_bfloat
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
          tile_a[ak][ar] = row + ar < arg3 && k + ak < arg5 ? bfloat_to_f32(arg0[from_a + (row + ar) * arg10 + (k + ak)]) : 0;
          const i32 bc = item % 64, bk = item / 64;
          tile_b[bk][bc] = column + bc < arg4 && k + bk < arg5 ? bfloat_to_f32(arg1[from_b + (k + bk) * arg11 + (column + bc)]) : 0;
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
        if (i < arg3 && j < arg4) arg2[to + i * arg12 + j] = f32_to_bfloat(sum[r][c]);
      }
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<2x1x1 of 128x1x1>(1, 2, 1, 100, 100, 0.18033688, input0, 0, 12800, 6400, 64, input0, 0, 12800, 6400, 64, input0, 0, 12800, 6400, 64, output0)

KERNEL(128, 1, 1) kernel0(i64 arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, f32 arg5, GLOBAL const u16* RESTRICT arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, GLOBAL const u16* RESTRICT arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, GLOBAL const u16* RESTRICT arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20, GLOBAL u16* RESTRICT arg21) {
  STARTED;
  enum { E = 64, D = 64, WIDTH = 64, V_WIDTH = 64, TILES = 2, THREADS = 128, ROWS = 128, KEYS = 128, Q_BYTES = 144, V_BYTES = 144, WHOLE = 1, CAUSAL = 0, SCALED = 0 };
  extern __shared__ __align__(16) unsigned char memory[];
  #define INFINITY_F32 AS_F32(0x7f800000u)
  unsigned char* const q_rows = memory;
  unsigned char* const k_rows = q_rows + ROWS * Q_BYTES;
  unsigned char* const v_rows = k_rows + KEYS * Q_BYTES;
  const i32 t = threadIdx.x, lane = t & 31, warp = t >> 5;
  const u32 block = (u32)arg0 - 1u - blockIdx.x % (u32)arg0, head = blockIdx.x / (u32)arg0;
  const u32 n = head / (u32)arg1, h = head % (u32)arg1, g = h / (u32)arg2;
  const u16* const q = arg6 + arg7 + n * arg8 + h * arg9;
  const u16* const k = arg11 + arg12 + n * arg13 + g * arg14;
  const u16* const v = arg16 + arg17 + n * arg18 + g * arg19;
  const i32 first_row = block * ROWS, rows = (i32)arg3, keys = (i32)arg4;
  const auto local_address = [](const void* p) -> u32 { return (u32)__cvta_generic_to_shared(p); };
  const auto fetch = [&](unsigned char* to, const i32 bytes, const u16* from, const i64 stride, const i32 first, const i32 last,
  const i32 count, const i32 width, const i32 padded) {
    const i32 chunks = padded / 8;
    for (i32 c = t; c < count * chunks; c += THREADS) {
      const i32 row = c / chunks, column = c % chunks * 8;
      unsigned char* const into = to + row * bytes + column * 2;
      const i32 is_in = first + row < last && column < width;
      const u16* const source = from + (is_in ? (i64)(first + row) * stride + column : 0);
      if (WHOLE) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(local_address(into)), "l"(source), "r"(is_in ? 16 : 0));
      } else {
        UNROLL for (i32 i = 0; i < 8; ++i) ((u16*)into)[i] = is_in && column + i < width ? source[i] : (u16)0;
      }
    }
  };
  const auto commit = [] { asm volatile("cp.async.commit_group;"); };
  const auto arrived_but_one = [] { asm volatile("cp.async.wait_group 1;" ::: "memory"); };
  const auto load4 = [&](u32 (&r)[4], const unsigned char* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
    : "r"(local_address(p)));
  };
  const auto load4_transposed = [&](u32 (&r)[4], const unsigned char* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]),
    "=r"(r[3]) : "r"(local_address(p)));
  };
  const auto multiply = [](f32 (&c)[4], const u32 (&a)[4], const u32 b0, const u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  };
  const auto packed = [](const f32 low, const f32 high) -> u32 {
    u32 r;
    asm("cvt.rn.bf16" "x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
  };
  const auto power = [](const f32 x) -> f32 { f32 r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; };
  f32 result[TILES][D / 8][4], largest[TILES][2], total[TILES][2];
  UNROLL for (i32 m = 0; m < TILES; ++m) {
    UNROLL for (i32 i = 0; i < D / 8; ++i) UNROLL for (i32 c = 0; c < 4; ++c) result[m][i][c] = 0;
    UNROLL for (i32 r = 0; r < 2; ++r) { largest[m][r] = -INFINITY_F32; total[m][r] = 0; }
  }
  const i32 needed = CAUSAL && first_row + ROWS < keys ? first_row + ROWS : keys, blocks = (needed + KEYS - 1) / KEYS;
  fetch(q_rows, Q_BYTES, q, arg10, first_row, rows, ROWS, WIDTH, E);
  fetch(k_rows, Q_BYTES, k, arg15, 0, keys, KEYS, WIDTH, E);
  commit();
  fetch(v_rows, V_BYTES, v, arg20, 0, keys, KEYS, V_WIDTH, D);
  commit();
  const unsigned char* const q_from = q_rows + (warp * TILES * 16 + (lane & 15)) * Q_BYTES + (lane >> 4) * 16;
  const unsigned char* const k_from = k_rows + ((lane & 7) + (lane >> 4) * 8) * Q_BYTES + (lane >> 3 & 1) * 16;
  const unsigned char* const v_from = v_rows + (lane & 15) * V_BYTES + (lane >> 4) * 16;
  const i32 own_row = first_row + warp * TILES * 16 + (lane >> 2);
  for (i32 b = 0; b < blocks; ++b) {
    arrived_but_one();
    BARRIER;
    f32 score[TILES][KEYS / 8][4];
    UNROLL for (i32 m = 0; m < TILES; ++m) UNROLL for (i32 i = 0; i < KEYS / 8; ++i) UNROLL for (i32 c = 0; c < 4; ++c) score[m][i][c] = 0;
    UNROLL for (i32 e = 0; e < E / 16; ++e) {
      u32 a[TILES][4];
      UNROLL for (i32 m = 0; m < TILES; ++m) load4(a[m], q_from + m * 16 * Q_BYTES + e * 32);
      UNROLL for (i32 i = 0; i < KEYS / 16; ++i) {
        u32 w[4];
        load4(w, k_from + i * 16 * Q_BYTES + e * 32);
        UNROLL for (i32 m = 0; m < TILES; ++m) {
          multiply(score[m][2 * i], a[m], w[0], w[1]);
          multiply(score[m][2 * i + 1], a[m], w[2], w[3]);
        }
      }
    }
    BARRIER;
    if (b + 1 < blocks) fetch(k_rows, Q_BYTES, k, arg15, (b + 1) * KEYS, keys, KEYS, WIDTH, E);
    commit();
    const i32 at_edge = SCALED || (b + 1) * KEYS > keys || (CAUSAL && (b + 1) * KEYS > first_row + warp * TILES * 16 + 1);
    if (at_edge) {
      UNROLL for (i32 m = 0; m < TILES; ++m) UNROLL for (i32 i = 0; i < KEYS / 8; ++i) UNROLL for (i32 c = 0; c < 4; ++c) {
        const i32 key = b * KEYS + i * 8 + (lane & 3) * 2 + (c & 1), row = own_row + m * 16 + (c >> 1) * 8;
        const f32 s = SCALED ? score[m][i][c] * arg5 : score[m][i][c];
        score[m][i][c] = key < keys && (!CAUSAL || key <= row) ? s : -INFINITY_F32;
      }
    }
    UNROLL for (i32 m = 0; m < TILES; ++m) UNROLL for (i32 r = 0; r < 2; ++r) {
      f32 top = largest[m][r];
      UNROLL for (i32 i = 0; i < KEYS / 8; ++i) top = fmaxf(top, fmaxf(score[m][i][r * 2], score[m][i][r * 2 + 1]));
      top = fmaxf(top, SHUFFLE(top, 1));
      top = fmaxf(top, SHUFFLE(top, 2));
      const f32 base = top == -INFINITY_F32 ? 0.0f : top * arg5, change = power(fmaf(largest[m][r], arg5, -base));
      largest[m][r] = top;
      f32 sum = 0;
      UNROLL for (i32 i = 0; i < KEYS / 8; ++i) UNROLL for (i32 c = 0; c < 2; ++c) {
        const f32 p = power(fmaf(score[m][i][r * 2 + c], arg5, -base));
        score[m][i][r * 2 + c] = p;
        sum += p;
      }
      total[m][r] = fmaf(total[m][r], change, sum);
      UNROLL for (i32 i = 0; i < D / 8; ++i) { result[m][i][r * 2] *= change; result[m][i][r * 2 + 1] *= change; }
    }
    arrived_but_one();
    BARRIER;
    UNROLL for (i32 i = 0; i < KEYS / 16; ++i) {
      u32 a[TILES][4];
      UNROLL for (i32 m = 0; m < TILES; ++m) {
        a[m][0] = packed(score[m][2 * i][0], score[m][2 * i][1]);
        a[m][1] = packed(score[m][2 * i][2], score[m][2 * i][3]);
        a[m][2] = packed(score[m][2 * i + 1][0], score[m][2 * i + 1][1]);
        a[m][3] = packed(score[m][2 * i + 1][2], score[m][2 * i + 1][3]);
      }
      UNROLL for (i32 d = 0; d < D / 16; ++d) {
        u32 w[4];
        load4_transposed(w, v_from + i * 16 * V_BYTES + d * 32);
        UNROLL for (i32 m = 0; m < TILES; ++m) {
          multiply(result[m][2 * d], a[m], w[0], w[1]);
          multiply(result[m][2 * d + 1], a[m], w[2], w[3]);
        }
      }
    }
    BARRIER;
    if (b + 1 < blocks) fetch(v_rows, V_BYTES, v, arg20, (b + 1) * KEYS, keys, KEYS, V_WIDTH, D);
    commit();
  }
  UNROLL for (i32 m = 0; m < TILES; ++m) UNROLL for (i32 r = 0; r < 2; ++r) {
    f32 sum = total[m][r];
    sum += SHUFFLE(sum, 1);
    sum += SHUFFLE(sum, 2);
    const f32 share = sum == 0 ? 0.0f : 1.0f / sum;
    const i32 row = own_row + m * 16 + r * 8;
    if (row < rows) {
      const i64 into = ((i64)head * rows + row) * V_WIDTH;
      UNROLL for (i32 i = 0; i < D / 8; ++i) {
        const i32 column = i * 8 + (lane & 3) * 2;
        const f32 x = result[m][i][r * 2] * share, y = result[m][i][r * 2 + 1] * share;
        if (column < V_WIDTH) *(u32*)(arg21 + into + column) = packed(x, y);
      }
    }
  }
  #undef INFINITY_F32
}

// --- Tenstorrent
// workspace 120832 bytes
// kernel0<1x128x1 of 1x1x1>(input0, workspace+80384, 100, 128, 1, 100, 64, 6400, 6400, 100, 64)
// kernel1<7x25x2 of 1x1x1>(input0, workspace+80384, workspace+0, 100, 100, 64, 2, 6400, 6400, 10000, 64, 64, 64, 64, 100, 64, 64, 64, 64, 100, 100)
// kernel2<200x1x1 of 1x1x1>(workspace+0, 100, 200, 1, 100, 0.125, workspace+80384)
// kernel3<4x25x2 of 1x1x1>(workspace+80384, input0, output0, 100, 64, 100, 2, 10000, 6400, 6400, 100, 100, 100, 100, 64, 100, 100, 100, 100, 64, 64)

// calls bfloat_to_f32
// calls f32_to_bfloat
KERNEL(1, 1, 1) kernel0(Global<const u16> arg0, Global<u16> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 piece = begin; piece < end; piece += 32) {
    const i64 stop = piece + 32 < end ? piece + 32 : end;
    for (i64 row = first; row < last; ++row) {
      i64 i1 = row % arg6, r1 = row / arg6;
      i64 o0 = r1 * arg7 + i1;
      i64 o1 = r1 * arg8 + i1 * arg9;
      VECTORIZE for (i64 i = piece; i < stop; ++i) {
        f32 x0 = bfloat_to_f32(arg0[o0 + i * arg10]);
        arg1[o1 + i] = f32_to_bfloat(x0);
      }
    }
  }
}

// calls bfloat_to_f32
KERNEL(1, 1, 1) kernel1(Global<const u16> arg0, Global<const u16> arg1, Global<f32> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20) {
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
          const f32 a0 = bfloat_to_f32(arg0[from_a + row0 * arg10 + k]);
          const f32 a1 = bfloat_to_f32(arg0[from_a + row1 * arg11 + k]);
          const f32 a2 = bfloat_to_f32(arg0[from_a + row2 * arg12 + k]);
          const f32 a3 = bfloat_to_f32(arg0[from_a + row3 * arg13 + k]);
          for (i32 c = 0; c < 16; ++c) {
            const f32 b = bfloat_to_f32(arg1[from_b + k * arg14 + (column + c)]);
            sum[0][c] = fma(a0, b, sum[0][c]);
            sum[1][c] = fma(a1, b, sum[1][c]);
            sum[2][c] = fma(a2, b, sum[2][c]);
            sum[3][c] = fma(a3, b, sum[3][c]);
          }
        }
      } else {
        for (i64 k = 0; k < arg5; ++k) {
          const f32 a0 = bfloat_to_f32(arg0[from_a + row0 * arg15 + k]);
          const f32 a1 = bfloat_to_f32(arg0[from_a + row1 * arg16 + k]);
          const f32 a2 = bfloat_to_f32(arg0[from_a + row2 * arg17 + k]);
          const f32 a3 = bfloat_to_f32(arg0[from_a + row3 * arg18 + k]);
          for (i32 c = 0; c < width; ++c) {
            const f32 b = bfloat_to_f32(arg1[from_b + k * arg19 + (column + c)]);
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

// calls bfloat_to_f32
// calls exp_f32
// calls f32_to_bfloat
// calls order_f32
// calls unorder_f32
KERNEL(1, 1, 1) kernel2(Global<const f32> arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, f32 arg5, Global<u16> arg6) {
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
      f32 v6 = bfloat_to_f32(f32_to_bfloat(v5));
      arg6[row * arg1 + i] = f32_to_bfloat(v6);
    }
  }
}

// calls bfloat_to_f32
// calls f32_to_bfloat
KERNEL(1, 1, 1) kernel3(Global<const u16> arg0, Global<const u16> arg1, Global<u16> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20) {
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
          const f32 a0 = bfloat_to_f32(arg0[from_a + row0 * arg10 + k]);
          const f32 a1 = bfloat_to_f32(arg0[from_a + row1 * arg11 + k]);
          const f32 a2 = bfloat_to_f32(arg0[from_a + row2 * arg12 + k]);
          const f32 a3 = bfloat_to_f32(arg0[from_a + row3 * arg13 + k]);
          for (i32 c = 0; c < 16; ++c) {
            const f32 b = bfloat_to_f32(arg1[from_b + k * arg14 + (column + c)]);
            sum[0][c] = fma(a0, b, sum[0][c]);
            sum[1][c] = fma(a1, b, sum[1][c]);
            sum[2][c] = fma(a2, b, sum[2][c]);
            sum[3][c] = fma(a3, b, sum[3][c]);
          }
        }
      } else {
        for (i64 k = 0; k < arg5; ++k) {
          const f32 a0 = bfloat_to_f32(arg0[from_a + row0 * arg15 + k]);
          const f32 a1 = bfloat_to_f32(arg0[from_a + row1 * arg16 + k]);
          const f32 a2 = bfloat_to_f32(arg0[from_a + row2 * arg17 + k]);
          const f32 a3 = bfloat_to_f32(arg0[from_a + row3 * arg18 + k]);
          for (i32 c = 0; c < width; ++c) {
            const f32 b = bfloat_to_f32(arg1[from_b + k * arg19 + (column + c)]);
            sum[0][c] = fma(a0, b, sum[0][c]);
            sum[1][c] = fma(a1, b, sum[1][c]);
            sum[2][c] = fma(a2, b, sum[2][c]);
            sum[3][c] = fma(a3, b, sum[3][c]);
          }
        }
      }
      for (i32 r = 0; r < 4 && row + r < arg3; ++r) for (i32 c = 0; c < width; ++c) arg2[to + (row + r) * arg20 + (column + c)] = f32_to_bfloat(sum[r][c]);
    }
  }
}
