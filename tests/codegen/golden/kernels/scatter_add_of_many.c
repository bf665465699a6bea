// scatter_add(square, places, square, axis=0)

// --- OpenCL
// workspace 1572864 bytes
// kernel0<64x1x1 of 256x1x1>(input0, output0, 65536)
// kernel1<256x1x1 of 256x1x1>(256, input1, 256, status+0, 256, workspace+0, 65536)
// kernel2<16x1x1 of 256x1x1>(workspace+0, workspace+524288, 256, 256, 256, 4096)
// kernel3<256x1x1 of 256x1x1>(workspace+0, workspace+524288, workspace+1048576, 256, 256, 256, 16, 65536)
// kernel3<256x1x1 of 256x1x1>(workspace+0, workspace+1048576, workspace+524288, 256, 256, 256, 32, 65536)
// kernel3<256x1x1 of 256x1x1>(workspace+0, workspace+524288, workspace+1048576, 256, 256, 256, 64, 65536)
// kernel3<256x1x1 of 256x1x1>(workspace+0, workspace+1048576, workspace+524288, 256, 256, 256, 128, 65536)
// kernel4<256x1x1 of 256x1x1>(workspace+0, workspace+524288, input0, output0, 256, 256, 65536)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2) {
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
KERNEL(256, 1, 1) kernel1(i64 arg0, GLOBAL const i64* RESTRICT arg1, i64 arg2, GLOBAL i64* arg3, i64 arg4, GLOBAL i64* RESTRICT arg5, i64 arg6) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    i64 i1 = j % arg0, r1 = j / arg0;
    i64 o0 = i1;
    i64 o1 = r1;
    const i32 a = (i32)o1;
    const i64 place = o0 + resolve(arg1[j], arg2, arg3) * arg4;
    arg5[j] = place;
  }
}

KERNEL(256, 1, 1) kernel2(GLOBAL const i64* RESTRICT arg0, GLOBAL i64* arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5) {
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

KERNEL(256, 1, 1) kernel3(GLOBAL const i64* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL i64* RESTRICT arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
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

KERNEL(256, 1, 1) kernel4(GLOBAL const i64* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL const f32* RESTRICT arg2, GLOBAL f32* arg3, i64 arg4, i64 arg5, i64 arg6) {
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
// workspace 0 bytes
// kernel0<32x1x1 of 256x1x1>(256, 256, 256, 256, 256, input1, input0, output0, input0, 256, 256, status+0)

// calls resolve
KERNEL(256, 1, 1) kernel0(i64 arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, GLOBAL const i64* RESTRICT arg5, GLOBAL const f32* RESTRICT arg6, GLOBAL f32* RESTRICT arg7, GLOBAL const f32* RESTRICT arg8, i64 arg9, i64 arg10, GLOBAL i64* arg11) {
  STARTED;
  enum { LINES = 8, LENGTH = 256, THREADS = 256, TOGETHER = 8 };
  extern __shared__ __align__(16) unsigned char memory[];
  f32* const all = (f32*)memory;
  const i32 t = threadIdx.x, lane = t & 31, places = (i32)arg0;
  const i64 first = (i64)blockIdx.x * LINES;
  const i32 lines = arg1 - first < LINES ? (i32)(arg1 - first) : LINES;
  UNROLL_BY(8) for (i32 k = t; k < lines * places; k += THREADS) {
    const i32 own = k % lines, place = k / lines;
    const i64 line = first + own;
    i64 o0 = line;
    i64 o1 = line;
    i64 o2 = line;
    
    all[own * LENGTH + place] = arg8[o2 + place * arg9];
  }
  BARRIER;
  if (t / 32 < lines) {
    const i64 line = first + t / 32;
    f32* const values = all + t / 32 * LENGTH;
    i64 o0 = line;
    i64 o1 = line;
    i64 o2 = line;
    
    i64 next_wanted[TOGETHER];
    f32 next_update[TOGETHER];
    const auto load = [&](const i32 begin) {
      UNROLL for (i32 k = 0; k < TOGETHER; ++k) {
        const i32 n = begin + k * 32 + lane;
        const i64 from = o0 + (i64)n * arg3;
        if (n < (i32)arg2) { next_wanted[k] = arg5[from]; next_update[k] = arg6[from]; }
      }
    };
    load(0);
    for (i32 begin = 0; begin < (i32)arg2; begin += 32 * TOGETHER) {
      i64 wanted[TOGETHER];
      f32 update[TOGETHER];
      UNROLL for (i32 k = 0; k < TOGETHER; ++k) { wanted[k] = next_wanted[k]; update[k] = next_update[k]; }
      load(begin + 32 * TOGETHER);
      UNROLL for (i32 k = 0; k < TOGETHER; ++k) {
        const i32 is_there = begin + k * 32 + lane < (i32)arg2;
        const i32 place = is_there ? (i32)resolve(wanted[k], arg10, arg11) : -1 - lane;
        const u32 same = __match_any_sync(0xffffffffu, place);
        const f32 value = is_there ? update[k] : (f32)0;
        const i32 turn = __popc(same & ((1u << lane) - 1u));
        for (i32 now = 0; __ballot_sync(0xffffffffu, turn >= now); ++now) {
          if (is_there && turn == now) values[place] = values[place] + value;
          __syncwarp();
        }
        __syncwarp();
      }
    }
  }
  BARRIER;
  UNROLL_BY(8) for (i32 k = t; k < lines * places; k += THREADS) {
    const i32 own = k % lines, place = k / lines;
    const i64 line = first + own;
    i64 o0 = line;
    i64 o1 = line;
    i64 o2 = line;
    
    arg7[o1 + place * arg4] = all[own * LENGTH + place];
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1024x1x1 of 1x1x1>(input0, output0, 65536, 64)
// kernel1<256x1x1 of 1x1x1>(input1, input0, output0, status+0, 256, 256, 256, 256, 256, 1)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i] = x0;
  }
}

// calls resolve
KERNEL(1, 1, 1) kernel1(Global<const i64> arg0, Global<const f32> arg1, Global<f32> arg2, Global<i64> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9) {
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
