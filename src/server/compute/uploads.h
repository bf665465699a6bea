// UploadStore and ResultStore: arrays that clients sent and may use in requests, and results that wait to be fetched.
//
// Both are in memory, bounded by a quota, and forget what was not used for a while. An id is random and cannot be guessed;
// whoever knows it may use it. Thread safety: all calls may run side by side.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "server/compute/memory_gate.h"
#include "tenon/array.h"
#include "tenon/io.h"

namespace tenon::server {

using Clock = std::chrono::steady_clock;

// |prefix| and 128 random bits: "u_9f2c...".
std::string random_id(std::string_view prefix);

struct Upload {
  std::string id, name, owner;
  std::uint64_t bytes = 0;
  ArrayFile file;  // a .npy is one array without a name
  Clock::time_point used;
};

class UploadStore {
 public:
  UploadStore(MemoryGate& gate, std::uint64_t quota_bytes, std::chrono::seconds lifetime)
      : gate_(gate),
        quota_bytes_(quota_bytes),
        lifetime_(lifetime) {}

  // Reads a .npy or safetensors file. Throws invalid_argument; Problem 429 beyond the quota of its owner.
  Upload add(const std::string& owner, const std::string& name, std::string_view bytes);
  // Throws not_found.
  HostArray load(const std::string& id, const std::string& tensor);
  Upload get(const std::string& id);
  void remove(const std::string& id);

  std::vector<Upload> of_owner(const std::string& owner) const;
  std::uint64_t quota_bytes() const noexcept { return quota_bytes_; }
  double seconds_left(const Upload& upload) const;
  void expire(Clock::time_point now);

 private:
  struct Entry {
    Upload upload;
    MemoryGate::Share memory;
  };
  Entry& find(const std::string& id);

  MemoryGate& gate_;
  const std::uint64_t quota_bytes_;
  const std::chrono::seconds lifetime_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> uploads_;
};

// The results of a computation, in its order.
struct KeptResults {
  std::vector<HostArray> arrays;
  std::vector<std::string> names;
};

class ResultStore {
 public:
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;  // the oldest go first

  explicit ResultStore(std::chrono::seconds lifetime) : lifetime_(lifetime) {}

  // The id under which they are kept; "" when they are too large to keep.
  std::string keep(KeptResults results, MemoryGate::Share memory);
  // Throws not_found.
  KeptResults get(const std::string& id) const;
  void expire(Clock::time_point now);

 private:
  struct Entry {
    KeptResults results;
    std::uint64_t bytes = 0;
    MemoryGate::Share memory;
    Clock::time_point made;
  };
  const std::chrono::seconds lifetime_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> results_;
  std::uint64_t bytes_ = 0;
};

}  // namespace tenon::server
