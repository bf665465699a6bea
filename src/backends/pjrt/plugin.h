// Plugin: a PJRT plugin loaded into this process, and calls into it.
//
// Lifetime: a plugin is loaded and initialised once and stays loaded until the process ends. Thread safety: all calls may run
// concurrently.
//
//   const Plugin& plugin = Plugin::load("/opt/plugins/xla_cpu_pjrt.so");
//   auto args = make_args<ClientCreateArgs>();
//   plugin.call(Slot::client_create, args);
#pragma once

#include <map>
#include <string>

#include "backends/pjrt/api.h"

namespace tenon::pjrt {

class Plugin {
 public:
  // Throws unavailable if it cannot be loaded, is not a PJRT plugin, or has an unsupported version.
  static const Plugin& load(const std::string& library);

  // Wraps the table of a plugin that is already loaded; |name| is for messages. Throws like load().
  Plugin(std::string name, const Api* api);

  const std::string& name() const noexcept { return name_; }
  int minor() const noexcept { return api_->version.minor; }

  // Whether the plugin has the function, which may still answer unimplemented.
  bool has(Slot slot) const noexcept;

  // Calls the function and throws the plugin's error with its code; unimplemented if the plugin lacks the function.
  template <class Args>
  void call(Slot slot, Args& args) const {
    call_raw(slot, &args);
  }
  // For clean-up: ignores errors.
  template <class Args>
  void call_quietly(Slot slot, Args& args) const noexcept {
    if (has(slot)) drop(function(slot)(&args));
  }

  // Waits for |event|, destroys it and throws its error. Null is an event that has already happened.
  void await(RawEvent* event) const;
  void destroy(RawEvent* event) const noexcept;

  // Attributes reported by the plugin: "xla_version", "stablehlo_current_version".
  std::map<std::string, std::string> attributes() const;

 private:
  using Function = RawError* (*)(void*);
  Function function(Slot slot) const noexcept { return api_->functions[static_cast<std::size_t>(slot)]; }
  void call_raw(Slot slot, void* args) const;
  [[noreturn]] void raise(RawError* error) const;
  void drop(RawError* error) const noexcept;

  std::string name_;
  const Api* api_;
};

}  // namespace tenon::pjrt
