#include "hal/kernel_plan/steps.h"

#include <algorithm>

#include "hal/temporary_plan.h"

namespace tenon {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

PlanSteps::PlanSteps(std::vector<TensorType> input_types, std::vector<TensorType> output_types) {
  plan_.input_types = std::move(input_types);
  plan_.output_types = std::move(output_types);
  const auto place = [&](const std::vector<TensorType>& types, Location::Space space) {
    for (std::size_t i = 0; i < types.size(); ++i)
      new_slot({space, static_cast<int>(i), 0, storage_bytes(types[i].dtype, types[i].shape)});
  };
  place(plan_.input_types, Location::Space::input);
  place(plan_.output_types, Location::Space::output);
}

int PlanSteps::new_slot(Location location) {
  slots_.push_back(location);
  return static_cast<int>(slots_.size()) - 1;
}

int PlanSteps::temporary(std::uint64_t bytes) {
  return new_slot({Location::Space::workspace, 0, 0, std::max<std::uint64_t>(bytes, 1)});
}

int PlanSteps::temporary(DType dtype, const Shape& shape) { return temporary(storage_bytes(dtype, shape)); }

int PlanSteps::constant(const HostArray& value) {
  std::vector<std::byte>& all = plan_.constants;
  const std::uint64_t offset = (all.size() + kLocationAlignment - 1) / kLocationAlignment * kLocationAlignment;
  const std::uint64_t bytes = std::max<std::uint64_t>(value.bytes(), 1);
  all.resize(offset + bytes);
  std::copy_n(value.data(), value.bytes(), all.begin() + static_cast<std::ptrdiff_t>(offset));
  return new_slot({Location::Space::constants, 0, offset, bytes});
}

int PlanSteps::status() {
  if (status_ < 0) status_ = new_slot({Location::Space::status, 0, 0, kStatusBytes});
  plan_.has_status = true;
  return status_;
}

int PlanSteps::kernel_number(Kernel kernel) {
  const auto [known, is_new] = kernel_numbers_.try_emplace(kernel.entry, static_cast<int>(plan_.kernels.size()));
  if (is_new) plan_.kernels.push_back(std::move(kernel));
  return known->second;
}

void PlanSteps::add(emit::Launch launch) {
  steps_.emplace_back(SlotLaunch{kernel_number(std::move(launch.kernel)), launch.groups, std::move(launch.arguments)});
}

void PlanSteps::add(std::vector<emit::Launch> launches) {
  for (emit::Launch& launch : launches) add(std::move(launch));
}

void PlanSteps::add(const MatMulStep& step, std::vector<int> slots) { steps_.emplace_back(LibraryStep{step, std::move(slots)}); }

void PlanSteps::add(const ConvStep& step, int x, int weight, int result) {
  steps_.emplace_back(LibraryStep{step, {x, weight, result}});
}

KernelPlan PlanSteps::finish() {
  place_temporaries();
  for (const SlotStep& step : steps_) {
    if (const auto* launch = std::get_if<SlotLaunch>(&step))
      plan_.steps.emplace_back(located(*launch));
    else
      plan_.steps.push_back(located(std::get<LibraryStep>(step)));
  }
  return std::move(plan_);
}

void PlanSteps::place_temporaries() {
  TemporaryPlan temporaries(kLocationAlignment);
  std::vector<bool> seen(slots_.size(), false);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const int step = static_cast<int>(i);
    for (const int slot : slots_of(steps_[i])) {
      if (slots_[at(slot)].space != Location::Space::workspace) continue;
      if (!seen[at(slot)]) temporaries.add(slot, slots_[at(slot)].bytes, step);
      seen[at(slot)] = true;
      temporaries.touch(slot, step);
    }
  }
  plan_.workspace_bytes = temporaries.place([&](int slot, std::size_t offset) { slots_[at(slot)].offset_bytes = offset; });
}

std::vector<int> PlanSteps::slots_of(const SlotStep& step) {
  if (const auto* library = std::get_if<LibraryStep>(&step)) return library->slots;
  std::vector<int> slots;
  for (const emit::ArgumentValue& value : std::get<SlotLaunch>(step).arguments)
    if (const auto* slot = std::get_if<emit::Slot>(&value)) slots.push_back(slot->index);
  return slots;
}

KernelLaunch PlanSteps::located(const SlotLaunch& launch) const {
  KernelLaunch result{launch.kernel, launch.groups, {}};
  for (const emit::ArgumentValue& value : launch.arguments)
    result.arguments.push_back(std::visit(
        [&]<class T>(const T& v) -> KernelArgument {
          if constexpr (std::is_same_v<T, emit::Slot>)
            return slots_[at(v.index)];
          else
            return v;
        },
        value));
  return result;
}

PlanStep PlanSteps::located(const LibraryStep& library) const {
  PlanStep step = library.step;
  if (auto* product = std::get_if<MatMulStep>(&step)) {
    product->a.where = slots_[at(library.slots[0])];
    product->b.where = slots_[at(library.slots[1])];
    product->result.where = slots_[at(library.slots[2])];
    if (product->has_bias) product->bias.where = slots_[at(library.slots[3])];
  } else if (auto* conv = std::get_if<ConvStep>(&step)) {
    conv->x = slots_[at(library.slots[0])];
    conv->weight = slots_[at(library.slots[1])];
    conv->result = slots_[at(library.slots[2])];
  }
  return step;
}

}  // namespace tenon
