// KernelCache: an on-disk cache of compiled kernels, shared between processes.
//
// The key of an entry covers source, options, compiler and device. Entries are files in one folder, written to a temporary file
// and renamed into place, so that readers never see a partial entry. Each has its key and a checksum; an entry that does not
// match is deleted and counts as absent. The folder is bounded: beyond its limit, least recently used entries are evicted. Any
// number of processes may share it without locks. A cache that cannot work (no home directory, no space, a folder that others can
// write to) finds nothing and stores nothing; it never throws. Thread safety: all calls may run concurrently.
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

  // Creates the folder (readable only by this user) when something is first stored. "" disables the cache.
  explicit KernelCache(std::string folder, std::uint64_t max_bytes = kDefaultBytes);

  // In $TENON_CACHE_DIR, else $XDG_CACHE_HOME/tenon, else ~/.cache/tenon. An empty TENON_CACHE_DIR disables it.
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
