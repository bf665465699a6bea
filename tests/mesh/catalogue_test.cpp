// Every op of the catalogue with its inputs split in many ways: the same results as on one device, bitwise unless a sum is split.
// TENON_MESH_ROUNDS=N tries N programs of each op and dtype with random shardings; TENON_MESH_SHARDINGS=all tries every sharding
// of the inputs of each, or N evenly chosen ones if there are more than N: TENON_MESH_SHARDINGS=500.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "conformance/cases/cases.h"
#include "conformance/judge/bounds.h"
#include "conformance/judge/compare.h"
#include "mesh/simulated_mesh.h"
#include "tenon/error.h"

namespace tenon {
namespace {

int rounds() {
  const char* text = std::getenv("TENON_MESH_ROUNDS");
  return text ? std::atoi(text) : 1;
}

// The most shardings of one program that are tried; 0: a random one.
std::size_t most_shardings() {
  const char* text = std::getenv("TENON_MESH_SHARDINGS");
  if (text == nullptr) return 0;
  return std::string_view(text) == "all" ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(std::atoll(text));
}

// Every way to split a tensor: each axis of the mesh, in any order, over one of its axes or none.
std::vector<Sharding> shardings_of(int rank, const Mesh& mesh) {
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(mesh.axes().size()); ++i) order.push_back(i);
  std::vector<Sharding> all;
  do {
    std::vector<Sharding> these{{std::vector<std::vector<std::string>>(static_cast<std::size_t>(rank))}};
    for (const int m : order) {
      const std::vector<Sharding> before = these;
      for (const Sharding& one : before)
        for (std::size_t axis = 0; axis < one.axes.size(); ++axis)
          these.emplace_back(one).axes[axis].push_back(mesh.axes()[static_cast<std::size_t>(m)].name);
    }
    for (const Sharding& one : these)
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
  } while (std::next_permutation(order.begin(), order.end()));
  return all;
}

// The combinations of the shardings of all inputs: all, or |most| of them at equal distances.
struct Shardings {
  std::vector<MeshOptions> tried;
  bool are_all = true;
};
Shardings combined_shardings(const Graph& graph, const Mesh& mesh, std::size_t most) {
  std::vector<std::vector<Sharding>> inputs;
  std::size_t count = 1;
  for (const NodeId id : graph.inputs()) {
    inputs.push_back(shardings_of(graph[id].shape.rank(), mesh));
    count *= inputs.back().size();
  }
  std::vector<MeshOptions> result;
  const std::size_t wanted = std::min(count, most);
  for (std::size_t i = 0; i < wanted; ++i) {
    std::size_t number =
        wanted == count
            ? i
            : static_cast<std::size_t>(static_cast<double>(i) * static_cast<double>(count) / static_cast<double>(wanted));
    MeshOptions& options = result.emplace_back();
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      const NodeId id = graph.inputs()[input];
      options.inputs[graph[id].as<InputAttr>().name] = inputs[input][number % inputs[input].size()];
      number /= inputs[input].size();
    }
  }
  return {std::move(result), wanted == count};
}

// Each axis of the mesh splits some axis of each input, or none.
MeshOptions random_shardings(const Graph& graph, const Mesh& mesh, std::mt19937& random) {
  MeshOptions options;
  for (const NodeId id : graph.inputs()) {
    const Node& node = graph[id];
    Sharding sharding;
    sharding.axes.resize(static_cast<std::size_t>(node.shape.rank()));
    for (const MeshAxis& axis : mesh.axes())
      if (const auto choice = random() % (sharding.axes.size() + 1); choice < sharding.axes.size())
        sharding.axes[choice].push_back(axis.name);
    options.inputs[node.as<InputAttr>().name] = sharding;
  }
  if (random() % 3 == 0)
    for (int i = 0; i < mesh.size(); ++i) options.speeds.push_back(1 + static_cast<double>(random() % 4));
  return options;
}

std::string text_of(const MeshOptions& options) {
  std::string text;
  for (const auto& [name, sharding] : options.inputs) text += fmt::format("{}=[{}] ", name, sharding.text());
  return text;
}

// Floats that are computed may be rounded at other places when their operands have another shape: a backend chooses its kernels
// by shapes. What is only moved has the same bits.
bool computes_floats(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Prim prim = graph[id].prim;
    const bool moves = prim == Prim::input || prim == Prim::constant || prim == Prim::broadcast || prim == Prim::reshape ||
                       prim == Prim::transpose || prim == Prim::slice || prim == Prim::pad || prim == Prim::concat ||
                       prim == Prim::take || prim == Prim::gather || prim == Prim::cast;
    if (!moves && is_float(graph[id].dtype)) return true;
  }
  return false;
}

