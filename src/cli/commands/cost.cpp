#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/system/state_directory.h"
#include "cli/commands/commands.h"
#include "cli/inputs/inputs.h"
#include "cli/json.h"
#include "present/device/usage.h"
#include "present/text.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

using present::duration_text;
using present::money_text;

constexpr const char* kNotes = R"(COST         open time multiplied by the price at that time
OPEN         from the start of opening to the end of closing
COMPUTE      the part of it spent computing; EFFICIENCY is COMPUTE / OPEN
ALWAYS OPEN  the cost if the device had been open since its first use in the period

Prices come from the configuration (tenon config prices); built-in prices are estimates and
marked with ~. Work on the CPU costs nothing, and short runs on it are not recorded
individually: see docs/cost.md.

Examples:
  tenon cost
  tenon cost --since 7d --by program
  tenon cost --since 2026-11-01 --by day --json)";

struct CostArguments {
  std::string since, by = "device";
};

std::string date_text(SystemTime time) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(std::chrono::system_clock::to_time_t(time)));
}

std::vector<std::string> row_of(const UseSum& sum) {
  const bool is_unpriced = sum.money == 0 && sum.unpriced_open_seconds > 0;
  const auto efficiency = sum.efficiency();
  return {sum.key,
          is_unpriced ? present::kNothing : money_text(sum.money, sum.money_is_estimate),
          duration_text(sum.open_seconds),
          duration_text(sum.compute_seconds),
          efficiency ? fmt::format("{:.0f} %", 100 * *efficiency) : "-",
          duration_text(sum.queued_seconds),
          std::to_string(sum.runs),
          sum.failures > 0 ? std::to_string(sum.failures) : "-",
          sum.always_open_money ? money_text(*sum.always_open_money, sum.money_is_estimate) : "-"};
}

void print(const UseReport& report, UseKey by, const std::optional<SystemTime>& since, const Console& console) {
  std::ostream& out = console.out;
  if (report.groups.empty()) {
    out << (since ? fmt::format("no device usage is recorded since {}\n", date_text(*since))
                  : std::string("no device usage is recorded yet\n"));
    return;
  }
  out << fmt::format("since {}\n\n", date_text(since && *since > *report.first ? *since : *report.first));
  std::string heading(name(by));
  for (char& c : heading) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  present::Rows rows{{heading, "COST", "OPEN", "COMPUTE", "EFFICIENCY", "QUEUED", "RUNS", "FAILED", "ALWAYS OPEN"}};
  for (const UseSum& sum : report.groups) rows.push_back(row_of(sum));
  if (report.groups.size() > 1) rows.push_back(row_of(report.total));
  if (by == UseKey::program)
    for (auto& row : rows) row.pop_back();
  out << present::table(rows, console.style());
  if (report.total.money_is_estimate) out << "\n~ at built-in estimates; set your own prices in the configuration\n";
  if (report.total.unpriced_open_seconds > 0)
    out << fmt::format("\n{} had no known price\n", duration_text(report.total.unpriced_open_seconds));
}

UseKey key_of(const std::string& text) {
  for (const UseKey key : {UseKey::device, UseKey::program, UseKey::day})
    if (text == name(key)) return key;
  throw Error(ErrorCode::invalid_argument, fmt::format("usage cannot be grouped by '{}'", text), "use device, program or day");
}

int show_cost(const CostArguments& arguments, const Session& session) {
  const UseKey by = key_of(arguments.by);
  std::optional<SystemTime> since;
  if (!arguments.since.empty()) since = parse_since(arguments.since, std::chrono::system_clock::now());
  if (!ledger_is_built())
    throw Error(ErrorCode::unimplemented, "this build of Tenon has no ledger",
                "build Tenon with the SQLite library installed (libsqlite3-dev)");
  const bool is_kept = load_config(session.config_sources()).config.ledger;
  const std::string directory = state_directory(session.console.environment);
  const std::string file = directory.empty() ? "" : directory + "/ledger.db";
  UseReport report{.groups = {}, .total = {.key = "total"}, .first = {}};
  if (std::error_code ignored; std::filesystem::exists(file, ignored))
    report = LedgerStore::open_existing(file).sums({.since = since.value_or(SystemTime{}), .by = by});
  if (session.json) {
    print_document(session.console.out, 2, [&](JsonWriter& json) {
      json.text_or_null("since", since ? present::utc_text(*since) : "");
      json.text_or_null("first", report.first ? present::utc_text(*report.first) : "");
      json.member("by", arguments.by);
      json.member("currency", "USD");
      json.member("ledger", file);
      json.member("recording", is_kept);
      json.key("groups").begin_array();
      for (const UseSum& sum : report.groups) present::write_use_sum(json, sum, by);
      json.end_array();
      json.key("total");
      present::write_use_sum(json, report.total, std::nullopt);
    });
    return 0;
  }
  print(report, by, since, session.console);
  if (!is_kept) session.console.err << "tenon: usage is not being recorded, because the setting ledger is off\n";
  return 0;
}

}  // namespace

void add_cost_command(Command& app, Session& session) {
  auto arguments = std::make_shared<CostArguments>();
  Command* command = app.add_subcommand("cost", "Show what devices have cost and how much of that time was computing");
  command->add_option("--since", arguments->since, "Start of the period: 30m, 12h, 7d or 4w ago, or a date such as 2026-11-01")
      ->type_name("TIME");
  command->add_option("--by", arguments->by, "Group by device, program or day; device by default")->type_name("KEY");
  add_output_options(*command, session);
  command->footer(kNotes);
  command->callback([arguments, &session] { session.action = [arguments, &session] { return show_cost(*arguments, session); }; });
}

}  // namespace tenon::cli
