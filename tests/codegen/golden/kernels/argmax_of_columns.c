// argmax(square, axis=0)

// --- OpenCL
// workspace 6144 bytes
// kernel0<8x1x2 of 32x8x1>(input0, 256, 256, 1, 128, 2, workspace+4096, workspace+0)
// kernel1<8x1x1 of 32x8x1>(workspace+4096, workspace+0, 2, 256, 1, 2, output0)

KERNEL(32, 8, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, GLOBAL f32* RESTRICT arg6, GLOBAL i64* RESTRICT arg7) {
  LOCAL f32 values[256];
  LOCAL i32 places[256];
  const i32 lane = local_id(0), line = local_id(1), mine = line * 32 + lane;
  const i32 s = group_id(2), begin = s * arg4, end = begin + arg4 < arg1 ? begin + arg4 : arg1;
  const i32 column = (i32)group_id(0) * 32 + lane, i = column < arg2 ? column : arg2 - 1;
  for (i32 o = group_id(1); o < arg3; o += group_count(1)) {
    const i32 from = o * arg1 * arg2 + i;
    i32 place = begin + line < end ? begin + line : end - 1;
    f32 best = arg0[from + place * arg2];
    for (i32 b = begin + line; b < end; b += 64) {
      if (b < end - 56) {
        f32 p[8];
        UNROLL for (i32 k = 0; k < 8; ++k) p[k] = arg0[from + (b + k * 8) * arg2];
        UNROLL for (i32 k = 0; k < 8; ++k) {
          const f32 value = p[k];
          { const i32 better = best == best && !(value <= best);
            best = better ? value : best;
            place = better ? b + k * 8 : place; }
        }
      } else for (i32 n = b; n < end; n += 8) {
        const f32 value = arg0[from + n * arg2];
        { const i32 better = best == best && !(value <= best);
          best = better ? value : best;
          place = better ? n : place; }
      }
    }
    BARRIER;
    values[mine] = best;
    places[mine] = place;
    BARRIER;
    for (i32 distance = 4; distance > 0; distance /= 2) {
      if (line < distance) {
        const f32 other = values[mine + distance * 32];
        const i32 other_place = places[mine + distance * 32];
        { const i32 better = other != other ? best == best || other_place < place : best == best && (other > best || (other == best && other_place < place));
          best = better ? other : best;
          place = better ? other_place : place; }
        values[mine] = best;
        places[mine] = place;
      }
      BARRIER;
    }
    if (line == 0 && column < arg2) {
      const i32 into = (o * arg5 + s) * arg2 + i;
      arg6[into] = best;
      arg7[into] = (i64)(place);
    }
  }
}

KERNEL(32, 8, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, GLOBAL i64* RESTRICT arg6) {
  LOCAL f32 values[256];
  LOCAL i32 places[256];
  const i32 lane = local_id(0), line = local_id(1), mine = line * 32 + lane;
  const i32 s = group_id(2), begin = s * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  const i32 column = (i32)group_id(0) * 32 + lane, i = column < arg3 ? column : arg3 - 1;
  for (i32 o = group_id(1); o < arg4; o += group_count(1)) {
    const i32 from = o * arg2 * arg3 + i;
    i32 place = begin + line < end ? begin + line : end - 1;
    f32 best = arg0[from + place * arg3];
    for (i32 b = begin + line; b < end; b += 64) {
      if (b < end - 56) {
        f32 p[8];
        UNROLL for (i32 k = 0; k < 8; ++k) p[k] = arg0[from + (b + k * 8) * arg3];
        UNROLL for (i32 k = 0; k < 8; ++k) {
          const f32 value = p[k];
          { const i32 better = best == best && !(value <= best);
            best = better ? value : best;
            place = better ? b + k * 8 : place; }
        }
      } else for (i32 n = b; n < end; n += 8) {
        const f32 value = arg0[from + n * arg3];
        { const i32 better = best == best && !(value <= best);
          best = better ? value : best;
          place = better ? n : place; }
      }
    }
    BARRIER;
    values[mine] = best;
    places[mine] = place;
    BARRIER;
    for (i32 distance = 4; distance > 0; distance /= 2) {
      if (line < distance) {
        const f32 other = values[mine + distance * 32];
        const i32 other_place = places[mine + distance * 32];
        { const i32 better = other != other ? best == best || other_place < place : best == best && (other > best || (other == best && other_place < place));
          best = better ? other : best;
          place = better ? other_place : place; }
        values[mine] = best;
        places[mine] = place;
      }
      BARRIER;
    }
    if (line == 0 && column < arg3) {
      arg6[o * arg3 + i] = arg1[from + (place) * arg3];
    }
  }
}

