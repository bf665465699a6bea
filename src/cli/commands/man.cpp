// The manual page, made from the commands and options themselves so that it cannot fall behind.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "manager/config/settings.h"

namespace tenon::cli {
namespace {

constexpr std::string_view kAbout =
    "Computes tensor expressions on the devices of the machine: CPUs, GPUs, TPUs and Tenstorrent cards. A device is leased only "
    "while it is used, in strict order between processes, and closed when keeping it open does not pay.";
constexpr std::string_view kFiles =
    "$XDG_CONFIG_HOME/tenon/config.toml, or ~/.config/tenon/config.toml, or /etc/tenon/config.toml: settings, one per line; "
    "tenon config shows which file was read. --set takes precedence over the environment, and the environment over the file.";

// Text that comes out as it is. What typesetters turn into something else, such as quotes, stays what can be pasted into a shell.
std::string plain(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    // At the beginning of a line these two are requests.
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '\'': out += "\\(aq"; break;
      case '`': out += "\\(ga"; break;
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      default: out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }
std::string as_typed_block(std::string_view text) { return fmt::format(".PP\n.EX\n{}\n.EE\n", plain(text)); }

std::vector<const CLI::App*> parts_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string option_entry(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "" : ", ") + bold("-" + name);
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "" : ", ") + bold("--" + name);
  if (names.empty())
    names = italic(option.get_type_name());
  else if (option.get_items_expected_max() > 0)
    names += " " + italic(option.get_type_name());
  std::string text = option.get_description();
  if (!option.get_default_str().empty()) text += fmt::format(" (default: {})", option.get_default_str());
  return fmt::format(".TP\n{}\n{}\n", names, plain(text));
}

// --help is told of once.
std::string option_entries(const CLI::App& app, bool with_help) {
  std::string entries;
  for (const CLI::Option* option : app.get_options())
    if (with_help || option != app.get_help_ptr()) entries += option_entry(*option);
  return entries;
}

// "tenon run EXPR [NAME=VALUE...]"
std::string synopsis(const CLI::App& command, const std::string& words) {
  std::string line = words;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_type_name() + (option->get_items_expected_max() > 1 ? "..." : "");
    line += option->get_required() ? " " + name : " [" + name + "]";
  }
  return line;
}

std::string command_section(const CLI::App& command, const std::string& before) {
  const std::string words = before + " " + command.get_name();
  std::string section = fmt::format(".SS {}\n{}\n", plain(synopsis(command, words)), plain(command.get_description()));
  section += option_entries(command, false);
  if (!command.get_footer().empty()) section += as_typed_block(command.get_footer());
  for (const CLI::App* part : parts_of(command)) section += command_section(*part, words);
  return section;
}

std::string environment_entries() {
  std::string entries;
  for (const Setting& setting : settings()) {
    if (setting.variables.empty()) continue;
    std::string names;
    for (const std::string& variable : setting.variables) names += (names.empty() ? "" : ", ") + bold(variable);
    entries += fmt::format(".TP\n{}\n{}\n", names, plain(setting.doc));
  }
  return entries;
}

std::string manual_page(const CLI::App& app) {
  std::string page = fmt::format(".TH TENON 1 \"\" \"tenon {}\" \"User Commands\"\n", plain(TENON_VERSION));
  page += ".SH NAME\ntenon \\- tensors on any device\n";
  page += fmt::format(".SH SYNOPSIS\n{} [{}] {} ...\n", bold("tenon"), italic("OPTIONS"), italic("COMMAND"));
  page += fmt::format(".SH DESCRIPTION\n{}\n", plain(kAbout));
  page += ".SH OPTIONS\nThese options may be given before or after the name of any command.\n" + option_entries(app, true);
  page += ".SH COMMANDS\n";
  for (const CLI::App* command : parts_of(app)) page += command_section(*command, "tenon");
  page += ".SH ENVIRONMENT\n" + environment_entries();
  page += fmt::format(".SH FILES\n{}\n", plain(kFiles));
  // The examples and, after them, the exit statuses.
  const std::string footer = app.get_footer();
  const std::size_t status = footer.find("\n\nExit status: ");
  page += ".SH EXAMPLES" + as_typed_block(footer.substr(footer.find('\n') + 1, status - footer.find('\n') - 1)).substr(3);
  page += fmt::format(".SH EXIT STATUS\n{}\n", plain(footer.substr(footer.find(':', status) + 2)));
  return page;
}

}  // namespace

void add_man_command(Command& app, Session& session) {
  Command* command = app.add_subcommand("man", "Print the manual page");
  command->footer("Examples:\n  tenon man | man -l -");
  command->callback([&app, &session] {
    session.action = [&app, &session] {
      session.console.out << manual_page(app.cli11());
      return 0;
    };
  });
}

}  // namespace tenon::cli
