#include "backends/opencl/executable.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/threads/stop_scope.h"
#include "tenon/error.h"

namespace tenon::opencl {
namespace {

void check_type(const char* what, std::size_t i, const TensorType& got, const TensorType& wanted) {
  if (got == wanted) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} {} is {}{}, the program has {}{}", what, i, name(got.dtype),
                                                       to_string(got.shape), name(wanted.dtype), to_string(wanted.shape)));
}

}  // namespace

Memory allocate(Context& context, std::uint64_t bytes) {
  Int status = kSuccess;
  const MemoryId id = api().clCreateBuffer(context.get(), kReadWrite, std::max<std::uint64_t>(bytes, 1), nullptr, &status);
  context.check(status, fmt::format("allocating {} bytes", bytes));
  return Memory(id);
}

// --- Buffers ---

OpenClBuffer::OpenClBuffer(TensorType type, std::shared_ptr<Context> context, MemoryBudget::Share share)
    : Buffer(std::move(type)),
      context_(std::move(context)),
      is_host_(context_->hardware().is_cpu),
      share_(std::move(share)) {
  if (is_host_)
    bind(HostArray::empty(this->type().dtype, this->type().shape));
  else
    memory_ = allocate(*context_, storage_bytes(this->type().dtype, this->type().shape));
}

OpenClBuffer::OpenClBuffer(std::shared_ptr<Context> context, const HostArray& array)
    : Buffer({array.dtype(), array.shape()}),
      context_(std::move(context)),
      is_host_(true),
      shared_(true) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(array.data()) % kHostAlignment == 0;
  bind(aligned ? array : HostArray::from_bytes(array.dtype(), array.shape(), {array.data(), array.bytes()}));
}

void OpenClBuffer::bind(HostArray array) {
  array_ = std::move(array);
  if (array_.bytes() == 0) {
    memory_ = allocate(*context_, 1);
    return;
  }
  Int status = kSuccess;
  memory_ = Memory(api().clCreateBuffer(context_->get(), kReadWrite | kUseHostPointer, array_.bytes(),
                                        const_cast<std::byte*>(array_.data()), &status));
  context_->check(status, fmt::format("using {} bytes of host memory", array_.bytes()));
}

MemoryId OpenClBuffer::fresh() {
  if (shared_.load(std::memory_order_relaxed)) {
    bind(HostArray::empty(type().dtype, type().shape));
    shared_.store(false, std::memory_order_relaxed);
  }
  return memory_.get();
}

HostArray OpenClBuffer::share() const {
  shared_.store(true, std::memory_order_relaxed);
  return array_;
}

// --- Programs ---

OpenclExecutable::OpenclExecutable(std::shared_ptr<Context> context, KernelPlan plan, const std::shared_ptr<MemoryBudget>& budget)
    : context_(std::move(context)),
      plan_(std::move(plan)) {
  if (budget) share_ = budget->reserve(plan_.workspace_bytes + plan_.constants.size());
  modules_ = context_->modules(plan_.kernels);
  if (plan_.has_status) status_ = allocate(*context_, kStatusBytes);
  allocate_pieces();
  commands_.reserve(plan_.steps.size());
  for (const PlanStep& step : plan_.steps) {
    const auto& launch = std::get<KernelLaunch>(step);
    add_command(launch, *modules_[static_cast<std::size_t>(launch.kernel)]);
  }
  plan_.constants = {};
}

void OpenclExecutable::allocate_pieces() {
  std::map<std::uint64_t, std::uint64_t> sizes;
  for (const PlanStep& step : plan_.steps)
    for (const KernelArgument& argument : std::get<KernelLaunch>(step).arguments) {
      const auto* location = std::get_if<Location>(&argument);
      if (!location) continue;
      if (location->space == Location::Space::workspace)
        sizes[location->offset_bytes] = std::max(sizes[location->offset_bytes], location->bytes);
      if (location->space != Location::Space::constants || constants_.count(location->offset_bytes)) continue;
      Memory& piece = constants_[location->offset_bytes] = allocate(*context_, location->bytes);
      const std::lock_guard lock(context_->mutex());
      context_->check(api().clEnqueueWriteBuffer(context_->queue(), piece.get(), 1, 0, location->bytes,
                                                 plan_.constants.data() + location->offset_bytes, 0, nullptr, nullptr),
                      "uploading constants");
    }
  for (const auto& [offset, bytes] : sizes) workspace_[offset] = allocate(*context_, bytes);
}

