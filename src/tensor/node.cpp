#include "tensor/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "graph/elementwise.h"
#include "graph/inference.h"
#include "tenon/error.h"
#include "tenon/ops.h"
#include "tenon/tensor/apply.h"

namespace tenon {
namespace {

// What dropped nodes leave behind on this thread, while one of them is being cleared away: a chain of any length is taken apart
// in a loop instead of by recursion. A plain pointer, as tensors of static duration go after the thread's own objects.
thread_local std::vector<std::shared_ptr<const TensorExpression>>* dropped = nullptr;

std::string type_text(const TensorNode& node) { return fmt::format("{} {}", name(node.dtype()), to_string(node.shape)); }

std::string call_text(std::string_view op, const OperandNodes& inputs) {
  std::vector<std::string> types;
  for (const auto& input : inputs) types.push_back(type_text(*input));
  return fmt::format("{}({})", op, fmt::join(types, ", "));
}

// The op's own words, with its name and what it was given in front.
Error in_context(std::string_view op, const OperandNodes& inputs, const Error& error) {
  std::string_view message = error.what();
  const std::string prefix = std::string(op) + ": ";
  if (message.starts_with(prefix)) message.remove_prefix(prefix.size());
  return Error(error.code(), fmt::format("{}: {}", call_text(op, inputs), message), error.hint());
}

// A graph with nothing but the types of |inputs|, for inference.
std::vector<NodeId> outline(Graph& graph, const OperandNodes& inputs) {
  std::vector<NodeId> ids;
  for (const auto& input : inputs) {
    if (const auto* whole = std::get_if<std::int64_t>(&input->literal))
      ids.push_back(graph.literal(*whole));
    else if (const auto* real = std::get_if<double>(&input->literal))
      ids.push_back(graph.literal(*real));
    else
      ids.push_back(graph.append({Prim::input, input->graph_dtype, input->weak, input->shape, {}, InputAttr{}}));
  }
  return ids;
}

}  // namespace

TensorNode::TensorNode(std::shared_ptr<Storage> storage)
    : graph_dtype(storage->type().dtype),
      shape(storage->type().shape),
      state_{nullptr, std::move(storage)},
      has_value_(true) {}

TensorNode::~TensorNode() {
  if (!state_.expression) return;
  if (dropped != nullptr) {
    dropped->push_back(std::move(state_.expression));
    return;
  }
  std::vector<std::shared_ptr<const TensorExpression>> waiting;
  dropped = &waiting;
  state_.expression.reset();  // most have nothing but values below them, and the list stays empty
  while (!waiting.empty()) {
    const std::shared_ptr<const TensorExpression> next = std::move(waiting.back());
    waiting.pop_back();
  }
  dropped = nullptr;
}

TensorNode::State TensorNode::state() const {
  if (has_value_.load(std::memory_order_acquire)) return state_;
  const std::lock_guard lock(mutex_);
  return state_;
}

std::shared_ptr<Storage> TensorNode::storage() const {
  return has_value_.load(std::memory_order_acquire) ? state_.storage : nullptr;
}

bool TensorNode::is_evaluated() const { return is_literal() || has_value_.load(std::memory_order_acquire); }

HostArray TensorNode::literal_as(DType dtype) const {
  if (const auto* whole = std::get_if<std::int64_t>(&literal)) return HostArray::from<std::int64_t>({}, {*whole}).cast(dtype);
  return HostArray::from<double>({}, {std::get<double>(literal)}).cast(dtype);
}

void TensorNode::set_storage(std::shared_ptr<Storage> storage) {
  std::shared_ptr<const TensorExpression> done;  // dropped after the lock
  const std::lock_guard lock(mutex_);
  if (state_.storage) return;
  state_.storage = std::move(storage);
  if (!weak) done.swap(state_.expression);
  has_value_.store(true, std::memory_order_release);
}

struct TensorAccess {
  static const std::shared_ptr<TensorNode>& node(const Tensor& tensor) noexcept { return tensor.node_; }
  static Tensor tensor(std::shared_ptr<TensorNode> node) noexcept { return Tensor(std::move(node)); }
};

const std::shared_ptr<TensorNode>& node_of(const Tensor& tensor) {
  if (tensor.is_none())
    throw Error(ErrorCode::failed_precondition, "this tensor is empty: it was default-constructed or moved from");
  return TensorAccess::node(tensor);
}

Tensor tensor_of(std::shared_ptr<TensorNode> node) noexcept { return TensorAccess::tensor(std::move(node)); }

std::optional<ElementwiseOp> plain_node(const OpInfo& op) {
  // Ops without a builder of their own share the one of add; div has one, but only for its rounding modes.
  static const OpInfo &add = find_op("add"), &div = find_op("div");
  const bool is_plain = op.build == add.build && op.parameters.empty();
  return is_plain || &op == &div ? op.elementwise : std::nullopt;
}

std::vector<NodeId> TensorExpression::build(Graph& graph, std::span<const NodeId> ids) const {
  if (!op) return custom(graph, ids);
  if (parameters.empty() && static_cast<int>(ids.size()) == op->max_inputs)
    if (const std::optional<ElementwiseOp> node = plain_node(*op)) return {graph.elementwise(*node, ids)};
  return apply(graph, *op, ids, parameters);
}

std::vector<Tensor> make_results(std::string_view name, TensorExpression expression) {
  Graph graph;
  std::vector<NodeId> ids;
  try {
    ids = expression.build(graph, outline(graph, expression.inputs));
  } catch (const Error& e) {
    throw in_context(name, expression.inputs, e);
  }
  const auto shared = std::make_shared<const TensorExpression>(std::move(expression));
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Node& inferred = graph[ids[i]];
    auto node = std::make_shared<TensorNode>();
    node->graph_dtype = inferred.dtype;
    node->weak = inferred.weak;
    node->shape = inferred.shape;
    node->result = i;
    node->set_expression(shared);
    results.push_back(tensor_of(std::move(node)));
  }
  return results;
}

