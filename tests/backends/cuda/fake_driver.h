// FakeDriver: a driver whose card is host memory. Copies happen at once, kernels are only counted; anything can be made to fail.
//
//   FakeDriver fake;                                  // one at a time
//   auto device = cuda::open_with(fake.table(), fake.card(), {}, fake.how());
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/backend.h"

namespace tenon::cuda {

class FakeDriver {
 public:
  struct Launched {
    std::string entry;
    std::array<unsigned, 3> groups;
    std::vector<std::uint64_t> arguments;  // the first two
  };

  FakeDriver() {
    current() = this;
    fill();
  }
  ~FakeDriver() {
    for (const auto& [address, bytes] : memory) std::free(reinterpret_cast<void*>(address));
    for (void* block : pinned) std::free(block);
    current() = nullptr;
  }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  const Driver& table() const { return table_; }
  static DeviceInfo card() {
    DeviceInfo info;
    info.id = "cuda:0";
    info.kind = DeviceKind::gpu;
    info.backends = {"cuda"};
    return info;
  }
  // Compiles nothing: a module is its source.
  DriverOptions how() {
    DriverOptions options;
    options.compiler = [this](const std::string& source, const std::string& options_of_it, int) {
      ++compiled;
      compiled_with = options_of_it;
      std::vector<std::byte> binary(source.size() + 1);
      std::memcpy(binary.data(), source.c_str(), source.size() + 1);
      return binary;
    };
    return options;
  }

  std::mutex mutex;
  std::map<DevicePointer, std::size_t> memory;
  std::set<void*> pinned, registered;
  std::set<std::string> entries;
  std::vector<Launched> launches, captured;
  std::vector<std::vector<Launched>> graphs;
  bool is_capturing = false;
  std::size_t capacity = std::size_t{1} << 30, used = 0;
  std::string compiled_with;  // the last options
  int contexts = 0, resets = 0, streams = 0, events = 0, modules = 0, compiled = 0, uploads = 0, downloads = 0, live_graphs = 0,
      graph_launches = 0;
  std::uintptr_t handles = 0;                            // of streams and events, made so far
  int synchronized = 0;                                  // the whole context
  std::map<RawEvent, RawStream> recorded;                // where last
  std::vector<std::pair<RawStream, RawStream>> ordered;  // the second waits for the first
  bool (*is_busy)(const void* stream) = nullptr;         // whether events recorded on a stream are still to come
  Result next_wait = kSuccess, next_launch = kSuccess, next_open = kSuccess, next_stream = kSuccess, next_capture = kSuccess;

 private:
  static FakeDriver*& current() {
    static FakeDriver* fake = nullptr;
    return fake;
  }
  static FakeDriver& fake() { return *current(); }
  template <class Handle>
  static Handle handle(std::uintptr_t value) {
    return reinterpret_cast<Handle>(value);
  }

  void fill() {
    table_.init = [](unsigned) { return kSuccess; };
    table_.error_name = [](Result, const char** name) { return *name = "CUDA_ERROR_FAKE", kSuccess; };
    table_.error_string = [](Result, const char** text) { return *text = "made to fail", kSuccess; };
    table_.driver_version = [](int* version) { return *version = 13000, kSuccess; };
    table_.device_get = [](Device* device, int ordinal) { return *device = ordinal, ordinal == 0 ? kSuccess : 101; };
    table_.device_by_pci = [](Device* device, const char*) { return *device = 0, kSuccess; };
    table_.device_attribute = [](int* value, Attribute which, Device) {
      *value = which == kMultiprocessors ? 132 : which == kCapabilityMajor ? 9 : which == kMaxThreadsPerBlock ? 1024 : 0;
      return kSuccess;
    };
    table_.context_retain = [](RawContext* context, Device) -> Result {
      if (fake().next_open != kSuccess) return std::exchange(fake().next_open, kSuccess);
      ++fake().contexts;
      *context = handle<RawContext>(1);
      return kSuccess;
    };
    table_.context_release = [](Device) { return --fake().contexts, kSuccess; };
    table_.context_reset = [](Device) { return ++fake().resets, kSuccess; };
    table_.context_set_current = [](RawContext) { return kSuccess; };
    table_.context_state = [](Device, unsigned* flags, int* is_active) {
      *flags = 0;
      *is_active = fake().contexts > 0;
      return kSuccess;
    };
    table_.context_synchronize = [] { return ++fake().synchronized, kSuccess; };
    fill_memory();
    fill_streams();
    fill_modules();
    fill_graphs();
  }

