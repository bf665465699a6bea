#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cli/option_checks.h"

namespace tenon::cli {

Option* Option::check(const OptionCheck& check) {
  option_.check(CLI::Validator(check, ""));
  return this;
}
Option* Option::transform(const OptionCheck& change) {
  option_.transform(CLI::Validator(change, ""));
  return this;
}
Option* Option::type_name(const std::string& name) {
  option_.type_name(name);
  return this;
}
Option* Option::required() {
  option_.required();
  return this;
}
Option* Option::needs(const Option* other) {
  option_.needs(&other->option_);
  return this;
}
Option* Option::may_repeat() {
  option_.expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return this;
}
Option* Option::capture_default_str() {
  option_.capture_default_str();
  return this;
}
std::size_t Option::count() const { return option_.count(); }

Command* Command::add_subcommand(const std::string& name, const std::string& description) {
  return &commands_.emplace_back(*app_.add_subcommand(name, description));
}

std::string protect_dash(std::string argument) {
  if (argument.find_first_not_of(' ') != std::string::npos && argument[argument.find_first_not_of(' ')] == '-')
    argument.insert(0, " ");
  return argument;
}

namespace {

std::string as_typed(std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first != std::string::npos && first > 0 && text[first] == '-') text.erase(0, 1);
  return {};
}

}  // namespace

template <class T>
Option* Command::add_option(const std::string& names, T& target, const std::string& description) {
  CLI::Option& added = *app_.add_option(names, target, description);
  // Numbers are read past the space.
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>)
    added.transform(CLI::Validator(as_typed, ""));
  return &options_.emplace_back(added);
}
template Option* Command::add_option(const std::string&, std::string&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* Command::add_option(const std::string&, int&, const std::string&);
template Option* Command::add_option(const std::string&, std::uint16_t&, const std::string&);
template Option* Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option* Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option* Command::add_option(const std::string&, double&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<std::uint64_t>&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<double>&, const std::string&);

Option* Command::add_flag(const std::string& names, bool& target, const std::string& description) {
  return &options_.emplace_back(*app_.add_flag(names, target, description));
}
void Command::callback(std::function<void()> chosen) { app_.callback(std::move(chosen)); }
void Command::footer(const std::string& text) { app_.footer(text); }
void Command::require_subcommand(int min, int max) {
  app_.require_subcommand(static_cast<std::size_t>(min), static_cast<std::size_t>(max));
}
bool Command::has_chosen_subcommand() const { return !app_.get_subcommands().empty(); }

OptionCheck size_in_bytes() {
  return [](std::string& text) -> std::string {
    const std::string given = without_spaces(text);
    const std::string refusal = fmt::format("must be a size such as 4096 or 512MiB, not {}", given);
    if (given.starts_with('-')) return refusal;
    try {
      if (!CLI::AsSizeValue(false)(text).empty()) return refusal;
      return text == "0" ? fmt::format("must be a size of at least 1 byte, not {}", given) : "";
    } catch (const CLI::ValidationError&) {
      return refusal;
    }
  };
}

}  // namespace tenon::cli
