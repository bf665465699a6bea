// RunDirectory: where the processes of a machine meet to share its devices.
//
// It is $TENON_RUN_DIR, else /run/tenon, else $XDG_RUNTIME_DIR/tenon; never a directory under /tmp that nobody asked for. Whoever
// may write there may queue for devices, so it is looked at before it is used: a symbolic link, a directory of another user (root
// excepted) and one that everybody may write to are refused with the reason and the remedy. A group may share it: then files in
// it belong to the directory's group and its members trust each other.
//
// A /run/tenon that exists but may not be used is an error, not a reason to go elsewhere: processes that meet in different places
// do not exclude each other.
//
// Lifetime: a value; copies share one descriptor. Thread safety: const calls may run side by side.
//
//   RunDirectory directory = RunDirectory::open();
//   FileDescriptor file = directory.open_file("cpu:0.turnstile");
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace tenon {

class RunDirectory {
 public:
  using Environment = std::function<std::string(const char*)>;  // "" when unset
  static std::string process_environment(const char* name);

  // The machine's run directory, made if it is missing (its parent must exist): 0700, except that root makes /run/tenon for the
  // group tenon (2770) where there is such a group. Throws permission_denied, failed_precondition or not_found.
  static RunDirectory open(const Environment& environment = process_environment);
  // The same without making it: nothing when it is missing. For those who only look.
  static std::optional<RunDirectory> open_existing(const Environment& environment = process_environment);
  // This directory, checked; made with 0700 if it is missing.
  static RunDirectory at(const std::string& path);

  // Absolute.
  const std::string& path() const noexcept { return path_; }

  // A file for reading and writing, made empty if it is missing: 0660 of the directory's group where that may write, else 0600.
  // Never follows a link; refuses what is no regular file, has further names, everybody may write to, or belongs to somebody not
  // trusted.
  FileDescriptor open_file(const std::string& name) const;
  // For reading only; nothing when it is missing.
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
