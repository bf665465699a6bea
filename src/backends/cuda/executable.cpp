#include "backends/cuda/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tenon/error.h"

namespace tenon::cuda {

namespace {

constexpr std::size_t kCapturedFrom = 4;  // fewer calls are as fast one by one
// Making a graph of many calls takes milliseconds, which must not be spent for buffers that soon change.
constexpr std::size_t kManyCalls = 512;
constexpr int kRunsBefore = 1, kRunsBeforeOfMany = 6;

}  // namespace

KernelTarget target_of(const Card& card) {
  KernelTarget target;
  target.dialect = Dialect::cuda;
  target.has_matrix_units = card.capability >= 80;
  target.has_warpgroup_products = card.capability == 90;
  target.compute_units = card.multiprocessors;
  target.max_group_size = card.max_threads;
  target.local_bytes = 48 * 1024;
  return target;
}

CudaExecutable::CudaExecutable(std::shared_ptr<Context> context, const Graph& graph, const ExecutableOptions& options)
    : context_(std::move(context)),
      captured_(*context_, context_->captured_graphs()) {
  make_plan(graph, options);
  try {
    place_memory();
    prepare_calls();
  } catch (...) {
    for (const Context::Memory& memory : memory_) context_->pool().give_back(memory.block);
    throw;
  }
}

CudaExecutable::~CudaExecutable() {
  for (const Context::Memory& memory : memory_) context_->pool().give_back(memory.block);
}

void CudaExecutable::make_plan(const Graph& graph, const ExecutableOptions& options) {
  const KernelTarget target = target_of(context_->card());
  PlanOptions choices;
  choices.fuse = options.fuse;
  choices.library_matmul = [&](const MatMulStep& step) {
    const double multiplications = static_cast<double>(step.batches) * static_cast<double>(step.m) * static_cast<double>(step.n) *
                                   static_cast<double>(step.k);
    if (multiplications < static_cast<double>(options.library_from)) return false;
    std::shared_ptr<Product> product = context_->products().find(step);
    if (product) products_.push_back(product);
    return product != nullptr;
  };
  plan_ = plan_kernels(graph, target, choices);
}

void CudaExecutable::place_memory() {
  const auto take = [&](std::uint64_t bytes) { return memory_.emplace_back(context_->allocate(bytes)).block.address; };
  memory_.reserve(3);
  if (plan_.workspace_bytes > 0) workspace_ = take(plan_.workspace_bytes);
  if (plan_.has_status) status_ = take(kStatusBytes);
  if (!plan_.constants.empty()) {
    constants_ = take(plan_.constants.size());
    context_->transfers().upload(constants_, plan_.constants.data(), plan_.constants.size());
  }
}

DevicePointer CudaExecutable::fixed_address(const Location& where) const {
  switch (where.space) {
    case Location::Space::workspace: return workspace_ + where.offset_bytes;
    case Location::Space::constants: return constants_ + where.offset_bytes;
    case Location::Space::status: return status_;
    case Location::Space::input: return inputs_[static_cast<std::size_t>(where.index)];
    case Location::Space::output: return outputs_[static_cast<std::size_t>(where.index)];
  }
  return 0;
}

DevicePointer CudaExecutable::address(const MatrixOperand& operand) const {
  return fixed_address(operand.where) + static_cast<std::uint64_t>(operand.offset) * element_bytes(operand.stored);
}

void CudaExecutable::prepare_calls() {
  const std::vector<RawFunction> functions = context_->modules().load(target_of(context_->card()), plan_.kernels);
  inputs_.resize(plan_.input_types.size());
  outputs_.resize(plan_.output_types.size());
  const bool can_begin_early = context_->card().capability >= 90 && context_->driver().launch_with;
  std::size_t next_product = 0;
  for (const PlanStep& step : plan_.steps) {
    if (const auto* launch = std::get_if<KernelLaunch>(&step)) {
      const auto kernel = static_cast<std::size_t>(launch->kernel);
      Launch prepared = prepare(*launch, functions[kernel], plan_.kernels[kernel]);
      prepared.begins_early = can_begin_early && !calls_.empty();
      calls_.emplace_back(prepared);
    } else if (const auto* product = std::get_if<MatMulStep>(&step)) {
      calls_.emplace_back(
          ProductCall{products_.at(next_product++), product->a, product->b, product->result, product->bias, product->has_bias});
    } else {
      throw Error(ErrorCode::internal, "a convolution was planned for a library that is not available");
    }
  }
  // The addresses are stable only now that all values have been added.
  pointers_.reserve(values_.size());
  for (std::uint64_t& value : values_) pointers_.push_back(&value);
  plan_.constants.clear();
  plan_.constants.shrink_to_fit();
}

CudaExecutable::Launch CudaExecutable::prepare(const KernelLaunch& launch, RawFunction function, const Kernel& kernel) {
  Launch prepared;
  prepared.function = function;
  prepared.groups = {launch.groups[0], launch.groups[1], launch.groups[2]};
  for (std::size_t i = 0; i < 3; ++i) prepared.group_size[i] = static_cast<unsigned>(kernel.group_size[i]);
  prepared.local_bytes = static_cast<unsigned>(kernel.dynamic_bytes);
  prepared.first = values_.size();
  for (const KernelArgument& argument : launch.arguments) {
    std::uint64_t& value = values_.emplace_back(0);
    std::visit(
        [&]<class T>(const T& given) {
          if constexpr (std::is_same_v<T, Location>) {
            const bool is_output = given.space == Location::Space::output;
            if (is_output || given.space == Location::Space::input)
              bound_.push_back({values_.size() - 1, is_output, static_cast<std::size_t>(given.index)});
            else
              value = fixed_address(given);
          } else {
            std::memcpy(&value, &given, sizeof(given));
          }
        },
        argument);
  }
  return prepared;
}

DeviceBuffer& CudaExecutable::ours(Buffer& buffer, const TensorType& type, const char* role, std::size_t index) const {
  auto* const mine = dynamic_cast<DeviceBuffer*>(&buffer);
  if (!mine || mine->context() != context_.get())
    throw Error(ErrorCode::failed_precondition,
                fmt::format("{} {}: its buffer belongs to another device than {}, or to an earlier "
                            "time this one was open",
                            role, index, context_->card().id));
  if (!(mine->type() == type))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} {} is {}{}, the program wants {}{}", role, index, name(mine->type().dtype),
                            to_string(mine->type().shape), name(type.dtype), to_string(type.shape)));
  return *mine;
}

