#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/text/printable.h"
#include "base/threads/stop_scope.h"
#include "model/onnx/model_watch.h"
#include "model/onnx/proto/model_proto.h"
#include "tenon/error.h"

namespace tenon::onnx {
namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorCode::invalid_argument, "ONNX: " + problem, "the file is damaged or not an ONNX file");
}

constexpr std::uint64_t kMapEntry = 96;  // of two views

// For an element of a list that grows by doubling.
template <class T>
void count() {
  ModelWatch::tell_keeps(2 * sizeof(T));
}
// For repeated numbers: a packed integer takes one byte in the file.
void count_integers(const WireReader& reader) { ModelWatch::tell_keeps(2 * sizeof(std::int64_t) * reader.size()); }
void count_floats(const WireReader& reader) { ModelWatch::tell_keeps(2 * std::max(reader.size(), sizeof(double))); }

// What one parse has used up of the limits.
struct Parse {
  std::size_t nodes = 0;
  int depth = 0;
};

class Nested {
 public:
  explicit Nested(Parse& parse) : parse_(parse) {
    if (++parse_.depth > kMaxNesting)
      throw Error(ErrorCode::resource_exhausted, fmt::format("ONNX: graphs or types are nested more than {} deep", kMaxNesting));
  }
  ~Nested() { --parse_.depth; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  Parse& parse_;
};

std::string_view name_of(const WireReader& reader) {
  const std::string_view text = reader.text();
  if (text.size() > kMaxNameBytes)
    throw Error(ErrorCode::resource_exhausted,
                fmt::format("ONNX: a name of {} bytes is too long (at most {})", text.size(), kMaxNameBytes));
  return text;
}

ElementType element_of(std::int64_t number) {
  if (number < 0 || number >= kElementTypes) refuse(fmt::format("unknown element type {}", number));
  return static_cast<ElementType>(number);
}

std::pair<std::string_view, std::string_view> entry(Bytes bytes) {
  std::pair<std::string_view, std::string_view> result;
  WireReader reader(bytes, "entry");
  while (reader.next()) {
    if (reader.field() == 1) result.first = reader.text();
    if (reader.field() == 2) result.second = reader.text();
  }
  return result;
}

TypeProto::Dim dim(Bytes bytes) {
  TypeProto::Dim result;
  WireReader reader(bytes, "dimension");
  while (reader.next()) {
    if (reader.field() == 1 && reader.integer() >= 0) result.extent = reader.integer();
    if (reader.field() == 2) result.name = name_of(reader);
  }
  // What exporters write where they mean nothing in particular: not one extent, although the text is the same everywhere.
  for (const std::string_view nothing : {"?", "*", "-1", "None"})
    if (result.name == nothing) result.name = {};
  return result;
}

void tensor_type(Bytes bytes, TypeProto& out) {
  out.kind = TypeProto::Kind::tensor;
  WireReader reader(bytes, "tensor type");
  while (reader.next()) {
    if (reader.field() == 1) out.element = element_of(reader.integer());
    if (reader.field() != 2) continue;
    out.has_shape = true;
    WireReader shape(reader.bytes(), "shape");
    while (shape.next())
      if (shape.field() == 1) {
        count<TypeProto::Dim>();
        out.dims.push_back(dim(shape.bytes()));
      }
    if (out.dims.size() > 64) refuse(fmt::format("a type has {} dimensions", out.dims.size()));
  }
}

TypeProto type(Bytes bytes, Parse& parse);

std::shared_ptr<TypeProto> item_type(Bytes bytes, Parse& parse) {
  WireReader reader(bytes, "item type");
  std::shared_ptr<TypeProto> item;
  while (reader.next())
    if (reader.field() == 1) item = std::make_shared<TypeProto>(type(reader.bytes(), parse));
  return item ? item : std::make_shared<TypeProto>();
}

// The type of the values of a map.
void map_type(Bytes bytes, TypeProto& out, Parse& parse) {
  WireReader reader(bytes, "map type");
  while (reader.next())
    if (reader.field() == 2) out.element = type(reader.bytes(), parse).element;
  out.is_map = true;
}

TypeProto type(Bytes bytes, Parse& parse) {
  const Nested nested(parse);
  count<TypeProto>();
  TypeProto out;
  WireReader reader(bytes, "type");
  while (reader.next()) switch (reader.field()) {
      case 1: tensor_type(reader.bytes(), out); break;
      case 4:
        out.kind = TypeProto::Kind::sequence;
        out.item = item_type(reader.bytes(), parse);
        // Classifiers end in a map of labels to scores for each row (ZipMap): here a tensor with a column for each label.
        if (out.item->is_map) out = {.kind = TypeProto::Kind::tensor, .element = out.item->element};
        break;
      case 9:
        out.kind = TypeProto::Kind::optional;
        out.item = item_type(reader.bytes(), parse);
        break;
      case 5: map_type(reader.bytes(), out, parse); break;
      case 8: throw Error(ErrorCode::unimplemented, "ONNX: sparse tensors are not supported");
      default: break;
    }
  return out;
}

ValueInfoProto value_info(Bytes bytes, Parse& parse) {
  count<ValueInfoProto>();
  ValueInfoProto out;
  WireReader reader(bytes, "value");
  while (reader.next()) {
    if (reader.field() == 1) out.name = name_of(reader);
    if (reader.field() == 2) out.type = type(reader.bytes(), parse);
  }
  if (out.type.is_map) throw Error(ErrorCode::unimplemented, "ONNX: maps are not supported");
  return out;
}

GraphProto graph(Bytes bytes, Parse& parse);

AttributeProto attribute(Bytes bytes, Parse& parse) {
  count<AttributeProto>();
  AttributeProto out;
  WireReader reader(bytes, "attribute");
  while (reader.next()) switch (reader.field()) {
      case 1: out.name = name_of(reader); break;
      case 2: out.number = reader.real(); break;
      case 3: out.integer = reader.integer(); break;
      case 4: out.text = reader.text(); break;
      case 5: out.tensor = std::make_shared<TensorProto>(parse_tensor(reader.bytes())); break;
      case 6: out.graph = std::make_shared<GraphProto>(graph(reader.bytes(), parse)); break;
      case 7:
        count_floats(reader);
        reader.append(out.numbers);
        break;
      case 8:
        count_integers(reader);
        reader.append(out.integers);
        break;
      case 9:
        count<std::string_view>();
        out.texts.push_back(reader.text());
        break;
      case 10: out.tensors.push_back(parse_tensor(reader.bytes())); break;
      case 14: out.type = std::make_shared<TypeProto>(type(reader.bytes(), parse)); break;
      case 20: out.kind = reader.integer(); break;
      case 21: out.reference = name_of(reader); break;
      case 11: throw Error(ErrorCode::unimplemented, "ONNX: lists of graphs are not supported");
      case 22:
      case 23: throw Error(ErrorCode::unimplemented, "ONNX: sparse tensors are not supported");
      default: break;
    }
  if (out.name.empty()) refuse("an attribute has no name");
  return out;
}

NodeProto node(Bytes bytes, Parse& parse) {
  if (++parse.nodes > kMaxNodes)
    throw Error(ErrorCode::resource_exhausted, fmt::format("ONNX: the model has more than {} nodes", kMaxNodes));
  check_stop();
  count<NodeProto>();
  NodeProto out;
  WireReader reader(bytes, "node");
  while (reader.next()) switch (reader.field()) {
      case 1:
      case 2:
        count<std::string_view>();
        (reader.field() == 1 ? out.inputs : out.outputs).push_back(name_of(reader));
        break;
      case 3: out.name = name_of(reader); break;
      case 4: out.op = name_of(reader); break;
      case 5: out.attributes.push_back(attribute(reader.bytes(), parse)); break;
      case 7: out.domain = name_of(reader); break;
      case 8: out.overload = name_of(reader); break;
      default: break;
    }
  if (out.op.empty()) refuse("a node has no op_type");
  if (out.domain == "ai.onnx") out.domain = {};
  return out;
}

GraphProto graph(Bytes bytes, Parse& parse) {
  const Nested nested(parse);
  count<GraphProto>();
  GraphProto out;
  WireReader reader(bytes, "graph");
  while (reader.next()) switch (reader.field()) {
      case 1: out.nodes.push_back(node(reader.bytes(), parse)); break;
      case 2: out.name = name_of(reader); break;
      case 5:
        out.initializers.push_back(parse_tensor(reader.bytes()));
        if (out.initializers.back().name.empty()) refuse("an initializer has no name");
        break;
      case 11: out.inputs.push_back(value_info(reader.bytes(), parse)); break;
      case 12: out.outputs.push_back(value_info(reader.bytes(), parse)); break;
      case 15: throw Error(ErrorCode::unimplemented, "ONNX: sparse tensors are not supported");
      default: break;
    }
  for (const auto* values : {&out.inputs, &out.outputs})
    for (const ValueInfoProto& value : *values)
      if (value.name.empty()) refuse("an input or output of a graph has no name");
  return out;
}

void opset(Bytes bytes, OpsetImports& out) {
  ModelWatch::tell_keeps(kMapEntry);
  std::string_view domain;
  std::int64_t version = 0;
  WireReader reader(bytes, "opset");
  while (reader.next()) {
    if (reader.field() == 1) domain = name_of(reader);
    if (reader.field() == 2) version = reader.integer();
  }
  out[domain == "ai.onnx" ? std::string_view{} : domain] = version;
}

FunctionProto function(Bytes bytes, Parse& parse) {
  count<FunctionProto>();
  FunctionProto out;
  WireReader reader(bytes, "function");
  while (reader.next()) switch (reader.field()) {
      case 1: out.name = name_of(reader); break;
      case 4:
      case 5:
      case 6:
        count<std::string_view>();
        (reader.field() == 4 ? out.inputs : reader.field() == 5 ? out.outputs : out.attributes).push_back(name_of(reader));
        break;
      case 7: out.nodes.push_back(node(reader.bytes(), parse)); break;
      case 9: opset(reader.bytes(), out.opsets); break;
      case 10: out.domain = name_of(reader); break;
      case 11: out.defaults.push_back(attribute(reader.bytes(), parse)); break;
      case 13: out.overload = name_of(reader); break;
      default: break;
    }
  if (out.name.empty()) refuse("a function has no name");
  if (out.domain == "ai.onnx") out.domain = {};
  return out;
}

ValueProto value_of(Bytes bytes, TypeProto::Kind kind, Parse& parse);

// SequenceProto and OptionalProto have the same fields for what they contain, but for their numbers.
ValueProto container(Bytes bytes, TypeProto::Kind kind, Parse& parse) {
  const Nested nested(parse);
  ValueProto out{.kind = kind};
  WireReader reader(bytes, kind == TypeProto::Kind::sequence ? "sequence" : "optional");
  while (reader.next()) switch (reader.field()) {
      case 3: out.items.push_back(value_of(reader.bytes(), TypeProto::Kind::tensor, parse)); break;
      case 5: out.items.push_back(value_of(reader.bytes(), TypeProto::Kind::sequence, parse)); break;
      case 7: out.items.push_back(value_of(reader.bytes(), TypeProto::Kind::optional, parse)); break;
      case 4:
      case 6: throw Error(ErrorCode::unimplemented, "ONNX: sparse tensors and maps are not supported");
      default: break;
    }
  return out;
}

ValueProto value_of(Bytes bytes, TypeProto::Kind kind, Parse& parse) {
  if (kind == TypeProto::Kind::sequence || kind == TypeProto::Kind::optional) return container(bytes, kind, parse);
  return {.kind = TypeProto::Kind::tensor, .tensor = parse_tensor(bytes)};
}

}  // namespace

