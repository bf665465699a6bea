#include "lease/owner/request_queue.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/text/units.h"
#include "lease/turnstile/queue_text.h"

namespace tenon {
namespace {

// A wait is logged after the first, as a warning after the second.
constexpr std::chrono::seconds kLogAfter{1}, kWarnAfter{30};
// How often on_wait's caller looks whether its place has changed.
constexpr std::chrono::milliseconds kPlaceInterval{100};
constexpr std::chrono::hours kLongest{24 * 365};

}  // namespace

RequestQueue::Failure RequestQueue::Failure::of(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  return {known ? known->code() : ErrorCode::unknown, error.what(), known ? known->hint() : std::string()};
}

void RequestQueue::add(Request& request) {
  const auto goes_before = [&](const Request* other) {
    if (!request.grant || !other->grant) return !request.grant && other->grant;
    return request.priority != other->priority ? request.priority > other->priority : request.due < other->due;
  };
  request.changed.emplace();
  requests_.insert(std::find_if(requests_.begin(), requests_.end(), goes_before), &request);
}

void RequestQueue::grant_front() {
  Request& request = front();
  requests_.pop_front();
  request.outcome = Outcome::granted;
  request.changed->notify_one();
}

void RequestQueue::fail_all(const Failure& failure) {
  for (Request* request : requests_) {
    request->failure = failure;
    request->outcome = Outcome::failed;
    request->changed->notify_one();
  }
  requests_.clear();
}

void RequestQueue::wait_behind(TicketNumber ticket) {
  ticket_ = ticket;
  ++news_;
  if (ticket == 0) return;
  for (Request* request : requests_) request->changed->notify_one();  // those with a timeout of 0 give up
}

void RequestQueue::set_opening(bool is_opening) {
  is_opening_ = is_opening;
  ++news_;
  if (is_opening)
    for (Request* request : requests_) request->changed->notify_one();
}

bool RequestQueue::is_overtaken(const Request& request) {
  if (request.arrival == 0) return false;
  std::uint64_t& last = last_arrival_[request.priority];
  const bool is_late = request.arrival < last;
  last = std::max(last, request.arrival);
  return is_late;
}

QueuePlace RequestQueue::place_of(const Request& request, std::unique_lock<std::mutex>& lock, const Holders& holders) const {
  QueuePlace place;
  const auto before = std::distance(requests_.begin(), std::find(requests_.begin(), requests_.end(), &request));
  place.ahead_here = static_cast<int>(before + static_cast<std::ptrdiff_t>(holders.size()));
  if (!holders.empty()) place.holder = "this process";
  const TicketNumber ticket = ticket_;
  if (ticket == 0 || !turnstile_) return place;
  lock.unlock();
  for (const Turnstile::Position& other : turnstile_->queue().places) {
    if (other.ticket >= ticket) break;
    ++place.ahead_elsewhere;
    if (other.is_holding && place.holder.empty()) place.holder = who_in_short(other);
  }
  lock.lock();
  return place;
}

struct RequestQueue::Wait {
  RequestQueue& queue;
  std::unique_lock<std::mutex>& lock;
  Request& request;
  const LeaseOptions& options;
  const Holders& holders;
  const Clock::Time start = queue.clock_.now();
  const Clock::Time deadline =
      options.timeout ? start + std::clamp<std::chrono::nanoseconds>(*options.timeout, {}, kLongest) : Clock::kNever;
  Clock::Time log_at = start + kLogAfter;
  std::optional<QueuePlace> told = {};
  std::uint64_t seen_news = 0;

  void run() {
    while (!is_done()) {
      if (options.cancel.stop_requested()) return end(Outcome::cancelled);
      if (is_out_of_time()) return end(Outcome::timed_out);
      if (options.on_wait && tell_place()) continue;
      block();
      if (!is_done()) log_long_wait();
    }
  }

  bool is_done() const { return request.outcome != Outcome::none; }
  bool only_tries() const { return deadline == start; }
  bool is_next() const { return &queue.front() == &request && holders.empty() && queue.ticket_ == 0; }
  bool is_out_of_time() const { return only_tries() ? !is_next() : queue.clock_.now() >= deadline; }
  QueuePlace place() const { return queue.place_of(request, lock, holders); }

  // The place is looked up, and told, without the mutex. True if it was told: time has passed.
  bool tell_place() {
    seen_news = queue.news_;
    QueuePlace now = place();
    if (is_done() || now == told) return false;
    if (now.ahead_here + now.ahead_elsewhere == 0 && !queue.is_opening_) return false;
    told = std::move(now);
    lock.unlock();
    try {
      options.on_wait(*told);
    } catch (...) {
      lock.lock();
      if (!is_done()) std::erase(queue.requests_, &request);
      throw;
    }
    lock.lock();
    return true;
  }

  void block() {
    const auto is_over = [&] {
      return is_done() || (only_tries() && !is_next()) || (options.on_wait && queue.news_ != seen_news);
    };
    Clock::Time until = std::min(log_at, only_tries() ? Clock::kNever : deadline);
    if (options.on_wait) until = std::min(until, queue.clock_.now() + kPlaceInterval);
    request.changed->wait_for(lock, options.cancel, queue.clock_.wait_limit(until), is_over);
  }

  void log_long_wait() {
    const Clock::Time now = queue.clock_.now();
    if (now < log_at) return;
    const bool is_warning = log_at >= start + kWarnAfter;
    log_at = is_warning ? Clock::kNever : start + kWarnAfter;
    const QueuePlace ahead = place();
    logging::write(is_warning ? logging::Level::warn : logging::Level::info,
                   "waiting for {} for {}: {} ahead, {} of them in other processes{}", queue.device_,
                   format_seconds(Clock::seconds_between(start, now)), ahead.ahead_here + ahead.ahead_elsewhere,
                   ahead.ahead_elsewhere, ahead.holder.empty() ? "" : ", held by " + ahead.holder);
  }

  void end(Outcome outcome) {
    const QueuePlace ahead = place();
    if (is_done()) return;  // while the place was looked up
    std::erase(queue.requests_, &request);
    request.outcome = outcome;
    if (outcome == Outcome::cancelled) throw Error(ErrorCode::cancelled, "the wait for " + queue.device_ + " was cancelled");
    const int count = ahead.ahead_here + ahead.ahead_elsewhere;
    throw Error(ErrorCode::deadline_exceeded,
                fmt::format("timed out waiting for {} after {}: {}", queue.device_,
                            format_seconds(Clock::seconds_between(start, deadline)),
                            count == 0 ? "the device is still being opened" : fmt::format("{} ahead", count)),
                ahead.holder.empty() ? "use a longer timeout or another device" : "held by " + ahead.holder);
  }
};

void RequestQueue::wait(std::unique_lock<std::mutex>& lock, Request& request, const LeaseOptions& options,
                        const Holders& holders) {
  Wait{*this, lock, request, options, holders}.run();
  if (request.failure) request.failure->raise();
}

}  // namespace tenon
