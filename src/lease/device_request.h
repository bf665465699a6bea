// A thread that waits for a device, in the queue of its DeviceOwner.
#pragma once

#include <condition_variable>
#include <exception>
#include <list>
#include <memory>

#include "lease/device_owner.h"

namespace tenon {

struct DeviceOwner::Request {
  LeaseMode mode{};
  int priority = 0;
  // An operation of a lease whose device was closed meanwhile: it goes before every new lease.
  bool resumes = false;
  std::shared_ptr<Lease::Grant> grant;
  std::list<Request*>::iterator position;
  std::condition_variable_any changed;
  // What came of it; it has left the queue then.
  bool is_granted = false;
  std::exception_ptr error;

  bool goes_before(const Request& other) const {
    if (resumes != other.resumes) return resumes;
    return !resumes && priority > other.priority;
  }
};

}  // namespace tenon
