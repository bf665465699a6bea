#include "cpu/programs.h"

#include <sys/mman.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <random>

#include "tenon/expression.h"
#include "tenon/ops.h"

namespace bench {
namespace {

constexpr std::int64_t kChunk = 32768;           // elements a thread claims at once
constexpr std::int64_t kStreamFootprint = 24e6;  // bytes read and written, beyond which stores go past the caches
constexpr std::size_t kHugePage = std::size_t{2} << 20;

float* huge_memory(std::int64_t elements) {
  const std::size_t bytes = (static_cast<std::size_t>(elements) * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
  void* memory = std::aligned_alloc(kHugePage, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return static_cast<float*>(memory);
}

// Work on the rows and columns of square matrices.
const std::map<std::string, std::string> kMatrixPrograms = {
    {"sum_columns", "sum(a, axis=0)"}, {"max_columns", "max(a, axis=0)"}, {"sum_products", "sum(a * b, axis=-1)"},
    {"variance", "var(a, axis=-1)"},   {"layer_norm", "layer_norm(a)"},   {"minus_max", "a - max(a, axis=-1, keepdims=true)"},
    {"log_softmax", "log_softmax(a)"}, {"cumsum", "cumsum(a, axis=-1)"},  {"to_bfloat16", "cast(a, bfloat16)"},
};

bool is_binary(const std::string& op) { return op == "add" || op.starts_with("gelu") || op == "matmul"; }

}  // namespace

tenon::Shape shape_for(const std::string& op, std::int64_t size) {
  if (op != "softmax" && op != "transpose" && !kMatrixPrograms.contains(op)) return {size};
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(size))));
  return {side, side};
}

tenon::Graph graph_for(const std::string& op, const tenon::Shape& shape, tenon::DType dtype) {
  if (const auto text = kMatrixPrograms.find(op); text != kMatrixPrograms.end())
    return tenon::parse_expression(text->second, {{"a", dtype, shape}, {"b", dtype, shape}});
  tenon::Graph g;
  const tenon::NodeId a = g.input("a", dtype, shape);
  tenon::NodeId result = a;
  if (is_binary(op)) {
    const tenon::NodeId b = g.input("b", dtype, shape);
    if (op.starts_with("gelu")) {
      const tenon::NodeId x = tenon::apply(g, "add", {tenon::apply(g, "mul", {a, b})[0], g.literal(0.5)})[0];
      result = tenon::apply(g, "gelu", {x}, {{"approximate", std::string(op == "gelu" ? "none" : "tanh")}})[0];
    } else {
      result = tenon::apply(g, op, {a, b})[0];
    }
  } else {
    result = tenon::apply(g, op, {a})[0];
  }
  g.set_outputs({result});
  return g;
}

Prepared::Prepared(tenon::OpenDevice& device, const tenon::Graph& graph, const std::vector<tenon::HostArray>& inputs)
    : device_(device),
      program_(device.compile(graph)) {
  for (std::size_t i = 0; i < program_->input_types().size(); ++i) {
    inputs_.push_back(device.upload(inputs[i]));
    arguments_.push_back(inputs_.back().get());
  }
  output_ = device.allocate(program_->output_types()[0]);
}

void Prepared::run() {
  tenon::Buffer* const out = output_.get();
  program_->run(arguments_, std::span(&out, 1));
}

void Prepared::run_fresh() {
  const std::unique_ptr<tenon::Buffer> fresh = device_.allocate(program_->output_types()[0]);
  tenon::Buffer* const out = fresh.get();
  program_->run(arguments_, std::span(&out, 1));
}

tenon::HostArray Prepared::result() const { return device_.download(*output_); }

ByHand::ByHand(const HandLoops& loops, SpinPool& pool, std::string op, const tenon::HostArray& a, const tenon::HostArray& b)
    : loops_(loops),
      pool_(pool),
      op_(std::move(op)),
      elements_(a.elements()),
      side_(a.shape()[0]) {
  // One row beyond the end: softmax asks for the row after the one it works on.
  a_.reset(huge_memory(elements_ + side_));
  std::memcpy(a_.get(), a.data(), a.bytes());
  if (is_binary(op_)) {
    b_.reset(huge_memory(elements_));
    std::memcpy(b_.get(), b.data(), b.bytes());
  }
  out_.reset(huge_memory(op_ == "sum" ? 1 : elements_));
  const std::int64_t arrays = op_ == "sum" ? 1 : is_binary(op_) ? 3 : 2;
  stream_ = arrays * elements_ * static_cast<std::int64_t>(sizeof(float)) > kStreamFootprint;
}

void ByHand::run() {
  const float* a = a_.get();
  const float* b = b_.get();
  float* out = out_.get();
  const std::int64_t chunk = std::min(kChunk, elements_);
  const std::int64_t chunks = elements_ / chunk;
  const auto unary = [&](auto loop) {
    pool_.run(chunks, [&](std::int64_t i) { loop(a + i * chunk, out + i * chunk, chunk, stream_); });
  };
  const auto binary = [&](auto loop) {
    pool_.run(chunks, [&](std::int64_t i) { loop(a + i * chunk, b + i * chunk, out + i * chunk, chunk, stream_); });
  };
  if (op_ == "copy") return unary(loops_.copy);
  if (op_ == "exp") return unary(loops_.exp);
  if (op_ == "tanh") return unary(loops_.tanh);
  if (op_ == "sigmoid") return unary(loops_.sigmoid);
  if (op_ == "add") return binary(loops_.add);
  if (op_ == "gelu") return binary(loops_.gelu_chain);
  if (op_ == "gelu_tanh") return binary(loops_.gelu_tanh_chain);
  if (op_ == "sum") {
    std::atomic<double> total{0};
    pool_.run(chunks, [&](std::int64_t i) { total.fetch_add(loops_.sum(a + i * chunk, chunk)); });
    out[0] = static_cast<float>(total.load());
    return;
  }
  if (op_ == "softmax") {
    const std::int64_t rows = std::max<std::int64_t>(1, chunk / side_);
    pool_.run(side_ / rows,
              [&](std::int64_t i) { loops_.softmax(a + i * rows * side_, out + i * rows * side_, rows, side_, stream_); });
    return;
  }
  const std::int64_t rows = stream_ ? 16 : 32;
  pool_.run(side_ / rows, [&](std::int64_t i) { loops_.transpose(a, out, side_, i * rows, rows, stream_); });
}

tenon::HostArray random_array(const tenon::Shape& shape, std::uint32_t seed) {
  tenon::HostArray array = tenon::HostArray::empty(tenon::DType::f32, shape);
  std::minstd_rand random(seed);
  std::normal_distribution<float> normal;  // as the peers get
  for (float& value : array.mutable_view<float>()) value = normal(random);
  return array;
}

}  // namespace bench
