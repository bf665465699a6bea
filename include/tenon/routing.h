// Routing: which device a program goes to, and why.
//
// A pure function of what is known: the devices with their state, the configuration, and what each stage is expected to take.
// Nothing is opened or measured here; DeviceManager::explain() fills in what this machine's profile says.
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
#include "tenon/config.h"
#include "tenon/device.h"

namespace tenon {

// What a device would take for a program, stage by stage.
struct Stages {
  double queue_seconds = 0;     // until others are done
  double open_seconds = 0;      // if it is closed
  double compile_seconds = 0;   // if the program is new to it
  double transfer_seconds = 0;  // inputs there, results back
  double compute_seconds = 0;
  bool is_measured = false;  // compute was measured with this program; else it is a guess from others and the kind of device

  double held_seconds() const noexcept { return open_seconds + compile_seconds + transfer_seconds + compute_seconds; }
  double total() const noexcept { return queue_seconds + held_seconds(); }
};

// A device as routing sees it.
struct Candidate {
  DeviceInfo device;
  bool is_open = false;                            // here, so that using it opens nothing
  bool is_compiled = false;                        // the program, in this process
  int ahead = 0;                                   // leases before this one, of any process
  std::optional<double> queue_seconds = {};        // until they are done; none: guessed from |ahead|
  std::optional<Latency> latency = {};             // as its backend declares
  std::optional<std::uint64_t> upload_bytes = {};  // that must move there; none: all inputs
  std::string refusal = {};                        // why it cannot run the program
};

struct Considered {
  Candidate candidate;
  Stages predicted;
  std::optional<double> dollars;  // of the time the device is held
  bool is_eligible = false;
  std::string remark;  // why it was not chosen; for the chosen one: why
};

struct Decision {
  DeviceInfo device;
  std::string reason;                  // in words
  std::string warning;                 // a preference that could not be followed; "" for none
  std::vector<Considered> considered;  // the chosen one first, then the eligible ones by rank, then the others
};

using Predictor = std::function<Stages(const Candidate&)>;

// |wish| is "auto" (the configuration decides), a kind, an id or an alias. A preference of the configuration falls back to the
// processor with a warning; a wish does not, nor does pinned: not_found for what is not there, unavailable for what cannot be
// used, unimplemented for what cannot run the program. Simulated devices are chosen when the wish or the preference means them:
// by id, or by a kind of which there is no real one; and by auto where Config::allow_simulated.
Decision route(const Config& config, std::string_view wish, std::span<const Candidate> candidates, const Predictor& predict = {});

// US dollars for an hour: Config::prices by id, alias, name or kind, in this order; else what is known of the device.
std::optional<double> price_of(const Config& config, const DeviceInfo& device);

}  // namespace tenon
