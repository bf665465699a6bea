#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/state_directory.h"
#include "cli/commands/commands.h"
#include "cli/device_table.h"
#include "cli/json.h"
#include "cli/money.h"
#include "manager/ledger/store.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

namespace json = boost::json;

constexpr const char* kNotes = R"(COST         the time a device was open, at its price of that time
OPEN         from the beginning of its opening to the end of its closing
COMPUTE      of that, spent computing; EFFICIENCY is the ratio of the two
ALWAYS OPEN  what the device would have cost, open ever since its first use in that time

Prices come from the configuration (tenon config prices); built-in ones are estimates and
marked with ~. Work on the processor costs nothing, and short runs on it are not recorded
one by one: see docs/cost.md.

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

std::string iso_text(SystemTime time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

json::value or_null(const std::optional<double>& value) { return value ? json::value(*value) : json::value(nullptr); }

json::object to_json(const UseSum& sum) {
  return {{"key", sum.key},
          {"cost", sum.money},
          {"cost_is_estimate", sum.money_is_estimate},
          {"open_seconds", sum.open_seconds},
          {"open_seconds_without_price", sum.unpriced_open_seconds},
          {"held_seconds", sum.held_seconds},
          {"compute_seconds", sum.compute_seconds},
          {"queued_seconds", sum.queued_seconds},
          {"efficiency", or_null(sum.efficiency())},
          {"always_open_cost", or_null(sum.always_open_money)},
          {"runs", sum.runs},
          {"leases", sum.leases},
          {"opens", sum.opens},
          {"failures", sum.failures},
          {"bytes", sum.bytes}};
}

std::vector<std::string> row_of(const UseSum& sum) {
  const bool is_unpriced = sum.money == 0 && sum.unpriced_open_seconds > 0;
  const auto efficiency = sum.efficiency();
  return {sum.key,
          is_unpriced ? "-" : money_text(sum.money, sum.money_is_estimate),
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
    out << (since ? fmt::format("no use of a device is recorded since {}\n", date_text(*since))
                  : std::string("no use of a device is recorded yet\n"));
    return;
  }
  out << fmt::format("since {}\n\n", date_text(since && *since > *report.first ? *since : *report.first));
  std::string heading(name(by));
  for (char& c : heading) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::vector<std::vector<std::string>> rows{
      {heading, "COST", "OPEN", "COMPUTE", "EFFICIENCY", "QUEUED", "RUNS", "FAILED", "ALWAYS OPEN"}};
  for (const UseSum& sum : report.groups) rows.push_back(row_of(sum));
  if (report.groups.size() > 1) rows.push_back(row_of(report.total));
  if (by == UseKey::program)
    for (auto& row : rows) row.pop_back();
  out << table(rows, console);
  if (report.total.money_is_estimate) out << "\n~ at built-in estimates; set your own prices in the configuration\n";
  if (report.total.unpriced_open_seconds > 0)
    out << fmt::format("\n{} were at no known price\n", duration_text(report.total.unpriced_open_seconds));
}

UseKey key_of(const std::string& text) {
  for (const UseKey key : {UseKey::device, UseKey::program, UseKey::day})
    if (text == name(key)) return key;
  throw Error(ErrorCode::invalid_argument, fmt::format("uses cannot be summed by '{}'", text), "one of device, program, day");
}

int show_cost(const CostArguments& arguments, const Session& session) {
  const UseKey by = key_of(arguments.by);
  std::optional<SystemTime> since;
  if (!arguments.since.empty()) since = parse_since(arguments.since, std::chrono::system_clock::now());
  if (!ledger_is_built())
    throw Error(ErrorCode::unimplemented, "this build keeps no ledger",
                "build Tenon where the SQLite library is installed (libsqlite3-dev)");
  const bool is_kept = load_config(session.config_sources()).config.ledger;
  const std::string directory = state_directory(session.console.environment);
  const std::string file = directory.empty() ? "" : directory + "/ledger.db";
  UseReport report{.groups = {}, .total = {.key = "total"}, .first = {}};
  if (std::error_code ignored; std::filesystem::exists(file, ignored))
    report = LedgerStore::open_existing(file).sums({.since = since.value_or(SystemTime{}), .by = by});
  if (session.json) {
    json::array groups;
    for (const UseSum& sum : report.groups) groups.push_back(to_json(sum));
    session.console.out << to_text(json::object{{"schema", 1},
                                                {"since", since ? json::value(iso_text(*since)) : json::value(nullptr)},
                                                {"first", report.first ? json::value(iso_text(*report.first)) : nullptr},
                                                {"by", arguments.by},
                                                {"currency", "USD"},
                                                {"ledger", file},
                                                {"recording", is_kept},
                                                {"groups", std::move(groups)},
                                                {"total", to_json(report.total)}});
    return 0;
  }
  print(report, by, since, session.console);
  if (!is_kept) session.console.err << "tenon: nothing is recorded now: the setting ledger is off\n";
  return 0;
}

}  // namespace

void add_cost_command(Command& app, Session& session) {
  auto arguments = std::make_shared<CostArguments>();
  Command* command = app.add_subcommand("cost", "What the use of devices has cost, and how much of it was computing");
  command->add_option("--since", arguments->since, "Only what came after: 30m, 12h, 7d, 4w ago, or a date 2026-11-01")
      ->transform(as_typed())
      ->type_name("TIME");
  command->add_option("--by", arguments->by, "Sum by device, program or day; device by default")->type_name("KEY");
  add_output_options(*command, session);
  command->footer(kNotes);
  command->callback([arguments, &session] { session.action = [arguments, &session] { return show_cost(*arguments, session); }; });
}

}  // namespace tenon::cli
