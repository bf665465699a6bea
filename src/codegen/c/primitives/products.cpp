#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/primitives/planes.h"
#include "codegen/c/primitives/primitives.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::string multiply_add(DType compute, const std::string& a, const std::string& b, const std::string& sum) {
  if (is_float(compute)) return fmt::format("fma({}, {}, {})", a, b, sum);
  const char* wrap = element_bytes(compute) == 8 ? "u64" : "u32";
  return fmt::format("({})(({}){} + ({}){} * ({}){})", variable_type(compute), wrap, sum, wrap, a, wrap, b);
}

// --- Matrix products ---
class MatMulEmitter {
 public:
  MatMulEmitter(const KernelTarget& target, const MatrixSize& size, DType compute, const Matrix& a, const Matrix& b,
                const Matrix& out)
      : target_(target),
        size_(size),
        compute_(compute_dtype(compute)),
        a_(a),
        b_(b),
        out_(out),
        p_(target.is_cpu || !fits()),
        body_(target, p_),
        type_(variable_type(compute_)) {}

  Launch run() {
    a_name_ = p_.input(a_.stored, a_.slot);
    b_name_ = p_.input(b_.stored, b_.slot);
    out_name_ = p_.output(out_.stored, out_.slot);
    m_ = p_.index(size_.m);
    n_ = p_.index(size_.n);
    k_ = p_.index(size_.k);
    batches_ = p_.index(size_.batches);
    return target_.is_cpu ? on_cpu() : on_gpu();
  }

 private:
  bool fits() const {
    const Axes axes{{size_.batches, std::max(size_.m, size_.k), std::max(size_.k, size_.n)},
                    {{a_.strides.begin(), a_.strides.end()},
                     {b_.strides.begin(), b_.strides.end()},
                     {out_.strides.begin(), out_.strides.end()}}};
    return fits_i32(axes, {a_.offset, b_.offset, out_.offset});
  }
  const std::string& ix() const { return p_.index_type(); }
  std::string base(const Matrix& x, const char* name) {
    std::string text = fmt::format("const {} {} = batch * {}", ix(), name, p_.index(x.strides[0]));
    return text + (x.offset != 0 ? " + " + p_.index(x.offset) : "") + ";\n";
  }
  std::string place(const Matrix& x, const std::string& from, const std::string& row, const std::string& column) {
    return place_text(p_, place_text(p_, from, row, x.strides[1]), column, x.strides[2]);
  }

  // Four rows of up to 64 columns a work-item and step.
  Launch on_cpu() {
    constexpr int kRows = 4;
    const int columns = target_.private_bytes < 4096 ? 16 : 64;
    const std::int64_t row_tiles = ceil_div(size_.m, kRows), column_tiles = ceil_div(size_.n, columns);
    std::string text = fmt::format(
        "const {0} column = (i64)group_id(0) * {1}, width = {2} - column < {1} ? {2} - column : {1};\n", ix(), columns, n_);
    text += fmt::format("for ({0} batch = group_id(2); batch < {1}; batch += group_count(2)) {{\n", ix(), batches_);
    text += base(a_, "from_a") + base(b_, "from_b") + base(out_, "to");
    text += fmt::format(
        "for ({0} row = (i64)group_id(1) * {1}; row < {2}; row += (i64)group_count(1) * {1}) {{\n{3} sum[{1}][{4}];\n", ix(),
        kRows, m_, type_, columns);
    text += fmt::format("for (i32 r = 0; r < {}; ++r) for (i32 c = 0; c < {}; ++c) sum[r][c] = 0;\n", kRows, columns);
    for (int r = 0; r < kRows; ++r)
      text += fmt::format("const {0} row{1} = row + {1} < {2} ? row + {1} : {2} - 1;\n", ix(), r, m_);
    const auto inner = [&](const std::string& limit) {
      std::string loop = fmt::format("for ({} k = 0; k < {}; ++k) {{\n", ix(), k_);
      for (int r = 0; r < kRows; ++r)
        loop += fmt::format(
            "const {} a{} = {};\n", type_, r,
            body_.loaded(a_.stored, fmt::format("{}[{}]", a_name_, place(a_, "from_a", fmt::format("row{}", r), "k"))));
      loop += fmt::format("for (i32 c = 0; c < {}; ++c) {{\nconst {} b = {};\n", limit, type_,
                          body_.loaded(b_.stored, fmt::format("{}[{}]", b_name_, place(b_, "from_b", "k", "(column + c)"))));
      for (int r = 0; r < kRows; ++r)
        loop += fmt::format("sum[{0}][c] = {1};\n", r,
                            multiply_add(compute_, fmt::format("a{}", r), "b", fmt::format("sum[{}][c]", r)));
      return loop + "}\n}\n";
    };
    text += fmt::format("if (width == {}) {{\n{}}} else {{\n{}}}\n", columns, inner(std::to_string(columns)), inner("width"));
    text += fmt::format("for (i32 r = 0; r < {} && row + r < {}; ++r) for (i32 c = 0; c < width; ++c) {}[{}] = {};\n", kRows, m_,
                        out_name_, place(out_, "to", "(row + r)", "(column + c)"), body_.to_store(out_.stored, "sum[r][c]"));
    text += "}\n}\n";
    const std::int64_t wanted = std::max<std::int64_t>(1, target_.compute_units * 8 / column_tiles);
    return make_launch(body_, {1, 1, 1},
                       {static_cast<std::uint32_t>(column_tiles), static_cast<std::uint32_t>(std::min(row_tiles, wanted)),
                        static_cast<std::uint32_t>(std::min<std::int64_t>(size_.batches, 65535))},
                       text);
  }

