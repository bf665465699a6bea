#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "base/text/units.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/option_checks.h"
#include "lease/policy/replay.h"

namespace tenon::cli {
namespace {

constexpr const char* kNotes = R"(The trace is a CSV file whose first line names its columns: arrivals in TIMESTAMP or
arrival_seconds, service times in service_seconds (20 ms if the column is missing).
Policies, as in the setting keep_open: on_demand, linger (for the break-even time), linger=SECONDS,
adaptive, always. The break-even is the
idle time that costs as much as closing and reopening the device.

cost    idle holding plus closings, relative to the optimal decisions
cold    share of gaps after which the device was closed
held    time open without work
waiter  wait of another process that arrives at a random time; without yield: if it had to
        wait until the policy closes the device

Examples:
  tenon policy replay arrivals.csv
  tenon policy replay arrivals.csv --break-even 30 --policy adaptive --policy linger=60 --json)";

struct PolicyArguments {
  std::string trace;
  std::vector<std::string> policies;
  double break_even = 2;
};

struct NamedPolicy {
  std::string name;
  KeepOpen policy;
};

NamedPolicy parse_policy(const std::string& text, double break_even) {
  if (text == "close-at-once" || text == "on_demand") return {"on_demand", KeepOpen::on_demand(break_even)};
  if (text == "never" || text == "always") return {"always", KeepOpen::always(break_even)};
  if (text == "break-even" || text == "linger") return {"linger", KeepOpen::linger(break_even)};
  if (text == "adaptive") return {"adaptive", KeepOpen::adaptive(break_even)};
  // As the setting is written, and as the table calls it.
  for (const auto& [prefix, unit] : {std::pair<std::string_view, std::string_view>{"linger=", ""}, {"fixed-", "s"}}) {
    if (!text.starts_with(prefix)) continue;
    double seconds = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + prefix.size(), end, seconds);
    if (read.ec == std::errc() && std::string_view(read.ptr, end) == unit && std::isfinite(seconds) && seconds >= 0)
      return {fmt::format("linger={}", seconds), KeepOpen::linger(break_even, seconds)};
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("unknown policy '{}'", text),
              "use on_demand, linger, linger=SECONDS, adaptive or always");
}

std::vector<NamedPolicy> chosen_policies(const PolicyArguments& arguments) {
  std::vector<std::string> names = arguments.policies;
  if (names.empty()) names = {"on_demand", "linger=5", "linger=300", "always", "linger", "adaptive"};
  std::vector<NamedPolicy> policies;
  for (const std::string& name : names) policies.push_back(parse_policy(name, arguments.break_even));
  return policies;
}

void write(JsonWriter& json, const ReplayResult& result, const std::string& policy) {
  json.begin_object();
  if (!policy.empty()) json.member("policy", policy);
  json.member("cost_ratio", result.cost_ratio);
  json.member("cost_seconds", result.cost_seconds);
  json.member("cold_fraction", result.cold_fraction);
  json.member("held_seconds", result.held_seconds);
  json.member("opens", result.opens);
  json.member("waiter_p50_seconds", result.waiter.p50_seconds);
  json.member("waiter_p99_seconds", result.waiter.p99_seconds);
  json.member("waiter_without_yield_p50_seconds", result.patient_waiter.p50_seconds);
  json.member("waiter_without_yield_p99_seconds", result.patient_waiter.p99_seconds);
  json.end_object();
}

std::string row(const std::string& name, const ReplayResult& result) {
  return fmt::format("{:<14}{:>10.3f}{:>9.2f} %{:>11}{:>9}{:>11}{:>11}{:>15}\n", name, result.cost_ratio,
                     100 * result.cold_fraction, format_seconds(result.held_seconds), result.opens,
                     format_seconds(result.waiter.p50_seconds), format_seconds(result.waiter.p99_seconds),
                     format_seconds(result.patient_waiter.p99_seconds));
}

