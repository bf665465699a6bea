// cumsum(x, axis=1)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 2x128x1>(input0, output0, 8, 4, 8)

KERNEL(2, 128, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i64 arg2, i64 arg3, i64 arg4) {
  LOCAL f64 scanned[256];
  const i32 lane = local_id(0), row = local_id(1);
  const i64 s = group_id(1);
  const i32 begin = (i32)(s * arg4), end = (i32)((s + 1) * arg4 < arg2 ? (s + 1) * arg4 : arg2);
  for (i64 first = (i64)group_id(0) * 128; first < arg3; first += (i64)group_count(0) * 128) {
    const i32 active = first + row < arg3;
    const i64 line = active ? first + row : arg3 - 1;
    f64 carry = 0.0;
    const i64 from = line * arg2;
    for (i32 t = begin; t < end; t += 8) {
      const i32 c = t + lane * 4;
      VARRAY(f32, 4, p);
      f64 own[4];
      if (c < end) { VLOAD(f32, 4, p, arg0 + from + c); }
      UNROLL for (i32 l = 0; l < 4; ++l) own[l] = c + l < end ? (f64)p[l] : 0.0;
      UNROLL for (i32 l = 1; l < 4; ++l) own[l] = own[l - 1] + own[l];
      f64 value = own[3];
      f64 before = 0.0, all = value;
      const i32 mine = row * 2 + lane;
      for (i32 distance = 1; distance < 2; distance *= 2) {
        BARRIER;
        scanned[mine] = value;
        BARRIER;
        if (lane >= distance) value = scanned[mine - distance] + value;
      }
      BARRIER;
      scanned[mine] = value;
      BARRIER;
      if (lane > 0) before = scanned[mine - 1];
      all = scanned[row * 2 + 2 - 1];
      before = carry + before;
      carry = carry + all;
      VARRAY(f32, 4, q);
      UNROLL for (i32 l = 0; l < 4; ++l) {
        const f64 sum = before + own[l];
        q[l] = (f32)sum;
      }
      if (active && c < end) { VSTORE(f32, 4, q, arg1 + from + c); }
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 2x128x1>(input0, output0, 8, 4, 8)

KERNEL(2, 128, 1) kernel0(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i64 arg2, i64 arg3, i64 arg4) {
  STARTED;
  const i32 lane = local_id(0), row = local_id(1);
  const i64 s = group_id(1);
  const i32 begin = (i32)(s * arg4), end = (i32)((s + 1) * arg4 < arg2 ? (s + 1) * arg4 : arg2);
  for (i64 first = (i64)group_id(0) * 128; first < arg3; first += (i64)group_count(0) * 128) {
    const i32 active = first + row < arg3;
    const i64 line = active ? first + row : arg3 - 1;
    f64 carry = 0.0;
    const i64 from = line * arg2;
    for (i32 t = begin; t < end; t += 8) {
      const i32 c = t + lane * 4;
      VARRAY(f32, 4, p);
      f64 own[4];
      if (c < end) { VLOAD(f32, 4, p, arg0 + from + c); }
      UNROLL for (i32 l = 0; l < 4; ++l) own[l] = c + l < end ? (f64)p[l] : 0.0;
      UNROLL for (i32 l = 1; l < 4; ++l) own[l] = own[l - 1] + own[l];
      f64 value = own[3];
      f64 before = 0.0, all = value;
      { const f64 other = (f64)SHUFFLE_UP(value, 1); if (lane % 32 >= 1) value = other + value; }
      { const f64 other = (f64)SHUFFLE_UP(value, 1); if (lane % 32 > 0) before = other; }
      all = (f64)SHUFFLE_FROM(value, (row * 2 + lane) % 32 | 1);
      before = carry + before;
      carry = carry + all;
      VARRAY(f32, 4, q);
      UNROLL for (i32 l = 0; l < 4; ++l) {
        const f64 sum = before + own[l];
        q[l] = (f32)sum;
      }
      if (active && c < end) { VSTORE(f32, 4, q, arg1 + from + c); }
    }
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(input0, output0, 8, 1, 4, 8, 4, 4)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  const i64 first = (i64)group_id(0) * arg7, last = first + arg7 < arg6 ? first + arg7 : arg6;
  for (i64 j = first; j < last; ++j) {
    const i64 line = j % arg4, s = j / arg4, from = line / arg3 * arg2 * arg3 + line % arg3;
    const i64 begin = s * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
    f64 sum = 0.0;
    for (i64 a = begin; a < end; ++a) {
      const f64 value = (f64)arg0[from + a * arg3];
      sum = sum + value;
      arg1[from + a * arg3] = (f32)sum;
    }
  }
}
