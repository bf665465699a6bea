// What a backend may offer to the worker process that hosts it. The worker finds each by dynamic_cast; a backend with neither
// works as well, only slower.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tenon/backend.h"

namespace tenon {

// A Backend that can load its libraries before it is known which device will be opened.
class Preloadable {
 public:
  virtual ~Preloadable() = default;
  // Loads what open() and the first program need, and touches no device. Failures are left to open().
  virtual void preload() noexcept = 0;
};

// An OpenDevice that copies directly from and to memory that two processes share.
// Thread safety: the calls are made by one thread, and no program runs meanwhile.
class DirectTransfers {
 public:
  static constexpr int kSlots = 32;

  virtual ~DirectTransfers() = default;
  // Lets the device access |memory| until unpin() or until it closes. Throws resource_exhausted, unavailable.
  virtual void pin(std::byte* memory, std::size_t bytes) = 0;
  virtual void unpin(std::byte* memory) noexcept = 0;
  // Start a copy of |bytes| at |offset| of a buffer, after all work started earlier. |slot|, below kSlots, is free again once
  // is_complete() has returned true for it.
  virtual void start_upload(Buffer& to, std::size_t offset, const std::byte* from, std::size_t bytes, int slot) = 0;
  virtual void start_download(std::byte* to, const Buffer& from, std::size_t offset, std::size_t bytes, int slot) = 0;
  // Does not block. Throws the error of the device.
  virtual bool is_complete(int slot) = 0;
};

// An Executable of a device that computes in one of several tiers, which differ in speed and precision.
class Tiered {
 public:
  virtual ~Tiered() = default;
  // Its name, "exact"; "" if the device has only one.
  virtual const std::string& tier() const noexcept = 0;
  // The ops of the program by the tier in which they run; empty if it is not known.
  virtual std::map<std::string, std::vector<std::string>> ops_by_tier() const = 0;
};

}  // namespace tenon
