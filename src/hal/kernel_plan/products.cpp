#include "hal/kernel_plan/products.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/loops/group.h"

namespace tenon {

using namespace emit;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Convolutions of at least this many multiplications become products, through an im2col copy of at most this many bytes.
constexpr std::int64_t kProductFrom = std::int64_t{1} << 16, kUnfoldedBytes = std::int64_t{512} << 20;

Matrix as_matrix(const MatrixOperand& x, int slot) {
  return {slot, x.stored, x.offset, {x.batch_stride, x.row_stride, x.column_stride}};
}

}  // namespace

// --- Operands ---

// The memory layout of |id| as [batch..., rows, columns]; nullopt if it must be copied first.
std::optional<PlanProducts::Operand> PlanProducts::operand_in_place(NodeId id, bool transposed) const {
  const ValueView& view = fused_.views[at(id)];
  const int rank = view.shape.rank();
  const Axes batch =
      joined({view.shape.begin(), view.shape.end() - 2}, {{view.strides.begin(), view.strides.begin() + rank - 2}});
  if (batch.extents.size() > 1) return std::nullopt;
  const StoredValue value = values_.source(view.base);
  MatrixOperand x;
  x.stored = value.stored;
  x.offset = view.offset;
  x.batch_stride = batch.extents.empty() ? 0 : batch.strides[0][0];
  std::int64_t rows = view.shape[rank - 2], columns = view.shape[rank - 1];
  x.row_stride = view.strides[at(rank - 2)];
  x.column_stride = view.strides[at(rank - 1)];
  if (transposed) {
    std::swap(rows, columns);
    std::swap(x.row_stride, x.column_stride);
  }
  if ((x.column_stride == 1 || columns == 1) && (x.row_stride >= columns || rows == 1)) {
    x.column_stride = 1;
    if (rows == 1) x.row_stride = columns;
    return Operand{x, value.slot};
  }
  if ((x.row_stride == 1 || rows == 1) && (x.column_stride >= rows || columns == 1)) {
    x.row_stride = 1;
    if (columns == 1) x.column_stride = rows;
    return Operand{x, value.slot};
  }
  return std::nullopt;
}

PlanProducts::Operand PlanProducts::operand(NodeId id, bool transposed) {
  if (const auto x = operand_in_place(id, transposed)) return *x;
  values_.copied(id);
  return *operand_in_place(id, transposed);
}

// What a processor's kernel asks of its second operand.
PlanProducts::Operand PlanProducts::operand_with_columns_together(NodeId id, bool transposed) {
  if (const auto x = operand_in_place(id, transposed); x && x->layout.column_stride == 1) return *x;
  if (!transposed) {
    values_.copied(id);
    return *operand_in_place(id, transposed);
  }
  // The copy is also transposed.
  const Shape shape = graph_[id].shape;
  const int rank = shape.rank();
  Access from = values_.stored(id);
  std::swap(from.strides[at(rank - 1)], from.strides[at(rank - 2)]);
  const Shape transposed_shape = shape.with(rank - 1, shape[rank - 2]).with(rank - 2, shape[rank - 1]);
  const int to = steps_.temporary(from.stored, transposed_shape);
  if (transposed_shape.elements() > 0)
    steps_.add(emit_copy(target_, transposed_shape, from, dense_access(to, from.stored, transposed_shape)));
  MatrixOperand x;
  x.stored = from.stored;
  x.row_stride = shape[rank - 2];
  x.batch_stride = shape[rank - 1] * shape[rank - 2];
  return {x, to};
}

// --- Matrix products ---

PlanProducts::Product PlanProducts::product_of(const Node& node, const Dense& out) {
  const MatMulAttr& attr = node.as<MatMulAttr>();
  const int rank = node.shape.rank();
  MatMulStep step;
  step.m = node.shape[rank - 2];
  step.n = node.shape[rank - 1];
  step.k = graph_[node.inputs[0]].shape[attr.transpose_a ? rank - 2 : rank - 1];
  step.batches = node.shape.elements() / (step.m * step.n);
  step.compute = compute_dtype(node.dtype);
  step.result = {{}, out.stored, 0, step.m * step.n, step.n, 1};
  const Operand a = operand(node.inputs[0], attr.transpose_a);
  const Operand b = target_.is_cpu ? operand_with_columns_together(node.inputs[1], attr.transpose_b)
                                   : operand(node.inputs[1], attr.transpose_b);
  step.a = a.layout;
  step.b = b.layout;
  // Matrices that are multiplied with the same one are the rows of one matrix.
  if (!target_.is_cpu && step.batches > 1 && step.b.batch_stride == 0 && step.a.column_stride == 1 &&
      step.a.batch_stride == step.m * step.a.row_stride) {
    step.m *= std::exchange(step.batches, 1);
    step.a.batch_stride = 0;
    step.result.batch_stride = step.m * step.n;
  }
  return {step, a.slot, b.slot, out.slot};
}

