// SystemRoot: the files and the environment of a machine, as detectors see them.
//
// Detectors read the machine only through this class, so that a folder of ordinary files can stand in for any machine. Paths are
// those of the machine itself ("/sys/bus/pci/devices"). Reading never throws, never blocks and never opens a device node: only
// regular files are opened, and a file that cannot be read counts as missing.
// Thread safety: all calls may run concurrently.
//
//   SystemRoot machine;                                     // this machine
//   SystemRoot other({.root = "tests/fixtures/n300"});      // a folder with sys/, proc/, dev/
//   if (auto version = other.line("/sys/module/tenstorrent/version")) ...
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
  // Another machine, made of files in a folder.
  struct StandIn {
    std::filesystem::path root;
    std::map<std::string, std::string> environment;
    std::vector<std::string> denied;  // paths that this process may not read and write
    std::optional<int> affinity;      // number of cores this process may run on; default: all online cores
  };

  // The machine this process runs on, with the process's environment.
  SystemRoot() = default;
  explicit SystemRoot(StandIn machine);

  // True for the real machine. Only then may detectors load libraries and run programs.
  bool is_this_machine() const noexcept { return !stand_in_; }
  const std::filesystem::path& path() const noexcept { return root_; }
  std::optional<int> affinity() const { return stand_in_ ? stand_in_->affinity : std::nullopt; }

  bool exists(std::string_view path) const noexcept;
  bool is_folder(std::string_view path) const noexcept;
  // Whether this process may read and write |path|; false if it does not exist.
  bool may_use(std::string_view path) const noexcept;

  // The content, truncated to |max_bytes|; nullopt if |path| is not a regular file or cannot be read.
  std::optional<std::string> read(std::string_view path, std::size_t max_bytes = 1 << 16) const noexcept;
  // The first line without surrounding space and control characters; nullopt if it is empty or not text.
  std::optional<std::string> line(std::string_view path) const noexcept;
  // The first line as a number, decimal or with a 0x prefix; nullopt if it is not a number.
  std::optional<std::int64_t> number(std::string_view path) const noexcept;
  // Names in a folder, in natural order ("cpu2" before "cpu10").
  std::vector<std::string> list(std::string_view path) const noexcept;
  // The target of a symbolic link, as stored in the link.
  std::optional<std::string> link(std::string_view path) const noexcept;
  // The last component of a link's target: the name of the driver, group or card that it points to.
  std::optional<std::string> link_name(std::string_view path) const noexcept;

  // "" when unset.
  std::string environment(std::string_view name) const;

 private:
  std::filesystem::path real(std::string_view path) const;

  std::filesystem::path root_ = "/";
  std::optional<StandIn> stand_in_;
};

}  // namespace tenon