  // Tiles of 64 x 64 in steps of 16: 256 work-items, 4 x 4 results each, both operands by way of local memory.
  Launch on_gpu() {
    constexpr int kTile = 64, kDepth = 16;
    std::string text = "const i32 lane = local_id(0), tx = lane % 16, ty = lane / 16;\n";
    text += fmt::format("LOCAL {0} tile_a[{1}][{2} + 1];\nLOCAL {0} tile_b[{1}][{2} + 1];\n", type_, kDepth, kTile);
    text += fmt::format("for ({0} batch = group_id(2); batch < {1}; batch += group_count(2)) {{\n", ix(), batches_);
    text += base(a_, "from_a") + base(b_, "from_b") + base(out_, "to");
    text += fmt::format(
        "for ({0} row = ({0})group_id(1) * {1}; row < {2}; row += ({0})group_count(1) * {1}) {{\nconst {0} column = "
        "({0})group_id(0) * {1};\n",
        ix(), kTile, m_);
    text += fmt::format("{} sum[4][4];\nUNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) sum[r][c] = 0;\n",
                        type_);
    text += fmt::format("for ({} k = 0; k < {}; k += {}) {{\n", ix(), k_, kDepth);
    // Neighbouring work-items read along the axis whose elements are neighbours.
    const bool a_by_row = a_.strides[2] != 1 && a_.strides[1] == 1, b_by_row = b_.strides[2] != 1 && b_.strides[1] == 1;
    text += fmt::format("UNROLL for (i32 e = 0; e < 4; ++e) {{\nconst i32 item = lane + e * 256;\n");
    text += a_by_row ? "const i32 ar = item % 64, ak = item / 64;\n" : "const i32 ar = item / 16, ak = item % 16;\n";
    text += fmt::format("tile_a[ak][ar] = row + ar < {} && k + ak < {} ? {} : 0;\n", m_, k_,
                        body_.loaded(a_.stored, fmt::format("{}[{}]", a_name_, place(a_, "from_a", "(row + ar)", "(k + ak)"))));
    text += b_by_row ? "const i32 bc = item / 16, bk = item % 16;\n" : "const i32 bc = item % 64, bk = item / 64;\n";
    text +=
        fmt::format("tile_b[bk][bc] = column + bc < {} && k + bk < {} ? {} : 0;\n}}\nBARRIER;\n", n_, k_,
                    body_.loaded(b_.stored, fmt::format("{}[{}]", b_name_, place(b_, "from_b", "(k + bk)", "(column + bc)"))));
    text += fmt::format("UNROLL for (i32 d = 0; d < {}; ++d) {{\n{} a[4], b[4];\n", kDepth, type_);
    text += "UNROLL for (i32 r = 0; r < 4; ++r) { a[r] = tile_a[d][ty + r * 16]; b[r] = tile_b[d][tx + r * 16]; }\n";
    text +=
        fmt::format("UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) sum[r][c] = {};\n}}\nBARRIER;\n}}\n",
                    multiply_add(compute_, "a[r]", "b[c]", "sum[r][c]"));
    text += "UNROLL for (i32 r = 0; r < 4; ++r) UNROLL for (i32 c = 0; c < 4; ++c) {\n";
    text += fmt::format(
        "const {0} i = row + ty + r * 16, j = column + tx + c * 16;\nif (i < {1} && j < {2}) {3}[{4}] = {5};\n}}\n}}\n}}\n", ix(),
        m_, n_, out_name_, place(out_, "to", "i", "j"), body_.to_store(out_.stored, "sum[r][c]"));
    return make_launch(body_, {256, 1, 1},
                       {static_cast<std::uint32_t>(ceil_div(size_.n, kTile)),
                        static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(size_.m, kTile), 65535)),
                        static_cast<std::uint32_t>(std::min<std::int64_t>(size_.batches, 65535))},
                       text);
  }

  const KernelTarget& target_;
  const MatrixSize& size_;
  DType compute_;
  const Matrix &a_, &b_, &out_;
  Parameters p_;
  Body body_;
  std::string type_, a_name_, b_name_, out_name_, m_, n_, k_, batches_;
};

