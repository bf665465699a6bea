#include "model/decoder/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "array/convert.h"
#include "base/text/printable.h"
#include "base/threads/thread_pool.h"
#include "tenon/error.h"

namespace tenon::decoder {
namespace {

constexpr std::int64_t kPanel = 16;  // rows of QuantizedMatMulAttr that are stored together

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// In which order a tensor has the rows, or elements, of heads.
struct HeadOrder {
  enum class Kind : std::uint8_t { as_used, neighbours, by_head };
  Kind kind = Kind::as_used;
  std::int64_t head_width = 1, rotated = 0, heads = 1;

  // Where the file has row |row|.
  std::int64_t place(std::int64_t row) const {
    const std::int64_t head = row / head_width, i = row % head_width, half = rotated / 2;
    switch (kind) {
      case Kind::as_used: return row;
      // Pairs of neighbours become halves.
      case Kind::neighbours: return i >= rotated ? row : head * head_width + (i < half ? 2 * i : 2 * (i - half) + 1);
      // Queries, keys and values of one head after the other become all queries, all keys, all values.
      case Kind::by_head: return (head % heads * 3 + head / heads) * head_width + i;
    }
    return row;
  }
};

// Rows of a matrix in the order in which they are used: of one tensor or of several, one after the other.
struct RowSource {
  struct Part {
    const gguf::TensorInfo* tensor = nullptr;
    std::vector<std::byte> bytes;
    HeadOrder order;
  };
  std::vector<Part> parts;
  std::int64_t rows = 0;

  std::span<const std::byte> row(std::int64_t row) const {
    for (const Part& part : parts) {
      const std::int64_t count = part.tensor->rows();
      if (row >= count) {
        row -= count;
        continue;
      }
      const std::size_t bytes = part.bytes.size() / at(count);
      return std::span(part.bytes).subspan(bytes * at(part.order.place(row)), bytes);
    }
    return {};
  }
};

// Sixteen rows are brought into the order of QuantizedMatMulAttr.
class Packer {
 public:
  Packer(const RowSource& source, gguf::BlockType type, const gguf::CodeForm& form, std::int64_t columns)
      : source_(source),
        type_(type),
        form_(form),
        columns_(columns),
        groups_(columns / form.group) {}

  Matrix pack() {
    Matrix out;
    out.rows = source_.rows;
    out.stored_rows = (source_.rows + kPanel - 1) / kPanel * kPanel;
    out.columns = columns_;
    out.codes = QuantizedMatMulAttr{form_.bits, form_.group, form_.zero};
    const std::int64_t panels = out.stored_rows / kPanel;
    const Shape scale_shape{panels, groups_, kPanel};
    const DType dtype = form_.has_half_scales ? DType::f16 : DType::f32;
    HostArray codes = HostArray::zeros(DType::u8, Shape{panels, groups_, form_.group * form_.bits / 32, kPanel, 4});
    HostArray scales = HostArray::zeros(dtype, scale_shape), minima;
    if (form_.has_minimum) minima = HostArray::zeros(dtype, scale_shape);
    std::byte* const code_bytes = codes.mutable_data();
    std::byte* const scale_bytes = scales.mutable_data();
    std::byte* const minimum_bytes = form_.has_minimum ? minima.mutable_data() : nullptr;
    const std::size_t panel_codes = codes.bytes() / at(panels), panel_scales = scales.bytes() / at(panels);
    process_pool().for_each(panels, [&](std::int64_t panel, int) {
      pack_panel(panel, reinterpret_cast<std::uint8_t*>(code_bytes + at(panel) * panel_codes),
                 scale_bytes + at(panel) * panel_scales, minimum_bytes ? minimum_bytes + at(panel) * panel_scales : nullptr);
    });
    out.parts = {Storage::from_host(std::move(codes)), Storage::from_host(std::move(scales))};
    if (form_.has_minimum) out.parts.push_back(Storage::from_host(std::move(minima)));
    return out;
  }

 private:
  void pack_panel(std::int64_t panel, std::uint8_t* codes, std::byte* scales, std::byte* minima) const {
    std::vector<std::uint8_t> row_codes(at(columns_));
    std::vector<float> row_scales(at(groups_)), row_minima(at(groups_));
    for (std::int64_t lane = 0; lane < kPanel && panel * kPanel + lane < source_.rows; ++lane) {
      gguf::unpack(type_, source_.row(panel * kPanel + lane), row_codes, row_scales, row_minima);
      for (std::int64_t g = 0; g < groups_; ++g) {
        pack_group(row_codes.data() + g * form_.group, codes + g * kPanel * form_.group * form_.bits / 8 + lane * 4);
        put(scales, g * kPanel + lane, row_scales[at(g)]);
        if (minima) put(minima, g * kPanel + lane, row_minima[at(g)]);
      }
    }
  }
  void pack_group(const std::uint8_t* from, std::uint8_t* to) const {
    const std::int64_t half = form_.group / 2;
    for (std::int64_t c = 0; c < (form_.bits == 8 ? form_.group : half); ++c)
      to[c / 4 * 4 * kPanel + c % 4] = form_.bits == 8 ? from[c] : static_cast<std::uint8_t>(from[c] | from[c + half] << 4);
  }
  void put(std::byte* to, std::int64_t i, float value) const {
    if (form_.has_half_scales) {
      const std::uint16_t bits = float_to_half(value);
      std::memcpy(to + 2 * i, &bits, sizeof bits);
    } else {
      std::memcpy(to + 4 * i, &value, sizeof value);
    }
  }

