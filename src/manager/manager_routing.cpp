// Which device a program goes to: what is known of this machine, handed to the router.
#include <fmt/format.h>

#include "base/log.h"
#include "lease/turnstile/queue_text.h"
#include "manager/inventory.h"
#include "manager/manager_state.h"
#include "tenon/error.h"

namespace tenon {
namespace {

bool is_by_measure(RoutingMode mode) { return mode == RoutingMode::fastest || mode == RoutingMode::cheapest; }

}  // namespace

std::vector<DeviceUser> users_of_unused(const DeviceInfo& device) {
  std::vector<DeviceUser> users;
  try {
    const std::optional<RunDirectory> directory = RunDirectory::open_existing();
    if (!directory || !directory->open_file_to_read(device.id + ".turnstile")) return users;
    for (const Turnstile::Position& place : Turnstile(*directory, device.id).queue().places)
      users.push_back({who(place), place.is_holding, false, place.is_known ? seconds_since(place) : 0});
  } catch (const Error&) {
    // Whoever then takes the device is told.
  }
  return users;
}

Candidate DeviceManager::State::candidate_of(const DeviceInfo& device, const Graph* graph, const std::string& text) const {
  Candidate candidate;
  candidate.device = device;
  const std::shared_ptr<Backend> backend = device.backends.empty() ? nullptr : registry.find(device.backends.front());
  if (!device.available || !backend) return candidate;
  candidate.latency = backend->latency(device);
  if (graph != nullptr) {
    try {
      backend->check(device, *graph);
    } catch (const Error& error) {
      candidate.refusal = error.what();
    }
  }
  std::shared_ptr<DeviceOwner> owner;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = owners.find(device.id); found != owners.end()) owner = found->second;
  }
  if (owner) {
    candidate.is_open = owner->is_open();
    candidate.is_compiled = graph != nullptr && owner->has_compiled(text);
  }
  if (!device.exclusive) return candidate;
  candidate.ahead = owner ? owner->queue_length() + owner->users_elsewhere() : static_cast<int>(users_of_unused(device).size());
  if (owner)
    if (const std::optional<double> hold = owner->usual_hold_seconds()) candidate.queue_seconds = candidate.ahead * *hold;
  return candidate;
}

Decision DeviceManager::State::decide(const DeviceManager& manager, std::string_view wish, const Graph* graph) const {
  std::string meant(wish.empty() ? "auto" : wish);
  if (meant == "auto") {
    const std::lock_guard lock(mutex);
    meant = default_wish;
  }
  const std::string text = graph != nullptr ? graph->text() : "";
  Predictor predict;
  if (graph != nullptr)
    predict = [this, work = work_of(*graph, text)](const Candidate& candidate) { return profiles->predict(candidate, work); };
  const auto among = [&](const std::vector<DeviceInfo>& devices) {
    std::vector<Candidate> candidates;
    for (const DeviceInfo& device : devices) candidates.push_back(candidate_of(device, graph, text));
    return route(config, meant, candidates, predict);
  };
  // Looking at the whole machine takes milliseconds, which a run on the processor should not pay; it is worth it to say why a
  // device is not there.
  try {
    Decision decision = among(inventory({}, registry));
    if (decision.warning.empty()) return decision;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found && error.code() != ErrorCode::unavailable) throw;
  }
  return among(manager.devices());
}

std::shared_ptr<DeviceOwner> DeviceManager::State::owner_for(const DeviceManager& manager, const Graph& graph,
                                                             std::string_view wish) {
  const bool is_auto = wish.empty() || wish == "auto";
  if (is_auto)
    if (std::shared_ptr<DeviceOwner> leased = leased_by_this_thread()) return leased;
  if (!is_by_measure(config.routing)) {
    std::shared_ptr<DeviceOwner> owner = look_up(manager, wish);
    try {
      owner->backend()->check(owner->device(), graph);
      return owner;
    } catch (const Error& error) {
      // What was chosen for the caller may be replaced by what can run the program; what the caller chose may not.
      if (!is_auto || error.code() != ErrorCode::unimplemented) throw;
    }
  }
  const Decision decision = decide(manager, wish, &graph);
  if (!decision.warning.empty()) logging::warn("{}", decision.warning);
  return owner_of(decision.device);
}

Decision DeviceManager::explain(const Graph& graph, std::string_view wish) const { return state_->decide(*this, wish, &graph); }

}  // namespace tenon
