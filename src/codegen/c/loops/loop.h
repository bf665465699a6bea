// Loops: kernels of fused groups (graph/optimize/fusion.h), and of plain maps over strided memory.
//
//   map        one pass over a domain, any number of inputs and outputs read and written through strides
//   rows       a work-group (on a processor: a work-item) takes a row, reduces it as often as the group needs, values between the
//              passes kept in registers: softmax and layer_norm in one kernel
//   reduction  partial results of segments where there are too few rows to fill the device, and a second kernel that joins them
// Shapes and strides are arguments; what is written into the text is which strides are 0 or 1, and how many axes remain after
// neighbouring ones are joined.
#pragma once

#include <functional>
#include <optional>

#include "codegen/c/body.h"
#include "codegen/c/kernel.h"
#include "graph/optimize/fusion.h"

namespace tenon::emit {

struct Launch {
  Kernel kernel;
  std::array<std::uint32_t, 3> groups{1, 1, 1};
  std::vector<ArgumentValue> arguments;
};

// Wraps |statements| into a kernel and names it. |least_groups|: how many should run on a multiprocessor at once (CUDA).
// |waits_itself|: the statements begin with LET_NEXT_BEGIN and say WAIT_FOR_LAST before they read what the program computes
// (CUDA).
Launch make_launch(Body& body, std::array<int, 3> group_size, std::array<std::uint32_t, 3> groups, const std::string& statements,
                   int least_groups = 0, bool waits_itself = false);

// The slot of integers 0, 1, 2, ... (Prim::iota), which inputs of a map may have: they are computed, not read from memory.
inline constexpr int kNumbers = -1;

// Element (i, j, ...) lies at offset + i * strides[0] + j * strides[1] + ...
struct Access {
  int slot = 0;
  DType stored = DType::f32;
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
};
Access access(int slot, DType stored, const ValueView& view);
Access dense_access(int slot, DType stored, const Shape& shape);

struct MapContext {
  Body& body;
  std::span<const std::string> inputs;  // variables
  std::string index;                    // row-major number of the element; only in maps without inputs, over dense outputs
};
// Returns statements, and in |outputs| the variables to store.
using MapBody = std::function<std::string(const MapContext& context, std::vector<std::string>& outputs)>;
Launch emit_map(const KernelTarget& target, const Shape& domain, std::span<const Access> inputs, std::span<const Access> outputs,
                const MapBody& body);
// The same where source and target are together along different axes; nothing where emit_copy() is as good.
std::optional<Launch> emit_transposed_copy(const KernelTarget& target, const Shape& shape, const Access& from, const Access& to);
// The same where the last axis is short and the target dense.
std::optional<Launch> emit_short_copy(const KernelTarget& target, const Shape& shape, const Access& from, const Access& to);
// The elements of |from| in the type of |to|, converted if the types differ.
Launch emit_copy(const KernelTarget& target, const Shape& shape, const Access& from, const Access& to);

// --- Groups ---
class GroupReader;
struct StoredValue {
  int slot = 0;
  DType stored = DType::f32;
};
class GroupPlacement {
 public:
  virtual ~GroupPlacement() = default;
  // Where the dense memory of a node outside the group is.
  virtual StoredValue source(NodeId base) const = 0;
  // Everywhere an output of the group is to be written, densely.
  virtual std::vector<StoredValue> targets(NodeId output) const = 0;
  // A part of other memory that an output of an elementwise group is to be written to besides, or null.
  virtual const Access* part(NodeId /*output*/) const { return nullptr; }
  // An elementwise group that the kernel which stores a reduction's result computes of it, element by element, and stores
  // instead; or null.
  virtual GroupReader* end(NodeId /*reduction*/) const { return nullptr; }
  // A slot of temporary memory, for this group alone.
  virtual int scratch(std::uint64_t bytes) = 0;
};

// False if |operand| of |group| must be copied into dense memory first.
bool group_can_read(const Graph& graph, const Plan& plan, const Group& group, NodeId operand);
std::vector<Launch> emit_group(const KernelTarget& target, const Graph& graph, const Plan& plan, int group,
                               GroupPlacement& placement);

}  // namespace tenon::emit
