// Terminal: a full screen on the terminal this process was started from.
//
// While one exists, input comes key by key without echo, and the screen is the alternate one, without a cursor. The destructor
// puts everything back; so does a signal that ends the process (SIGINT, SIGTERM, SIGHUP, SIGQUIT), which then ends it as it would
// have. SIGTSTP puts it back until the process continues.
// Lifetime: one at a time. Thread safety: one thread.
#pragma once

#include <termios.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/system/file_descriptor.h"

namespace tenon::cli {

struct TerminalSize {
  int width = 80, height = 24;
};

class Terminal {
 public:
  // Whether input and output are a terminal that can be used like this.
  static bool is_possible();

  // Throws unavailable.
  Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  TerminalSize size() const;
  // Replaces what is shown, in one write.
  void show(const std::vector<std::string>& lines) const;

  enum class Input : unsigned char { nothing, keys, resized, ended };
  // Waits for keys, for another size, or for |timeout|. |keys| is what was typed, escape sequences and all. Ended: the terminal
  // is gone.
  Input wait(std::chrono::milliseconds timeout, std::string& keys) const;

 private:
  FileDescriptor wake_;  // written by signal handlers
};

}  // namespace tenon::cli
