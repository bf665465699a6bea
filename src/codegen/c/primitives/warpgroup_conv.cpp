// Convolutions of 16-bit floats over images on cards of compute capability 9.0, as products of warpgroups (wgmma).
//
// x is first copied so that a pixel's channels are side by side, and the weights so that a result's are, for each place of the
// window. The result is then weights times pixels: a work-group computes tiles of OUTS channels by PIXELS pixels. One warpgroup
// copies 64 channels of both at a time into local memory, straight from where the window's place falls, with zeros outside x; two
// multiply. Rows there are 128 bytes, whose 16-byte chunks are exchanged by the row's number (the 128-byte swizzle).
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/primitives/primitives.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

constexpr int kOuts = 128, kThreads = 384;
constexpr std::int64_t kFewestOuts = 96;  // fewer leave too much of a tile empty
constexpr std::size_t kLocalBytes = 200 * 1024;

constexpr std::string_view kText = R"(extern __shared__ unsigned char memory[];
const u32 w_at = ((u32)__cvta_generic_to_shared(memory) + 1023) & ~1023u, x_at = w_at + STAGES * OUTS * 128;
const u32 full = x_at + STAGES * PIXELS * 128, empty = full + STAGES * 8;
const i32 t = threadIdx.x, lane = t & 31, group = SHUFFLE_FROM(t >> 7, 0), channels = (i32)$CHANNELS, outs = (i32)$OUT_COUNT, blocks = (i32)$BLOCKS;
const i32 plane = (i32)$OUT_HEIGHT * (i32)$OUT_WIDTH, pixels = (i32)$IMAGES * plane;
const auto wait = [](const u32 barrier, const u32 phase) {
asm volatile("{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@!done bra AGAIN;\n}"
:: "r"(barrier), "r"(phase) : "memory");
};
if (t < 2 * STAGES)
asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(full + t * 8), "r"(t < STAGES ? 128 : 8) : "memory");
BARRIER;
const auto next = [](u32& stage, u32& phase) { if (++stage == STAGES) { stage = 0; phase ^= 1; } };
if (group == 2) {
asm volatile("setmaxnreg.dec.sync.aligned.u32 104;");
u32 stage = 0, phase = 1;
for (i32 work = blockIdx.x; work < (i32)$WORK; work += gridDim.x) {
const i32 first_out = work % blocks * OUTS, first_pixel = work / blocks * PIXELS;
const i32 row = (t & 127) / 8, column = t % 8, height = (i32)$HEIGHT, width = (i32)$WIDTH;
i32 from[PIXELS / 16], place[PIXELS / 16];
UNROLL for (i32 i = 0; i < PIXELS / 16; ++i) {
const i32 pixel = first_pixel + row + i * 16, image = pixel / plane, rest = pixel % plane;
const i32 y = rest / (i32)$OUT_WIDTH * STRIDE_Y - (i32)$PAD_Y, x = rest % (i32)$OUT_WIDTH * STRIDE_X - (i32)$PAD_X;
from[i] = ((image * height + y) * width + x) * channels + column * 8;
place[i] = pixel < pixels ? (i32)((u32)y << 16 | (x & 0xffff)) : (i32)0x80000000u;
}
const u32 chunk = row * 128 + ((column ^ row) & 7) * 16;
for (i32 tap = 0; tap < TAP_ROWS * TAP_COLUMNS; ++tap) {
const i32 dy = tap / TAP_COLUMNS * STEP_Y, dx = tap % TAP_COLUMNS * STEP_X;
u32 is_in = 0;
UNROLL for (i32 i = 0; i < PIXELS / 16; ++i)
is_in |= (u32)((u32)((place[i] >> 16) + dy) < (u32)height && (u32)((short)place[i] + dx) < (u32)width) << i;
const u16* const x = $X + (dy * width + dx) * channels;
const u16* const w = $W + ((i64)tap * outs + first_out + row) * channels + column * 8;
for (i32 c = 0; c < channels; c += 64) {
wait(empty + stage * 8, phase);
const i32 has_channels = c + column * 8 < channels;
UNROLL for (i32 i = 0; i < OUTS; i += 16) {
const i32 bytes = has_channels && first_out + row + i < outs ? 16 : 0;
asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
:: "r"(w_at + stage * OUTS * 128 + chunk + i * 128), "l"(bytes ? w + i * channels + c : $W), "r"(bytes) : "memory");
}
UNROLL for (i32 i = 0; i < PIXELS / 16; ++i) {
const i32 bytes = has_channels && (is_in >> i & 1) ? 16 : 0;
asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
:: "r"(x_at + stage * PIXELS * 128 + chunk + i * 2048), "l"(bytes ? x + from[i] + c : $X), "r"(bytes) : "memory");
}
asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(full + stage * 8) : "memory");
next(stage, phase);
}
}
}
return;
}
asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
u32 stage = 0, phase = 0;
for (i32 work = blockIdx.x; work < (i32)$WORK; work += gridDim.x) {
const i32 first_out = work % blocks * OUTS, first_pixel = work / blocks * PIXELS;
f32 sum[PIXELS / 2];
const auto release = [&](const u32 of) { if (lane == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(empty + of * 8) : "memory"); };
const auto matrix = [](const u32 at) -> u64 { return 1ul << 62 | 64ul << 32 | 1ul << 16 | at / 16; };
const i32 steps = TAP_ROWS * TAP_COLUMNS * ((channels + 63) / 64);
UNROLL_BY(1) for (i32 step = 0; step < steps; ++step) {
wait(full + stage * 8, phase);
// What was copied is visible to the matrix units only after a fence.
asm volatile("fence.proxy.async.shared::cta;\nwgmma.fence.sync.aligned;" ::: "memory");
const u64 w = matrix(w_at + (stage * OUTS + group * 64) * 128), x = matrix(x_at + stage * PIXELS * 128);
UNROLL for (i32 e = 0; e < 4; ++e)
asm volatile("{\n.reg .pred is_added;\nsetp.ne.b32 is_added, %$ADDED, 0;\n"
"wgmma.mma_async.sync.aligned.m64n$PIXELSk16.f32.$TYPE.$TYPE {$NUMBERS}, %$LEFT, %$RIGHT, is_added, 1, 1, 0, 0;\n}"
: $REGISTERS : "l"(w + e * 2), "l"(x + e * 2), "r"(step + e));
asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
if (step > 0) release(stage == 0 ? STAGES - 1 : stage - 1);
next(stage, phase);
}
asm volatile("wgmma.wait_group.sync.aligned 0;" : $REGISTERS :: "memory");
release(stage == 0 ? STAGES - 1 : stage - 1);
$STORE}
)";

