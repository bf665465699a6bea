#include "base/system/dynamic_library.h"

#include <dlfcn.h>

namespace tenon {

DynamicLibrary DynamicLibrary::load(std::span<const std::string> names) {
  DynamicLibrary library;
  for (const std::string& name : names) {
    library.handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    library.name_ = name;
    if (library.handle_) {
      library.error_.clear();
      return library;
    }
    // Report the error of the first name, which should have worked; the others are fallbacks.
    const char* error = dlerror();
    if (library.error_.empty()) library.error_ = error ? error : "cannot load " + name;
  }
  return library;
}

void* DynamicLibrary::address(const char* symbol) const noexcept { return handle_ ? dlsym(handle_, symbol) : nullptr; }

}  // namespace tenon
