// Completion scripts, generated from the options themselves so that they cannot fall behind.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/option_checks.h"
#include "manager/config/settings.h"
#include "tenon/array/codec.h"
#include "tenon/array/dtype.h"

namespace tenon::cli {
namespace {

// What may follow an option, or stand as a command's argument.
struct Values {
  enum class Kind { unknown, files, directories, words, lines_of } kind = Kind::unknown;
  std::string text;  // the words, or the command that prints them
};

struct Entry {
  std::string flag, help;
  bool takes_value = false;
  Values values;
};

std::string settings_with(std::string_view suffix) {
  std::string names;
  for (const Setting& setting : settings())
    if (suffix.empty() || setting.set) names += fmt::format("{}{}{}", names.empty() ? "" : " ", setting.name, suffix);
  return names;
}

// By the name of the type that --help shows.
Values values_of(const std::string& type) {
  using Kind = Values::Kind;
  std::string dtypes;
  for (const DType dtype : all_dtypes()) dtypes += (dtypes.empty() ? "" : " ") + std::string(name(dtype));
  std::string encodings = "all";
  for (const Encoding encoding : all_encodings()) encodings += " " + std::string(name(encoding));
  const std::map<std::string, Values> known{
      {"FILE", {Kind::files, ""}},
      {"FILE.tar.gz", {Kind::files, ""}},
      {"TRACE.csv", {Kind::files, ""}},
      {"DIRECTORY", {Kind::directories, ""}},
      {"DEVICE", {Kind::lines_of, "tenon devices --ids 2>/dev/null"}},
      {"DTYPE", {Kind::words, dtypes}},
      {"WHEN", {Kind::words, "auto always never"}},
      {"FORM", {Kind::words, "auto json"}},
      {"FORMAT", {Kind::words, "table csv"}},
      {"KIND", {Kind::words, "cpu gpu tpu tenstorrent other"}},
      {"MODE", {Kind::words, "prefer fastest cheapest pinned"}},
      {"ENCODING", {Kind::words, encodings}},
      {"KEY", {Kind::words, "device program day"}},
      {"SHELL", {Kind::words, "bash zsh fish"}},
      {"POLICY", {Kind::words, "on_demand linger linger= adaptive always"}},
      {"ARCHITECTURE", {Kind::words, "grayskull wormhole blackhole tpu gpu"}},
      {"OP", {Kind::lines_of, "tenon ops --names 2>/dev/null"}},
      {"SETTING", {Kind::words, settings_with("")}},
      {"SETTING=VALUE", {Kind::words, settings_with("=")}},
  };
  const auto found = known.find(type);
  return found == known.end() ? Values{} : found->second;
}

std::vector<Entry> options_of(const CLI::App& command) {
  std::vector<Entry> entries;
  for (const CLI::Option* option : command.get_options()) {
    const bool takes_value = option->get_items_expected_max() > 0;
    const Values values = takes_value ? values_of(option->get_type_name()) : Values{};
    for (const std::string& name : option->get_lnames())
      entries.push_back({"--" + name, option->get_description(), takes_value, values});
    for (const std::string& name : option->get_snames())
      entries.push_back({"-" + name, option->get_description(), takes_value, values});
  }
  return entries;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// The command's own options, those of its parts, and those that every command has.
std::vector<Entry> all_options_of(const CLI::App& command) {
  std::vector<Entry> entries = options_of(command);
  for (const CLI::App* part : commands_of(command))
    for (const Entry& entry : options_of(*part))
      if (!entry.flag.ends_with("-h") && entry.flag != "--help") entries.push_back(entry);
  for (const Entry& entry : options_of(*command.get_parent()))
    if (entry.flag != "--help" && entry.flag != "-h" && entry.flag != "--version") entries.push_back(entry);
  return entries;
}

// What follows the command's name: the names of its parts, or the values of its first argument.
Values argument_of(const CLI::App& command) {
  std::string parts;
  for (const CLI::App* part : commands_of(command)) parts += (parts.empty() ? "" : " ") + part->get_name();
  if (!parts.empty()) return {Values::Kind::words, parts};
  for (const CLI::Option* option : command.get_options())
    if (option->get_positional()) return values_of(option->get_type_name());
  return {};
}

std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

// The options of compgen that list |values|; "" where nothing is known.
std::string bash_generator(const Values& values) {
  switch (values.kind) {
    case Values::Kind::unknown: return "";
    case Values::Kind::files: return "-f";
    case Values::Kind::directories: return "-d";
    case Values::Kind::words: return fmt::format("-W '{}'", values.text);
    case Values::Kind::lines_of: return fmt::format("-W \"$({})\"", values.text);
  }
  return "";
}

std::string bash(const CLI::App& app) {
  std::string names, flags, arguments;
  std::map<std::string, std::string> after;  // what follows an option, the same in every command
  for (const CLI::App* command : commands_of(app)) {
    names += (names.empty() ? "" : " ") + command->get_name();
    std::string words;
    for (const Entry& entry : all_options_of(*command)) {
      words += (words.empty() ? "" : " ") + entry.flag;
      if (entry.takes_value) after.emplace(entry.flag, bash_generator(entry.values));
    }
    flags += fmt::format("    {}) words='{}' ;;\n", command->get_name(), words);
    const std::string generator = bash_generator(argument_of(*command));
    if (generator.empty()) continue;
    // The name of a part directly follows that of its command.
    const std::string_view where = commands_of(*command).empty() ? "" : "[ \"$previous\" = \"$command\" ] && ";
    arguments +=
        fmt::format("        {}) {}COMPREPLY=($(compgen {} -- \"$current\")) ;;\n", command->get_name(), where, generator);
  }
  std::string common, common_with_value;  // before the command's name
  for (const Entry& entry : options_of(app)) {
    common += (common.empty() ? "" : " ") + entry.flag;
    if (entry.takes_value) common_with_value += (common_with_value.empty() ? "" : "|") + entry.flag;
  }
  std::string values;
  for (const auto& [flag, generator] : after)
    values += generator.empty()
                  ? fmt::format("    {}) return ;;\n", flag)
                  : fmt::format("    {}) COMPREPLY=($(compgen {} -- \"$current\")); _tenon_tidy; return ;;\n", flag, generator);
  return fmt::format(R"sh(# bash completion for tenon:  source <(tenon completion bash)

# Bash ends a word at a colon, so the part before it is already on the line. A name that ends in = is followed by its value.
_tenon_tidy() {{
  local before=${{current%"${{current##*:}}"}}
  case $COMP_WORDBREAKS in *:*) COMPREPLY=("${{COMPREPLY[@]#"$before"}}") ;; esac
  case ${{COMPREPLY[0]}} in *=) compopt -o nospace 2>/dev/null ;; esac
}}

_tenon() {{
  local line=${{COMP_LINE:0:COMP_POINT}} current previous command='' words='' i
  # Words as the shell will see them, not split at = and :.
  local -a typed
  read -ra typed <<<"$line"
  case $line in *[[:space:]]) typed+=('') ;; esac
  local last=$((${{#typed[@]}} - 1))
  current=${{typed[last]}} previous=${{typed[last-1]}}
  for ((i = 1; i < last; ++i)); do
    case ${{typed[i]}} in
      {}) ((++i)) ;;
      -*) ;;
      *) command=${{typed[i]}}; break ;;
    esac
  done
  if [ "$command" = exec ]; then
    for ((i = 2; i < last; ++i)); do
      if [ "${{typed[i]}}" = -- ]; then
        [ "$i" -eq "$((last - 1))" ] && COMPREPLY=($(compgen -c -- "$current"))
        return
      fi
    done
  fi
  case $previous in
{}  esac
  case $current in
    *=@*) COMPREPLY=($(compgen -P @ -f -- "${{current#*=@}}")); return ;;
    --*|-) ;;
    *)
      case $command in
        '') COMPREPLY=($(compgen -W '{}' -- "$current")) ;;
{}      esac
      return
      ;;
  esac
  case $command in
    '') words='{}' ;;
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _tenon tenon
)sh",
                     common_with_value, values, names, arguments, common, flags);
}

