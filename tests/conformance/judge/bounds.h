// Reference results, each with the error bound for backends.
//
// Every node of the graph is evaluated by the reference interpreter in double. Each value carries an error bound: the limit of
// the node's own primitive (limits.h) plus the propagated errors of its inputs, found by evaluating the node again with its
// inputs moved to the ends of their bounds. A composed op therefore needs no tolerance of its own: the bound of softmax combines
// those of exp, a sum and a division at these values, and a floor() may jump only where its input may cross an integer.
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

// Known numerical properties of a device.
struct Arithmetic {
  // Subnormal numbers may count as zero, as operands and as results. Such a device declares it in its details.
  bool flushes_subnormals = false;
  // f64 functions that are not correctly rounded may be off by the effect of this many ULP of an input.
  double f64_input_ulps() const { return flushes_subnormals ? 2 : 1; }
};

struct Bounded {
  HostArray value;            // unrounded: f64 for every float dtype, otherwise the node's own
  std::vector<double> error;  // empty: exact. Infinite: nothing can be said (an intermediate result that f32 cannot hold)

  bool flushes_subnormals = false;

  double error_at(std::int64_t i) const { return error.empty() ? 0 : error[static_cast<std::size_t>(i)]; }
};

// The outputs of |graph|. Throws like reference_run.
std::vector<Bounded> bounded_run(const Graph& graph, std::span<const HostArray> inputs, Arithmetic arithmetic = {});

}  // namespace tenon::conformance