void PlanProducts::add_matmul(const Node& node, const Dense& out) { add_product(product_of(node, out)); }

// Few rows need no library.
bool PlanProducts::add_few_rows(const MatMulStep& step, std::span<const int> slots, ProductEnd end) {
  if (step.has_bias) end.bias = {slots[3], step.bias.stored, step.bias.offset};
  end.relu = step.activation == MatMulStep::Activation::relu;
  Matrix a = as_matrix(step.a, slots[0]), b = as_matrix(step.b, slots[1]);
  a.is_given = !end.norm && steps_.is_input(slots[0]);
  b.is_given = steps_.is_input(slots[1]);
  if (end.norm) end.norm->is_given = steps_.is_input(end.norm->weight.slot);
  auto launch =
      emit_few_rows(target_, {step.batches, step.m, step.n, step.k}, step.compute, a, b, as_matrix(step.result, slots[2]), end);
  if (!launch) return false;
  steps_.add(std::move(*launch));
  return true;
}

void PlanProducts::add_product(const Product& product) {
  const MatMulStep& step = product.step;
  if (add_few_rows(step, std::array{product.a, product.b, product.result})) return;
  if (options_.library_matmul && step.k > 0 && options_.library_matmul(step)) {
    steps_.add(step, {product.a, product.b, product.result});
    return;
  }
  steps_.add(emit_matmul(target_, {step.batches, step.m, step.n, step.k}, step.compute, as_matrix(step.a, product.a),
                         as_matrix(step.b, product.b), as_matrix(step.result, product.result)));
}

bool PlanProducts::add_with_epilogue(const Epilogue& epilogue) {
  const Dense out = values_.result_of(epilogue.result);
  auto [step, a, b, result] = product_of(graph_[epilogue.product], out);
  std::vector<int> slots{a, b, result};
  step.activation = epilogue.activation;
  if (epilogue.bias >= 0) {
    const ValueView& view = fused_.views[at(epilogue.bias)];
    const StoredValue bias = values_.source(view.base);
    step.has_bias = true;
    step.bias = {{}, bias.stored, view.offset, 0, 0, 1};
    slots.push_back(bias.slot);
  }
  if (!add_few_rows(step, slots)) {
    if (step.k == 0 || !options_.library_matmul(step)) return false;
    steps_.add(step, std::move(slots));
  }
  values_.deliver(epilogue.result, out);
  return true;
}

namespace {

// The sources of a group whose product has no memory.
class TailPlacement final : public GroupPlacement {
 public:
  TailPlacement(PlanValues& values, NodeId product) : values_(values), product_(product) {}
  StoredValue source(NodeId base) const override { return base == product_ ? StoredValue{} : values_.source(base); }
  std::vector<StoredValue> targets(NodeId output) const override { return values_.targets(output); }
  int scratch(std::uint64_t bytes) override { return values_.scratch(bytes); }

 private:
  PlanValues& values_;
  const NodeId product_;
};

ProductEnd::Tail tail_text(GroupReader& reader, const ProductTail& tail) {
  ProductEnd::Tail out;
  out.segments = tail.segments;
  out.text = [&reader, &tail](Body& body, std::span<const std::string> values, const std::string& row, const std::string& column,
                              std::string& result) {
    Parameters& p = body.parameters();
    const std::string text = element_text(reader, body, [&](const External& e) {
      if (e.view.base == tail.product) return values[e.view.offset == 0 ? 0 : 1];
      const std::string buffer = p.input(e.from.stored, e.from.slot), offset = p.whole_number(e.view.offset);
      const std::string by_row = p.whole_number(e.view.strides[0]), by_column = p.whole_number(e.view.strides[1]);
      return body.loaded(e.from.stored,
                         fmt::format("{}[{} + {} * {} + {} * {}]", buffer, offset, row, by_row, column, by_column));
    });
    result = reader.name(tail.result);
    return text;
  };
  return out;
}

}  // namespace

