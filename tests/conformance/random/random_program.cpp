#include "conformance/random/random_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tenon/error.h"

namespace tenon::conformance {
namespace {

// Larger tensors would take the reference too long.
constexpr std::int64_t kMostElements = 30'000;
constexpr std::int64_t kMostTerms = 3'000'000;  // of a product

}  // namespace

RandomProgram::RandomProgram(std::uint32_t seed, DType dtype) : random_(seed), dtype_(dtype) {
  // Extents recur, so that tensors meet.
  const std::int64_t a = extent(), b = extent(), c = extent();
  const Shape shapes[] = {{a, b}, {b, c}, {a, b}, {b}, {a, 1}, {1 + below(4), a, b}, {c, b}, {2, 1 + below(3), b, c}};
  const int count = 2 + below(3);
  for (int i = 0; i < count; ++i)
    if (const Shape& shape = shapes[below(std::size(shapes))]; shape.elements() <= kMostElements) add_input(shape);
  if (values_.empty()) add_input({5, 33});
  const int steps = 3 + below(12);
  for (int tries = 0; tries < 4 * steps && static_cast<int>(values_.size()) < count + steps; ++tries) add_step();
  std::vector<NodeId> outputs{values_.back()};
  for (int more = below(3); more > 0; --more) outputs.push_back(any());
  graph_.set_outputs(outputs);
}

std::int64_t RandomProgram::extent() {
  static constexpr std::int64_t kExtents[] = {1, 2, 3, 5, 8, 16, 17, 32, 33, 40, 64, 65, 100, 128, 200, 257};
  return kExtents[below(std::size(kExtents))];
}

// The last ones more often: programs are chains rather than stars.
NodeId RandomProgram::any() {
  const int size = static_cast<int>(values_.size());
  const int place = below(3) == 0 ? below(size) : size - 1 - below(std::min(size, 3));
  return values_[static_cast<std::size_t>(place)];
}
NodeId RandomProgram::any_exact() { return exact_[static_cast<std::size_t>(below(static_cast<int>(exact_.size())))]; }

NodeId RandomProgram::add_input(const Shape& shape) {
  std::uniform_real_distribution<float> number(-2, 2);
  HostArray array = HostArray::empty(DType::f32, shape);
  for (float& x : array.mutable_view<float>()) x = number(random_);
  inputs_.push_back(array.cast(dtype_));
  const NodeId id = graph_.input(fmt::format("x{}", inputs_.size()), dtype_, shape);
  keep(id, fmt::format("x{}", to_string(shape)), true);
  return id;
}

NodeId RandomProgram::add_indices(const Shape& shape, std::int64_t limit) {
  HostArray array = HostArray::empty(DType::i64, shape);
  for (std::int64_t& x : array.mutable_view<std::int64_t>()) x = below(static_cast<int>(limit));
  inputs_.push_back(array);
  return graph_.input(fmt::format("x{}", inputs_.size()), DType::i64, shape);
}

// One op of any kind; one that does not fit its operands is left out.
void RandomProgram::add_step() {
  try {
    switch (below(21)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5: return add_elementwise();
      case 6:
      case 7: return add_reduction();
      case 8:
      case 9:
      case 10: return add_product();
      case 11: return add_norm();
      case 12:
      case 13:
      case 14: return add_view();
      case 15: return add_movement();
      case 16: return add_lookup();
      case 17: return add_choice();
      case 18: return add_cast();
      case 19: return add_image();
      default: return add_attention();
    }
  } catch (const Error&) {
  }
}

void RandomProgram::add_elementwise() {
  static constexpr const char* kUnary[] = {"abs",  "neg",   "relu",  "tanh",       "gelu",       "sigmoid",
                                           "silu", "erf",   "sin",   "leaky_relu", "hardswish",  "square",
                                           "cos",  "expm1", "floor", "sign",       "log_sigmoid"};
  static constexpr const char* kBinary[] = {"add", "sub", "mul", "maximum", "minimum", "add", "mul", "squared_difference"};
  const NodeId x = any();
  switch (below(5)) {
    case 0:
    case 1: {
      // What grows comes back.
      const char* const op = one_of(kUnary);
      return push(op, {op == std::string_view("expm1") ? apply(graph_, "tanh", {x})[0] : x});
    }
    case 2: return push("mul", {x, graph_.literal(0.25 * (1 + below(9)))});
    case 3: return push("clamp", {x}, {{"min", -0.75}, {"max", 0.5 * below(4)}});
    default: return push(one_of(kBinary), {x, any()});
  }
}

void RandomProgram::add_reduction() {
  static constexpr const char* kReductions[] = {"sum", "mean", "max", "min", "var", "norm", "logsumexp"};
  const NodeId x = any();
  const int rank = shape_of(x).rank();
  if (rank == 0) return;
  const std::int64_t axis = below(rank);
  const char* const op = one_of(kReductions);
  std::vector<NamedValue> parameters{{"axis", axis}};
  if (below(2) == 0) parameters.emplace_back("keepdims", true);
  push(op, {x}, parameters);
  // Beside what it was made of, as in norms.
  if (below(2) == 0) push("sub", {x, graph_.broadcast(graph_.reduce(ReduceKind::max, x, AxisSet(1u << axis)), shape_of(x))});
}

void RandomProgram::add_product() {
  const NodeId x = any();
  const Shape shape = shape_of(x);
  const int rank = shape.rank();
  if (rank < 2) return;
  const std::int64_t k = shape[rank - 1], columns = extent();
  if (shape.elements() * columns > kMostTerms || k * columns > kMostElements) return;
  switch (below(5)) {
    case 0: return push("matmul", {x, any()});
    case 1: {
      const NodeId weight = add_input({columns, k});
      return push("linear", below(2) == 0 ? std::vector{x, weight} : std::vector{x, weight, add_input({columns})});
    }
    case 2: {
      // Through the other side, with an activation in front that a kernel may take over.
      const NodeId weight = add_input({columns, shape[rank - 2]});
      return push("matmul", {weight, apply(graph_, "relu", {x})[0]});
    }
    case 3: {
      const NodeId product = graph_.matmul(x, x, {.transpose_b = true});
      return keep(apply(graph_, "softmax", {apply(graph_, "mul", {product, graph_.literal(0.125)})[0]})[0], "softmax(x x^T)",
                  false);
    }
    default: return push("matmul", {x, add_input({k, columns})});
  }
}

void RandomProgram::add_norm() {
  const NodeId x = any();
  const int rank = shape_of(x).rank();
  if (rank == 0) return;
  const std::int64_t width = shape_of(x)[rank - 1], axis = below(rank);
  switch (below(5)) {
    case 0: return push("softmax", {x}, {{"axis", axis}});
    case 1: return push("log_softmax", {x}, {{"axis", axis}});
    case 2: return push("layer_norm", {x, add_input({width}), add_input({width})}, {{"eps", 0.01}});
    case 3: return push("rms_norm", {x, add_input({width})}, {{"eps", 0.01}});
    default: return push("cumsum", {x}, {{"axis", axis}});
  }
}

void RandomProgram::add_view() {
  const bool is_exact = below(3) == 0;
  const NodeId x = is_exact ? any_exact() : any();
  const Shape shape = shape_of(x);
  const int rank = shape.rank();
  if (rank == 0) return;
  switch (below(5)) {
    case 0: {
      std::vector<int> order(static_cast<std::size_t>(rank));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random_);
      return keep(graph_.transpose(x, order), "transpose", is_exact);
    }
    case 1: {
      if (below(2) == 0) return keep(graph_.reshape(x, Shape{shape.elements()}), "reshape", is_exact);
      const std::int64_t rows = shape.elements() % 4 == 0 ? 4 : 1;
      return keep(graph_.reshape(x, Shape{rows, shape.elements() / rows}), "reshape", is_exact);
    }
    case 2: return push("flip", {x}, {{"axis", std::int64_t{below(rank)}}}, is_exact);
    case 3: {
      std::vector<std::int64_t> extents(shape.begin(), shape.end());
      extents.insert(extents.begin(), 1 + below(3));
      return keep(graph_.broadcast(x, Shape(extents)), "broadcast", is_exact);
    }
    default: {
      std::vector<std::int64_t> start, count, step;
      for (int axis = 0; axis < rank; ++axis) {
        const int all = static_cast<int>(shape[axis]);
        step.push_back(below(4) == 0 ? 2 : 1);
        start.push_back(below(2) == 0 ? 0 : below(all));
        const int most =
            (all - static_cast<int>(start.back()) + static_cast<int>(step.back()) - 1) / static_cast<int>(step.back());
        count.push_back(below(2) == 0 ? most : 1 + below(most));
      }
      return keep(graph_.slice(x, start, count, step), "slice", is_exact);
    }
  }
}