// --- Sliding windows ---
Spatial spatial_extents(const Shape& shape) {
  Spatial extents{1, 1, 1};
  for (int i = 2; i < shape.rank(); ++i) extents[at(i - 2)] = shape[i];
  return extents;
}

// Names of the parameters of up to three spatial axes.
struct Sliding {
  int rank;
  std::string ix;
  std::array<std::string, 3> in, out, size, stride, dilation, pad;

  template <class Attr>
  Sliding(Parameters& p, const Shape& x, const Shape& result, const Spatial& sizes, const Attr& attr)
      : rank(x.rank() - 2),
        ix(p.index_type()) {
    const Spatial extents = spatial_extents(x), places = spatial_extents(result);
    for (std::size_t d = 0; d < at(rank); ++d) {
      in[d] = p.index(extents[d]);
      out[d] = p.index(places[d]);
      size[d] = p.index(sizes[d]);
      stride[d] = p.index(attr.stride[d]);
      dilation[d] = p.index(attr.dilation[d]);
      pad[d] = p.index(attr.pad_low[d]);
    }
  }

  // y0, y1, y2 and the rest in |image|, from the row-major number j of a result.
  std::string places() const {
    std::string text = fmt::format("{} image = j;\n", ix);
    for (int d = rank - 1; d >= 0; --d)
      text +=
          fmt::format("const {4} y{0} = image % {1} * {2} - {3};\nimage /= {1};\n", d, out[at(d)], stride[at(d)], pad[at(d)], ix);
    return text;
  }
  // Loops over the places of the window inside the input: |inside| may use "tap" (in the kernel) and "pixel" (in the image).
  std::string loops(const std::string& inside) const {
    std::string text, tap = "0", pixel = "0";
    for (int d = 0; d < rank; ++d) {
      text += fmt::format(
          "for (i64 w{0} = 0; w{0} < {1}; ++w{0}) {{\nconst i64 z{0} = y{0} + w{0} * {2};\nif (z{0} < 0 || z{0} >= {3}) "
          "continue;\n",
          d, size[at(d)], dilation[at(d)], in[at(d)]);
      tap = d == 0 ? "w0" : fmt::format("({}) * {} + w{}", tap, size[at(d)], d);
      pixel = d == 0 ? "z0" : fmt::format("({}) * {} + z{}", pixel, in[at(d)], d);
    }
    text += fmt::format("const i64 tap = {}, pixel = {};\n{}", tap, pixel, inside);
    for (int d = 0; d < rank; ++d) text += "}\n";
    return text;
  }
  std::string product(const std::array<std::string, 3>& names) const {
    std::string text = names[0];
    for (int d = 1; d < rank; ++d) text += " * " + names[at(d)];
    return text;
  }
};

}  // namespace

Launch emit_matmul(const KernelTarget& target, const MatrixSize& size, DType compute, const Matrix& a, const Matrix& b,
                   const Matrix& out) {
  return MatMulEmitter(target, size, compute, a, b, out).run();
}

