// Diagnostics: why there is no accelerator, whether a device works, and a description of all devices.
//
// check_accelerators() and device_report() open no device; check_device() runs five small programs on one.
// Thread safety: all functions may be called from any thread.
//
//   for (const Check& check : check_accelerators(manager.detect())) print(check.id, check.text, check.remedy);
//   for (const Check& check : check_device(manager, "gpu")) ...
//   print_device_info(manager);
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/manager.h"

namespace tenon {

enum class Verdict : std::uint8_t { pass, warn, fail };
std::string_view name(Verdict verdict) noexcept;  // "PASS", "WARN", "FAIL"

struct Check {
  std::string id;  // stable: "cpu:0.basic", "accelerator.nvidia"
  Verdict verdict = Verdict::pass;
  std::string text;
  std::string remedy = {};
  std::optional<double> seconds = {};
};

// For every accelerator, what it needs in order: card, driver, node, permission, runtime; the first that is missing is a warning
// with a remedy. Without any accelerator: a warning, and for each vendor what was looked for and not found.
std::vector<Check> check_accelerators(const Detection& found, const SystemRoot& machine = {});

// Basic arithmetic, a small network, a matrix product, attention, and 128 MiB of memory on |device|, each compared with its
// expected result. Ends after a failure that makes the rest pointless. |on_check| gets each check when it is done. Throws
// cancelled, and not_found for an unknown device.
std::vector<Check> check_device(DeviceManager& manager, std::string_view device, const RunOptions& how = {},
                                const std::function<void(const Check&)>& on_check = {});

// The devices of |manager|, all that is known of each, and which one "auto" stands for, as text for people.
std::string device_report(const DeviceManager& manager);
void print_device_info(const DeviceManager& manager);  // to standard output
void print_device_info(const DeviceManager& manager, std::ostream& out);

}  // namespace tenon
