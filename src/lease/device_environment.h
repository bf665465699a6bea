// What tells other software which device it may use: the environment of a program that runs under a lease.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lease/turnstile/turnstile.h"
#include "tenon/device.h"

namespace tenon {

// The variables that confine a runtime to |device|: CUDA_VISIBLE_DEVICES for NVIDIA's, TT_VISIBLE_DEVICES for Tenstorrent's,
// TPU_VISIBLE_CHIPS for TPUs, with the number of the device's id. Nothing for kinds that have none.
std::vector<std::pair<std::string, std::string>> visibility_variables(const DeviceInfo& device);

// TENON_LEASE: which device is leased, and under which epoch.
struct LeaseName {
  std::string device;
  std::uint64_t epoch = 0;
  std::string text() const;  // "cpu:0@17"
  static std::optional<LeaseName> parse(std::string_view text);
};

// Whether this process runs under a lease of the turnstile's device that is still held, as |lease_variable| (TENON_LEASE) says:
// waiting for the device would be waiting for itself. Throws failed_precondition for a shared lease where |wanted| is exclusive.
bool is_leased_already(const Turnstile& turnstile, std::string_view lease_variable, TicketKind wanted);

}  // namespace tenon
