// Convolutions of 16-bit floats on a GPU's matrix units, which multiply 16 x 16 by 16 x 8 at once.
//
// A work-group computes a tile of pixels in some channels of the result, its warps up to 64 of either. It brings
// the patch of the input that the tile needs into local memory, kChannels channels at a time, each pixel's channels side by side,
// and multiplies it once for every place of the window: nothing is unfolded. A volume is so many planes, for each of which
// several planes of the input are multiplied one after the other. The weights were laid out by a first kernel so that
// a work-item reads its share of a 16 x 16 piece as one word of 16 bytes.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/primitives/primitives.h"

namespace tenon::emit {
namespace {

constexpr int kChannels = 32;
// Of a pixel in local memory: its channels, and as much again as keeps eight neighbours in different banks.
constexpr int kPixelBytes = kChannels * 2 + 16;
// Fewer channels leave most of a multiplication empty.
constexpr std::int64_t kLeastChannels = 16;

// A convolution over lines is one over images of one row, and one over images is one over volumes of one plane.
struct Extents {
  std::int64_t planes = 1, rows = 1, columns = 1;

  explicit Extents(const Shape& shape)
      : planes(shape.rank() == 5 ? shape[2] : 1),
        rows(shape.rank() >= 4 ? shape[shape.rank() - 2] : 1),
        columns(shape[shape.rank() - 1]) {}
  Extents(const Spatial& of, int rank, std::int64_t missing)
      : planes(rank == 3 ? of[0] : missing),
        rows(rank >= 2 ? of[static_cast<std::size_t>(rank) - 2] : missing),
        columns(of[static_cast<std::size_t>(rank) - 1]) {}
};

// The warps of a work-group: |outs| times |pixels| of them, each with 8 * |tiles| pixels. |resident|: how many work-groups
// have room for their registers on a multiprocessor.
struct Warps {
  int outs, pixels, tiles, resident;

  int threads() const { return 32 * outs * pixels; }
  std::int64_t tile() const { return 8 * tiles * pixels; }
};
constexpr Warps kManyChannels{2, 2, 8, 2}, kFewChannels{1, 4, 4, 3};

// Pixels of the result that a work-group computes, in one image or several, and of the input that it needs for them.
struct Tile {
  std::int64_t images, rows, columns, patch_rows, patch_columns;

  std::int64_t patch() const { return images * patch_rows * patch_columns; }
};

class MatrixConv {
 public:
  MatrixConv(const KernelTarget& target, const Dense& x, const Dense& weight, const ConvAttr& attr, const Dense& out)
      : target_(target),
        x_(x),
        weight_(weight),
        out_(out),
        rank_(x.shape.rank() - 2),
        groups_(attr.groups),
        in_(x.shape),
        result_(out.shape),
        window_(weight.shape),
        stride_(attr.stride, rank_, 1),
        dilation_(attr.dilation, rank_, 1),
        pad_(attr.pad_low, rank_, 0),
        channels_(weight.shape[1]),
        outs_(weight.shape[0] / attr.groups),
        out_tiles_(static_cast<int>(std::min<std::int64_t>(power_of_two_from(ceil_div(outs_, 16)), 4))),
        warps_(kFewChannels),
        tile_(best_tile()) {
    if (outs_ <= 64) return;
    // Reads less, and makes half as many work-groups.
    const Tile few = tile_;
    warps_ = kManyChannels;
    tile_ = best_tile();
    if (fits(tile_) && tiles(tile_) * groups_ * out_blocks() >= target.compute_units) return;
    warps_ = kFewChannels;
    tile_ = few;
  }

  bool is_possible() const {
    return fits(tile_) && channels_ >= kLeastChannels && outs_ >= 8 && piece_count() < (1 << 24) && images() <= 65535 &&
           groups_ * out_blocks() <= 65535 && result_.rows * result_.columns < (1 << 30);
  }

  std::vector<Launch> run(const Scratch& scratch) {
    const int pieces = scratch(static_cast<std::uint64_t>(piece_count() + 1) * 512);  // one more is fetched, and not used
    return {lay_out_weights(pieces), multiply(pieces)};
  }

