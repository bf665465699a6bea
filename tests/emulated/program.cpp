#include "emulated/program.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "emulated/block.h"
#include "tenon/error.h"

namespace tenon::emulated {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kPattern = 0xff;  // of it, every float is no number

// Memory before a page that cannot be read.
class GuardedMemory {
 public:
  GuardedMemory(std::string name, std::size_t bytes, const void* from) : name_(std::move(name)), bytes_(bytes) {
    whole_ = (bytes + kPage - 1) / kPage * kPage + 2 * kPage;
    void* const memory = mmap(nullptr, whole_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw Error(ErrorCode::resource_exhausted, "no memory for a buffer");
    begin_ = static_cast<std::byte*>(memory);
    data_ = begin_ + whole_ - kPage - (bytes + 15) / 16 * 16;
    protect(PROT_READ | PROT_WRITE);
    std::memset(begin_ + kPage, kPattern, whole_ - 2 * kPage);
    if (from) std::memcpy(data_, from, bytes);
  }
  ~GuardedMemory() { munmap(begin_, whole_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  void protect(int how) const { mprotect(begin_ + kPage, whole_ - 2 * kPage, how); }
  // Whether nothing was written beside it.
  bool is_whole() const {
    for (const std::byte* b = begin_ + kPage; b < begin_ + whole_ - kPage; ++b)
      if ((b < data_ || b >= data_ + bytes_) && *b != std::byte{kPattern}) return false;
    return true;
  }
  bool holds(std::uintptr_t address) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(begin_);
    return address >= begin && address < begin + whole_;
  }
  std::string place(std::uintptr_t address) const {
    return fmt::format("byte {} of the {} of {}", static_cast<std::intptr_t>(address - reinterpret_cast<std::uintptr_t>(data_)),
                       bytes_, name_);
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::size_t bytes_ = 0, whole_ = 0;
  std::byte *begin_ = nullptr, *data_ = nullptr;
};

class Run {
 public:
  Run(const KernelPlan& plan, KernelLibrary& library, std::span<const HostArray> inputs, Temporaries temporaries)
      : plan_(plan),
        library_(library),
        inputs_(inputs),
        temporaries_(temporaries) {}

  std::vector<HostArray> outputs() {
    library_.set_runner(block_.runner());
    for (std::size_t i = 0; i < plan_.output_types.size(); ++i) memory_of(Location::Space::output, static_cast<int>(i), 0, 0);
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const auto* const launch = std::get_if<KernelLaunch>(&plan_.steps[i]);
      if (!launch) throw Error(ErrorCode::internal, "a step of a library cannot be run here");
      const Kernel& kernel = plan_.kernels[static_cast<std::size_t>(launch->kernel)];
      try {
        start(*launch, kernel);
      } catch (const Error& error) {
        throw Error(ErrorCode::internal, fmt::format("step {}, {}: {}", i, kernel.entry, error.what()));
      }
    }
    for (const auto& [key, memory] : memory_)
      if (!memory->is_whole()) throw Error(ErrorCode::internal, "something was written beside " + memory->name());
    if (plan_.has_status) {
      std::int64_t words[kStatusBytes / 8];
      std::memcpy(words, memory_of(Location::Space::status, 0, 0, kStatusBytes).data(), sizeof words);
      throw_status(words);
    }
    std::vector<HostArray> all;
    for (std::size_t i = 0; i < plan_.output_types.size(); ++i) {
      const auto& [dtype, shape] = plan_.output_types[i];
      const std::byte* const data = memory_of(Location::Space::output, static_cast<int>(i), 0, 0).data();
      all.push_back(HostArray::from_bytes(dtype, shape, {data, storage_bytes(dtype, shape)}));
    }
    return all;
  }

 private:
  using Key = std::tuple<Location::Space, int, std::uint64_t, std::uint64_t>;

  GuardedMemory& memory_of(Location::Space space, int index, std::uint64_t offset, std::uint64_t bytes) {
    const auto at = static_cast<std::size_t>(index);
    if (space == Location::Space::output) bytes = storage_bytes(plan_.output_types[at].dtype, plan_.output_types[at].shape);
    if (space == Location::Space::input) bytes = inputs_[at].bytes();
    std::unique_ptr<GuardedMemory>& memory = memory_[Key{space, index, offset, bytes}];
    if (memory) return *memory;
    const std::vector<std::byte> zeros(kStatusBytes);
    switch (space) {
      case Location::Space::input:
        memory = std::make_unique<GuardedMemory>(fmt::format("input {}", index), bytes, inputs_[at].data());
        break;
      case Location::Space::output:
        memory = std::make_unique<GuardedMemory>(fmt::format("output {}", index), bytes, nullptr);
        break;
      case Location::Space::workspace:
        memory = std::make_unique<GuardedMemory>(fmt::format("the temporary at {}", offset), bytes, nullptr);
        break;
      case Location::Space::constants:
        memory =
            std::make_unique<GuardedMemory>(fmt::format("the constant at {}", offset), bytes, plan_.constants.data() + offset);
        break;
      case Location::Space::status: memory = std::make_unique<GuardedMemory>("the status", bytes, zeros.data()); break;
    }
    if (is_given(space)) memory->protect(PROT_READ);
    return *memory;
  }
  static bool is_given(Location::Space space) { return space == Location::Space::input || space == Location::Space::constants; }

  void* address_of(const Location& location) {
    if (location.space == Location::Space::workspace && temporaries_ == Temporaries::as_planned)
      return memory_of(location.space, 0, 0, plan_.workspace_bytes).data() + location.offset_bytes;
    return memory_of(location.space, location.index, location.offset_bytes, location.bytes).data();
  }

  void start(const KernelLaunch& launch, const Kernel& kernel) {
    const CompiledKernel& compiled = library_.find(kernel.entry);
    std::vector<std::uint64_t> words(launch.arguments.size());
    std::vector<const void*> arguments;
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      std::visit(
          [&]<class T>(const T& value) {
            if constexpr (std::is_same_v<T, Location>) {
              void* const address = address_of(value);
              std::memcpy(&words[i], &address, sizeof address);
            } else {
              std::memcpy(&words[i], &value, sizeof value);
            }
          },
          launch.arguments[i]);
      arguments.push_back(&words[i]);
    }
    GuardedMemory dynamic("local memory", static_cast<std::size_t>(kernel.dynamic_bytes), nullptr);
    block_.runner().dynamic = dynamic.data();
    const auto protect = [&](int how) {
      for (const auto& [key, memory] : memory_)
        if (!is_given(std::get<0>(key))) memory->protect(how);
    };
    const bool waits_first = kernel.text.find(") {\nSTARTED;") != std::string::npos;
    BlockHooks hooks;
    bool is_first = true;
    hooks.begin = [&] {
      if (!waits_first) protect(PROT_NONE);
      if (std::exchange(is_first, false) && compiled.local[0])
        std::memset(compiled.local[0], kPattern, static_cast<std::size_t>(compiled.local[1] - compiled.local[0]));
    };
    hooks.passed = [&] {
      if (!waits_first) protect(PROT_READ | PROT_WRITE);
    };
    hooks.place = [&](std::uintptr_t address) -> std::string {
      if (dynamic.holds(address)) return dynamic.place(address);
      for (const auto& [key, memory] : memory_)
        if (memory->holds(address)) return memory->place(address);
      return fmt::format("{:#x}, in no buffer", address);
    };
    try {
      block_.run(launch.groups, kernel.group_size, [&] { compiled.run(arguments.data()); }, hooks);
    } catch (...) {
      protect(PROT_READ | PROT_WRITE);
      throw;
    }
  }

  const KernelPlan& plan_;
  KernelLibrary& library_;
  const std::span<const HostArray> inputs_;
  const Temporaries temporaries_;
  Block block_;
  std::map<Key, std::unique_ptr<GuardedMemory>> memory_;
};

}  // namespace

std::vector<HostArray> run_plan(const KernelPlan& plan, KernelLibrary& library, std::span<const HostArray> inputs,
                                Temporaries temporaries) {
  return Run(plan, library, inputs, temporaries).outputs();
}

}  // namespace tenon::emulated