bool PlanProducts::add_absorbing(NodeId product, const ProductHead* head, const ProductTail* tail) {
  const Node& node = graph_[product];
  const NodeId result = tail ? tail->result : product;
  // Nothing is copied for a product that is then planned otherwise.
  const auto b = operand_in_place(node.inputs[1], true);
  const auto a = head ? std::optional<Operand>(std::in_place) : operand_in_place(node.inputs[0], false);
  if (!a || !b) return false;
  const Dense out = values_.result_of(result);
  MatMulStep step;
  step.m = node.shape[0];
  step.n = node.shape[1];
  step.k = graph_[node.inputs[0]].shape[1];
  step.compute = compute_dtype(node.dtype);
  step.result = {{}, out.stored, 0, 0, out.shape[1], 1};
  step.b = b->layout;
  step.a = a->layout;
  ProductEnd end;
  if (head) {
    step.a = {{}, b->layout.stored, 0, 0, step.k, 1};
    const Access weight = values_.stored(head->weight);
    end.norm = {values_.stored(head->x), {weight.slot, weight.stored, weight.offset}, head->eps};
    if (end.norm->x.stored != DType::f32 || weight.stored != DType::f32) return false;
  }
  std::optional<TailPlacement> placement;
  std::optional<GroupReader> reader;
  if (tail) {
    placement.emplace(values_, product);
    reader.emplace(graph_, fused_, tail->group, *placement);
    end.tail = tail_text(*reader, *tail);
  }
  if (!add_few_rows(step, std::array{a->slot, b->slot, out.slot}, std::move(end))) return false;
  values_.deliver(result, out);
  return true;
}

// --- Convolutions ---

void PlanProducts::add_conv(const Node& node, const Dense& out) {
  const Dense x = values_.dense(node.inputs[0]), weight = values_.dense(node.inputs[1]);
  const ConvAttr& attr = node.as<ConvAttr>();
  int channels_last = -1;
  add_conv_of(node.dtype, attr, x, weight, out, channels_last);
}

void PlanProducts::add_conv_of(DType dtype, const ConvAttr& attr, const Dense& x, const Dense& weight, const Dense& out,
                               int& channels_last) {
  const ConvStep step{{},      {},           {},        x.stored, weight.stored, out.stored, compute_dtype(dtype),
                      x.shape, weight.shape, out.shape, attr};
  if (options_.library_conv && x.shape.elements() > 0 && weight.shape.elements() > 0 && options_.library_conv(step))
    steps_.add(step, x.slot, weight.slot, out.slot);
  else if (!is_worth_a_product(step))
    steps_.add(emit_conv(target_, x, weight, attr, out));
  else if (is_library_product(step) || !add_conv_on_matrix_units(step, x, weight, out, channels_last))
    add_conv_as_product(step, x, weight, out);
}

// A dense copy in the declared dtype, unless it is one.
Dense PlanProducts::in_declared_dtype(NodeId id) {
  const Dense x = values_.dense(id);
  const DType dtype = graph_[id].dtype;
  if (x.stored == dtype) return x;
  const Dense copy{steps_.temporary(dtype, x.shape), dtype, x.shape};
  steps_.add(emit_copy(target_, x.shape, dense_access(x.slot, x.stored, x.shape), dense_access(copy.slot, dtype, x.shape)));
  return copy;
}

bool PlanProducts::can_conv_transpose(const KernelTarget& target, DType dtype, const Shape& weight,
                                      const ConvTransposeAttr& attr) {
  constexpr std::int64_t kMostParts = 64;
  if (target.is_cpu || is_block(dtype) || weight.elements() == 0) return false;
  std::int64_t parts = 1;
  for (int d = 0; d < weight.rank() - 2; ++d) {
    // Every part has elements of the window, at neighbouring places of the input.
    if (attr.stride[at(d)] > 1 && (attr.dilation[at(d)] > 1 || weight[d + 2] < attr.stride[at(d)])) return false;
    if (attr.stride[at(d)] > kMostParts) return false;
    parts *= attr.stride[at(d)];
  }
  return parts <= kMostParts;
}

