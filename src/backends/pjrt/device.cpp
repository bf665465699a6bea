#include "backends/pjrt/device.h"

#include <fmt/format.h>

#include <cstdlib>
#include <functional>

#include "backends/pjrt/client.h"
#include "codegen/stablehlo/emit.h"
#include "tenon/error.h"

namespace tenon::pjrt {
namespace {

// Block formats are f32 on the device.
DType device_dtype(DType dtype) { return is_block(dtype) ? DType::f32 : dtype; }

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::boolean: return ElementType::pred;
    case DType::u8: return ElementType::u8;
    case DType::u16: return ElementType::u16;
    case DType::u32: return ElementType::u32;
    case DType::u64: return ElementType::u64;
    case DType::i8: return ElementType::s8;
    case DType::i16: return ElementType::s16;
    case DType::i32: return ElementType::s32;
    case DType::i64: return ElementType::s64;
    case DType::f16: return ElementType::f16;
    case DType::bf16: return ElementType::bf16;
    case DType::f64: return ElementType::f64;
    default: return ElementType::f32;
  }
}

class PjrtBuffer final : public Buffer {
 public:
  PjrtBuffer(TensorType type, BufferHandle handle, MemoryBudget::Share share)
      : Buffer(std::move(type)),
        handle_(std::move(handle)),
        share_(std::move(share)) {}

  // Null until something has been written.
  RawBuffer* raw() const { return handle_.get(); }
  void replace(BufferHandle handle) { handle_ = std::move(handle); }

 private:
  BufferHandle handle_;
  MemoryBudget::Share share_;
};

class PjrtExecutable final : public Executable {
 public:
  PjrtExecutable(const Graph& graph, std::unique_ptr<ExecutableHandle> handle, bool checks_indices,
                 std::function<BufferHandle(const TensorType&)> zeros)
      : handle_(std::move(handle)),
        checks_indices_(checks_indices),
        zeros_(std::move(zeros)) {
    for (const NodeId id : graph.inputs()) input_types_.push_back({graph[id].dtype, graph[id].shape});
    for (const NodeId id : graph.outputs()) output_types_.push_back({graph[id].dtype, graph[id].shape});
  }

  std::span<const TensorType> input_types() const noexcept override { return input_types_; }
  std::span<const TensorType> output_types() const noexcept override { return output_types_; }

  using Executable::run;
  void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override {
    if (inputs.size() != input_types_.size() || outputs.size() != output_types_.size())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the program has {} inputs and {} outputs, got {} and {}", input_types_.size(),
                              output_types_.size(), inputs.size(), outputs.size()));
    std::vector<RawBuffer*> raw;
    std::vector<BufferHandle> blank;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      RawBuffer* given = static_cast<const PjrtBuffer*>(inputs[i])->raw();
      // A buffer that was never written has no memory yet; its contents are undefined.
      if (!given) given = blank.emplace_back(zeros_(input_types_[i])).get();
      raw.push_back(given);
    }
    std::vector<BufferHandle> results(outputs.size() + (checks_indices_ ? 1 : 0));
    handle_->run(raw, results);
    if (checks_indices_) {
      bool outside = false;
      handle_->client().download(results.back().get(), {}, &outside, sizeof outside);
      if (outside) throw Error(ErrorCode::out_of_range, "an index is out of range for its axis");
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) static_cast<PjrtBuffer*>(outputs[i])->replace(std::move(results[i]));
  }

 private:
  std::unique_ptr<ExecutableHandle> handle_;
  bool checks_indices_;
  std::function<BufferHandle(const TensorType&)> zeros_;
  std::vector<TensorType> input_types_, output_types_;
};

class PjrtDevice final : public OpenDevice {
 public:
  PjrtDevice(DeviceInfo info, std::shared_ptr<Client> client, std::shared_ptr<MemoryBudget> budget)
      : info_(std::move(info)),
        client_(std::move(client)),
        budget_(std::move(budget)) {
    const Client::Device& device = client_->devices()[0];
    if (info_.name.empty()) info_.name = device.kind;
    if (device.memory_bytes && !info_.memory_total_bytes) info_.memory_total_bytes = device.memory_bytes;
    info_.details["platform"] = client_->platform();
    // XLA configures its CPU threads this way, and TPUs have no subnormals.
    if (info_.details["platform"] == "cpu" || info_.details["platform"] == "tpu") info_.details["flushes subnormals"] = "yes";
    info_.details["pjrt version"] = fmt::format("0.{}", client_->plugin().minor());
  }

