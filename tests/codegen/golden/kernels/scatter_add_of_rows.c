// scatter_add(square, broadcast_to(places[:, 0:1], [256, 256]), square, axis=0)

// --- OpenCL
// workspace 1572864 bytes
// kernel0<1x128x1 of 128x2x1>(input1, workspace+0, 256, 256, 256, 256)
// kernel1<64x1x1 of 256x1x1>(input0, output0, 65536)
// kernel2<256x1x1 of 256x1x1>(256, workspace+0, 256, status+0, 256, workspace+524288, 65536)
// kernel3<16x1x1 of 256x1x1>(workspace+524288, workspace+0, 256, 256, 256, 4096)
// kernel4<256x1x1 of 256x1x1>(workspace+524288, workspace+0, workspace+1048576, 256, 256, 256, 16, 65536)
// kernel4<256x1x1 of 256x1x1>(workspace+524288, workspace+1048576, workspace+0, 256, 256, 256, 32, 65536)
// kernel4<256x1x1 of 256x1x1>(workspace+524288, workspace+0, workspace+1048576, 256, 256, 256, 64, 65536)
// kernel4<256x1x1 of 256x1x1>(workspace+524288, workspace+1048576, workspace+0, 256, 256, 256, 128, 65536)
// kernel5<256x1x1 of 256x1x1>(workspace+524288, workspace+0, input0, output0, 256, 256, 65536)

KERNEL(128, 2, 1) kernel0(GLOBAL const i64* RESTRICT arg0, GLOBAL i64* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5) {
  for (i32 row = (i32)group_id(1) * 2 + local_id(1); row < arg3; row += (i32)group_count(1) * 2) {
    i32 o0 = row * arg4;
    i32 o1 = row * arg5;
    for (i32 i = ((i32)group_id(0) * 128 + local_id(0)) * 2; i < arg2; i = arg2) {
      const i32 whole = arg2 - i >= 2;
      VARRAY(i64, 2, q0);
      UNROLL for (i32 l = 0; l < 2; ++l) {
        i64 x0 = arg0[o0];
        q0[l] = x0;
      }
      if (whole) { VSTORE(i64, 2, q0, arg1 + o1 + i); }
      else for (i32 l = 0; l < 2; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
    }
  }
}

KERNEL(256, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 256 + local_id(0)) * 4; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 4;
    VARRAY(f32, 4, p0);
    if (whole) { VLOAD(f32, 4, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 x0 = p0[l];
      q0[l] = x0;
    }
    if (whole) { VSTORE(f32, 4, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// calls resolve
KERNEL(256, 1, 1) kernel2(i64 arg0, GLOBAL const i64* RESTRICT arg1, i64 arg2, GLOBAL i64* arg3, i64 arg4, GLOBAL i64* RESTRICT arg5, i64 arg6) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    i64 i1 = j % arg0, r1 = j / arg0;
    i64 o0 = i1;
    i64 o1 = r1;
    const i32 a = (i32)o1;
    const i64 place = o0 + resolve(arg1[j], arg2, arg3) * arg4;
    arg5[j] = place;
  }
}

KERNEL(256, 1, 1) kernel3(GLOBAL const i64* RESTRICT arg0, GLOBAL i64* arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg5; j += (i64)group_count(0) * 256) {
    const i64 line = j % arg4, begin = j / arg4 * 16, from = line / arg3 * arg2 * arg3 + line % arg3;
    const i64 end = begin + 16 < arg2 ? begin + 16 : arg2;
    for (i64 i = begin; i < end; ++i) {
      const i64 a = arg0[from + i * arg3];
      i64 place = i;
      for (; place > begin; --place) {
        const i64 k = arg1[from + (place - 1) * arg3];
        const i64 b = arg0[from + k * arg3];
        if (!(a == a ? (b != b || a < b || (a == b && i < k)) : (b != b && i < k))) break;
        arg1[from + place * arg3] = k;
      }
      arg1[from + place * arg3] = i;
    }
  }
}

KERNEL(256, 1, 1) kernel4(GLOBAL const i64* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL i64* RESTRICT arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg7; j += (i64)group_count(0) * 256) {
    const i64 line = j % arg5, place = j / arg5, from = line / arg4 * arg3 * arg4 + line % arg4;
    const i64 i = arg1[from + place * arg4];
    const i64 a = arg0[from + i * arg4];
    const i64 mine = place / arg6, pair = mine / 2 * 2 * arg6, sibling = (mine ^ 1) * arg6;
    i64 low = sibling < arg3 ? sibling : arg3;
    const i64 start = low;
    i64 high = sibling + arg6 < arg3 ? sibling + arg6 : arg3;
    while (low < high) {
      const i64 middle = (low + high) / 2, k = arg1[from + middle * arg4];
      const i64 b = arg0[from + k * arg4];
      if ((a == a ? (b != b || a < b || (a == b && i < k)) : (b != b && i < k))) high = middle; else low = middle + 1;
    }
    arg2[from + (pair + place - mine * arg6 + low - start) * arg4] = i;
  }
}

