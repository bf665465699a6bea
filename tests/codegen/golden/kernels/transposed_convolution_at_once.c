// conv_transpose2d(picture, filters, stride=3)

// --- OpenCL
// workspace 9510912 bytes
// kernel0<1x144x1 of 64x4x1>(input1, workspace+9437184, 64, 576, 64, 9, 4096, 64, 576)
// kernel1<16x9x8 of 256x1x1>(workspace+9437184, input0, workspace+0, 576, 1024, 64, 8, 0, 65536, 589824, 64, 1024, 1024)
// kernel2<2304x1x1 of 256x1x1>(workspace+0, output0, 589824, 12, 96, 0, 32, 0, 64, 65536, 1024, 32, 0, 0, 96)

KERNEL(64, 4, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8) {
  for (i32 row = (i32)group_id(1) * 4 + local_id(1); row < arg3; row += (i32)group_count(1) * 4) {
    i32 i1 = (u32)row % (u32)arg4, r1 = (u32)row / (u32)arg4;
    i32 o0 = r1 + i1 * arg5;
    i32 o1 = r1 * arg6 + i1 * arg7;
    for (i32 i = ((i32)group_id(0) * 64 + local_id(0)) * 1; i < arg2; i = arg2) {
      u16 x0 = arg0[o0 + i * arg8];
      arg1[o1 + i] = x0;
    }
  }
}

// calls f32_to_half
// calls half_to_f32
KERNEL(256, 1, 1) kernel1(GLOBAL const u16* RESTRICT arg0, GLOBAL const u16* RESTRICT arg1, GLOBAL u16* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12) {
  const i32 lane = local_id(0), tx = lane % 16, ty = lane / 16;
  LOCAL f32 tile_a[16][64 + 1];
  LOCAL f32 tile_b[16][64 + 1];
  for (i32 batch = group_id(2); batch < arg6; batch += group_count(2)) {
    const i32 from_a = batch * arg7;
    const i32 from_b = batch * arg8;
    const i32 to = batch * arg9;
    for (i32 row = (i32)group_id(1) * 64; row < arg3; row += (i32)group_count(1) * 64) {
      const i32 column = (i32)group_id(0) * 64;
      f32 sum[4][4];
      UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) sum[r][c] = 0;
      for (i32 k = 0; k < arg5; k += 16) {
        UNROLL for (i32 e = 0; e < 4; ++e) {
          const i32 item = lane + e * 256;
          const i32 ar = item / 16, ak = item % 16;
          tile_a[ak][ar] = row + ar < arg3 && k + ak < arg5 ? half_to_f32(arg0[from_a + (row + ar) * arg10 + (k + ak)]) : 0;
          const i32 bc = item % 64, bk = item / 64;
          tile_b[bk][bc] = column + bc < arg4 && k + bk < arg5 ? half_to_f32(arg1[from_b + (k + bk) * arg11 + (column + bc)]) : 0;
        }
        BARRIER;
        UNROLL for (i32 d = 0; d < 16; ++d) {
          f32 a[4], b[4];
          UNROLL for (i32 r = 0; r < 4; ++r) { a[r] = tile_a[d][ty + r * 16]; b[r] = tile_b[d][tx + r * 16]; }
          UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) sum[r][c] = fma(a[r], b[c], sum[r][c]);
        }
        BARRIER;
      }
      UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) {
        const i32 i = row + ty + r * 16, j = column + tx + c * 16;
        if (i < arg3 && j < arg4) arg2[to + i * arg12 + j] = f32_to_half(sum[r][c]);
      }
    }
  }
}

KERNEL(256, 1, 1) kernel2(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12, i32 arg13, i32 arg14) {
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg2) {
    const u32 blocks = (u32)arg3;
    const i32 first = (i32)((u32)j % blocks) * 8;
    u32 rest = (u32)j / blocks;
    const u32 u0 = rest % (u32)arg4 + (u32)arg5;
    rest /= (u32)arg4;
    const i32 o = (i32)(rest % (u32)arg8), n = (i32)(rest / (u32)arg8);
    const i32 from = ((n * 9 + (i32)(0 * 3 + u0 % 3u) * 3) * arg8 + o) * arg10 + (0 * arg6 + (i32)(u0 / 3u) - arg7) * arg11 - arg12;
    VARRAY(u16, 8, r);
    UNROLL for (i32 l = 0; l < 8; ++l) {
      const u32 u = (u32)(first + l + arg13);
      r[l] = arg0[from + (i32)(u % 3u) * arg9 + (i32)(u / 3u)];
    }
    VSTORE(u16, 8, r, arg1 + j / (i32)blocks * arg14 + first);
  }
}