Launch emit_window(const KernelTarget& target, const Dense& x, const WindowAttr& attr, const Dense& out) {
  if (auto planes = emit_plane_window(target, x, attr, out)) return std::move(*planes);
  Parameters p(true);
  Body body(target, p);
  const std::string in = p.input(x.stored, x.slot), to = p.output(out.stored, out.slot);
  const Sliding s(p, x.shape, out.shape, attr.size, attr);
  const DType compute = compute_dtype(x.stored);
  const std::string type = variable_type(compute), value = body.loaded(x.stored, fmt::format("{}[from + pixel]", in));
  std::string text = s.places() + fmt::format("const i64 from = image * {};\n", s.product(s.in));
  if (attr.max) {
    text += fmt::format("{} best = {};\n", type, literal(compute, -INFINITY));
    text += s.loops(fmt::format("const {} value = {};\nbest = best == best && !(value <= best) ? value : best;\n", type, value));
    text += fmt::format("{}[j] = {};\n", to, body.to_store(out.stored, "best"));
  } else {
    // Wide enough that the order of the sum does not matter.
    const DType as = compute == DType::f32 && target.has_f64 ? DType::f64 : compute;
    const std::string wide = variable_type(as);
    const char* wrap = element_bytes(as) == 8 ? "u64" : "u32";
    text += fmt::format("{} sum = 0;\n", wide);
    text += s.loops(is_float(as) ? fmt::format("sum += ({}){};\n", wide, value)
                                 : fmt::format("sum = ({})(({})sum + ({}){});\n", wide, wrap, wrap, value));
    text += fmt::format("{}[j] = {};\n", to, body.to_store(out.stored, as == compute ? "sum" : "(f32)sum"));
  }
  return emit_items(body, out.shape.elements(), attr.size[0] * attr.size[1] * attr.size[2], text);
}

Launch emit_conv(const KernelTarget& target, const Dense& x, const Dense& weight, const ConvAttr& attr, const Dense& out) {
  if (auto planes = emit_depthwise(target, x, weight, attr, out)) return std::move(*planes);
  Parameters p(true);
  Body body(target, p);
  const std::string in = p.input(x.stored, x.slot), kernel = p.input(weight.stored, weight.slot),
                    to = p.output(out.stored, out.slot);
  const Sliding s(p, x.shape, out.shape, spatial_extents(weight.shape), attr);
  const DType compute = compute_dtype(out.stored);
  const std::string type = variable_type(compute), outs = p.whole_number(out.shape[1]),
                    per_group = p.whole_number(weight.shape[1]), channels = p.whole_number(x.shape[1]),
                    outs_per_group = p.whole_number(out.shape[1] / attr.groups);
  std::string text = s.places();
  text +=
      fmt::format("const i64 o = image % {0}, batch = image / {0}, group = o / {1};\n{2} sum = 0;\n", outs, outs_per_group, type);
  text += fmt::format(
      "for (i64 c = 0; c < {0}; ++c) {{\nconst i64 from = (batch * {1} + group * {0} + c) * ({2}), taps = (o * {0} + c) * "
      "({3});\n",
      per_group, channels, s.product(s.in), s.product(s.size));
  text +=
      s.loops(fmt::format("sum = {};\n", multiply_add(compute, body.loaded(x.stored, fmt::format("{}[from + pixel]", in)),
                                                      body.loaded(weight.stored, fmt::format("{}[taps + tap]", kernel)), "sum")));
  text += fmt::format("}}\n{}[j] = {};\n", to, body.to_store(out.stored, "sum"));
  const std::int64_t taps = weight.shape.elements() / std::max<std::int64_t>(weight.shape[0], 1);
  return emit_items(body, out.shape.elements(), taps, text);
}

