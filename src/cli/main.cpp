#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/application.h"

namespace {

// A shell's convention for Ctrl-C. Nothing is left to undo: files are written beside their place and renamed.
void interrupted(int) {
  constexpr char clear[] = "\r\033[K";
  if (isatty(STDERR_FILENO) && write(STDERR_FILENO, clear, sizeof clear - 1) < 0) _exit(130);
  _exit(130);
}

}  // namespace

int main(int argc, char** argv) {
  // Jobs in the background are started with it ignored, and stay so.
  if (signal(SIGINT, interrupted) == SIG_IGN) signal(SIGINT, SIG_IGN);
  tenon::cli::Console console = tenon::cli::process_console();
  return tenon::cli::run_application(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), console);
}
