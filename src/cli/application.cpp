#include "cli/application.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/option_checks.h"
#include "ops/names.h"
#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  tenon run 'gelu(a * b + 0.5)' a='[1, 2, 3]' b=2
  tenon run 'softmax(x)' x='randn([4, 8], seed=1)' --dtype bfloat16
  tenon ops softmax
  tenon bench 'a @ b' a='rand([512, 512])' b='rand([512, 512])'

Exit status: 0 success, 1 failure, 2 usage error, 3 no such op, device or file,
4 device busy or unavailable, 5 result differs from the reference, 130 Ctrl-C.)";

// A command's help names the options of every command, too.
class HelpText final : public CLI::Formatter {
  std::string make_footer(const CLI::App* command) const override {
    const CLI::App* app = command;
    while (app->get_parent()) app = app->get_parent();
    const std::string footer = CLI::Formatter::make_footer(command);
    if (app == command) return footer;
    std::vector<std::string> names;
    for (const CLI::Option* option : app->get_options())
      if (option != app->get_help_ptr() && option != app->get_version_ptr()) names.push_back("--" + option->get_lnames().at(0));
    return fmt::format("Options of every command (tenon --help): {}\n{}{}", fmt::join(names, ", "), footer.empty() ? "" : "\n",
                       footer);
  }
};

// '-1 + 2' and '-x * y' are expressions, '-o' and '--json' are options.
bool looks_like_option(const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') return false;
  if (argument == "--" || argument.starts_with("-o") || argument.size() == 2)
    return !std::isdigit(static_cast<unsigned char>(argument[1]));
  const std::string name = argument.substr(0, argument.find('='));
  return name.starts_with("--") && name.size() > 2 && std::isalpha(static_cast<unsigned char>(name[2])) &&
         std::all_of(name.begin() + 2, name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-'; });
}

[[noreturn]] void usage(const std::string& message, const std::string& hint) {
  throw Error(ErrorCode::invalid_argument, message, hint);
}

std::string suggestion(std::string_view wanted, const std::vector<std::string>& known, const std::string& otherwise) {
  const std::string near = nearest(wanted, known);
  return near.empty() ? otherwise : fmt::format("did you mean '{}'?", near);
}

// The program after the -- of tenon exec and tenon cluster, and its arguments, which are not ours to look at.
std::vector<std::string> take_trailing(std::vector<std::string>& arguments) {
  const auto takes_next = [](const std::string& option) {
    return option.starts_with("--") && option != "--quiet" && option.find('=') == std::string::npos;
  };
  std::size_t command = 0;  // after --config FILE, --set=NAME=VALUE and the like
  while (command < arguments.size() && arguments[command].starts_with('-')) command += takes_next(arguments[command]) ? 2 : 1;
  if (command >= arguments.size() || (arguments[command] != "exec" && arguments[command] != "cluster")) return {};
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  if (mark == arguments.end()) return {};
  std::vector<std::string> trailing(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
  return trailing;
}

void check_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) known.push_back(command->get_name());
  if (arguments.empty()) usage("a command is required", fmt::format("commands: {}; see tenon --help", fmt::join(known, ", ")));
  const std::string& first = arguments[0];
  if (first[0] == '-' || std::find(known.begin(), known.end(), first) != known.end()) return;
  usage(fmt::format("unknown command '{}'", first), suggestion(first, known, "see tenon --help"));
}

// The command the user chose, down to the last word: "tenon policy replay".
const CLI::App& chosen_command(const CLI::App& app, std::string& words) {
  words = "tenon";
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().back();
    words += " " + command->get_name();
  }
  return *command;
}