  void fill_memory() {
    table_.memory_info = [](std::size_t* free, std::size_t* total) {
      *free = fake().capacity - fake().used;
      *total = fake().capacity;
      return kSuccess;
    };
    table_.memory_allocate = [](DevicePointer* address, std::size_t bytes) -> Result {
      const std::lock_guard lock(fake().mutex);
      if (fake().used + bytes > fake().capacity) return 2;
      *address = reinterpret_cast<DevicePointer>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
      fake().memory[*address] = bytes;
      fake().used += bytes;
      return kSuccess;
    };
    table_.memory_free = [](DevicePointer address) -> Result {
      const std::lock_guard lock(fake().mutex);
      const auto found = fake().memory.find(address);
      if (found == fake().memory.end()) std::abort();
      fake().used -= found->second;
      fake().memory.erase(found);
      std::free(reinterpret_cast<void*>(address));
      return kSuccess;
    };
    table_.host_allocate = [](void** block, std::size_t bytes, unsigned) {
      const std::lock_guard lock(fake().mutex);
      *block = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
      fake().pinned.insert(*block);
      return kSuccess;
    };
    table_.host_free = [](void* block) {
      const std::lock_guard lock(fake().mutex);
      if (fake().pinned.erase(block) != 1) std::abort();
      std::free(block);
      return kSuccess;
    };
    table_.host_register = [](void* memory, std::size_t, unsigned) {
      const std::lock_guard lock(fake().mutex);
      fake().registered.insert(memory);
      return kSuccess;
    };
    table_.host_unregister = [](void* memory) {
      const std::lock_guard lock(fake().mutex);
      if (fake().registered.erase(memory) != 1) std::abort();
      return kSuccess;
    };
    table_.copy_to_device = [](DevicePointer to, const void* from, std::size_t bytes, RawStream) {
      std::memcpy(reinterpret_cast<void*>(to), from, bytes);
      const std::lock_guard lock(fake().mutex);
      return ++fake().uploads, kSuccess;
    };
    table_.copy_to_host = [](void* to, DevicePointer from, std::size_t bytes, RawStream) {
      std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
      const std::lock_guard lock(fake().mutex);
      return ++fake().downloads, kSuccess;
    };
    table_.fill_bytes = [](DevicePointer to, unsigned char value, std::size_t bytes, RawStream) {
      std::memset(reinterpret_cast<void*>(to), value, bytes);
      return kSuccess;
    };
  }

  void fill_streams() {
    table_.stream_create = [](RawStream* stream, unsigned) -> Result {
      if (fake().next_stream != kSuccess) return std::exchange(fake().next_stream, kSuccess);
      const std::lock_guard lock(fake().mutex);
      ++fake().streams;
      *stream = handle<RawStream>(++fake().handles);
      return kSuccess;
    };
    table_.stream_destroy = [](RawStream) {
      const std::lock_guard lock(fake().mutex);
      return --fake().streams, kSuccess;
    };
    table_.stream_synchronize = [](RawStream) {
      return fake().next_wait == kSuccess ? kSuccess : std::exchange(fake().next_wait, kSuccess);  // several threads wait at once
    };
    table_.stream_wait_event = [](RawStream stream, RawEvent event, unsigned) {
      const std::lock_guard lock(fake().mutex);
      return fake().ordered.emplace_back(fake().recorded[event], stream), kSuccess;
    };
    table_.event_create = [](RawEvent* event, unsigned) {
      const std::lock_guard lock(fake().mutex);
      ++fake().events;
      *event = handle<RawEvent>(++fake().handles);
      return kSuccess;
    };
    table_.event_destroy = [](RawEvent) {
      const std::lock_guard lock(fake().mutex);
      return --fake().events, kSuccess;
    };
    table_.event_record = [](RawEvent event, RawStream stream) {
      const std::lock_guard lock(fake().mutex);
      return fake().recorded[event] = stream, kSuccess;
    };
    table_.event_query = [](RawEvent event) -> Result {
      const std::lock_guard lock(fake().mutex);
      return fake().is_busy && fake().is_busy(fake().recorded[event]) ? kNotReady : kSuccess;
    };
    table_.event_synchronize = [](RawEvent) { return kSuccess; };
  }

  void fill_modules() {
    table_.module_load = [](RawModule* module, const void*) {
      *module = handle<RawModule>(static_cast<std::uintptr_t>(++fake().modules));
      return kSuccess;
    };
    table_.module_unload = [](RawModule) { return --fake().modules, kSuccess; };
    table_.module_function = [](RawFunction* function, RawModule, const char* entry) {
      *function = reinterpret_cast<RawFunction>(const_cast<std::string*>(&*fake().entries.insert(entry).first));
      return kSuccess;
    };
    table_.function_set = [](RawFunction, int, int) { return kSuccess; };
    table_.launch = [](RawFunction function, unsigned x, unsigned y, unsigned z, unsigned, unsigned, unsigned, unsigned,
                       RawStream, void** arguments, void**) -> Result {
      if (fake().next_launch != kSuccess) return std::exchange(fake().next_launch, kSuccess);
      Launched launched{*reinterpret_cast<const std::string*>(function), {x, y, z}, {}};
      for (int i = 0; i < 2; ++i) launched.arguments.push_back(*static_cast<const std::uint64_t*>(arguments[i]));
      (fake().is_capturing ? fake().captured : fake().launches).push_back(std::move(launched));
      return kSuccess;
    };
  }

  void fill_graphs() {
    table_.capture_begin = [](RawStream, int) -> Result {
      if (fake().next_capture != kSuccess) return std::exchange(fake().next_capture, kSuccess);
      fake().is_capturing = true;
      fake().captured.clear();
      return kSuccess;
    };
    table_.capture_end = [](RawStream, RawGraph* graph) {
      fake().is_capturing = false;
      *graph = handle<RawGraph>(1);
      return kSuccess;
    };
    table_.graph_destroy = [](RawGraph) { return kSuccess; };
    table_.graph_instantiate = [](RawGraphExec* graph, RawGraph, unsigned long long) {
      fake().graphs.push_back(fake().captured);
      *graph = handle<RawGraphExec>(static_cast<std::uintptr_t>(fake().graphs.size()));
      ++fake().live_graphs;
      return kSuccess;
    };
    table_.graph_launch = [](RawGraphExec graph, RawStream) {
      for (const Launched& launched : fake().graphs[reinterpret_cast<std::uintptr_t>(graph) - 1])
        fake().launches.push_back(launched);
      ++fake().graph_launches;
      return kSuccess;
    };
    table_.graph_exec_destroy = [](RawGraphExec) { return --fake().live_graphs, kSuccess; };
  }

  Driver table_;
};

}  // namespace tenon::cuda
