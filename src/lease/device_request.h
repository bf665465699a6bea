// A thread that waits for a device, in the queue of its DeviceOwner.
#pragma once

#include <condition_variable>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "lease/device_owner.h"
#include "tenon/error.h"

namespace tenon {

// What went wrong, for several threads: each throws an Error of its own.
struct DeviceOwner::Failure {
  ErrorCode code = ErrorCode::unknown;
  std::string message, hint;
  static Failure of(const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    return {known ? known->code() : ErrorCode::unknown, error.what(), known ? known->hint() : std::string()};
  }
  [[noreturn]] void raise() const { throw Error(code, message, hint); }
};

struct DeviceOwner::Request {
  LeaseMode mode{};
  int priority = 0;
  // An operation of a lease whose device was closed meanwhile: it goes before every new lease.
  bool resumes = false;
  std::uint64_t arrival = 0;  // among those who asked; none for a lease within another and for an operation
  std::shared_ptr<Lease::Grant> grant;
  std::list<Request*>::iterator position;
  std::condition_variable_any changed;
  // What came of it; it has left the queue then.
  bool is_granted = false;
  std::optional<Failure> error;

  bool goes_before(const Request& other) const {
    if (resumes != other.resumes) return resumes;
    return !resumes && priority > other.priority;
  }
};

}  // namespace tenon
