// tenon simulate: a fleet of simulated devices under load, with the real routing and keep-open decisions.
#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "base/text/units.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/option_checks.h"
#include "cli/terminal/plot.h"
#include "cli/terminal/svg_file.h"
#include "lease/policy/arrival_trace.h"
#include "manager/routing/fleet_simulation.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

constexpr const char* kNotes = R"(Everything here is simulated: no device is opened, and time is virtual. Routing ("fastest") and
keep-open decisions are those of the real program.

  --devices 4x4,4x1    4 devices that do 4 jobs of mean size per second, and 4 that do one
  --load 0.9           jobs arrive at random, at 0.9 of what all devices can do together
  --trace FILE         or as recorded: a CSV file with TIMESTAMP or arrival_seconds

Policies: fastest (ours), expected (least expected completion), least_loaded, two_choices, round_robin, random.

Examples:
  tenon simulate --devices 4x4,4x1 --load 0.9
  tenon simulate --devices 1000x1 --load 0.7 --policy two_choices --policy random
  tenon simulate --devices 8x50 --trace arrivals.csv --open 2 --keep-open adaptive --price 2 --json
  tenon simulate --devices 8x1 --load 0.7 --death-every 10 --repair 5 --svg latency.svg)";

struct SimulateArguments {
  std::string devices = "4x4,4x1", trace, keep_open = "always", svg;
  std::vector<std::string> policies;
  FleetOptions options;
};

FleetClass parse_class(std::string_view text) {
  FleetClass result;
  const std::size_t times = text.find('x');
  const char* const end = text.data() + text.size();
  const auto count = std::from_chars(text.data(), text.data() + std::min(times, text.size()), result.count);
  const bool has_count = count.ec == std::errc() && times != std::string_view::npos && count.ptr == text.data() + times;
  const auto speed = has_count ? std::from_chars(text.data() + times + 1, end, result.speed)
                               : std::from_chars_result{end, std::errc::invalid_argument};
  if (!has_count || speed.ec != std::errc() || speed.ptr != end)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not COUNTxSPEED", text),
                "for example --devices 4x4,4x1: four fast devices and four slow ones");
  return result;
}