void CudaExecutable::bind(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) {
  if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("the program has {} inputs and {} outputs, got {} and {}",
                                                         inputs_.size(), outputs_.size(), inputs.size(), outputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inputs_[i] = ours(const_cast<Buffer&>(*inputs[i]), plan_.input_types[i], "input", i).address();
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs_[i] = ours(*outputs[i], plan_.output_types[i], "output", i).address();
  for (const Bound& bound : bound_) values_[bound.value] = (bound.is_output ? outputs_ : inputs_)[bound.index];
}

void CudaExecutable::put_in_stream() {
  if (calls_.size() < kCapturedFrom) return put_calls(context_->stream());
  captured_.run(inputs_, outputs_, calls_.size() > kManyCalls ? kRunsBeforeOfMany : kRunsBefore,
                [this](RawStream stream) { put_calls(stream); });
}

void CudaExecutable::put_calls(RawStream stream) {
  const Driver& driver = context_->driver();
  if (plan_.has_status) context_->check(driver.fill_bytes(status_, 0, kStatusBytes, stream), "clearing the status");
  for (const Call& call : calls_) {
    if (const auto* launch = std::get_if<Launch>(&call)) {
      put(*launch, stream);
    } else {
      const auto& product = std::get<ProductCall>(call);
      context_->products().enqueue(
          *product.product,
          {address(product.a), address(product.b), address(product.result), product.has_bias ? address(product.bias) : 0},
          stream);
    }
  }
}

// A generated kernel waits for the one in front of it itself (STARTED, codegen/c/target.cpp), so that it may be brought to the
// multiprocessors while that one still runs.
void CudaExecutable::put(const Launch& launch, RawStream stream) {
  const Driver& driver = context_->driver();
  const auto& groups = launch.groups;
  const auto& size = launch.group_size;
  void** const arguments = pointers_.data() + launch.first;
  if (!launch.begins_early)
    return context_->check(driver.launch(launch.function, groups[0], groups[1], groups[2], size[0], size[1], size[2],
                                         launch.local_bytes, stream, arguments, nullptr),
                           "launching a kernel");
  LaunchAttribute early{kMayBeginEarly, 0, {1}};
  const LaunchShape shape{{groups[0], groups[1], groups[2]}, {size[0], size[1], size[2]}, launch.local_bytes, stream, &early, 1};
  context_->check(driver.launch_with(&shape, launch.function, arguments, nullptr), "launching a kernel");
}

void CudaExecutable::enqueue(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) {
  context_->enter();
  const std::lock_guard queue(context_->queue());
  bind(inputs, outputs);
  for (Buffer* output : outputs) static_cast<DeviceBuffer*>(output)->set_copy(nullptr, results_are_read_);
  put_in_stream();
}

void CudaExecutable::run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) {
  context_->enter();
  Transfers& transfers = context_->transfers();
  struct Slot {
    Transfers& of;
    void* memory = nullptr;
    ~Slot() {
      if (memory) of.give_back_slot(memory);
    }
  } status{transfers};
  alignas(8) std::int64_t words[kStatusBytes / sizeof(std::int64_t)]{};
  if (plan_.has_status) status.memory = transfers.take_slot();
  {
    const std::lock_guard queue(context_->queue());
    bind(inputs, outputs);
    put_in_stream();
    if (plan_.has_status)
      context_->check(
          context_->driver().copy_to_host(status.memory ? status.memory : words, status_, kStatusBytes, context_->stream()),
          "reading the status");
    // Small results that were read after the last run are likely to be read after this one, so they are copied with the run,
    // which saves the reader a separate transfer.
    const bool send_along = results_are_read_->exchange(false, std::memory_order_relaxed);
    for (Buffer* output : outputs) {
      auto& buffer = static_cast<DeviceBuffer&>(*output);
      buffer.set_copy(nullptr, results_are_read_);
      const std::size_t bytes = storage_bytes(buffer.type().dtype, buffer.type().shape);
      if (!send_along || bytes == 0 || bytes > Transfers::kSmallBytes) continue;
      void* const slot = transfers.take_slot();
      if (!slot) continue;
      buffer.set_copy(slot, results_are_read_);
      context_->check(context_->driver().copy_to_host(slot, buffer.address(), bytes, context_->stream()), "a download");
    }
  }
  context_->wait();
  if (!plan_.has_status) return;
  if (status.memory) std::memcpy(words, status.memory, kStatusBytes);
  throw_status(words);
}

}  // namespace tenon::cuda