 private:
  bool is_volume() const { return rank_ == 3; }
  // Planes of the result.
  std::int64_t images() const { return x_.shape[0] * result_.planes; }
  std::int64_t out_blocks() const { return ceil_div(outs_, 16 * out_tiles_ * warps_.outs); }
  std::int64_t channel_pieces() const { return ceil_div(channels_, kChannels) * (kChannels / 16); }
  std::int64_t out_pieces() const { return out_blocks() * warps_.outs * out_tiles_; }
  std::int64_t taps() const { return window_.rows * window_.columns; }
  // Of 16 x 16 weights: [group][channel of the result / 16][plane of the window][channel / 32][row of the window][channel / 16 %
  // 2][column of the window], the order in which they are used.
  std::int64_t piece_count() const { return groups_ * out_pieces() * window_.planes * channel_pieces() * taps(); }

  Tile tile(std::int64_t images, std::int64_t rows) const {
    Tile t{images, rows, warps_.tile() / images / rows, 0, 0};
    t.patch_rows = (t.rows - 1) * stride_.rows + (window_.rows - 1) * dilation_.rows + 1;
    t.patch_columns = (t.columns - 1) * stride_.columns + (window_.columns - 1) * dilation_.columns + 1;
    return t;
  }
  std::int64_t tiles(const Tile& t) const {
    return ceil_div(images(), t.images) * ceil_div(result_.rows, t.rows) * ceil_div(result_.columns, t.columns);
  }
  bool fits(const Tile& t) const {
    return t.patch() * kPixelBytes <= static_cast<std::int64_t>(target_.local_bytes) &&
           t.images * x_.shape.elements() / x_.shape[0] < std::int64_t{1} << 31;
  }
  // The one that covers the result with the least waste, then the one that reads least. Eight pixels side by side stay together.
  Tile best_tile() const {
    Tile best = tile(1, 8);
    const auto cost = [&](const Tile& t) { return std::tuple(!fits(t), tiles(t), t.patch()); };
    for (std::int64_t images = 1; images <= (is_volume() ? 1 : 8); images *= 2)
      for (std::int64_t rows = 1; images * rows * 8 <= warps_.tile(); rows *= 2)
        if (const Tile t = tile(images, rows); cost(t) < cost(best)) best = t;
    return best;
  }

  Launch lay_out_weights(int pieces) {
    Parameters p(true);
    Body body(target_, p);
    const std::string in = p.input(weight_.stored, weight_.slot), to = p.buffer("u32", pieces);
    // A work-item of the second kernel has two neighbours of rows r and r + 8 at columns c and c + 8.
    std::string text = fmt::format("enum {{ TAP_PLANES = {}, TAP_ROWS = {}, TAP_COLUMNS = {}, TAPS = {} }};\n", window_.planes,
                                   window_.rows, window_.columns, taps());
    for (const auto& [name, value] :
         {std::pair{"outs", outs_}, {"channels", channels_}, {"channel_pieces", channel_pieces()}, {"out_pieces", out_pieces()}})
      text += fmt::format("const u32 {} = (u32){};\n", name, p.whole_number(value));
    text += R"(
u32 rest = (u32)j;
const u32 word = rest % 4, item = rest / 4 % 32;
rest /= 128;
const u32 tx = rest % TAP_COLUMNS;
rest /= TAP_COLUMNS;
const u32 half = rest % 2;
rest /= 2;
u32 tap = rest % TAP_ROWS * TAP_COLUMNS + tx;
rest /= TAP_ROWS;
const u32 channel_piece = rest % (channel_pieces / 2) * 2 + half;
rest /= channel_pieces / 2;
tap += rest % TAP_PLANES * TAPS;
rest /= TAP_PLANES;
enum { ALL_TAPS = TAP_PLANES * TAPS };
const u32 o = rest % out_pieces * 16 + item / 4 + word % 2 * 8, c = channel_piece * 16 + item % 4 * 2 + word / 2 * 8;
)";
    text += "const i64 from = ((i64)(rest / out_pieces * outs + o) * channels + c) * ALL_TAPS + tap;\n";
    text += fmt::format(
        "const u32 low = o < outs && c < channels ? {0}[from] : 0, high = o < outs && c + 1 < channels ? {0}[from + ALL_TAPS] : "
        "0;\n",
        in);
    text += fmt::format("{}[j] = low | high << 16;\n", to);
    return emit_items(body, piece_count() * 128, 1, text);
  }

