#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text/units.h"
#include "device/advice.h"
#include "device/cost.h"
#include "device/naming.h"
#include "ops/names.h"
#include "tenon/error.h"
#include "tenon/manager/routing.h"

namespace tenon {
namespace {

std::string cannot_be_used(const DeviceInfo& device) {
  const std::string reason = device.reason.empty() ? "it is not available" : device.reason;
  return device.remedy.empty() ? reason : fmt::format("{}; {}", reason, device.remedy);
}

class Router {
 public:
  Router(const Config& config, std::span<const Candidate> candidates, const Predictor& predict) : config_(config) {
    for (const Candidate& candidate : candidates) {
      Considered one;
      one.candidate = candidate;
      if (predict && candidate.device.available && candidate.refusal.empty()) one.predicted = predict(candidate);
      if (const std::optional<double> price = price_of(config, candidate.device))
        one.dollars = *price / 3600 * one.predicted.held_seconds();
      all_.push_back(std::move(one));
    }
  }

  Decision requested_device(std::string_view wanted_device) {
    select(wanted_device, true);
    if (eligible_.empty()) fail(wanted_device);
    return decide(fmt::format("{} was requested", wanted_device));
  }

  Decision configured() {
    const bool is_open_choice = config_.prefer == "auto";
    if (is_open_choice) {
      select_any();
    } else {
      select(config_.prefer, false);
    }
    if (!eligible_.empty())
      return decide(is_open_choice                           ? order_in_words()
                    : config_.routing == RoutingMode::pinned ? fmt::format("pinned to {}", config_.prefer)
                                                             : fmt::format("{} is preferred", config_.prefer));
    if (config_.routing == RoutingMode::pinned) fail(config_.prefer);
    return fall_back();
  }

 private:
  // --- Who may be chosen ---
  void admit(Considered& one) {
    one.is_eligible = true;
    eligible_.push_back(&one);
  }

  // Devices that |wanted_device| means. A device the caller asks for is stronger than allow_tpu, which is about what happens by
  // itself.
  void select(std::string_view wanted_device, bool by_caller) {
    const std::optional<DeviceKind> kind = parse_device_kind(wanted_device);
    bool has_real = false;
    for (const Considered& one : all_)
      has_real |= kind && one.candidate.device.kind == *kind && can_run(one) && !is_simulated(one.candidate.device);
    for (Considered& one : all_) {
      const DeviceInfo& device = one.candidate.device;
      const bool by_id = is_named(device, wanted_device);
      if (!by_id && !(kind && device.kind == *kind)) {
        one.remark = by_caller ? "another device was requested" : fmt::format("prefer = {}", wanted_device);
      } else if (!can_run(one)) {
        one.remark = why_not(one);
      } else if (!by_caller && device.kind == DeviceKind::tpu && !config_.allow_tpu) {
        one.remark = "allow_tpu is off";
      } else if (!by_id && !device.same_as.empty()) {
        one.remark = fmt::format("{} through another driver; used only on request", device.same_as);
      } else if (!by_id && has_real && is_simulated(device)) {
        one.remark = "simulated, and a real device of this kind exists";
      } else {
        admit(one);
      }
    }
  }

  void select_any() {
    for (Considered& one : all_) {
      const DeviceInfo& device = one.candidate.device;
      if (!can_run(one)) {
        one.remark = why_not(one);
      } else if (device.kind == DeviceKind::tpu && !config_.allow_tpu) {
        one.remark = "allow_tpu is off";
      } else if (!device.same_as.empty()) {
        one.remark = fmt::format("{} through another driver; used only on request", device.same_as);
      } else if (is_simulated(device) && !config_.allow_simulated) {
        one.remark = "simulated; used only on request";
      } else if (priority(device) == kNoPriority) {
        one.remark = fmt::format("{} is not in platform_priority", name(device.kind));
      } else {
        admit(one);
      }
    }
  }

  static bool can_run(const Considered& one) { return one.candidate.device.available && one.candidate.refusal.empty(); }
  static std::string why_not(const Considered& one) {
    return one.candidate.device.available ? one.candidate.refusal : cannot_be_used(one.candidate.device);
  }

  // --- Which of them ---
  static constexpr std::size_t kNoPriority = std::numeric_limits<std::size_t>::max();
  std::size_t priority(const DeviceInfo& device) const {
    const auto& order = config_.platform_priority;
    const auto at = std::find(order.begin(), order.end(), device.kind);
    return at == order.end() ? kNoPriority : static_cast<std::size_t>(at - order.begin());
  }

