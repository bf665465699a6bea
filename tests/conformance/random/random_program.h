// RandomProgram: a program of a dozen ops of all kinds that nobody wrote, with its inputs.
//
// Ops alone are what the conformance cases have; what a backend makes of several (fused groups, products with what is around
// them, values that are read in place) is found by programs. The same seed gives the same program. Thread safety: none.
//
//   const RandomProgram program(seed, DType::f32);
//   const std::vector<Bounded> expected = bounded_run(program.graph(), program.inputs());
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/judge/compare.h"
#include "tenon/array.h"
#include "tenon/backend.h"
#include "tenon/graph.h"
#include "tenon/ops.h"

namespace tenon::conformance {

class RandomProgram {
 public:
  // |dtype|: of its inputs that are not indices.
  RandomProgram(std::uint32_t seed, DType dtype);

  const Graph& graph() const { return graph_; }
  std::span<const HostArray> inputs() const { return inputs_; }
  // Its ops in order, for messages.
  const std::string& text() const { return text_; }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  template <std::size_t N>
  const char* one_of(const char* const (&names)[N]) {
    return names[below(static_cast<int>(N))];
  }
  NodeId any();
  NodeId any_exact();
  const Shape& shape_of(NodeId id) const { return graph_[id].shape; }
  std::int64_t extent();

  NodeId add_input(const Shape& shape);
  NodeId add_indices(const Shape& shape, std::int64_t limit);
  void add_step();
  void add_elementwise();
  void add_reduction();
  void add_product();
  void add_norm();
  void add_view();
  void add_movement();
  void add_lookup();
  void add_choice();
  void add_cast();
  void add_image();
  void add_attention();

  void push(const char* op, const std::vector<NodeId>& operands, const std::vector<NamedValue>& parameters = {},
            bool is_exact = false);
  void keep(NodeId value, std::string_view name, bool is_exact);

  std::mt19937 random_;
  const DType dtype_;
  Graph graph_;
  std::vector<HostArray> inputs_;
  std::vector<NodeId> values_, exact_;  // exact: what has no rounding error may be compared and sorted
  std::string text_;
};

// |count| seeds, or as many as TENON_RANDOM_PROGRAMS says, from 1 or TENON_RANDOM_SEED on.
std::vector<std::uint32_t> random_seeds(int count);

// Runs it on |device|, twice: the second run finds used memory and packed weights.
std::vector<HostArray> run_twice(OpenDevice& device, const RandomProgram& program);

// What is wrong with |results|; "" if nothing is. Bounds of long chains are estimates: twice the bound is allowed.
std::string what_differs(std::span<const HostArray> results, std::span<const Bounded> expected);

}  // namespace tenon::conformance
