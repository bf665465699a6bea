// adaptive_avg_pool3d(volume, 3)

// --- OpenCL
// workspace 327680 bytes
// kernel0<32x1x1 of 256x1x1>(input0, workspace+196608, 32768)
// kernel1<192x1x1 of 256x1x1>(workspace+196608, constants+0, workspace+0, status+0, 12, 64, 8, 49152)
// kernel2<48x1x1 of 256x1x1>(constants+512, workspace+0, 4, 64, 4, 192, 12288, 3, 4, 768, 256, 64, 0, 64, workspace+196608)
// kernel3<1x12x1 of 16x16x1>(workspace+196608, constants+1024, workspace+73728, 64, 192, 3, 192, 64, 192, 64)
// kernel1<72x1x1 of 256x1x1>(workspace+73728, constants+0, workspace+0, status+0, 12, 8, 8, 18432)
// kernel2<18x1x1 of 256x1x1>(constants+512, workspace+0, 4, 8, 4, 576, 4608, 3, 4, 96, 32, 8, 0, 8, workspace+73728)
// kernel4<1x18x1 of 8x32x1>(workspace+73728, constants+1024, workspace+27648, 8, 576, 3, 24, 8, 24, 8)
// kernel5<27x1x1 of 256x1x1>(workspace+27648, constants+0, workspace+0, status+0, 12, 1, 8, 6912)
// kernel6<7x1x1 of 1x256x1>(constants+512, workspace+0, constants+1024, 4, 1728, 3, 4, 12, 4, 0, output0)

// calls half_to_f32
KERNEL(256, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 256 + local_id(0)) * 4; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 4;
    VARRAY(u16, 4, p0);
    if (whole) { VLOAD(u16, 4, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 x0 = half_to_f32(p0[l]);
      f32 v0 = x0;
      q0[l] = v0;
    }
    if (whole) { VSTORE(f32, 4, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// calls resolve
KERNEL(256, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg7; j += (i64)group_count(0) * 256) {
    const i64 row = j / arg5, k = j % arg5;
    const i64 from = (row / arg4 * arg6 + resolve(arg1[row % arg4], arg6, arg3)) * arg5;
    arg2[j] = arg0[from + k];
  }
}

KERNEL(256, 1, 1) kernel2(GLOBAL const u8* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9, i32 arg10, i32 arg11, f32 arg12, i32 arg13, GLOBAL f32* RESTRICT arg14) {
  const i32 j = (i32)group_id(0) * 256 + local_id(0);
  if (j < arg6) {
    const i32 row = j / arg3, i = j - row * arg3, end = arg2;
    i32 i1 = (u32)row % (u32)arg7, r1 = (u32)row / (u32)arg7;
    i32 o0 = i1 * arg8;
    i32 o1 = r1 * arg9 + i1 * arg10;
    f64 t0 = 0.0;
    for (i32 b = 0; b < end; b += 4) {
      f32 s0 = 0.0f;
      if (b < end - 3) {
        u8 p0[4];
        f32 p1[4];
        UNROLL for (i32 k = 0; k < 4; ++k) {
          const i32 n = b + k * 1;
          p0[k] = arg0[o0 + n];
          p1[k] = arg1[o1 + n * arg11 + i];
        }
        UNROLL for (i32 k = 0; k < 4; ++k) {
          const i32 n = b + k * 1;
          i32 x0 = (i32)p0[k];
          f32 x1 = p1[k];
          f32 v0_3 = (x0 ? x1 : arg12);
          f32 v0 = v0_3;
          s0 = s0 + v0;
        }
      } else {
        for (i32 n = b; n < end; n += 1) {
          i32 x0 = (i32)arg0[o0 + n];
          f32 x1 = arg1[o1 + n * arg13 + i];
          f32 v0_3 = (x0 ? x1 : arg12);
          f32 v0 = v0_3;
          s0 = s0 + v0;
        }
      }
      t0 = t0 + (f64)s0;
    }
    arg14[j] = (f32)t0;
  }
}

KERNEL(16, 16, 1) kernel3(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9) {
  for (i32 row = (i32)group_id(1) * 16 + local_id(1); row < arg4; row += (i32)group_count(1) * 16) {
    i32 i1 = (u32)row % (u32)arg5, r1 = (u32)row / (u32)arg5;
    i32 o0 = r1 * arg6 + i1 * arg7;
    i32 o1 = i1;
    i32 o2 = r1 * arg8 + i1 * arg9;
    for (i32 i = ((i32)group_id(0) * 16 + local_id(0)) * 4; i < arg3; i = arg3) {
      const i32 whole = arg3 - i >= 4;
      VARRAY(f32, 4, p0);
      if (whole) { VLOAD(f32, 4, p0, arg0 + o0 + i); }
      else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg3 ? arg0[o0 + i + l] : 0;
      VARRAY(f32, 4, q0);
      UNROLL for (i32 l = 0; l < 4; ++l) {
        f32 x0 = p0[l];
        f32 x1 = arg1[o1];
        f32 v0_2 = x0 / x1;
        f32 v0 = v0_2;
        q0[l] = v0;
      }
      if (whole) { VSTORE(f32, 4, q0, arg2 + o2 + i); }
      else for (i32 l = 0; l < 4; ++l) if (i + l < arg3) arg2[o2 + i + l] = q0[l];
    }
  }
}

KERNEL(8, 32, 1) kernel4(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, i32 arg9) {
  for (i32 row = (i32)group_id(1) * 32 + local_id(1); row < arg4; row += (i32)group_count(1) * 32) {
    i32 i1 = (u32)row % (u32)arg5, r1 = (u32)row / (u32)arg5;
    i32 o0 = r1 * arg6 + i1 * arg7;
    i32 o1 = i1;
    i32 o2 = r1 * arg8 + i1 * arg9;
    for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 1; i < arg3; i = arg3) {
      f32 x0 = arg0[o0 + i];
      f32 x1 = arg1[o1];
      f32 v0_2 = x0 / x1;
      f32 v0 = v0_2;
      arg2[o2 + i] = v0;
    }
  }
}

// calls resolve
KERNEL(256, 1, 1) kernel5(GLOBAL const f32* RESTRICT arg0, GLOBAL const i64* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, GLOBAL i64* arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg7; j += (i64)group_count(0) * 256) {
    const i64 from = (j / arg4 * arg6 + resolve(arg1[j % arg4], arg6, arg3)) * arg5;
    for (i64 k = 0; k < arg5; ++k) arg2[j * arg5 + k] = arg0[from + k];
  }
}

