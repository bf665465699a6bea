// Console: where the command writes, and what that place can show.
//
// Data goes to out, talk and progress to err. Colour follows --color, NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE and TERM.
// Lifetime: refers to the streams it was given.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "present/text.h"

namespace tenon::cli {

enum class ColourMode { automatic, always, never };
enum class ProgressStyle { automatic, none, json };  // progress_talk.h

using Environment = std::function<std::string(const char*)>;  // "" when unset

// Whether to colour what goes to a place that is or is not a terminal. The flag is stronger than the environment; NO_COLOR is
// stronger than FORCE_COLOR and CLICOLOR_FORCE; an empty variable counts as unset.
bool use_colour(ColourMode mode, bool is_terminal, const Environment& environment);

struct Console {
  std::ostream& out;
  std::ostream& err;
  int width = 80;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool colour_out = false;
  bool colour_err = false;
  ProgressStyle progress = ProgressStyle::automatic;
  Environment environment = [](const char*) { return std::string(); };

  // What out can show.
  present::TextStyle style() const { return {.has_colour = colour_out, .width = width}; }
  std::string bold(std::string_view text) const { return style().bold(text); }
  std::string dim(std::string_view text) const { return style().dim(text); }
  // Whether the locale lets characters beyond ASCII through.
  bool is_utf8() const;

  void set_colour(ColourMode mode);
};

// stdout and stderr of this process; the width is the terminal's, or $COLUMNS, or 80.
Console process_console();

}  // namespace tenon::cli
