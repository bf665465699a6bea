// sort(line)

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
// kernel2<16384x1x1 of 256x1x1>(input0, workspace+0, output0, status+0, 16777216, 4194304, 1)

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
        if (!(a == a ? (b != b || a < b || (a == b && i < k)) : (b != b && i < k))) break;
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
      if ((a == a ? (b != b || a < b || (a == b && i < k)) : (b != b && i < k))) high = middle; else low = middle + 1;
    }
    arg2[from + (pair + place - mine * arg6 + low - start) * arg4] = i;
  }
}

// calls resolve
KERNEL(256, 1, 1) kernel2(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i32 arg5, i32 arg6) {
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg5) {
    i32 o0 = 0;
    VARRAY(i64, 4, w);
    VLOAD(i64, 2, w + 0, arg1 + j * 4 + 0);
    VLOAD(i64, 2, w + 2, arg1 + j * 4 + 2);
    VARRAY(f32, 4, r);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      r[l] = arg0[o0 + (i32)resolve(w[l], arg4, arg3) * arg6];
    }
    VSTORE(f32, 4, r, arg2 + j * 4);
  }
}

// --- CUDA
// workspace 272630784 bytes
// kernel0<4096x1x1 of 256x1x1>(16777216, 4096, 0, input0, workspace+268435456)
// kernel1<256x1x1 of 256x1x1>(workspace+268435456, workspace+272629760, 4096)
// kernel2<4096x1x1 of 256x1x1>(16777216, 4096, 0, input0, workspace+268435456, workspace+272629760, workspace+0, workspace+67108864)
// kernel3<4096x1x1 of 256x1x1>(16777216, 4096, 8, input0, workspace+0, workspace+268435456)
// kernel1<256x1x1 of 256x1x1>(workspace+268435456, workspace+272629760, 4096)
// kernel4<4096x1x1 of 256x1x1>(16777216, 4096, 8, input0, workspace+0, workspace+268435456, workspace+272629760, workspace+67108864, workspace+134217728, workspace+201326592)
// kernel3<4096x1x1 of 256x1x1>(16777216, 4096, 16, input0, workspace+134217728, workspace+268435456)
// kernel1<256x1x1 of 256x1x1>(workspace+268435456, workspace+272629760, 4096)
// kernel4<4096x1x1 of 256x1x1>(16777216, 4096, 16, input0, workspace+134217728, workspace+268435456, workspace+272629760, workspace+201326592, workspace+0, workspace+67108864)
// kernel3<4096x1x1 of 256x1x1>(16777216, 4096, 24, input0, workspace+0, workspace+268435456)
// kernel1<256x1x1 of 256x1x1>(workspace+268435456, workspace+272629760, 4096)
// kernel5<4096x1x1 of 256x1x1>(16777216, 4096, 24, input0, workspace+0, workspace+268435456, workspace+272629760, workspace+67108864, 0, 16777216, output0)

KERNEL(256, 1, 1) kernel0(i64 arg0, i64 arg1, i64 arg2, GLOBAL const f32* RESTRICT arg3, GLOBAL u32* arg4) {
  STARTED;
  typedef u32 KEY;
  enum { ITEMS = 16, TILE = 4096 };
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
    return v != v ? (u32)0xffffffffu : (u32)(u);
  };
  const auto is_ambiguous = [](const u32 k) -> bool { return k == 0xffffffffu || k == (u32)(0x80000000u); };
  const auto element_of = [](const u32 k) -> f32 {
    const u32 u = k;
    return AS_F32(u & 0x80000000u ? u ^ 0x80000000u : u ^ 0xffffffffu);
  };
  const i64 tile = (i64)blockIdx.x % arg1, line = (i64)blockIdx.x / arg1, begin = tile * TILE;
  const i64 from = line / 1 * arg0 * 1 + line % 1;
  LOCAL u32 found[8 * 256];
  UNROLL for (i32 w = 0; w < 8; ++w) found[w * 256 + t] = 0;
  BARRIER;
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    const i64 i = begin + k * 256 + t;
    if (i < arg0) atomicAdd(found + warp * 256 + ((u32)(key_of(arg3[from + i * 1]) >> arg2) & 255u), 1u);
  }
  BARRIER;
  u32 total = 0;
  UNROLL for (i32 w = 0; w < 8; ++w) total += found[w * 256 + t];
  arg4[(line * 256 + t) * arg1 + tile] = total;
}

KERNEL(256, 1, 1) kernel1(GLOBAL u32* arg0, GLOBAL u32* arg1, i64 arg2) {
  STARTED;
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
  const i64 segment = (i64)blockIdx.x, begin = segment * arg2;
  u32 carry = 0;
  for (i64 b = 0; b < arg2; b += 256) {
    const i64 i = b + t;
    const u32 value = i < arg2 ? arg0[begin + i] : 0u;
    u32 sum = 0, before;
    before = total_before(value, sum);
    if (i < arg2) arg0[begin + i] = carry + before;
    carry += sum;
  }
  if (t == 0) arg1[segment] = carry;
}

