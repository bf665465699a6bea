// Profile: what the devices of this machine have taken so far, and what they will take.
//
// For each device: opening and closing, transfers, compiling, and computing; for each program it ran: the last few times. A
// program that is new to a device is predicted from its bytes and operations with rates fitted to the others, starting from a
// guess for the kind of device. The guess is kind to accelerators: one that could be faster is tried, and then known.
//
// A value; bounded: kMaxDevices of kMaxPrograms, the least recently used ones go first. Thread safety: as for a container.
//
//   Profile profile;
//   profile.add_run(device, work_of(graph), RunTimes::of(timeline, false), now);
//   Stages stages = profile.predict(candidate, work);
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "manager/routing/time_model.h"
#include "tenon/graph.h"
#include "tenon/lease/device_status.h"
#include "tenon/manager/routing.h"

namespace tenon {

// What there is to do for one program, counted from its graph.
struct Work {
  GraphKey program;  // the graph's fingerprint, the same in every process: profiles are files of the user's own
  double bytes = 0, flops = 0;
  std::uint64_t upload_bytes = 0, download_bytes = 0;
};
Work work_of(const Graph& graph);

// A running mean in which the last eight or so values count.
class RecentMean {
 public:
  RecentMean() = default;
  RecentMean(double mean, double count) : mean_(mean), count_(count) {}
  void add(double value);
  double count() const noexcept { return count_; }
  double or_else(double otherwise) const noexcept { return count_ > 0 ? mean_ : otherwise; }
  double mean() const noexcept { return mean_; }
  friend bool operator==(const RecentMean&, const RecentMean&) = default;

 private:
  double mean_ = 0, count_ = 0;
};

struct ProgramProfile {
  static constexpr std::size_t kRuns = 4;
  std::array<double, kRuns> last_seconds{};  // of computing, newest first
  std::uint32_t runs = 0;
  double compile_seconds = 0;  // the last time it was compiled
  std::int64_t used = 0;       // seconds since 1970

  void add(double seconds, std::int64_t now);
  // The fastest of the last runs: the others were disturbed.
  double best() const;
  friend bool operator==(const ProgramProfile&, const ProgramProfile&) = default;
};

struct DeviceProfile {
  RecentMean open, close, compile, hold;
  TimeModel upload, download, compute;
  std::map<GraphKey, ProgramProfile> programs;
  std::int64_t used = 0;
  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};

// What a device is known by: kind, id and model, since another card may come under the same id; for a simulated one its
// description, too.
struct DeviceKey {
  std::string text;
  DeviceKind kind = DeviceKind::cpu;
  DeviceKey(const DeviceInfo& device);
};

// The stages of a run that a profile learns from; none where there was none.
struct RunTimes {
  std::optional<double> compile, upload, compute, download;
  // |was_compiled|: the program was found compiled, so that its stage says nothing.
  static RunTimes of(const Timeline& timeline, bool was_compiled);
};

class Profile {
 public:
  static constexpr std::size_t kMaxDevices = 32, kMaxPrograms = 256;

  // |now| in seconds since 1970.
  void add_open(const DeviceKey& device, double seconds, std::int64_t now);
  void add_close(const DeviceKey& device, double seconds, std::int64_t now);
  // How long a lease was held.
  void add_hold(const DeviceKey& device, double seconds, std::int64_t now);
  // Where tensors stayed on the device the bytes of |work| that moved are 0.
  void add_run(const DeviceKey& device, const Work& work, const RunTimes& times, std::int64_t now);

  Stages predict(const Candidate& candidate, const Work& work) const;
  // Of opening and closing: measured, else |declared|.
  Latency latency(const DeviceKey& device, const Latency& declared) const;

  const std::map<std::string, DeviceProfile>& devices() const noexcept { return devices_; }

  // As JSON, and back. What cannot be understood is left out; text that is no profile at all gives an empty one.
  std::string to_text() const;
  static Profile from_text(std::string_view text);

  friend bool operator==(const Profile&, const Profile&) = default;

 private:
  DeviceProfile& of(const DeviceKey& device, std::int64_t now);

  std::map<std::string, DeviceProfile> devices_;
};

}  // namespace tenon
