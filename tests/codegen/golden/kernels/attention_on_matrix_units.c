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

// --- CUDA, compute capability 9.0
// workspace 0 bytes
// kernel0<2x1x1 of 512x1x1>(1, 2, 2, 2, 1, 100, 100, 0.18033688, output0, input0, 0, 12800, 6400, 64, input0, 0, 12800, 6400, 64, input0, 0, 12800, 6400, 64)

KERNEL(512, 1, 1) kernel0(i64 arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, f32 arg7, GLOBAL u16* RESTRICT arg8, GLOBAL const u16* RESTRICT arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, GLOBAL const u16* RESTRICT arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, GLOBAL const u16* RESTRICT arg19, i64 arg20, i64 arg21, i64 arg22, i64 arg23) {
  STARTED;
  enum { E = 64, D = 64, WIDTH = 64, V_WIDTH = 64, GROUPS = 3, ROWS = 192, KEYS = 128, STAGES = 2, CAUSAL = 0, EDGES = 1 };
  extern __shared__ unsigned char memory[];
  #define INFINITY_F32 AS_F32(0x7f800000u)
  const u32 q_at = ((u32)__cvta_generic_to_shared(memory) + 1023) & ~1023u, k_at = q_at + ROWS * E * 2, v_at = k_at + STAGES * KEYS * E * 2;
  const u32 full_q = v_at + STAGES * KEYS * D * 2, empty_q = full_q + 8, full_k = full_q + 16, empty_k = full_k + STAGES * 8;
  const u32 full_v = empty_k + STAGES * 8, empty_v = full_v + STAGES * 8;
  const i32 t = threadIdx.x, lane = t & 31, group = SHUFFLE_FROM(t >> 7, 0), rows = (i32)arg5, keys = (i32)arg6;
  const auto arrive = [](const u32 barrier) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(barrier) : "memory"); };
  const auto wait = [](const u32 barrier, const u32 phase) {
    asm volatile("{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@!done bra AGAIN;\n}"
    :: "r"(barrier), "r"(phase) : "memory");
  };
  if (t == 0) UNROLL for (i32 i = 0; i < 2 + 4 * STAGES; ++i) {
    const i32 is_full = i < 2 ? i == 0 : (i - 2) / STAGES % 2 == 0;
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(full_q + i * 8), "r"(is_full ? 128 : GROUPS * 4) : "memory");
  }
  BARRIER;
  i32 n, h, first_row, tiles;
  const auto choose = [&](const u32 work) {
    const u32 in_set = (u32)arg2 * (u32)arg0, before = work / in_set * (u32)arg2, rest = work % in_set, left = (u32)arg1 - before;
    const u32 count = left < (u32)arg2 ? left : (u32)arg2, head = before + rest % count;
    n = head / (u32)arg3;
    h = head % (u32)arg3;
    first_row = ((i32)arg0 - 1 - (i32)(rest / count)) * ROWS;
    tiles = ((CAUSAL && first_row + ROWS < keys ? first_row + ROWS : keys) + KEYS - 1) / KEYS;
  };
  const auto next = [](u32& stage, u32& phase) { if (++stage == STAGES) { stage = 0; phase ^= 1; } };
  #define EACH_WORK u32 turn = 0, work = blockIdx.x; work < (u32)arg0 * (u32)arg1; ++turn, work += gridDim.x
  if (group == GROUPS) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
    u32 k_stage = 0, k_phase = 1, v_stage = 0, v_phase = 1;
    const auto fetch = [&](const u32 to, const i32 count, const i32 width, const i32 padded, const u16* from, const i64 stride,
    const i32 left, const u32 full) {
      const i32 chunks = padded / 8, each = 128 / chunks, row = (t & 127) / chunks, column = (t & 127) % chunks;
      const u16* source = from + row * stride + column * 8;
      const u32 into = to + column / 8 * count * 128 + row * 128;
      UNROLL_BY(8) for (i32 i = 0; i < count; i += each, source += each * stride) {
        const i32 bytes = column * 8 < width && i + row < left ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(into + i * 128 + ((column ^ (row + i)) & 7) * 16), "l"(bytes ? source : from), "r"(bytes) : "memory");
      }
      asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(full) : "memory");
    };
    for (EACH_WORK) {
      choose(work);
      const i32 g = h / (i32)arg4;
      const u16* const q = arg9 + arg10 + n * arg11 + h * arg12 + first_row * arg13;
      const u16* const k = arg14 + arg15 + n * arg16 + g * arg17;
      const u16* const v = arg19 + arg20 + n * arg21 + g * arg22;
      const auto fetch_k = [&](const i32 b) {
        wait(empty_k + k_stage * 8, k_phase);
        fetch(k_at + k_stage * KEYS * E * 2, KEYS, WIDTH, E, k + b * KEYS * arg18, arg18, keys - b * KEYS, full_k + k_stage * 8);
        next(k_stage, k_phase);
      };
      wait(empty_q, ~turn & 1);
      fetch(q_at, ROWS, WIDTH, E, q, arg13, rows - first_row, full_q);
      fetch_k(tiles - 1);
      for (i32 b = tiles - 1; b >= 0; --b) {
        if (b > 0) fetch_k(b - 1);
        wait(empty_v + v_stage * 8, v_phase);
        fetch(v_at + v_stage * KEYS * D * 2, KEYS, V_WIDTH, D, v + b * KEYS * arg23, arg23, keys - b * KEYS, full_v + v_stage * 8);
        next(v_stage, v_phase);
      }
    }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
  u32 k_stage = 0, k_phase = 0, v_stage = 0, v_phase = 0;
  #define SCORES "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]), "+f"(s[7]), "+f"(s[8]), "+f"(s[9]), "+f"(s[10]), "+f"(s[11]), "+f"(s[12]), "+f"(s[13]), "+f"(s[14]), "+f"(s[15]), "+f"(s[16]), "+f"(s[17]), "+f"(s[18]), "+f"(s[19]), "+f"(s[20]), "+f"(s[21]), "+f"(s[22]), "+f"(s[23]), "+f"(s[24]), "+f"(s[25]), "+f"(s[26]), "+f"(s[27]), "+f"(s[28]), "+f"(s[29]), "+f"(s[30]), "+f"(s[31]), "+f"(s[32]), "+f"(s[33]), "+f"(s[34]), "+f"(s[35]), "+f"(s[36]), "+f"(s[37]), "+f"(s[38]), "+f"(s[39]), "+f"(s[40]), "+f"(s[41]), "+f"(s[42]), "+f"(s[43]), "+f"(s[44]), "+f"(s[45]), "+f"(s[46]), "+f"(s[47]), "+f"(s[48]), "+f"(s[49]), "+f"(s[50]), "+f"(s[51]), "+f"(s[52]), "+f"(s[53]), "+f"(s[54]), "+f"(s[55]), "+f"(s[56]), "+f"(s[57]), "+f"(s[58]), "+f"(s[59]), "+f"(s[60]), "+f"(s[61]), "+f"(s[62]), "+f"(s[63])
  #define RESULTS "+f"(o[0]), "+f"(o[1]), "+f"(o[2]), "+f"(o[3]), "+f"(o[4]), "+f"(o[5]), "+f"(o[6]), "+f"(o[7]), "+f"(o[8]), "+f"(o[9]), "+f"(o[10]), "+f"(o[11]), "+f"(o[12]), "+f"(o[13]), "+f"(o[14]), "+f"(o[15]), "+f"(o[16]), "+f"(o[17]), "+f"(o[18]), "+f"(o[19]), "+f"(o[20]), "+f"(o[21]), "+f"(o[22]), "+f"(o[23]), "+f"(o[24]), "+f"(o[25]), "+f"(o[26]), "+f"(o[27]), "+f"(o[28]), "+f"(o[29]), "+f"(o[30]), "+f"(o[31])
  f32 s[KEYS / 2], o[D / 2], largest[2], total[2], change[2];
  u32 p[KEYS / 4];
  const auto packed = [](const f32 low, const f32 high) -> u32 {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
  };
  const auto power = [](const f32 x) -> f32 { f32 r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; };
  const auto place = [](const u32 at, const u32 leading) -> u64 { return 1ul << 62 | 64ul << 32 | (u64)(leading / 16) << 16 | at / 16; };
  const u64 q_place = place(q_at + group * 64 * 128, 16);
  const auto release = [&](const u32 barrier) { if (lane == 0) arrive(barrier); };
  // What was copied is visible to the matrix units only after a fence.
  const auto arrived = [&](const u32 barrier, const u32 phase) {
    wait(barrier, phase);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  };
  const auto multiply_keys = [&] {
    const u64 k_place = place(k_at + k_stage * KEYS * E * 2, 16);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    UNROLL for (i32 e = 0; e < (WIDTH + 15) / 16; ++e)
    asm volatile("{\n.reg .pred is_added;\nsetp.ne.b32 is_added, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, is_added, 1, 1, 0, 0;\n}"
    : SCORES : "l"(q_place + e / 4 * ROWS * 8 + e % 4 * 2), "l"(k_place + e / 4 * KEYS * 8 + e % 4 * 2), "r"((i32)(e > 0)));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  };
  const auto multiply_values = [&] {
    const u64 v_place = place(v_at + v_stage * KEYS * D * 2, KEYS * 128);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    UNROLL for (i32 i = 0; i < KEYS / 16; ++i)
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
    : RESULTS : "r"(p[i * 4]), "r"(p[i * 4 + 1]), "r"(p[i * 4 + 2]), "r"(p[i * 4 + 3]), "l"(v_place + i * 128));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  };
  const auto have_scores = [&](const i32 b) {
    asm volatile("wgmma.wait_group.sync.aligned 1;" : SCORES :: "memory");
    release(empty_k + k_stage * 8);
    next(k_stage, k_phase);
    if (b == 0) release(empty_q);
  };
  const auto have_results = [&] {
    asm volatile("wgmma.wait_group.sync.aligned 0;" : RESULTS :: "memory");
    release(empty_v + v_stage * 8);
    next(v_stage, v_phase);
  };
  const auto soften = [&](const i32 b, const i32 row, const bool at_edge) {
    UNROLL for (i32 r = 0; r < 2; ++r) {
      if (at_edge) {
        const i32 last = CAUSAL && row + r * 8 < keys ? row + r * 8 + 1 : keys, limit = last - b * KEYS - (lane & 3) * 2;
        UNROLL for (i32 i = 0; i < KEYS / 4; ++i) if (i / 2 * 8 + i % 2 >= limit) s[i / 2 * 4 + r * 2 + i % 2] = -INFINITY_F32;
      }
      f32 top = largest[r], other = top;
      UNROLL for (i32 i = 0; i < KEYS / 8; ++i) { top = fmaxf(top, s[i * 4 + r * 2]); other = fmaxf(other, s[i * 4 + r * 2 + 1]); }
      top = fmaxf(top, other);
      top = fmaxf(top, SHUFFLE(top, 1));
      top = fmaxf(top, SHUFFLE(top, 2));
      const f32 base = top == -INFINITY_F32 ? 0.0f : top * arg7;
      change[r] = power(fmaf(largest[r], arg7, -base));
      largest[r] = top;
      f32 sums[2] = {0, 0};
      UNROLL for (i32 i = 0; i < KEYS / 4; ++i) {
        f32& x = s[i / 2 * 4 + r * 2 + i % 2];
        x = power(fmaf(x, arg7, -base));
        sums[i % 2] += x;
      }
      total[r] = fmaf(total[r], change[r], sums[0] + sums[1]);
    }
  };
  const auto pack = [&] { UNROLL for (i32 i = 0; i < KEYS / 4; ++i) p[i] = packed(s[i * 2], s[i * 2 + 1]); };
  if (group == 0) asm volatile("bar.arrive 1, 256;" ::: "memory");
  for (EACH_WORK) {
    choose(work);
    const i32 row = first_row + group * 64 + ((t & 127) >> 5) * 16 + (lane >> 2);
    UNROLL for (i32 i = 0; i < D / 2; ++i) o[i] = 0;
    UNROLL for (i32 r = 0; r < 2; ++r) { largest[r] = -INFINITY_F32; total[r] = 0; }
    i32 b = tiles - 1;
    wait(full_q, turn & 1);
    arrived(full_k + k_stage * 8, k_phase);
    multiply_keys();
    asm volatile("wgmma.wait_group.sync.aligned 0;" : SCORES :: "memory");
    have_scores(b);
    soften(b, row, true);
    pack();
    const auto step = [&](const bool at_edge) {
      arrived(full_k + k_stage * 8, k_phase);
      asm volatile("bar.sync %0, 256;" :: "r"(group + 1) : "memory");
      multiply_keys();
      arrived(full_v + v_stage * 8, v_phase);
      multiply_values();
      asm volatile("bar.arrive %0, 256;" :: "r"(group + 1 == GROUPS ? 1 : group + 2) : "memory");
      have_scores(b);
      soften(b, row, at_edge);
      have_results();
      UNROLL for (i32 i = 0; i < D / 2; ++i) o[i] *= change[i / 2 % 2];
      pack();
    };
    UNROLL_BY(1) for (i32 i = 1; i < EDGES && b > 0; ++i) { --b; step(true); }
    UNROLL_BY(1) while (b > 0) { --b; step(false); }
    arrived(full_v + v_stage * 8, v_phase);
    multiply_values();
    have_results();
    UNROLL for (i32 r = 0; r < 2; ++r) {
      f32 sum = total[r];
      sum += SHUFFLE(sum, 1);
      sum += SHUFFLE(sum, 2);
      const f32 share = sum == 0 ? 0.0f : 1.0f / sum;
      u16* const into = arg8 + (((i64)n * arg3 + h) * rows + row + r * 8) * V_WIDTH;
      UNROLL for (i32 i = 0; i < D / 32; ++i) {
        // Four lanes have a pair each of four times eight columns; then each has eight columns.
        u32 x[4];
        UNROLL for (i32 c = 0; c < 4; ++c) x[c] = packed(o[(i * 4 + c) * 4 + r * 2] * share, o[(i * 4 + c) * 4 + r * 2 + 1] * share);
        const i32 odd = lane & 1, upper = lane & 2, column = i * 32 + (lane & 3) * 8;
        const u32 y0 = SHUFFLE(odd ? x[0] : x[1], 1), y1 = SHUFFLE(odd ? x[2] : x[3], 1);
        if (odd) { x[0] = y0; x[2] = y1; } else { x[1] = y0; x[3] = y1; }
        const u32 z0 = SHUFFLE(upper ? x[0] : x[2], 2), z1 = SHUFFLE(upper ? x[1] : x[3], 2);
        if (row + r * 8 < rows && column < V_WIDTH) *(uint4*)(into + column) = upper ? make_uint4(z0, z1, x[2], x[3]) : make_uint4(x[0], x[1], z0, z1);
      }
    }
  }
  #undef SCORES
  #undef RESULTS
  #undef EACH_WORK
  #undef INFINITY_F32
}

// --- Tenstorrent
// workspace 120832 bytes
// kernel0<1x128x1 of 1x1x1>(input0, workspace+80384, 100, 128, 1, 100, 64, 6400, 6400, 100, 64)
// kernel1<7x25x2 of 1x1x1>(input0, workspace+80384, workspace+0, 100, 100, 64, 2, 6400, 6400, 10000, 64, 64, 64, 64, 100, 64, 64, 64, 64, 100, 100)
// kernel2<200x1x1 of 1x1x1>(workspace+0, 100, 200, 1, 100, 0.125, workspace+80384)
// kernel3<4x25x2 of 1x1x1>(workspace+80384, input0, output0, 100, 64, 100, 2, 10000, 6400, 6400, 100, 100, 100, 100, 64, 100, 100, 100, 100, 64, 64)

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
        u16 x0 = arg0[o0 + i * arg10];
        arg1[o1 + i] = x0;
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
