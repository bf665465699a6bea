#include "backends/pjrt/plugin.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>

#include "base/system/dynamic_library.h"
#include "tenon/error.h"

namespace tenon::pjrt {
namespace {

constexpr std::size_t kTextLimit = 600;

std::string bounded(const char* text, std::size_t size) {
  if (!text) return {};
  const std::string whole(text, size);
  return whole.size() <= kTextLimit ? whole : whole.substr(0, kTextLimit) + " ...";
}

// The plugin's codes are those of absl, like ours.
ErrorCode error_code(int code) {
  const bool known = code > 0 && code <= static_cast<int>(ErrorCode::data_loss);
  return known ? static_cast<ErrorCode>(code) : ErrorCode::unknown;
}

}  // namespace

const Plugin& Plugin::load(const std::string& library) {
  static std::mutex mutex;
  static auto* plugins = new std::map<std::string, std::unique_ptr<Plugin>>;  // never destroyed: plugins are not unloaded
  const std::lock_guard lock(mutex);
  std::unique_ptr<Plugin>& plugin = (*plugins)[library];
  if (plugin) return *plugin;

  const std::string names[] = {library};
  const DynamicLibrary loaded = DynamicLibrary::load(names);
  if (!loaded) throw Error(ErrorCode::unavailable, fmt::format("the PJRT plugin cannot be loaded: {}", loaded.error()));
  const auto get_api = loaded.function<const Api*()>("GetPjrtApi");
  if (!get_api) throw Error(ErrorCode::unavailable, fmt::format("{} is no PJRT plugin: it has no function GetPjrtApi", library));
  auto made = std::make_unique<Plugin>(library, get_api());
  if (made->has(Slot::plugin_initialize)) {
    auto args = make_args<NoArgs>();
    made->call(Slot::plugin_initialize, args);
  }
  plugin = std::move(made);
  return *plugin;
}

Plugin::Plugin(std::string name, const Api* api) : name_(std::move(name)), api_(api) {
  if (!api_) throw Error(ErrorCode::unavailable, fmt::format("the PJRT plugin {} returned no function table", name_));
  const int major = api_->version.major, minor_version = api_->version.minor;
  // 0.56 had a function in the middle of the table that no other version has.
  if (major != 0 || minor_version < kOldestMinor)
    throw Error(
        ErrorCode::unavailable,
        fmt::format("the PJRT plugin {} has interface version {}.{}, which is not supported", name_, major, minor_version),
        fmt::format("use a plugin of version 0.{} or newer", kOldestMinor));
  for (const Slot slot : {Slot::error_destroy, Slot::error_message, Slot::client_create, Slot::client_addressable_devices,
                          Slot::client_compile, Slot::buffer_from_host, Slot::loaded_execute, Slot::buffer_to_host})
    if (!has(slot))
      throw Error(ErrorCode::unavailable, fmt::format("the PJRT plugin {} does not have function {} of the interface", name_,
                                                      static_cast<std::size_t>(slot)));
}

bool Plugin::has(Slot slot) const noexcept {
  const std::size_t index = static_cast<std::size_t>(slot);
  return offsetof(Api, functions) + (index + 1) * sizeof(Function) <= api_->struct_size && function(slot) != nullptr;
}

void Plugin::call_raw(Slot slot, void* args) const {
  if (!has(slot))
    throw Error(ErrorCode::unimplemented, fmt::format("the PJRT plugin {} does not have function {} of the interface", name_,
                                                      static_cast<std::size_t>(slot)));
  if (RawError* error = function(slot)(args)) raise(error);
}

void Plugin::raise(RawError* error) const {
  auto message = make_args<ErrorMessageArgs>();
  message.error = error;
  // These two return nothing.
  function(Slot::error_message)(&message);
  const std::string text = bounded(message.message, message.message_size);
  ErrorCode code = ErrorCode::unknown;
  if (has(Slot::error_code)) {
    auto asked = make_args<ErrorCodeArgs>();
    asked.error = error;
    if (RawError* failed = function(Slot::error_code)(&asked))
      drop(failed);
    else
      code = error_code(asked.code);
  }
  drop(error);
  throw Error(code, text.empty() ? "the PJRT plugin failed without a message" : text);
}

void Plugin::drop(RawError* error) const noexcept {
  if (!error) return;
  auto args = make_args<ErrorDestroyArgs>();
  args.error = error;
  function(Slot::error_destroy)(&args);
}

void Plugin::await(RawEvent* event) const {
  if (!event) return;
  struct Destroyer {
    const Plugin& plugin;
    RawEvent* event;
    ~Destroyer() { plugin.destroy(event); }
  } destroyer{*this, event};
  auto args = make_args<EventArgs>();
  args.event = event;
  call(Slot::event_await, args);
}

void Plugin::destroy(RawEvent* event) const noexcept {
  if (!event) return;
  auto args = make_args<EventArgs>();
  args.event = event;
  call_quietly(Slot::event_destroy, args);
}

std::map<std::string, std::string> Plugin::attributes() const {
  std::map<std::string, std::string> all;
  if (!has(Slot::plugin_attributes)) return all;
  auto args = make_args<AttributesArgs>();
  if (RawError* error = function(Slot::plugin_attributes)(&args)) {
    drop(error);
    return all;
  }
  for (std::size_t i = 0; i < args.count; ++i) {
    const NamedValue& value = args.attributes[i];
    const std::string name(value.name, value.name_size);
    switch (value.type) {
      case ValueType::text: all[name] = bounded(value.value.text, value.value_size); break;
      case ValueType::integer: all[name] = fmt::format("{}", value.value.integer); break;
      case ValueType::integers:
        all[name] = fmt::format("{}", fmt::join(value.value.integers, value.value.integers + value.value_size, "."));
        break;
      case ValueType::real: all[name] = fmt::format("{}", value.value.real); break;
      case ValueType::boolean: all[name] = value.value.boolean ? "true" : "false"; break;
    }
  }
  return all;
}

}  // namespace tenon::pjrt