  // What is to be small. A request that takes what is best for itself fills the fast devices while slow ones are idle, and all
  // wait longer; so waiting counts more than the request's own time. Without queues the order is that of the times. Of the
  // weights tried with tenon simulate, 0.4 to 0.6 gave the least mean and 99th percentile at loads of 0.5, 0.7 and 0.9.
  static double burden(const Stages& predicted) {
    constexpr double kOwnTime = 0.5;
    return predicted.queue_seconds + kOwnTime * predicted.held_seconds();
  }

  bool is_better(const Considered& a, const Considered& b) const {
    if (a.candidate.has_failed != b.candidate.has_failed) return b.candidate.has_failed;
    if (config_.routing == RoutingMode::cheapest) {
      const double none = std::numeric_limits<double>::infinity();
      const double of_a = a.dollars.value_or(none), of_b = b.dollars.value_or(none);
      if (of_a != of_b) return of_a < of_b;
    }
    if (config_.routing == RoutingMode::cheapest || config_.routing == RoutingMode::fastest) {
      const double of_a = burden(a.predicted), of_b = burden(b.predicted);
      if (of_a != of_b) return of_a < of_b;
    }
    const std::size_t first = priority(a.candidate.device), second = priority(b.candidate.device);
    if (first != second) return first < second;
    if (is_simulated(a.candidate.device) != is_simulated(b.candidate.device)) return is_simulated(b.candidate.device);
    // Of equal devices the one that is free, of those one that is open.
    if (a.candidate.ahead != b.candidate.ahead) return a.candidate.ahead < b.candidate.ahead;
    if (a.candidate.is_open != b.candidate.is_open) return a.candidate.is_open;
    return &a < &b;
  }

  Decision decide(const std::string& why) {
    std::sort(eligible_.begin(), eligible_.end(), [this](const Considered* a, const Considered* b) { return is_better(*a, *b); });
    Considered& best = *eligible_.front();
    best.remark = eligible_.size() == 1 ? (why.empty() ? "the only usable device" : why) : comparison(best, why);
    for (std::size_t i = 1; i < eligible_.size(); ++i) eligible_[i]->remark = why_not_best(*eligible_[i], best);
    return result(best);
  }

  std::string comparison(const Considered& best, const std::string& why) const {
    const Considered& second = *eligible_[1];
    const std::string& other = second.candidate.device.id;
    if (second.candidate.has_failed && !best.candidate.has_failed) return fmt::format("{} failed a moment ago", other);
    if (config_.routing == RoutingMode::fastest && best.predicted.total() > second.predicted.total())
      return fmt::format("{}; {} would be {} faster, but others wait for it", format_seconds(best.predicted.total()), other,
                         format_seconds(best.predicted.total() - second.predicted.total()));
    if (config_.routing == RoutingMode::fastest)
      return fmt::format("fastest: {}, against {} on {}", format_seconds(best.predicted.total()),
                         format_seconds(second.predicted.total()), other);
    if (config_.routing == RoutingMode::cheapest && best.dollars && best.dollars == second.dollars)
      return fmt::format("cheapest: {} as on {}, and {} sooner", format_dollars(*best.dollars), other,
                         format_seconds(second.predicted.total() - best.predicted.total()));
    if (config_.routing == RoutingMode::cheapest && best.dollars)
      return fmt::format("cheapest: {}, against {} on {}", format_dollars(*best.dollars),
                         second.dollars ? format_dollars(*second.dollars) : "an unknown price", other);
    if (best.candidate.device.kind == second.candidate.device.kind && best.candidate.ahead != second.candidate.ahead)
      return fmt::format("{}; it has the shortest queue", why);
    return why;
  }

  std::string why_not_best(const Considered& one, const Considered& best) const {
    const bool by_price = config_.routing == RoutingMode::cheapest;
    if (one.candidate.has_failed && !best.candidate.has_failed) return "it failed a moment ago";
    if (by_price && !one.dollars) return "no price is known";
    if (by_price && best.dollars && *one.dollars > *best.dollars)
      return fmt::format("{} more", format_dollars(*one.dollars - *best.dollars));
    if (one.predicted.total() < best.predicted.total() && (by_price || config_.routing == RoutingMode::fastest))
      return "others wait for it";
    if (by_price || config_.routing == RoutingMode::fastest)
      return fmt::format("{} slower", format_seconds(one.predicted.total() - best.predicted.total()));
    if (one.candidate.device.kind != best.candidate.device.kind) return "later in platform_priority";
    if (one.candidate.ahead > best.candidate.ahead) return fmt::format("{} ahead in its queue", one.candidate.ahead);
    return "another device of its kind is preferred";
  }

