// ProfileStore: the profile of this machine, shared by its processes through one small file.
//
// Records are visible at once in this process, and to others when they are written: at the end of the process, on flush(), and
// every half minute. Writing reads the file again, merges the new records, and replaces the file atomically under a lock, so
// concurrent writers lose nothing and readers never see a partial file. A damaged file is ignored and replaced. If the file
// cannot be written, the profile lives as long as the process.
//
// Lifetime: the destructor writes the rest. A child of fork() writes nothing. Thread safety: all functions may be called from any
// thread; recording never waits for other processes, flush() may wait briefly.
//
//   std::shared_ptr<ProfileStore> store = ProfileStore::of_process();
//   store->record_run(device, work_of(graph), false, timeline);
//   Stages stages = store->predict(candidate, work_of(graph));
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/threads/fork_mutex.h"
#include "manager/routing/profile.h"

namespace tenon {

class ProfileStore {
 public:
  // The store in the state directory (base/system/state_directory.h); one per process, written when it ends.
  static std::shared_ptr<ProfileStore> of_process();
  // "" keeps nothing between processes.
  explicit ProfileStore(std::string file);
  ~ProfileStore();
  ProfileStore(const ProfileStore&) = delete;
  ProfileStore& operator=(const ProfileStore&) = delete;

  void record_open(const DeviceInfo& device, double seconds);
  void record_close(const DeviceInfo& device, double seconds);
  void record_hold(const DeviceInfo& device, double seconds);
  void record_run(const DeviceInfo& device, const Work& work, bool was_compiled, const Timeline& timeline);
  // False for most runs of a process with thousands of runs in the last half minute, because more of the same add little.
  bool wants_run() noexcept { return !is_full_.load(std::memory_order_relaxed) || ++passed_over_ % 64 == 0; }

  Stages predict(const Candidate& candidate, const Work& work) const;
  Latency latency(const DeviceInfo& device, const Latency& declared) const;
  Profile profile() const;

  // False if nothing could be written.
  bool flush() noexcept;
  const std::string& file() const noexcept { return file_; }

 private:
  // A record to add to a profile. Small, because a busy process creates many.
  struct Change {
    enum class Kind : std::uint8_t { open, close, hold, run };
    Kind kind{};
    std::shared_ptr<const DeviceKey> device;
    std::int64_t when = 0;
    double seconds = 0;
    Work work = {};
    RunTimes times = {};
    void apply(Profile& profile) const;
  };

  void record(const DeviceInfo& device, Change change);
  const std::shared_ptr<const DeviceKey>& key_of(const DeviceInfo& device);
  void read_once() const;
  bool write(std::chrono::milliseconds patience);

  const std::string file_;
  const pid_t process_;
  mutable ForkMutex mutex_;
  mutable bool was_read_ = false;
  mutable Profile profile_;
  std::vector<Change> pending_;  // made here since the file was last written
  std::atomic<bool> is_full_{false};
  std::atomic<unsigned> passed_over_{0};
  std::chrono::steady_clock::time_point written_;
  struct Known {
    std::string id, name;
    std::map<std::string, std::string> details;
    std::shared_ptr<const DeviceKey> key;
  };
  std::vector<Known> known_;
};

}  // namespace tenon
