// Command and Option: the part of CLI11 that commands see.
//
// CLI11 is all headers, and a file that adds one option compiles most of it: five seconds each. Here one file does.
// Lifetime: what add_subcommand, add_option and add_flag return lives as long as the root command. Thread safety: none.
//
//   Command* command = app.add_subcommand("bench", "Measure an expression");
//   command->add_option("--seconds", seconds, "How long to measure")->check(in_range(0.001, 3600.0))->type_name("S");
//   command->callback([&] { ... });
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tenon::cli {

// Given the text of a value, which it may change; returns what is wrong with it, or "".
using OptionCheck = std::function<std::string(std::string&)>;

// CLI11 takes every word that begins with a dash for an option. One that is a value (-5, -x + 1, - for standard input) is
// protected by a space in front of it, which texts lose again when they are read.
std::string protect_dash(std::string argument);

class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}
  Option(const Option&) = delete;
  Option& operator=(const Option&) = delete;

  Option* check(const OptionCheck& check);       // refuses what |check| finds something wrong with
  Option* transform(const OptionCheck& change);  // likewise, and the value is what |change| made of it
  Option* type_name(const std::string& name);    // what help calls the value
  Option* required();
  Option* needs(const Option* other);
  Option* may_repeat();           // each use adds one value
  Option* capture_default_str();  // help shows the value the target has now

  std::size_t count() const;  // how often it was given

 private:
  CLI::Option& option_;
};

class Command {
 public:
  explicit Command(CLI::App& app) : app_(app) {}
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Command* add_subcommand(const std::string& name, const std::string& description);
  // |names|: "-o,--output", or a word for a positional argument. The target is written when the arguments are parsed, and must
  // live until then. For the types that command_line.cpp lists.
  template <class T>
  Option* add_option(const std::string& names, T& target, const std::string& description);
  Option* add_flag(const std::string& names, bool& target, const std::string& description);
  // Called when the user chose this command and all arguments are parsed.
  void callback(std::function<void()> chosen);
  void footer(const std::string& text);
  void require_subcommand(int min, int max);
  bool has_chosen_subcommand() const;

  // For what writes about all commands (man, completion): include <CLI/CLI.hpp>.
  const CLI::App& cli11() const { return app_; }

 private:
  CLI::App& app_;
  std::deque<Command> commands_;
  std::deque<Option> options_;
};

}  // namespace tenon::cli
