// Plugin: a PJRT plugin loaded into this process, and calls into it.
//
// Lifetime: a plugin is loaded and initialised once and stays until the process ends. Thread safety: all calls may run side by
// side.
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
  // Throws unavailable when it cannot be loaded, is no PJRT plugin, or speaks a version that does not fit.
  static const Plugin& load(const std::string& library);

  // The table of a plugin that is there already; |name| is for messages. Throws as load() does.
  Plugin(std::string name, const Api* api);

  const std::string& name() const noexcept { return name_; }
  int minor() const noexcept { return api_->version.minor; }

  // Whether the plugin has the function. One it has may still answer unimplemented.
  bool has(Slot slot) const noexcept;

  // Calls, and throws the plugin's error with its own code; unimplemented when it lacks the function.
  template <class Args>
  void call(Slot slot, Args& args) const {
    call_raw(slot, &args);
  }
  // For clean-up: what goes wrong is dropped.
  template <class Args>
  void call_quietly(Slot slot, Args& args) const noexcept {
    if (has(slot)) drop(function(slot)(&args));
  }

  // Waits for |event|, destroys it and throws what it failed with. Null is an event that has happened.
  void await(RawEvent* event) const;
  void destroy(RawEvent* event) const noexcept;

  // What the plugin says about itself: "xla_version", "stablehlo_current_version".
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
