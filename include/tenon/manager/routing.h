// Routing: the choice of a device for a program, with the reason.
//
// A pure function of the devices with their state, the configuration, and the predicted time of each stage. It opens and measures
// nothing; DeviceManager::explain() supplies the predictions from this machine's profile.
//
//   Decision decision = manager.explain(graph);
//   decision.device.id;  decision.reason;      // "fastest: 1.2 ms, against 185 ms on cuda:0"
//   for (const Considered& c : decision.considered) print(c.device.id, c.predicted.total());
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/backend.h"
#include "tenon/device.h"
#include "tenon/manager/config.h"

namespace tenon {

// The predicted time of a program on a device, stage by stage.
struct Stages {
  double queue_seconds = 0;     // waiting for others
  double open_seconds = 0;      // if it is closed
  double compile_seconds = 0;   // if the program is new to it
  double transfer_seconds = 0;  // upload of inputs and download of results
  double compute_seconds = 0;
  bool is_measured = false;  // compute was measured with this program; else estimated from other programs and the kind of device

  double held_seconds() const noexcept { return open_seconds + compile_seconds + transfer_seconds + compute_seconds; }
  double total() const noexcept { return queue_seconds + held_seconds(); }
};

// A device and its state for routing.
struct Candidate {
  DeviceInfo device;
  bool is_open = false;                            // in this process, so that using it opens nothing
  bool is_compiled = false;                        // the program is compiled in this process
  int ahead = 0;                                   // leases ahead of this one, of any process
  std::optional<double> queue_seconds = {};        // until they are done; nullopt: estimated from |ahead|
  std::optional<Latency> latency = {};             // declared by its backend
  std::optional<std::uint64_t> upload_bytes = {};  // bytes to upload; nullopt: all inputs
  std::string refusal = {};                        // why it cannot run the program
  bool has_failed = false;                         // a moment ago: chosen only if there is no other
};

struct Considered {
  Candidate candidate;
  Stages predicted;
  std::optional<double> dollars;  // cost of the time the device is held
  bool is_eligible = false;
  std::string remark;  // why it was chosen or not
};

struct Decision {
  DeviceInfo device;
  std::string reason;                  // one sentence
  std::string warning;                 // a preference that could not be followed; "" for none
  std::vector<Considered> considered;  // the chosen device first, then eligible ones by rank, then the others
};

using Predictor = std::function<Stages(const Candidate&)>;

// |request| is "auto" (the configuration decides), a kind, an id or an alias. A preference in the configuration falls back to the
// CPU with a warning; an explicit request and pinned do not: they throw not_found for an unknown device, unavailable for one that
// cannot be used, unimplemented for one that cannot run the program. A simulated device is chosen only on request: by id, or by a
// kind of which no real device exists; and by auto if Config::allow_simulated is set.
Decision route(const Config& config, std::string_view request, std::span<const Candidate> candidates,
               const Predictor& predict = {});

// US dollars per hour: from Config::prices by id, alias, name or kind, in this order; else the device's own price.
std::optional<double> price_of(const Config& config, const DeviceInfo& device);

}  // namespace tenon
