// partition(): a program over whole tensors becomes one over parts, with the exchanges between devices that it needs.
#pragma once

#include <string>
#include <vector>

#include "mesh/plan/layout.h"
#include "tenon/mesh.h"

namespace tenon::mesh {

// One value of the partitioned program, the same on every device but for the part it holds.
struct Value {
  enum class Kind : std::uint8_t {
    node,    // the node |origin| computed from |inputs|
    part,    // of a larger part that the device already has
    reduce,  // an exchange: fewer partial axes than |inputs|[0]
    move,    // an exchange: other parts than |inputs|[0]
  };
  Kind kind{};
  NodeId origin = 0;
  Layout layout;
  std::vector<int> inputs;  // earlier values
  int stage = 0;            // exchanges begin at the end of their stage; what uses one is in a later stage

  bool is_exchange() const { return kind == Kind::reduce || kind == Kind::move; }
};

struct Partition {
  std::vector<Value> values;  // in an order in which they can be computed
  std::vector<int> outputs;
  std::vector<std::string> notes;
  int stages = 1;
};

// Throws invalid_argument if a sharding does not fit its input, or names what does not exist.
void check_options(const Graph& graph, const Mesh& mesh, const MeshOptions& options);
// Checks, too.
Partition partition(const Graph& graph, const Mesh& mesh, const MeshOptions& options);

// Between devices, sums of 16-bit and block formats are f32: terms are not rounded before they are added.
DType exchanged_type(const Graph& graph, const Value& value);

// How the exchange is called.
Collective describe(const Graph& graph, const Mesh& mesh, const Partition& partition, const Value& exchange);

}  // namespace tenon::mesh