// With stride s, the results at places p, p + s, p + 2s ... are a convolution with every s-th element of the window, in reverse
// order: the result is that of as many convolutions as there are different p, without any zeros between the pixels of x.
void PlanProducts::add_conv_transpose(const Node& node, const ConvTransposeAttr& attr, const Dense& out) {
  const Dense x = in_declared_dtype(node.inputs[0]), weight = in_declared_dtype(node.inputs[1]);
  if (can_conv_transpose_directly(target_, x.shape, weight.shape, attr, out))
    return steps_.add(emit_conv_transpose_directly(target_, x, weight, attr, out));
  if (add_conv_transpose_at_once(node.dtype, attr, x, weight, out)) return;
  const int axes = x.shape.rank() - 2;
  int channels_last = -1;  // of all parts
  std::int64_t rows = 1;   // parts that differ in axes other than the last
  for (int d = 0; d + 1 < axes; ++d) rows *= attr.stride[at(d)];
  const std::int64_t columns = attr.stride[at(axes - 1)];
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<ConvTransposePart> parts;
    for (std::int64_t column = 0; column < columns; ++column)
      if (const auto part = conv_transpose_part(attr, row + rows * column, x.shape, weight, out)) parts.push_back(*part);
    if (parts.empty()) continue;
    std::ranges::sort(parts, {}, [](const ConvTransposePart& part) { return part.places.offset; });
    const bool alternate = std::ssize(parts) == columns && columns > 1 &&
                           std::ranges::all_of(parts, [&](const auto& part) { return part.result == parts[0].result; });
    std::vector<int> computed;
    for (const ConvTransposePart& part : parts) {
      const Dense turned = conv_transpose_weights(part, weight);
      const bool is_whole = part.result == out.shape;
      const Dense result{is_whole ? out.slot : steps_.temporary(out.stored, part.result), out.stored, part.result};
      add_conv_of(node.dtype, part.conv, x, turned, result, channels_last);
      computed.push_back(result.slot);
      if (!alternate && !is_whole)
        steps_.add(emit_copy(target_, part.result, dense_access(result.slot, out.stored, part.result), part.places));
    }
    if (alternate) steps_.add(emit_interleaved(target_, parts[0].result, computed, parts[0].places));
  }
}

namespace {

// The smallest extents from |extents| on, of up to three axes, whose product is a multiple of 8: a plane of them is stored by
// words of 16 bytes.
void lengthen_to_whole_words(std::span<std::int64_t> extents) {
  std::vector<std::int64_t> best;
  std::int64_t least = 0;
  for (std::int64_t number = 0; number < std::int64_t{1} << (3 * extents.size()); ++number) {
    std::vector<std::int64_t> tried(extents.begin(), extents.end());
    std::int64_t product = 1;
    for (std::size_t d = 0; d < tried.size(); ++d) product *= tried[d] += number >> (3 * d) & 7;
    if (product % 8 != 0 || (!best.empty() && product >= least)) continue;
    best = tried;
    least = product;
  }
  std::ranges::copy(best, extents.begin());
}

}  // namespace

// Where all phases have equally many elements of the window, they differ in the place where they begin to read x: a convolution
// that begins at the first of these places has the results of all phases as channels. Each kernel of a part is too short for a
// card otherwise; for large results the places that no phase needs, and one more order of the memory, count more.
bool PlanProducts::add_conv_transpose_at_once(DType dtype, const ConvTransposeAttr& attr, const Dense& x, const Dense& weight,
                                              const Dense& out) {
  constexpr std::int64_t kMost = std::int64_t{1} << 25, kSmall = 1 << 20;
  const int axes = x.shape.rank() - 2;
  if (attr.groups != 1 || out.shape.elements() > kMost) return false;
  const Access all = dense_access(weight.slot, weight.stored, weight.shape);
  ConvAttr conv;
  std::vector<std::int64_t> phases, taps, places{x.shape[0], weight.shape[1]}, phase_strides, tap_strides;
  Access window{weight.slot, weight.stored, 0, {}};
  for (int d = 0; d < axes; ++d) {
    const std::int64_t stride = attr.stride[at(d)], cut = attr.pad_low[at(d)], extent = out.shape[d + 2];
    if (attr.dilation[at(d)] != 1 || cut < 0 || extent < stride || weight.shape[d + 2] % stride != 0) return false;
    const std::int64_t reach = weight.shape[d + 2] / stride - 1, first = cut / stride;
    places.push_back((extent - 1 + cut) / stride - first + 1);
    places[1] *= stride;
    conv.pad_low[at(d)] = reach - first;
    phases.push_back(stride);
    taps.push_back(reach + 1);
    window.offset += reach * stride * all.strides[at(d + 2)];
    phase_strides.push_back(all.strides[at(d + 2)]);
    tap_strides.push_back(-stride * all.strides[at(d + 2)]);
  }
  lengthen_to_whole_words(std::span(places).subspan(2));
  for (int d = 0; d < axes; ++d)
    conv.pad_high[at(d)] = places[at(d + 2)] + taps[at(d)] - 1 - x.shape[d + 2] - conv.pad_low[at(d)];
  const Shape results{std::span<const std::int64_t>(places)};
  const std::int64_t most = out.shape.elements() <= kSmall ? out.shape.elements() * 2 : out.shape.elements() * 3 / 2;
  if (places[1] == weight.shape[1] || results.elements() > most) return false;
  // The window as [phases..., outs, channels, taps...].
  std::vector<std::int64_t> extents = phases, turned_shape{places[1], weight.shape[0]};
  extents.insert(extents.end(), {weight.shape[1], weight.shape[0]});
  extents.insert(extents.end(), taps.begin(), taps.end());
  turned_shape.insert(turned_shape.end(), taps.begin(), taps.end());
  window.strides = phase_strides;
  window.strides.insert(window.strides.end(), {all.strides[1], all.strides[0]});
  window.strides.insert(window.strides.end(), tap_strides.begin(), tap_strides.end());
  const Shape window_shape{std::span<const std::int64_t>(extents)};
  const Dense turned{steps_.temporary(weight.stored, window_shape), weight.stored,
                     Shape(std::span<const std::int64_t>(turned_shape))};
  steps_.add(emit_copy(target_, window_shape, window, dense_access(turned.slot, turned.stored, window_shape)));
  const Dense computed{steps_.temporary(out.stored, results), out.stored, results};
  int channels_last = -1;
  add_conv_of(dtype, conv, x, turned, computed, channels_last);
  steps_.add(emit_phases(target_, computed, attr, out));
  return true;
}

