// ProgressTalk: what a command says on standard error while its user waits; --quiet and --progress decide how.
//
//   automatic  a user who waits for a device is told who holds it, once for each place in the queue; on a terminal a measurement
//   shows
//              how far it is, on a line that is rewritten and in the end cleared
//   json       every stage, for programs: one object a line, {"progress": {"stage": ...}}
//   none       nothing
// Lifetime: the console must outlive it; callbacks it gives away refer to it. Thread safety: one thread at a time.
//
//   ProgressTalk talk(session.console);
//   options.on_progress = [&](const Progress& progress) { talk.stage(progress); };
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/text/json_writer.h"
#include "cli/terminal/console.h"
#include "tenon/lease.h"
#include "tenon/manager.h"

namespace tenon::cli {

class ProgressTalk {
 public:
  explicit ProgressTalk(const Console& console) : console_(console) {}
  ProgressTalk(const ProgressTalk&) = delete;
  ProgressTalk& operator=(const ProgressTalk&) = delete;
  ~ProgressTalk() { clear(); }

  // A stage of a run begins, or its place in the queue changed.
  void stage(const Progress& progress);
  // The same in a sentence of the caller's.
  void stage(const Progress& progress, const std::string& sentence);
  void waiting(const std::string& device, const QueuePlace& place) { stage({"queued", device, place}); }

  // Hears how much of the measurement |what| is done, 0 to 1; empty where nobody would see it.
  std::function<void(double)> measuring(const std::string& what);
  void measuring_batch(std::int64_t batch);
  // Hears how many of |total| |what| are done, of which |before| were done earlier; says the rate and the time left. Empty where
  // nobody would see it.
  std::function<void(std::size_t)> counting(const std::string& what, std::size_t before, std::size_t total);

  // Takes the line on the terminal away.
  void clear();

 private:
  bool shows_line() const { return console_.progress == ProgressStyle::automatic && console_.err_is_terminal; }
  void show_line(const std::string& text);
  void write(const std::function<void(JsonWriter&)>& progress);

  const Console& console_;
  std::string told_;  // the last sentence or object
  bool is_line_shown_ = false;
};

}  // namespace tenon::cli
