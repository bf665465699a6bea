#include "backends/cpu/executable.h"

#include <fmt/format.h>

#include "array/host_memory.h"
#include "base/threads/stop_scope.h"
#include "tenon/error.h"

namespace tenon::cpu {

std::byte* CpuBuffer::fresh_data() {
  packed_.clear();
  if (shared_.load(std::memory_order_relaxed)) {
    array_ = HostArray::empty(type().dtype, type().shape);
    shared_.store(false, std::memory_order_relaxed);
  }
  // This buffer is the only owner: no copy is made.
  return array_.mutable_data();
}

HostArray CpuBuffer::share() const {
  shared_.store(true, std::memory_order_relaxed);
  return array_;
}

std::unique_ptr<CpuExecutable::Workspace> CpuExecutable::make_workspace() const {
  auto workspace = std::make_unique<Workspace>();
  workspace->memory = host_memory::allocate_shared(std::max<std::size_t>(workspace_bytes_, 1));
  std::byte* base = static_cast<std::byte*>(workspace->memory.get());
  workspace->locations.assign(input_types_.size() + output_types_.size(), nullptr);
  for (const Fixed& fixed : fixed_locations_)
    workspace->locations.push_back(fixed.constant ? const_cast<std::byte*>(fixed.constant) : base + fixed.offset);
  workspace->scratch = base + scratch_offset_;
  return workspace;
}

CpuExecutable::~CpuExecutable() { delete spare_.load(); }

void CpuExecutable::run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) {
  if (inputs.size() != input_types_.size() || outputs.size() != output_types_.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the program has {} inputs and {} outputs, got {} and {}", input_types_.size(), output_types_.size(),
                            inputs.size(), outputs.size()));
  std::unique_ptr<Workspace> workspace(spare_.exchange(nullptr, std::memory_order_acquire));
  if (!workspace) workspace = make_workspace();

  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!(inputs[i]->type() == input_types_[i]))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("input {} is {}{}, but the program expects {}{}", i, name(inputs[i]->type().dtype),
                              to_string(inputs[i]->type().shape), name(input_types_[i].dtype), to_string(input_types_[i].shape)));
    workspace->locations[i] = const_cast<std::byte*>(static_cast<const CpuBuffer*>(inputs[i])->data());
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!(outputs[i]->type() == output_types_[i]))
      throw Error(ErrorCode::invalid_argument, fmt::format("output {} is {}{}, but the program produces {}{}", i,
                                                           name(outputs[i]->type().dtype), to_string(outputs[i]->type().shape),
                                                           name(output_types_[i].dtype), to_string(output_types_[i].shape)));
    workspace->locations[inputs.size() + i] = static_cast<CpuBuffer*>(outputs[i])->fresh_data();
  }

  const StepContext context{pool_, workspace->locations.data(), workspace->scratch, inputs};
  const StopScope* const stop = StopScope::current();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (stop && i > 0) stop->check();
    steps_[i]->run(context);
  }

  Workspace* none = nullptr;
  if (spare_.compare_exchange_strong(none, workspace.get(), std::memory_order_release)) workspace.release();
}

}  // namespace tenon::cpu
