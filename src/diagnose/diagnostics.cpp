#include "tenon/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "device/advice.h"
#include "diagnose/device_programs.h"
#include "present/device/device.h"
#include "tenon/device/simulated.h"

namespace tenon {
namespace {

bool is_accelerator(const DeviceInfo& device) { return device.kind != DeviceKind::cpu && !is_simulated(device); }

void check_card(const SystemRoot& machine, const DeviceInfo& device, std::vector<Check>& checks) {
  for (const CardStep& step : steps_of(machine, device))
    checks.push_back({.id = fmt::format("{}.{}", device.id, step.name),
                      .verdict = step.is_met ? Verdict::pass : Verdict::warn,
                      .text = step.text,
                      .remedy = step.remedy});
}

}  // namespace

std::string_view name(Verdict verdict) noexcept {
  constexpr std::string_view names[] = {"PASS", "WARN", "FAIL"};
  return names[static_cast<int>(verdict)];
}

std::vector<Check> check_accelerators(const Detection& found, const SystemRoot& machine) {
  std::vector<Check> checks;
  for (const DeviceInfo& device : found.devices)
    if (is_accelerator(device)) check_card(machine, device, checks);
  if (std::ranges::any_of(found.devices, is_accelerator)) return checks;
  const std::vector<SearchResult> searched = search_accelerators(machine);
  const bool is_there = std::ranges::any_of(searched, &SearchResult::is_found);
  checks.push_back({.id = "accelerator",
                    .verdict = Verdict::warn,
                    .text = is_there ? "no accelerator was recognised, although cards of their vendors are there"
                                     : "no accelerator was found; programs run on the CPU",
                    .remedy = "the checks accelerator.VENDOR below say what was looked for; on a machine without a card this is "
                              "expected"});
  for (const SearchResult& vendor : searched)
    checks.push_back({.id = "accelerator." + vendor.id, .verdict = Verdict::pass, .text = vendor.text, .remedy = vendor.remedy});
  return checks;
}

std::vector<Check> check_device(DeviceManager& manager, std::string_view device, const RunOptions& how,
                                const std::function<void(const Check&)>& on_check) {
  return diagnose(manager.find(device).id, manager, device_diagnostics(), how, on_check);
}

std::string device_report(const DeviceManager& manager) {
  const Detection found = manager.detect();
  std::string text = present::device_table(found.devices, {});
  for (const DeviceInfo& device : found.devices) {
    text += fmt::format("\n{}  {}\n", device.id, device.name);
    for (const auto& [key, value] : present::device_facts(device)) text += fmt::format("  {:<20}{}\n", key, value);
  }
  text += fmt::format("\ndefault device: {}\n", manager.default_device().id);
  for (const std::string& note : found.notes) text += fmt::format("note: {}\n", note);
  return text;
}

void print_device_info(const DeviceManager& manager, std::ostream& out) { out << device_report(manager); }
void print_device_info(const DeviceManager& manager) { print_device_info(manager, std::cout); }

}  // namespace tenon
