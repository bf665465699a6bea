// ExecutableCompiler: turns a graph into the steps of a CpuExecutable.
//
// Simplified and fused, the graph is a list of groups and single primitives; each becomes a step, and values get places in the
// workspace (compiler.cpp). Steps of single primitives are in primitive_steps.cpp, those of products, convolutions and attention
// in product_steps.cpp. Used once, by the constructor of CpuExecutable; thread safety: one thread.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cpu/executable.h"
#include "backends/cpu/primitives/primitives.h"
#include "backends/cpu/products/absorb_epilogues.h"
#include "backends/cpu/products/convolution/block_channels.h"
#include "backends/cpu/products/epilogue.h"
#include "hal/temporary_plan.h"

namespace tenon::cpu {

// A value by location, which a step uses to find it when it runs.
struct Operand {
  int location = -1;
  std::size_t offset_bytes = 0;
  View view;  // without its data

  View bind(const StepContext& context) const {
    View bound = view;
    bound.data = context.locations[location] + offset_bytes;
    return bound;
  }
};

struct Result {
  int location = -1;
  DType dtype = DType::f32;
  Shape shape;

  Target bind(const StepContext& context) const { return dense_target(context.locations[location], dtype, shape); }
};

// Converts |n| elements on the threads of |pool|.
void convert_dense(ThreadPool& pool, DType from, const std::byte* in, DType to, std::byte* out, std::int64_t n);

class ExecutableCompiler final : public ValuePlacement {
 public:
  // |program| is empty; run() fills it.
  ExecutableCompiler(CpuExecutable& program, const Graph& graph, const FusionLimits& limits);

  void run();

  Place source(NodeId base) const override { return sources_.at(base); }
  std::vector<Place> targets(NodeId output) const override;

 private:
  template <class Call>
  class CallStep final : public ExecutableStep {
   public:
    explicit CallStep(Call call) : call_(std::move(call)) {}
    void run(const StepContext& context) const override { call_(context); }

   private:
    Call call_;
  };

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  int output_location(int index) const { return static_cast<int>(inputs_) + index; }
  NodeId base_of(NodeId id) const { return plan_.views[at(id)].base; }

  // --- Memory ---

  int new_location(CpuExecutable::Fixed fixed);
  int current_step() const { return static_cast<int>(program_.steps_.size()); }
  int new_temporary(DType dtype, const Shape& shape);
  // The step about to be added reads or writes |location|.
  void touch(int location) { temporaries_.touch(location, current_step()); }
  void reserve_scratch(std::size_t bytes) { scratch_bytes_ = std::max(scratch_bytes_, bytes); }
  void plan_workspace();

  // --- Values ---

  void count_readers();
  // 16-bit values that ops only move stay as they are; others are computed in f32.
  void find_moved();
  // A rounding that a loop stores, or a product that is rounded when it is complete: in 16 bits from then on.
  bool is_stored_rounded(NodeId id) const;
  void place_leaves();
  void decode_input(NodeId id);
  // Computed values, and those that only have another shape.
  bool is_written_directly(NodeId output) const;
  // Results that are computed in the output's own dtype, and not read in another dtype, are written directly to the output.
  void place_outputs();
  // A loop converts while it stores; primitives write their compute type, or move values as they are.
  bool is_stored_as_declared(NodeId id) const;
  // Memory for a computed value that is read inside the program.
  void place_value(NodeId id);
  Operand operand_of(const ValueView& view, const Place& place);
  // The value of |id| in its compute type, addressed in any way.
  Operand value(NodeId id);
  // The value of |id| in its compute type, in dense memory.
  Operand dense_value(NodeId id);
  // As it is stored: a loop converts while it reads.
  Operand stored_value(NodeId id) { return operand_of(plan_.views[at(id)], sources_.at(base_of(id))); }
  // As it is stored, in dense memory.
  Operand stored_dense(NodeId id);
  // What an op |id| that only moves elements reads: as it is stored where the result is, else in the compute type.
  Operand source_of(NodeId id, NodeId operand);
  Operand dense_source_of(NodeId id, NodeId operand);
  // Copies the value; later readers of |id| use the copy.
  Operand copied(NodeId id, const Operand& operand);
  // The same for a broadcast value, which is repeated along |axes| only.
  void expand(NodeId id, AxisSet axes);
  Result result_of(NodeId id);
  // In its own dtype, 16 bits: only if nobody reads more of it.
  std::optional<Result> narrow_result_of(NodeId id);

  // --- Steps ---

  template <class Call>
  void add_step(Call call) {
    program_.steps_.push_back(std::make_unique<CallStep<Call>>(std::move(call)));
  }
  void add_group(int index);
  void add_primitive(NodeId id);
  void add_region(NodeId id);
  // A primitive writes one place, in the compute type; further outputs of the graph get copies.
  void deliver_converted(NodeId id);
  // Outputs that are inputs, constants, views of something, or in a block format.
  void finish_outputs();

