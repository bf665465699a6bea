#include "cli/terminal/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <iostream>

namespace tenon::cli {
namespace {

int terminal_width(const Environment& environment) {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  const std::string columns = environment("COLUMNS");
  int width = 0;
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  return width >= 20 && width <= 1000 ? width : 80;
}

}  // namespace

bool use_colour(ColourMode mode, bool is_terminal, const Environment& environment) {
  if (mode != ColourMode::automatic) return mode == ColourMode::always;
  if (!environment("NO_COLOR").empty()) return false;
  for (const char* force : {"FORCE_COLOR", "CLICOLOR_FORCE"}) {
    const std::string value = environment(force);
    if (!value.empty() && value != "0") return true;
  }
  return is_terminal && environment("TERM") != "dumb";
}

bool Console::is_utf8() const {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const std::string value = environment(variable); !value.empty())
      return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  return false;
}

void Console::set_colour(ColourMode mode) {
  colour_out = use_colour(mode, out_is_terminal, environment);
  colour_err = use_colour(mode, err_is_terminal, environment);
}

Console process_console() {
  Console console{.out = std::cout, .err = std::cerr};
  console.environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  console.out_is_terminal = isatty(STDOUT_FILENO) != 0;
  console.err_is_terminal = isatty(STDERR_FILENO) != 0;
  console.width = terminal_width(console.environment);
  console.set_colour(ColourMode::automatic);
  return console;
}

}  // namespace tenon::cli