Launch emit_unfolded(const KernelTarget& target, const Dense& x, const Spatial& size, const ConvAttr& attr, const Shape& result,
                     std::int64_t first, std::int64_t count, int to, DType to_stored) {
  const Spatial places = spatial_extents(result);
  const std::int64_t pixels = places[0] * places[1] * places[2], taps = size[0] * size[1] * size[2], channels = x.shape[1];
  const std::int64_t reach = std::max(x.shape.elements(), count * channels * taps * pixels);
  Parameters p(reach >= (std::int64_t{1} << 31) - (1 << 24));
  Body body(target, p);
  const std::string& ix = p.index_type();
  const std::string in = p.input(x.stored, x.slot), out = p.output(to_stored, to), all = p.index(pixels),
                    planes = p.index(channels), images = p.index(count), begin = p.index(first);
  const Sliding s(p, x.shape, result, size, attr);
  const int threads = std::min(256, target.max_group_size);
  std::string text =
      fmt::format("const {0} j = ({0})group_id(0) * {1} + local_id(0);\nif (j < {2}) {{\n{3}", ix, threads, all, s.places());
  text += fmt::format(
      "for ({0} b = group_id(2); b < {1}; b += group_count(2))\nfor ({0} c = group_id(1); c < {2}; c += "
      "group_count(1)) {{\n",
      ix, images, planes);
  text += fmt::format("const {0} from = (({1} + b) * {2} + c) * ({3});\n{0} to = (b * {2} + c) * ({4}) * {5} + j;\n", ix, begin,
                      planes, s.product(s.in), s.product(s.size), all);
  std::string inside = "1", pixel = "0";
  for (int d = 0; d < s.rank; ++d) {
    text += fmt::format("for ({0} w{1} = 0; w{1} < {2}; ++w{1}) {{\nconst {0} z{1} = y{1} + w{1} * {3};\n", ix, d, s.size[at(d)],
                        s.dilation[at(d)]);
    inside += fmt::format(" && z{0} >= 0 && z{0} < {1}", d, s.in[at(d)]);
    pixel = d == 0 ? "z0" : fmt::format("({}) * {} + z{}", pixel, s.in[at(d)], d);
  }
  text += fmt::format("{}[to] = {} ? {} : 0;\nto += {};\n", out, inside,
                      x.stored == to_stored
                          ? fmt::format("{}[from + {}]", in, pixel)
                          : body.to_store(to_stored, body.loaded(x.stored, fmt::format("{}[from + {}]", in, pixel))),
                      all);
  for (int d = 0; d < s.rank; ++d) text += "}\n";
  text += "}\n}\n";
  return make_launch(
      body, {threads, 1, 1},
      {static_cast<std::uint32_t>(ceil_div(pixels, threads)), static_cast<std::uint32_t>(std::min<std::int64_t>(channels, 65535)),
       static_cast<std::uint32_t>(std::min<std::int64_t>(count, 65535))},
      text);
}

// --- Block formats ---
namespace {

// Where element (row, column) of matrix |matrix| lies: its tile, face row in the tile, and place in the face row.
struct BlockLayout {
  std::int64_t rows = 1, columns = 1, matrices = 0;
  int bits, tile_bytes, row_bytes;

  BlockLayout(DType block, const Shape& shape)
      : bits(block == DType::bfloat8_b ? 7 : 3),
        tile_bytes(block == DType::bfloat8_b ? 1088 : 576),
        row_bytes(block == DType::bfloat8_b ? 16 : 8) {
    if (shape.rank() >= 1) columns = shape[shape.rank() - 1];
    if (shape.rank() >= 2) rows = shape[shape.rank() - 2];
    matrices = shape.elements() == 0 ? 0 : shape.elements() / (rows * columns);
  }
  std::int64_t tile_rows() const { return ceil_div(rows, 32); }
  std::int64_t tile_columns() const { return ceil_div(columns, 32); }
};

std::string code_text(const BlockLayout& layout, const std::string& in) {
  return layout.bits == 7 ? fmt::format("{}[elements + place]", in)
                          : fmt::format("(({}[elements + place / 2] >> (4 * (place % 2))) & 0xfu)", in);
}

}  // namespace

Launch emit_block_decode(const KernelTarget& target, DType block, const Shape& shape, int from, int to) {
  Parameters p(true);
  Body body(target, p);
  const BlockLayout layout(block, shape);
  const std::string in = p.input(DType::u8, from), out = p.output(DType::f32, to), rows = p.whole_number(layout.rows),
                    columns = p.whole_number(layout.columns), tr = p.whole_number(layout.tile_rows()),
                    tc = p.whole_number(layout.tile_columns());
  std::string text = fmt::format(
      "const i64 column = j % {0}, row = j / {0} % {1}, matrix = j / ({0} * {1}), place = column % 16;\n", columns, rows);
  text += fmt::format("const i64 tile = ((matrix * {} + row / 32) * {} + column / 32) * {};\n", tr, tc, layout.tile_bytes);
  text += "const i64 face_row = (row % 32 / 16 * 2 + column % 32 / 16) * 16 + row % 16;\n";
  text += fmt::format("const i64 elements = tile + 64 + face_row * {};\n", layout.row_bytes);
  text += fmt::format(
      "{}[j] = {};\n", out,
      body.call("block_decode", fmt::format("(i32){}[tile + face_row], (u32){}, {}", in, code_text(layout, in), layout.bits)));
  return emit_items(body, shape.elements(), 1, text);
}

