// RequestQueue: the threads that wait for one device, by priority, then by when they are due: when they came, or later for
// clients that have used the device much lately.
//
// A Request lives on the stack of its thread. It is in the queue from add() until it is granted, fails, or gives up. An operation
// of a lease whose device was closed meanwhile has a request without a grant; it goes before every request for a lease.
//
// Thread safety: all calls with the mutex of the device's owner held; wait() and place_of() release it while they block.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "lease/turnstile/turnstile.h"
#include "tenon/error.h"
#include "tenon/lease.h"

namespace tenon {

class RequestQueue {
 public:
  // An error as a value: each of several threads throws its own.
  struct Failure {
    ErrorCode code = ErrorCode::unknown;
    std::string message, hint;
    static Failure of(const std::exception& error);
    [[noreturn]] void raise() const { throw Error(code, message, hint); }
  };

  enum class Outcome : std::uint8_t { none, granted, failed, cancelled, timed_out };

  struct Request {
    LeaseMode mode{};
    int priority = 0;
    Clock::Time due{};            // among those of equal priority, the earlier one comes first
    LeaseGrant* grant = nullptr;  // to be granted; null for an operation
    std::uint64_t arrival = 0;    // among requests for leases; 0 for a lease within another one of its thread
    Outcome outcome = Outcome::none;
    std::optional<Failure> failure;
    std::optional<std::condition_variable_any> changed;  // while in the queue: making one allocates memory
  };
  using Holders = std::vector<LeaseGrant*>;

  // |turnstile|: the queue between processes, if the device has one. All three must outlive the queue.
  RequestQueue(const std::string& device, const Clock& clock, const std::optional<Turnstile>& turnstile)
      : device_(device),
        clock_(clock),
        turnstile_(turnstile) {}

  bool empty() const noexcept { return requests_.empty(); }
  std::size_t size() const noexcept { return requests_.size(); }
  const std::list<Request*>& requests() const noexcept { return requests_; }
  Request& front() const { return *requests_.front(); }

  void number(Request& request) { request.arrival = ++arrivals_; }
  void add(Request& request);
  void grant_front();
  // Every request fails and leaves the queue.
  void fail_all(const Failure& failure);
  // This process waits for other processes with |ticket|; 0: it does not.
  void wait_behind(TicketNumber ticket);
  // The device is being opened for the first request. Until one of the two is known, a request with nobody ahead is told nothing.
  void set_opening(bool is_opening);
  // Notes a grant; true if a later request of the same priority was granted before.
  bool is_overtaken(const Request& request);

  // Blocks until the request is granted. Otherwise throws, and the request has left the queue: the failure given to fail_all(),
  // cancelled, deadline_exceeded, and what options.on_wait throws. A timeout of 0 fails if anyone is ahead, but waits for an open
  // that this request triggered.
  void wait(std::unique_lock<std::mutex>& lock, Request& request, const LeaseOptions& options, const Holders& holders);

 private:
  struct Wait;
  QueuePlace place_of(const Request& request, std::unique_lock<std::mutex>& lock, const Holders& holders) const;

  const std::string& device_;
  const Clock& clock_;
  const std::optional<Turnstile>& turnstile_;
  std::list<Request*> requests_;
  TicketNumber ticket_ = 0;
  bool is_opening_ = false;
  std::uint64_t news_ = 0;  // grows with each change of the two above
  std::uint64_t arrivals_ = 0;
  std::map<int, std::uint64_t> last_arrival_;  // granted, for each priority
};

}  // namespace tenon
