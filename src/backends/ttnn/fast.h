// FastPlan: a graph as calls of TTNN functions (the fast tier).
//
// On the chip, floats of every type are float32 in tile layout: bfloat16 programs round where Tenon's rules say, not after every
// function. Integers are int32; a bool is 0 or 1. A graph that has something else in it has no fast plan.
//
// TTNN's functions are not Tenon's: those through the matrix unit have the precision of TF32, several treat NaN, -0 and overflow
// differently, and subnormals are zero (docs/tenstorrent.md has what was measured). Trust says what may be used.
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

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

struct FastPlan {
  std::vector<TensorType> input_types, output_types;
  std::vector<std::pair<int, std::string>> inputs, outputs;  // slot and form ("f32", "i32"); slot -1: not used
  std::vector<FastConstant> constants;
  std::vector<CallStep> steps;
  int slots = 0;
};

// nullopt if there is none; |why|, if given, then says what TTNN lacks or gets wrong.
std::optional<FastPlan> plan_fast(const Graph& graph, Trust trust, std::string* why = nullptr);

}  // namespace tenon::ttnn