std::string zsh_action(const Values& values) {
  switch (values.kind) {
    case Values::Kind::unknown: return "";
    case Values::Kind::files: return "_files";
    case Values::Kind::directories: return "_files -/";
    case Values::Kind::words: return fmt::format("({})", values.text);
    case Values::Kind::lines_of: return fmt::format("($({}))", values.text);
  }
  return "";
}

std::string zsh(const CLI::App& app) {
  std::string commands, cases;
  // In _arguments' specifications a colon and a bracket end the text.
  const auto plain = [](std::string text) {
    for (char& c : text)
      if (c == ':' || c == '[' || c == ']') c = ' ';
    return text;
  };
  for (const CLI::App* command : commands_of(app)) {
    commands += fmt::format("    {}\n", quoted(command->get_name() + ":" + plain(command->get_description())));
    cases += fmt::format("    {}) _arguments", command->get_name());
    for (const Entry& entry : all_options_of(*command))
      cases += " " + quoted(fmt::format("{}[{}]{}", entry.flag, plain(entry.help),
                                        entry.takes_value ? ":value:" + zsh_action(entry.values) : ""));
    if (const std::string action = zsh_action(argument_of(*command)); !action.empty())
      cases += " " + quoted("1:argument:" + action);
    cases += " '*:file:_files' ;;\n";
  }
  return fmt::format(R"sh(#compdef tenon
# zsh completion for tenon:  tenon completion zsh > "${{fpath[1]}}/_tenon"
_tenon() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
compdef _tenon tenon
)sh",
                     commands, cases);
}