  Launch multiply(int pieces) {
    Parameters p(true);
    Body body(target_, p);
    const std::string in = p.input(x_.stored, x_.slot), weights = p.buffer("const u32", pieces),
                      to = p.output(out_.stored, out_.slot);
    const std::int64_t tiles_across = ceil_div(result_.columns, tile_.columns), tiles_down = ceil_div(result_.rows, tile_.rows);
    std::string text;
    const auto constant = [&](const char* name, std::int64_t value) {
      text += fmt::format("enum {{ {} = {} }};\n", name, value);
    };
    constant("THREADS", warps_.threads());
    constant("OUT_TILES", out_tiles_);
    constant("OUT_PARTS", warps_.outs);
    constant("PIXEL_TILES", warps_.tiles);
    constant("IMAGES", tile_.images);
    constant("ROWS", tile_.rows);
    constant("COLUMNS", tile_.columns);
    constant("PATCH_ROWS", tile_.patch_rows);
    constant("PATCH_COLUMNS", tile_.patch_columns);
    constant("TAP_PLANES", window_.planes);
    constant("TAP_ROWS", window_.rows);
    constant("TAP_COLUMNS", window_.columns);
    constant("STRIDE_Z", stride_.planes);
    constant("STRIDE_Y", stride_.rows);
    constant("STRIDE_X", stride_.columns);
    constant("STEP_Z", dilation_.planes);
    constant("STEP_Y", dilation_.rows);
    constant("STEP_X", dilation_.columns);
    const auto number = [&](const char* name, std::int64_t value) {
      text += fmt::format("const i32 {} = (i32){};\n", name, p.whole_number(value));
    };
    // Known for images, so that their kernels have no loop for it.
    const auto depth = [&](const char* name, std::int64_t value) { is_volume() ? number(name, value) : constant(name, value); };
    depth("depth", in_.planes);
    depth("out_depth", result_.planes);
    depth("pad_z", pad_.planes);
    number("images", images());
    number("height", in_.rows);
    number("width", in_.columns);
    number("out_height", result_.rows);
    number("out_width", result_.columns);
    number("pad_y", pad_.rows);
    number("pad_x", pad_.columns);
    number("channels", channels_);
    number("outs", outs_);
    number("groups", groups_);
    number("out_blocks", out_blocks());
    number("tiles_across", tiles_across);
    text += fmt::format("const u16* const x = {};\nconst u32* const pieces = {};\n{}* const result = {};\n", in, weights,
                        element(), to);
    text += kBringPatch + multiplications(body) + store(body);
    return make_launch(body, {warps_.threads(), 1, 1},
                       {static_cast<std::uint32_t>(tiles_across * tiles_down), static_cast<std::uint32_t>(groups_ * out_blocks()),
                        static_cast<std::uint32_t>(ceil_div(images(), tile_.images))},
                       text, warps_.resident);
  }

