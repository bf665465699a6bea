// PlanSteps: the steps of a KernelPlan under construction.
//
// Until all steps are known, memory is identified by slots: numbers of buffers whose locations are decided at the end. The slots
// of the inputs come first, then those of the outputs. finish() lets temporaries with disjoint lifetimes share memory, and
// replaces slots by locations.
// Thread safety: none; belongs to one planner.
//
//   PlanSteps steps(input_types, output_types);
//   const int between = steps.temporary(DType::f32, shape);
//   steps.add(emit_copy(target, shape, from, dense_access(between, DType::f32, shape)));
//   KernelPlan plan = steps.finish();
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "codegen/c/loops/loop.h"
#include "hal/kernel_plan.h"
#include "tenon/array.h"

namespace tenon {

class PlanSteps {
 public:
  PlanSteps(std::vector<TensorType> input_types, std::vector<TensorType> output_types);

  // --- Slots ---
  int input_slot(std::size_t index) const { return static_cast<int>(index); }
  bool is_input(int slot) const { return slot < input_slot(plan_.input_types.size()); }
  int output_slot(std::size_t index) const { return static_cast<int>(plan_.input_types.size() + index); }
  int temporary(std::uint64_t bytes);
  int temporary(DType dtype, const Shape& shape);
  int constant(const HostArray& value);
  int status();  // sets has_status of the plan

  const std::vector<TensorType>& output_types() const { return plan_.output_types; }

  // --- Steps, in the order they run ---
  void add(emit::Launch launch);
  void add(std::vector<emit::Launch> launches);
  // A library step without locations. |slots|: a, b, result and, if there is one, the bias.
  void add(const MatMulStep& step, std::vector<int> slots);
  void add(const ConvStep& step, int x, int weight, int result);

  // Called once, after everything has been added.
  KernelPlan finish();

 private:
  struct SlotLaunch {
    int kernel = 0;
    std::array<std::uint32_t, 3> groups{};
    std::vector<emit::ArgumentValue> arguments;
  };
  struct LibraryStep {
    PlanStep step;
    std::vector<int> slots;  // of its locations, in the order of add()
  };
  using SlotStep = std::variant<SlotLaunch, LibraryStep>;

  int new_slot(Location location);
  int kernel_number(Kernel kernel);
  void place_temporaries();
  static std::vector<int> slots_of(const SlotStep& step);
  KernelLaunch located(const SlotLaunch& launch) const;
  PlanStep located(const LibraryStep& library) const;

  KernelPlan plan_;
  std::vector<Location> slots_;  // inputs, outputs, then the rest
  std::vector<SlotStep> steps_;
  std::map<std::string, int> kernel_numbers_;  // by entry
  int status_ = -1;
};

}  // namespace tenon
