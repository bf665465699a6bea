// UploadStore and ResultStore: arrays that clients sent and may use in requests, and results that wait to be fetched.
//
// Both are in memory, count in the MemoryGate, and forget what was not used for a while. All uploads together have at most half
// of the gate and all results an eighth, so that what only lies there never stops the computing. An id is random and cannot be
// guessed; whoever knows it may use it. Thread safety: all calls may run side by side.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/compute/memory/hoard.h"
#include "server/compute/memory/memory_gate.h"
#include "tenon/array.h"
#include "tenon/array/io.h"

namespace tenon::server {

using Clock = std::chrono::steady_clock;

// |prefix| and 128 random bits: "u_9f2c...".
std::string random_id(std::string_view prefix);

struct Upload {
  std::string id, name, owner;
  std::uint64_t bytes = 0;
  std::shared_ptr<const ArrayFile> file;  // a .npy or CSV file is one array without a name
  Clock::time_point used;
};

// What a file of tensors will take, known before it is read.
struct FileSize {
  static constexpr std::size_t kMaxTensors = 65536;
  static constexpr std::uint64_t kTensorBytes = 512;  // of a tensor without its elements

  std::uint64_t bytes = 0;          // of its tensors, or more
  std::uint64_t reading_bytes = 0;  // besides, while it is read
  std::size_t tensors = 1;

  // Throws Problem 413 for more than kMaxTensors.
  static FileSize of(std::string_view bytes);
};

class UploadStore {
 public:
  static constexpr std::size_t kMaxOfOwner = 1000;

  UploadStore(MemoryGate& gate, std::uint64_t quota_bytes, std::chrono::seconds lifetime)
      : gate_(gate),
        quota_bytes_(quota_bytes),
        lifetime_(lifetime) {}

  // Reads a .npy, .npz, safetensors or CSV file. A file that is refused leaves nothing. Throws invalid_argument; Problem 413 for
  // too many tensors, 429 beyond the quota of its owner, and what |memory| throws.
  Upload add(const std::string& owner, const ClientMemory& memory, const std::string& name, std::string_view bytes);
  struct Loaded {
    HostArray array;
    std::shared_ptr<const MemoryGate::Share> memory;  // held as long as the array is used, also when the upload is deleted
  };
  // Throws not_found.
  Loaded load(const std::string& id, const std::string& tensor);
  Upload get(const std::string& id);
  void remove(const std::string& id);

  std::vector<Upload> of_owner(const std::string& owner) const;
  std::uint64_t quota_bytes() const noexcept { return quota_bytes_; }
  double seconds_left(const Upload& upload) const;
  void expire(Clock::time_point now);

 private:
  struct Entry {
    Upload upload;
    std::string client;  // whose quota it is in
    std::uint64_t reserved_bytes = 0;
    std::shared_ptr<const MemoryGate::Share> memory;
  };
  struct Total {
    std::uint64_t bytes = 0;
    std::size_t count = 0;
  };
  Entry& find(const std::string& id);
  void reserve(const std::string& client, std::uint64_t bytes);
  void forget(const std::string& client, std::uint64_t bytes) noexcept;  // with mutex_ held

  MemoryGate& gate_;
  const std::uint64_t quota_bytes_;
  const std::chrono::seconds lifetime_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> uploads_;
  std::map<std::string, Total> totals_;  // by client, those being read included
  std::uint64_t bytes_ = 0;
};

// The results of a computation, in its order.
struct KeptResults {
  std::vector<HostArray> arrays;
  std::vector<std::string> names;
};

class ResultStore {
 public:
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
  static constexpr std::size_t kMaxResults = 1000;

  ResultStore(MemoryGate& gate, std::chrono::seconds lifetime);

  // The id under which they are kept; "" when there is no room for them. What must go for it is the oldest of whoever has most.
  std::string keep(const std::string& client, KeptResults results);
  // Throws not_found.
  KeptResults get(const std::string& id) const;
  void expire(Clock::time_point now);

 private:
  struct Entry {
    KeptResults results;
    MemoryGate::Share memory;
    Clock::time_point made;
  };
  void erase(const std::string& id);  // with mutex_ held

  MemoryGate& gate_;
  const std::chrono::seconds lifetime_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> results_;
  Hoard held_;
};

}  // namespace tenon::server
