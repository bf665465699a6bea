#include "model/onnx/import/node_context.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/printable.h"
#include "model/onnx/import/importer.h"
#include "tenon/error.h"

namespace tenon::onnx {

std::string node_label(const NodeProto& node) {
  const std::string op = node.domain.empty() ? printable(node.op) : printable(node.domain) + "." + printable(node.op);
  if (!node.name.empty()) return fmt::format("{} '{}'", op, printable(node.name));
  for (const std::string_view output : node.outputs)
    if (!output.empty()) return fmt::format("{} that makes '{}'", op, printable(output));
  return op;
}

NodeContext::NodeContext(Importer& importer, const NodeProto& node, const Scope& scope, std::vector<ValuePtr> inputs,
                         std::int64_t version)
    : importer_(importer),
      node_(node),
      scope_(scope),
      inputs_(std::move(inputs)),
      version_(version) {}

Graph& NodeContext::graph() const { return importer_.graph(); }

const ValuePtr& NodeContext::value(std::size_t i) const {
  if (!has(i)) fail(fmt::format("input {} is missing", i));
  return inputs_[i];
}

Expr NodeContext::in(const ValuePtr& value) const {
  if (value->kind != Value::Kind::tensor) fail("a sequence or optional where a tensor is expected");
  return importer_.expr(value);
}
Expr NodeContext::in(std::size_t i) const { return in(value(i)); }

Expr NodeContext::operand(std::size_t i) const {
  if (value(i)->kind != Value::Kind::tensor) fail("a sequence or optional where a tensor is expected");
  return importer_.operand(value(i));
}
Expr NodeContext::operand(Expr x) const { return importer_.operand(x); }

Expr like(Expr product, DType dtype) { return product.dtype() == dtype ? product : build::cast(product, dtype); }

const Shape& NodeContext::shape(std::size_t i) const {
  if (value(i)->kind != Value::Kind::tensor) fail("a sequence or optional where a tensor is expected");
  return inputs_[i]->shape;
}

ElementType NodeContext::type(std::size_t i) const { return value(i)->type; }

HostArray NodeContext::host(const ValuePtr& value) const {
  if (value->kind != Value::Kind::tensor || value->is_string()) fail("expected a tensor of numbers");
  return importer_.host(value);
}
HostArray NodeContext::host(std::size_t i) const { return host(value(i)); }

ValuePtr NodeContext::weight(std::initializer_list<std::size_t> inputs, int part, const std::function<HostArray()>& make) const {
  std::vector<const void*> sources = weight_sources();
  for (const std::size_t i : inputs) {
    if (has(i) && !inputs_[i]->tensor) return known(make());
    sources.push_back(has(i) ? inputs_[i]->tensor : nullptr);
  }
  return importer_.made_weight(sources, part, make);
}

ValuePtr NodeContext::weight(std::string_view attribute, int part, const std::function<HostArray()>& make) const {
  std::vector<const void*> sources = weight_sources();
  sources.push_back(find(attribute));
  return importer_.made_weight(sources, part, make);
}

std::vector<const void*> NodeContext::weight_sources() const {
  std::vector<const void*> sources{&node_};
  for (const AttributeProto& attribute : node_.attributes)
    if (!attribute.reference.empty()) sources.push_back(find(attribute.name));
  return sources;
}

std::vector<std::int64_t> NodeContext::host_integers(std::size_t i) const {
  const HostArray array = host(i).cast(DType::i64);
  const std::span<const std::int64_t> values = array.view<std::int64_t>();
  return {values.begin(), values.end()};
}

std::vector<double> NodeContext::host_numbers(std::size_t i) const { return host(i).to_doubles(); }

double NodeContext::host_number(std::size_t i) const {
  const HostArray array = host(i);
  if (array.elements() != 1)
    fail(fmt::format("input {} must have one element, it has the shape {}", i, to_string(array.shape())));
  return array.value(0);
}

const AttributeProto* NodeContext::find(std::string_view name) const {
  for (const AttributeProto& attribute : node_.attributes) {
    if (attribute.name != name) continue;
    if (attribute.reference.empty()) return &attribute;
    for (const Scope* scope = &scope_; scope; scope = scope->parent) {
      const auto found = scope->arguments.find(attribute.reference);
      if (found != scope->arguments.end()) return found->second;
      if (scope->is_function) break;
    }
    return nullptr;
  }
  return nullptr;
}

std::int64_t NodeContext::integer(std::string_view name, std::int64_t fallback) const {
  const AttributeProto* found = find(name);
  return found ? found->integer : fallback;
}

std::int64_t NodeContext::integer(std::string_view name) const {
  const AttributeProto* found = find(name);
  if (!found) fail(fmt::format("the attribute '{}' is missing", name));
  return found->integer;
}

double NodeContext::number(std::string_view name, double fallback) const {
  const AttributeProto* found = find(name);
  return found ? static_cast<double>(found->number) : fallback;
}

std::string NodeContext::text(std::string_view name, std::string_view fallback) const {
  const AttributeProto* found = find(name);
  return std::string(found ? found->text : fallback);
}

std::vector<std::int64_t> NodeContext::integers(std::string_view name, std::vector<std::int64_t> fallback) const {
  const AttributeProto* found = find(name);
  return found ? found->integers : fallback;
}

std::vector<float> NodeContext::numbers(std::string_view name) const {
  const AttributeProto* found = find(name);
  return found ? found->numbers : std::vector<float>{};
}

std::vector<std::string> NodeContext::texts(std::string_view name) const {
  const AttributeProto* found = find(name);
  if (!found) return {};
  return {found->texts.begin(), found->texts.end()};
}

const GraphProto& NodeContext::subgraph(std::string_view name) const {
  const AttributeProto* found = find(name);
  if (!found || !found->graph) fail(fmt::format("the graph '{}' is missing", name));
  return *found->graph;
}

Expr NodeContext::apply(std::string_view op, std::initializer_list<Expr> inputs,
                        std::initializer_list<NamedValue> parameters) const {
  std::vector<NodeId> ids;
  for (const Expr& input : inputs) ids.push_back(input.id());
  return {graph(), tenon::apply(graph(), find_op(op), ids, std::span(parameters.begin(), parameters.size()))[0]};
}

int NodeContext::axis(std::string_view attribute, std::int64_t fallback, int rank) const {
  return normalize_axis(integer(attribute, fallback), rank);
}

std::vector<int> NodeContext::axes_of(const std::vector<std::int64_t>& axes, int rank) const {
  std::vector<int> result;
  for (const std::int64_t axis : axes) result.push_back(normalize_axis(axis, rank));
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) fail("an axis is named twice");
  return result;
}