Launch emit_block_encode(const KernelTarget& target, DType block, const Shape& shape, int from, int to) {
  Parameters p(true);
  Body body(target, p);
  const BlockLayout layout(block, shape);
  const std::string in = p.input(DType::f32, from), out = p.output(DType::u8, to), rows = p.whole_number(layout.rows),
                    columns = p.whole_number(layout.columns), tr = p.whole_number(layout.tile_rows()),
                    tc = p.whole_number(layout.tile_columns());
  // One face row, also where it lies outside the matrix: padding is zeros.
  std::string text = fmt::format(
      "const i64 face_row = j % 64, tile = j / 64, place_c = tile % {0}, place_r = tile / {0} % {1}, matrix = tile / ({0} * "
      "{1});\n",
      tc, tr);
  text +=
      "const i64 face = face_row / 16, row = place_r * 32 + face / 2 * 16 + face_row % 16, column = place_c * 32 + face % 2 * "
      "16;\n";
  text += fmt::format(
      "i32 shared = 0;\nf32 x[16];\nfor (i32 e = 0; e < 16; ++e) {{\nx[e] = row < {0} && column + e < {1} ? {2}[(matrix * {0} + "
      "row) * {1} + column + e] : 0.0f;\n",
      rows, columns, in);
  text += "const i32 exponent = (i32)((AS_U32(x[e]) >> 23) & 0xffu);\nshared = exponent > shared ? exponent : shared;\n}\n";
  text += fmt::format("{0}[tile * {1} + face_row] = (u8)shared;\nconst i64 elements = tile * {1} + 64 + face_row * {2};\n", out,
                      layout.tile_bytes, layout.row_bytes);
  const auto code = [&](const char* e) { return body.call("block_encode", fmt::format("x[{}], shared, {}", e, layout.bits)); };
  text += layout.bits == 7 ? fmt::format("for (i32 e = 0; e < 16; ++e) {}[elements + e] = (u8){};\n", out, code("e"))
                           : fmt::format("for (i32 e = 0; e < 8; ++e) {}[elements + e] = (u8)({} | ({} << 4));\n", out,
                                         code("2 * e"), code("2 * e + 1"));
  return emit_items(body, layout.matrices * layout.tile_rows() * layout.tile_columns() * 64, 16, text);
}

Launch emit_block_round(const KernelTarget& target, DType block, const Shape& shape, int from, int to) {
  Parameters p(true);
  Body body(target, p);
  const BlockLayout layout(block, shape);
  const std::string in = p.input(DType::f32, from), out = p.output(DType::f32, to), columns = p.whole_number(layout.columns),
                    runs = p.whole_number(ceil_div(layout.columns, 16));
  std::string text =
      fmt::format("const i64 row = j / {0}, begin = j % {0} * 16, end = begin + 16 < {1} ? begin + 16 : {1};\ni32 shared = 0;\n",
                  runs, columns);
  text += fmt::format(
      "for (i64 c = begin; c < end; ++c) {{ const i32 exponent = (i32)((AS_U32({}[row * {} + c]) >> 23) & 0xffu); shared = "
      "exponent > shared ? exponent : shared; }}\n",
      in, columns);
  const std::string code = body.call("block_encode", fmt::format("{}[row * {} + c], shared, {}", in, columns, layout.bits));
  text += fmt::format("for (i64 c = begin; c < end; ++c) {}[row * {} + c] = {};\n", out, columns,
                      body.call("block_decode", fmt::format("shared, {}, {}", code, layout.bits)));
  const std::int64_t rows = layout.columns == 0 ? 0 : shape.elements() / layout.columns;
  return emit_items(body, rows * ceil_div(layout.columns, 16), 16, text);
}

Launch emit_byte_copy(const KernelTarget& target, std::uint64_t bytes, int from, int to) {
  const Shape shape{static_cast<std::int64_t>(bytes)};
  return emit_copy(target, shape, dense_access(from, DType::u8, shape), dense_access(to, DType::u8, shape));
}

}  // namespace tenon::emit
