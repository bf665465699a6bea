// What a user of the library writes first: a program described without a device, run by the manager.
#include <cstdio>

#include "tenon/manager.h"
#include "tenon/ops.h"

int main() {
  tenon::Graph graph;
  const tenon::NodeId a = graph.input("a", tenon::DType::f32, {4});
  const tenon::NodeId b = graph.input("b", tenon::DType::f32, {4});
  graph.set_outputs({tenon::apply(graph, "add", {a, b})[0]});

  const tenon::HostArray inputs[] = {tenon::HostArray::from<float>({4}, {1, 2, 3, 4}),
                                     tenon::HostArray::from<float>({4}, {10, 20, 30, 40})};
  const tenon::RunResult result = tenon::process_manager().run(graph, inputs);
  for (const float value : result.outputs[0].view<float>()) std::printf("%g ", value);
  std::printf("\n");
}
