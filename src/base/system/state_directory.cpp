#include "base/system/state_directory.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tenon/error.h"

namespace tenon {
namespace {

std::string process_variable_or_nothing(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::string state_directory(const std::function<std::string(const char*)>& environment) {
  if (const std::string own = environment("TENON_STATE_DIR"); !own.empty()) return own;
  if (const std::string xdg = environment("XDG_STATE_HOME"); xdg.starts_with('/')) return xdg + "/tenon";
  if (const std::string home = environment("HOME"); home.starts_with('/')) return home + "/.local/state/tenon";
  return "";
}

std::string state_directory() { return state_directory(process_variable_or_nothing); }

void make_private_directory(const std::string& path) {
  std::string sofar;
  for (const std::filesystem::path& part : std::filesystem::path(path)) {
    sofar = sofar.empty() ? part.string() : (std::filesystem::path(sofar) / part).string();
    if (mkdir(sofar.c_str(), 0700) == 0 || errno == EEXIST || errno == EISDIR) continue;
    // An existing parent folder may refuse mkdir without being an obstacle.
    struct stat status{};
    if (const int reason = errno; stat(sofar.c_str(), &status) != 0)
      throw Error(reason == EACCES || reason == EPERM || reason == EROFS ? ErrorCode::permission_denied : ErrorCode::unavailable,
                  fmt::format("cannot create the folder {}: {}", sofar, std::strerror(reason)),
                  "set TENON_STATE_DIR to a folder that this user can write to");
  }
  struct stat status{};
  if (stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    throw Error(ErrorCode::unavailable, fmt::format("{} is not a folder", path),
                "set TENON_STATE_DIR to a folder that this user can write to");
}

}  // namespace tenon
