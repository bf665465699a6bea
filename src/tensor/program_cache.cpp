#include "tensor/program_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/siphash.h"
#include "graph/elementwise.h"

namespace tenon {
namespace {

constexpr std::size_t kMaxNodes = 2000;  // of a plan that is kept

void add_text(SipHash& hash, std::string_view text) {
  hash.add(text.size());
  hash.add(std::as_bytes(std::span(text.data(), text.size())));
}

struct ValueHash {
  SipHash& hash;
  void operator()(std::monostate) const {}
  void operator()(bool value) const { hash.add(value ? 1 : 0); }
  void operator()(std::int64_t value) const { hash.add(static_cast<std::uint64_t>(value)); }
  void operator()(double value) const { hash.add(std::bit_cast<std::uint64_t>(value)); }
  void operator()(const std::string& value) const { add_text(hash, value); }
  void operator()(const std::vector<std::int64_t>& values) const {
    hash.add(values.size());
    for (const std::int64_t value : values) hash.add(static_cast<std::uint64_t>(value));
  }
};

void add_type(SipHash& hash, DType dtype, const Shape& shape) {
  hash.add(static_cast<std::uint64_t>(dtype) | static_cast<std::uint64_t>(shape.rank()) << 8);
  for (const std::int64_t extent : shape) hash.add(static_cast<std::uint64_t>(extent));
}

// Ops whose number operand only meets the other operand: comparing them with a constant could not be simplified either.
bool takes_scalars(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::Add:
    case ElementwiseOp::Sub:
    case ElementwiseOp::Mul:
    case ElementwiseOp::Div:
    case ElementwiseOp::Maximum:
    case ElementwiseOp::Minimum:
    case ElementwiseOp::Eq:
    case ElementwiseOp::Ne:
    case ElementwiseOp::Lt:
    case ElementwiseOp::Le:
    case ElementwiseOp::Gt:
    case ElementwiseOp::Ge: return true;
    default: return false;
  }
}

// The place of a storage among those seen before. The first few take no memory.
class StorageNumbers {
 public:
  std::uint64_t number_of(const Storage* storage) {
    const auto end = few_.begin() + static_cast<std::ptrdiff_t>(count_);
    if (const auto known = std::find(few_.begin(), end, storage); known != end)
      return static_cast<std::uint64_t>(known - few_.begin());
    if (count_ < few_.size()) {
      few_[count_] = storage;
      return count_++;
    }
    const auto [place, is_new] = numbers_.try_emplace(storage, count_ + numbers_.size());
    return place->second;
  }

 private:
  std::array<const Storage*, 8> few_{};
  std::size_t count_ = 0;
  std::unordered_map<const Storage*, std::uint64_t> numbers_;
};

}  // namespace

std::optional<ScalarUse> scalar_use(const TensorPlan& plan, const PlannedNode& node, std::size_t operand) {
  if (!plan.numbers_are_inputs || !node.expression || !node.expression->op || !node.expression->parameters.empty() ||
      node.operands != 2)
    return std::nullopt;
  const std::span<const std::uint32_t> inputs = plan.inputs(node);
  const TensorNode& number = *plan.nodes[inputs[operand]].node;
  const TensorNode& other = *plan.nodes[inputs[1 - operand]].node;
  if (!number.is_literal() || other.weak || compute_dtype(other.graph_dtype) != other.graph_dtype) return std::nullopt;
  const std::optional<ElementwiseOp> op = plain_node(*node.expression->op);
  if (!op || !takes_scalars(*op) || other.graph_dtype == DType::boolean) return std::nullopt;
  if (is_float(other.graph_dtype)) return ScalarUse{other.graph_dtype};
  // Integers with a fraction, and quotients of integers, are computed in f32.
  const bool is_real = std::holds_alternative<double>(number.literal) || (traits(*op).kinds & kIntegers) == 0;
  return ScalarUse{is_real ? DType::f32 : other.graph_dtype};
}

