// top_k(line, k=5)

// --- OpenCL
// workspace 268435456 bytes
// kernel0<4096x1x1 of 256x1x1>(input0, workspace+0, 16777216, 1, 1, 1048576)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 16, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 32, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 64, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 128, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 256, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 512, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 1024, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 2048, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 4096, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 8192, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 16384, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 32768, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 65536, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 131072, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 262144, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 524288, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 1048576, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 2097152, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 4194304, 16777216)
// kernel1<65536x1x1 of 256x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 8388608, 16777216)
// kernel2<1x1x1 of 256x1x1>(input0, workspace+0, output0, status+0, 16777216, 1, 5)
// kernel3<1x1x1 of 8x1x1>(workspace+0, output1, 5)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL i64* arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg5; j += (i64)group_count(0) * 256) {
    const i64 line = j % arg4, begin = j / arg4 * 16, from = line / arg3 * arg2 * arg3 + line % arg3;
    const i64 end = begin + 16 < arg2 ? begin + 16 : arg2;
    for (i64 i = begin; i < end; ++i) {
      const f32 a = arg0[from + i * arg3];
      i64 place = i;
      for (; place > begin; --place) {
        const i64 k = arg1[from + (place - 1) * arg3];
        const f32 b = arg0[from + k * arg3];
        if (!(a == a ? (b != b || a > b || (a == b && i < k)) : (b != b && i < k))) break;
        arg1[from + place * arg3] = k;
      }
      arg1[from + place * arg3] = i;
    }
  }
}

KERNEL(256, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL i64* RESTRICT arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg7; j += (i64)group_count(0) * 256) {
    const i64 line = j % arg5, place = j / arg5, from = line / arg4 * arg3 * arg4 + line % arg4;
    const i64 i = arg1[from + place * arg4];
    const f32 a = arg0[from + i * arg4];
    const i64 mine = place / arg6, pair = mine / 2 * 2 * arg6, sibling = (mine ^ 1) * arg6;
    i64 low = sibling < arg3 ? sibling : arg3;
    const i64 start = low;
    i64 high = sibling + arg6 < arg3 ? sibling + arg6 : arg3;
    while (low < high) {
      const i64 middle = (low + high) / 2, k = arg1[from + middle * arg4];
      const f32 b = arg0[from + k * arg4];
      if ((a == a ? (b != b || a > b || (a == b && i < k)) : (b != b && i < k))) high = middle; else low = middle + 1;
    }
    arg2[from + (pair + place - mine * arg6 + low - start) * arg4] = i;
  }
}

// calls resolve
KERNEL(256, 1, 1) kernel2(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i64 arg5, i64 arg6) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    i64 o0 = 0;
    const i64 from = o0 + resolve(arg1[j], arg4, arg3) * arg5;
    arg2[j] = arg0[from];
  }
}

