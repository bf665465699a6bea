// RunDirectory: the directory through which the processes of a machine share its devices.
//
// It is $TENON_RUN_DIR, else /run/tenon, else $XDG_RUNTIME_DIR/tenon; never an implicit directory under /tmp. Users who can write
// to it can queue for devices, so it is checked before use: a symbolic link, a directory of another user (except root) and a
// world-writable directory are refused with the reason and the remedy. A group may share it: its files then belong to the
// directory's group, whose members trust each other.
//
// A /run/tenon that exists but cannot be used is an error without a fallback: processes that use different directories do not
// exclude each other.
//
// Lifetime: a value; copies share one descriptor. Thread safety: const calls may run concurrently.
//
//   RunDirectory directory = RunDirectory::open();
//   FileDescriptor file = directory.open_file("cpu:0.turnstile");
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system/file_descriptor.h"

namespace tenon {

class RunDirectory {
 public:
  using Environment = std::function<std::string(const char*)>;  // "" if unset
  static std::string process_environment(const char* name);

  // The machine's run directory, created if it is missing (its parent must exist): 0700, except that root creates /run/tenon for
  // the group tenon (2770) if that group exists. Throws permission_denied, failed_precondition or not_found.
  static RunDirectory open(const Environment& environment = process_environment);
  // The same without creating it: nullopt if it is missing. For read-only callers.
  static std::optional<RunDirectory> open_existing(const Environment& environment = process_environment);
  // This directory, checked; created with 0700 if it is missing.
  static RunDirectory at(const std::string& path);

  // Absolute.
  const std::string& path() const noexcept { return path_; }

  // A file for reading and writing, created empty if it is missing: 0660 with the directory's group if the group can write, else
  // 0600. Never follows a link; refuses files that are not regular, have several hard links, are world-writable, or belong to an
  // untrusted user.
  FileDescriptor open_file(const std::string& name) const;
  // For reading only; nullopt if it is missing.
  std::optional<FileDescriptor> open_file_to_read(const std::string& name) const;
  // Names of the files that end with |suffix|, sorted.
  std::vector<std::string> files(const std::string& suffix) const;

 private:
  RunDirectory(std::string path, FileDescriptor fd);
  FileDescriptor make_file(const std::string& name) const;
  void check_file(int fd, const std::string& name) const;

  std::string path_;
  std::shared_ptr<const FileDescriptor> fd_;
  unsigned owner_ = 0, group_ = 0;
  bool is_group_shared_ = false;
};

}  // namespace tenon
