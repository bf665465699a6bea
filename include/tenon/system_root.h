// SystemRoot: the files and the environment of a machine, as detectors see them.
//
// Every question about the machine is asked through one of these, so that a folder of ordinary files can stand for any
// machine. Paths are written as on the machine itself ("/sys/bus/pci/devices"). Reading never throws, never blocks and never
// opens a device node: only regular files are opened, whatever the path; what cannot be read is not there. Thread safety: all
// calls may run side by side.
//
//   SystemRoot machine;                                     // this machine
//   SystemRoot imagined({.root = "tests/fixtures/n300"});   // a folder with sys/, proc/, dev/
//   if (auto version = imagined.line("/sys/module/tenstorrent/version")) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

class SystemRoot {
 public:
  struct Imagined {
    std::filesystem::path root;
    std::map<std::string, std::string> environment;
    std::vector<std::string> denied;  // paths this process may not read and write
    std::optional<int> affinity;      // cores this process may run on; without it all that are online
  };

  // The machine this process runs on, with the process's environment.
  SystemRoot() = default;
  explicit SystemRoot(Imagined imagined);

  // True for the machine itself: only then may libraries be loaded and programs be run to ask them.
  bool is_this_machine() const noexcept { return !imagined_; }
  const std::filesystem::path& path() const noexcept { return root_; }
  std::optional<int> affinity() const { return imagined_ ? imagined_->affinity : std::nullopt; }

  bool exists(std::string_view path) const noexcept;
  bool is_folder(std::string_view path) const noexcept;
  // Whether this process may read and write |path|; false when it is not there.
  bool may_use(std::string_view path) const noexcept;

  // The content, cut after |max_bytes|. Nothing when there is no regular file or it cannot be read.
  std::optional<std::string> read(std::string_view path, std::size_t max_bytes = 1 << 16) const noexcept;
  // The first line without surrounding space and control characters; nothing when that is empty or not text.
  std::optional<std::string> line(std::string_view path) const noexcept;
  // The first line as a number, decimal or with 0x in front; nothing when it is anything else.
  std::optional<std::int64_t> number(std::string_view path) const noexcept;
  // Names in a folder, in natural order ("cpu2" before "cpu10").
  std::vector<std::string> list(std::string_view path) const noexcept;
  // What a symbolic link says, as it stands in the link.
  std::optional<std::string> link(std::string_view path) const noexcept;
  // The last part of what a link says: the name of the driver, the group, the card it leads to.
  std::optional<std::string> link_name(std::string_view path) const noexcept;

  // "" when unset.
  std::string environment(std::string_view name) const;

 private:
  std::filesystem::path real(std::string_view path) const;

  std::filesystem::path root_ = "/";
  std::optional<Imagined> imagined_;
};

}  // namespace tenon