[[noreturn]] void unknown_argument(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining(true);
  std::string words;
  const CLI::App& command = chosen_command(app, words);
  std::vector<std::string> known;
  for (const CLI::App* level : {&command, &app})
    for (const CLI::Option* option : level->get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  const std::string& extra = extras.at(0);
  const std::string see = fmt::format("see {} --help", words);
  if (!extra.starts_with('-')) usage(fmt::format("unexpected argument '{}'", extra), see);
  usage(fmt::format("unknown option '{}'", extra.substr(0, extra.find('='))),
        suggestion(extra.substr(0, extra.find('=')), known,
                   extra.starts_with("--") ? see : "put -- before an expression that starts with a dash"));
}

// CLI11's "--timeout: 1 required SECONDS missing" as a sentence; the others are ones.
std::string in_words(const CLI::ParseError& error) {
  const std::string text = error.what();
  if (error.get_name() != "ArgumentMismatch" || !text.ends_with(" missing")) return text;
  return fmt::format("{} needs a value", text.substr(0, text.find(':')));
}

int report(const Error& error, bool json, const Console& console) {
  if (json) {
    print_document(console.out, 1, [&](JsonWriter& document) { write_error(document, error); });
    return exit_status(error.code());
  }
  const char* const red = console.colour_err ? "\033[1;31m" : "";
  const char* const plain = console.colour_err ? "\033[0m" : "";
  console.err << fmt::format("{}tenon:{} {}\n", red, plain, error.what());
  if (const auto* place = dynamic_cast<const ExpressionError*>(&error)) {
    std::string excerpt = place->excerpt();
    excerpt.replace(excerpt.find('\n'), 1, "\n  ");
    console.err << fmt::format("  {}\n", excerpt);
  }
  if (!error.hint().empty()) console.err << fmt::format("hint: {}\n", error.hint());
  return exit_status(error.code());
}

// Devices are managed as the flags, the environment and the file say. Commands that only print or compute without a device work
// with a broken configuration, too.
void configure(const CLI::App& app, const Session& session) {
  constexpr std::string_view kWithoutDevices[] = {"ops", "policy", "completion", "man"};
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  if (std::find(std::begin(kWithoutDevices), std::end(kWithoutDevices), chosen.at(0)->get_name()) != std::end(kWithoutDevices))
    return;
  try {
    LoadedConfig loaded = load_config(session.config_sources());
    if (!session.json)
      for (const std::string& warning : loaded.warnings) session.console.err << fmt::format("tenon: {}\n", warning);
    // A command that ends with its work frees the device by ending; a worker would only delay its first result. The server must
    // outlive a driver that hangs or crashes.
    if (loaded.config.isolate == Isolate::automatic)
      loaded.config.isolate = chosen.at(0)->get_name() == "serve" ? Isolate::drivers : Isolate::never;
    set_process_config(std::move(loaded.config));
  } catch (const Error&) {
    // The doctor says so among its checks, and looks at the rest.
    if (chosen.at(0)->get_name() != "doctor") throw;
    set_process_config(Config());
  }
}

void add_common_options(Command& app, Session& session) {
  app.add_option("--config", session.config_file, "Read settings from FILE")->type_name("FILE");
  app.add_option("--set", session.assignments, "Change one setting (tenon config lists them); may be repeated")
      ->may_repeat()
      ->type_name("SETTING=VALUE");
  app.add_option("--sim", session.simulated, "Add a simulated device, e.g. wormhole,open=0.1; may be repeated")
      ->may_repeat()
      ->type_name("ARCHITECTURE");
  app.add_flag("-q,--quiet", session.quiet, "Print no progress messages; errors are still shown");
  app.add_option("--progress", session.progress, "auto, or json: one object per line and stage on standard error")
      ->check(one_of({"auto", "json"}))
      ->type_name("FORM");
}

int parse_and_run(CLI::App& app, Session& session, std::vector<std::string> arguments) {
  check_command(app, arguments);
  for (std::string& argument : arguments)
    if (!looks_like_option(argument)) argument = protect_dash(std::move(argument));
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    session.console.out << app.help() << '\n';
    return 0;
  } catch (const CLI::CallForVersion& version) {
    session.console.out << version.what() << '\n';
    return 0;
  } catch (const CLI::ExtrasError&) {
    unknown_argument(app);
  } catch (const CLI::ParseError& error) {
    std::string words;
    chosen_command(app, words);
    usage(in_words(error), fmt::format("see {} --help", words));
  }
  session.console.set_colour(session.colour == "always"  ? ColourMode::always
                             : session.colour == "never" ? ColourMode::never
                                                         : ColourMode::automatic);
  if (session.quiet && session.progress == "json")
    usage("--quiet and --progress=json cannot be combined", "use only one of them");
  session.console.progress = session.quiet                ? ProgressStyle::none
                             : session.progress == "json" ? ProgressStyle::json
                                                          : ProgressStyle::automatic;
  configure(app, session);
  return session.action();
}