FleetOptions options_of(const SimulateArguments& arguments) {
  FleetOptions options = arguments.options;
  options.classes.clear();
  for (std::size_t begin = 0;;) {
    const std::size_t end = arguments.devices.find(',', begin);
    options.classes.push_back(parse_class(std::string_view(arguments.devices).substr(begin, end - begin)));
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  for (const KeepOpenPolicy policy :
       {KeepOpenPolicy::on_demand, KeepOpenPolicy::linger, KeepOpenPolicy::adaptive, KeepOpenPolicy::always})
    if (name(policy) == arguments.keep_open) options.keep_open = policy;
  if (!arguments.trace.empty())
    for (const Arrival& arrival : load_arrivals(arguments.trace)) options.arrivals.push_back(arrival.seconds);
  return options;
}

void write(JsonWriter& json, const SimulateArguments& arguments, const FleetOptions& options,
           const std::vector<std::pair<Balancing, FleetResult>>& results) {
  json.member("simulated", true);
  json.member("devices", arguments.devices);
  if (arguments.trace.empty())
    json.member("load", options.load);
  else
    json.member("trace", arguments.trace);
  json.key("policies").begin_array();
  for (const auto& [balancing, result] : results) {
    json.begin_object();
    json.member("policy", name(balancing));
    json.member("jobs", result.jobs);
    json.member("mean_seconds", result.mean_seconds);
    json.member("p50_seconds", result.p50_seconds);
    json.member("p90_seconds", result.p90_seconds);
    json.member("p99_seconds", result.p99_seconds);
    json.member("max_seconds", result.max_seconds);
    json.member("busy", result.busy);
    json.member("open", result.open);
    json.member("opens", result.opens);
    json.member("deaths", result.deaths);
    json.member("repeated", result.repeated);
    json.member("cost_dollars", result.dollars);
    json.key("share_of_class").begin_array();
    for (const double share : result.share_of_class) json.value(share);
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

// The 99th percentile and the mean over the load, under the first policy.
Curve curve_of(const SimulateArguments& arguments, FleetOptions options, Balancing balancing) {
  Curve curve{.title = fmt::format("{} devices, policy {} (simulated)", arguments.devices, name(balancing)),
              .x_label = "load",
              .y_label = "99th percentile",
              .points = {},
              .second = {},
              .second_label = "mean",
              .mark = options.load,
              .format_y = [](double y) { return format_seconds(y); },
              .format_second = [](double y) { return format_seconds(y); }};
  for (const double load : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95}) {
    options.load = load;
    const FleetResult result = simulate_fleet(options, balancing);
    curve.points.push_back({load, result.p99_seconds});
    curve.second.push_back({load, result.mean_seconds});
  }
  return curve;
}

int run(const SimulateArguments& arguments, const Session& session) {
  const FleetOptions options = options_of(arguments);
  if (!arguments.svg.empty() && !arguments.trace.empty())
    throw Error(ErrorCode::invalid_argument, "--svg draws latency over load, and a trace has a load of its own",
                "use it without --trace");
  std::vector<Balancing> policies;
  for (const std::string& policy : arguments.policies) policies.push_back(parse_balancing(policy));
  if (policies.empty())
    policies = {Balancing::fastest,     Balancing::expected,    Balancing::least_loaded,
                Balancing::two_choices, Balancing::round_robin, Balancing::random};
  SvgFile svg(arguments.svg);
  std::vector<std::pair<Balancing, FleetResult>> results;
  std::ostream& out = session.console.out;
  if (!session.json)
    out << "simulated: no device is used\n"
        << session.console.bold(fmt::format("{:<14}{:>12}{:>12}{:>12}{:>12}{:>8}{:>8}{:>10}{:>12}", "POLICY", "MEAN", "MEDIAN",
                                            "90 %", "99 %", "BUSY", "OPEN", "OPENS", "COST"))
        << '\n';
  for (const Balancing policy : policies) {
    const FleetResult& result = results.emplace_back(policy, simulate_fleet(options, policy)).second;
    if (session.json) continue;
    out << fmt::format("{:<14}{:>12}{:>12}{:>12}{:>12}{:>7.0f}%{:>7.0f}%{:>10}{:>12}\n", name(policy),
                       format_seconds(result.mean_seconds), format_seconds(result.p50_seconds),
                       format_seconds(result.p90_seconds), format_seconds(result.p99_seconds), 100 * result.busy,
                       100 * result.open, result.opens,
                       options.dollars_per_hour > 0 ? fmt::format("${:.2f}", result.dollars) : "-")
        << std::flush;
    if (result.deaths > 0)
      out << fmt::format("  {} deaths, {} jobs given out again, none lost\n", result.deaths, result.repeated);
  }
  if (session.json) print_document(out, 1, [&](JsonWriter& json) { write(json, arguments, options, results); });
  if (!svg.is_wanted()) return 0;
  svg.save(curve_of(arguments, options, policies[0]));
  if (!session.json) out << "saved to " << arguments.svg << '\n';
  return 0;
}

}  // namespace

void add_simulate_command(Command& app, Session& session) {
  auto arguments = std::make_shared<SimulateArguments>();
  FleetOptions& options = arguments->options;
  Command* command = app.add_subcommand("simulate", "Simulate a fleet of devices under load: latency, cost and opens by policy");
  command->add_option("--devices", arguments->devices, "COUNTxSPEED of each kind, separated by commas")
      ->type_name("LIST")
      ->capture_default_str();
  command->add_option("--load", options.load, "Jobs arriving, as a share of what the devices can do")
      ->check(in_range(0.001, 100.0))
      ->type_name("SHARE")
      ->capture_default_str();
  command->add_option("--jobs", options.jobs, "Number of jobs")
      ->check(in_range(10, 100'000'000))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--trace", arguments->trace, "Arrivals from a CSV file instead")->type_name("FILE");
  command->add_option("--policy", arguments->policies, "Policy to try; repeatable; all if none is given")
      ->type_name("NAME")
      ->may_repeat();
  command->add_option("--open", options.open_seconds, "Seconds to open a device")
      ->check(in_range(0.0, 1e6))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--close", options.close_seconds, "Seconds to close a device")
      ->check(in_range(0.0, 1e6))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--keep-open", arguments->keep_open, "When idle devices close")
      ->check(one_of({"on_demand", "linger", "adaptive", "always"}))
      ->type_name("POLICY")
      ->capture_default_str();
  command->add_option("--view-age", options.view_age_seconds, "How old the knowledge of queues is")
      ->check(in_range(0.0, 1e6))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--death-every", options.seconds_between_deaths, "A device dies this often; 0: never")
      ->check(in_range(0.0, 1e9))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--repair", options.repair_seconds, "Seconds until a dead device is back")
      ->check(in_range(0.0, 1e9))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--price", options.dollars_per_hour, "Dollars per hour open, for each unit of speed")
      ->check(in_range(0.0, 1e9))
      ->type_name("DOLLARS")
      ->capture_default_str();
  command->add_flag("--equal-jobs", options.has_equal_jobs, "All jobs have the same size; else exponentially distributed");
  command->add_option("--seed", options.seed, "Of the random numbers")->type_name("N")->capture_default_str();
  command->add_option("--svg", arguments->svg, "Save latency over load, under the first policy, as SVG")->type_name("FILE");
  add_output_options(*command, session);
  command->footer(kNotes);
  command->callback([arguments, &session] { session.action = [arguments, &session] { return run(*arguments, session); }; });
}

}  // namespace tenon::cli