constexpr std::string_view kStore16 = R"(UNROLL for (i32 i = 0; i < PIXELS / 32; ++i) {
const i32 odd = lane & 1, upper = lane & 2, pixel = first_pixel + i * 32 + (lane & 3) * 8;
u16* const into = $RESULT + (i64)(pixel / plane) * outs * plane + pixel % plane;
UNROLL for (i32 r = 0; r < 2; ++r) {
// Four lanes have a pair each of four times eight pixels; then each has eight pixels.
u32 x[4];
UNROLL for (i32 c = 0; c < 4; ++c)
asm("cvt.rn.$TYPEx2.f32 %0, %1, %2;" : "=r"(x[c]) : "f"(sum[(i * 4 + c) * 4 + r * 2 + 1]), "f"(sum[(i * 4 + c) * 4 + r * 2]));
const u32 y0 = SHUFFLE(odd ? x[0] : x[1], 1), y1 = SHUFFLE(odd ? x[2] : x[3], 1);
if (odd) { x[0] = y0; x[2] = y1; } else { x[1] = y0; x[3] = y1; }
const u32 z0 = SHUFFLE(upper ? x[0] : x[2], 2), z1 = SHUFFLE(upper ? x[1] : x[3], 2);
const i32 out = first_out + group * 64 + ((t & 127) >> 5) * 16 + (lane >> 2) + r * 8;
if (out >= outs || pixel >= pixels) continue;
const uint4 eight = upper ? make_uint4(z0, z1, x[2], x[3]) : make_uint4(x[0], x[1], z0, z1);
if (plane % 8 == 0) {
*(uint4*)(into + (i64)out * plane) = eight;
} else {
UNROLL_BY(1) for (i32 e = 0; e < 8 && pixel + e < pixels; ++e) {
const u32 two = e < 2 ? eight.x : e < 4 ? eight.y : e < 6 ? eight.z : eight.w;
$RESULT[((i64)((pixel + e) / plane) * outs + out) * plane + (pixel + e) % plane] = (u16)(two >> e % 2 * 16);
}
}
}
}
)";

// Four lanes have eight neighbouring pixels.
constexpr std::string_view kStore32 = R"(UNROLL for (i32 i = 0; i < PIXELS / 8; ++i) {
const i32 pixel = first_pixel + i * 8 + (lane & 3) * 2;
f32* const into = $RESULT + (i64)(pixel / plane) * outs * plane + pixel % plane;
UNROLL for (i32 r = 0; r < 2; ++r) {
const i32 out = first_out + group * 64 + ((t & 127) >> 5) * 16 + (lane >> 2) + r * 8;
if (out >= outs || pixel >= pixels) continue;
const f32 low = sum[i * 4 + r * 2], high = sum[i * 4 + r * 2 + 1];
if (plane % 2 == 0) {
*(float2*)(into + (i64)out * plane) = make_float2(low, high);
} else {
into[(i64)out * plane] = low;
if (pixel + 1 < pixels) $RESULT[((i64)((pixel + 1) / plane) * outs + out) * plane + (pixel + 1) % plane] = high;
}
}
}
)";

}  // namespace

