// JobBoard: computations that are asked for now and fetched later, with live progress and cancel.
//
// States: queued (no worker yet, or the device is not ours), running, then done, failed or cancelled. A running job may already
// have its result, while that is compared with the reference. A job has its share of the
// memory from the beginning; when it is finished, only the text of its answer is left, which counts until the job expires, is
// deleted, or has to make room: for newer jobs of the same client, or for others when all of them have too much.
// Thread safety: all calls may run side by side; streams are made and fed in the I/O thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/compute/memory/hoard.h"
#include "server/compute/program/compute_request.h"
#include "server/compute/uploads.h"
#include "server/http/body/event_stream.h"
#include "server/http/message.h"

namespace tenon::server {

struct Services;

class JobBoard {
 public:
  JobBoard(Services& services, std::uint64_t max_bytes, std::size_t max_finished);
  ~JobBoard();

  // 202 with the new job. Throws what reading the program throws; Problem 429 for too many of one client, 503 for a full queue.
  Response create(const Call& call);
  Response list(const Call& call);
  // The rest throw not_found.
  Response get(const std::string& id);
  Response cancel(const std::string& id);
  Response events(const std::string& id);

  std::size_t unfinished() const;
  void expire(Clock::time_point now);
  void cancel_all();

 private:
  struct Job;
  std::shared_ptr<Job> find(const std::string& id) const;
  void run(const std::shared_ptr<Job>& job);
  MemoryGate::Share take_memory(const std::string& client, std::uint64_t bytes);
  void show_result(const std::shared_ptr<Job>& job, std::string text);
  void finish(const std::shared_ptr<Job>& job, std::string status, SharedText result, std::string problem);
  void keep(const std::shared_ptr<Job>& job);
  void erase(const std::string& id);  // with mutex_ held
  void announce(const std::shared_ptr<Job>& job);

  Services& services_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;
  Hoard finished_;
};

}  // namespace tenon::server
