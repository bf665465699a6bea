#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/text/units.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/option_checks.h"
#include "lease/turnstile/turnstile.h"
#include "present/device/device.h"
#include "tenon/device/simulated.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

constexpr const char* kNotes =
    R"notes(Prints the ids of usable devices, best first: those that nobody holds or waits for, then those with the
shortest queue, of these the one with the most free memory. Nothing is reserved; `tenon exec` takes a lease.

Exit status: 0 found, 3 no such device on this machine, 4 there are such devices, but none is free now.

Examples:
  tenon pick --kind gpu --free-memory 8GiB
  tenon pick --kind gpu --idle --count 2
  tenon run 'a @ b' a='rand([512, 512])' b='rand([512, 512])' --device "$(tenon pick)")notes";

struct PickArguments {
  std::string kind;
  std::optional<std::uint64_t> free_bytes;
  int count = 1;
  bool idle = false, simulated = false;
};

struct Candidate {
  DeviceInfo device;
  std::size_t users = 0;  // that hold it or wait for it, here and elsewhere
};

std::vector<Candidate> candidates_of(const PickArguments& arguments, const Session& session) {
  const std::optional<DeviceKind> kind = arguments.kind.empty() ? std::nullopt : parse_device_kind(arguments.kind);
  if (!arguments.kind.empty() && !kind)
    throw Error(ErrorCode::invalid_argument, fmt::format("unknown kind '{}'", arguments.kind),
                "kinds: cpu, gpu, tpu, tenstorrent, other");
  const std::optional<RunDirectory> directory = RunDirectory::open_existing(session.console.environment);
  std::vector<Candidate> all;
  for (DeviceInfo& device : process_manager().devices()) {
    if (!device.same_as.empty() || (kind && device.kind != *kind)) continue;
    if (is_simulated(device) && !arguments.simulated) continue;
    Candidate one{std::move(device), 0};
    one.users = one.device.holders.size();
    if (directory)
      for (const Turnstile& turnstile : Turnstile::all(*directory))
        if (turnstile.device() == one.device.id) one.users = std::max(one.users, turnstile.queue().places.size());
    all.push_back(std::move(one));
  }
  return all;
}

// Why |one| is left out; "" if it is not.
std::string why_not(const Candidate& one, const PickArguments& arguments) {
  const DeviceInfo& device = one.device;
  if (!device.available) return device.reason;
  if (arguments.idle && one.users > 0) return "in use";
  if (!arguments.free_bytes) return "";
  const std::optional<std::uint64_t> free = device.memory_free_bytes ? device.memory_free_bytes : device.memory_total_bytes;
  if (!free) return "its memory is not known";
  return *free >= *arguments.free_bytes ? "" : fmt::format("{} free", format_bytes(static_cast<double>(*free)));
}

int pick(const PickArguments& arguments, const Session& session) {
  std::vector<Candidate> all = candidates_of(arguments, session);
  if (all.empty())
    throw Error(ErrorCode::not_found,
                arguments.kind.empty() ? "no devices were found" : fmt::format("no {} was found on this machine", arguments.kind),
                "tenon doctor says what was looked for");
  std::string left_out;
  for (const Candidate& one : all)
    if (const std::string reason = why_not(one, arguments); !reason.empty())
      left_out += fmt::format("{}{}: {}", left_out.empty() ? "" : "; ", one.device.id, reason);
  std::erase_if(all, [&](const Candidate& one) { return !why_not(one, arguments).empty(); });
  if (all.size() < static_cast<std::size_t>(arguments.count))
    throw Error(ErrorCode::unavailable,
                all.empty() ? fmt::format("no device fits: {}", left_out)
                            : fmt::format("{} devices fit, but {} are needed{}{}", all.size(), arguments.count,
                                          left_out.empty() ? "" : ": ", left_out),
                "ask for less, or wait: tenon queue shows who holds what");
  const auto is_better = [](const Candidate& a, const Candidate& b) {
    if (a.users != b.users) return a.users < b.users;
    if ((a.device.kind == DeviceKind::cpu) != (b.device.kind == DeviceKind::cpu)) return b.device.kind == DeviceKind::cpu;
    const std::uint64_t free_a = a.device.memory_free_bytes.value_or(0), free_b = b.device.memory_free_bytes.value_or(0);
    return free_a != free_b ? free_a > free_b : a.device.id < b.device.id;
  };
  std::sort(all.begin(), all.end(), is_better);
  all.resize(static_cast<std::size_t>(arguments.count));
  if (session.json) {
    print_document(session.console.out, 1, [&](JsonWriter& json) {
      json.key("devices").begin_array();
      for (const Candidate& one : all) present::write_device(json, one.device);
      json.end_array();
    });
    return 0;
  }
  for (const Candidate& one : all) session.console.out << one.device.id << '\n';
  return 0;
}

}  // namespace

void add_pick_command(Command& app, Session& session) {
  auto arguments = std::make_shared<PickArguments>();
  Command* command = app.add_subcommand("pick", "Print the id of the best device that is free and large enough");
  command->add_option("--kind", arguments->kind, "Only devices of this kind: cpu, gpu, tpu, tenstorrent or other")
      ->type_name("KIND");
  command->add_option("--free-memory", arguments->free_bytes, "Only devices with this much free memory, e.g. 8GiB")
      ->transform(size_in_bytes())
      ->type_name("SIZE");
  command->add_flag("--idle", arguments->idle, "Only devices that nobody holds or waits for");
  command->add_flag("--simulated", arguments->simulated, "Include simulated devices");
  command->add_option("--count", arguments->count, "Print this many devices")->check(in_range(1, 1000))->type_name("N");
  add_output_options(*command, session);
  command->footer(kNotes);
  command->callback([arguments, &session] { session.action = [arguments, &session] { return pick(*arguments, session); }; });
}

}  // namespace tenon::cli
