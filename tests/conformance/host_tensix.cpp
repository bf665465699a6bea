#include "conformance/host_tensix.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "backends/ttnn/exact.h"
#include "codegen/c/kernel.h"
#include "hal/kernel_plan.h"
#include "tenon/error.h"

namespace tenon::conformance {
namespace {

// Few, so that lines are evicted and shared between processors.
constexpr std::uint32_t kProcessors = 3, kLines = 4;

using Run = void (*)(const std::uint32_t* words, std::uint32_t processor, unsigned long memory);
using Bind = void (*)(std::uint8_t* const* buffers, const std::uint32_t* lines);

struct CompiledKernel {
  Run run = nullptr;
  Bind bind = nullptr;
};

class Compiler {
 public:
  Compiler() {
    std::string folder = (std::filesystem::temp_directory_path() / "tenon-tensix-XXXXXX").string();
    if (!mkdtemp(folder.data())) throw Error(ErrorCode::unavailable, "cannot create a temporary folder");
    folder_ = folder;
  }
  ~Compiler() { std::filesystem::remove_all(folder_); }

  void add(std::span<const Kernel> kernels) {
    std::vector<const Kernel*> missing;
    std::set<std::string> names;
    for (const Kernel& kernel : kernels)
      if (!known_.contains(kernel.entry) && names.insert(kernel.entry).second) missing.push_back(&kernel);
    // A compiler's time grows faster than its text.
    constexpr std::size_t kAtOnce = 100;
    for (std::size_t i = 0; i < missing.size(); i += kAtOnce)
      compile(std::span(missing).subspan(i, std::min(kAtOnce, missing.size() - i)));
  }
  const CompiledKernel& find(const std::string& entry) const { return known_.at(entry); }

 private:
  void compile(std::span<const Kernel* const> kernels) {
    const std::string base = fmt::format("{}/{}", folder_, files_++), source = base + ".cpp", library = base + ".so";
    std::ofstream(source) << "#define TENON_HOST\n" << module_text(ttnn::exact_target(), kernels);
    const char* named = std::getenv("CXX");
    const std::string command = fmt::format("{} -std=c++17 -O1 -w -ffp-contract=off -shared -fPIC -o {} {} -lm 2> {}.log",
                                            named && *named ? named : "c++", library, source, base);
    if (std::system(command.c_str()) != 0) {
      std::ifstream log(base + ".log");
      std::string text((std::istreambuf_iterator<char>(log)), {});
      throw Error(ErrorCode::internal, fmt::format("the kernels {} do not compile: {}", source, text.substr(0, 2000)));
    }
    void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw Error(ErrorCode::internal, dlerror());
    const auto bind = reinterpret_cast<Bind>(dlsym(handle, "tenon_bind"));
    for (const Kernel* kernel : kernels)
      known_[kernel->entry] = {reinterpret_cast<Run>(dlsym(handle, ("run_" + kernel->entry).c_str())), bind};
    std::filesystem::remove(source);
  }

  std::string folder_;
  int files_ = 0;
  std::map<std::string, CompiledKernel> known_;
};

// A tensor's lines, as they would lie in the chip's memory.
using LineMemory = std::vector<std::uint8_t>;
LineMemory memory_of(std::uint64_t bytes) { return LineMemory(ttnn::ExactSlot{.bytes = bytes}.lines() * kTensixLineBytes, 0xA5); }

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(TensorType type) : Buffer(type), memory(memory_of(storage_bytes(type.dtype, type.shape))) {}
  LineMemory memory;
};

class HostProgram final : public Executable {
 public:
  HostProgram(const Graph& graph, Compiler& compiler) : plan_(ttnn::plan_exact(graph)), compiler_(compiler) {
    compiler.add(plan_kernels(graph, ttnn::exact_target()).kernels);
  }
  std::span<const TensorType> input_types() const noexcept override { return plan_.input_types; }
  std::span<const TensorType> output_types() const noexcept override { return plan_.output_types; }