void OpenclExecutable::add_command(const KernelLaunch& launch, const Module& module) {
  const Kernel& kernel = plan_.kernels[static_cast<std::size_t>(launch.kernel)];
  Command& command = commands_.emplace_back();
  for (std::size_t d = 0; d < 3; ++d) {
    command.local[d] = static_cast<std::size_t>(kernel.group_size[d]);
    command.global[d] = launch.groups[d] * command.local[d];
  }
  Int status = kSuccess;
  command.kernel.reset(api().clCreateKernel(module.get(), kernel.entry.c_str(), &status));
  context_->check(status, "creating a kernel");
  set_arguments(command, launch);
}

void OpenclExecutable::set_arguments(Command& command, const KernelLaunch& launch) {
  Uint position = 0;
  const auto set = [&](std::size_t size, const void* value) {
    context_->check(api().clSetKernelArg(command.kernel.get(), position, size, value), "passing an argument");
  };
  for (const KernelArgument& argument : launch.arguments) {
    std::visit(
        [&]<class T>(const T& value) {
          if constexpr (!std::is_same_v<T, Location>) {
            set(sizeof value, &value);
          } else if (value.space == Location::Space::input || value.space == Location::Space::output) {
            command.bindings.push_back({position, value.space, static_cast<std::size_t>(value.index)});
          } else {
            const MemoryId memory = value.space == Location::Space::status      ? status_.get()
                                    : value.space == Location::Space::constants ? constants_.at(value.offset_bytes).get()
                                                                                : workspace_.at(value.offset_bytes).get();
            set(sizeof memory, &memory);
          }
        },
        argument);
    ++position;
  }
}

void OpenclExecutable::start(const Command& command) {
  const KernelId kernel = command.kernel.get();
  for (const Binding& binding : command.bindings) {
    const MemoryId& memory = (binding.space == Location::Space::output ? outputs_ : inputs_)[binding.index];
    context_->check(api().clSetKernelArg(kernel, binding.position, sizeof memory, &memory), "passing a tensor");
  }
  context_->check(api().clEnqueueNDRangeKernel(context_->queue(), kernel, 3, nullptr, command.global.data(), command.local.data(),
                                               0, nullptr, nullptr),
                  "starting a kernel");
}

// What is in the queue cannot be taken back, so a run that may be stopped puts in only some commands at a time.
void OpenclExecutable::start_all(QueueId queue) {
  constexpr std::size_t kAtOnce = 16;
  const StopScope* const stop = StopScope::current();
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    if (stop && i > 0 && i % kAtOnce == 0) {
      context_->check(api().clFinish(queue), "computing");
      stop->check();
    }
    start(commands_[i]);
  }
}

void OpenclExecutable::run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) {
  if (inputs.size() != plan_.input_types.size() || outputs.size() != plan_.output_types.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the program has {} inputs and {} outputs, got {} and {}", plan_.input_types.size(),
                            plan_.output_types.size(), inputs.size(), outputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) check_type("input", i, inputs[i]->type(), plan_.input_types[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i) check_type("output", i, outputs[i]->type(), plan_.output_types[i]);

  const std::lock_guard one_run(running_);
  const std::lock_guard lock(context_->mutex());
  const QueueId queue = context_->queue();
  if (!queue) throw Error(ErrorCode::failed_precondition, fmt::format("{} is closed", context_->hardware().name));
  if (plan_.has_status) {
    const std::int64_t zero[kStatusBytes / 8] = {};
    context_->check(api().clEnqueueWriteBuffer(queue, status_.get(), 1, 0, sizeof zero, zero, 0, nullptr, nullptr),
                    "clearing the status");
  }
  outputs_.clear();
  for (Buffer* output : outputs) outputs_.push_back(static_cast<OpenClBuffer*>(output)->fresh());
  inputs_.clear();
  for (const Buffer* input : inputs) inputs_.push_back(static_cast<const OpenClBuffer*>(input)->get());
  start_all(queue);
  context_->check(api().clFinish(queue), "computing");
  if (plan_.has_status) read_status();
}

void OpenclExecutable::read_status() {
  std::int64_t words[kStatusBytes / 8] = {};
  context_->check(api().clEnqueueReadBuffer(context_->queue(), status_.get(), 1, 0, sizeof words, words, 0, nullptr, nullptr),
                  "reading the status");
  throw_status(words);
}

}  // namespace tenon::opencl