KERNEL(8, 1, 1) kernel3(GLOBAL const i64* RESTRICT arg0, GLOBAL i64* RESTRICT arg1, i32 arg2) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 1; i < arg2; i = arg2) {
    i64 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

// --- CUDA
// workspace 16384 bytes
// kernel0<264x1x1 of 256x1x1>(input0, 0, 5, 16777216, 264, workspace+0, workspace+10752)
// kernel1<1x1x1 of 256x1x1>(workspace+10752, 1320, 0, 5, workspace+0, output1, output0)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, GLOBAL i64* RESTRICT arg5, GLOBAL f32* RESTRICT arg6) {
  STARTED;
  typedef u32 KEY;
  enum { ITEMS = 1, BITS = 32 };
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
  const auto key_of = [](const f32 v) -> u32 {
    u32 u = v == 0 ? (u32)0 : AS_U32(v);
    u ^= u & 0x80000000u ? 0xffffffffu : 0x80000000u;
    return v != v ? (u32)0xffffffffu : (u32)(u ^ 0xffffffffu);
  };
  const auto is_ambiguous = [](const u32 k) -> bool { return k == 0xffffffffu || k == (u32)(0x80000000u ^ 0xffffffffu); };
  const auto element_of = [](const u32 k) -> f32 {
    const u32 u = k ^ 0xffffffffu;
    return AS_F32(u & 0x80000000u ? u ^ 0x80000000u : u ^ 0xffffffffu);
  };
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
  const i64 line = (i64)blockIdx.x, part = line % arg4, start = arg3 * part / arg4;
  const i64 extent = arg3 * (part + 1) / arg4 - start, from = line / arg4 * arg3 + start;
  enum { RADIX = 11, BINS = 1 << RADIX };
  LOCAL u32 bins[BINS];
  LOCAL u32 found_bin, found_before;
  const auto find = [&](const u32 rank, u32& less) -> KEY {
    KEY prefix = 0, mask = 0;
    u32 left = rank;
    UNROLL_BY(1) for (i32 high = BITS; high > 0; high -= RADIX) {
      const i32 low = high > RADIX ? high - RADIX : 0;
      const u32 digits = (1u << (high - low)) - 1u;
      BARRIER;
      UNROLL for (i32 i = 0; i < BINS / 256; ++i) bins[i * 256 + t] = 0;
      BARRIER;
      const i32 length = (i32)extent;
      for (i32 b = t; b < length; b += 256 * 8) {
        KEY key[8];
        UNROLL for (i32 k = 0; k < 8; ++k) key[k] = b + k * 256 < length ? key_of(arg0[from + (i64)(b + k * 256) * 1]) : (KEY)0;
        UNROLL for (i32 k = 0; k < 8; ++k)
        if (b + k * 256 < length && (key[k] & mask) == prefix) atomicAdd(bins + ((u32)(key[k] >> low) & digits), 1u);
      }
      BARRIER;
      u32 own = 0, all;
      UNROLL for (i32 i = 0; i < BINS / 256; ++i) own += bins[t * (BINS / 256) + i];
      u32 before = total_before(own, all);
      if (before <= left && left < before + own)
      for (i32 i = 0; i < BINS / 256; ++i) {
        const u32 c = bins[t * (BINS / 256) + i];
        if (before <= left && left < before + c) {
          found_bin = t * (BINS / 256) + i;
          found_before = before;
        }
        before += c;
      }
      BARRIER;
      prefix |= (KEY)found_bin << low;
      mask |= (KEY)digits << low;
      left -= found_before;
    }
    less = rank - left;
    return prefix;
  };
  const u32 last = (u32)arg1 + (u32)arg2 - 1u;
  u32 less_first = 0, less_last = 0;
  const KEY key_last = find(last, less_last);
  KEY key_first = key_last;
  if (arg2 == 1) less_first = less_last;
  else key_first = arg1 == 0 ? (KEY)0 : find((u32)arg1, less_first);
  const i32 from_start = arg1 == 0 && arg2 > 1;
  const i32 is_one = !from_start && key_first == key_last;
  const u32 skip = from_start ? 0u : (u32)arg1 - less_first, keep = last - less_last + 1u;
  LOCAL KEY selected_keys[ITEMS * 256];
  LOCAL u32 selected[ITEMS * 256];
  UNROLL for (i32 k = 0; k < ITEMS; ++k) selected_keys[k * 256 + t] = (KEY)~(KEY)0;
  u32 seen_first = 0, seen_last = 0, taken = 0;
  BARRIER;
  for (i64 b = 0; b < extent; b += 1024) {
    KEY key[4];
    u32 firsts = 0, lasts = 0, between = 0;
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i64 i = b + t * 4 + k;
      const i32 is_in = i < extent;
      key[k] = is_in ? key_of(arg0[from + i * 1]) : (KEY)0;
      const i32 first = is_in && !from_start && key[k] == key_first, last_one = is_in && key[k] == key_last;
      const i32 inside = is_in && key[k] < key_last && (from_start || key[k] > key_first);
      firsts |= (u32)first << k;
      lasts |= (u32)last_one << k;
      between |= (u32)inside << k;
    }
    if (!__syncthreads_or(firsts | lasts | between)) continue;
    u32 sum;
    const u32 before = total_before(__popc(firsts) << 16 | __popc(lasts), sum);
    u32 nth_first = seen_first + (before >> 16), nth_last = seen_last + (before & 0xffffu), wanted = between;
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i32 is_first = firsts >> k & 1u, is_last = lasts >> k & 1u;
      if (is_one) wanted |= (u32)(is_last && nth_last >= skip && nth_last < keep) << k;
      else wanted |= (u32)((is_first && nth_first >= skip) || (is_last && nth_last < keep)) << k;
      nth_first += is_first;
      nth_last += is_last;
    }
    seen_first += sum >> 16;
    seen_last += sum & 0xffffu;
    u32 place = taken + total_before(__popc(wanted), sum);
    taken += sum;
    UNROLL for (i32 k = 0; k < 4; ++k)
    if (wanted >> k & 1u) {
      selected_keys[place] = key[k];
      selected[place] = (u32)(b + t * 4 + k);
      ++place;
    }
  }
  BARRIER;
  KEY key[ITEMS];
  u32 index[ITEMS], rank[ITEMS];
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    key[k] = selected_keys[(warp * ITEMS + k) * 32 + lane];
    index[k] = selected[(warp * ITEMS + k) * 32 + lane];
  }
  UNROLL_BY(1) for (i32 pass = 0; pass < BITS / 8; ++pass) {
    rank_keys(key, rank, pass * 8);
    UNROLL for (i32 k = 0; k < ITEMS; ++k) { selected_keys[rank[k]] = key[k]; selected[rank[k]] = index[k]; }
    BARRIER;
    UNROLL for (i32 k = 0; k < ITEMS; ++k) {
      key[k] = selected_keys[(warp * ITEMS + k) * 32 + lane];
      index[k] = selected[(warp * ITEMS + k) * 32 + lane];
    }
  }
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    const i64 at = (warp * ITEMS + k) * 32 + lane;
    if (at < arg2) {
      const i64 into = (line / 1 * arg2 + at) * 1 + line % 1;
      arg5[into] = start + (i64)index[k];
      const auto element = is_ambiguous(key[k]) ? arg0[from + (i64)index[k] * 1] : element_of(key[k]);
      arg6[into] = element;
    }
  }
}