  using Executable::run;
  void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override {
    std::vector<LineMemory> own(plan_.slots.size());
    std::vector<std::uint8_t*> buffers;
    std::vector<std::uint32_t> lines;
    for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
      const ttnn::ExactSlot& slot = plan_.slots[i];
      const auto index = static_cast<std::size_t>(slot.index);
      LineMemory* memory = &own[i];
      if (slot.kind == ttnn::ExactSlot::Kind::input)
        memory = &const_cast<HostBuffer*>(static_cast<const HostBuffer*>(inputs[index]))->memory;
      else if (slot.kind == ttnn::ExactSlot::Kind::output)
        memory = &static_cast<HostBuffer*>(outputs[index])->memory;
      else
        *memory = memory_of(slot.bytes);
      if (slot.kind == ttnn::ExactSlot::Kind::constant)
        std::memcpy(memory->data(), plan_.constants.data() + slot.offset_bytes, slot.bytes);
      if (slot.kind == ttnn::ExactSlot::Kind::status) std::fill(memory->begin(), memory->end(), 0);
      buffers.push_back(memory->data());
      lines.push_back(static_cast<std::uint32_t>(slot.lines()));
    }
    for (const ttnn::ExactLaunch& launch : plan_.launches) start(launch, buffers, lines);
    if (plan_.status_slot < 0) return;
    std::int64_t words[kStatusBytes / 8];
    std::memcpy(words, buffers[static_cast<std::size_t>(plan_.status_slot)], sizeof words);
    throw_status(words);
  }

 private:
  void start(const ttnn::ExactLaunch& launch, const std::vector<std::uint8_t*>& buffers,
             const std::vector<std::uint32_t>& lines) {
    std::vector<std::uint32_t> words = launch.words;
    words[0] = kProcessors;
    words[4] = kLines;
    for (const auto& [word, slot] : launch.buffers) words[static_cast<std::size_t>(word)] = static_cast<std::uint32_t>(slot);
    const CompiledKernel& kernel = compiler_.find(plan_.kernels[static_cast<std::size_t>(launch.kernel)].entry);
    kernel.bind(buffers.data(), lines.data());
    std::vector<std::uint64_t> memory((launch.buffers.size() + 1) * kLines * (kTensixSlotBytes + 8) / 8 + 16);
    const auto aligned = (reinterpret_cast<unsigned long>(memory.data()) + 63) / 64 * 64;
    for (std::uint32_t processor = 0; processor < kProcessors; ++processor) kernel.run(words.data(), processor, aligned);
  }

  ttnn::ExactPlan plan_;
  Compiler& compiler_;
};

class HostTensix final : public OpenDevice {
 public:
  HostTensix() {
    info_.id = "tensix-host:0";
    info_.kind = DeviceKind::cpu;
    info_.name = "Tenstorrent kernels compiled for this machine";
    info_.backends = {"tensix-host"};
  }
  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Executable> compile(const Graph& graph) override { return std::make_unique<HostProgram>(graph, compiler_); }
  std::unique_ptr<Buffer> allocate(const TensorType& type) override { return std::make_unique<HostBuffer>(type); }
  std::unique_ptr<Buffer> upload(const HostArray& array) override {
    auto buffer = std::make_unique<HostBuffer>(TensorType{array.dtype(), array.shape()});
    if (array.bytes() != 0) std::memcpy(buffer->memory.data(), array.data(), array.bytes());
    return buffer;
  }
  HostArray download(const Buffer& buffer) override {
    const auto& from = static_cast<const HostBuffer&>(buffer);
    HostArray array = HostArray::empty(from.type().dtype, from.type().shape);
    if (array.bytes() != 0) std::memcpy(array.mutable_data(), from.memory.data(), array.bytes());
    return array;
  }
  void prepare(std::span<const Graph> graphs) {
    std::vector<Kernel> kernels;
    for (const Graph& graph : graphs)
      for (Kernel& kernel : plan_kernels(graph, ttnn::exact_target()).kernels) kernels.push_back(std::move(kernel));
    compiler_.add(kernels);
  }

 private:
  DeviceInfo info_;
  Compiler compiler_;
};

}  // namespace

std::unique_ptr<OpenDevice> open_host_tensix() { return std::make_unique<HostTensix>(); }
void prepare_host_tensix(OpenDevice& device, std::span<const Graph> graphs) { static_cast<HostTensix&>(device).prepare(graphs); }

}  // namespace tenon::conformance
