// log_softmax(very_wide)

// --- OpenCL
// workspace 10245632 bytes
// kernel0<10x64x1 of 256x1x1>(input0, 40000, 1, 4096, 64, workspace+0, 40000)
// kernel1<64x1x1 of 16x1x1>(workspace+0, 64, 10, workspace+10245120)
// kernel2<10x64x1 of 256x1x1>(input0, workspace+10245120, 40000, 1, 4096, 64, workspace+10240000, 40000, workspace+0)
// kernel3<64x1x1 of 16x1x1>(workspace+10240000, 64, 10, workspace+10245120)
// kernel4<1x1x1 of 16x1x1>(workspace+10245120, workspace+10240000, 64)
// kernel5<40x64x1 of 256x1x1>(workspace+0, workspace+10240000, output0, 40000, 64, 40000, 40000)

KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, i32 arg4, GLOBAL f32* arg5, i32 arg6) {
  const i32 lane = local_id(0), line = 0;
  LOCAL f32 shared0[256];
  const i32 i = 0, begin = (i32)group_id(0) * arg3, end = begin + arg3 < arg1 ? begin + arg3 : arg1;
  for (i32 row = group_id(1); row < arg4; row += group_count(1)) {
    i32 o0 = row * arg6;
    f32 t0 = AS_F32(0xff800000u);
    for (i32 b = begin + lane; b < end; b += 2048) {
      f32 s0 = AS_F32(0xff800000u);
      if (b < end - 1792) {
        f32 p0[8];
        UNROLL for (i32 k = 0; k < 8; ++k) {
          const i32 n = b + k * 256;
          p0[k] = arg0[o0 + n];
        }
        UNROLL for (i32 k = 0; k < 8; ++k) {
          const i32 n = b + k * 256;
          f32 x0 = p0[k];
          s0 = LARGER(s0, x0);
        }
      } else {
        for (i32 n = b; n < end; n += 256) {
          f32 x0 = arg0[o0 + n];
          s0 = LARGER(s0, x0);
        }
      }
      t0 = LARGER(t0, s0);
    }
    BARRIER;
    shared0[line * 256 + lane] = t0;
    BARRIER;
    for (i32 distance = 128; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f32 other = shared0[line * 256 + lane + distance];
        t0 = LARGER(t0, other);
        shared0[line * 256 + lane] = t0;
      }
      BARRIER;
    }
    if (lane == 0) {
      arg5[(i32)group_id(0) * (arg4 * arg2) + row] = t0;
    }
  }
}

KERNEL(16, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, i64 arg1, i64 arg2, GLOBAL f32* RESTRICT arg3) {
  const i32 lane = local_id(0), line = 0;
  LOCAL f32 shared[16];
  for (i64 j = group_id(0); j < arg1; j += group_count(0)) {
    f32 t = AS_F32(0xff800000u);
    UNROLL_BY(8) for (i64 s = lane; s < arg2; s += 16) { const f32 other = arg0[s * arg1 + j]; t = LARGER(t, other); }
    BARRIER;
    shared[line * 16 + lane] = t;
    BARRIER;
    for (i32 distance = 8; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f32 other = shared[line * 16 + lane + distance];
        t = LARGER(t, other);
        shared[line * 16 + lane] = t;
      }
      BARRIER;
    }
    if (lane == 0) {
      arg3[j] = t;
    }
  }
}

// calls exp_f32
KERNEL(256, 1, 1) kernel2(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, i32 arg2, i32 arg3, i32 arg4, i32 arg5, GLOBAL f64* arg6, i32 arg7, GLOBAL f32* RESTRICT arg8) {
  const i32 lane = local_id(0), line = 0;
  LOCAL f64 shared0[256];
  const i32 i = 0, begin = (i32)group_id(0) * arg4, end = begin + arg4 < arg2 ? begin + arg4 : arg2;
  for (i32 row = group_id(1); row < arg5; row += group_count(1)) {
    i32 o0 = row * arg7;
    i32 o1 = row;
    f64 t0 = 0.0;
    for (i32 b = begin + lane; b < end; b += 1024) {
      f32 s0 = 0.0f;
      if (b < end - 768) {
        f32 p0[4];
        f32 p1[4];
        UNROLL for (i32 k = 0; k < 4; ++k) {
          const i32 n = b + k * 256;
          p0[k] = arg0[o0 + n];
          p1[k] = arg1[o1];
        }
        UNROLL for (i32 k = 0; k < 4; ++k) {
          const i32 n = b + k * 256;
          f32 x0 = p0[k];
          f32 x1 = p1[k];
          f32 v0_2 = x0 - x1;
          f32 v0 = v0_2;
          f32 v1_1 = exp_f32(v0);
          f32 v1 = v1_1;
          arg8[(row * arg2 + n) * arg3 + i] = v0;
          s0 = s0 + v1;
        }
      } else {
        for (i32 n = b; n < end; n += 256) {
          f32 x0 = arg0[o0 + n];
          f32 x1 = arg1[o1];
          f32 v0_2 = x0 - x1;
          f32 v0 = v0_2;
          f32 v1_1 = exp_f32(v0);
          f32 v1 = v1_1;
          arg8[(row * arg2 + n) * arg3 + i] = v0;
          s0 = s0 + v1;
        }
      }
      t0 = t0 + (f64)s0;
    }
    BARRIER;
    shared0[line * 256 + lane] = t0;
    BARRIER;
    for (i32 distance = 128; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f64 other = shared0[line * 256 + lane + distance];
        t0 = t0 + other;
        shared0[line * 256 + lane] = t0;
      }
      BARRIER;
    }
    if (lane == 0) {
      arg6[(i32)group_id(0) * (arg5 * arg3) + row] = t0;
    }
  }
}

