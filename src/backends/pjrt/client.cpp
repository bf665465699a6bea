#include "backends/pjrt/client.h"

#include <fmt/format.h>

#include <numeric>

#include "tenon/error.h"

namespace tenon::pjrt {
namespace {

NamedValue named_value(const std::string& name, const OptionValue& option) {
  auto value = make_args<NamedValue>();
  value.name = name.data();
  value.name_size = name.size();
  value.value_size = 1;
  if (const auto* text = std::get_if<std::string>(&option)) {
    value.type = ValueType::text;
    value.value.text = text->data();
    value.value_size = text->size();
  } else if (const auto* integer = std::get_if<std::int64_t>(&option)) {
    value.type = ValueType::integer;
    value.value.integer = *integer;
  } else if (const auto* flag = std::get_if<bool>(&option)) {
    value.type = ValueType::boolean;
    value.value.boolean = *flag;
  } else {
    value.type = ValueType::real;
    value.value.real = std::get<float>(option);
  }
  return value;
}

// The part of protocol buffers that the options of a compilation need.
void put_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>((value & 0x7f) | 0x80));
  bytes.push_back(static_cast<char>(value));
}
void put_number(std::string& bytes, int field, std::uint64_t value) {
  put_varint(bytes, static_cast<std::uint64_t>(field) << 3);
  put_varint(bytes, value);
}
void put_bytes(std::string& bytes, int field, const std::string& content) {
  put_varint(bytes, static_cast<std::uint64_t>(field) << 3 | 2);
  put_varint(bytes, content.size());
  bytes += content;
}

}  // namespace

std::string compile_options(int device_id) {
  std::string id;
  put_varint(id, static_cast<std::uint64_t>(device_id));
  std::string computation;
  put_bytes(computation, 1, id);  // replica_device_ids
  std::string assignment;
  put_number(assignment, 1, 1);  // replica_count
  put_number(assignment, 2, 1);  // computation_count
  put_bytes(assignment, 3, computation);
  std::string build;
  // The ordinal must be negative for the assignment to apply; a missing ordinal would be 0.
  put_number(build, 1, static_cast<std::uint64_t>(std::int64_t{-1}));
  put_number(build, 4, 1);  // num_replicas
  put_number(build, 5, 1);  // num_partitions
  put_bytes(build, 9, assignment);
  std::string options;
  put_bytes(options, 3, build);
  return options;
}

BufferHandle::~BufferHandle() {
  if (!raw_) return;
  auto args = make_args<BufferArgs>();
  args.buffer = raw_;
  client_->plugin().call_quietly(Slot::buffer_destroy, args);
}

ExecutableHandle::~ExecutableHandle() {
  auto args = make_args<LoadedArgs>();
  args.executable = raw_;
  client_->plugin().call_quietly(Slot::loaded_destroy, args);
}

void ExecutableHandle::run(std::span<RawBuffer* const> inputs, std::span<BufferHandle> outputs) const {
  const Plugin& plugin = client_->plugin();
  std::vector<std::int64_t> kept(inputs.size());
  std::iota(kept.begin(), kept.end(), 0);
  auto options = make_args<ExecuteOptions>();
  options.non_donatable = kept.data();
  options.non_donatable_count = kept.size();
  std::vector<RawBuffer*> results(outputs.size(), nullptr);
  RawBuffer* const* arguments[] = {inputs.data()};
  RawBuffer** result_lists[] = {results.data()};
  RawEvent* events[] = {nullptr};
  auto args = make_args<ExecuteArgs>();
  args.executable = raw_;
  args.options = &options;
  args.arguments = arguments;
  args.device_count = 1;
  args.argument_count = inputs.size();
  args.outputs = result_lists;
  args.events = events;
  plugin.call(Slot::loaded_execute, args);
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = BufferHandle(client_, results[i]);
  plugin.await(events[0]);
}

