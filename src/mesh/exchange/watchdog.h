// Watchdog: a limit for calls of MPI that wait for other processes and cannot be called off.
//
// If it still lives after |deadline|, it writes an error message and ends the process with exit status 1.
//
//   const Watchdog watchdog("MPI did not start", deadline);
//   MPI_Init(...);
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tenon::mesh {

class Watchdog {
 public:
  // |failure| begins the message: "MPI did not start".
  Watchdog(std::string failure, std::chrono::nanoseconds deadline);

 private:
  std::mutex mutex_;
  std::condition_variable_any over_;
  std::jthread thread_;
};

}  // namespace tenon::mesh