  const RowSource& source_;
  const gguf::BlockType type_;
  const gguf::CodeForm form_;
  const std::int64_t columns_, groups_;
};

Matrix floats_of(const RowSource& source, gguf::BlockType type, std::int64_t columns, WeightForm form) {
  DType dtype = form == WeightForm::single ? DType::f32 : DType::f16;
  if (form == WeightForm::as_stored && type == gguf::BlockType::f32) dtype = DType::f32;
  if (form == WeightForm::as_stored && type == gguf::BlockType::bf16) dtype = DType::bf16;
  Matrix out;
  out.rows = out.stored_rows = source.rows;
  out.columns = columns;
  HostArray array = HostArray::empty(dtype, Shape{source.rows, columns});
  std::byte* const data = array.mutable_data();
  const std::size_t row_bytes = at(columns) * element_bytes(dtype);
  const bool is_same = (type == gguf::BlockType::f32 && dtype == DType::f32) ||
                       (type == gguf::BlockType::f16 && dtype == DType::f16) ||
                       (type == gguf::BlockType::bf16 && dtype == DType::bf16);
  process_pool().for_each(source.rows, [&](std::int64_t row, int) {
    if (is_same) {
      std::memcpy(data + at(row) * row_bytes, source.row(row).data(), row_bytes);
      return;
    }
    std::vector<float> values(at(columns));
    gguf::dequantize(type, source.row(row), values);
    const HostArray converted = HostArray::from<float>(Shape{columns}, std::span<const float>(values)).cast(dtype);
    std::memcpy(data + at(row) * row_bytes, converted.data(), row_bytes);
  });
  out.parts = {Storage::from_host(std::move(array))};
  return out;
}

class Loader {
 public:
  Loader(const gguf::Source& file, const Architecture& architecture, WeightForm form)
      : file_(file),
        a_(architecture),
        form_(form) {}

  Weights run(bool with_embedding) {
    Weights weights;
    for (std::int64_t i = 0; i < a_.layers; ++i) weights.layers.push_back(layer(fmt::format("blk.{}.", i)));
    weights.norm = norm("output_norm", a_.width);
    weights.head = matrices({{has("output") ? "output" : "token_embd", a_.vocabulary}}, a_.width)[0];
    if (with_embedding) weights.embedding = has("output") ? matrices({{"token_embd", a_.vocabulary}}, a_.width)[0] : weights.head;
    weights.bytes = bytes_;
    return weights;
  }

 private:
  using Order = HeadOrder::Kind;
  struct Wanted {
    std::string name;
    std::int64_t rows;
    Order order = Order::as_used;
  };

  Layer layer(const std::string& prefix) {
    const std::int64_t q = a_.heads * a_.head_width, kv = a_.kv_heads * a_.head_width;
    const bool is_fused = has(prefix + "attn_qkv");
    Layer out;
    // Where results are normalised, what they are computed from need not be.
    out.after_attention = optional_norm(prefix + "post_attention_norm", a_.width);
    out.after_feed_forward = optional_norm(prefix + "post_ffw_norm", a_.width);
    const bool needs_norms = !out.after_attention.scale;
    if (needs_norms || has(prefix + "attn_norm")) out.attention_norm = norm(prefix + "attn_norm", a_.width);
    if (needs_norms || has(prefix + "ffn_norm")) out.feed_forward_norm = norm(prefix + "ffn_norm", a_.width);
    if (has(prefix + "attn_q_norm")) {
      out.q_norm = head_norm(prefix + "attn_q_norm", q);
      out.k_norm = head_norm(prefix + "attn_k_norm", kv);
    }
    const Order turned = a_.pairs_neighbours ? Order::neighbours : Order::as_used;
    if (is_fused && a_.pairs_neighbours)
      throw Error(ErrorCode::unimplemented,
                  fmt::format("'{}attn_qkv' has queries, keys and values in one tensor, whose rows are rotated as neighbours; "
                              "such tensors are not reordered",
                              printable(prefix)),
                  "convert the model with separate tensors attn_q, attn_k and attn_v");
    if (is_fused)
      out.qkv = matrices({{prefix + "attn_qkv", q + 2 * kv, a_.has_qkv_by_head ? Order::by_head : Order::as_used}}, a_.width);
    else
      out.qkv = matrices({{prefix + "attn_q", q, turned}, {prefix + "attn_k", kv, turned}, {prefix + "attn_v", kv}}, a_.width);
    out.output = matrices({{prefix + "attn_output", a_.width}}, q)[0];
    if (!a_.is_gated)
      out.gate_up = matrices({{prefix + "ffn_up", a_.feed_forward}}, a_.width);
    else if (has(prefix + "ffn_gate"))
      out.gate_up = matrices({{prefix + "ffn_gate", a_.feed_forward}, {prefix + "ffn_up", a_.feed_forward}}, a_.width);
    else
      out.gate_up = matrices({{prefix + "ffn_up", 2 * a_.feed_forward}}, a_.width);
    out.down = matrices({{prefix + "ffn_down", a_.width}}, a_.feed_forward)[0];
    return out;
  }