Expr NodeContext::constant(HostArray array) const { return {graph(), graph().constant(std::move(array))}; }
Expr NodeContext::constant(std::vector<std::int64_t> values) const {
  return constant(HostArray::from<std::int64_t>(Shape{static_cast<std::int64_t>(values.size())}, values));
}

void NodeContext::fail(const std::string& problem) const { throw Error(ErrorCode::invalid_argument, problem); }
void NodeContext::refuse(const std::string& reason) const {
  throw Error(ErrorCode::unimplemented, reason,
              "export the model with other options, or another opset, so that it does not need this");
}

AxisSet axis_set(const std::vector<int>& axes) {
  AxisSet set = 0;
  for (const int axis : axes) set = static_cast<AxisSet>(set | build::one_axis(axis));
  return set;
}

Expr convert(Expr x, DType to) {
  const DType from = x.dtype();
  if (!is_integer(from) || !is_integer(to) || from == to) return build::cast(x, to);
  const bool fits = element_bytes(from) < element_bytes(to) && (is_unsigned_integer(from) || is_signed_integer(to));
  if (fits) return build::cast(x, to);
  Graph& graph = x.graph();
  const auto number = [&](std::int64_t value) { return Expr(graph, graph.constant(HostArray::from<std::int64_t>({}, {value}))); };
  const auto binary = [&](std::string_view op, Expr a, Expr b) {
    return Expr(graph, tenon::apply(graph, op, {a.id(), b.id()})[0]);
  };
  constexpr std::int64_t low63 = std::numeric_limits<std::int64_t>::max();
  // 64 bits that change their sign: everything but the highest bit, and that bit on its own.
  if (from == DType::u64) {
    const Expr top = Expr(graph, graph.constant(HostArray::from<std::uint64_t>({}, {std::uint64_t{1} << 63})));
    const Expr rest = Expr(graph, graph.constant(HostArray::from<std::uint64_t>({}, {std::uint64_t{low63}})));
    const Expr low = build::cast(binary("bitwise_and", x, rest), DType::i64);
    return convert(build::where(x >= top, binary("bitwise_or", low, number(std::numeric_limits<std::int64_t>::min())), low), to);
  }
  x = build::cast(x, DType::i64);
  if (to == DType::u64) {
    const Expr low = build::cast(binary("bitwise_and", x, number(low63)), DType::u64);
    const Expr top = Expr(graph, graph.constant(HostArray::from<std::uint64_t>({}, {std::uint64_t{1} << 63})));
    return build::where(x < number(0), binary("bitwise_or", low, top), low);
  }
  if (to == DType::i64) return x;
  const std::int64_t width = static_cast<std::int64_t>(element_bytes(to)) * 8, mask = (std::int64_t{1} << width) - 1;
  Expr low = binary("bitwise_and", x, number(mask));
  if (is_signed_integer(to)) low = build::where(low > number(mask >> 1), low - number(mask + 1), low);
  return build::cast(low, to);
}

}  // namespace tenon::onnx
