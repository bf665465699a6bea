// The reference's results, each with how far a backend may be from it.
//
// Every node of the graph is evaluated by the reference interpreter, in double. Beside its value goes an error bound: the limit
// of the node's own primitive (limits.h) plus what the errors of its inputs make of it, found by evaluating the node again with
// its inputs moved to the ends of their bounds. So a composed op needs no tolerance of its own: softmax may be off by what
// exp, a sum and a division may be off together, at these very values, and a floor() may jump only where its input may cross an
// integer.
//
// Thread safety: pure function.
//
//   std::vector<Bounded> expected = bounded_run(graph, inputs);
#pragma once

#include <span>
#include <vector>

#include "tenon/array.h"
#include "tenon/graph.h"

namespace tenon::conformance {

// What is known of how a device computes.
struct Arithmetic {
  // Numbers below the smallest normal one may count as zero, as operands and as results. Such a device says so in its details.
  bool flushes_subnormals = false;
  // What a change of an input by so many ULP changes may be off in f64 functions that are not correctly rounded.
  double f64_input_ulps() const { return flushes_subnormals ? 2 : 1; }
};

struct Bounded {
  HostArray value;            // unrounded: f64 for every float dtype, otherwise the node's own
  std::vector<double> error;  // empty: exact. Infinite: nothing can be said (an intermediate result that f32 cannot hold)

  bool flushes_subnormals = false;

  double error_at(std::int64_t i) const { return error.empty() ? 0 : error[static_cast<std::size_t>(i)]; }
};

// The outputs of |graph|. Throws what reference_run throws.
std::vector<Bounded> bounded_run(const Graph& graph, std::span<const HostArray> inputs, Arithmetic arithmetic = {});

}  // namespace tenon::conformance
