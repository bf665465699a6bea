#include "model/decoder/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

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
  std::int64_t head_width = 1;
  std::int64_t rotated = 0, turned_heads = 0;  // pairs of neighbours in the first so many heads become halves
  std::int64_t groups = 0, shared = 1;         // queries that share a key, the key, the value become all queries, all keys, ...

  // Where the file has row |row|.
  std::int64_t place(std::int64_t row) const {
    std::int64_t head = row / head_width, i = row % head_width;
    const std::int64_t half = rotated / 2, queries = groups * shared;
    if (head < turned_heads && i < rotated) i = i < half ? 2 * i : 2 * (i - half) + 1;
    if (groups > 0)
      head = head < queries ? head / shared * (shared + 2) + head % shared
                            : (head - queries) % groups * (shared + 2) + shared + (head - queries) / groups;
    return head * head_width + i;
  }
};

// Rows of a matrix in the order in which they are used: of one tensor or of several, one after the other or side by side.
struct RowSource {
  struct Part {
    std::int64_t rows = 0;
    std::vector<std::byte> bytes = {};
    HeadOrder order = {};

    std::span<const std::byte> row(std::int64_t row) const {
      const std::size_t size = bytes.size() / at(rows);
      return std::span(bytes).subspan(size * at(order.place(row)), size);
    }
  };
  std::vector<Part> parts = {};
  std::int64_t rows = 0;
  bool is_side_by_side = false;

