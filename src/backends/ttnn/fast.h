// FastPlan: nodes of a lowered graph as calls of TTNN functions (the fast tier).
//
// On the chip a tensor has TTNN's tile layout and a form, the type of its elements: float32 and bfloat16 tensors have their own,
// int32 too, operands of products in block formats those of TTNN. A bool is 0 or 1 in the form of what was compared. What has
// no form has no fast plan.
//
// TTNN's functions are not Tenon's: those through the matrix unit have the precision of TF32, several treat NaN, -0 and overflow
// differently, and subnormals are zero (docs/tenstorrent.md has what was measured). Trust says what may be used; with
// Trust::limits further calls mend NaN and infinities, sums are means, and the largest of many is found pair by pair.
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backends/ttnn/lower.h"
#include "tenon/backend.h"
#include "tenon/graph.h"

namespace tenon::ttnn {

enum class Trust : std::uint8_t {
  limits,  // functions whose results were within Tenon's published limits when they were measured
  all,     // everything that TTNN has, whatever its precision
};

// An argument of a call. Slots are numbered in the plan.
struct TensorArgument {
  int slot = 0;
};
struct TensorsArgument {
  std::vector<int> slots;
};
struct AttributeArgument {
  std::string path;  // below the module: "float32"
};
struct PreciseArgument {};  // the compute configuration of the highest precision
struct DeviceArgument {};
using Integers = std::vector<std::int64_t>;
using IntegerPairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
using CallArgument = std::variant<TensorArgument, TensorsArgument, AttributeArgument, PreciseArgument, DeviceArgument, bool,
                                  std::int64_t, double, Integers, IntegerPairs>;

struct CallStep {
  std::string call;  // the function's name below the module ttnn
  std::vector<CallArgument> arguments;
  std::vector<std::pair<std::string, CallArgument>> named;
  int output = 0;         // the slot of the result
  std::vector<int> drop;  // slots that nobody needs after this step
};

struct FastConstant {
  int slot = 0;
  HostArray value;
  std::string form;
};
struct FastInput {
  int slot = 0;
  std::string form;  // "f32", "bf16", "i32", "bf8", "bf4"
  int input = 0;     // of the part
};

struct FastPlan {
  std::vector<FastInput> inputs;                     // one for each form in which an input is used
  std::vector<std::pair<int, std::string>> outputs;  // slot and form
  std::vector<FastConstant> constants;
  std::vector<CallStep> steps;
  int slots = 0;
};

struct FastRules {
  Trust trust = Trust::limits;
  bool has_32_bit = true;  // float32 and int32 on the compute cores
};

// Whether a whole op is one call.
bool takes_region(const Graph& graph, const Region& region, const FastRules& rules);
// What TTNN lacks or gets wrong; "" if the node has a fast plan. Inputs and constants have one wherever they are used.
std::string why_not_fast(const LoweredGraph& lowered, NodeId id, const FastRules& rules);
// Computes |outputs| from |inputs|: all nodes between them must have a fast plan.
FastPlan plan_fast_part(const LoweredGraph& lowered, std::span<const NodeId> inputs, std::span<const NodeId> outputs,
                        const FastRules& rules);

}  // namespace tenon::ttnn
