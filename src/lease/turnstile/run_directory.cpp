#include "lease/turnstile/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr const char* kSystemDirectory = "/run/tenon";
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

ErrorCode code_of(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS: return ErrorCode::permission_denied;
    case ENOENT: return ErrorCode::not_found;
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT: return ErrorCode::resource_exhausted;
    default: return ErrorCode::unknown;
  }
}

[[noreturn]] void fail(int error, const std::string& what, const std::string& hint = {}) {
  throw Error(code_of(error), fmt::format("{}: {}", what, std::strerror(error)), hint);
}

[[noreturn]] void refuse(const std::string& what, const std::string& remedy) {
  throw Error(ErrorCode::failed_precondition, what, remedy);
}

bool exists(const std::string& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0;
}

bool is_trusted(uid_t owner) { return owner == 0 || owner == geteuid(); }

// Several may start at once: the one that comes second finds it made.
void make_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0) {
    if (errno == EEXIST) return;
    fail(errno, fmt::format("cannot create the run directory {}", path), "set TENON_RUN_DIR to a directory that you own");
  }
  if (path != kSystemDirectory) return;
  const group* members = getgrnam("tenon");
  if (members == nullptr) {
    // Once: it exists from now on.
    logging::warn(
        "made {} for root alone, because there is no group tenon: other users cannot use accelerators until it is removed; to "
        "share them: groupadd --system tenon && chgrp tenon {} && chmod 2770 {}, then add the users to the group",
        path, path, path);
    return;
  }
  if (chown(path.c_str(), static_cast<uid_t>(-1), members->gr_gid) == 0 && chmod(path.c_str(), 02770) == 0) return;
  fail(errno, fmt::format("cannot change the group of {} to tenon", path));
}

// The directory to use; empty when none is named by the environment or made by the administrator.
std::string choose(const RunDirectory::Environment& environment) {
  if (std::string given = environment("TENON_RUN_DIR"); !given.empty()) return given;
  if (exists(kSystemDirectory) || geteuid() == 0) return kSystemDirectory;
  if (std::string runtime = environment("XDG_RUNTIME_DIR"); !runtime.empty()) return runtime + "/tenon";
  return {};
}

}  // namespace

std::string RunDirectory::process_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

RunDirectory RunDirectory::open(const Environment& environment) {
  const std::string path = choose(environment);
  if (path.empty())
    throw Error(ErrorCode::failed_precondition, "no run directory: neither /run/tenon nor XDG_RUNTIME_DIR exists",
                "ask the administrator to create /run/tenon, or set TENON_RUN_DIR to a directory that you own");
  return at(path);
}

std::optional<RunDirectory> RunDirectory::open_existing(const Environment& environment) {
  const std::string path = choose(environment);
  if (path.empty() || !exists(path)) return std::nullopt;
  return at(path);
}

RunDirectory RunDirectory::at(const std::string& path) {
  std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  // With a slash at the end O_NOFOLLOW would follow a link.
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  FileDescriptor fd(::open(absolute.c_str(), kDirectoryFlags));
  if (!fd && errno == ENOENT) {
    make_directory(absolute);
    fd = FileDescriptor(::open(absolute.c_str(), kDirectoryFlags));
  }
  if (!fd) {
    const int error = errno;
    struct stat info{};
    if (lstat(absolute.c_str(), &info) == 0 && S_ISLNK(info.st_mode))
      refuse(fmt::format("the run directory {} is a symbolic link", absolute), "set TENON_RUN_DIR to the directory itself");
    if (error == ENOTDIR) refuse(fmt::format("{} is no directory", absolute), "set TENON_RUN_DIR to a directory");
    fail(error, fmt::format("cannot open the run directory {}", absolute),
         error == EACCES ? "join the group that owns it, or set TENON_RUN_DIR to a directory that you own" : "");
  }
  return RunDirectory(std::move(absolute), std::move(fd));
}