std::optional<PlanProducts::ConvTransposePart> PlanProducts::conv_transpose_part(const ConvTransposeAttr& attr,
                                                                                 std::int64_t number, const Shape& x,
                                                                                 const Dense& weight, const Dense& out) {
  const int axes = x.rank() - 2;
  const std::int64_t groups = attr.groups, outs = weight.shape[1], channels = weight.shape[0] / groups;
  const Access all = dense_access(weight.slot, weight.stored, weight.shape);
  ConvTransposePart part;
  part.places = dense_access(out.slot, out.stored, out.shape);
  part.conv.groups = groups;
  part.window = {weight.slot, weight.stored, 0, {channels * all.strides[0], all.strides[1], all.strides[0]}};
  std::vector<std::int64_t> window{groups, outs, channels}, result{out.shape[0], out.shape[1]};
  for (int d = 0; d < axes; ++d) {
    const std::int64_t stride = attr.stride[at(d)], cut = attr.pad_low[at(d)], phase = number % stride;
    number /= stride;
    // Result |place| is element place + cut of the full result; those of this part have that number equal to |phase| modulo
    // stride.
    const std::int64_t first = ((phase - cut) % stride + stride) % stride, extent = out.shape[d + 2];
    if (first >= extent) return std::nullopt;
    const std::int64_t count = ceil_div(extent - first, stride), taps = ceil_div(weight.shape[d + 2] - phase, stride);
    const std::int64_t reach = (taps - 1) * attr.dilation[at(d)];
    part.conv.dilation[at(d)] = attr.dilation[at(d)];
    part.conv.pad_low[at(d)] = reach - (first + cut - phase) / stride;
    part.conv.pad_high[at(d)] = count + reach - x[d + 2] - part.conv.pad_low[at(d)];
    part.window.offset += (phase + (taps - 1) * stride) * all.strides[at(d + 2)];
    part.window.strides.push_back(-stride * all.strides[at(d + 2)]);
    part.places.offset += first * part.places.strides[at(d + 2)];
    part.places.strides[at(d + 2)] *= stride;
    window.push_back(taps);
    result.push_back(count);
  }
  part.window_shape = Shape(std::span<const std::int64_t>(window));
  part.result = Shape(std::span<const std::int64_t>(result));
  return part;
}

// The window of a part as a convolution wants it.
Dense PlanProducts::conv_transpose_weights(const ConvTransposePart& part, const Dense& weight) {
  const Shape& window = part.window_shape;  // [groups, outs, channels, window...]
  std::vector<std::int64_t> joined{window[0] * window[1]};
  joined.insert(joined.end(), window.begin() + 2, window.end());
  const Dense turned{steps_.temporary(weight.stored, window), weight.stored, Shape(std::span<const std::int64_t>(joined))};
  steps_.add(emit_copy(target_, window, part.window, dense_access(turned.slot, turned.stored, window)));
  return turned;
}