KERNEL_LEAST(256, 1, 1, 3) kernel2(i64 arg0, i64 arg1, i64 arg2, GLOBAL const f32* RESTRICT arg3, GLOBAL const u32* arg4, GLOBAL const u32* arg5, GLOBAL u32* arg6, GLOBAL u32* arg7) {
  STARTED;
  typedef u32 KEY;
  enum { ITEMS = 16, TILE = 4096 };
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
    return v != v ? (u32)0xffffffffu : (u32)(u);
  };
  const auto is_ambiguous = [](const u32 k) -> bool { return k == 0xffffffffu || k == (u32)(0x80000000u); };
  const auto element_of = [](const u32 k) -> f32 {
    const u32 u = k;
    return AS_F32(u & 0x80000000u ? u ^ 0x80000000u : u ^ 0xffffffffu);
  };
  const i64 tile = (i64)blockIdx.x % arg1, line = (i64)blockIdx.x / arg1, begin = tile * TILE;
  const i64 from = line / 1 * arg0 * 1 + line % 1;
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
  LOCAL KEY exchange[TILE];
  LOCAL u32 bases[256];
  KEY key[ITEMS];
  u32 rank[ITEMS], dest[ITEMS];
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    const i64 i = begin + (warp * ITEMS + k) * 32 + lane;
    key[k] = i < arg0 ? (KEY)key_of(arg3[from + i * 1]) : (KEY)~(KEY)0;
  }
  rank_keys(key, rank, (i32)arg2);
  u32 all;
  const u32 start = total_before(arg5[line * 256 + t], all);
  bases[t] = start + arg4[(line * 256 + t) * arg1 + tile] - digit_starts[t];
  UNROLL for (i32 k = 0; k < ITEMS; ++k) exchange[rank[k]] = key[k];
  BARRIER;
  const i32 valid = arg0 - begin < TILE ? (i32)(arg0 - begin) : TILE;
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    key[k] = exchange[k * 256 + t];
    dest[k] = bases[(u32)(key[k] >> arg2) & 255u] + k * 256 + t;
  }
  BARRIER;
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    const i64 i = begin + (warp * ITEMS + k) * 32 + lane;
    ((u32*)exchange)[rank[k]] = i < arg0 ? (u32)i : 0u;
  }
  BARRIER;
  UNROLL for (i32 k = 0; k < ITEMS; ++k)
  if (k * 256 + t < valid) {
    const u32 index = ((u32*)exchange)[k * 256 + t];
    arg6[line * arg0 + dest[k]] = key[k];
    arg7[line * arg0 + dest[k]] = index;
  }
}

KERNEL(256, 1, 1) kernel3(i64 arg0, i64 arg1, i64 arg2, GLOBAL const f32* RESTRICT arg3, GLOBAL const u32* arg4, GLOBAL u32* arg5) {
  STARTED;
  typedef u32 KEY;
  enum { ITEMS = 16, TILE = 4096 };
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
    return v != v ? (u32)0xffffffffu : (u32)(u);
  };
  const auto is_ambiguous = [](const u32 k) -> bool { return k == 0xffffffffu || k == (u32)(0x80000000u); };
  const auto element_of = [](const u32 k) -> f32 {
    const u32 u = k;
    return AS_F32(u & 0x80000000u ? u ^ 0x80000000u : u ^ 0xffffffffu);
  };
  const i64 tile = (i64)blockIdx.x % arg1, line = (i64)blockIdx.x / arg1, begin = tile * TILE;
  const i64 from = line / 1 * arg0 * 1 + line % 1;
  LOCAL u32 found[8 * 256];
  UNROLL for (i32 w = 0; w < 8; ++w) found[w * 256 + t] = 0;
  BARRIER;
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    const i64 i = begin + k * 256 + t;
    if (i < arg0) atomicAdd(found + warp * 256 + ((u32)(arg4[line * arg0 + i] >> arg2) & 255u), 1u);
  }
  BARRIER;
  u32 total = 0;
  UNROLL for (i32 w = 0; w < 8; ++w) total += found[w * 256 + t];
  arg5[(line * 256 + t) * arg1 + tile] = total;
}

