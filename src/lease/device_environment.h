// The environment of a program that runs under a lease, which tells other software which device it may use.
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
// TPU_VISIBLE_CHIPS for TPUs, with the number of the device's id. Empty for other kinds.
std::vector<std::pair<std::string, std::string>> visibility_variables(const DeviceInfo& device);

// TENON_LEASE: which device is leased, and under which epoch; several are separated by commas.
struct LeaseName {
  std::string device;
  std::uint64_t epoch = 0;
  std::string text() const;  // "cpu:0@17"
  static std::optional<LeaseName> parse(std::string_view text);
};

// Whether this process runs under an active lease on the turnstile's device, according to |lease_variable| (TENON_LEASE); waiting
// for the device would then be a deadlock. Throws failed_precondition for a shared lease if |wanted| is exclusive.
bool is_leased_already(const Turnstile& turnstile, std::string_view lease_variable, TicketKind wanted);

}  // namespace tenon