TensorProto parse_tensor(Bytes bytes) {
  check_stop();
  count<TensorProto>();
  TensorProto out;
  WireReader reader(bytes, "tensor");
  while (reader.next()) switch (reader.field()) {
      case 1:
        count_integers(reader);
        reader.append(out.dims);
        break;
      case 2: out.type = element_of(reader.integer()); break;
      case 3: throw Error(ErrorCode::unimplemented, "ONNX: tensors in segments are not supported");
      case 4:
        count_floats(reader);
        reader.append(out.floats);
        break;
      case 5:
      case 7:
      case 11:
        count_integers(reader);
        reader.append(out.integers);
        break;
      case 6:
        // An import makes a string of each.
        ModelWatch::tell_keeps(2 * (sizeof(std::string_view) + sizeof(std::string)) + reader.size());
        out.strings.push_back(reader.text());
        break;
      case 8: out.name = name_of(reader); break;
      case 9:
        out.raw = reader.bytes();
        out.has_raw = true;
        break;
      case 10:
        count_floats(reader);
        reader.append(out.doubles);
        break;
      case 13:
        ModelWatch::tell_keeps(kMapEntry);
        out.external.insert(entry(reader.bytes()));
        break;
      case 14: out.is_external = reader.integer() == 1; break;
      default: break;
    }
  return out;
}

ModelProto parse_model(Bytes bytes) {
  Parse parse;
  ModelProto out;
  bool has_graph = false;
  WireReader reader(bytes, "model");
  while (reader.next()) switch (reader.field()) {
      case 1: out.ir_version = reader.integer(); break;
      case 2: out.producer = reader.text(); break;
      case 3: out.producer_version = reader.text(); break;
      case 7:
        if (std::exchange(has_graph, true)) refuse("the model has two graphs");
        out.graph = graph(reader.bytes(), parse);
        break;
      case 8: opset(reader.bytes(), out.opsets); break;
      case 14:
        ModelWatch::tell_keeps(kMapEntry);
        out.metadata.insert(entry(reader.bytes()));
        break;
      case 25: out.functions.push_back(function(reader.bytes(), parse)); break;
      default: break;
    }
  if (!has_graph) refuse("the model has no graph");
  if (out.opsets.empty()) out.opsets[{}] = 1;  // files older than opsets say nothing
  return out;
}

ValueProto parse_value(Bytes bytes, const TypeProto& type) {
  Parse parse;
  return value_of(bytes, type.kind, parse);
}

}  // namespace tenon::onnx