void RandomProgram::add_movement() {
  const bool is_exact = below(3) == 0;
  const NodeId x = is_exact ? any_exact() : any();
  const Shape shape = shape_of(x);
  const int rank = shape.rank();
  if (rank == 0) return;
  const std::int64_t axis = below(rank);
  switch (below(4)) {
    case 0: return push("concat", {x, below(2) == 0 ? x : apply(graph_, "neg", {x})[0]}, {{"axis", axis}}, is_exact);
    case 1: {
      std::vector<std::int64_t> low, high;
      for (int i = 0; i < rank; ++i) {
        low.push_back(below(3));
        high.push_back(below(3));
      }
      return keep(graph_.pad(x, low, high, 0.5), "pad", is_exact);
    }
    case 2: return push("roll", {x}, {{"shift", std::int64_t{below(5)} - 2}, {"axis", axis}}, is_exact);
    default:
      return push("repeat",
                  {
                      x,
                  },
                  {{"repeats", std::int64_t{2}}, {"axis", axis}}, is_exact);
  }
}

void RandomProgram::add_lookup() {
  const NodeId x = any();
  const Shape shape = shape_of(x);
  if (shape.rank() == 0) return;
  const int axis = below(shape.rank());
  const std::int64_t limit = shape[axis], count = 1 + below(40);
  if (shape.elements() / limit * count > kMostElements) return;
  switch (below(3)) {
    case 0: return keep(graph_.take(x, add_indices({count}, limit), axis), "take", false);
    case 1: {
      const NodeId indices = add_indices({count}, limit);
      const Shape updates = shape.with(axis, count);
      std::vector<std::int64_t> column(static_cast<std::size_t>(shape.rank()), 1);
      column[static_cast<std::size_t>(axis)] = count;
      const NodeId everywhere = graph_.broadcast(graph_.reshape(indices, Shape(column)), updates);
      return keep(graph_.scatter(x, everywhere, add_input(updates), axis, true), "scatter_add", false);
    }
    default: return keep(graph_.gather(x, add_indices(shape.with(axis, count), limit), axis), "gather", false);
  }
}