KERNEL(256, 1, 1) kernel5(GLOBAL const i64* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL const f32* RESTRICT arg2, GLOBAL f32* arg3, i64 arg4, i64 arg5, i64 arg6) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    const i64 a = j / arg5 % arg4, from = j - a * arg5;
    const i64 place = arg0[from + arg1[j] * arg5];
    if (a == 0 || arg0[from + arg1[j - arg5] * arg5] != place) {
      f32 sum = arg3[place];
      for (i64 n = a; n < arg4; ++n) {
        const i64 u = from + arg1[from + n * arg5] * arg5;
        if (arg0[u] != place) break;
        sum = sum + arg2[u];
      }
      arg3[place] = sum;
    }
  }
}

// --- CUDA
// workspace 4096 bytes
// kernel0<64x1x1 of 256x1x1>(input0, output0, 65536)
// kernel1<1x1x1 of 256x1x1>(input1, workspace+0, 256, 256)
// kernel2<1x1x1 of 256x1x1>(workspace+0, status+0, workspace+2048, 256, 256)
// kernel3<1x1x1 of 256x1x1>(workspace+2048, 256, 0, 256, workspace+0, workspace+3072)
// kernel4<64x1x1 of 256x1x1>(workspace+3072, workspace+0, input0, output0, 256, 256, 64, 16384)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2) {
  STARTED;
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 256 + local_id(0)) * 4; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 4;
    VARRAY(f32, 4, p0);
    if (whole) { VLOAD(f32, 4, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 x0 = p0[l];
      q0[l] = x0;
    }
    if (whole) { VSTORE(f32, 4, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

KERNEL(256, 1, 1) kernel1(GLOBAL const i64* RESTRICT arg0, GLOBAL i64* RESTRICT arg1, i32 arg2, i32 arg3) {
  STARTED;
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 256 + local_id(0)) * 1; i < arg2; i = arg2) {
    i64 x0 = arg0[o0 + i * arg3];
    arg1[o1 + i] = x0;
  }
}

// calls resolve
KERNEL(256, 1, 1) kernel2(GLOBAL const i64* RESTRICT arg0, GLOBAL i64* arg1, GLOBAL u32* arg2, i64 arg3, i64 arg4) {
  STARTED;
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg4; j += (i64)group_count(0) * 256) {
    arg2[j] = (u32)resolve(arg0[j], arg3, arg1);
  }
}

KERNEL(256, 1, 1) kernel3(GLOBAL const u32* RESTRICT arg0, i64 arg1, i64 arg2, i64 arg3, GLOBAL i64* RESTRICT arg4, GLOBAL u32* RESTRICT arg5) {
  STARTED;
  typedef u32 KEY;
  enum { ITEMS = 1, PASSES = 1 };
  LOCAL u32 warp_sums[8];
  const i32 t = threadIdx.x, lane = t & 31, warp = t >> 5;
  const auto total_before = [&](const u32 value, u32& sum) -> u32 {
    u32 s = value;
    UNROLL for (i32 d = 1; d < 32; d *= 2) { const u32 u = SHUFFLE_UP(s, d); s += lane >= d ? u : 0u; }
    BARRIER;
    if (lane == 31) warp_sums[warp] = s;
    BARRIER;
    u32 before = s - value;
    sum = 0;
    UNROLL for (i32 w = 0; w < 8; ++w) { const u32 part = warp_sums[w]; before += w < warp ? part : 0u; sum += part; }
    return before;
  };
  const auto key_of = [](const u32 v) -> u32 { return ((u32)(u32)v ^ 0); };
  const auto is_ambiguous = [](const u32) -> bool { return false; };
  const auto element_of = [](const u32 k) -> u32 { return (u32)(u32)((k) ^ 0); };
  LOCAL u32 counters[8 * 256];
  LOCAL u32 digit_starts[256];
  const auto rank_keys = [&](const KEY (&key)[ITEMS], u32 (&rank)[ITEMS], const i32 shift) {
    BARRIER;
    UNROLL for (i32 i = 0; i < 8; ++i) counters[i * 256 + t] = 0;
    BARRIER;
    u32* const mine = counters + warp * 256;
    UNROLL for (i32 k = 0; k < ITEMS; ++k) {
      const u32 digit = (u32)(key[k] >> shift) & 255u;
      u32 same = 0xffffffffu;
      UNROLL for (i32 b = 0; b < 8; ++b) {
        const u32 vote = __ballot_sync(0xffffffffu, digit >> b & 1u);
        same &= digit >> b & 1u ? vote : ~vote;
      }
      const u32 before = mine[digit], below = __popc(same & ((1u << lane) - 1u));
      __syncwarp();
      if (below == 0) mine[digit] = before + __popc(same);
      __syncwarp();
      rank[k] = before + below;
    }
    BARRIER;
    u32 total = 0, all;
    UNROLL for (i32 w = 0; w < 8; ++w) { const u32 c = counters[w * 256 + t]; counters[w * 256 + t] = total; total += c; }
    digit_starts[t] = total_before(total, all);
    BARRIER;
    UNROLL for (i32 k = 0; k < ITEMS; ++k) {
      const u32 digit = (u32)(key[k] >> shift) & 255u;
      rank[k] += digit_starts[digit] + mine[digit];
    }
  };
  LOCAL KEY exchange[ITEMS * 256];
  const i64 line = (i64)blockIdx.x, from = line / 1 * arg1 * 1 + line % 1;
  KEY key[ITEMS];
  u32 index[ITEMS], rank[ITEMS];
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    const i32 i = (warp * ITEMS + k) * 32 + lane;
    index[k] = i;
    key[k] = i < arg1 ? key_of(arg0[from + (i64)i * 1]) : (KEY)~(KEY)0;
  }
  UNROLL_BY(1) for (i32 pass = 0; pass < PASSES; ++pass) {
    rank_keys(key, rank, pass * 8);
    UNROLL for (i32 k = 0; k < ITEMS; ++k) exchange[rank[k]] = key[k];
    BARRIER;
    UNROLL for (i32 k = 0; k < ITEMS; ++k) key[k] = exchange[(warp * ITEMS + k) * 32 + lane];
    BARRIER;
    UNROLL for (i32 k = 0; k < ITEMS; ++k) ((u32*)exchange)[rank[k]] = index[k];
    BARRIER;
    UNROLL for (i32 k = 0; k < ITEMS; ++k) index[k] = ((u32*)exchange)[(warp * ITEMS + k) * 32 + lane];
  }
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    const i32 place = (warp * ITEMS + k) * 32 + lane;
    if (place < arg1) {
      const i64 at = (i64)place - arg2;
      if (at >= 0 && at < arg3) {
        const i64 into = (line / 1 * arg3 + at) * 1 + line % 1;
        arg4[into] = (i64)index[k];
        const auto element = is_ambiguous(key[k]) ? arg0[from + (i64)index[k] * 1] : element_of(key[k]);
        arg5[into] = element;
      }
    }
  }
}

