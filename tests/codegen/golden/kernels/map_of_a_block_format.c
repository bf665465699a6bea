// k * 2

// --- OpenCL
// workspace 1024 bytes
// kernel0<1x1x1 of 256x1x1>(input0, workspace+0, 4, 8, 1, 1, 32)
// kernel1<1x1x1 of 8x1x1>(workspace+0, workspace+512, 32, 2)
// kernel2<1x1x1 of 256x1x1>(workspace+512, output0, 4, 8, 1, 1, 64)

// calls block_decode
KERNEL(256, 1, 1) kernel0(GLOBAL const u8* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    const i64 column = j % arg3, row = j / arg3 % arg2, matrix = j / (arg3 * arg2), place = column % 16;
    const i64 tile = ((matrix * arg4 + row / 32) * arg5 + column / 32) * 1088;
    const i64 face_row = (row % 32 / 16 * 2 + column % 32 / 16) * 16 + row % 16;
    const i64 elements = tile + 64 + face_row * 16;
    arg1[j] = block_decode((i32)arg0[tile + face_row], (u32)arg0[elements + place], 7);
  }
}

KERNEL(8, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, f32 arg3) {
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 4; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 4;
    VARRAY(f32, 4, p0);
    if (whole) { VLOAD(f32, 4, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 x0 = p0[l];
      f32 v0_2 = x0 * arg3;
      f32 v0 = v0_2;
      q0[l] = v0;
    }
    if (whole) { VSTORE(f32, 4, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// calls block_encode
KERNEL(256, 1, 1) kernel2(GLOBAL const f32* RESTRICT arg0, GLOBAL u8* RESTRICT arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6) {
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    const i64 face_row = j % 64, tile = j / 64, place_c = tile % arg5, place_r = tile / arg5 % arg4, matrix = tile / (arg5 * arg4);
    const i64 face = face_row / 16, row = place_r * 32 + face / 2 * 16 + face_row % 16, column = place_c * 32 + face % 2 * 16;
    i32 shared = 0;
    f32 x[16];
    for (i32 e = 0; e < 16; ++e) {
      x[e] = row < arg2 && column + e < arg3 ? arg0[(matrix * arg2 + row) * arg3 + column + e] : 0.0f;
      const i32 exponent = (i32)((AS_U32(x[e]) >> 23) & 0xffu);
      shared = exponent > shared ? exponent : shared;
    }
    arg1[tile * 1088 + face_row] = (u8)shared;
    const i64 elements = tile * 1088 + 64 + face_row * 16;
    for (i32 e = 0; e < 16; ++e) arg1[elements + e] = (u8)block_encode(x[e], shared, 7);
  }
}

// --- CUDA
// workspace 1024 bytes
// kernel0<1x1x1 of 256x1x1>(input0, workspace+0, 4, 8, 1, 1, 32)
// kernel1<1x1x1 of 8x1x1>(workspace+0, workspace+512, 32, 2)
// kernel2<1x1x1 of 256x1x1>(workspace+512, output0, 4, 8, 1, 1, 64)

// calls block_decode
KERNEL(256, 1, 1) kernel0(GLOBAL const u8* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6) {
  STARTED;
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    const i64 column = j % arg3, row = j / arg3 % arg2, matrix = j / (arg3 * arg2), place = column % 16;
    const i64 tile = ((matrix * arg4 + row / 32) * arg5 + column / 32) * 1088;
    const i64 face_row = (row % 32 / 16 * 2 + column % 32 / 16) * 16 + row % 16;
    const i64 elements = tile + 64 + face_row * 16;
    arg1[j] = block_decode((i32)arg0[tile + face_row], (u32)arg0[elements + place], 7);
  }
}

KERNEL(8, 1, 1) kernel1(GLOBAL const f32* RESTRICT arg0, GLOBAL f32* RESTRICT arg1, i32 arg2, f32 arg3) {
  STARTED;
  i32 o0 = 0;
  i32 o1 = 0;
  for (i32 i = ((i32)group_id(0) * 8 + local_id(0)) * 4; i < arg2; i = arg2) {
    const i32 whole = arg2 - i >= 4;
    VARRAY(f32, 4, p0);
    if (whole) { VLOAD(f32, 4, p0, arg0 + o0 + i); }
    else for (i32 l = 0; l < 4; ++l) p0[l] = i + l < arg2 ? arg0[o0 + i + l] : 0;
    VARRAY(f32, 4, q0);
    UNROLL for (i32 l = 0; l < 4; ++l) {
      f32 x0 = p0[l];
      f32 v0_2 = x0 * arg3;
      f32 v0 = v0_2;
      q0[l] = v0;
    }
    if (whole) { VSTORE(f32, 4, q0, arg1 + o1 + i); }
    else for (i32 l = 0; l < 4; ++l) if (i + l < arg2) arg1[o1 + i + l] = q0[l];
  }
}

// calls block_encode
KERNEL(256, 1, 1) kernel2(GLOBAL const f32* RESTRICT arg0, GLOBAL u8* RESTRICT arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6) {
  STARTED;
  for (i64 j = (i64)group_id(0) * 256 + local_id(0); j < arg6; j += (i64)group_count(0) * 256) {
    const i64 face_row = j % 64, tile = j / 64, place_c = tile % arg5, place_r = tile / arg5 % arg4, matrix = tile / (arg5 * arg4);
    const i64 face = face_row / 16, row = place_r * 32 + face / 2 * 16 + face_row % 16, column = place_c * 32 + face % 2 * 16;
    i32 shared = 0;
    f32 x[16];
    for (i32 e = 0; e < 16; ++e) {
      x[e] = row < arg2 && column + e < arg3 ? arg0[(matrix * arg2 + row) * arg3 + column + e] : 0.0f;
      const i32 exponent = (i32)((AS_U32(x[e]) >> 23) & 0xffu);
      shared = exponent > shared ? exponent : shared;
    }
    arg1[tile * 1088 + face_row] = (u8)shared;
    const i64 elements = tile * 1088 + 64 + face_row * 16;
    for (i32 e = 0; e < 16; ++e) arg1[elements + e] = (u8)block_encode(x[e], shared, 7);
  }
}

// --- Tenstorrent
// workspace 1024 bytes
// kernel0<1x1x1 of 1x1x1>(input0, workspace+0, 4, 8, 1, 1, 32, 32)
// kernel1<1x1x1 of 1x1x1>(workspace+0, workspace+512, 32, 64, 2)
// kernel2<32x1x1 of 1x1x1>(workspace+512, output0, 4, 8, 1, 1, 64, 2)

// calls block_decode
KERNEL(1, 1, 1) kernel0(Global<const u8> arg0, Global<f32> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  const i64 first = (i64)group_id(0) * arg7, last = first + arg7 < arg6 ? first + arg7 : arg6;
  for (i64 j = first; j < last; ++j) {
    const i64 column = j % arg3, row = j / arg3 % arg2, matrix = j / (arg3 * arg2), place = column % 16;
    const i64 tile = ((matrix * arg4 + row / 32) * arg5 + column / 32) * 1088;
    const i64 face_row = (row % 32 / 16 * 2 + column % 32 / 16) * 16 + row % 16;
    const i64 elements = tile + 64 + face_row * 16;
    arg1[j] = block_decode((i32)arg0[tile + face_row], (u32)arg0[elements + place], 7);
  }
}

KERNEL(1, 1, 1) kernel1(Global<const f32> arg0, Global<f32> arg1, i64 arg2, i64 arg3, f32 arg4) {
  i64 first = (i64)group_id(0) * arg3, last = first + arg3 < arg2 ? first + arg3 : arg2;
  i64 o0 = 0;
  i64 o1 = 0;
  VECTORIZE for (i64 i = first; i < last; ++i) {
    f32 x0 = arg0[o0 + i];
    f32 v0_2 = x0 * arg4;
    f32 v0 = v0_2;
    arg1[o1 + i] = v0;
  }
}

// calls block_encode
KERNEL(1, 1, 1) kernel2(Global<const f32> arg0, Global<u8> arg1, i64 arg2, i64 arg3, i64 arg4, i64 arg5, i64 arg6, i64 arg7) {
  const i64 first = (i64)group_id(0) * arg7, last = first + arg7 < arg6 ? first + arg7 : arg6;
  for (i64 j = first; j < last; ++j) {
    const i64 face_row = j % 64, tile = j / 64, place_c = tile % arg5, place_r = tile / arg5 % arg4, matrix = tile / (arg5 * arg4);
    const i64 face = face_row / 16, row = place_r * 32 + face / 2 * 16 + face_row % 16, column = place_c * 32 + face % 2 * 16;
    i32 shared = 0;
    f32 x[16];
    for (i32 e = 0; e < 16; ++e) {
      x[e] = row < arg2 && column + e < arg3 ? arg0[(matrix * arg2 + row) * arg3 + column + e] : 0.0f;
      const i32 exponent = (i32)((AS_U32(x[e]) >> 23) & 0xffu);
      shared = exponent > shared ? exponent : shared;
    }
    arg1[tile * 1088 + face_row] = (u8)shared;
    const i64 elements = tile * 1088 + 64 + face_row * 16;
    for (i32 e = 0; e < 16; ++e) arg1[elements + e] = (u8)block_encode(x[e], shared, 7);
  }
}
