// SpareWorker: a worker that has loaded its backend's libraries but opened no device. It is started when a device closes, so that
// the next open does not wait for a process to start and its libraries to load.
//
// Thread safety: full.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "hal/worker/parent/connection.h"

namespace tenon {

class SpareWorker {
 public:
  explicit SpareWorker(std::string backend) : backend_(std::move(backend)) {}
  ~SpareWorker();

  // Does nothing if one is ready. A failure is left to the next open.
  void start() noexcept;
  // Null if none is ready.
  std::shared_ptr<WorkerConnection> take();

 private:
  const std::string backend_;
  std::mutex mutex_;
  std::shared_ptr<WorkerConnection> connection_;
};

}  // namespace tenon