// calls f32_to_half
// calls half_to_f32
KERNEL(1, 256, 1) kernel6(GLOBAL const u8* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL const f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6, i32 arg7, i32 arg8, f32 arg9, GLOBAL u16* RESTRICT arg10) {
  const i32 lane = local_id(0), line = local_id(1);
  for (i32 base = (i32)group_id(0) * 256; base < arg4; base += (i32)group_count(0) * 256) {
    i32 row = base + line < arg4 ? base + line : arg4 - 1;
    const i32 active = base + line < arg4;
    i32 i1 = (u32)row % (u32)arg5, r1 = (u32)row / (u32)arg5;
    i32 o0 = i1 * arg6;
    i32 o1 = r1 * arg7 + i1 * arg8;
    i32 o2 = i1;
    f32 x2 = arg2[o2];
    f32 sv1 = 0.0f;
    UNROLL for (i32 k = 0; k < 4; ++k) {
      const i32 i = lane + k * 1;
      if (i < arg3) {
        f32 x1 = arg1[o1 + i];
        i32 x0 = (i32)arg0[o0 + i];
        f32 v0_3 = (x0 ? x1 : arg9);
        f32 v0 = v0_3;
        sv1 = sv1 + v0;
      }
    }
    f32 v1 = sv1;
    f32 v2_2 = v1 / x2;
    f32 v2 = v2_2;
    f32 v3 = half_to_f32(f32_to_half(v2));
    if (lane == 0 && active) arg10[row] = f32_to_half(v3);
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<36x1x1 of 256x1x1>(input0, output0, 576, 8, 8, 8, 3, 3, 3)

// calls f32_to_half
// calls half_to_f32
KERNEL(256, 1, 1) kernel0(GLOBAL const u16* RESTRICT arg0, GLOBAL u16* RESTRICT arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  STARTED;
  enum { THREADS = 256, LANES = 8, LINES = 32, PER = 2, ROWS = 16, WIDTH = 8, SHARE = 1, TOGETHER = 4 };
  LOCAL f32 columns[LINES * WIDTH];
  const i32 t = threadIdx.x, lane = t % LANES, line = t / LANES;
  const i32 depth = (i32)arg3, height = (i32)arg4, width = (i32)arg5, depths = (i32)arg6, heights = (i32)arg7, widths = (i32)arg8;
  const i64 row = (i64)blockIdx.x * ROWS + line / PER;
  if (row < arg2) {
    const i32 h_out = (i32)(row % heights), d_out = (i32)(row / heights % depths);
    const i32 d_end = ((d_out + 1) * depth + depths - 1) / depths;
    const i32 h_first = h_out * height / heights, h_count = ((h_out + 1) * height + heights - 1) / heights - h_first;
    GLOBAL const u16* const image = arg0 + (row / heights / depths * depth * height + h_first) * width;
    for (i32 c = lane; c < width; c += LANES) {
      f32 found = 0.0f;
      const i32 d_step = PER / h_count, h_step = PER % h_count;
      i32 d = d_out * depth / depths + line % PER / h_count, h = line % PER % h_count;
      while (d < d_end) {
        u16 next[TOGETHER];
        i32 count = 0;
        UNROLL for (i32 k = 0; k < TOGETHER; ++k)
        if (d < d_end) {
          next[k] = image[(d * height + h) * width + c];
          count = k + 1;
          d += d_step;
          h += h_step;
          if (h >= h_count) { h -= h_count; ++d; }
        }
        UNROLL for (i32 k = 0; k < TOGETHER; ++k)
        if (k < count) { const f32 value = half_to_f32(next[k]); found = found + value; }
      }
      columns[line * WIDTH + c] = found;
    }
  }
  BARRIER;
  for (i32 first = 0; first < ROWS * widths; first += THREADS / SHARE) {
    const i32 n = first + t / SHARE, place = n < ROWS * widths ? n : ROWS * widths - 1, own = place / widths, w_out = place % widths;
    const i32 begin = w_out * width / widths, end = ((w_out + 1) * width + widths - 1) / widths;
    f64 total = 0.0;
    const i64 to = (i64)blockIdx.x * ROWS + own;
    if (to < arg2)
    for (i32 c = begin + t % SHARE; c < end; c += SHARE)
    UNROLL for (i32 k = 0; k < PER; ++k) { const f64 other = (f64)columns[(own * PER + k) * WIDTH + c]; total = total + other; }
    UNROLL for (i32 distance = SHARE / 2; distance > 0; distance /= 2) { const f64 other = (f64)SHUFFLE(total, distance); total = total + other; }
    if (n < ROWS * widths && to < arg2 && t % SHARE == 0) {
      const i32 h_own = (i32)(to % heights), d_own = (i32)(to / heights % depths);
      const i32 count = (((d_own + 1) * depth + depths - 1) / depths - d_own * depth / depths) * (((h_own + 1) * height + heights - 1) / heights - h_own * height / heights) * (end - begin);
      arg1[to * widths + w_out] = f32_to_half((f32)(total / (f64)count));
    }
  }
}

// --- Tenstorrent
// workspace 327680 bytes
// kernel0<512x1x1 of 1x1x1>(input0, workspace+196608, 32768, 64)
// kernel1<768x1x1 of 1x1x1>(workspace+196608, constants+0, workspace+0, status+0, 12, 64, 8, 768, 1)
// kernel2<4x192x1 of 1x1x1>(constants+512, workspace+0, 4, 64, 4, 192, 3, 4, 768, 256, workspace+196608, 64, 0)
// kernel3<1x192x1 of 1x1x1>(workspace+196608, constants+1024, workspace+73728, 64, 192, 1, 64, 3, 192, 64, 192, 64)
// kernel1<576x1x1 of 1x1x1>(workspace+73728, constants+0, workspace+0, status+0, 12, 8, 8, 2304, 4)
// kernel2<1x576x1 of 1x1x1>(constants+512, workspace+0, 4, 8, 4, 576, 3, 4, 96, 32, workspace+73728, 8, 0)
// kernel3<1x144x1 of 1x1x1>(workspace+73728, constants+1024, workspace+27648, 8, 576, 4, 8, 3, 24, 8, 24, 8)
// kernel1<216x1x1 of 1x1x1>(workspace+27648, constants+0, workspace+0, status+0, 12, 1, 8, 6912, 32)
// kernel4<216x1x1 of 1x1x1>(constants+512, workspace+0, constants+1024, 4, 1728, 8, 3, 4, 12, 4, 0, output0)

// calls half_to_f32
KERNEL(1, 1, 1) kernel0(Global<const u16> arg0, Global<f32> arg1, i64 arg2, i64 arg3) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = half_to_f32(arg0[o0 + i]);
    f32 v0 = x0;
    arg1[o1 + i] = v0;
  }
}

