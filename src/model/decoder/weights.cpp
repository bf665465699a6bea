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

// Rows of a matrix in the order in which they are used: of one tensor or of several, one after the other.
struct RowSource {
  struct Part {
    const gguf::TensorInfo* tensor = nullptr;
    std::vector<std::byte> bytes;
    std::int64_t neighbours = 0;  // head width, if rows of heads go from pairs of neighbours to halves
    std::int64_t rotated = 0;
  };
  std::vector<Part> parts;
  std::int64_t rows = 0;

  // Where the file has row |row|.
  std::span<const std::byte> row(std::int64_t row) const {
    for (const Part& part : parts) {
      const std::int64_t count = part.tensor->rows();
      if (row >= count) {
        row -= count;
        continue;
      }
      if (part.neighbours > 0) {
        const std::int64_t head = row / part.neighbours, i = row % part.neighbours, half = part.rotated / 2;
        if (i < part.rotated) row = head * part.neighbours + (i < half ? 2 * i : 2 * (i - half) + 1);
      }
      const std::size_t bytes = part.bytes.size() / at(count);
      return std::span(part.bytes).subspan(bytes * at(row), bytes);
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
  process_pool().for_each(source.rows, [&](std::int64_t row, int) {
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
  Loader(const gguf::GgufFile& file, const Architecture& architecture, WeightForm form)
      : file_(file),
        a_(architecture),
        form_(form) {}

  Weights run(bool with_embedding) {
    Weights weights;
    for (std::int64_t i = 0; i < a_.layers; ++i) weights.layers.push_back(layer(fmt::format("blk.{}.", i)));
    weights.norm = vector("output_norm.weight", a_.width);
    weights.head = matrix(file_.find_tensor("output.weight") ? "output.weight" : "token_embd.weight", a_.vocabulary, a_.width);
    if (with_embedding)
      weights.embedding =
          file_.find_tensor("output.weight") ? matrix("token_embd.weight", a_.vocabulary, a_.width) : weights.head;
    weights.bytes = bytes_;
    return weights;
  }

 private:
  struct Wanted {
    std::string name;
    std::int64_t rows;
    bool is_rotated = false;
  };

  Layer layer(const std::string& prefix) {
    const std::int64_t q = a_.heads * a_.head_width, kv = a_.kv_heads * a_.head_width;
    Layer out;
    out.attention_norm = vector(prefix + "attn_norm.weight", a_.width);
    out.feed_forward_norm = vector(prefix + "ffn_norm.weight", a_.width);
    if (file_.find_tensor(prefix + "attn_q_norm.weight")) {
      out.q_norm = vector(prefix + "attn_q_norm.weight", a_.head_width);
      out.k_norm = vector(prefix + "attn_k_norm.weight", a_.head_width);
    }
    out.qkv = matrices({{prefix + "attn_q", q, true}, {prefix + "attn_k", kv, true}, {prefix + "attn_v", kv}}, a_.width);
    out.output = matrices({{prefix + "attn_output", a_.width}}, q)[0];
    out.gate_up = matrices({{prefix + "ffn_gate", a_.feed_forward}, {prefix + "ffn_up", a_.feed_forward}}, a_.width);
    out.down = matrices({{prefix + "ffn_down", a_.width}}, a_.feed_forward)[0];
    return out;
  }

  const gguf::TensorInfo& checked(const std::string& name, std::int64_t rows, std::int64_t columns) const {
    const gguf::TensorInfo& tensor = file_.tensor(name);
    if (tensor.rows() != rows || tensor.columns() != columns)
      throw Error(ErrorCode::invalid_argument, fmt::format("the tensor '{}' is {} x {}, the model needs {} x {}", printable(name),
                                                           tensor.rows(), tensor.columns(), rows, columns));
    return tensor;
  }

  std::vector<float> floats(const std::string& name, std::int64_t elements, bool is_rotated) {
    std::vector<float> values = file_.floats(checked(name, 1, elements));
    if (is_rotated && a_.pairs_neighbours) {
      const std::vector<float> before = values;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t head = static_cast<std::int64_t>(i) / a_.head_width,
                           place = static_cast<std::int64_t>(i) % a_.head_width;
        if (place >= a_.rotated) continue;
        const std::int64_t half = a_.rotated / 2;
        values[i] = before[at(head * a_.head_width + (place < half ? 2 * place : 2 * (place - half) + 1))];
      }
    }
    return values;
  }
  std::shared_ptr<Storage> stored(const std::vector<float>& values) {
    bytes_ += values.size() * sizeof(float);
    return Storage::from_host(
        HostArray::from<float>(Shape{static_cast<std::int64_t>(values.size())}, std::span<const float>(values)));
  }
  std::shared_ptr<Storage> vector(const std::string& name, std::int64_t elements) {
    return stored(floats(name, elements, false));
  }

  Matrix matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    const gguf::TensorInfo& tensor = checked(name, rows, columns);
    RowSource source;
    source.parts.push_back({&tensor, file_.rows(tensor, 0, rows), 0, 0});
    source.rows = rows;
    return packed(source, tensor.type, columns);
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
        const bool reorders = each.is_rotated && a_.pairs_neighbours;
        source.parts.push_back({&tensor, file_.rows(tensor, 0, each.rows), reorders ? a_.head_width : 0, a_.rotated});
        source.rows += each.rows;
        if (file_.find_tensor(each.name + ".bias")) {
          bias.resize(at(source.rows - each.rows));
          const std::vector<float> more = floats(each.name + ".bias", each.rows, each.is_rotated);
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

  const gguf::GgufFile& file_;
  const Architecture& a_;
  const WeightForm form_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Weights load_weights(const gguf::GgufFile& file, const Architecture& architecture, WeightForm form, bool with_embedding) {
  return Loader(file, architecture, form).run(with_embedding);
}

}  // namespace tenon::decoder
