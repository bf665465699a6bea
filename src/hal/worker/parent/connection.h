// WorkerConnection: one worker process, its socket, and the memory shared with it, as its parent sees them.
//
// Lifetime: closing, or the destructor, ends the worker. Once the worker is gone, the connection is lost, and calls throw
// unavailable. Thread safety: full; requests take turns.
//
//   WorkerConnection connection(device.id, options);
//   const std::vector<std::byte> answer = connection.call(request, connection.limits().transfer);
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hal/worker/channel.h"
#include "hal/worker/parent/process.h"
#include "hal/worker/window.h"
#include "hal/worker/worker.h"

namespace tenon {

// A message that begins with |command|.
inline ByteWriter request_for(WorkerCommand command) {
  ByteWriter request;
  request.byte(static_cast<std::uint8_t>(command));
  return request;
}

class WorkerConnection {
 public:
  using Limit = std::optional<std::chrono::milliseconds>;
  using Number = std::uint64_t;  // of a buffer, a program or a group

  // Starts |command|, the program and its arguments. |device| is named in messages. Throws unavailable, resource_exhausted.
  WorkerConnection(std::string device, const WorkerOptions& options, std::vector<std::string> command = {worker_program()})
      : WorkerConnection(std::move(device), options, std::move(command), socket_pair()) {}
  ~WorkerConnection();

  // A worker without a device can be ended at any time.
  void discard() noexcept;
  // Ends a worker that does not answer: calls that wait for it fail.
  bool abandon() noexcept;
  bool is_alive() const noexcept { return child_.is_running(); }
  bool is_lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  // The device it is used for, in messages.
  void name_device(const std::string& device) { device_ = device; }
  void set_direct(bool has_direct) noexcept { has_direct_ = has_direct; }
  bool has_direct() const noexcept { return has_direct_; }
  // The worker takes several messages in one.
  void set_several(bool takes_several) noexcept { takes_several_ = takes_several; }

  Number next_number() noexcept { return numbers_.fetch_add(1, std::memory_order_relaxed); }
  const WorkerLimits& limits() const noexcept { return limits_; }

  // Sends a request and waits for the answer. Throws the worker's error; unavailable if the worker is gone; deadline_exceeded or
  // cancelled if it had to be killed.
  std::vector<std::byte> call(const ByteWriter& request, Limit limit = std::nullopt);

  // Requests whose tensor is in the shared memory.
  void upload(const ByteWriter& request, const HostArray& array);
  HostArray download(const ByteWriter& request, const TensorType& type);
  // Large tensors of devices with direct transfers: the worker starts on the first piece while the others are being copied.
  void pass_upload(const ByteWriter& request, const HostArray& array);
  HostArray pass_download(const ByteWriter& request, const TensorType& type);

  // Sends a message without an answer, if the worker takes several with the next one that has an answer: a run with dozens of
  // results is one message then, and wakes the worker once. Throws like call().
  void notify(const ByteWriter& note);
  // The same for one that may be lost, and that frees |bytes| of the device's memory.
  void tell(WorkerCommand command, Number number, std::size_t bytes = 0) noexcept;

  void close();

 private:
  struct Sockets {
    FileDescriptor ours, theirs;
  };
  struct Wait;

  static Sockets socket_pair();
  WorkerConnection(std::string device, const WorkerOptions& options, std::vector<std::string> command, Sockets sockets);

  // For the threads that copy pieces of a tensor: several may ask at once.
  std::function<bool()> still_waits(Wait& wait) const;

  std::vector<std::byte> exchange(const ByteWriter& request, Limit limit);
  void send(const ByteWriter& request, Wait& wait);
  std::vector<std::byte> take_answer(Wait& wait);

  std::size_t waiting_bytes() const noexcept { return waiting_.bytes().size(); }
  void add_waiting(const ByteWriter& message);
  // |message| after those that wait. Valid until the next call.
  std::span<const std::byte> with_waiting(const ByteWriter& message);

  [[noreturn]] void lose(const Wait& wait);
  // |verdict|: "" if the worker ended by itself.
  void become_lost(const std::string& verdict = {}) noexcept;
  Error lost_error(ErrorCode code = ErrorCode::unavailable) const;

  // Ensures that the shared memory holds |bytes|.
  void share(std::size_t bytes);
  void trim();
  void note_memory();
  TransferWindow& window();

  std::string device_;
  const WorkerLimits limits_;
  std::mutex mutex_;
  ChildProcess child_;
  WorkerChannel channel_;
  SharedMemory memory_;
  std::unique_ptr<TransferWindow> window_;
  std::uint32_t requests_ = 0;  // that are answered
  bool is_closed_ = false, has_direct_ = false, takes_several_ = false;
  ByteWriter waiting_;  // messages for the next one to take along
  std::size_t waiting_memory_ = 0;
  std::vector<std::byte> several_;
  std::string why_;
  std::atomic<bool> lost_{false}, is_abandoned_{false};
  std::atomic<Number> numbers_{1};
};

}  // namespace tenon