RunDirectory::RunDirectory(std::string path, FileDescriptor fd)
    : path_(std::move(path)),
      fd_(std::make_shared<const FileDescriptor>(std::move(fd))) {
  struct stat info{};
  if (fstat(fd_->get(), &info) != 0) fail(errno, fmt::format("cannot read the state of {}", path_));
  if (!is_trusted(info.st_uid))
    refuse(fmt::format("the run directory {} belongs to user {}, not to you or root", path_, info.st_uid),
           "set TENON_RUN_DIR to a directory that you own, or ask the administrator to create /run/tenon");
  if ((info.st_mode & S_IWOTH) != 0)
    refuse(fmt::format("the run directory {} is world-writable", path_), fmt::format("chmod o-w {}", path_));
  owner_ = info.st_uid;
  group_ = info.st_gid;
  is_group_shared_ = (info.st_mode & S_IWGRP) != 0;
}

void RunDirectory::check_file(int fd, const std::string& name) const {
  struct stat info{};
  const std::string path = path_ + "/" + name;
  if (fstat(fd, &info) != 0) fail(errno, fmt::format("cannot read the state of {}", path));
  const std::string remedy = fmt::format("find out what created it, then remove it while the device is not in use: rm {}", path);
  if (!S_ISREG(info.st_mode)) refuse(fmt::format("{} is no regular file", path), remedy);
  if (info.st_nlink > 1) refuse(fmt::format("{} has further names", path), remedy);
  if ((info.st_mode & S_IWOTH) != 0) refuse(fmt::format("{} is world-writable", path), fmt::format("chmod o-w {}", path));
  // Where a group shares the directory, any member may have come first.
  if (!is_group_shared_ && !is_trusted(info.st_uid))
    refuse(fmt::format("{} belongs to user {}, neither to you nor to root", path, info.st_uid), remedy);
}

FileDescriptor RunDirectory::make_file(const std::string& name) const {
  // Made under a passing name and renamed when its group and mode are right: nobody ever meets it half made.
  const std::string passing = fmt::format(".{}.{}.{}", name, getpid(), gettid());
  FileDescriptor fd(openat(fd_->get(), passing.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd)
    fail(errno, fmt::format("cannot create {}/{}", path_, name),
         errno == EACCES ? "join the group that owns the directory, or set TENON_RUN_DIR to a directory that you own" : "");
  if (is_group_shared_ && (fchown(fd.get(), static_cast<uid_t>(-1), group_) != 0 || fchmod(fd.get(), 0660) != 0)) {
    const int error = errno;
    unlinkat(fd_->get(), passing.c_str(), 0);
    fail(error, fmt::format("cannot share {}/{} with the directory's group", path_, name),
         "join the group that owns the directory");
  }
  if (renameat2(fd_->get(), passing.c_str(), fd_->get(), name.c_str(), RENAME_NOREPLACE) == 0) return fd;
  const int error = errno;
  unlinkat(fd_->get(), passing.c_str(), 0);
  if (error != EEXIST) fail(error, fmt::format("cannot create {}/{}", path_, name));
  return FileDescriptor();
}

FileDescriptor RunDirectory::open_file(const std::string& name) const {
  for (;;) {
    FileDescriptor fd(openat(fd_->get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!fd && errno == ENOENT) {
      fd = make_file(name);
      if (!fd) continue;
    }
    if (!fd && errno == ELOOP)
      refuse(fmt::format("{}/{} is a symbolic link", path_, name), fmt::format("remove it: rm {}/{}", path_, name));
    if (!fd)
      fail(errno, fmt::format("cannot open {}/{}", path_, name), errno == EACCES ? "join the group that owns the directory" : "");
    check_file(fd.get(), name);
    return fd;
  }
}

std::optional<FileDescriptor> RunDirectory::open_file_to_read(const std::string& name) const {
  FileDescriptor fd(openat(fd_->get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) fail(errno, fmt::format("cannot open {}/{}", path_, name));
  check_file(fd.get(), name);
  return fd;
}

std::vector<std::string> RunDirectory::files(const std::string& suffix) const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.size() > suffix.size() && name.ends_with(suffix) && name[0] != '.') names.push_back(std::move(name));
  }
  if (error) fail(error.value(), fmt::format("cannot list {}", path_));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tenon