namespace {

// Most ops of small programs: one elementwise node, whose type needs no graph. None if it is something else, or wrong.
Tensor elementwise_result(const OpInfo& op, std::span<const Tensor* const> inputs) {
  constexpr std::size_t kMost = 3;
  const std::optional<ElementwiseOp> plain = plain_node(op);
  if (!plain || inputs.size() > kMost || static_cast<int>(inputs.size()) != op.max_inputs) return {};
  std::array<OperandType, kMost> types;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->is_none()) return {};
    const TensorNode& node = *TensorAccess::node(*inputs[i]);
    types[i] = {node.graph_dtype, node.weak, &node.shape};
  }
  const DType first = types[traits(*plain).condition ? 1 : 0].dtype;
  if (std::ranges::find(op.dtypes, first) == op.dtypes.end()) return {};
  std::optional<InferredType> type = elementwise_type(*plain, std::span(types.data(), inputs.size()));
  if (!type) return {};
  auto expression = std::make_shared<TensorExpression>();
  expression->op = &op;
  for (const Tensor* input : inputs) expression->inputs.push_back(TensorAccess::node(*input));
  auto node = std::make_shared<TensorNode>();
  node->graph_dtype = type->dtype;
  node->weak = type->weak;
  node->shape = type->shape;
  node->set_expression(std::move(expression));
  return tensor_of(std::move(node));
}

}  // namespace

std::vector<Tensor> apply_several(const OpInfo& op, std::span<const Tensor* const> inputs, std::vector<NamedValue> parameters) {
  while (!inputs.empty() && inputs.back()->is_none()) inputs = inputs.first(inputs.size() - 1);
  TensorExpression expression;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->is_none())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: {} is none, but a later input is given", op.name,
                              i < op.input_names.size() ? op.input_names[i] : fmt::format("input {}", i)));
    expression.inputs.push_back(node_of(*inputs[i]));
  }
  expression.op = &op;
  expression.parameters = std::move(parameters);
  return make_results(op.name, std::move(expression));
}

std::vector<Tensor> apply_several(std::string_view op, const std::vector<const Tensor*>& inputs,
                                  std::vector<NamedValue> parameters) {
  return apply_several(find_op(op), inputs, std::move(parameters));
}

Tensor apply_one(const OpInfo& op, std::initializer_list<const Tensor*> inputs, std::vector<NamedValue> parameters) {
  const std::span<const Tensor* const> given(inputs.begin(), inputs.size());
  if (parameters.empty())
    if (Tensor result = elementwise_result(op, given); !result.is_none()) return result;
  std::vector<Tensor> results = apply_several(op, given, std::move(parameters));
  if (results.size() != 1) throw Error(ErrorCode::internal, fmt::format("{} has {} results", op.name, results.size()));
  return std::move(results[0]);
}

Tensor apply_one(std::string_view op, const std::vector<const Tensor*>& inputs, std::vector<NamedValue> parameters) {
  std::vector<Tensor> results = apply_several(op, inputs, std::move(parameters));
  if (results.size() != 1) throw Error(ErrorCode::internal, fmt::format("{} has {} results", op, results.size()));
  return std::move(results[0]);
}

std::vector<Tensor> apply(const OpInfo& op, std::span<const Tensor> inputs, std::vector<NamedValue> parameters) {
  std::vector<const Tensor*> pointers;
  pointers.reserve(inputs.size());
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return apply_several(op.name, pointers, std::move(parameters));
}

bool has_several_results(const OpInfo& op) noexcept { return op.name == "chunk" || op.name == "split" || op.name == "top_k"; }

}  // namespace tenon
