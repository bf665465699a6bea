// Every op of the catalogue with its inputs split in many ways: the same results as on one device, bitwise unless a sum is split.
// TENON_MESH_ROUNDS=N tries N shardings of each program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>

#include "conformance/bounds.h"
#include "conformance/cases.h"
#include "conformance/compare.h"
#include "mesh/simulated_mesh.h"
#include "tenon/error.h"

namespace tenon {
namespace {

int rounds() {
  const char* text = std::getenv("TENON_MESH_ROUNDS");
  return text ? std::atoi(text) : 1;
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

class MeshCatalogue : public testing::TestWithParam<const char*> {};

TEST_P(MeshCatalogue, EveryOpGivesTheSame) {
  SimulatedMesh devices(GetParam());
  std::mt19937 random(7);
  int programs = 0, split = 0;
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
        const MeshOptions options = random_shardings(program.graph, devices.mesh, random);
        SCOPED_TRACE(fmt::format("{} {} case {} ({}), {}", op.name, name(dtype), c.number, c.label, text_of(options)));
        const RunResult alone = devices.manager.run(program.graph, program.inputs, {.device = devices.mesh.devices()[0]});
        const MeshResult result = run_on_mesh(devices.manager, program.graph, program.inputs, devices.mesh, options);
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
        if (HasFailure()) return;
      }
    }
  }
  RecordProperty("programs", programs);
  EXPECT_GT(programs, 400);
  EXPECT_GT(split, programs / 20);
}

INSTANTIATE_TEST_SUITE_P(Meshes, MeshCatalogue, testing::Values("a=2", "a=4", "a=2,b=2"));

}  // namespace
}  // namespace tenon