  // --- Single primitives (primitive_steps.cpp) ---

  template <class Call>
  void add_unary(NodeId id, Call call) {
    const Operand x = dense_value(graph_[id].inputs[0]);
    const Result out = result_of(id);
    touch(x.location);
    add_step([=](const StepContext& c) { call(c, x.bind(c), out.bind(c)); });
  }
  template <class Call>
  void add_binary(NodeId id, Call call) {
    const Operand x = dense_source_of(id, graph_[id].inputs[0]), y = dense_value(graph_[id].inputs[1]);
    const Result out = result_of(id);
    touch(x.location);
    touch(y.location);
    add_step([=](const StepContext& c) { call(c, x.bind(c), y.bind(c), out.bind(c)); });
  }
  // A product that others read in its own dtype, 16 bits.
  void round_value(NodeId id);
  void add_copy(NodeId id);
  // Rounds to the values a block format can hold.
  void add_block_cast(NodeId id);
  void add_pad(NodeId id);
  // Concatenations that only another one reads, as a whole and perhaps parts of it (borders that are reflected), are written
  // where that one has them, and not by steps of their own.
  void find_joined();
  static std::optional<ValueView> placed_view(const ValueView& view, const Shape& shape, const Strides& strides);
  // Elements that a concatenation puts at |place| of its result: from elsewhere, or from another place in the result.
  struct Move {
    std::optional<Operand> source;
    ValueView inside;
    Shape shape;
    std::int64_t place = 0;
  };
  void collect_moves(NodeId root, NodeId id, std::int64_t offset, std::vector<Move>& moves);
  void add_concat(NodeId id);
  void add_plain_concat(NodeId id);
  void add_scatter(NodeId id);
  void add_arg_sort(NodeId id);
  void add_selection(NodeId id);
  void add_adaptive_pool(NodeId id);

  // --- Products, convolutions and attention (product_steps.cpp) ---
  //
  // Weights are inputs of the program; they are packed once for all runs.

  // What follows a product, with its operands.
  struct BoundEpilogue {
    Epilogue epilogue;
    std::vector<Operand> operands;
    std::int64_t channels = 1, cols = 1;

    void touch_all(ExecutableCompiler& compiler) const {
      for (const Operand& operand : operands) compiler.touch(operand.location);
    }
    // Calls |body| with the epilogue and the addresses of its operands.
    template <class Body>
    void with(const StepContext& c, Body body) const {
      std::array<const float*, 12> addresses{};  // as many as a chain is long
      for (std::size_t i = 0; i < operands.size(); ++i) addresses[i] = static_cast<const float*>(operands[i].bind(c).data);
      body(Finish{&epilogue, addresses.data(), channels, cols});
    }
    // Computes it over the finished result |out|.
    void run_alone(const StepContext& c, const Result& out) const;
  };

  BoundEpilogue epilogue_of(NodeId id);
  // The number of the input that |id| is a view of, if it is stored as f32; else -1.
  int weight_input(NodeId id) const;
  Operand matrix(NodeId id);
  // As it is stored, with a last axis of unit stride.
  Operand rows_of(NodeId id);
  void add_matmul(NodeId id);
  // 16-bit operands, as they are stored.
  bool add_matmul16(NodeId id);
  bool add_weight_matmul(NodeId id);
  // 8-bit operands as they are stored. Weights are packed once, other right operands in every run.
  void add_integer_matmul(NodeId id);
  void add_quantized_matmul(NodeId id);
  void add_attention(NodeId id);
  void add_conv(NodeId id);
  // 16-bit operands, as they are stored.
  bool add_conv16(NodeId id);
  void add_blocked_conv(NodeId id, const BlockedConv& conv);
  void add_conv_transpose(NodeId id);
  // Nodes are checked and packed once.
  void add_forest(NodeId id);

  CpuExecutable& program_;
  const BlockedGraph blocked_;
  const FusedGraph& fused_;
  const Graph& graph_;
  Plan plan_;
  const std::size_t inputs_, outputs_;
  std::map<NodeId, int> readers_;       // how often a base is read inside the program
  std::map<NodeId, Place> sources_;     // where a base's memory is
  std::vector<bool> moved_;             // by node: 16-bit values that were only moved since they were given
  std::vector<ValueView> moved_views_;  // plan_.views before copies were made
  std::map<NodeId, Place> narrow_;      // where a moved or rounded base is in 16 bits; sources_ may have a converted copy
  std::map<NodeId, std::vector<int>> direct_outputs_;  // computed node -> outputs it is
  std::vector<bool> written_directly_;                 // by output
  std::map<NodeId, NodeId> joined_;                    // concatenation -> the one it is part of
  TemporaryPlan temporaries_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace tenon::cpu