// --- CUDA
// workspace 9510912 bytes
// kernel0<1x144x1 of 64x4x1>(input1, workspace+9437184, 64, 576, 64, 9, 4096, 64, 576)
// kernel1<16x9x8 of 256x1x1>(workspace+9437184, input0, workspace+0, 576, 1024, 64, 8, 0, 65536, 589824, 64, 1024, 1024)
// kernel2<2304x1x1 of 256x1x1>(workspace+0, output0, 589824, 12, 96, 0, 32, 0, 64, 65536, 1024, 32, 0, 0, 96)

KERNEL(64, 4, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8) {
  STARTED;
  for (i32 row = (i32)group_id(1) * 4 + local_id(1); row < arg3; row += (i32)group_count(1) * 4) {
    i32 i1 = (u32)row % (u32)arg4, r1 = (u32)row / (u32)arg4;
    i32 o0 = r1 + i1 * arg5;
    i32 o1 = r1 * arg6 + i1 * arg7;
    for (i32 i = ((i32)group_id(0) * 64 + local_id(0)) * 1; i < arg2; i = arg2) {
      u16 x0 = arg0[o0 + i * arg8];
      arg1[o1 + i] = x0;
    }
  }
}

// calls f32_to_half
// calls half_to_f32
KERNEL(256, 1, 1) kernel1(GLOBAL const u16* RESTRICT arg0, GLOBAL const u16* RESTRICT arg1, GLOBAL u16* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12) {
  STARTED;
  const i32 lane = local_id(0), tx = lane % 16, ty = lane / 16;
  LOCAL f32 tile_a[16][64 + 1];
  LOCAL f32 tile_b[16][64 + 1];
  for (i32 batch = group_id(2); batch < arg6; batch += group_count(2)) {
    const i32 from_a = batch * arg7;
    const i32 from_b = batch * arg8;
    const i32 to = batch * arg9;
    for (i32 row = (i32)group_id(1) * 64; row < arg3; row += (i32)group_count(1) * 64) {
      const i32 column = (i32)group_id(0) * 64;
      f32 sum[4][4];
      UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) sum[r][c] = 0;
      for (i32 k = 0; k < arg5; k += 16) {
        UNROLL for (i32 e = 0; e < 4; ++e) {
          const i32 item = lane + e * 256;
          const i32 ar = item / 16, ak = item % 16;
          tile_a[ak][ar] = row + ar < arg3 && k + ak < arg5 ? half_to_f32(arg0[from_a + (row + ar) * arg10 + (k + ak)]) : 0;
          const i32 bc = item % 64, bk = item / 64;
          tile_b[bk][bc] = column + bc < arg4 && k + bk < arg5 ? half_to_f32(arg1[from_b + (k + bk) * arg11 + (column + bc)]) : 0;
        }
        BARRIER;
        UNROLL for (i32 d = 0; d < 16; ++d) {
          f32 a[4], b[4];
          UNROLL for (i32 r = 0; r < 4; ++r) { a[r] = tile_a[d][ty + r * 16]; b[r] = tile_b[d][tx + r * 16]; }
          UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) sum[r][c] = fma(a[r], b[c], sum[r][c]);
        }
        BARRIER;
      }
      UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) {
        const i32 i = row + ty + r * 16, j = column + tx + c * 16;
        if (i < arg3 && j < arg4) arg2[to + i * arg12 + j] = f32_to_half(sum[r][c]);
      }
    }
  }
}

KERNEL(256, 1, 1) kernel2(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, i32 arg12, i32 arg13, i32 arg14) {
  STARTED;
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg2) {
    const u32 blocks = (u32)arg3;
    const i32 first = (i32)((u32)j % blocks) * 8;
    u32 rest = (u32)j / blocks;
    const u32 u0 = rest % (u32)arg4 + (u32)arg5;
    rest /= (u32)arg4;
    const i32 o = (i32)(rest % (u32)arg8), n = (i32)(rest / (u32)arg8);
    const i32 from = ((n * 9 + (i32)(0 * 3 + u0 % 3u) * 3) * arg8 + o) * arg10 + (0 * arg6 + (i32)(u0 / 3u) - arg7) * arg11 - arg12;
    VARRAY(u16, 8, r);
    UNROLL for (i32 l = 0; l < 8; ++l) {
      const u32 u = (u32)(first + l + arg13);
      r[l] = arg0[from + (i32)(u % 3u) * arg9 + (i32)(u / 3u)];
    }
    VSTORE(u16, 8, r, arg1 + j / (i32)blocks * arg14 + first);
  }
}

