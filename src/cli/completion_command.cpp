// Completion scripts, generated from the options themselves so that they cannot fall behind.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "tenon/dtype.h"

namespace tenon::cli {
namespace {

struct Entry {
  std::string flag, help;
  bool takes_value = false;
};

std::vector<Entry> options_of(const CLI::App& command) {
  std::vector<Entry> entries;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames())
      entries.push_back({"--" + name, option->get_description(), option->get_items_expected_max() > 0});
    for (const std::string& name : option->get_snames())
      entries.push_back({"-" + name, option->get_description(), option->get_items_expected_max() > 0});
  }
  return entries;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

std::string bash(const CLI::App& app) {
  std::string names, cases;
  for (const CLI::App* command : commands_of(app)) {
    names += (names.empty() ? "" : " ") + command->get_name();
    std::string flags;
    for (const Entry& entry : options_of(*command)) flags += (flags.empty() ? "" : " ") + entry.flag;
    cases += fmt::format("    {}) words='{}' ;;\n", command->get_name(), flags);
  }
  std::string dtypes;
  for (const DType dtype : all_dtypes()) dtypes += (dtypes.empty() ? "" : " ") + std::string(name(dtype));
  return fmt::format(R"sh(# bash completion for tenon:  source <(tenon completion bash)
_tenon() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=''
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$current"))
    return
  fi
  case $previous in
    --color) COMPREPLY=($(compgen -W 'auto always never' -- "$current")); return ;;
    --device) COMPREPLY=($(compgen -W 'auto cpu' -- "$current")); return ;;
    --dtype) COMPREPLY=($(compgen -W '{}' -- "$current")); return ;;
    -o|--output) COMPREPLY=($(compgen -f -- "$current")); return ;;
    completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$current")); return ;;
  esac
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [ "${{COMP_WORDS[1]}}" = ops ]; then words="$words $(tenon ops --names 2>/dev/null)"; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _tenon tenon
)sh",
                     names, dtypes, cases);
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
    for (const Entry& entry : options_of(*command))
      cases += " " + quoted(fmt::format("{}[{}]{}", entry.flag, plain(entry.help), entry.takes_value ? ":value:_files" : ""));
    if (command->get_name() == "ops") cases += " '1:op:($(tenon ops --names 2>/dev/null))'";
    if (command->get_name() == "completion") cases += " '1:shell:(bash zsh fish)'";
    cases += " ;;\n";
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

std::string fish(const CLI::App& app) {
  std::string out = "# fish completion for tenon:  tenon completion fish > ~/.config/fish/completions/tenon.fish\n";
  for (const CLI::App* command : commands_of(app)) {
    out += fmt::format("complete -c tenon -f -n __fish_use_subcommand -a {} -d {}\n", command->get_name(),
                       quoted(command->get_description()));
    for (const Entry& entry : options_of(*command)) {
      const bool is_long = entry.flag.starts_with("--");
      out += fmt::format("complete -c tenon -n '__fish_seen_subcommand_from {}' -{} {} -d {}{}\n", command->get_name(),
                         is_long ? 'l' : 's', entry.flag.substr(is_long ? 2 : 1), quoted(entry.help),
                         entry.takes_value ? " -r" : "");
    }
  }
  out += "complete -c tenon -f -n '__fish_seen_subcommand_from ops' -a '(tenon ops --names 2>/dev/null)'\n";
  return out + "complete -c tenon -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n";
}

}  // namespace

void add_completion_command(CLI::App& app, Session& session) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print the completion script of a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
      ->type_name("SHELL");
  command->footer("Examples:\n  source <(tenon completion bash)");
  command->callback([shell, &app, &session] {
    session.action = [shell, &app, &session] {
      session.console.out << (*shell == "bash" ? bash(app) : *shell == "zsh" ? zsh(app) : fish(app));
      return 0;
    };
  });
}

}  // namespace tenon::cli
