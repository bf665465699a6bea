// The converters of ONNX ops, one file per family. Each function adds its own to the table.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "model/onnx/import/node_context.h"

namespace tenon::onnx {

class ConverterTable {
 public:
  void add(std::string_view op, Converter converter) { converters_.insert_or_assign(std::string(op), converter); }
  void add(std::initializer_list<std::string_view> ops, Converter converter) {
    for (const std::string_view op : ops) add(op, converter);
  }
  Converter find(std::string_view op) const { return converters_.at(std::string(op)); }
  const std::map<std::string, Converter, std::less<>>& all() const noexcept { return converters_; }

 private:
  std::map<std::string, Converter, std::less<>> converters_;  // "domain.Op" outside ONNX's own domain
};

void add_attention(ConverterTable& table);
void add_control(ConverterTable& table);
void add_convolution(ConverterTable& table);
void add_elementwise(ConverterTable& table);
void add_indexing(ConverterTable& table);
void add_losses(ConverterTable& table);
void add_linear_models(ConverterTable& table);
void add_microsoft_attention(ConverterTable& table);
void add_microsoft_fused(ConverterTable& table);
void add_microsoft_quantized(ConverterTable& table);
void add_normalization(ConverterTable& table);
void add_pooling(ConverterTable& table);
void add_products(ConverterTable& table);
void add_quantization(ConverterTable& table);
void add_random(ConverterTable& table);
void add_recurrent(ConverterTable& table);
void add_reductions(ConverterTable& table);
void add_resize(ConverterTable& table);
void add_selection(ConverterTable& table);
void add_sequences(ConverterTable& table);
void add_shape(ConverterTable& table);
void add_signal(ConverterTable& table);
void add_support_vectors(ConverterTable& table);
void add_text(ConverterTable& table);
void add_tables(ConverterTable& table);
void add_training(ConverterTable& table);
void add_trees(ConverterTable& table);
void add_types(ConverterTable& table);
void add_vision(ConverterTable& table);

// --- Shared by the families ---

// A number that combines with |x| without changing its type.
Expr same(Expr x, double value);
// Strides of a row-major shape.
Dims strides_of(const Dims& extents);
// |x| with |axes| moved to the end, in their order.
Expr axes_last(Expr x, const std::vector<int>& axes);
Expr expand_to(Expr x, const Shape& shape);
// Indices of any integer type as i64, counted from the start of an axis of |extent|.
Expr wrapped_indices(Expr indices, std::int64_t extent);
// Values of small types stay what they are when elements are only moved.
Result moved(const NodeContext& node, std::size_t input, Expr x);
// The smallest and largest value of a type, -inf and inf for floats.
Expr lowest(Expr like);
Expr highest(Expr like);

}  // namespace tenon::onnx
