#include "hal/worker/worker.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "tenon/error.h"

namespace tenon {
namespace {

std::string folder_of(const std::string& file) {
  const std::size_t slash = file.find_last_of('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

// The folder of the executable, and of the library this function is in.
std::vector<std::string> own_folders() {
  std::vector<std::string> folders;
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size > 0) folders.push_back(folder_of(std::string(path, static_cast<std::size_t>(size))));
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(&worker_program), &library) && library.dli_fname && realpath(library.dli_fname, path))
    folders.push_back(folder_of(path));
  return folders;
}

}  // namespace

std::string worker_program() { return worker_file("tenon-worker", "TENON_WORKER"); }

std::string worker_file(const char* name, const char* variable) {
  if (const char* named = std::getenv(variable); named && *named) {
    if (access(named, X_OK) == 0) return named;
    throw Error(ErrorCode::unavailable, fmt::format("{} is {}, which is not executable", variable, named));
  }
  std::string tried;
  for (const std::string& folder : own_folders())
    for (const std::string& place : {folder, folder + "/../libexec/tenon", folder + "/../../libexec/tenon"}) {
      std::string file = fmt::format("{}/{}", place, name);
      if (access(file.c_str(), X_OK) == 0) return file;
      tried += (tried.empty() ? "" : ", ") + place;
    }
  throw Error(ErrorCode::unavailable, fmt::format("{} does not exist in {}", name, tried),
              fmt::format("install it with Tenon, or set {} to its path", variable));
}

}  // namespace tenon
