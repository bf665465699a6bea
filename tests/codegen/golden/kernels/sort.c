// sort(x, axis=1)

// --- OpenCL
// workspace 512 bytes
// kernel0<1x1x1 of 256x1x1>(input0, workspace+0, 8, 1, 4, 4)
// kernel1<1x1x1 of 256x1x1>(input0, workspace+0, output0, status+0, 8, 8, 2, 8, 1)

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

// calls resolve
KERNEL(256, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8) {
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg5) {
    i32 i1 = (u32)j % (u32)arg6, r1 = (u32)j / (u32)arg6;
    i32 o0 = r1 * arg7;
    VARRAY(i64, 4, w);
    VLOAD(i64, 2, w + 0, arg1 + j * 4 + 0);
    VLOAD(i64, 2, w + 2, arg1 + j * 4 + 2);
    VARRAY(f32, 4, r);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      r[l] = arg0[o0 + (i32)resolve(w[l], arg4, arg3) * arg8];
    }
    VSTORE(f32, 4, r, arg2 + j * 4);
  }
}

// --- CUDA
// workspace 512 bytes
// kernel0<1x1x1 of 256x1x1>(input0, workspace+0, 8, 1, 4, 4)
// kernel1<1x1x1 of 256x1x1>(input0, workspace+0, output0, status+0, 8, 8, 2, 8, 1)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL i64* arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5) {
  STARTED;
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

// calls resolve
KERNEL(256, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8) {
  STARTED;
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg5) {
    i32 i1 = (u32)j % (u32)arg6, r1 = (u32)j / (u32)arg6;
    i32 o0 = r1 * arg7;
    VARRAY(i64, 4, w);
    VLOAD(i64, 2, w + 0, arg1 + j * 4 + 0);
    VLOAD(i64, 2, w + 2, arg1 + j * 4 + 2);
    VARRAY(f32, 4, r);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      r[l] = arg0[o0 + (i32)resolve(w[l], arg4, arg3) * arg8];
    }
    VSTORE(f32, 4, r, arg2 + j * 4);
  }
}

// --- Tenstorrent
// workspace 512 bytes
// kernel0<4x1x1 of 1x1x1>(input0, workspace+0, 8, 1, 4, 4, 1)
// kernel1<1x1x1 of 1x1x1>(input0, workspace+0, output0, status+0, 8, 8, 8, 1, 32, 32)

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

// calls resolve
KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<const i64> arg1, Global<f32> arg2, Global<i64> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9) {
  const i64 first = (i64)group_id(0) * arg9, last = first + arg9 < arg8 ? first + arg9 : arg8;
  for (i64 j = first; j < last; ++j) {
    i64 i1 = j % arg4, r1 = j / arg4;
    i64 o0 = r1 * arg5;
    const i64 from = o0 + resolve(arg1[j], arg6, arg3) * arg7;
    arg2[j] = arg0[from];
  }
}