std::shared_ptr<Client> Client::create(const Plugin& plugin, std::span<const std::pair<std::string, OptionValue>> options) {
  std::vector<NamedValue> values;
  for (const auto& [name, option] : options) values.push_back(named_value(name, option));
  auto args = make_args<ClientCreateArgs>();
  args.options = values.data();
  args.option_count = values.size();
  plugin.call(Slot::client_create, args);
  const std::shared_ptr<Client> client(new Client(plugin, args.client));
  client->read_devices();
  return client;
}

Client::~Client() {
  auto args = make_args<ClientArgs>();
  args.client = raw_;
  plugin_.call_quietly(Slot::client_destroy, args);
}

void Client::read_devices() {
  if (plugin_.has(Slot::client_platform_name)) {
    auto name = make_args<TextOfArgs<RawClient>>();
    name.handle = raw_;
    plugin_.call(Slot::client_platform_name, name);
    platform_.assign(name.text, name.size);
  }
  auto list = make_args<ClientDevicesArgs>();
  list.client = raw_;
  plugin_.call(Slot::client_addressable_devices, list);
  if (list.count == 0) throw Error(ErrorCode::unavailable, fmt::format("the PJRT plugin {} found no device", plugin_.name()));
  for (std::size_t i = 0; i < list.count; ++i) {
    Device device{.raw = list.devices[i]};
    auto description = make_args<DeviceDescriptionArgs>();
    description.device = device.raw;
    plugin_.call(Slot::device_description, description);
    auto id = make_args<NumberOfArgs<RawDescription>>();
    id.handle = description.description;
    plugin_.call(Slot::description_id, id);
    device.id = id.number;
    // The rest is optional information that plugins may omit.
    auto kind = make_args<TextOfArgs<RawDescription>>();
    kind.handle = description.description;
    plugin_.call_quietly(Slot::description_kind, kind);
    if (kind.text) device.kind.assign(kind.text, kind.size);
    auto memory = make_args<MemoryStatsArgs>();
    memory.device = device.raw;
    plugin_.call_quietly(Slot::device_memory_stats, memory);
    if (memory.limit.is_set && memory.limit.bytes > 0) device.memory_bytes = static_cast<std::uint64_t>(memory.limit.bytes);
    devices_.push_back(device);
  }
}

std::unique_ptr<ExecutableHandle> Client::compile(std::string code, const Device& device) const {
  constexpr std::string_view kFormat = "mlir";
  auto program = make_args<CompileSource>();
  program.code = code.data();
  program.code_size = code.size();
  program.format = kFormat.data();
  program.format_size = kFormat.size();
  const std::string options = compile_options(device.id);
  auto args = make_args<CompileArgs>();
  args.client = raw_;
  args.program = &program;
  args.options = options.data();
  args.options_size = options.size();
  plugin_.call(Slot::client_compile, args);
  return std::make_unique<ExecutableHandle>(shared_from_this(), args.executable);
}

BufferHandle Client::upload(const void* bytes, ElementType type, const Shape& shape, const Device& device) const {
  auto args = make_args<BufferFromHostArgs>();
  args.client = raw_;
  args.data = bytes;
  args.type = type;
  args.dims = shape.dims().data();
  args.rank = static_cast<std::size_t>(shape.rank());
  args.semantics = HostSemantics::copied_during_call;
  args.device = device.raw;
  plugin_.call(Slot::buffer_from_host, args);
  BufferHandle buffer(shared_from_this(), args.buffer);
  plugin_.await(args.event);
  return buffer;
}

void Client::download(RawBuffer* buffer, const Shape& shape, void* to, std::size_t bytes) const {
  std::int64_t minor_to_major[kMaxRank];
  for (int i = 0; i < shape.rank(); ++i) minor_to_major[i] = shape.rank() - 1 - i;
  auto layout = make_args<MemoryLayout>();
  layout.tiled.header.struct_size = MemoryLayout::kTiledBytes;
  layout.tiled.minor_to_major = minor_to_major;
  layout.tiled.rank = static_cast<std::size_t>(shape.rank());
  auto args = make_args<BufferToHostArgs>();
  args.source = buffer;
  args.layout = &layout;
  args.to = to;
  args.to_size = bytes;
  plugin_.call(Slot::buffer_to_host, args);
  plugin_.await(args.event);
}

}  // namespace tenon::pjrt