  // |joined|: where parts of a row are joined.
  std::span<const std::byte> row(std::int64_t row, std::vector<std::byte>& joined) const {
    if (is_side_by_side) {
      joined.clear();
      for (const Part& part : parts) joined.insert(joined.end(), part.row(row).begin(), part.row(row).end());
      return joined;
    }
    for (const Part& part : parts) {
      if (row < part.rows) return part.row(row);
      row -= part.rows;
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
    std::vector<std::byte> joined;
    for (std::int64_t lane = 0; lane < kPanel && panel * kPanel + lane < source_.rows; ++lane) {
      gguf::unpack(type_, source_.row(panel * kPanel + lane, joined), row_codes, row_scales, row_minima);
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
    std::vector<std::byte> joined;
    const std::span<const std::byte> bytes = source.row(row, joined);
    if (is_same) {
      std::memcpy(data + at(row) * row_bytes, bytes.data(), row_bytes);
      return;
    }
    std::vector<float> values(at(columns));
    gguf::dequantize(type, bytes, values);
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
    weights.embedding_norm = optional_norm("token_embd_norm", a_.width);
    if (a_.largest_slope_bits > 0) weights.slopes = stored(alibi_slopes(a_.heads, a_.largest_slope_bits));
    weights.head = matrices({{has("output") ? "output" : "token_embd", a_.vocabulary}}, a_.width)[0];
    if (with_embedding) weights.embedding = has("output") ? matrices({{"token_embd", a_.vocabulary}}, a_.width)[0] : weights.head;
    weights.bytes = bytes_;
    return weights;
  }

 private:
  struct Wanted {
    std::string name;
    std::int64_t rows;
    HeadOrder order = {};
  };

  Layer layer(const std::string& prefix) {
    const std::int64_t q = a_.heads * a_.head_width, kv = a_.kv_heads * a_.head_width;
    Layer out;
    // Where results are normalised, what they are computed from need not be.
    out.after_attention = optional_norm(prefix + "post_attention_norm", a_.width);
    out.after_feed_forward = optional_norm(prefix + "post_ffw_norm", a_.width);
    const bool needs_norms = !out.after_attention.scale;
    if (needs_norms || has(prefix + "attn_norm")) out.attention_norm = norm(prefix + "attn_norm", a_.width);
    if (has(prefix + "attn_norm_2")) {
      // Falcon has the norm of its feed-forward first.
      out.feed_forward_norm = std::exchange(out.attention_norm, norm(prefix + "attn_norm_2", a_.width));
    } else if (a_.is_parallel && !has(prefix + "ffn_norm")) {
      out.feed_forward_norm = out.attention_norm;
    } else if (needs_norms || has(prefix + "ffn_norm")) {
      out.feed_forward_norm = norm(prefix + "ffn_norm", a_.width);
    }
    if (has(prefix + "attn_q_norm")) {
      out.q_norm = head_norm(prefix + "attn_q_norm", q);
      out.k_norm = head_norm(prefix + "attn_k_norm", kv);
    }
    const auto order = [&](std::int64_t turned_heads) {
      return HeadOrder{
          .head_width = a_.head_width, .rotated = a_.rotated, .turned_heads = a_.pairs_neighbours ? turned_heads : 0};
    };
    if (has(prefix + "attn_qkv")) {
      HeadOrder fused = order(a_.heads + a_.kv_heads);
      if (a_.has_qkv_by_group) {
        fused.groups = a_.kv_heads;
        fused.shared = a_.rows_per_head();
      }
      out.qkv = matrices({{prefix + "attn_qkv", q + 2 * kv, fused}}, a_.width);
    } else {
      out.qkv = matrices(
          {{prefix + "attn_q", q, order(a_.heads)}, {prefix + "attn_k", kv, order(a_.kv_heads)}, {prefix + "attn_v", kv}},
          a_.width);
    }
    out.output = matrices({{prefix + "attn_output", a_.width}}, q)[0];
    if (a_.experts.count > 0 && has(prefix + "ffn_gate_inp")) out.experts = experts(prefix);
    const bool is_shared = out.experts || !has(prefix + "ffn_down");
    if (!is_shared)
      out.feed_forward = feed_forward(prefix, "", a_.feed_forward);
    else if (!out.experts || has(prefix + "ffn_down_shexp"))
      out.feed_forward = feed_forward(prefix, "_shexp", a_.experts.shared_width);
    return out;
  }

  FeedForward feed_forward(const std::string& prefix, const char* suffix, std::int64_t inner) {
    const std::string gate = prefix + "ffn_gate" + suffix, up = prefix + "ffn_up" + suffix;
    FeedForward out;
    if (!a_.is_gated)
      out.gate_up = matrices({{up, inner}}, a_.width);
    else if (has(gate))
      out.gate_up = matrices({{gate, inner}, {up, inner}}, a_.width);
    else
      out.gate_up = matrices({{up, 2 * inner}}, a_.width);
    out.down = matrices({{prefix + "ffn_down" + suffix, a_.width}}, inner)[0];
    return out;
  }

  // A matrix of all experts, which the file has in one tensor ("ffn_up_exps") or in one for each ("ffn_up.7").
  class ExpertRows {
   public:
    ExpertRows(const Loader& loader, const std::string& name, std::int64_t rows, std::int64_t columns)
        : loader_(loader),
          name_(name),
          rows_(rows),
          columns_(columns),
          all_(loader.has(name + "_exps") ? &loader.checked(name + "_exps.weight", loader.a_.experts.count * rows, columns)
                                          : nullptr) {}
    gguf::BlockType type() const { return all_ ? all_->type : loader_.file_.tensor(name_ + ".0.weight").type; }
    void add_to(RowSource& source, std::int64_t expert) const {
      RowSource::Part part{.rows = rows_};
      if (all_) {
        part.bytes = loader_.file_.rows(*all_, expert * rows_, rows_);
      } else {
        const gguf::TensorInfo& own = loader_.checked(fmt::format("{}.{}.weight", name_, expert), rows_, columns_);
        if (own.type != type())
          throw Error(ErrorCode::unimplemented, "experts of one layer in different formats are not supported");
        part.bytes = loader_.file_.rows(own, 0, rows_);
      }
      source.parts.push_back(std::move(part));
    }

   private:
    const Loader& loader_;
    const std::string name_;
    const std::int64_t rows_, columns_;
    const gguf::TensorInfo* const all_;
  };

  Experts experts(const std::string& prefix) {
    const std::int64_t count = a_.experts.count, inner = a_.experts.width;
    const auto in_all = [&](std::initializer_list<const ExpertRows*> kinds, std::int64_t rows, bool is_side_by_side) {
      RowSource source{.rows = rows, .is_side_by_side = is_side_by_side};
      for (std::int64_t i = 0; i < count; ++i)
        for (const ExpertRows* kind : kinds) kind->add_to(source, i);
      return packed(source, (*kinds.begin())->type(), is_side_by_side ? count * inner : a_.width, inner);
    };
    Experts out;
    out.router = router(prefix + "ffn_gate_inp", count);
    if (has(prefix + "ffn_gate_inp_shexp")) out.shared_gate = router(prefix + "ffn_gate_inp_shexp", 1);
    if (has(prefix + "ffn_gate_up_exps")) {
      const ExpertRows both(*this, prefix + "ffn_gate_up", 2 * inner, a_.width);
      out.all.gate_up = {in_all({&both}, count * 2 * inner, false)};
    } else {
      const ExpertRows gate(*this, prefix + "ffn_gate", inner, a_.width), up(*this, prefix + "ffn_up", inner, a_.width);
      if (gate.type() == up.type())
        out.all.gate_up = {in_all({&gate, &up}, count * 2 * inner, false)};
      else
        out.all.gate_up = {in_all({&gate}, count * inner, false), in_all({&up}, count * inner, false)};
    }
    const ExpertRows down(*this, prefix + "ffn_down", a_.width, inner);
    out.all.down = in_all({&down}, a_.width, true);
    return out;
  }
  // What decides is not rounded.
  Matrix router(const std::string& name, std::int64_t rows) {
    const gguf::TensorInfo& tensor = checked(name + ".weight", rows, a_.width);
    RowSource source{.rows = rows};
    source.parts.push_back({.rows = rows, .bytes = file_.rows(tensor, 0, rows)});
    Matrix out = floats_of(source, tensor.type, a_.width, WeightForm::single);
    bytes_ += storage_bytes(DType::f32, out.parts[0]->type().shape);
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

  std::vector<float> floats(const std::string& name, std::int64_t elements, const HeadOrder& order = {}) {
    const std::vector<float> before = file_.floats(checked(name, 1, elements));
    std::vector<float> values(before.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = before[at(order.place(static_cast<std::int64_t>(i)))];
    return values;
  }
  std::shared_ptr<Storage> stored(const std::vector<float>& values) {
    bytes_ += values.size() * sizeof(float);
    return Storage::from_host(
        HostArray::from<float>(Shape{static_cast<std::int64_t>(values.size())}, std::span<const float>(values)));
  }
  Norm norm(const std::string& name, std::int64_t elements) {
    if (a_.has_plain_norms && !has(name)) return {stored(std::vector<float>(at(elements), 1)), nullptr};
    std::vector<float> scale = floats(name + ".weight", elements);
    if (a_.norms_add_one)
      for (float& each : scale) each += 1;
    Norm out{stored(scale), nullptr};
    if (file_.find_tensor(name + ".bias")) out.bias = stored(floats(name + ".bias", elements));
    return out;
  }
  Norm optional_norm(const std::string& name, std::int64_t elements) { return has(name) ? norm(name, elements) : Norm{}; }
  // Of one head, or of the |all| elements of all heads.
  Norm head_norm(const std::string& name, std::int64_t all) {
    return norm(name, file_.tensor(name + ".weight").elements() == all ? all : a_.head_width);
  }

  // |cut|: rows, or columns, after which a program may cut the matrix; rows of small integers are stored sixteen together.
  Matrix packed(const RowSource& source, gguf::BlockType type, std::int64_t columns, std::int64_t cut = kPanel) {
    const std::optional<gguf::CodeForm> form = gguf::code_form(type);
    Matrix out = form && form_ == WeightForm::as_stored && cut % kPanel == 0 ? Packer(source, type, *form, columns).pack()
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
        source.parts.push_back({each.rows, file_.rows(tensor, 0, each.rows), each.order});
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
