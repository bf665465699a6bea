// DynamicLibrary: a shared library loaded at run time and never unloaded.
//
// Vendor libraries start threads and register exit handlers, so unloading one is never safe. A handle is a plain value that can
// be copied and destroyed. Thread safety: all calls may run concurrently.
//
//   if (const DynamicLibrary nvml = DynamicLibrary::load(names))
//     if (auto* init = nvml.function<int()>("nvmlInit_v2")) init();
#pragma once

#include <span>
#include <string>

namespace tenon {

class DynamicLibrary {
 public:
  // Loads the first of |names| (file names for the loader, or paths) that can be loaded. If none can, error() gives the reason.
  static DynamicLibrary load(std::span<const std::string> names);

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  const std::string& name() const noexcept { return name_; }
  const std::string& error() const noexcept { return error_; }

  // nullptr if the library has no such symbol or is not loaded.
  template <class Signature>
  Signature* function(const char* symbol) const noexcept {
    return reinterpret_cast<Signature*>(address(symbol));
  }

 private:
  void* address(const char* symbol) const noexcept;

  void* handle_ = nullptr;
  std::string name_;
  std::string error_;
};

}  // namespace tenon