// --- CUDA
// workspace 12288 bytes
// kernel0<4x1x4 of 64x4x1>(input0, 256, 256, 1, 64, 4, workspace+8192, workspace+0)
// kernel1<4x1x1 of 64x4x1>(workspace+8192, workspace+0, 4, 256, 1, 4, output0)

KERNEL(64, 4, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, GLOBAL f32* RESTRICT arg6, GLOBAL i64* RESTRICT arg7) {
  STARTED;
  LOCAL f32 values[256];
  LOCAL i32 places[256];
  const i32 lane = local_id(0), line = local_id(1), mine = line * 64 + lane;
  const i32 s = group_id(2), begin = s * arg4, end = begin + arg4 < arg1 ? begin + arg4 : arg1;
  const i32 column = (i32)group_id(0) * 64 + lane, i = column < arg2 ? column : arg2 - 1;
  for (i32 o = group_id(1); o < arg3; o += group_count(1)) {
    const i32 from = o * arg1 * arg2 + i;
    i32 place = begin + line < end ? begin + line : end - 1;
    f32 best = arg0[from + place * arg2];
    for (i32 b = begin + line; b < end; b += 32) {
      if (b < end - 28) {
        f32 p[8];
        UNROLL for (i32 k = 0; k < 8; ++k) p[k] = arg0[from + (b + k * 4) * arg2];
        UNROLL for (i32 k = 0; k < 8; ++k) {
          const f32 value = p[k];
          { const i32 better = best == best && !(value <= best);
            best = better ? value : best;
            place = better ? b + k * 4 : place; }
        }
      } else for (i32 n = b; n < end; n += 4) {
        const f32 value = arg0[from + n * arg2];
        { const i32 better = best == best && !(value <= best);
          best = better ? value : best;
          place = better ? n : place; }
      }
    }
    BARRIER;
    values[mine] = best;
    places[mine] = place;
    BARRIER;
    for (i32 distance = 2; distance > 0; distance /= 2) {
      if (line < distance) {
        const f32 other = values[mine + distance * 64];
        const i32 other_place = places[mine + distance * 64];
        { const i32 better = other != other ? best == best || other_place < place : best == best && (other > best || (other == best && other_place < place));
          best = better ? other : best;
          place = better ? other_place : place; }
        values[mine] = best;
        places[mine] = place;
      }
      BARRIER;
    }
    if (line == 0 && column < arg2) {
      const i32 into = (o * arg5 + s) * arg2 + i;
      arg6[into] = best;
      arg7[into] = (i64)(place);
    }
  }
}

KERNEL(64, 4, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, GLOBAL i64* RESTRICT arg6) {
  STARTED;
  LOCAL f32 values[256];
  LOCAL i32 places[256];
  const i32 lane = local_id(0), line = local_id(1), mine = line * 64 + lane;
  const i32 s = group_id(2), begin = s * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  const i32 column = (i32)group_id(0) * 64 + lane, i = column < arg3 ? column : arg3 - 1;
  for (i32 o = group_id(1); o < arg4; o += group_count(1)) {
    const i32 from = o * arg2 * arg3 + i;
    i32 place = begin + line < end ? begin + line : end - 1;
    f32 best = arg0[from + place * arg3];
    for (i32 b = begin + line; b < end; b += 32) {
      if (b < end - 28) {
        f32 p[8];
        UNROLL for (i32 k = 0; k < 8; ++k) p[k] = arg0[from + (b + k * 4) * arg3];
        UNROLL for (i32 k = 0; k < 8; ++k) {
          const f32 value = p[k];
          { const i32 better = best == best && !(value <= best);
            best = better ? value : best;
            place = better ? b + k * 4 : place; }
        }
      } else for (i32 n = b; n < end; n += 4) {
        const f32 value = arg0[from + n * arg3];
        { const i32 better = best == best && !(value <= best);
          best = better ? value : best;
          place = better ? n : place; }
      }
    }
    BARRIER;
    values[mine] = best;
    places[mine] = place;
    BARRIER;
    for (i32 distance = 2; distance > 0; distance /= 2) {
      if (line < distance) {
        const f32 other = values[mine + distance * 64];
        const i32 other_place = places[mine + distance * 64];
        { const i32 better = other != other ? best == best || other_place < place : best == best && (other > best || (other == best && other_place < place));
          best = better ? other : best;
          place = better ? other_place : place; }
        values[mine] = best;
        places[mine] = place;
      }
      BARRIER;
    }
    if (line == 0 && column < arg3) {
      arg6[o * arg3 + i] = arg1[from + (place) * arg3];
    }
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<256x1x1 of 1x1x1>(input0, output0, 256, 256, 256, 1)

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
