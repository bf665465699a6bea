#include <fmt/format.h>

#include "model/onnx/converters/families.h"
#include "model/onnx/import/importer.h"

namespace tenon::onnx {
namespace {

using namespace build;

const std::vector<ValuePtr>& items(const NodeContext& node, std::size_t i) {
  const ValuePtr& value = node.value(i);
  if (value->kind == Value::Kind::optional && value->items.size() == 1) return value->items[0]->items;
  if (value->kind != Value::Kind::sequence) node.fail(fmt::format("input {} is not a sequence", i));
  return value->items;
}

std::size_t place(const NodeContext& node, std::size_t i, std::size_t size, std::size_t fallback) {
  if (!node.has(i)) return fallback;
  std::int64_t at = node.host_integers(i).at(0);
  if (at < 0) at += static_cast<std::int64_t>(size);
  if (at < 0 || at > static_cast<std::int64_t>(size)) node.fail(fmt::format("position {} of a sequence of {}", at, size));
  return static_cast<std::size_t>(at);
}

Results construct(const NodeContext& node) {
  std::vector<ValuePtr> all;
  for (std::size_t i = 0; i < node.inputs(); ++i) all.push_back(node.value(i));
  return {container(Value::Kind::sequence, std::move(all))};
}

Results empty(const NodeContext&) { return {container(Value::Kind::sequence, {})}; }

Results insert(const NodeContext& node) {
  std::vector<ValuePtr> all = items(node, 0);
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(place(node, 2, all.size(), all.size())), node.value(1));
  return {container(Value::Kind::sequence, std::move(all))};
}

Results erase(const NodeContext& node) {
  std::vector<ValuePtr> all = items(node, 0);
  const std::size_t at = place(node, 1, all.size(), all.empty() ? 0 : all.size() - 1);
  if (at >= all.size()) node.fail("the position is past the end");
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
  return {container(Value::Kind::sequence, std::move(all))};
}

Results at(const NodeContext& node) {
  const std::vector<ValuePtr>& all = items(node, 0);
  const std::size_t index = place(node, 1, all.size(), 0);
  if (index >= all.size()) node.fail(fmt::format("position {} of a sequence of {}", index, all.size()));
  return {all[index]};
}

Results length(const NodeContext& node) {
  return {HostArray::from<std::int64_t>({}, {static_cast<std::int64_t>(items(node, 0).size())})};
}

Results split_to_sequence(const NodeContext& node) {
  const Expr x = node.in(0);
  const int axis = node.axis("axis", 0, x.rank());
  const std::int64_t extent = x.extent(axis);
  Dims parts;
  const bool given = node.has(1);
  if (given && node.shape(1).rank() > 0) {
    parts = node.host_integers(1);
  } else {
    const std::int64_t size = given ? node.host_integers(1).at(0) : 1;
    if (size < 1) node.fail("a part must have at least one element");
    for (std::int64_t start = 0; start < extent; start += size) parts.push_back(std::min(size, extent - start));
  }
  std::vector<ValuePtr> all;
  std::int64_t start = 0;
  for (const std::int64_t size : parts) {
    Expr part = narrow(x, axis, start, size);
    if (!given && node.integer("keepdims", 1) == 0) part = squeeze(part, one_axis(axis));
    all.push_back(computed(part, node.type(0)));
    start += size;
  }
  return {container(Value::Kind::sequence, std::move(all))};
}

Results concat_from_sequence(const NodeContext& node) {
  std::vector<Expr> parts;
  for (const ValuePtr& item : items(node, 0)) parts.push_back(node.in(item));
  if (parts.empty()) node.fail("the sequence is empty");
  const bool new_axis = node.integer("new_axis", 0) != 0;
  const int axis = normalize_axis(node.integer("axis"), parts[0].rank() + (new_axis ? 1 : 0));
  if (new_axis)
    for (Expr& part : parts) part = unsqueeze(part, axis);
  return {concat(parts, axis)};
}

Results map(const NodeContext& node) {
  const GraphProto& body = node.subgraph("body");
  const std::size_t count = items(node, 0).size();
  std::vector<std::vector<ValuePtr>> out(body.outputs.size());
  for (std::size_t step = 0; step < count; ++step) {
    node.importer().count_step();
    std::vector<ValuePtr> arguments;
    for (std::size_t i = 0; i < node.inputs(); ++i) {
      const ValuePtr& value = node.value(i);
      if (value->kind == Value::Kind::sequence && step >= value->items.size()) node.fail("the sequences differ in length");
      arguments.push_back(value->kind == Value::Kind::sequence ? value->items[step] : value);
    }
    const std::vector<ValuePtr> results = node.importer().call(body, node.scope(), arguments);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].push_back(results[i]);
  }
  Results results;
  for (std::vector<ValuePtr>& each : out) results.emplace_back(container(Value::Kind::sequence, std::move(each)));
  return results;
}

Results optional(const NodeContext& node) {
  std::vector<ValuePtr> all;
  if (node.has(0)) all.push_back(node.value(0));
  return {container(Value::Kind::optional, std::move(all))};
}

Results has_element(const NodeContext& node) {
  const bool has = node.has(0) && (node.value(0)->kind != Value::Kind::optional || !node.value(0)->items.empty());
  return {HostArray::full(DType::boolean, {}, has ? 1 : 0)};
}

Results get_element(const NodeContext& node) {
  const ValuePtr& value = node.value(0);
  if (value->kind != Value::Kind::optional) return {value};
  if (value->items.empty()) node.fail("the optional is empty");
  return {value->items[0]};
}

}  // namespace

void add_sequences(ConverterTable& table) {
  table.add("SequenceConstruct", construct);
  table.add("SequenceEmpty", empty);
  table.add("SequenceInsert", insert);
  table.add("SequenceErase", erase);
  table.add("SequenceAt", at);
  table.add("SequenceLength", length);
  table.add("SequenceMap", map);
  table.add("SplitToSequence", split_to_sequence);
  table.add("ConcatFromSequence", concat_from_sequence);
  table.add("Optional", optional);
  table.add("OptionalHasElement", has_element);
  table.add("OptionalGetElement", get_element);
}

}  // namespace tenon::onnx