  bool has(const std::string& name) const { return file_.find_tensor(name + ".weight") != nullptr; }

  const gguf::TensorInfo& checked(const std::string& name, std::int64_t rows, std::int64_t columns) const {
    const gguf::TensorInfo& tensor = file_.tensor(name);
    if (tensor.rows() != rows || tensor.columns() != columns)
      throw Error(ErrorCode::invalid_argument, fmt::format("the tensor '{}' is {} x {}, the model needs {} x {}", printable(name),
                                                           tensor.rows(), tensor.columns(), rows, columns));
    return tensor;
  }

  HeadOrder order(Order kind) const { return {kind, a_.head_width, a_.rotated, a_.heads}; }

  std::vector<float> floats(const std::string& name, std::int64_t elements, Order kind) {
    std::vector<float> values = file_.floats(checked(name, 1, elements));
    if (kind == Order::as_used) return values;
    const std::vector<float> before = values;
    const HeadOrder by = order(kind);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = before[at(by.place(static_cast<std::int64_t>(i)))];
    return values;
  }
  std::shared_ptr<Storage> stored(const std::vector<float>& values) {
    bytes_ += values.size() * sizeof(float);
    return Storage::from_host(
        HostArray::from<float>(Shape{static_cast<std::int64_t>(values.size())}, std::span<const float>(values)));
  }
  Norm norm(const std::string& name, std::int64_t elements) {
    std::vector<float> scale = floats(name + ".weight", elements, Order::as_used);
    if (a_.norms_add_one)
      for (float& each : scale) each += 1;
    Norm out{stored(scale), nullptr};
    if (file_.find_tensor(name + ".bias")) out.bias = stored(floats(name + ".bias", elements, Order::as_used));
    return out;
  }
  Norm optional_norm(const std::string& name, std::int64_t elements) { return has(name) ? norm(name, elements) : Norm{}; }
  // Of one head, or of the |all| elements of all heads.
  Norm head_norm(const std::string& name, std::int64_t all) {
    return norm(name, file_.tensor(name + ".weight").elements() == all ? all : a_.head_width);
  }

  Matrix packed(const RowSource& source, gguf::BlockType type, std::int64_t columns) {
    const std::optional<gguf::CodeForm> form = gguf::code_form(type);
    Matrix out = form && form_ == WeightForm::as_stored ? Packer(source, type, *form, columns).pack()
                                                        : floats_of(source, type, columns, form_);
    for (const auto& part : out.parts) bytes_ += storage_bytes(part->type().dtype, part->type().shape);
    return out;
  }

  // Neighbours in one format become one matrix.
  std::vector<Matrix> matrices(const std::vector<Wanted>& wanted, std::int64_t columns) {
    std::vector<Matrix> out;
    for (std::size_t begin = 0; begin < wanted.size();) {
      const gguf::BlockType type = file_.tensor(wanted[begin].name + ".weight").type;
      RowSource source;
      std::vector<float> bias;
      std::size_t end = begin;
      for (; end < wanted.size() && file_.tensor(wanted[end].name + ".weight").type == type; ++end) {
        const Wanted& each = wanted[end];
        const gguf::TensorInfo& tensor = checked(each.name + ".weight", each.rows, columns);
        source.parts.push_back({&tensor, file_.rows(tensor, 0, each.rows), order(each.order)});
        source.rows += each.rows;
        if (file_.find_tensor(each.name + ".bias")) {
          bias.resize(at(source.rows - each.rows));
          const std::vector<float> more = floats(each.name + ".bias", each.rows, each.order);
          bias.insert(bias.end(), more.begin(), more.end());
        }
      }
      out.push_back(packed(source, type, columns));
      if (!bias.empty()) {
        bias.resize(at(source.rows));
        out.back().bias = stored(bias);
      }
      begin = end;
    }
    return out;
  }

  const gguf::Source& file_;
  const Architecture& a_;
  const WeightForm form_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Weights load_weights(const gguf::Source& source, const Architecture& architecture, WeightForm form, bool with_embedding) {
  return Loader(source, architecture, form).run(with_embedding);
}

}  // namespace tenon::decoder
