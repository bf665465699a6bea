#include "backends/ttnn/exact.h"

#include <algorithm>
#include <bit>
#include <map>

namespace tenon::ttnn {
namespace {

// Work-groups for the processors of the largest chip; a smaller one gives each of its processors several.
constexpr int kUnits = 256;

class SlotTable {
 public:
  explicit SlotTable(const KernelPlan& plan) {
    for (const auto& [types, kind] :
         {std::pair(&plan.input_types, ExactSlot::Kind::input), {&plan.output_types, ExactSlot::Kind::output}})
      for (std::size_t i = 0; i < types->size(); ++i)
        slots_.push_back({kind, static_cast<int>(i), 0, storage_bytes((*types)[i].dtype, (*types)[i].shape)});
    outputs_from_ = static_cast<int>(plan.input_types.size());
  }

  int place(const Location& where) {
    if (where.space == Location::Space::input) return where.index;
    if (where.space == Location::Space::output) return outputs_from_ + where.index;
    const auto [found, is_new] = known_.try_emplace({where.space, where.offset_bytes}, static_cast<int>(slots_.size()));
    if (is_new) slots_.push_back({kind_of(where.space), 0, where.offset_bytes, 0});
    ExactSlot& slot = slots_[static_cast<std::size_t>(found->second)];
    slot.bytes = std::max(slot.bytes, where.space == Location::Space::status ? kStatusBytes : where.bytes);
    return found->second;
  }
  int find_status() const {
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].kind == ExactSlot::Kind::status) return static_cast<int>(i);
    return -1;
  }
  std::vector<ExactSlot> take() { return std::move(slots_); }

 private:
  static ExactSlot::Kind kind_of(Location::Space space) {
    if (space == Location::Space::constants) return ExactSlot::Kind::constant;
    return space == Location::Space::status ? ExactSlot::Kind::status : ExactSlot::Kind::temporary;
  }

  std::vector<ExactSlot> slots_;
  std::map<std::pair<Location::Space, std::uint64_t>, int> known_;
  int outputs_from_ = 0;
};

ExactLaunch exact_launch(const KernelLaunch& launch, SlotTable& slots) {
  ExactLaunch exact{.kernel = launch.kernel};
  exact.words = {0, launch.groups[0], launch.groups[1], launch.groups[2], 0, 0};
  exact.groups = std::uint64_t{launch.groups[0]} * launch.groups[1] * launch.groups[2];
  const auto two_words = [&](std::uint64_t bits) {
    exact.words.push_back(static_cast<std::uint32_t>(bits));
    exact.words.push_back(static_cast<std::uint32_t>(bits >> 32));
  };
  for (const KernelArgument& argument : launch.arguments) {
    if (const auto* where = std::get_if<Location>(&argument)) {
      exact.buffers.push_back({static_cast<int>(exact.words.size()), slots.place(*where)});
      exact.words.push_back(0);
    } else if (const auto* small = std::get_if<std::int32_t>(&argument)) {
      exact.words.push_back(static_cast<std::uint32_t>(*small));
    } else if (const auto* real = std::get_if<float>(&argument)) {
      exact.words.push_back(std::bit_cast<std::uint32_t>(*real));
    } else if (const auto* large = std::get_if<std::int64_t>(&argument)) {
      two_words(static_cast<std::uint64_t>(*large));
    } else {
      two_words(std::bit_cast<std::uint64_t>(std::get<double>(argument)));
    }
  }
  exact.words[5] = static_cast<std::uint32_t>(exact.buffers.size());
  return exact;
}

}  // namespace

const KernelTarget& exact_target() {
  static const KernelTarget target = tensix_target(kUnits);
  return target;
}

ExactPlan plan_exact(const Graph& graph) {
  KernelPlan plan = plan_kernels(graph, exact_target());
  ExactPlan exact{.input_types = plan.input_types, .output_types = plan.output_types};
  SlotTable slots(plan);
  for (const PlanStep& step : plan.steps) exact.launches.push_back(exact_launch(std::get<KernelLaunch>(step), slots));
  exact.status_slot = slots.find_status();
  exact.slots = slots.take();
  for (const Kernel& kernel : plan.kernels) {
    const Kernel* const one = &kernel;
    exact.kernels.push_back({kernel.entry, module_text(exact_target(), std::span(&one, 1))});
  }
  exact.constants = std::move(plan.constants);
  return exact;
}

}  // namespace tenon::ttnn