KERNEL_LEAST(256, 1, 1, 3) kernel4(i64 arg0, i64 arg1, i64 arg2, GLOBAL const f32* RESTRICT arg3, GLOBAL const u32* arg4, GLOBAL const u32* arg5, GLOBAL const u32* arg6, GLOBAL const u32* arg7, GLOBAL u32* arg8, GLOBAL u32* arg9) {
  STARTED;
  typedef u32 KEY;
  enum { ITEMS = 16, TILE = 4096 };
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
    return v != v ? (u32)0xffffffffu : (u32)(u);
  };
  const auto is_ambiguous = [](const u32 k) -> bool { return k == 0xffffffffu || k == (u32)(0x80000000u); };
  const auto element_of = [](const u32 k) -> f32 {
    const u32 u = k;
    return AS_F32(u & 0x80000000u ? u ^ 0x80000000u : u ^ 0xffffffffu);
  };
  const i64 tile = (i64)blockIdx.x % arg1, line = (i64)blockIdx.x / arg1, begin = tile * TILE;
  const i64 from = line / 1 * arg0 * 1 + line % 1;
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
  LOCAL KEY exchange[TILE];
  LOCAL u32 bases[256];
  KEY key[ITEMS];
  u32 rank[ITEMS], dest[ITEMS];
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    const i64 i = begin + (warp * ITEMS + k) * 32 + lane;
    key[k] = i < arg0 ? (KEY)arg4[line * arg0 + i] : (KEY)~(KEY)0;
  }
  rank_keys(key, rank, (i32)arg2);
  u32 all;
  const u32 start = total_before(arg6[line * 256 + t], all);
  bases[t] = start + arg5[(line * 256 + t) * arg1 + tile] - digit_starts[t];
  UNROLL for (i32 k = 0; k < ITEMS; ++k) exchange[rank[k]] = key[k];
  BARRIER;
  const i32 valid = arg0 - begin < TILE ? (i32)(arg0 - begin) : TILE;
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    key[k] = exchange[k * 256 + t];
    dest[k] = bases[(u32)(key[k] >> arg2) & 255u] + k * 256 + t;
  }
  BARRIER;
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    const i64 i = begin + (warp * ITEMS + k) * 32 + lane;
    ((u32*)exchange)[rank[k]] = i < arg0 ? arg7[line * arg0 + i] : 0u;
  }
  BARRIER;
  UNROLL for (i32 k = 0; k < ITEMS; ++k)
  if (k * 256 + t < valid) {
    const u32 index = ((u32*)exchange)[k * 256 + t];
    arg8[line * arg0 + dest[k]] = key[k];
    arg9[line * arg0 + dest[k]] = index;
  }
}

KERNEL_LEAST(256, 1, 1, 3) kernel5(i64 arg0, i64 arg1, i64 arg2, GLOBAL const f32* RESTRICT arg3, GLOBAL const u32* arg4, GLOBAL const u32* arg5, GLOBAL const u32* arg6, GLOBAL const u32* arg7, i64 arg8, i64 arg9, GLOBAL f32* RESTRICT arg10) {
  STARTED;
  typedef u32 KEY;
  enum { ITEMS = 16, TILE = 4096 };
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
    return v != v ? (u32)0xffffffffu : (u32)(u);
  };
  const auto is_ambiguous = [](const u32 k) -> bool { return k == 0xffffffffu || k == (u32)(0x80000000u); };
  const auto element_of = [](const u32 k) -> f32 {
    const u32 u = k;
    return AS_F32(u & 0x80000000u ? u ^ 0x80000000u : u ^ 0xffffffffu);
  };
  const i64 tile = (i64)blockIdx.x % arg1, line = (i64)blockIdx.x / arg1, begin = tile * TILE;
  const i64 from = line / 1 * arg0 * 1 + line % 1;
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
  LOCAL KEY exchange[TILE];
  LOCAL u32 bases[256];
  KEY key[ITEMS];
  u32 rank[ITEMS], dest[ITEMS];
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    const i64 i = begin + (warp * ITEMS + k) * 32 + lane;
    key[k] = i < arg0 ? (KEY)arg4[line * arg0 + i] : (KEY)~(KEY)0;
  }
  rank_keys(key, rank, (i32)arg2);
  u32 all;
  const u32 start = total_before(arg6[line * 256 + t], all);
  bases[t] = start + arg5[(line * 256 + t) * arg1 + tile] - digit_starts[t];
  UNROLL for (i32 k = 0; k < ITEMS; ++k) exchange[rank[k]] = key[k];
  BARRIER;
  const i32 valid = arg0 - begin < TILE ? (i32)(arg0 - begin) : TILE;
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    key[k] = exchange[k * 256 + t];
    dest[k] = bases[(u32)(key[k] >> arg2) & 255u] + k * 256 + t;
  }
  BARRIER;
  UNROLL for (i32 k = 0; k < ITEMS; ++k) {
    const i64 i = begin + (warp * ITEMS + k) * 32 + lane;
    ((u32*)exchange)[rank[k]] = i < arg0 ? arg7[line * arg0 + i] : 0u;
  }
  BARRIER;
  UNROLL for (i32 k = 0; k < ITEMS; ++k)
  if (k * 256 + t < valid) {
    const u32 index = ((u32*)exchange)[k * 256 + t];
    const i64 at = (i64)dest[k] - arg8;
    if (at >= 0 && at < arg9) {
      const i64 into = (line / 1 * arg9 + at) * 1 + line % 1;
      const auto element = is_ambiguous(key[k]) ? arg3[from + (i64)index * 1] : element_of(key[k]);
      arg10[into] = element;
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
// kernel2<2048x1x1 of 1x1x1>(input0, workspace+0, output0, status+0, 16777216, 1, 16777216, 8192)

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
        if (!(a == a ? (b != b || a < b || (a == b && i < k)) : (b != b && i < k))) break;
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
      if ((a == a ? (b != b || a < b || (a == b && i < k)) : (b != b && i < k))) high = middle; else low = middle + 1;
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
