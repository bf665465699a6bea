#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "cli/json.h"
#include "base/units.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

constexpr std::uint64_t kLowMemory = std::uint64_t{256} << 20;

std::string_view text_of(Verdict verdict) {
  constexpr std::string_view names[] = {"PASS", "WARN", "FAIL"};
  return names[static_cast<int>(verdict)];
}

void check_devices(const Detection& found, std::vector<Check>& checks) {
  for (const DeviceInfo& device : found.devices)
    checks.push_back({.id = "device." + device.id,
                      .verdict = device.available ? Verdict::pass : Verdict::warn,
                      .text = device.available ? device.name : fmt::format("{}: {}", device.name, device.reason),
                      .remedy = device.remedy});
  if (!found.notes.empty())
    for (const std::string& note : found.notes)
      checks.push_back({.id = "detection.note", .verdict = Verdict::warn, .text = note});
}

void check_host(const Detection& found, std::vector<Check>& checks) {
  for (const DeviceInfo& device : found.devices) {
    if (device.kind != DeviceKind::cpu || !device.memory_free_bytes) continue;
    const bool low = *device.memory_free_bytes < kLowMemory;
    checks.push_back({.id = "host.memory",
                      .verdict = low ? Verdict::warn : Verdict::pass,
                      .text = format_bytes(static_cast<double>(*device.memory_free_bytes)) + " free",
                      .remedy = low ? "end other programs, or raise the memory limit" : ""});
  }
}

std::vector<DeviceInfo> to_examine(const Detection& found, const std::string& wish) {
  if (!wish.empty()) {
    const DeviceInfo device = process_manager().find(wish);
    if (!device.available)
      throw Error(ErrorCode::unavailable, fmt::format("{} cannot be used: {}", device.id, device.reason), device.remedy);
    return {device};
  }
  std::vector<DeviceInfo> usable;
  for (const DeviceInfo& device : found.devices)
    if (device.available) usable.push_back(device);
  return usable;
}

int examine(const std::string& wish, const Session& session) {
  const Detection found = process_manager().detect();
  std::vector<Check> checks;
  check_devices(found, checks);
  check_host(found, checks);
  const std::vector<DeviceInfo> usable = to_examine(found, wish);
  if (usable.empty())
    checks.push_back(
        {.id = "device.any", .verdict = Verdict::fail, .text = "no devices are visible", .remedy = "see the devices above"});
  for (const DeviceInfo& device : usable)
    for (Check& check : diagnose(device.id, process_manager())) checks.push_back(std::move(check));

  Verdict worst = Verdict::pass;
  for (const Check& check : checks) worst = std::max(worst, check.verdict);
  if (session.json) {
    boost::json::array list;
    for (const Check& check : checks)
      list.push_back(
          boost::json::object{{"id", check.id},
                              {"verdict", text_of(check.verdict)},
                              {"text", check.text},
                              {"remedy", check.remedy},
                              {"seconds", check.seconds ? boost::json::value(*check.seconds) : boost::json::value(nullptr)}});
    session.console.out << to_text(boost::json::object{{"schema", 1}, {"verdict", text_of(worst)}, {"checks", std::move(list)}});
  } else {
    for (const Check& check : checks) {
      session.console.out << fmt::format("{}  {:<28}  {}{}\n", text_of(check.verdict), check.id, check.text,
                                         check.seconds ? ", " + format_seconds(*check.seconds) : "");
      if (!check.remedy.empty() && check.verdict != Verdict::pass) session.console.out << fmt::format("      {}\n", check.remedy);
    }
  }
  return static_cast<int>(worst);
}

}  // namespace

void add_doctor_command(CLI::App& app, Session& session) {
  auto device = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("doctor", "Check the machine and compute something on every usable device");
  command->add_option("--device", *device, "Compute on this one only: a kind or an id")->type_name("DEVICE");
  add_output_options(*command, session);
  command->footer(
      "Exit status: 0 everything passed, 1 with warnings, 2 something failed.\n\nExamples:\n  tenon doctor\n  tenon doctor "
      "--device cpu --json");
  command->callback([device, &session] { session.action = [device, &session] { return examine(*device, session); }; });
}

}  // namespace tenon::cli
