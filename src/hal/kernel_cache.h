// KernelCache: compiled kernels kept on disk between processes.
//
// An entry is found by everything that went into it: source, options, compiler, device. Entries are files of one folder, written
// beside their place and renamed into it, so that readers never see half of one; each carries its key and a checksum, and one
// that does not match is deleted and counts as absent. The folder is bounded: when it grows past its limit, what was not used
// longest goes. Any number of processes may share it without locks. A cache that cannot work (no home, no space, a folder others
// may write to) finds nothing and stores nothing; it never throws. Thread safety: all calls may run side by side.
//
//   if (auto binary = cache.find(key)) load(*binary);
//   else cache.store(key, compile());
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon {

struct KernelKey {
  std::string source;
  std::string options;
  std::string compiler;  // name and version
  std::string device;    // what the binary runs on: architecture, driver
};

class KernelCache {
 public:
  static constexpr std::uint64_t kDefaultBytes = std::uint64_t{256} << 20;

  // Makes the folder (readable by this user alone) when something is first stored. "" never finds anything.
  explicit KernelCache(std::string folder, std::uint64_t max_bytes = kDefaultBytes);

  // In $TENON_CACHE_DIR, else $XDG_CACHE_HOME/tenon, else ~/.cache/tenon. TENON_CACHE_DIR set to nothing turns it off.
  static KernelCache& process();

  std::optional<std::vector<std::byte>> find(const KernelKey& key) const noexcept;
  void store(const KernelKey& key, std::span<const std::byte> binary) const noexcept;

  const std::string& folder() const noexcept { return folder_; }
  std::uint64_t bytes() const noexcept;  // of all entries now

 private:
  void make_room(std::uint64_t limit) const;

  std::string folder_;
  std::uint64_t max_bytes_;
  mutable std::atomic<std::uint64_t> written_;  // since the folder was last measured
};

}  // namespace tenon