// Results that jump: only of values that every backend has alike.
void RandomProgram::add_choice() {
  const NodeId x = any_exact();
  const Shape shape = shape_of(x);
  if (shape.rank() == 0) return;
  const std::int64_t axis = below(shape.rank());
  switch (below(5)) {
    case 0: return push("sort", {x}, {{"axis", axis}}, true);
    case 1: return push("where", {apply(graph_, "greater", {x, graph_.literal(0.25)})[0], x, any()});
    case 2: return push("tril", {x}, {{"diagonal", std::int64_t{below(5)} - 2}}, true);
    case 3: {
      const NodeId place = graph_.arg_reduce(x, static_cast<int>(axis), below(2) == 0);
      return keep(graph_.cast(place, compute_dtype(dtype_)), "argmax", true);
    }
    default:
      return push("top_k", {x},
                  {{"k", std::int64_t{1 + below(static_cast<int>(std::min<std::int64_t>(shape[static_cast<int>(axis)], 9)))}},
                   {"axis", axis}},
                  true);
  }
}

void RandomProgram::add_cast() {
  static constexpr DType kTypes[] = {DType::bf16, DType::f16, DType::f32};
  const NodeId x = any();
  if (!is_float(graph_[x].dtype)) return;
  keep(graph_.cast(x, kTypes[below(std::size(kTypes))]), "cast", false);
}

void RandomProgram::add_image() {
  const NodeId x = any();
  const Shape shape = shape_of(x);
  if (shape.rank() < 3 || shape.elements() > 6000) return;
  const NodeId image =
      shape.rank() == 4 ? x : graph_.reshape(x, Shape{1, shape[0], shape[1], shape.elements() / shape[0] / shape[1]});
  const std::int64_t channels = shape_of(image)[1];
  if (channels > 64) return;
  switch (below(5)) {
    case 3:
      return push("conv_transpose2d", {image, add_input({channels, 1 + below(9), 3, 3})},
                  {{"stride", std::int64_t{1 + below(2)}}});
    case 0: return push("max_pool2d", {image}, {{"kernel", std::int64_t{2}}});
    case 1:
      return push("avg_pool2d", {image},
                  {{"kernel", std::int64_t{3}}, {"stride", std::int64_t{2}}, {"padding", std::int64_t{1}}});
    case 2: return push("conv2d", {image, add_input({channels, 1, 3, 3})}, {{"padding", std::int64_t{1}}, {"groups", channels}});
    default: return push("conv2d", {image, add_input({1 + below(20), channels, 3, 3})}, {{"padding", std::int64_t{1}}});
  }
}