// With a window of one pixel at every pixel, the im2col copy of x is x itself.
bool PlanProducts::is_product(const ConvStep& step) {
  bool is = true;
  for (int d = 0; d < step.x_shape.rank() - 2; ++d)
    is = is && step.weight_shape[d + 2] == 1 && step.attr.stride[at(d)] == 1 && step.attr.pad_low[at(d)] == 0 &&
         step.result_shape[d + 2] == step.x_shape[d + 2];
  return is;
}

// The library is several times slower with rows of 16-bit elements that do not begin at multiples of 16 bytes.
bool PlanProducts::is_library_product(const ConvStep& step) {
  std::int64_t pixels = 1;
  for (int d = 0; d < step.x_shape.rank() - 2; ++d) pixels *= step.x_shape[d + 2];
  return is_product(step) && (element_bytes(step.x_stored) != 2 || pixels % 8 == 0);
}

bool PlanProducts::add_conv_on_matrix_units(const ConvStep& step, const Dense& x, const Dense& weight, const Dense& out,
                                            int& channels_last) {
  const Scratch scratch = [&](std::uint64_t bytes) { return steps_.temporary(bytes); };
  const auto launches = emit_matrix_conv(target_, x, weight, step.attr, out, scratch, channels_last);
  if (!launches) return false;
  steps_.add(*launches);
  return true;
}

// Large enough to justify the im2col copy, and without groups of only a few channels.
bool PlanProducts::is_worth_a_product(const ConvStep& step) const {
  if (target_.is_cpu || step.result_shape.elements() == 0 || step.weight_shape.elements() == 0) return false;
  const std::int64_t outs = step.weight_shape[0] / step.attr.groups, depth = step.weight_shape.elements() / step.weight_shape[0];
  return step.attr.groups <= 32 && outs >= 8 && depth >= 8 && step.result_shape.elements() * depth >= kProductFrom;
}

// result[image] = weight * unfolded(x)[image], for as many images at a time as fit in the copy.
void PlanProducts::add_conv_as_product(const ConvStep& step, const Dense& x, Dense weight, const Dense& out) {
  if (x.stored != weight.stored && weight.stored != step.compute) {
    const int to = steps_.temporary(step.compute, weight.shape);
    steps_.add(emit_copy(target_, weight.shape, dense_access(weight.slot, weight.stored, weight.shape),
                         dense_access(to, step.compute, weight.shape)));
    weight = {to, step.compute, weight.shape};
  }
  Spatial size{1, 1, 1};
  std::int64_t pixels = 1;
  for (int d = 0; d < x.shape.rank() - 2; ++d) {
    size[at(d)] = weight.shape[d + 2];
    pixels *= step.result_shape[d + 2];
  }
  const bool is_plain = is_product(step) && x.stored == weight.stored;  // x is what would be copied
  const std::int64_t images = x.shape[0], outs = weight.shape[0], groups = step.attr.groups;
  const std::int64_t depth = weight.shape.elements() / outs, image = depth * groups * pixels;  // elements of one unfolded image
  const auto bytes = static_cast<std::int64_t>(element_bytes(weight.stored));
  const std::int64_t together = is_plain ? images : std::clamp<std::int64_t>(kUnfoldedBytes / (image * bytes), 1, images);
  const int unfolded = is_plain ? x.slot : steps_.temporary(static_cast<std::uint64_t>(together * image * bytes));
  for (std::int64_t first = 0; first < images; first += together) {
    const std::int64_t count = std::min(together, images - first);
    if (!is_plain)
      steps_.add(emit_unfolded(target_, x, size, step.attr, step.result_shape, first, count, unfolded, weight.stored));
    for (std::int64_t group = 0; group < groups; ++group) {
      MatMulStep product;
      product.batches = count;
      product.m = outs / groups;
      product.n = pixels;
      product.k = depth;
      product.compute = step.compute;
      product.a = {{}, weight.stored, group * product.m * depth, 0, depth, 1};
      product.b = {{}, weight.stored, group * depth * pixels, image, pixels, 1};
      product.result = {{}, out.stored, (first * outs + group * product.m) * pixels, outs * pixels, pixels, 1};
      add_product({product, weight.slot, unfolded, out.slot});
    }
  }
}

}  // namespace tenon
