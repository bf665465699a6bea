// softmax(wide)

// --- OpenCL
// workspace 0 bytes
// kernel0<64x1x1 of 256x1x1>(input0, 1000, 64, 1000, output0)

// calls exp_f32
KERNEL(256, 1, 1) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, GLOBAL f32* RESTRICT arg4) {
  f32 kx0[4];
  f32 kv2[4];
  const i32 lane = local_id(0), line = local_id(1);
  LOCAL f32 shared_sv0[256];
  LOCAL f32 shared_sv3[256];
  for (i32 base = (i32)group_id(0) * 1; base < arg2; base += (i32)group_count(0) * 1) {
    i32 row = base + line < arg2 ? base + line : arg2 - 1;
    const i32 active = base + line < arg2;
    i32 o0 = row * arg3;
    f32 sv0 = AS_F32(0xff800000u);
    UNROLL for (i32 g = 0; g < 1; ++g) {
      const i32 c = (lane + g * 256) * 4;
      if (c < arg1) {
        VARRAY(f32, 4, p0);
        VLOAD(f32, 4, p0, arg0 + o0 + c);
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 x0 = p0[l];
          kx0[k] = x0;
          sv0 = LARGER(sv0, x0);
        }
      }
    }
    BARRIER;
    shared_sv0[line * 256 + lane] = sv0;
    BARRIER;
    for (i32 distance = 128; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f32 other = shared_sv0[line * 256 + lane + distance]; sv0 = LARGER(sv0, other);
        shared_sv0[line * 256 + lane] = sv0;
      }
      BARRIER;
    }
    sv0 = shared_sv0[line * 256];
    f32 v0 = sv0;
    f32 sv3 = 0.0f;
    UNROLL for (i32 g = 0; g < 1; ++g) {
      const i32 c = (lane + g * 256) * 4;
      if (c < arg1) {
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 x0 = kx0[k];
          f32 v1_2 = x0 - v0;
          f32 v1 = v1_2;
          f32 v2_1 = exp_f32(v1);
          f32 v2 = v2_1;
          kv2[k] = v2;
          sv3 = sv3 + v2;
        }
      }
    }
    BARRIER;
    shared_sv3[line * 256 + lane] = sv3;
    BARRIER;
    for (i32 distance = 128; distance > 0; distance /= 2) {
      if (lane < distance) {
        const f32 other = shared_sv3[line * 256 + lane + distance]; sv3 = sv3 + other;
        shared_sv3[line * 256 + lane] = sv3;
      }
      BARRIER;
    }
    sv3 = shared_sv3[line * 256];
    f32 v3 = sv3;
    UNROLL for (i32 g = 0; g < 1; ++g) {
      const i32 c = (lane + g * 256) * 4;
      if (c < arg1) {
        VARRAY(f32, 4, qarg4);
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 v2 = kv2[k];
          f32 v4_2 = v2 / v3;
          f32 v4 = v4_2;
          qarg4[l] = v4;
        }
        if (active) { VSTORE(f32, 4, qarg4, arg4 + row * arg1 + c); }
      }
    }
  }
}

// --- CUDA
// workspace 0 bytes
// kernel0<32x1x1 of 64x2x1>(input0, 1000, 64, 1000, output0)

