// Results too large for the caches are written another way (past them). They must be the same bytes as those of small programs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/backend.h"
#include "conformance/cases/values.h"
#include "tenon/ops.h"

namespace tenon::conformance {
namespace {

struct Large {
  const char* name;
  const char* op;
  DType dtype;
  std::vector<NamedValue> parameters;
  int operands = 1;
  bool transposed = false;  // the first operand
  bool row = false;         // the last operand is one row
};

std::vector<Large> programs() {
  const NamedValue to_bf16{"dtype", std::string("bfloat16")}, to_i8{"dtype", std::string("int8")};
  return {
      {"AddFloats", "add", DType::f32, {}, 2},
      {"AddARowToFloats", "add", DType::f32, {}, 2, false, true},
      {"AddDoubles", "add", DType::f64, {}, 2},
      {"AddBytes", "add", DType::i8, {}, 2},
      {"MultiplyBfloat16", "mul", DType::bf16, {}, 2},
      {"AddHalves", "add", DType::f16, {}, 2},
      {"Exponential", "exp", DType::f32, {}},
      {"CompareFloats", "lt", DType::f32, {}, 2},
      {"AddTransposedFloats", "add", DType::f32, {}, 2, true},
      {"TransposeFloats", "clone", DType::f32, {}, 1, true},
      {"TransposeBfloat16", "clone", DType::bf16, {}, 1, true},
      {"TransposeBytes", "clone", DType::u8, {}, 1, true},
      {"TransposeDoubles", "clone", DType::f64, {}, 1, true},
      {"FloatsToBfloat16", "cast", DType::f32, {to_bf16}},
      {"FloatsToBytes", "cast", DType::f32, {to_i8}},
      {"Softmax", "softmax", DType::f32, {}},
      {"LogSoftmax", "log_softmax", DType::f32, {}},
      {"Reversed", "flip", DType::i16, {{"axis", std::vector<std::int64_t>{1}}}},
      {"Repeated", "tile", DType::f32, {{"reps", std::vector<std::int64_t>{1, 2}}}},
  };
}

constexpr std::int64_t kCols = 4099;  // no multiple of anything: rows begin at every alignment

// Rows that make one operand fill the last-level cache.
std::int64_t rows_for(DType dtype) {
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::int64_t bytes = std::clamp<std::int64_t>(cache, 8 << 20, 64 << 20);
  return bytes / static_cast<std::int64_t>(element_bytes(dtype)) / kCols + 1;
}

class Streaming : public testing::TestWithParam<Large> {
 protected:
  Streaming() : rows_(rows_for(GetParam().dtype)) {
    for (int i = 0; i < GetParam().operands; ++i) {
      const bool row = GetParam().row && i > 0, transposed = GetParam().transposed && i == 0;
      const Shape shape = row ? Shape{kCols} : transposed ? Shape{kCols, rows_} : Shape{rows_, kCols};
      inputs_.push_back(filled({Values::wide}, GetParam().dtype, shape, static_cast<std::uint64_t>(i)));
    }
  }

  // The program for rows [first, first + count) of the result.
  HostArray run(std::int64_t first, std::int64_t count) {
    Graph graph;
    std::vector<NodeId> nodes;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      NodeId x = graph.input("x", inputs_[i].dtype(), inputs_[i].shape());
      if (GetParam().transposed && i == 0) x = graph.transpose(x, std::vector<int>{1, 0});
      const std::int64_t start[] = {first, 0}, extent[] = {count, kCols}, step[] = {1, 1};
      nodes.push_back(inputs_[i].shape().rank() == 1 ? x : graph.slice(x, start, extent, step));
    }
    graph.set_outputs(apply(graph, find_op(GetParam().op), nodes, GetParam().parameters));
    const std::unique_ptr<OpenDevice> device = cpu::open_with(process_pool());
    const std::unique_ptr<Executable> program = device->compile(graph);
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<const Buffer*> pointers;
    for (const HostArray& x : inputs_) {
      buffers.push_back(device->upload(x));
      pointers.push_back(buffers.back().get());
    }
    const std::unique_ptr<Buffer> output = device->allocate(program->output_types()[0]);
    Buffer* const outputs[] = {output.get()};
    program->run(pointers, outputs);
    return device->download(*output);
  }

  std::int64_t rows_;
  std::vector<HostArray> inputs_;
};

TEST_P(Streaming, GivesTheBytesOfSmallPrograms) {
  const HostArray whole = run(0, rows_);
  const std::int64_t step = std::max<std::int64_t>(rows_ / 24, 1);
  const std::size_t row_bytes = whole.bytes() / static_cast<std::size_t>(rows_);
  for (std::int64_t first = 0; first < rows_; first += step) {
    const HostArray part = run(first, std::min(step, rows_ - first));
    ASSERT_EQ(std::memcmp(whole.data() + static_cast<std::size_t>(first) * row_bytes, part.data(), part.bytes()), 0)
        << "rows from " << first;
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, Streaming, testing::ValuesIn(programs()),
                         [](const testing::TestParamInfo<Large>& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace tenon::conformance
