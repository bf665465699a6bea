// Rows that are computed alone have the bits that they have among others: batches of models rely on it.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "backends/cpu/backend.h"
#include "base/threads/thread_pool.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

HostArray run(OpenDevice& device, const std::vector<const char*>& ops, const HostArray& x) {
  Graph graph;
  NodeId y = graph.input("x", x.dtype(), x.shape());
  for (const char* const op : ops) y = apply(graph, op, {y})[0];
  graph.set_outputs({y});
  const auto program = device.compile(graph);
  const auto in = device.upload(x), out = device.allocate(program->output_types()[0]);
  program->run({in.get()}, {out.get()});
  return device.download(*out);
}

TEST(RowsAlone, HaveTheBitsThatTheyHaveAmongOthers) {
  const auto device = cpu::open_with(process_pool());
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const std::vector<std::vector<const char*>> programs{{"softmax"},
                                                       {"log_softmax"},
                                                       {"layer_norm"},
                                                       {"rms_norm"},
                                                       {"l2_normalize"},
                                                       {"gelu", "softmax", "tanh"},
                                                       {"square", "layer_norm"}};
  for (const std::int64_t cols : {1, 3, 17, 32, 33, 100, 1030, 2300})
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
      for (const std::vector<const char*>& ops : programs) {
        constexpr std::int64_t kRows = 9;
        std::vector<float> values(static_cast<std::size_t>(kRows * cols));
        for (float& value : values) value = normal(random);
        const HostArray together =
            run(*device, ops, HostArray::from<float>({kRows, cols}, std::span<const float>(values)).cast(dtype));
        for (const std::int64_t row : {0, 4, 8}) {
          const auto one =
              std::span<const float>(values).subspan(static_cast<std::size_t>(row * cols), static_cast<std::size_t>(cols));
          const HostArray alone = run(*device, ops, HostArray::from<float>({1, cols}, one).cast(dtype));
          EXPECT_EQ(std::memcmp(alone.data(),
                                static_cast<const std::byte*>(together.data()) + row * static_cast<std::int64_t>(alone.bytes()),
                                alone.bytes()),
                    0)
              << ops[0] << " of " << cols << " " << name(dtype) << ", row " << row;
        }
      }
}

}  // namespace
}  // namespace tenon
