// What a Tensor holds: a node that is a value, or a result of an expression that is not evaluated yet.
//
// A node is shared by the copies of a tensor and by the expressions that use it. Its type never changes. Evaluating it puts the
// value in place and lets go of the expression.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/threads/fork_section.h"
#include "lease/storage.h"
#include "tenon/graph.h"
#include "tenon/ops.h"
#include "tenon/tensor.h"

namespace tenon {

// The inputs of an expression. Up to two, as most ops have, take no memory of their own.
class OperandNodes {
 public:
  OperandNodes() = default;
  OperandNodes(std::initializer_list<std::shared_ptr<TensorNode>> nodes) {
    for (const auto& node : nodes) push_back(node);
  }

  void push_back(std::shared_ptr<TensorNode> node) {
    if (more_.empty() && count_ < few_.size()) {
      few_[count_++] = std::move(node);
      return;
    }
    if (more_.empty()) more_.assign(std::move_iterator(few_.begin()), std::move_iterator(few_.end()));
    more_.push_back(std::move(node));
    count_ = more_.size();
  }

  std::size_t size() const noexcept { return count_; }
  const std::shared_ptr<TensorNode>* begin() const noexcept { return more_.empty() ? few_.data() : more_.data(); }
  const std::shared_ptr<TensorNode>* end() const noexcept { return begin() + count_; }
  const std::shared_ptr<TensorNode>& operator[](std::size_t i) const noexcept { return begin()[i]; }

 private:
  std::array<std::shared_ptr<TensorNode>, 2> few_;
  std::vector<std::shared_ptr<TensorNode>> more_;
  std::size_t count_ = 0;
};

// An op applied to nodes; immutable. One expression may have several results, each a node of its own.
struct TensorExpression {
  OperandNodes inputs;
  const OpInfo* op = nullptr;  // of the catalogue; null for |custom|
  std::vector<NamedValue> parameters;
  std::function<std::vector<NodeId>(Graph& graph, std::span<const NodeId> inputs)> custom;

  // Adds the op to a graph; returns its results.
  std::vector<NodeId> build(Graph& graph, std::span<const NodeId> ids) const;
};

struct TensorNode : std::enable_shared_from_this<TensorNode> {
  // As in a graph: weak are numbers, and what is computed from such alone; they take the dtype of what they meet.
  DType graph_dtype = DType::f32;
  bool weak = false;
  Shape shape;
  std::variant<std::monostate, std::int64_t, double> literal;
  bool is_program_input = false;  // an argument of a program: it has no value
  std::string requested;          // where to evaluate it; "" where the caller did not say
  std::size_t result = 0;         // of the expression
  std::uint64_t claimed_in = 0;   // the process (fork_guard.h) in which a thread evaluates it; guarded by the mutex of all claims

  // What a node is now. Weak nodes keep their expression, for the next program that uses them.
  struct State {
    std::shared_ptr<const TensorExpression> expression;
    std::shared_ptr<Storage> storage;
  };

  TensorNode() = default;
  // A value.
  explicit TensorNode(std::shared_ptr<Storage> storage);
  ~TensorNode();
  TensorNode(const TensorNode&) = delete;
  TensorNode& operator=(const TensorNode&) = delete;

  DType dtype() const noexcept { return weak && graph_dtype == DType::f64 ? DType::f32 : graph_dtype; }
  // A number. Its value is put into storage when somebody asks for it; it always counts as evaluated.
  bool is_literal() const noexcept { return literal.index() != 0; }
  State state() const;
  std::shared_ptr<Storage> storage() const;
  bool is_evaluated() const;
  // The value of a literal.
  HostArray literal_as(DType dtype) const;
  // The first value stays.
  void set_storage(std::shared_ptr<Storage> storage);
  void set_expression(std::shared_ptr<const TensorExpression> expression) { state_.expression = std::move(expression); }

 private:
  mutable SectionMutex mutex_;
  State state_;
  // Set with the value, after which the state does not change any more and is read without the mutex.
  std::atomic<bool> has_value_ = false;
};

// The node of |tensor|. Throws failed_precondition for none.
const std::shared_ptr<TensorNode>& node_of(const Tensor& tensor);
Tensor tensor_of(std::shared_ptr<TensorNode> node) noexcept;

// The results of an op of the catalogue. Inputs that are none are left out, at the end only. Throws what inference throws, with
// the op and the types of the inputs.
std::vector<Tensor> apply_several(std::string_view op, const std::vector<const Tensor*>& inputs,
                                  std::vector<NamedValue> parameters = {});
// The same for an op that was looked up before.
std::vector<Tensor> apply_several(const OpInfo& op, std::span<const Tensor* const> inputs,
                                  std::vector<NamedValue> parameters = {});
Tensor apply_one(const OpInfo& op, std::initializer_list<const Tensor*> inputs, std::vector<NamedValue> parameters = {});
// For an op with one result.
Tensor apply_one(std::string_view op, const std::vector<const Tensor*>& inputs, std::vector<NamedValue> parameters = {});

// The same for anything that adds nodes to a graph; |name| is what errors call it.
std::vector<Tensor> make_results(std::string_view name, TensorExpression expression);

// The node that |op| adds if no parameter is given, where it adds nothing else.
std::optional<ElementwiseOp> plain_node(const OpInfo& op);

// eval() without a report unless |evaluation| is given.
void evaluate_nodes(std::span<const Tensor> tensors, const RunOptions& options, Evaluation* evaluation = nullptr);

// The device request of this thread's innermost UseDevice; "auto" outside of all.
const std::string& default_request() noexcept;

// The manager that evaluates this thread's tensors.
DeviceManager& current_manager();

}  // namespace tenon
