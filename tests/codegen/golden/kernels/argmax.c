// argmax(x, axis=1)

// --- OpenCL
// workspace 0 bytes
// kernel0<1x1x1 of 1x256x1>(input0, 8, 4, 8, output0)

KERNEL(1, 256, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i64 arg1, i64 arg2, i64 arg3, GLOBAL i64* RESTRICT arg4) {
  const i32 lane = local_id(0), row = local_id(1);
  const i64 s = group_id(1);
  const i32 begin = (i32)(s * arg3), end = (i32)((s + 1) * arg3 < arg1 ? (s + 1) * arg3 : arg1);
  for (i64 first = (i64)group_id(0) * 256; first < arg2; first += (i64)group_count(0) * 256) {
    const i32 active = first + row < arg2;
    const i64 line = active ? first + row : arg2 - 1;
    const i64 from = line * arg1;
    i32 place = begin + lane < end ? begin + lane : end - 1;
    f32 best = arg0[from + place];
    for (i32 c = begin + lane; c < end; c += 8) {
      if (c < end - 7) {
        f32 p[8];
        UNROLL for (i32 k = 0; k < 8; ++k) p[k] = arg0[from + c + k * 1];
        UNROLL for (i32 k = 0; k < 8; ++k) {
          const f32 value = p[k];
          { const i32 better = best == best && !(value <= best);
            best = better ? value : best;
            place = better ? c + k * 1 : place; }
        }
      } else for (i32 n = c; n < end; n += 1) {
        const f32 value = arg0[from + n];
        { const i32 better = best == best && !(value <= best);
          best = better ? value : best;
          place = better ? n : place; }
      }
    }
    if (active && lane == 0) {
      arg4[line] = (i64)place;
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<1x1x1 of 1x256x1>(input0, 8, 4, 8, output0)

KERNEL(1, 256, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i64 arg1, i64 arg2, i64 arg3, GLOBAL i64* RESTRICT arg4) {
  STARTED;
  const i32 lane = local_id(0), row = local_id(1);
  const i64 s = group_id(1);
  const i32 begin = (i32)(s * arg3), end = (i32)((s + 1) * arg3 < arg1 ? (s + 1) * arg3 : arg1);
  for (i64 first = (i64)group_id(0) * 256; first < arg2; first += (i64)group_count(0) * 256) {
    const i32 active = first + row < arg2;
    const i64 line = active ? first + row : arg2 - 1;
    const i64 from = line * arg1;
    i32 place = begin + lane < end ? begin + lane : end - 1;
    f32 best = arg0[from + place];
    for (i32 c = begin + lane; c < end; c += 8) {
      if (c < end - 7) {
        f32 p[8];
        UNROLL for (i32 k = 0; k < 8; ++k) p[k] = arg0[from + c + k * 1];
        UNROLL for (i32 k = 0; k < 8; ++k) {
          const f32 value = p[k];
          { const i32 better = best == best && !(value <= best);
            best = better ? value : best;
            place = better ? c + k * 1 : place; }
        }
      } else for (i32 n = c; n < end; n += 1) {
        const f32 value = arg0[from + n];
        { const i32 better = best == best && !(value <= best);
          best = better ? value : best;
          place = better ? n : place; }
      }
    }
    if (active && lane == 0) {
      arg4[line] = (i64)place;
    }
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<1x1x1 of 1x1x1>(input0, output0, 8, 1, 4, 4)

KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, Global<i64> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5) {
  const i64 first = (i64)group_id(0) * arg5, last = first + arg5 < arg4 ? first + arg5 : arg4;
  for (i64 j = first; j < last; ++j) {
    const i64 from = j / arg3 * arg2 * arg3 + j % arg3;
    f32 best = arg0[from];
    i64 place = 0;
    for (i64 a = 1; a < arg2; ++a) {
      const f32 value = arg0[from + a * arg3];
      const i32 better = best == best && (value != value || value > best);
      best = better ? value : best;
      place = better ? a : place;
    }
    arg1[j] = place;
  }
}
