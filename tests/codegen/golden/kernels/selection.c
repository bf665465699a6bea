// top_k(wide, k=5)

// --- OpenCL
// workspace 1024000 bytes
// kernel0<16x1x1 of 256x1x1>(input0, workspace+0, 1000, 1, 64, 4032)
// kernel1<250x1x1 of 256x1x1>(input0, workspace+0, workspace+512000, 1000, 1, 64, 16, 64000)
// kernel1<250x1x1 of 256x1x1>(input0, workspace+512000, workspace+0, 1000, 1, 64, 32, 64000)
// kernel1<250x1x1 of 256x1x1>(input0, workspace+0, workspace+512000, 1000, 1, 64, 64, 64000)
// kernel1<250x1x1 of 256x1x1>(input0, workspace+512000, workspace+0, 1000, 1, 64, 128, 64000)
// kernel1<250x1x1 of 256x1x1>(input0, workspace+0, workspace+512000, 1000, 1, 64, 256, 64000)
// kernel1<250x1x1 of 256x1x1>(input0, workspace+512000, workspace+0, 1000, 1, 64, 512, 64000)
// kernel2<1x2x1 of 8x32x1>(workspace+0, workspace+512000, 5, 64, 1000, 5)
// kernel3<2x1x1 of 256x1x1>(input0, workspace+512000, output0, status+0, 5, 1000, 1000, 1, 320)
// kernel4<1x1x1 of 256x1x1>(workspace+512000, output1, 320)

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

KERNEL(8, 32, 1) kernel2(GLOBAL const i64* RESTRICT arg0, GLOBAL i64* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5) {
  for (i32 row = (i32)group_id(1) * 32 + local_id(1); row < arg3; row += (i32)group_count(1) * 32) {
    i32 o0 = row * arg4;
    i32 o1 = row * arg5;
    for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 1; i < arg2; i = arg2) {
      i64 x0 = arg0[o0 + i];
      arg1[o1 + i] = x0;
    }
  }
}

// calls resolve
KERNEL(256, 1, 1) kernel3(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg8; j += (i64)group_count(0) * 256) {
    i64 i1 = j % arg4, r1 = j / arg4;
    i64 o0 = r1 * arg5;
    const i64 from = o0 + resolve(arg1[j], arg6, arg3) * arg7;
    arg2[j] = arg0[from];
  }
}

KERNEL(256, 1, 1) kernel4(GLOBAL const i64* RESTRICT arg0, GLOBAL i64* RESTRICT arg1, i32 arg2) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 256 + local_id(0)) * 2; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 2;
    VARRAY(i64, 2, p0);
    if (whole) { VLOAD(i64, 2, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 2; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(i64, 2, q0);
    UNROLL for (i32 l = 0; l < 2; ++l) {
      i64 x0 = p0[l];
      q0[l] = x0;
    }
    if (whole) { VSTORE(i64, 2, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 2; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<64x1x1 of 256x1x1>(input0, 1000, 0, 5, output1, output0)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i64 arg1, i64 arg2, i64 arg3, GLOBAL i64* RESTRICT arg4, GLOBAL f32* RESTRICT arg5) {
  STARTED;
  typedef u32 KEY;
  enum { ITEMS = 4, PASSES = 4 };
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
        arg4[into] = (i64)index[k];
        const auto element = is_ambiguous(key[k]) ? arg0[from + (i64)index[k] * 1] : element_of(key[k]);
        arg5[into] = element;
      }
    }
  }
}

// --- Tenstorrent
// workspace 1024000 bytes
// kernel0<2016x1x1 of 1x1x1>(input0, workspace+0, 1000, 1, 64, 4032, 2)
// kernel1<2000x1x1 of 1x1x1>(input0, workspace+0, workspace+512000, 1000, 1, 64, 16, 64000, 32)
// kernel1<2000x1x1 of 1x1x1>(input0, workspace+512000, workspace+0, 1000, 1, 64, 32, 64000, 32)
// kernel1<2000x1x1 of 1x1x1>(input0, workspace+0, workspace+512000, 1000, 1, 64, 64, 64000, 32)
// kernel1<2000x1x1 of 1x1x1>(input0, workspace+512000, workspace+0, 1000, 1, 64, 128, 64000, 32)
// kernel1<2000x1x1 of 1x1x1>(input0, workspace+0, workspace+512000, 1000, 1, 64, 256, 64000, 32)
// kernel1<2000x1x1 of 1x1x1>(input0, workspace+512000, workspace+0, 1000, 1, 64, 512, 64000, 32)
// kernel2<1x10x1 of 1x1x1>(workspace+0, workspace+512000, 5, 64, 7, 5, 1000, 5)
// kernel3<10x1x1 of 1x1x1>(input0, workspace+512000, output0, status+0, 5, 1000, 1000, 1, 320, 32)
// kernel4<5x1x1 of 1x1x1>(workspace+512000, output1, 320, 64)

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

KERNEL(1, 1, 1) kernel2(Global<const i64> arg0, Global<i64> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg6;
    i64 o1 = row * arg7;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      i64 x0 = arg0[o0 + i];
      arg1[o1 + i] = x0;
    }
  }
}

// calls resolve
KERNEL(1, 1, 1) kernel3(Global<const f32> arg0, Global<const i64> arg1, Global<f32> arg2, Global<i64> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9) {
  const i64 first = (i64)group_id(0) * arg9, last = first + arg9 < arg8 ? first + arg9 : arg8;
  for (i64 j = first; j < last; ++j) {
    i64 i1 = j % arg4, r1 = j / arg4;
    i64 o0 = r1 * arg5;
    const i64 from = o0 + resolve(arg1[j], arg6, arg3) * arg7;
    arg2[j] = arg0[from];
  }
}

KERNEL(1, 1, 1) kernel4(Global<const i64> arg0, Global<i64> arg1, i64 arg2, i64 arg3) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    i64 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}
