// WaitingLine: who has to wait for a device is told for whom, on standard error, once for each place in the queue.
#pragma once

#include <string>

#include "cli/console.h"
#include "tenon/lease.h"
#include "tenon/manager.h"

namespace tenon::cli {

class WaitingLine {
 public:
  explicit WaitingLine(const Console& console) : console_(&console) {}

  void operator()(const std::string& device, const QueuePlace& place);
  // As RunOptions::on_progress.
  void operator()(const Progress& progress) {
    if (progress.stage == "queued") (*this)(progress.device, progress.place);
  }

 private:
  const Console* console_;
  std::string told_;
};

}  // namespace tenon::cli