KERNEL(16, 1, 1) kernel3(GLOBAL const f64* RESTRICT arg0, i64 arg1, i64 arg2, GLOBAL f32* RESTRICT arg3) {
  const i32 lane = local_id(0), line = 0;
  LOCAL f64 shared[16];
  for (i64 j = group_id(0); j < arg1; j += group_count(0)) {
    f64 t = 0.0;
    UNROLL_BY(8) for (i64 s = lane; s < arg2; s += 16) { const f64 other = arg0[s * arg1 + j]; t = t + other; }
    BARRIER;
    shared[line * 16 + lane] = t;
    BARRIER;
    for (i32 distance = 8; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f64 other = shared[line * 16 + lane + distance];
        t = t + other;
        shared[line * 16 + lane] = t;
      }
      BARRIER;
    }
    if (lane == 0) {
      arg3[j] = (f32)t;
    }
  }
}

// calls log_f32
KERNEL(16, 1, 1) kernel4(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 16 + local_id(0)) * 4; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 4;
    VARRAY(f32, 4, p0);
    if (whole) { VLOAD(f32, 4, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 x0 = p0[l];
      f32 v0_1 = log_f32(x0);
      f32 v0 = v0_1;
      q0[l] = v0;
    }
    if (whole) { VSTORE(f32, 4, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

KERNEL(256, 1, 1) kernel5(GLOBAL const f32* RESTRICT arg0, GLOBAL const f32* RESTRICT arg1, GLOBAL f32* RESTRICT arg2, i32 arg3, i32 arg4, i32 arg5, i32 arg6) {
  for (i32 row = (i32)group_id(1) * 1 + local_id(1); row < arg4; row += (i32)group_count(1) * 1) {
    i32 o0 = row * arg5;
    i32 o1 = row;
    i32 o2 = row * arg6;
    for (i32 i = ((i32)group_id(0) * 256 + local_id(0)) * 4; i < arg3; i = arg3) {
      const i32 whole = arg3 - i >= 4;
      VARRAY(f32, 4, p0);
      if (whole) { VLOAD(f32, 4, p0, arg0 + o0 + i); }
      else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg3 ? arg0[o0 + i + l] : 0;
      VARRAY(f32, 4, q0);
      UNROLL for (i32 l = 0; l < 4; ++l) {
        f32 x0 = p0[l];
        f32 x1 = arg1[o1];
        f32 v0_2 = x0 - x1;
        f32 v0 = v0_2;
        q0[l] = v0;
      }
      if (whole) { VSTORE(f32, 4, q0, arg2 + o2 + i); }
      else for (i32 l = 0; l < 4; ++l) if (i + l < arg3) arg2[o2 + i + l] = q0[l];
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<64x1x1 of 1024x1x1>(input0, 40000, 64, 40000, output0)

// calls exp_f32
// calls log_f32
KERNEL_LEAST(1024, 1, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, GLOBAL f32* RESTRICT arg4) {
  STARTED;
  const i32 lane = local_id(0), line = local_id(1);
  LOCAL f32 shared_sv0[32];
  LOCAL f64 shared_sv3[32];
  for (i32 base = (i32)group_id(0) * 1; base < arg2; base += (i32)group_count(0) * 1) {
    i32 row = base + line < arg2 ? base + line : arg2 - 1;
    const i32 active = base + line < arg2;
    i32 o0 = row * arg3;
    f32 sv0 = AS_F32(0xff800000u);
    UNROLL_BY(4) for (i32 g = 0; g < 10; ++g) {
      const i32 c = (lane + g * 1024) * 4;
      if (c < arg1) {
        VARRAY(f32, 4, p0);
        VLOAD(f32, 4, p0, arg0 + o0 + c);
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 x0 = p0[l];
          sv0 = LARGER(sv0, x0);
        }
      }
    }
    { const f32 other = (f32)SHUFFLE(sv0, 16); sv0 = LARGER(sv0, other); }
    { const f32 other = (f32)SHUFFLE(sv0, 8); sv0 = LARGER(sv0, other); }
    { const f32 other = (f32)SHUFFLE(sv0, 4); sv0 = LARGER(sv0, other); }
    { const f32 other = (f32)SHUFFLE(sv0, 2); sv0 = LARGER(sv0, other); }
    { const f32 other = (f32)SHUFFLE(sv0, 1); sv0 = LARGER(sv0, other); }
    if (lane % 32 == 0) shared_sv0[line * 32 + lane / 32] = sv0;
    BARRIER;
    sv0 = shared_sv0[line * 32 + lane % 32];
    { const f32 other = (f32)SHUFFLE(sv0, 16); sv0 = LARGER(sv0, other); }
    { const f32 other = (f32)SHUFFLE(sv0, 8); sv0 = LARGER(sv0, other); }
    { const f32 other = (f32)SHUFFLE(sv0, 4); sv0 = LARGER(sv0, other); }
    { const f32 other = (f32)SHUFFLE(sv0, 2); sv0 = LARGER(sv0, other); }
    { const f32 other = (f32)SHUFFLE(sv0, 1); sv0 = LARGER(sv0, other); }
    f32 v0 = sv0;
    f64 sv3 = 0.0;
    UNROLL_BY(4) for (i32 g = 0; g < 10; ++g) {
      const i32 c = (lane + g * 1024) * 4;
      if (c < arg1) {
        VARRAY(f32, 4, p0);
        VLOAD(f32, 4, p0, arg0 + o0 + c);
        f32 few_sv3 = 0.0f;
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 x0 = p0[l];
          f32 v1_2 = x0 - v0;
          f32 v1 = v1_2;
          f32 v2_1 = exp_f32(v1);
          f32 v2 = v2_1;
          few_sv3 = few_sv3 + v2;
        }
        sv3 = sv3 + (f64)few_sv3;
      }
    }
    { const f64 other = (f64)SHUFFLE(sv3, 16); sv3 = sv3 + other; }
    { const f64 other = (f64)SHUFFLE(sv3, 8); sv3 = sv3 + other; }
    { const f64 other = (f64)SHUFFLE(sv3, 4); sv3 = sv3 + other; }
    { const f64 other = (f64)SHUFFLE(sv3, 2); sv3 = sv3 + other; }
    { const f64 other = (f64)SHUFFLE(sv3, 1); sv3 = sv3 + other; }
    if (lane % 32 == 0) shared_sv3[line * 32 + lane / 32] = sv3;
    BARRIER;
    sv3 = shared_sv3[line * 32 + lane % 32];
    { const f64 other = (f64)SHUFFLE(sv3, 16); sv3 = sv3 + other; }
    { const f64 other = (f64)SHUFFLE(sv3, 8); sv3 = sv3 + other; }
    { const f64 other = (f64)SHUFFLE(sv3, 4); sv3 = sv3 + other; }
    { const f64 other = (f64)SHUFFLE(sv3, 2); sv3 = sv3 + other; }
    { const f64 other = (f64)SHUFFLE(sv3, 1); sv3 = sv3 + other; }
    f32 v3 = (f32)sv3;
    f32 v4_1 = log_f32(v3);
    f32 v4 = v4_1;
    UNROLL_BY(4) for (i32 g = 0; g < 10; ++g) {
      const i32 c = (lane + g * 1024) * 4;
      if (c < arg1) {
        VARRAY(f32, 4, p0);
        VLOAD(f32, 4, p0, arg0 + o0 + c);
        VARRAY(f32, 4, qarg4);
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 x0 = p0[l];
          f32 v1_2 = x0 - v0;
          f32 v1 = v1_2;
          f32 v5_2 = v1 - v4;
          f32 v5 = v5_2;
          qarg4[l] = v5;
        }
        if (active) { VSTORE(f32, 4, qarg4, arg4 + row * arg1 + c); }
      }
    }
  }
}

// --- Tenstorrent
// workspace 10248704 bytes
// kernel0<16x64x1 of 1x1x1>(input0, 40000, 1, 2500, 64, workspace+0, 40000)
// kernel1<1x1x1 of 1x1x1>(workspace+0, 64, 16, workspace+10248192)
// kernel2<16x64x1 of 1x1x1>(input0, workspace+10248192, 40000, 1, 2500, 64, workspace+10240000, 40000, workspace+0)
// kernel3<1x1x1 of 1x1x1>(workspace+10240000, 64, 16, workspace+10248192)
// kernel4<1x1x1 of 1x1x1>(workspace+10248192, workspace+10240000, 64, 64)
// kernel5<32x64x1 of 1x1x1>(workspace+0, workspace+10240000, output0, 40000, 64, 1, 1250, 40000, 40000)

// calls order_f32
// calls unorder_f32
KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, Global<f32> arg5, i64 arg6) {
  i64 begin = (i64)group_id(0) * arg3, end = begin + arg3 < arg1 ? begin + arg3 : arg1;
  const i64 i = 0;
  for (i64 row = group_id(1); row < arg4; row += group_count(1)) {
    i64 o0 = row * arg6;
    f32 t0 = AS_F32(0xff800000u);
    const i64 stretch = 128;
    for (i64 b = begin; b < end; b += stretch) {
      const i64 stop = b + stretch < end ? b + stretch : end;
      i32 k0 = order_f32(AS_F32(0xff800000u));
      i32 nk0 = 0;
      VECTORIZE for (i64 n = b; n < stop; ++n) {
        f32 x0 = arg0[o0 + n];
        { const i32 o = order_f32(x0); k0 = o > k0 ? o : k0; nk0 |= x0 != x0; }
      }
      f32 s0 = nk0 ? AS_F32(0x7fc00000u) : unorder_f32(k0);
      t0 = LARGER(t0, s0);
    }
    arg5[(i64)group_id(0) * (arg4 * arg2) + row] = t0;
  }
}

KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, i64 arg1, i64 arg2, Global<f32> arg3) {
  for (i64 j = (i64)group_id(0) * 4096; j < arg1 && j < ((i64)group_id(0) + 1) * 4096; ++j) {
    f32 t = AS_F32(0xff800000u);
    for (i64 s = 0; s < arg2; ++s) t = LARGER(t, arg0[s * arg1 + j]);
    arg3[j] = t;
  }
}

// calls exp_f32
KERNEL(1, 1, 1) kernel2(Global<const f32> arg0, Global<const f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, Global<f64> arg6, i64 arg7, Global<f32> arg8) {
  i64 begin = (i64)group_id(0) * arg4, end = begin + arg4 < arg2 ? begin + arg4 : arg2;
  const i64 i = 0;
  for (i64 row = group_id(1); row < arg5; row += group_count(1)) {
    i64 o0 = row * arg7;
    i64 o1 = row;
    f64 t0 = 0.0;
    const i64 stretch = 128;
    for (i64 b = begin; b < end; b += stretch) {
      const i64 stop = b + stretch < end ? b + stretch : end;
      f32 s0 = 0.0f;
      VECTORIZE for (i64 n = b; n < stop; ++n) {
        f32 x0 = arg0[o0 + n];
        f32 x1 = arg1[o1];
        f32 v0_2 = x0 - x1;
        f32 v0 = v0_2;
        f32 v1_1 = exp_f32(v0);
        f32 v1 = v1_1;
        arg8[(row * arg2 + n) * arg3 + i] = v0;
        { ANY_ORDER s0 = s0 + v1; }
      }
      t0 = t0 + (f64)s0;
    }
    arg6[(i64)group_id(0) * (arg5 * arg3) + row] = t0;
  }
}

KERNEL(1, 1, 1) kernel3(Global<const f64> arg0, i64 arg1, i64 arg2, Global<f32> arg3) {
  for (i64 j = (i64)group_id(0) * 4096; j < arg1 && j < ((i64)group_id(0) + 1) * 4096; ++j) {
    f64 t = 0.0;
    for (i64 s = 0; s < arg2; ++s) t = t + arg0[s * arg1 + j];
    arg3[j] = (f32)t;
  }
}

// calls log_f32
KERNEL(1, 1, 1) kernel4(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    f32 v0_1 = log_f32(x0);
    f32 v0 = v0_1;
    arg1[o1 + i] = v0;
  }
}

KERNEL(1, 1, 1) kernel5(Global<const f32> arg0, Global<const f32> arg1, Global<f32> arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7, i64 arg8) {
  i64 first = (i64)group_id(1) * arg5, last = first + arg5 < arg4 ? first + arg5 : arg4;
  i64 begin = (i64)group_id(0) * arg6, end = begin + arg6 < arg3 ? begin + arg6 : arg3;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg7;
    i64 o1 = row;
    i64 o2 = row * arg8;
    VECTORIZE for (i64 i = begin; i < end; ++i) {
      f32 x0 = arg0[o0 + i];
      f32 x1 = arg1[o1];
      f32 v0_2 = x0 - x1;
      f32 v0 = v0_2;
      arg2[o2 + i] = v0;
    }
  }
}