// calls resolve
KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<const i64> arg1, Global<f32> arg2, Global<i64> arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  const i64 first = (i64)group_id(0) * arg8, last = first + arg8 < arg7 ? first + arg8 : arg7;
  for (i64 j = first; j < last; ++j) {
    const i64 from = (j / arg4 * arg6 + resolve(arg1[j % arg4], arg6, arg3)) * arg5;
    for (i64 k = 0; k < arg5; ++k) arg2[j * arg5 + k] = arg0[from + k];
  }
}

KERNEL(1, 1, 1) kernel2(Global<const u8> arg0, Global<const f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, Global<f32> arg10, i64 arg11, f32 arg12) {
  i64 begin = (i64)group_id(2) * arg4, end = begin + arg4 < arg2 ? begin + arg4 : arg2;
  const i64 first = (i64)group_id(0) * 16, width = arg3 - first < 16 ? arg3 - first : 16;
  f32 s0[16];
  f64 t0[16];
  for (i64 row = group_id(1); row < arg5; row += group_count(1)) {
    i64 i1 = row % arg6, r1 = row / arg6;
    i64 o0 = i1 * arg7;
    i64 o1 = r1 * arg8 + i1 * arg9;
    VECTORIZE for (i64 j = 0; j < width; ++j) {
      t0[j] = 0.0;
    }
    for (i64 b = begin; b < end; b += 32) {
      const i64 stop = b + 32 < end ? b + 32 : end;
      VECTORIZE for (i64 j = 0; j < width; ++j) {
        s0[j] = 0.0f;
      }
      for (i64 n = b; n < stop; ++n) {
        VECTORIZE for (i64 j = 0; j < width; ++j) {
          const i64 i = first + j;
          i32 x0 = (i32)arg0[o0 + n];
          f32 x1 = arg1[o1 + n * arg11 + i];
          f32 v0_3 = (x0 ? x1 : arg12);
          f32 v0 = v0_3;
          s0[j] = s0[j] + v0;
        }
      }
      VECTORIZE for (i64 j = 0; j < width; ++j) {
        t0[j] = t0[j] + (f64)s0[j];
      }
    }
    VECTORIZE for (i64 j = 0; j < width; ++j) {
      arg10[row * arg3 + first + j] = (f32)t0[j];
    }
  }
}