// Bars on a logarithmic scale: costs differ by four orders of magnitude.
void plot(std::ostream& out, int width, const std::vector<std::pair<std::string, ReplayResult>>& rows) {
  double largest = 2;
  for (const auto& [name, result] : rows) largest = std::max(largest, result.cost_ratio);
  const double room = std::max(10, width - 14 - 12);
  out << fmt::format("cost relative to the optimum, 1 to {:.3g}, logarithmic\n", largest);
  for (const auto& [name, result] : rows) {
    const double part = std::log(std::max(1.0, result.cost_ratio)) / std::log(largest);
    out << fmt::format("{:<14}|{:#<{}} {:.3g}\n", name, "", static_cast<int>(std::lround(part * room)), result.cost_ratio);
  }
}

int replay_trace(const PolicyArguments& arguments, const Session& session) {
  const std::vector<NamedPolicy> policies = chosen_policies(arguments);
  if (std::error_code ignored; std::filesystem::is_directory(arguments.trace, ignored))
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is a directory, not a trace", arguments.trace));
  const std::vector<Arrival> arrivals = load_arrivals(arguments.trace);
  const std::vector<BusyPeriod> periods = busy_periods(arrivals);
  const ReplayResult optimum = replay_optimum(periods, arguments.break_even);
  const double span = periods.back().end - periods.front().begin;
  std::vector<std::pair<std::string, ReplayResult>> results;
  for (const NamedPolicy& entry : policies) results.emplace_back(entry.name, replay(periods, entry.policy));

  std::ostream& out = session.console.out;
  if (session.json) {
    print_document(out, 1, [&](JsonWriter& json) {
      json.member("trace", arguments.trace);
      json.member("break_even_seconds", arguments.break_even);
      json.member("arrivals", arrivals.size());
      json.member("gaps", periods.size() - 1);
      json.member("span_seconds", span);
      json.key("optimum");
      write(json, optimum, "");
      json.key("policies").begin_array();
      for (const auto& [name, result] : results) write(json, result, name);
      json.end_array();
    });
    return 0;
  }
  out << fmt::format("{} arrivals in {}, {} idle gaps, break-even {}\n\n", arrivals.size(), format_seconds(span),
                     periods.size() - 1, format_seconds(arguments.break_even));
  const std::string head = fmt::format("{:<14}{:>10}{:>11}{:>11}{:>9}{:>11}{:>11}{:>15}", "POLICY", "COST", "COLD", "HELD",
                                       "OPENS", "WAITER P50", "P99", "WITHOUT YIELD");
  out << session.console.bold(head) << '\n';
  for (const auto& [name, result] : results) out << row(name, result);
  out << row("optimum", optimum) << '\n';
  plot(out, std::min(session.console.width, 100), results);
  return 0;
}

}  // namespace

void add_policy_command(Command& app, Session& session) {
  auto arguments = std::make_shared<PolicyArguments>();
  Command* command = app.add_subcommand("policy", "Compare policies for keeping devices open");
  command->require_subcommand(1, 1);
  command->footer("Examples:\n  tenon policy replay arrivals.csv");
  Command* replay_command =
      command->add_subcommand("replay", "Replay recorded arrivals against keep-open policies in virtual time");
  replay_command->add_option("trace", arguments->trace, "CSV file of arrivals")->required()->type_name("TRACE.csv");
  replay_command->add_option("--policy", arguments->policies, "Replay only this policy; may be repeated")
      ->may_repeat()
      ->type_name("POLICY");
  replay_command->add_option("--break-even", arguments->break_even, "Idle seconds that cost as much as reopening the device")
      ->capture_default_str()
      ->check(in_range(1e-6, 1e9))
      ->type_name("SECONDS");
  add_output_options(*replay_command, session);
  replay_command->footer(kNotes);
  replay_command->callback(
      [arguments, &session] { session.action = [arguments, &session] { return replay_trace(*arguments, session); }; });
}

}  // namespace tenon::cli