// --- Tenstorrent
// workspace 38936576 bytes
// kernel0<2048x1x1 of 1x1x1>(workspace+6422528, 1572864, 768, 0)
// kernel1<1x2048x1 of 1x1x1>(input0, workspace+6422528, 32, 16384, 8, 32, 32, 96)
// kernel0<1930x1x1 of 1x1x1>(workspace+0, 1605632, 832, 0)
// kernel2<3x512x1 of 1x1x1>(workspace+6422528, workspace+0, 3008, 512, 1, 1003, 3072, 64, 3136)
// kernel0<2035x1x1 of 1x1x1>(workspace+19668992, 4816896, 2368, 0)
// kernel3<1930x1x1 of 1x1x1>(workspace+0, workspace+19668992, 1605632, 832, 3)
// kernel0<2022x1x1 of 1x1x1>(workspace+0, 4917248, 2432, 0)
// kernel2<1x2008x1 of 1x1x1>(workspace+19668992, workspace+0, 94, 50176, 25, 94, 96, 2, 98)
// kernel4<1x1024x1 of 1x1x1>(input1, workspace+19668992, 9, 4096, 4, 9, 64, 8, 9, 576, 576, 9, -1)
// kernel5<2048x1x1 of 1x1x1>(workspace+0, workspace+19668992, output0, 98, 96, 3, 1, 1, 0, 98, 96, 3, 1, 1, 0, 64, 64, 64, 64, 4718592, 2304)

KERNEL(1, 1, 1) kernel0(Global<f32> arg0, i64 arg1, i64 arg2, f32 arg3) {
  i64 first = (i64)group_id(0) * arg2, last = first + arg2 < arg1 ? first + arg2 : arg1;
  i64 o0 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    arg0[o0 + i] = arg3;
  }
}

// calls half_to_f32
KERNEL(1, 1, 1) kernel1(Global<const u16> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg6;
    i64 o1 = row * arg7;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      f32 x0 = half_to_f32(arg0[o0 + i]);
      arg1[o1 + i] = x0;
    }
  }
}

KERNEL(1, 1, 1) kernel2(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg6;
    i64 o1 = arg7 + row * arg8;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      f32 x0 = arg0[o0 + i];
      arg1[o1 + i] = x0;
    }
  }
}

KERNEL(1, 1, 1) kernel3(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    arg1[o1 + i * arg4] = x0;
  }
}

KERNEL(1, 1, 1) kernel4(Global<const u16> arg0, Global<u16> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12) {
  i64 first = (i64)group_id(1) * arg4, last = first + arg4 < arg3 ? first + arg4 : arg3;
  i64 begin = (i64)group_id(0) * arg5, end = begin + arg5 < arg2 ? begin + arg5 : arg2;
  for (i64 piece = begin; piece < end; piece += 32) {
    const i64 stop = piece + 32 < end ? piece + 32 : end;
    for (i64 row = first; row < last; ++row) {
      i64 i1 = row % arg6, r1 = row / arg6;
      i64 o0 = arg7 + r1 * arg8 + i1 * arg9;
      i64 o1 = r1 * arg10 + i1 * arg11;
      VECTORIZE for (i64 i = piece; i < stop; ++i) {
        u16 x0 = arg0[o0 + i * arg12];
        arg1[o1 + i] = x0;
      }
    }
  }
}

// calls f32_to_half
// calls half_to_f32
KERNEL(1, 1, 1) kernel5(Global<const f32> arg0, Global<const u16> arg1, Global<u16> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11, i64 arg12, i64 arg13, i64 arg14, i64 arg15, i64 arg16, i64 arg17, i64 arg18, i64 arg19, i64 arg20) {
  const i64 first = (i64)group_id(0) * arg20, last = first + arg20 < arg19 ? first + arg20 : arg19;
  for (i64 j = first; j < last; ++j) {
    i64 image = j;
    const i64 y1 = image % arg10 * arg12 - arg14;
    image /= arg10;
    const i64 y0 = image % arg4 * arg6 - arg8;
    image /= arg4;
    const i64 o = image % arg15, batch = image / arg15, group = o / arg18;
    f32 sum = 0;
    for (i64 c = 0; c < arg16; ++c) {
      const i64 from = (batch * arg17 + group * arg16 + c) * (arg3 * arg9), taps = (o * arg16 + c) * (arg5 * arg11);
      for (i64 w0 = 0; w0 < arg5; ++w0) {
        const i64 z0 = y0 + w0 * arg7;
        if (z0 < 0 || z0 >= arg3) continue;
        for (i64 w1 = 0; w1 < arg11; ++w1) {
          const i64 z1 = y1 + w1 * arg13;
          if (z1 < 0 || z1 >= arg9) continue;
          const i64 tap = (w0) * arg11 + w1, pixel = (z0) * arg9 + z1;
          sum = fma(arg0[from + pixel], half_to_f32(arg1[taps + tap]), sum);
        }
      }
    }
    arg2[j] = f32_to_half(sum);
  }
}