std::optional<GraphKey> structure_of(const TensorPlan& plan) {
  if (plan.nodes.size() > kMaxNodes) return std::nullopt;
  SipHash hash(SipHash::process_key());
  StorageNumbers storages;
  for (const PlannedNode& planned : plan.nodes) {
    const TensorNode& node = *planned.node;
    if (planned.storage) {
      hash.add(1 | (planned.is_target ? 8 : 0) | storages.number_of(planned.storage.get()) << 8);
      add_type(hash, node.graph_dtype, node.shape);
      if (node.weak || planned.is_target) return std::nullopt;
      continue;
    }
    if (node.is_literal()) {
      if (planned.is_target) return std::nullopt;
      continue;  // with the node that uses it
    }
    if (!planned.expression) return std::nullopt;  // an input of a program
    const TensorExpression& expression = *planned.expression;
    if (!expression.op || (planned.is_target && node.weak)) return std::nullopt;
    hash.add(2 | (planned.is_target ? 8 : 0) | static_cast<std::uint64_t>(node.result) << 8 |
             static_cast<std::uint64_t>(planned.operands) << 32);
    hash.add(reinterpret_cast<std::uintptr_t>(expression.op));
    for (std::size_t k = 0; k < planned.operands; ++k) {
      const std::uint32_t place = plan.inputs(planned)[k];
      const TensorNode& operand = *plan.nodes[place].node;
      if (!operand.is_literal()) {
        hash.add(std::uint64_t{place} << 8);
      } else if (const std::optional<ScalarUse> use = scalar_use(plan, planned, k)) {
        hash.add(3 | static_cast<std::uint64_t>(use->dtype) << 8);
      } else if (const auto* whole = std::get_if<std::int64_t>(&operand.literal)) {
        hash.add(4);
        hash.add(static_cast<std::uint64_t>(*whole));
      } else {
        hash.add(5);
        hash.add(std::bit_cast<std::uint64_t>(std::get<double>(operand.literal)));
      }
    }
    hash.add(expression.parameters.size());
    for (const auto& [name, value] : expression.parameters) {
      add_text(hash, name);
      hash.add(value.index());
      std::visit(ValueHash{hash}, value);
    }
  }
  const SipHash::Digest digest = hash.digest();
  return GraphKey{digest.low, digest.high};
}

std::vector<std::shared_ptr<Storage>> arguments_of(const TensorPlan& plan) {
  std::vector<std::shared_ptr<Storage>> values;
  values.reserve(std::min<std::size_t>(plan.nodes.size(), 8));
  for (const PlannedNode& planned : plan.nodes) {
    if (planned.storage) {
      if (std::ranges::find(values, planned.storage) == values.end()) values.push_back(planned.storage);
      continue;
    }
    for (std::size_t k = 0; k < planned.operands; ++k)
      if (const std::optional<ScalarUse> use = scalar_use(plan, planned, k)) {
        const TensorNode& number = *plan.nodes[plan.inputs(planned)[k]].node;
        values.push_back(Storage::from_host(number.literal_as(use->dtype)));
      }
  }
  return values;
}

ProgramCache& ProgramCache::instance() {
  // Never destroyed: a thread may still evaluate while the process exits.
  static auto* cache = new ProgramCache;
  return *cache;
}

std::shared_ptr<const Graph> ProgramCache::find(const GraphKey& structure) {
  const std::lock_guard lock(mutex_);
  if (!recent_.empty() && recent_.front().structure == structure) return recent_.front().program;
  const auto found = entries_.find(structure);
  if (found == entries_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->program;
}

void ProgramCache::keep(const GraphKey& structure, std::shared_ptr<const Graph> program) {
  const std::lock_guard lock(mutex_);
  if (const auto known = entries_.find(structure); known != entries_.end())
    known->second->program = std::move(program);
  else
    add(structure, std::move(program));
}

bool ProgramCache::meet(const GraphKey& structure) {
  const std::lock_guard lock(mutex_);
  if (entries_.contains(structure)) return true;
  add(structure, nullptr);
  return false;
}

void ProgramCache::add(const GraphKey& structure, std::shared_ptr<const Graph> program) {
  recent_.push_front({structure, std::move(program)});
  entries_.emplace(structure, recent_.begin());
  if (recent_.size() > kMaxPrograms) {
    entries_.erase(recent_.back().structure);
    recent_.pop_back();
  }
}

}  // namespace tenon