  const DeviceInfo& info() const noexcept override { return info_; }

  std::unique_ptr<Executable> compile(const Graph& graph) override {
    stablehlo::Emitted program = stablehlo::emit(graph, target());
    auto handle = client_->compile(std::move(program.text), device());
    return std::make_unique<PjrtExecutable>(graph, std::move(handle), program.checks_indices, zeros());
  }

  std::unique_ptr<Buffer> allocate(const TensorType& type) override {
    return std::make_unique<PjrtBuffer>(type, BufferHandle(), reserve(type));
  }

  std::unique_ptr<Buffer> upload(const HostArray& array) override {
    const TensorType type{array.dtype(), array.shape()};
    MemoryBudget::Share share = reserve(type);
    const HostArray passed = array.cast(device_dtype(array.dtype()));
    BufferHandle handle = client_->upload(passed.data(), element_type(passed.dtype()), passed.shape(), device());
    return std::make_unique<PjrtBuffer>(type, std::move(handle), std::move(share));
  }

  HostArray download(const Buffer& buffer) override {
    const TensorType& type = buffer.type();
    RawBuffer* raw = static_cast<const PjrtBuffer&>(buffer).raw();
    if (!raw) return HostArray::zeros(type.dtype, type.shape);
    HostArray array = HostArray::empty(device_dtype(type.dtype), type.shape);
    if (array.bytes() != 0) client_->download(raw, type.shape, array.mutable_data(), array.bytes());
    return array.cast(type.dtype);
  }

 private:
  const Client::Device& device() const { return client_->devices()[0]; }

  // CPUs and GPUs compute in f64; accelerators for neural networks do not, or only slowly. XLA divides exactly and scatters in
  // order only on CPUs.
  stablehlo::Target target() const {
    const std::string& platform = info_.details.at("platform");
    const bool is_cpu = platform == "cpu";
    const bool wide = is_cpu || platform == "cuda" || platform == "rocm" || info_.kind == DeviceKind::gpu;
    return {.wide = wide, .rounds_quotients = is_cpu, .scatters_in_order = is_cpu};
  }

  MemoryBudget::Share reserve(const TensorType& type) const {
    if (!budget_) return {};
    const DType dtype = device_dtype(type.dtype);
    return budget_->reserve(storage_bytes(dtype, type.shape));
  }

  std::function<BufferHandle(const TensorType&)> zeros() const {
    return [client = client_](const TensorType& type) {
      const HostArray array = HostArray::zeros(device_dtype(type.dtype), type.shape);
      return client->upload(array.data(), element_type(array.dtype()), array.shape(), client->devices()[0]);
    };
  }

  DeviceInfo info_;
  std::shared_ptr<Client> client_;
  std::shared_ptr<MemoryBudget> budget_;
};

// The environment variables of JAX, translated to plugin options as JAX does.
std::vector<std::pair<std::string, OptionValue>> memory_options() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  const std::string preallocate = variable("XLA_PYTHON_CLIENT_PREALLOCATE"),
                    fraction = variable("XLA_PYTHON_CLIENT_MEM_FRACTION");
  // Other processes may use the card too, so memory is allocated on demand unless preallocation is requested.
  std::vector<std::pair<std::string, OptionValue>> options = {{"preallocate", preallocate == "true" || preallocate == "1"}};
  if (const float share = std::strtof(fraction.c_str(), nullptr); share > 0) options.emplace_back("memory_fraction", share);
  return options;
}

std::vector<std::pair<std::string, OptionValue>> client_options(const std::string& library) {
  if (library.find("cuda") != std::string::npos || library.find("rocm") != std::string::npos) return memory_options();
  // The CPU is one device, not several virtual ones.
  if (library.find("cpu") != std::string::npos) return {{"cpu_device_count", std::int64_t{1}}};
  return {};
}

std::shared_ptr<Client> make_client(const Plugin& plugin, const std::string& library) {
  const auto options = client_options(library);
  try {
    return Client::create(plugin, options);
  } catch (const Error& error) {
    // Plugins refuse unknown options, and have defaults for all of them.
    if (options.empty() || (error.code() != ErrorCode::invalid_argument && error.code() != ErrorCode::not_found)) throw;
    return Client::create(plugin, {});
  }
}

}  // namespace

std::unique_ptr<OpenDevice> open_here(const std::string& library, const DeviceInfo& device, const OpenOptions& options) {
  const Plugin& plugin = Plugin::load(library);
  return std::make_unique<PjrtDevice>(device, make_client(plugin, library), options.budget);
}

}  // namespace tenon::pjrt