// As one op, or written out as exporters do.
void RandomProgram::add_attention() {
  static constexpr std::int64_t kWidths[] = {8, 16, 33, 64};
  const std::int64_t batch = 1 + below(2), shared = 1 + below(2), heads = shared * (1 + below(3)),
                     width = kWidths[below(std::size(kWidths))];
  const std::int64_t rows = below(2) == 0 ? 1 + below(4) : 1 + below(40), keys = 1 + below(150);
  const bool is_written_out = below(2) == 0;
  const std::int64_t key_heads = is_written_out ? heads : shared;
  // What is there already, if it has so many elements.
  const NodeId x = any();
  const Shape q_shape{batch, heads, rows, width};
  const NodeId q = shape_of(x).elements() == q_shape.elements() ? graph_.reshape(x, q_shape) : add_input(q_shape);
  const NodeId k = add_input({batch, key_heads, keys, width}), v = add_input({batch, key_heads, keys, width});
  if (!is_written_out) {
    if (below(2) == 0) return push("attention", {q, k, v}, {{"causal", below(2) == 0}});
    return push("attention", {q, k, v, add_input({rows, keys})});
  }
  NodeId scores = apply(graph_, "mul", {graph_.matmul(q, k, {.transpose_b = true}), graph_.literal(0.25)})[0];
  if (below(2) == 0) scores = apply(graph_, "add", {scores, add_input({rows, keys})})[0];
  keep(graph_.matmul(apply(graph_, "softmax", {scores})[0], v), "attention written out", false);
}

void RandomProgram::push(const char* op, const std::vector<NodeId>& operands, const std::vector<NamedValue>& parameters,
                         bool is_exact) {
  keep(apply(graph_, find_op(op), operands, parameters)[0], op, is_exact);
}

void RandomProgram::keep(NodeId value, std::string_view name, bool is_exact) {
  if (shape_of(value).elements() > kMostElements || shape_of(value).elements() == 0) return;
  values_.push_back(value);
  if (is_exact && is_float(graph_[value].dtype)) exact_.push_back(value);
  text_ += fmt::format("{}{}", text_.empty() ? "" : ", ", name);
}

std::vector<std::uint32_t> random_seeds(int count) {
  const auto number_from = [](const char* variable, int otherwise) {
    const char* const text = std::getenv(variable);
    return text ? std::atoi(text) : otherwise;
  };
  std::vector<std::uint32_t> seeds(static_cast<std::size_t>(number_from("TENON_RANDOM_PROGRAMS", count)));
  std::iota(seeds.begin(), seeds.end(), static_cast<std::uint32_t>(number_from("TENON_RANDOM_SEED", 1)));
  return seeds;
}

std::vector<HostArray> run_twice(OpenDevice& device, const RandomProgram& program) {
  const auto executable = device.compile(program.graph());
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<const Buffer*> in;
  std::vector<Buffer*> out;
  for (const HostArray& array : program.inputs()) in.push_back(buffers.emplace_back(device.upload(array)).get());
  for (const TensorType& type : executable->output_types()) out.push_back(buffers.emplace_back(device.allocate(type)).get());
  for (int run = 0; run < 2; ++run) executable->run(in, out);
  std::vector<HostArray> results;
  for (const Buffer* buffer : out) results.push_back(device.download(*buffer));
  return results;
}

std::string what_differs(std::span<const HostArray> results, std::span<const Bounded> expected) {
  if (results.size() != expected.size()) return fmt::format("{} results instead of {}", results.size(), expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Comparison comparison = compare(results[i], expected[i], false);
    if (!comparison.worst) continue;
    const Mismatch& worst = *comparison.worst;
    if (worst.error_ulp <= 2 * worst.limit_ulp) continue;
    return fmt::format(
        "output {}: {} of {} elements differ; the worst, {}, is {} instead of {}, {:.3g} ULP apart, {:.3g} are allowed", i,
        comparison.failures, comparison.elements, worst.index, worst.got, worst.expected, worst.error_ulp, worst.limit_ulp);
  }
  return {};
}

}  // namespace tenon::conformance
