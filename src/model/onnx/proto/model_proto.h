// An ONNX file as plain structs: what its messages say, checked for form but not for meaning.
//
// Lifetime: texts and tensor data are views into the bytes that were parsed, which must outlive the structs.
// Errors: invalid_argument for bytes that do not follow the format, resource_exhausted beyond the limits below, unimplemented for
// sparse tensors and maps. Parsing allocates at most kOnnxParseFactor bytes per byte of input, plus kOnnxParseAllowance.
//
//   const std::vector<std::byte> file = ...;
//   const ModelProto model = parse_model(file);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/onnx/element_type.h"
#include "model/onnx/proto/wire.h"

namespace tenon::onnx {

inline constexpr std::size_t kOnnxParseFactor = 160;
inline constexpr std::size_t kOnnxParseAllowance = std::size_t{64} << 10;
inline constexpr int kMaxNesting = 16;             // of graphs within attributes, and of types
inline constexpr std::size_t kMaxNodes = 400'000;  // of one model, all graphs together
inline constexpr std::size_t kMaxNameBytes = 4096;

struct TensorProto {
  std::string_view name;
  ElementType type = ElementType::undefined;
  std::vector<std::int64_t> dims;
  Bytes raw;
  // The fields that hold the elements if there are no raw bytes, each undecoded: packed and unpacked parts in their order.
  std::vector<float> floats;
  std::vector<std::int64_t> integers;  // int32_data, int64_data and uint64_data
  std::vector<double> doubles;
  std::vector<std::string_view> strings;
  bool has_raw = false;
  bool is_external = false;
  std::map<std::string_view, std::string_view> external;  // location, offset, length
};

struct GraphProto;

// What a value is: a tensor with dims that may be unknown, a sequence or an optional of something.
struct TypeProto {
  enum class Kind : std::uint8_t { unknown, tensor, sequence, optional };
  struct Dim {
    std::optional<std::int64_t> extent;  // none: any. A negative extent, as some exporters write, counts as none
    std::string_view name;               // equal names are equal extents
  };
  Kind kind = Kind::unknown;
  ElementType element = ElementType::undefined;
  bool has_shape = false;
  bool is_map = false;  // of something to |element|
  std::vector<Dim> dims;
  std::shared_ptr<TypeProto> item;  // of a sequence or an optional
};

struct ValueInfoProto {
  std::string_view name;
  TypeProto type;
};

struct AttributeProto {
  std::string_view name;
  std::string_view reference;  // the attribute of the surrounding function whose value this takes
  std::int64_t kind = 0;       // AttributeType of the format; 0 if the file does not say
  float number = 0;
  std::int64_t integer = 0;
  std::string_view text;
  std::vector<float> numbers;
  std::vector<std::int64_t> integers;
  std::vector<std::string_view> texts;
  std::shared_ptr<const TensorProto> tensor;
  std::vector<TensorProto> tensors;
  std::shared_ptr<const GraphProto> graph;
  std::shared_ptr<const TypeProto> type;
};

struct NodeProto {
  std::string_view name, op, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeProto> attributes;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueInfoProto> inputs, outputs;
};

using OpsetImports = std::map<std::string_view, std::int64_t>;  // version by domain; "ai.onnx" is ""

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeProto> defaults;
  std::vector<NodeProto> nodes;
  OpsetImports opsets;
};

struct ModelProto {
  std::int64_t ir_version = 0;
  std::string_view producer, producer_version;
  OpsetImports opsets;
  GraphProto graph;
  std::vector<FunctionProto> functions;
  std::map<std::string_view, std::string_view> metadata;
};

ModelProto parse_model(Bytes bytes);
TensorProto parse_tensor(Bytes bytes);

// A value in a file of its own, as the test sets of ONNX store inputs and outputs.
struct ValueProto {
  TypeProto::Kind kind = TypeProto::Kind::tensor;
  TensorProto tensor;
  std::vector<ValueProto> items;  // of a sequence; one or none of an optional
};
// |type| says which message |bytes| are.
ValueProto parse_value(Bytes bytes, const TypeProto& type);

}  // namespace tenon::onnx