std::string fish_candidates(const Values& values) {
  switch (values.kind) {
    case Values::Kind::unknown: return "";
    case Values::Kind::files:
    case Values::Kind::directories: return " -F";
    case Values::Kind::words: return " -f -a " + quoted(values.text);
    case Values::Kind::lines_of: return " -f -a " + quoted(fmt::format("({})", values.text));
  }
  return "";
}

std::string fish(const CLI::App& app) {
  std::string out = "# fish completion for tenon:  tenon completion fish > ~/.config/fish/completions/tenon.fish\n";
  for (const CLI::App* command : commands_of(app)) {
    const std::string seen = fmt::format("complete -c tenon -n '__fish_seen_subcommand_from {}'", command->get_name());
    out += fmt::format("complete -c tenon -f -n __fish_use_subcommand -a {} -d {}\n", command->get_name(),
                       quoted(command->get_description()));
    for (const Entry& entry : all_options_of(*command)) {
      const bool is_long = entry.flag.starts_with("--");
      out += fmt::format("{} -{} {} -d {}{}{}\n", seen, is_long ? 'l' : 's', entry.flag.substr(is_long ? 2 : 1),
                         quoted(entry.help), entry.takes_value ? " -r" : "", fish_candidates(entry.values));
    }
    if (const std::string candidates = fish_candidates(argument_of(*command)); !candidates.empty())
      out += seen + candidates + "\n";
  }
  return out;
}

}  // namespace

void add_completion_command(Command& app, Session& session) {
  auto shell = std::make_shared<std::string>();
  Command* command = app.add_subcommand("completion", "Print the completion script for a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  command->footer("Examples:\n  source <(tenon completion bash)");
  command->callback([shell, &app, &session] {
    session.action = [shell, &app, &session] {
      session.console.out << (*shell == "bash" ? bash(app.cli11()) : *shell == "zsh" ? zsh(app.cli11()) : fish(app.cli11()));
      return 0;
    };
  });
}

}  // namespace tenon::cli
