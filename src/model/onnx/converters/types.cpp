#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "model/onnx/converters/families.h"
#include "model/onnx/import/importer.h"

namespace tenon::onnx {
namespace {

using namespace build;

ElementType element_number(const NodeContext& node, std::int64_t number) {
  if (number <= 0 || number >= kElementTypes) node.fail(fmt::format("unknown element type {}", number));
  return static_cast<ElementType>(number);
}

// As NumPy writes numbers of 32 bits.
std::string as_text(const HostArray& array, std::int64_t index) {
  const double value = array.value(index);
  if (array.dtype() == DType::boolean) return value != 0 ? "True" : "False";
  if (!is_float(array.dtype()))
    return fmt::format("{}", array.cast(DType::i64).view<std::int64_t>()[static_cast<std::size_t>(index)]);
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  std::string text = array.dtype() == DType::f64 ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

Results to_strings(const NodeContext& node) {
  const HostArray array = node.host(0);
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < array.elements(); ++i) out.push_back(as_text(array, i));
  return {text(array.shape(), std::move(out))};
}

Results from_strings(const NodeContext& node, ElementType to) {
  HostArray out = HostArray::empty(DType::f64, node.shape(0));
  std::size_t i = 0;
  for (const std::string& each : *node.value(0)->strings) {
    const char* begin = each.c_str();
    char* end = nullptr;
    out.mutable_view<double>()[i++] = std::strtod(begin, &end);
    if (end != begin + each.size() || each.empty()) node.fail(fmt::format("'{}' is not a number", each));
  }
  return {out.cast(held_as(to))};
}

Results cast_to(const NodeContext& node, ElementType to) {
  if (node.value(0)->is_string()) return to == ElementType::string ? Results{node.value(0)} : from_strings(node, to);
  if (to == ElementType::string) return to_strings(node);
  const ElementType from = node.type(0);
  if (from == to) return {node.value(0)};
  if (!is_small(to)) {
    (void)held_as(to);
    return {convert(node.in(0), held_as(to))};
  }
  const std::string mode = node.text("round_mode", "up");
  const ScaleRounding rounding = mode == "nearest" ? ScaleRounding::nearest
                                 : mode == "down"  ? ScaleRounding::down
                                                   : ScaleRounding::up;
  return {Result(to_small(node.host(0), to, node.integer("saturate", 1) != 0, rounding), to)};
}

Results cast_op(const NodeContext& node) {
  if (const AttributeProto* to = node.find("to"); to && to->kind == 3) {  // before opset 6 the name of the type
    static const std::map<std::string_view, ElementType> names{
        {"FLOAT", ElementType::f32},   {"UINT8", ElementType::u8},   {"INT8", ElementType::i8},    {"UINT16", ElementType::u16},
        {"INT16", ElementType::i16},   {"INT32", ElementType::i32},  {"INT64", ElementType::i64},  {"BOOL", ElementType::boolean},
        {"FLOAT16", ElementType::f16}, {"DOUBLE", ElementType::f64}, {"UINT32", ElementType::u32}, {"UINT64", ElementType::u64}};
    const auto found = names.find(to->text);
    if (found == names.end()) node.fail("unknown element type");
    return cast_to(node, found->second);
  }
  return cast_to(node, element_number(node, node.integer("to")));
}

Results cast_like(const NodeContext& node) {
  return cast_to(node, node.value(1)->is_string() ? ElementType::string : node.type(1));
}

// Bits as another type of the same width. Graphs have no primitive for this, so it happens on the host.
Results bit_cast(const NodeContext& node) {
  const ElementType to = element_number(node, node.integer("to"));
  const HostArray x = node.host(0);
  if (is_small(to) || is_small(node.type(0)) || bits(to) != bits(node.type(0)))
    node.refuse(fmt::format("from {} to {}", name(node.type(0)), name(to)));
  return {HostArray::from_bytes(held_as(to), x.shape(), {x.data(), x.bytes()})};
}

Results identity(const NodeContext& node) { return {node.value(0)}; }

Results constant(const NodeContext& node) {
  if (const AttributeProto* tensor = node.find("value"); tensor && tensor->tensor)
    return {node.importer().value_of(*tensor->tensor)};
  if (const AttributeProto* found = node.find("value_int")) return {HostArray::from<std::int64_t>({}, {found->integer})};
  if (const AttributeProto* found = node.find("value_float")) return {HostArray::from<float>({}, {found->number})};
  if (const AttributeProto* found = node.find("value_ints"))
    return {HostArray::from<std::int64_t>({static_cast<std::int64_t>(found->integers.size())}, found->integers)};
  if (const AttributeProto* found = node.find("value_floats"))
    return {HostArray::from<float>({static_cast<std::int64_t>(found->numbers.size())}, found->numbers)};
  if (const AttributeProto* found = node.find("value_string")) return {text({}, {std::string(found->text)})};
  if (const AttributeProto* found = node.find("value_strings"))
    return {text({static_cast<std::int64_t>(found->texts.size())}, {found->texts.begin(), found->texts.end()})};
  node.refuse("a constant that is neither a tensor nor numbers nor text");
}

}  // namespace

void add_types(ConverterTable& table) {
  table.add("Cast", cast_op);
  table.add("CastLike", cast_like);
  table.add("BitCast", bit_cast);
  table.add("Identity", identity);
  table.add("Constant", constant);
}

}  // namespace tenon::onnx