KERNEL(256, 1, 1) kernel4(GLOBAL const u32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL const f32* RESTRICT arg2, GLOBAL f32* arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  STARTED;
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg7; j += (i64)group_count(0) * 256) {
    const i64 n = j / arg6, c = j % arg6 * 4;
    const u32 key = arg0[n];
    if (n > 0 && arg0[n - 1] == key) continue;
    GLOBAL f32* const place = arg3 + (i64)key * arg5 + c;
    VARRAY(f32, 4, r);
    VARRAY(f32, 4, u);
    f32 sum[4];
    VLOAD(f32, 4, r, place);
    UNROLL for (i32 l = 0; l < 4; ++l) sum[l] = r[l];
    for (i64 m = n, more = 1; more; m += 4) {
      i64 number[4];
      f32 next[4][4];
      UNROLL for (i32 k = 0; k < 4; ++k) number[k] = m + k < arg4 && arg0[m + k] == key ? arg1[m + k] : -1;
      UNROLL for (i32 k = 0; k < 4; ++k)
      if (number[k] >= 0) {
        VLOAD(f32, 4, u, arg2 + number[k] * arg5 + c);
        UNROLL for (i32 l = 0; l < 4; ++l) next[k][l] = u[l];
      }
      UNROLL for (i32 k = 0; k < 4; ++k)
      if (number[k] >= 0) UNROLL for (i32 l = 0; l < 4; ++l) sum[l] = sum[l] + next[k][l];
      more = number[3] >= 0;
    }
    UNROLL for (i32 l = 0; l < 4; ++l) r[l] = sum[l];
    VSTORE(f32, 4, r, place);
  }
}

// --- Tenstorrent
// workspace 524288 bytes
// kernel0<1x256x1 of 1x1x1>(input1, workspace+0, 256, 256, 1, 256, 256, 256)
// kernel1<1024x1x1 of 1x1x1>(input0, output0, 65536, 64)
// kernel2<256x1x1 of 1x1x1>(workspace+0, input0, output0, status+0, 256, 256, 256, 256, 256, 1)

KERNEL(1, 1, 1) kernel0(Global<const i64> arg0, Global<i64> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg6;
    i64 o1 = row * arg7;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      i64 x0 = arg0[o0];
      arg1[o1 + i] = x0;
    }
  }
}

KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

// calls resolve
KERNEL(1, 1, 1) kernel2(Global<const i64> arg0, Global<const f32> arg1, Global<f32> arg2, Global<i64> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9) {
  const i64 first = (i64)group_id(0) * arg9, last = first + arg9 < arg8 ? first + arg9 : arg8;
  for (i64 j = first; j < last; ++j) {
    i64 o0 = j;
    i64 o1 = j;
    for (i64 a = 0; a < arg6; ++a) {
      const i64 from = o0 + a * arg4;
      const i64 place = o1 + resolve(arg0[from], arg7, arg3) * arg5;
      const f32 sum = arg2[place] + arg1[from];
      arg2[place] = sum;
    }
  }
}