  static constexpr const char* kBringPatch = R"(
const i32 item = local_id(0) % 32, warp = local_id(0) / 32;
const i32 part = warp % OUT_PARTS, first_pixel = warp / OUT_PARTS * (PIXEL_TILES * 8);
const i32 top = group_id(0) / tiles_across * ROWS, left = group_id(0) % tiles_across * COLUMNS;
const i32 group = group_id(1) / out_blocks, first_out = (group_id(1) % out_blocks * OUT_PARTS + part) * (OUT_TILES * 16);
const i32 channel_pieces = (channels + 31) / 32 * 2, first_image = group_id(2) * IMAGES;
const i32 plane = height * width, volume = depth * plane;  // of the input
const i32 out_plane = group_id(2) % (u32)out_depth;        // 0 for images
const i64 first_volume = first_image / out_depth;
const u16* const image = x + (first_volume * groups + group) * channels * (i64)volume;
enum { TILE = ROWS * COLUMNS, PATCH_PLANE = PATCH_ROWS * PATCH_COLUMNS, PATCH = IMAGES * PATCH_PLANE, TAPS = TAP_ROWS * TAP_COLUMNS };

// The pixels of the patch that this work-item brings.
LOCAL uint4 patch[PATCH * 5];
enum { SHARE = (PATCH + THREADS - 1) / THREADS };
i32 place[SHARE];
UNROLL for (i32 s = 0; s < SHARE; ++s) {
  const i32 pixel = local_id(0) + s * THREADS, in_image = IMAGES > 1 ? pixel / PATCH_PLANE : 0;
  const i32 py = top * STRIDE_Y - pad_y + pixel % PATCH_PLANE / PATCH_COLUMNS, px = left * STRIDE_X - pad_x + pixel % PATCH_COLUMNS;
  const i32 is_inside = pixel < PATCH && first_image + in_image < images && py >= 0 && py < height && px >= 0 && px < width;
  place[s] = is_inside ? in_image * groups * channels * volume + py * width + px : -1;
}
// Where this work-item's rows of the 8 x 8 matrices begin: 16 pixels and 16 channels at a time.
u32 from[PIXEL_TILES / 2];
UNROLL for (i32 q = 0; q < PIXEL_TILES / 2; ++q) {
  const i32 pixel = first_pixel + q * 16 + item / 16 * 8 + item % 8;
  const i32 where = pixel / TILE * PATCH_PLANE + pixel % TILE / COLUMNS * STRIDE_Y * PATCH_COLUMNS + pixel % COLUMNS * STRIDE_X;
  from[q] = (u32)__cvta_generic_to_shared(patch + where * 5 + item / 8 % 2);
}
const uint4* weight[OUT_TILES];
UNROLL for (i32 m = 0; m < OUT_TILES; ++m)
  weight[m] = (const uint4*)pieces + ((i64)(group * out_blocks * OUT_PARTS * OUT_TILES + first_out / 16 + m) * TAP_PLANES * channel_pieces * TAPS) * 32 + item;
uint4 a[OUT_TILES];
UNROLL for (i32 m = 0; m < OUT_TILES; ++m) a[m] = *weight[m];

f32 sum[OUT_TILES][PIXEL_TILES][4];
UNROLL for (i32 m = 0; m < OUT_TILES; ++m) UNROLL for (i32 n = 0; n < PIXEL_TILES; ++n) UNROLL for (i32 e = 0; e < 4; ++e) sum[m][n][e] = 0.0f;

for (i32 tz = 0; tz < TAP_PLANES; ++tz) {
const i32 pz = out_plane * STRIDE_Z - pad_z + tz * STEP_Z;
if (pz < 0 || pz >= depth) {
  UNROLL for (i32 m = 0; m < OUT_TILES; ++m) a[m] = *(weight[m] += channel_pieces * TAPS * 32);
  continue;
}
const u16* const source = image + pz * plane;
for (i32 channel = 0; channel < channels; channel += 32) {
  if (tz > 0 || channel > 0) BARRIER;
  UNROLL for (i32 s = 0; s < SHARE; ++s) {
    const i32 pixel = local_id(0) + s * THREADS;
    if (pixel >= PATCH) break;
    UNROLL for (i32 eight = 0; eight < 4; ++eight) {
      u32 word[4];
      UNROLL for (i32 w = 0; w < 4; ++w) {
        const i32 c = channel + eight * 8 + w * 2;
        const u32 low = place[s] >= 0 && c < channels ? source[(i64)c * volume + place[s]] : 0;
        const u32 high = place[s] >= 0 && c + 1 < channels ? source[(i64)(c + 1) * volume + place[s]] : 0;
        word[w] = low | high << 16;
      }
      patch[pixel * 5 + eight] = make_uint4(word[0], word[1], word[2], word[3]);
    }
  }
  BARRIER;
)";

  // Once for each row of the window; the rest of the loops becomes straight code. Weights are fetched one step ahead.
  std::string multiplications(Body& body) const {
    const std::string multiply = x_.stored == DType::f16 ? "multiply_matrices_f16" : "multiply_matrices_bf16";
    body.need(multiply);
    body.need("load_matrices");
    return fmt::format(R"(
  UNROLL_BY(1) for (i32 ty = 0; ty < TAP_ROWS; ++ty) UNROLL for (i32 half = 0; half < 2; ++half) UNROLL for (i32 tx = 0; tx < TAP_COLUMNS; ++tx) {{
    const u32 shift = ((ty * STEP_Y * PATCH_COLUMNS + tx * STEP_X) * 5 + half * 2) * 16;
    u32 b[PIXEL_TILES / 2][4];
    UNROLL for (i32 q = 0; q < PIXEL_TILES / 2; ++q) load_matrices(b[q], from[q] + shift);
    uint4 next[OUT_TILES];
    UNROLL for (i32 m = 0; m < OUT_TILES; ++m) next[m] = *(weight[m] += 32);
    UNROLL for (i32 m = 0; m < OUT_TILES; ++m) {{
      UNROLL for (i32 n = 0; n < PIXEL_TILES; ++n) {}(sum[m][n], a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
      a[m] = next[m];
    }}
  }}
}}
}}
)",
                       multiply);
  }

  const char* element() const { return out_.stored == DType::f32 ? "f32" : "u16"; }

  // A work-item has rows r and r + 8, of two neighbouring pixels each.
  std::string store(Body& body) const {
    const std::string low = body.to_store(out_.stored, "sum[m][n][e * 2]"),
                      high = body.to_store(out_.stored, "sum[m][n][e * 2 + 1]");
    const bool is_single = out_.stored == DType::f32;
    const std::string_view both = is_single ? "*(float2*)(row + ry * out_width + rx) = make_float2(low, high);"
                                            : "*(u32*)(row + ry * out_width + rx) = low | high << 16;";
    return fmt::format(R"(
UNROLL for (i32 m = 0; m < OUT_TILES; ++m) UNROLL for (i32 e = 0; e < 2; ++e) {{
  const i32 o = first_out + m * 16 + item / 4 + e * 8;
  if (o >= outs) continue;
  {2}* const channel = result + (((first_volume * groups + group) * outs + o) * out_depth + out_plane) * out_height * out_width;
  UNROLL for (i32 n = 0; n < PIXEL_TILES; ++n) {{
    const i32 pixel = first_pixel + n * 8 + item % 4 * 2, in_image = IMAGES > 1 ? pixel / TILE : 0;
    const i32 ry = top + pixel % TILE / COLUMNS, rx = left + pixel % COLUMNS;
    if (first_image + in_image >= images || ry >= out_height || rx >= out_width) continue;
    {2}* const row = channel + (i64)in_image * groups * outs * out_height * out_width;
    const {3} low = {0}, high = {1};
    if (out_width % 2 == 0) {{
      {4}
    }} else {{
      row[ry * out_width + rx] = ({2})low;
      if (rx + 1 < out_width) row[ry * out_width + rx + 1] = ({2})high;
    }}
  }}
}}
)",
                       low, high, element(), is_single ? "f32" : "u32", both);
  }

  const KernelTarget& target_;
  const Dense &x_, &weight_, &out_;
  int rank_;
  std::int64_t groups_;
  Extents in_, result_, window_, stride_, dilation_, pad_;
  std::int64_t channels_, outs_;  // of a group
  int out_tiles_;                 // of 16 channels of the result, in a warp
  Warps warps_;
  Tile tile_;
};

}  // namespace

std::optional<std::vector<Launch>> emit_matrix_conv(const KernelTarget& target, const Dense& x, const Dense& weight,
                                                    const ConvAttr& attr, const Dense& out, const Scratch& scratch,
                                                    int& channels_last) {
  const bool is_narrow = x.stored == DType::f16 || x.stored == DType::bf16;
  const bool can_store = out.stored == x.stored || out.stored == DType::f32;
  if (!target.has_matrix_units || !is_narrow || weight.stored != x.stored || !can_store || out.shape.elements() == 0 ||
      weight.shape.elements() == 0)
    return std::nullopt;
  if (auto launches = emit_warpgroup_conv(target, x, weight, attr, out, scratch, channels_last)) return launches;
  MatrixConv conv(target, x, weight, attr, out);
  if (!conv.is_possible()) return std::nullopt;
  return conv.run(scratch);
}

}  // namespace tenon::emit