[[noreturn]] void end_at_once(int status, const Console& console) {
  try {
    process_manager().close_all();
  } catch (const std::exception&) {
    // A device that cannot be closed is left to whoever leases it next, as after a kill.
  }
  console.out.flush();
  console.err.flush();
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace

ConfigSources Session::config_sources() const {
  ConfigSources sources;
  sources.file = config_file;
  for (const std::string& text : assignments) sources.flags.push_back(parse_assignment(text));
  sources.simulated = simulated;
  sources.environment = console.environment;
  return sources;
}

void add_output_options(Command& command, Session& session) {
  command.add_flag("--json", session.json, "Print one JSON document");
  command.add_option("--color", session.colour, "auto, always or never; NO_COLOR and FORCE_COLOR are respected")
      ->check(one_of({"auto", "always", "never"}))
      ->type_name("WHEN");
}

namespace {

int run_session(std::vector<std::string> arguments, Session& session) {
  Console& console = session.console;
  session.trailing = take_trailing(arguments);
  // Errors in the arguments themselves follow --json too, so it is looked for before they are parsed.
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  try {
    CLI::App parser("Tensors on any device", "tenon");
    parser.set_version_flag("--version", "tenon " TENON_VERSION, "Print the version and exit");
    parser.footer(kExamples);
    parser.formatter(std::make_shared<HelpText>());
    parser.require_subcommand(1);
    parser.fallthrough();  // common options may stand after the command's name
    Command app(parser);
    add_common_options(app, session);
    add_run_command(app, session);
    add_ops_command(app, session);
    add_bench_command(app, session);
    add_warm_command(app, session);
    add_pack_commands(app, session);
    add_devices_command(app, session);
    add_pick_command(app, session);
    add_report_command(app, session);
    add_doctor_command(app, session);
    add_exec_command(app, session);
    add_queue_command(app, session);
    add_reset_command(app, session);
    add_profile_command(app, session);
    add_policy_command(app, session);
    add_tune_command(app, session);
    add_config_command(app, session);
    add_cluster_command(app, session);
    add_cost_command(app, session);
    add_simulate_command(app, session);
    add_model_command(app, session);
    add_encode_command(app, session);
    add_similar_command(app, session);
    add_generate_command(app, session);
    add_top_command(app, session);
    add_serve_command(app, session);
    add_completion_command(app, session);
    add_man_command(app, session);
    const int status = parse_and_run(parser, session, std::move(arguments));
    if (!console.out.flush())
      return report(Error(ErrorCode::data_loss, "the output could not be written",
                          "check that there is space on the device it is written to"),
                    false, console);
    return status;
  } catch (const Error& error) {
    return report(error, json, console);
  } catch (const std::bad_alloc&) {
    return report(Error(ErrorCode::resource_exhausted, "out of memory"), json, console);
  } catch (const std::exception& error) {
    return report(Error(ErrorCode::internal, error.what()), json, console);
  }
}

}  // namespace

int run_application(std::vector<std::string> arguments, Console& console) {
  Session session{.console = console};
  const int status = run_session(std::move(arguments), session);
  if (session.ends_at_once) end_at_once(status, console);
  return status;
}

}  // namespace tenon::cli
