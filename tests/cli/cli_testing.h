// Helpers of the command's tests: run it in this process and look at what it printed.
#pragma once

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/application.h"
#include "temporary_folder.h"

namespace tenon::cli::testing {

struct Outcome {
  int status = 0;
  std::string out, err;

  boost::json::object json() const { return boost::json::parse(out).as_object(); }
};

// The environment is empty but for what is given and the folders of the process (own_folders.cpp).
struct Surroundings {
  std::map<std::string, std::string> environment;
  bool terminal = false;
  int width = 80;
};

inline Outcome tenon(std::vector<std::string> arguments, const Surroundings& surroundings = {}) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  console.width = surroundings.width;
  console.out_is_terminal = console.err_is_terminal = surroundings.terminal;
  console.environment = [&](const char* name) {
    if (const auto found = surroundings.environment.find(name); found != surroundings.environment.end()) return found->second;
    const bool is_folder = std::string_view(name) == "TENON_RUN_DIR" || std::string_view(name) == "TENON_STATE_DIR";
    const char* const own = is_folder ? std::getenv(name) : nullptr;
    return std::string(own != nullptr ? own : "");
  };
  console.set_colour(ColourMode::automatic);
  const int status = run_application(std::move(arguments), console);
  return {status, out.str(), err.str()};
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

using Folder = test::TemporaryFolder;

}  // namespace tenon::cli::testing