KERNEL(256, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, i64 arg1, i64 arg2, i64 arg3, GLOBAL const i64* RESTRICT arg4, GLOBAL i64* RESTRICT arg5, GLOBAL f32* RESTRICT arg6) {
  STARTED;
  typedef u32 KEY;
  enum { ITEMS = 8, PASSES = 4 };
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
  const auto key_of = [](const f32 v) -> u32 {
    u32 u = v == 0 ? (u32)0 : AS_U32(v);
    u ^= u & 0x80000000u ? 0xffffffffu : 0x80000000u;
    return v != v ? (u32)0xffffffffu : (u32)(u ^ 0xffffffffu);
  };
  const auto is_ambiguous = [](const u32 k) -> bool { return k == 0xffffffffu || k == (u32)(0x80000000u ^ 0xffffffffu); };
  const auto element_of = [](const u32 k) -> f32 {
    const u32 u = k ^ 0xffffffffu;
    return AS_F32(u & 0x80000000u ? u ^ 0x80000000u : u ^ 0xffffffffu);
  };
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
        arg5[into] = arg4[from + (i64)index[k]];
        const auto element = is_ambiguous(key[k]) ? arg0[from + (i64)index[k] * 1] : element_of(key[k]);
        arg6[into] = element;
      }
    }
  }
}

// --- Tenstorrent
// workspace 268435456 bytes
// kernel0<2048x1x1 of 1x1x1>(input0, workspace+0, 16777216, 1, 1, 1048576, 512)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 16, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 32, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 64, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 128, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 256, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 512, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 1024, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 2048, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 4096, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 8192, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 16384, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 32768, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 65536, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 131072, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 262144, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 524288, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 1048576, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 2097152, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+0, workspace+134217728, 16777216, 1, 1, 4194304, 16777216, 8192)
// kernel1<2048x1x1 of 1x1x1>(input0, workspace+134217728, workspace+0, 16777216, 1, 1, 8388608, 16777216, 8192)
// kernel2<1x1x1 of 1x1x1>(input0, workspace+0, output0, status+0, 16777216, 1, 5, 5)
// kernel3<1x1x1 of 1x1x1>(workspace+0, output1, 5, 64)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<i64> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6) {
  const i64 first = (i64)group_id(0) * arg6, last = first + arg6 < arg5 ? first + arg6 : arg5;
  for (i64 j = first; j < last; ++j) {
    const i64 line = j % arg4, begin = j / arg4 * 16, from = line / arg3 * arg2 * arg3 + line % arg3;
    const i64 end = begin + 16 < arg2 ? begin + 16 : arg2;
    for (i64 i = begin; i < end; ++i) {
      const f32 a = arg0[from + i * arg3];
      i64 place = i;
      for (; place > begin; --place) {
        const i64 k = arg1[from + (place - 1) * arg3];
        const f32 b = arg0[from + k * arg3];
        if (!(a == a ? (b != b || a > b || (a == b && i < k)) : (b != b && i < k))) break;
        arg1[from + place * arg3] = k;
      }
      arg1[from + place * arg3] = i;
    }
  }
}

KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<const i64> arg1, Global<i64> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  const i64 first = (i64)group_id(0) * arg8, last = first + arg8 < arg7 ? first + arg8 : arg7;
  for (i64 j = first; j < last; ++j) {
    const i64 line = j % arg5, place = j / arg5, from = line / arg4 * arg3 * arg4 + line % arg4;
    const i64 i = arg1[from + place * arg4];
    const f32 a = arg0[from + i * arg4];
    const i64 mine = place / arg6, pair = mine / 2 * 2 * arg6, sibling = (mine ^ 1) * arg6;
    i64 low = sibling < arg3 ? sibling : arg3;
    const i64 start = low;
    i64 high = sibling + arg6 < arg3 ? sibling + arg6 : arg3;
    while (low < high) {
      const i64 middle = (low + high) / 2, k = arg1[from + middle * arg4];
      const f32 b = arg0[from + k * arg4];
      if ((a == a ? (b != b || a > b || (a == b && i < k)) : (b != b && i < k))) high = middle; else low = middle + 1;
    }
    arg2[from + (pair + place - mine * arg6 + low - start) * arg4] = i;
  }
}

// calls resolve
KERNEL(1, 1, 1) kernel2(Global<const f32> arg0, Global<const i64> arg1, Global<f32> arg2, Global<i64> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  const i64 first = (i64)group_id(0) * arg7, last = first + arg7 < arg6 ? first + arg7 : arg6;
  for (i64 j = first; j < last; ++j) {
    i64 o0 = 0;
    const i64 from = o0 + resolve(arg1[j], arg4, arg3) * arg5;
    arg2[j] = arg0[from];
  }
}

KERNEL(1, 1, 1) kernel3(Global<const i64> arg0, Global<i64> arg1, i64 arg2, i64 arg3) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    i64 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}