bool adds_up(const MeshResult& result) {
  for (const Collective& collective : result.collectives)
    if (collective.kind == Collective::Kind::all_reduce || collective.kind == Collective::Kind::reduce_scatter) return true;
  return false;
}

// Values of 16 bits are rounded where they are exchanged, and again what is computed from them.
void expect_near(const HostArray& got, const HostArray& wanted) {
  double largest = 0;
  for (const double value : wanted.to_doubles())
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double a = got.value(i), b = wanted.value(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    EXPECT_LE(std::abs(a - b), largest / 16) << "element " << i << " is " << a << ", on one device " << b;
  }
}

class MeshCatalogue : public testing::TestWithParam<const char*> {
 protected:
  void check(const conformance::Program& program, DType dtype, const MeshOptions& options) {
    const MeshResult result = run_on_mesh(devices.manager, program.graph, program.inputs, devices.mesh, options);
    const RunResult alone = devices.manager.run(program.graph, program.inputs, {.device = devices.mesh.devices()[0]});
    ++programs;
    if (!result.collectives.empty()) ++split;
    ASSERT_EQ(result.outputs.size(), alone.outputs.size());
    // A value that is exchanged in 16 bits is rounded there.
    const bool is_bitwise =
        !adds_up(result) && !computes_floats(program.graph) && (dtype != DType::bf16 || result.collectives.empty());
    std::vector<conformance::Bounded> expected;
    if (!is_bitwise) expected = conformance::bounded_run(program.graph, program.inputs);
    for (std::size_t i = 0; i < alone.outputs.size(); ++i) {
      const HostArray &got = result.outputs[i], &wanted = alone.outputs[i];
      ASSERT_EQ(got.dtype(), wanted.dtype());
      ASSERT_EQ(got.shape(), wanted.shape());
      if (is_bitwise)
        EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.bytes()), 0)
            << explain_mesh(program.graph, devices.mesh, options).text();
      else if (dtype == DType::bf16)
        expect_near(got, wanted);
      else
        EXPECT_EQ(conformance::compare(got, expected[i], false).failures, 0)
            << explain_mesh(program.graph, devices.mesh, options).text();
    }
  }

  SimulatedMesh devices{GetParam()};
  int programs = 0, split = 0;
  int complete = 0, sampled = 0;  // cases of which every sharding was tried, and of which only some
};

TEST_P(MeshCatalogue, EveryOpGivesTheSame) {
  std::mt19937 random(7);
  for (const OpInfo& op : all_ops()) {
    for (const DType dtype : {DType::f32, DType::i32, DType::bf16}) {
      std::vector<conformance::Case> cases;
      try {
        cases = conformance::cases_for(op, dtype, conformance::Extent::quick);
      } catch (const Error&) {
        continue;
      }
      if (cases.empty()) continue;
      for (int round = 0; round < rounds(); ++round) {
        const conformance::Case& c = cases[random() % cases.size()];
        conformance::Program program;
        try {
          program = conformance::program_of(c, random());
        } catch (const Error&) {
          continue;
        }
        std::vector<MeshOptions> all{random_shardings(program.graph, devices.mesh, random)};
        if (const std::size_t most = most_shardings()) {
          Shardings combined = combined_shardings(program.graph, devices.mesh, most);
          all = std::move(combined.tried);
          ++(combined.are_all ? complete : sampled);
        }
        for (const MeshOptions& options : all) {
          SCOPED_TRACE(fmt::format("{} {} case {} ({}), {}", op.name, name(dtype), c.number, c.label, text_of(options)));
          check(program, dtype, options);
          if (HasFailure()) return;
        }
      }
    }
  }
  RecordProperty("programs", programs);
  if (complete + sampled > 0)
    fmt::print("{}: {} programs; every sharding of {} cases, evenly chosen ones of {}\n", GetParam(), programs, complete,
               sampled);
  EXPECT_GT(programs, 400);
  EXPECT_GT(split, programs / 20);
}

TEST(MeshShardings, AreAllCounted) {
  const Mesh two({{"a", 2}}, {"x", "y"}), four({{"a", 2}, {"b", 2}}, {"x", "y", "z", "u"});
  EXPECT_EQ(shardings_of(2, two).size(), 3U);
  // Each axis of the mesh over one of two axes or none, 3 x 3, and both over the same one in either order, 2 more.
  EXPECT_EQ(shardings_of(2, four).size(), 11U);
  EXPECT_EQ(shardings_of(0, four).size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Meshes, MeshCatalogue, testing::Values("a=2", "a=4", "a=2,b=2"));

}  // namespace
}  // namespace tenon