// calls exp_f32
// calls quotient_by_row
KERNEL_LEAST(64, 2, 1, 8) kernel0(GLOBAL const f32* RESTRICT arg0, i32 arg1, i32 arg2, i32 arg3, GLOBAL f32* RESTRICT arg4) {
  STARTED;
  f32 kx0[16];
  f32 kv2[16];
  const i32 lane = local_id(0), line = local_id(1);
  LOCAL f32 shared_sv0[4];
  LOCAL f32 shared_sv3[4];
  for (i32 base = (i32)group_id(0) * 2; base < arg2; base += (i32)group_count(0) * 2) {
    i32 row = base + line < arg2 ? base + line : arg2 - 1;
    const i32 active = base + line < arg2;
    i32 o0 = row * arg3;
    f32 sv0 = AS_F32(0xff800000u);
    UNROLL for (i32 g = 0; g < 4; ++g) {
      const i32 c = (lane + g * 64) * 4;
      if (c < arg1) {
        VARRAY(f32, 4, p0);
        VLOAD(f32, 4, p0, arg0 + o0 + c);
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 x0 = p0[l];
          kx0[k] = x0;
          sv0 = LARGER(sv0, x0);
        }
      }
    }
    { const f32 other = (f32)SHUFFLE(sv0, 16); sv0 = LARGER(sv0, other); }
    { const f32 other = (f32)SHUFFLE(sv0, 8); sv0 = LARGER(sv0, other); }
    { const f32 other = (f32)SHUFFLE(sv0, 4); sv0 = LARGER(sv0, other); }
    { const f32 other = (f32)SHUFFLE(sv0, 2); sv0 = LARGER(sv0, other); }
    { const f32 other = (f32)SHUFFLE(sv0, 1); sv0 = LARGER(sv0, other); }
    if (lane % 32 == 0) shared_sv0[line * 2 + lane / 32] = sv0;
    BARRIER;
    sv0 = shared_sv0[line * 2 + lane % 2];
    { const f32 other = (f32)SHUFFLE(sv0, 1); sv0 = LARGER(sv0, other); }
    f32 v0 = sv0;
    f32 sv3 = 0.0f;
    UNROLL for (i32 g = 0; g < 4; ++g) {
      const i32 c = (lane + g * 64) * 4;
      if (c < arg1) {
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 x0 = kx0[k];
          f32 v1_2 = x0 - v0;
          f32 v1 = v1_2;
          f32 v2_1 = exp_f32(v1);
          f32 v2 = v2_1;
          kv2[k] = v2;
          sv3 = sv3 + v2;
        }
      }
    }
    { const f32 other = (f32)SHUFFLE(sv3, 16); sv3 = sv3 + other; }
    { const f32 other = (f32)SHUFFLE(sv3, 8); sv3 = sv3 + other; }
    { const f32 other = (f32)SHUFFLE(sv3, 4); sv3 = sv3 + other; }
    { const f32 other = (f32)SHUFFLE(sv3, 2); sv3 = sv3 + other; }
    { const f32 other = (f32)SHUFFLE(sv3, 1); sv3 = sv3 + other; }
    if (lane % 32 == 0) shared_sv3[line * 2 + lane / 32] = sv3;
    BARRIER;
    sv3 = shared_sv3[line * 2 + lane % 2];
    { const f32 other = (f32)SHUFFLE(sv3, 1); sv3 = sv3 + other; }
    f32 v3 = sv3;
    const f32 reciprocal_v3 = row_reciprocal(v3);
    UNROLL for (i32 g = 0; g < 4; ++g) {
      const i32 c = (lane + g * 64) * 4;
      if (c < arg1) {
        VARRAY(f32, 4, qarg4);
        UNROLL for (i32 l = 0; l < 4; ++l) {
          const i32 i = c + l;
          const i32 k = g * 4 + l;
          f32 v2 = kv2[k];
          f32 v4 = quotient_by_row(v2, v3, reciprocal_v3);
          qarg4[l] = v4;
        }
        if (active) { VSTORE(f32, 4, qarg4, arg4 + row * arg1 + c); }
      }
    }
  }
}

// --- Tenstorrent
// workspace 0 bytes
// kernel0<64x1x1 of 1x1x1>(input0, 1000, 64, 1, 1000, output0)

// calls exp_f32
// calls order_f32
// calls unorder_f32
KERNEL(1, 1, 1) kernel0(Global<const f32> arg0, i64 arg1, i64 arg2, i64 arg3, i64 arg4, Global<f32> arg5) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  for (i64 row = first; row < last; ++row) {
    i64 o0 = row * arg4;
    i32 sv0 = order_f32(AS_F32(0xff800000u));
    i32 nsv0 = 0;
    VECTORIZE for (i64 i = 0; i < arg1; ++i) {
      f32 x0 = arg0[o0 + i];
      { const i32 o = order_f32(x0); sv0 = o > sv0 ? o : sv0; nsv0 |= x0 != x0; }
    }
    f32 v0 = nsv0 ? AS_F32(0x7fc00000u) : unorder_f32(sv0);
    f64 sv3 = 0.0;
    VECTORIZE for (i64 i = 0; i < arg1; ++i) {
      f32 x0 = arg0[o0 + i];
      f32 v1_2 = x0 - v0;
      f32 v1 = v1_2;
      f32 v2_1 = exp_f32(v1);
      f32 v2 = v2_1;
      { ANY_ORDER sv3 = sv3 + (f64)v2; }
    }
    f32 v3 = (f32)sv3;
    VECTORIZE for (i64 i = 0; i < arg1; ++i) {
      f32 x0 = arg0[o0 + i];
      f32 v1_2 = x0 - v0;
      f32 v1 = v1_2;
      f32 v2_1 = exp_f32(v1);
      f32 v2 = v2_1;
      f32 v4_2 = v2 / v3;
      f32 v4 = v4_2;
      arg5[row * arg1 + i] = v4;
    }
  }
}
