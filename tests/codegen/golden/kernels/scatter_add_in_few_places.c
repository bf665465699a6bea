// scatter_add(square[0:4], broadcast_to(places[:, 0:1], [256, 256]), square, axis=0)

// --- OpenCL
// workspace 1572864 bytes
// kernel0<1x128x1 of 128x2x1>(input1, workspace+0, 256, 256, 256, 256)
// kernel1<1x1x1 of 256x1x1>(input0, output0, 1024)
// kernel2<256x1x1 of 256x1x1>(256, workspace+0, 4, status+0, 256, workspace+524288, 65536)
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
// workspace 32768 bytes
// kernel0<8x4x1 of 256x1x1>(4, 256, 256, 64, input1, 0, 256, input0, workspace+0, 4, status+0)
// kernel1<32x1x1 of 256x1x1>(1024, 4, workspace+0, input0, output0)

// calls resolve
KERNEL(256, 1, 1) kernel0(i64 arg0, i64 arg1, i64 arg2, i64 arg3, GLOBAL const i64* RESTRICT arg4, i64 arg5, i64 arg6, GLOBAL const f32* RESTRICT arg7, GLOBAL f64* RESTRICT arg8, i64 arg9, GLOBAL i64* arg10) {
  STARTED;
  enum { THREADS = 256, COLUMNS = 32, STREAMS = THREADS / COLUMNS, TOGETHER = 8, KIB = 4 };
  extern __shared__ __align__(16) unsigned char memory[];
  f32* const table = (f32*)memory + threadIdx.x;
  const i32 t = threadIdx.x, places = (i32)arg0;
  const i64 first = (i64)blockIdx.x * COLUMNS, column = first + t % COLUMNS;
  const i64 begin = (i64)blockIdx.y * arg3, end = begin + arg3 < arg2 ? begin + arg3 : arg2;
  for (i32 k = 0; k < places; ++k) table[k * THREADS] = (f32)0;
  if (column < arg1)
  for (i64 b = begin + t / COLUMNS; b < end; b += STREAMS * TOGETHER) {
    i64 wanted[TOGETHER];
    f32 update[TOGETHER];
    UNROLL for (i32 k = 0; k < TOGETHER; ++k) {
      const i64 n = b + k * STREAMS;
      if (n < end) { wanted[k] = arg4[arg5 + n * arg6]; update[k] = arg7[n * arg1 + column]; }
    }
    UNROLL for (i32 k = 0; k < TOGETHER; ++k)
    if (b + k * STREAMS < end) {
      f32* const place = table + (i32)resolve(wanted[k], arg9, arg10) * THREADS;
      *place = *place + update[k];
    }
  }
  BARRIER;
  const f32* const all = (f32*)memory;
  for (i32 k = t; k < places * COLUMNS; k += THREADS) {
    const i32 place = k / COLUMNS, c = k % COLUMNS;
    if (first + c >= arg1) continue;
    f64 sum = (f64)0;
    UNROLL_BY(8) for (i32 s = 0; s < STREAMS; ++s) { const f64 part = (f64)all[place * THREADS + s * COLUMNS + c]; sum = sum + part; }
    arg8[((i64)blockIdx.y * places + place) * arg1 + first + c] = sum;
  }
}

KERNEL(256, 1, 1) kernel1(i64 arg0, i64 arg1, GLOBAL const f64* RESTRICT arg2, GLOBAL const f32* RESTRICT arg3, GLOBAL f32* RESTRICT arg4) {
  STARTED;
  LOCAL f64 shared[256];
  const i32 t = threadIdx.x;
  const i64 j = (i64)blockIdx.x * 32 + t % 32;
  f64 sum = (f64)0;
  if (j < arg0)
  UNROLL_BY(8) for (i64 p = t / 32; p < arg1; p += 8) { const f64 part = arg2[p * arg0 + j]; sum = sum + part; }
  shared[t] = sum;
  BARRIER;
  if (t < 32 && j < arg0) {
    UNROLL for (i32 w = 1; w < 8; ++w) { const f64 part = shared[w * 32 + t]; sum = sum + part; }
    i64 o0 = j;
    
    const f64 part = (f64)arg3[o0];
    sum = sum + part;
    arg4[j] = (f32)sum;
  }
}

// --- Tenstorrent
// workspace 524288 bytes
// kernel0<1x256x1 of 1x1x1>(input1, workspace+0, 256, 256, 1, 256, 256, 256)
// kernel1<16x1x1 of 1x1x1>(input0, output0, 1024, 64)
// kernel2<256x1x1 of 1x1x1>(workspace+0, input0, output0, status+0, 256, 256, 256, 4, 256, 1)

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
