#include "tenon/tensor.h"

#include <fmt/format.h>

#include <ostream>

#include "array/format_array.h"
#include "tenon/error.h"
#include "tensor/node.h"

namespace tenon {
namespace {

std::shared_ptr<TensorNode> make_node(DType dtype, const Shape& shape) {
  auto node = std::make_shared<TensorNode>();
  node->graph_dtype = dtype;
  node->shape = shape;
  return node;
}

template <class T>
std::shared_ptr<TensorNode> literal_node(T value, DType dtype) {
  auto node = make_node(dtype, {});
  node->weak = true;
  node->literal = value;
  return node;
}

// The shape of a list and the types in it, checked for rows of equal length.
struct NestedReader {
  std::vector<std::int64_t> extents;
  std::vector<double> reals;
  std::vector<std::int64_t> wholes;
  bool any_real = false, all_bool = true;

  void read(const NestedNumbers& numbers, std::size_t depth) {
    if (const auto* items = std::get_if<std::vector<NestedNumbers>>(&numbers.value())) {
      const auto extent = static_cast<std::int64_t>(items->size());
      if (depth == extents.size() && wholes.empty() && !closed_)
        extents.push_back(extent);
      else if (depth >= extents.size() || extents[depth] != extent)
        uneven();
      for (const NestedNumbers& item : *items) read(item, depth + 1);
      if (items->empty()) closed_ = true;
      return;
    }
    if (depth != extents.size()) uneven();
    add(numbers.value());
  }

  Shape shape() const { return Shape(extents); }

 private:
  [[noreturn]] static void uneven() {
    throw Error(ErrorCode::invalid_argument, "tensor: the rows of the list differ in length or depth");
  }
  void add(const NestedNumbers::Value& value) {
    if (const bool* truth = std::get_if<bool>(&value)) {
      wholes.push_back(*truth ? 1 : 0);
      reals.push_back(*truth ? 1 : 0);
      return;
    }
    all_bool = false;
    if (const auto* whole = std::get_if<std::int64_t>(&value)) {
      wholes.push_back(*whole);
      reals.push_back(static_cast<double>(*whole));
      return;
    }
    any_real = true;
    wholes.push_back(0);
    reals.push_back(std::get<double>(value));
  }
  bool closed_ = false;  // an empty row was read: its axis is the last
};

}  // namespace

Tensor::Tensor(HostArray array) : node_(make_node(array.dtype(), array.shape())) {
  node_->set_storage(Storage::from_host(std::move(array)));
}

Tensor Tensor::literal(std::int64_t value) { return Tensor(literal_node(value, DType::i64)); }
Tensor Tensor::literal(double value) { return Tensor(literal_node(value, DType::f64)); }

Tensor tensor(const NestedNumbers& values, std::optional<DType> dtype) {
  NestedReader reader;
  reader.read(values, 0);
  const Shape shape = reader.shape();
  if (reader.any_real || reader.wholes.empty())
    return HostArray::from<double>(shape, std::span<const double>(reader.reals)).cast(dtype.value_or(DType::f32));
  const DType natural = reader.all_bool ? DType::boolean : DType::i64;
  return HostArray::from<std::int64_t>(shape, std::span<const std::int64_t>(reader.wholes)).cast(dtype.value_or(natural));
}

const Shape& Tensor::shape() const { return node_of(*this)->shape; }
DType Tensor::dtype() const { return node_of(*this)->dtype(); }

const Tensor& Tensor::eval(const RunOptions& options) const {
  evaluate_nodes(std::span(this, 1), options);
  return *this;
}

bool Tensor::is_evaluated() const { return node_of(*this)->is_evaluated(); }

HostArray Tensor::to_host() const {
  if (const std::shared_ptr<TensorNode>& node = node_of(*this); node->is_literal()) return node->literal_as(node->dtype());
  return eval().node_->state().storage->to_host();
}

HostArray Tensor::one_element(DType as) const {
  if (elements() != 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("item() needs exactly one element; this tensor has shape {}", to_string(shape())),
                "select one with [ ], or use to_vector()");
  return to_host().cast(as);
}

Tensor Tensor::on(std::string_view device) const {
  const std::shared_ptr<TensorNode>& node = node_of(*this);
  if (device.empty()) throw Error(ErrorCode::invalid_argument, "on: the device request is empty");
  Tensor placed = std::move(make_results("on", {.inputs = {node}, .custom = [](Graph&, std::span<const NodeId> inputs) {
                                                  return std::vector<NodeId>(inputs.begin(), inputs.end());
                                                }})[0]);
  placed.node_->requested = device;
  // The value is the same one, if there is one.
  if (const TensorNode::State state = node->state(); state.storage && !node->weak) placed.node_->set_storage(state.storage);
  return placed;
}

Tensor Tensor::to(std::string_view device) const {
  if (device == "host") return to_host();
  const bool is_elsewhere = is_evaluated() && this->device() != current_manager().find(device).id;
  Tensor there = (is_elsewhere ? apply_one("clone", {this}) : *this).on(device);
  there.eval();
  return there;
}

std::string Tensor::device() const {
  const TensorNode::State state = node_of(*this)->state();
  return state.storage ? state.storage->device() : "";
}

Tensor Tensor::reshape(const Shape& shape) const {
  return apply_one("reshape", {this}, {{"shape", std::vector<std::int64_t>(shape.begin(), shape.end())}});
}
Tensor Tensor::cast(DType dtype) const { return apply_one("cast", {this}, {{"dtype", std::string(name(dtype))}}); }
Tensor Tensor::T() const { return apply_one("transpose", {this}); }

Tensor operator+(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("add");
  return apply_one(op, {&a, &b});
}
Tensor operator-(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("sub");
  return apply_one(op, {&a, &b});
}
Tensor operator*(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("mul");
  return apply_one(op, {&a, &b});
}
Tensor operator/(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("div");
  return apply_one(op, {&a, &b});
}
Tensor operator%(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("remainder");
  return apply_one(op, {&a, &b});
}
Tensor operator&(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("bitwise_and");
  return apply_one(op, {&a, &b});
}
Tensor operator|(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("bitwise_or");
  return apply_one(op, {&a, &b});
}
Tensor operator^(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("bitwise_xor");
  return apply_one(op, {&a, &b});
}
Tensor operator<<(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("left_shift");
  return apply_one(op, {&a, &b});
}
Tensor operator>>(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("right_shift");
  return apply_one(op, {&a, &b});
}
Tensor operator==(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("eq");
  return apply_one(op, {&a, &b});
}
Tensor operator!=(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("ne");
  return apply_one(op, {&a, &b});
}
Tensor operator<(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("lt");
  return apply_one(op, {&a, &b});
}
Tensor operator<=(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("le");
  return apply_one(op, {&a, &b});
}
Tensor operator>(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("gt");
  return apply_one(op, {&a, &b});
}
Tensor operator>=(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("ge");
  return apply_one(op, {&a, &b});
}
Tensor operator-(const Tensor& a) {
  static const OpInfo& op = find_op("neg");
  return apply_one(op, {&a});
}
Tensor operator~(const Tensor& a) {
  static const OpInfo& op = find_op("bitwise_not");
  return apply_one(op, {&a});
}
Tensor operator!(const Tensor& a) {
  static const OpInfo& op = find_op("logical_not");
  return apply_one(op, {&a});
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return tensor.is_none() ? out << "none" : out << format_array(tensor.to_host());
}

}  // namespace tenon
