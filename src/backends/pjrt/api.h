// The part of the PJRT C API, version 0.x, that Tenon uses, declared from its published layout.
//
// A plugin exports GetPjrtApi(), which returns a table of functions. Every function takes one pointer to a struct of arguments
// that starts with its own size; results are written to the same struct. Slots 0 to 89 of the table have not moved since 0.57,
// and a struct may be larger than the plugin expects but never smaller, so the newest layouts are used, with zeros at their ends.
//
// |struct_size| is the end of the last field (kBytes), not sizeof. Layouts are those of 64-bit Linux, checked below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tenon::pjrt {

// Handles, owned by the plugin.
struct RawError;
struct RawEvent;
struct RawClient;
struct RawDevice;
struct RawDescription;
struct RawBuffer;
struct RawExecutable;
struct RawLoadedExecutable;

inline constexpr int kOldestMinor = 57;

// The table: a version, then functions.
struct Api {
  std::size_t struct_size;
  void* extension_start;
  struct {
    std::size_t struct_size;
    void* extension_start;
    int major, minor;
  } version;
  RawError* (*functions[1])(void*);  // the number follows from struct_size
};

enum class Slot : std::size_t {
  error_destroy = 0,
  error_message = 1,
  error_code = 2,
  plugin_initialize = 3,
  plugin_attributes = 4,
  event_destroy = 5,
  event_await = 8,
  client_create = 10,
  client_destroy = 11,
  client_platform_name = 12,
  client_platform_version = 14,
  client_addressable_devices = 16,
  client_compile = 20,
  buffer_from_host = 22,
  description_id = 23,
  description_kind = 26,
  device_description = 29,
  device_local_hardware_id = 31,
  device_memory_stats = 34,
  executable_destroy = 40,
  executable_num_outputs = 44,
  loaded_destroy = 50,
  loaded_executable = 51,
  loaded_execute = 55,
  buffer_destroy = 58,
  buffer_to_host = 70,
  buffer_ready_event = 72,
};

// The first fields of every struct of arguments.
struct Header {
  std::size_t struct_size = 0;
  void* extension_start = nullptr;
};

enum class ElementType : int {
  invalid,
  pred,
  s8,
  s16,
  s32,
  s64,
  u8,
  u16,
  u32,
  u64,
  f16,
  f32,
  f64,
  bf16,
};

// When the host's bytes may change again: at once, because the call copied them, or when the event is ready.
enum class HostSemantics : int { copied_during_call = 0, until_transfer_completes = 1 };

enum class ValueType : int { text = 0, integer = 1, integers = 2, real = 3, boolean = 4 };
struct NamedValue {
  Header header;
  const char* name = nullptr;
  std::size_t name_size = 0;
  ValueType type{};
  union {
    const char* text;
    std::int64_t integer;
    const std::int64_t* integers;
    float real;
    bool boolean;
  } value{};
  std::size_t value_size = 0;
  static constexpr std::size_t kBytes = 56;
};

struct ErrorDestroyArgs {
  Header header;
  RawError* error = nullptr;
  static constexpr std::size_t kBytes = 24;
};
struct ErrorMessageArgs {
  Header header;
  const RawError* error = nullptr;
  const char* message = nullptr;  // lives as long as the error; not terminated
  std::size_t message_size = 0;
  static constexpr std::size_t kBytes = 40;
};
struct ErrorCodeArgs {
  Header header;
  const RawError* error = nullptr;
  int code = 0;  // of the absl set, as ErrorCode counts
  static constexpr std::size_t kBytes = 28;
};
struct NoArgs {
  Header header;
  static constexpr std::size_t kBytes = 16;
};
struct AttributesArgs {
  Header header;
  const NamedValue* attributes = nullptr;
  std::size_t count = 0;
  static constexpr std::size_t kBytes = 32;
};
struct EventArgs {
  Header header;
  RawEvent* event = nullptr;
  static constexpr std::size_t kBytes = 24;
};

struct ClientCreateArgs {
  Header header;
  const NamedValue* options = nullptr;
  std::size_t option_count = 0;
  void *kv_get = nullptr, *kv_get_argument = nullptr, *kv_put = nullptr, *kv_put_argument = nullptr;  // several hosts only
  RawClient* client = nullptr;
  void *kv_try_get = nullptr, *kv_try_get_argument = nullptr;
  static constexpr std::size_t kBytes = 88;
};
struct ClientArgs {
  Header header;
  RawClient* client = nullptr;
  static constexpr std::size_t kBytes = 24;
};
// Platform name and version of a client, kind of a description.
template <class Handle>
struct TextOfArgs {
  Header header;
  Handle* handle = nullptr;
  const char* text = nullptr;
  std::size_t size = 0;
  static constexpr std::size_t kBytes = 40;
};
// Id of a description, local hardware id of a device.
template <class Handle>
struct NumberOfArgs {
  Header header;
  Handle* handle = nullptr;
  int number = 0;
  static constexpr std::size_t kBytes = 28;
};
struct ClientDevicesArgs {
  Header header;
  RawClient* client = nullptr;
  RawDevice* const* devices = nullptr;  // owned by the client
  std::size_t count = 0;
  static constexpr std::size_t kBytes = 40;
};
struct DeviceDescriptionArgs {
  Header header;
  RawDevice* device = nullptr;
  RawDescription* description = nullptr;
  static constexpr std::size_t kBytes = 32;
};
struct OptionalBytes {
  std::int64_t bytes = 0;
  bool is_set = false;
};
struct MemoryStatsArgs {
  Header header;
  RawDevice* device = nullptr;
  std::int64_t bytes_in_use = 0;
  OptionalBytes peak, allocations, largest_allocation, limit, reserved, peak_reserved, reservable, largest_free, pool, peak_pool,
      peak_allocated;
  static constexpr std::size_t kBytes = 201;
};