std::optional<std::vector<Launch>> emit_warpgroup_conv(const KernelTarget& target, const Dense& x, const Dense& weight,
                                                       const ConvAttr& attr, const Dense& out, const Scratch& scratch,
                                                       int& channels_last) {
  constexpr std::int64_t kFarthest = 1 << 14, kMany = std::int64_t{1} << 31;
  if (!target.has_warpgroup_products || x.shape.rank() != 4 || attr.groups != 1) return std::nullopt;
  const std::int64_t images = x.shape[0], channels = x.shape[1], height = x.shape[2], width = x.shape[3], outs = weight.shape[0];
  const std::int64_t rows = weight.shape[2], columns = weight.shape[3], plane = out.shape[2] * out.shape[3];
  if (channels % 8 != 0 || channels < 64 || outs < kFewestOuts) return std::nullopt;
  if (height > kFarthest || width > kFarthest || attr.pad_low[0] > kFarthest || attr.pad_low[1] > kFarthest ||
      x.shape.elements() >= kMany || out.shape.elements() >= kMany)
    return std::nullopt;
  // Tiles in as few rounds as possible; a large one reads less. Weights of 128 results count as 64 pixels.
  const std::int64_t blocks = ceil_div(outs, kOuts);
  int pixels = 0;
  std::int64_t work = 0, least = kMany;
  for (const int each : {256, 192, 128, 64}) {
    const std::int64_t tiles = ceil_div(images * plane, each) * blocks;
    const std::int64_t cost = ceil_div(tiles, target.compute_units) * (each + 64);
    if (cost < least) std::tie(pixels, work, least) = std::tuple(each, tiles, cost);
  }
  constexpr std::int64_t kFewestTiles = 8;
  if (work < kFewestTiles) return std::nullopt;
  std::vector<Launch> launches;
  if (channels_last < 0) {
    const Shape shape{images, height * width, channels};
    channels_last = scratch(static_cast<std::uint64_t>(shape.elements()) * 2);
    launches.push_back(emit_copy(target, shape, {x.slot, x.stored, 0, {channels * height * width, 1, height * width}},
                                 dense_access(channels_last, x.stored, shape)));
  }
  const Shape turned{rows * columns, outs, channels};
  const int weights = scratch(static_cast<std::uint64_t>(turned.elements()) * 2);
  launches.push_back(emit_copy(target, turned, {weight.slot, weight.stored, 0, {1, channels * rows * columns, rows * columns}},
                               dense_access(weights, weight.stored, turned)));
  const int stages = static_cast<int>(kLocalBytes / (static_cast<std::size_t>(kOuts + pixels) * 128)), sums = pixels / 2;
  Parameters p(true);
  Body body(target, p);
  std::string numbers, registers;
  for (int i = 0; i < sums; ++i) {
    numbers += fmt::format("{}%{}", i > 0 ? ", " : "", i);
    registers += fmt::format("{}\"+f\"(sum[{}])", i > 0 ? ", " : "", i);
  }
  using Numbers = std::initializer_list<std::pair<const char*, std::int64_t>>;
  std::map<std::string, std::string> names{{"NUMBERS", numbers}, {"REGISTERS", registers}};
  for (const auto& [name, value] : Numbers{{"CHANNELS", channels},
                                           {"OUT_COUNT", outs},
                                           {"BLOCKS", blocks},
                                           {"IMAGES", images},
                                           {"HEIGHT", height},
                                           {"WIDTH", width},
                                           {"OUT_HEIGHT", out.shape[2]},
                                           {"OUT_WIDTH", out.shape[3]},
                                           {"PAD_Y", attr.pad_low[0]},
                                           {"PAD_X", attr.pad_low[1]},
                                           {"WORK", work}})
    names[name] = p.whole_number(value);
  for (const auto& [name, value] : Numbers{{"PIXELS", pixels}, {"LEFT", sums}, {"RIGHT", sums + 1}, {"ADDED", sums + 2}})
    names[name] = fmt::to_string(value);
  names["X"] = p.input(x.stored, channels_last);
  names["W"] = p.input(x.stored, weights);
  names["RESULT"] = p.output(out.stored, out.slot);
  names["TYPE"] = x.stored == DType::bf16 ? "bf16" : "f16";
  const std::string head = fmt::format(
      "enum {{ OUTS = {}, PIXELS = {}, STAGES = {}, TAP_ROWS = {}, TAP_COLUMNS = {}, STRIDE_Y = {}, STRIDE_X = {}, STEP_Y = {}, "
      "STEP_X = {} }};\n",
      kOuts, pixels, stages, rows, columns, attr.stride[0], attr.stride[1], attr.dilation[0], attr.dilation[1]);
  const auto groups = static_cast<std::uint32_t>(std::min<std::int64_t>(work, target.compute_units));
  names["STORE"] = filled(out.stored == DType::f32 ? kStore32 : kStore16, names);
  Launch launch = make_launch(body, {kThreads, 1, 1}, {groups, 1, 1}, head + filled(kText, names));
  launch.kernel.dynamic_bytes = 1024 + stages * ((kOuts + pixels) * 128 + 16);
  launch.kernel.needs_warpgroup_products = true;
  launches.push_back(std::move(launch));
  return launches;
}

}  // namespace tenon::emit