  std::string order_in_words() const {
    std::vector<std::string_view> kinds;
    for (const DeviceKind kind : config_.platform_priority) kinds.push_back(name(kind));
    return eligible_.size() == 1 ? "" : fmt::format("first in the order {}", fmt::join(kinds, ", "));
  }

  // --- When there is none ---
  Decision fall_back() {
    std::string warning;
    const Considered* unusable = nullptr;
    for (const Considered& one : all_) {
      const DeviceInfo& device = one.candidate.device;
      const std::optional<DeviceKind> kind = parse_device_kind(config_.prefer);
      if (unusable == nullptr && (is_named(device, config_.prefer) || (kind && device.kind == *kind))) unusable = &one;
    }
    warning = unusable == nullptr ? fmt::format("{} requested but none was found", config_.prefer)
                                  : fmt::format("{} requested but {} cannot be used: {}", config_.prefer,
                                                unusable->candidate.device.id, unusable->remark);
    for (Considered& one : all_)
      if (one.candidate.device.kind == DeviceKind::cpu && can_run(one) && !is_simulated(one.candidate.device) &&
          one.candidate.device.same_as.empty())
        admit(one);
    if (eligible_.empty()) fail(config_.prefer);
    Decision decision = decide(fmt::format("{} is not there", config_.prefer));
    decision.warning = fmt::format("{}; using {}", warning, decision.device.id);
    return decision;
  }

  [[noreturn]] void fail(std::string_view wanted_device) const {
    if (wanted_device == "auto")
      throw Error(ErrorCode::unavailable, "no usable device", "the list of devices gives the reason for each");
    std::vector<std::string> ids;
    for (const Considered& one : all_) {
      const DeviceInfo& device = one.candidate.device;
      const std::optional<DeviceKind> kind = parse_device_kind(wanted_device);
      ids.push_back(device.id);
      if (!is_named(device, wanted_device) && !(kind && device.kind == *kind)) continue;
      if (!device.available)
        throw Error(
            ErrorCode::unavailable,
            fmt::format("{} cannot be used: {}", device.id, device.reason.empty() ? "it is not available" : device.reason),
            device.remedy);
      if (!one.candidate.refusal.empty())
        throw Error(ErrorCode::unimplemented, fmt::format("{} cannot run this program: {}", device.id, one.candidate.refusal),
                    "use the device cpu");
      throw Error(ErrorCode::unavailable, fmt::format("{} is not used: {}", device.id, one.remark));
    }
    if (const std::optional<DeviceKind> kind = parse_device_kind(wanted_device))
      throw Error(ErrorCode::not_found, fmt::format("no {} was found: {}", wanted_device, searched_for(*kind)),
                  fmt::format("devices of this machine: {}", fmt::join(ids, ", ")));
    const std::string near = nearest(wanted_device, ids);
    throw Error(ErrorCode::not_found, fmt::format("unknown device '{}'", wanted_device),
                near.empty() ? fmt::format("devices of this machine: {}", fmt::join(ids, ", "))
                             : fmt::format("did you mean '{}'?", near));
  }

  Decision result(const Considered& best) const {
    Decision decision;
    decision.device = best.candidate.device;
    decision.reason = best.remark;
    for (const Considered* one : eligible_) decision.considered.push_back(*one);
    for (const Considered& one : all_)
      if (!one.is_eligible) decision.considered.push_back(one);
    return decision;
  }

  const Config& config_;
  std::vector<Considered> all_;
  std::vector<Considered*> eligible_;
};

}  // namespace

Decision route(const Config& config, std::string_view wanted_device, std::span<const Candidate> candidates,
               const Predictor& predict) {
  Router router(config, candidates, predict);
  if (const std::optional<std::size_t> number = device_number(wanted_device); number && *number < candidates.size())
    wanted_device = candidates[*number].device.id;
  return wanted_device.empty() || wanted_device == "auto" ? router.configured() : router.requested_device(wanted_device);
}

std::optional<double> price_of(const Config& config, const DeviceInfo& device) {
  DeviceInfo priced = device;
  apply_prices(priced, config.prices);
  if (!is_simulated(device)) estimate_cost(priced);
  return priced.cost_per_hour;
}

}  // namespace tenon