struct CompileSource {
  Header header;
  char* code = nullptr;
  std::size_t code_size = 0;
  const char* format = nullptr;
  std::size_t format_size = 0;
  static constexpr std::size_t kBytes = 48;
};
struct CompileArgs {
  Header header;
  RawClient* client = nullptr;
  const CompileSource* program = nullptr;
  const char* options = nullptr;  // a CompileOptionsProto
  std::size_t options_size = 0;
  RawLoadedExecutable* executable = nullptr;
  static constexpr std::size_t kBytes = 56;
};
struct LoadedArgs {
  Header header;
  RawLoadedExecutable* executable = nullptr;
  static constexpr std::size_t kBytes = 24;
};

struct ExecuteOptions {
  Header header;
  void *send_callbacks = nullptr, *receive_callbacks = nullptr;
  std::size_t send_count = 0, receive_count = 0;
  int launch_id = 0;
  const std::int64_t* non_donatable = nullptr;
  std::size_t non_donatable_count = 0;
  void* context = nullptr;
  const char* call_location = nullptr;
  std::size_t task_count = 0;
  int* task_ids = nullptr;
  std::int64_t* incarnations = nullptr;
  void* multi_slice = nullptr;
  bool strict_shapes = false;
  void* host_callbacks = nullptr;
  std::size_t host_callback_count = 0;
  static constexpr std::size_t kBytes = 144;
};
struct ExecuteArgs {
  Header header;
  RawLoadedExecutable* executable = nullptr;
  ExecuteOptions* options = nullptr;
  RawBuffer* const* const* arguments = nullptr;  // [device][argument]
  std::size_t device_count = 0, argument_count = 0;
  RawBuffer** const* outputs = nullptr;  // [device][output], the caller's memory
  RawEvent** events = nullptr;           // [device]: ready when everything is done
  RawDevice* device = nullptr;           // null: as compiled
  static constexpr std::size_t kBytes = 80;
};

struct BufferFromHostArgs {
  Header header;
  RawClient* client = nullptr;
  const void* data = nullptr;
  ElementType type{};
  const std::int64_t* dims = nullptr;
  std::size_t rank = 0;
  const std::int64_t* strides = nullptr;  // null: dense, row-major
  std::size_t stride_count = 0;
  HostSemantics semantics{};
  RawDevice* device = nullptr;
  void *memory = nullptr, *layout = nullptr;
  RawEvent* event = nullptr;
  RawBuffer* buffer = nullptr;
  static constexpr std::size_t kBytes = 120;
};
struct BufferArgs {
  Header header;
  RawBuffer* buffer = nullptr;
  static constexpr std::size_t kBytes = 24;
};
struct BufferReadyArgs {
  Header header;
  RawBuffer* buffer = nullptr;
  RawEvent* event = nullptr;
  static constexpr std::size_t kBytes = 32;
};
// A layout of the host: axes from the fastest to the slowest, no tiles.
struct MemoryLayout {
  Header header;
  struct {
    Header header;
    const std::int64_t* minor_to_major = nullptr;
    std::size_t rank = 0;
    const std::int64_t* tile_dims = nullptr;
    const std::size_t* tile_sizes = nullptr;
    std::size_t tile_count = 0;
  } tiled;
  int type = 0;  // tiled
  static constexpr std::size_t kBytes = 76, kTiledBytes = 56;
};
struct BufferToHostArgs {
  Header header;
  RawBuffer* source = nullptr;
  MemoryLayout* layout = nullptr;  // null: as on the device
  void* to = nullptr;              // null: query only the size
  std::size_t to_size = 0;
  RawEvent* event = nullptr;
  static constexpr std::size_t kBytes = 56;
};

// A struct of arguments, or a program or options, with its size filled in.
template <class Args>
Args make_args() {
  Args args;
  args.header.struct_size = Args::kBytes;
  return args;
}

static_assert(offsetof(Api, version) == 16 && offsetof(Api, functions) == 40);
static_assert(offsetof(NamedValue, value) == 40 && offsetof(NamedValue, value_size) == 48);
static_assert(offsetof(ClientCreateArgs, client) == 64 && offsetof(ClientCreateArgs, kv_try_get_argument) == 80);
static_assert(offsetof(MemoryStatsArgs, limit) == 80 && offsetof(MemoryStatsArgs, peak_allocated) == 192);
static_assert(offsetof(CompileArgs, executable) == 48);
static_assert(offsetof(ExecuteOptions, launch_id) == 48 && offsetof(ExecuteOptions, strict_shapes) == 120 &&
              offsetof(ExecuteOptions, host_callback_count) == 136);
static_assert(offsetof(ExecuteArgs, arguments) == 32 && offsetof(ExecuteArgs, device) == 72);
static_assert(offsetof(BufferFromHostArgs, semantics) == 72 && offsetof(BufferFromHostArgs, buffer) == 112);
static_assert(offsetof(MemoryLayout, tiled) == 16 && offsetof(MemoryLayout, type) == 72);
static_assert(offsetof(BufferToHostArgs, event) == 48);
static_assert(std::is_standard_layout_v<ExecuteArgs> && std::is_standard_layout_v<MemoryLayout>);

}  // namespace tenon::pjrt