KERNEL(1, 1, 1) kernel3(Global<const f32> arg0, Global<const f32> arg1, Global<f32> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, i64 arg10, i64 arg11) {
  i64 first = (i64)group_id(1) * arg5, last = first + arg5 < arg4 ? first + arg5 : arg4;
  i64 begin = (i64)group_id(0) * arg6, end = begin + arg6 < arg3 ? begin + arg6 : arg3;
  for (i64 row = first; row < last; ++row) {
    i64 i1 = row % arg7, r1 = row / arg7;
    i64 o0 = r1 * arg8 + i1 * arg9;
    i64 o1 = i1;
    i64 o2 = r1 * arg10 + i1 * arg11;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      f32 x0 = arg0[o0 + i];
      f32 x1 = arg1[o1];
      f32 v0_2 = x0 / x1;
      f32 v0 = v0_2;
      arg2[o2 + i] = v0;
    }
  }
}

// calls f32_to_half
// calls half_to_f32
KERNEL(1, 1, 1) kernel4(Global<const u8> arg0, Global<const f32> arg1, Global<const f32> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8, i64 arg9, f32 arg10, Global<u16> arg11) {
  i64 first = (i64)group_id(0) * arg5, last = first + arg5 < arg4 ? first + arg5 : arg4;
  for (i64 row = first; row < last; ++row) {
    i64 i1 = row % arg6, r1 = row / arg6;
    i64 o0 = i1 * arg7;
    i64 o1 = r1 * arg8 + i1 * arg9;
    i64 o2 = i1;
    f32 x2 = arg2[o2];
    f64 sv1 = 0.0;
    VECTORIZE for (i64 i = 0; i < arg3; ++i) {
      f32 x1 = arg1[o1 + i];
      i32 x0 = (i32)arg0[o0 + i];
      f32 v0_3 = (x0 ? x1 : arg10);
      f32 v0 = v0_3;
      { ANY_ORDER sv1 = sv1 + (f64)v0; }
    }
    f32 v1 = (f32)sv1;
    f32 v2_2 = v1 / x2;
    f32 v2 = v2_2;
    f32 v3 = half_to_f32(f32_to_half(v2));
    arg11[row] = f32_to_half(v3);
  }
}
