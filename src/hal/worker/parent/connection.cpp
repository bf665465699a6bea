#include "hal/worker/parent/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/text/units.h"
#include "base/threads/progress_scope.h"
#include "base/threads/stop_scope.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

// How long a worker may take to exit after it was told to.
constexpr int kGraceMilliseconds = 2000;
// Shared memory is kept for the next transfer up to this size.
constexpr std::size_t kKeptBytes = std::size_t{64} << 20;
constexpr std::size_t kSmallestBytes = std::size_t{64} << 10;

}  // namespace

// Decides, while the worker does not answer, whether to wait on; if not, it is killed.
struct WorkerConnection::Wait {
  const WorkerConnection& connection;
  const Limit limit;
  const StopScope* const scope = StopScope::current();
  const Clock::time_point start = Clock::now();
  std::optional<Clock::time_point> told_to_stop = {};
  std::string verdict = {};  // why it was killed

  bool goes_on() {
    const Clock::time_point now = Clock::now();
    if (scope && !told_to_stop && scope->is_met()) {
      told_to_stop = now;
      connection.child_.send_stop(connection.requests_);
    }
    if (limit && now >= start + *limit)
      verdict = fmt::format("its worker process did not answer for {}", format_seconds(seconds(*limit)));
    else if (told_to_stop && now >= *told_to_stop + connection.limits_.stop)
      verdict = "its worker process did not stop a run that was to end";
    return verdict.empty();
  }
  static double seconds(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }
};

WorkerConnection::Sockets WorkerConnection::socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(ErrorCode::resource_exhausted, fmt::format("cannot create a socket for a worker: {}", std::strerror(errno)));
  Sockets sockets{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  if (sockets.theirs.get() <= kWorkerSocket)
    sockets.theirs = FileDescriptor(fcntl(sockets.theirs.get(), F_DUPFD_CLOEXEC, kWorkerSocket + 1));
  return sockets;
}

WorkerConnection::WorkerConnection(std::string device, const WorkerOptions& options, std::vector<std::string> command,
                                   Sockets sockets)
    : device_(std::move(device)),
      limits_(options.limits),
      child_(spawn(std::move(command), sockets.theirs.get(), options.environment)),
      channel_(std::move(sockets.ours)) {
  channel_.set_interval();
}

WorkerConnection::~WorkerConnection() {
  channel_.shut();
  child_.end(kGraceMilliseconds);
}

void WorkerConnection::discard() noexcept {
  is_closed_ = true;
  child_.end(0);
}

bool WorkerConnection::abandon() noexcept {
  is_abandoned_.store(true, std::memory_order_relaxed);
  return child_.kill_now();
}

std::vector<std::byte> WorkerConnection::call(const ByteWriter& request, Limit limit) {
  const std::lock_guard lock(mutex_);
  return exchange(request, limit);
}

void WorkerConnection::upload(const ByteWriter& request, const HostArray& array) {
  const std::lock_guard lock(mutex_);
  share(array.bytes());
  if (array.bytes() != 0) std::memcpy(memory_.data(), array.data(), array.bytes());
  exchange(request, limits_.transfer);
  trim();
}

HostArray WorkerConnection::download(const ByteWriter& request, const TensorType& type) {
  HostArray array = HostArray::empty(type.dtype, type.shape);
  const std::lock_guard lock(mutex_);
  share(array.bytes());
  exchange(request, limits_.transfer);
  if (array.bytes() != 0) std::memcpy(array.mutable_data(), memory_.data(), array.bytes());
  trim();
  return array;
}

void WorkerConnection::pass_upload(const ByteWriter& request, const HostArray& array) {
  const std::lock_guard lock(mutex_);
  TransferWindow& through = window();
  through.start();
  ++requests_;
  Wait wait{*this, limits_.transfer};
  send(request, wait);
  through.fill(array.data(), array.bytes(), still_waits(wait));
  take_answer(wait);
}

HostArray WorkerConnection::pass_download(const ByteWriter& request, const TensorType& type) {
  HostArray array = HostArray::empty(type.dtype, type.shape);
  const std::lock_guard lock(mutex_);
  TransferWindow& through = window();
  through.start();
  ++requests_;
  Wait wait{*this, limits_.transfer};
  send(request, wait);
  through.empty(array.mutable_data(), array.bytes(), still_waits(wait));
  take_answer(wait);
  return array;
}

void WorkerConnection::notify(const ByteWriter& note) {
  const std::lock_guard lock(mutex_);
  if (takes_several_ && !is_closed_ && !is_lost() && waiting_bytes() + note.bytes().size() <= kWaitingBytes)
    return add_waiting(note);
  Wait wait{*this, limits_.transfer};
  send(note, wait);
}

void WorkerConnection::tell(WorkerCommand command, Number number, std::size_t bytes) noexcept {
  ByteWriter note = request_for(command);
  note.number(number);
  const std::lock_guard lock(mutex_);
  if (is_closed_ || is_lost()) return;
  waiting_memory_ += bytes;
  if (takes_several_ && waiting_memory_ <= kWaitingMemory && waiting_bytes() + note.bytes().size() <= kWaitingBytes)
    return add_waiting(note);
  // The worker reads whenever it has nothing to do: one that leaves the socket full has stopped.
  const Clock::time_point until = Clock::now() + limits_.close;
  if (channel_.send(with_waiting(note), -1, [until] { return Clock::now() < until; })) return;
  child_.kill_now();
  become_lost();
}

void WorkerConnection::close() {
  const ByteWriter request = request_for(WorkerCommand::close);
  const std::lock_guard lock(mutex_);
  if (is_closed_) return;
  struct Ending {
    WorkerConnection& connection;
    ~Ending() {
      connection.is_closed_ = true;
      connection.channel_.shut();
      connection.child_.end(kGraceMilliseconds);
    }
  } ending{*this};
  if (!is_lost()) exchange(request, limits_.close);
}

std::function<bool()> WorkerConnection::still_waits(Wait& wait) const {
  return [this, &wait, one_at_a_time = std::make_shared<std::mutex>()] {
    const std::lock_guard lock(*one_at_a_time);
    return is_alive() && wait.goes_on();
  };
}

std::vector<std::byte> WorkerConnection::exchange(const ByteWriter& request, Limit limit) {
  ++requests_;
  Wait wait{*this, limit};
  send(request, wait);
  return take_answer(wait);
}

void WorkerConnection::send(const ByteWriter& request, Wait& wait) {
  if (is_closed_) throw Error(ErrorCode::failed_precondition, fmt::format("{} is closed", device_));
  if (is_lost()) throw lost_error();
  if (!channel_.send(with_waiting(request), -1, [&wait] { return wait.goes_on(); })) lose(wait);
}

void WorkerConnection::add_waiting(const ByteWriter& message) {
  if (waiting_bytes() == 0) waiting_.byte(static_cast<std::uint8_t>(WorkerCommand::several));
  waiting_.number(message.bytes().size());
  waiting_.raw(message.bytes());
}

std::span<const std::byte> WorkerConnection::with_waiting(const ByteWriter& message) {
  waiting_memory_ = 0;
  if (waiting_bytes() == 0) return message.bytes();
  add_waiting(message);
  several_ = waiting_.take();
  waiting_ = {};
  return several_;
}

std::vector<std::byte> WorkerConnection::take_answer(Wait& wait) {
  WorkerReply reply;
  try {
    auto message = channel_.receive([&wait] { return wait.goes_on(); });
    while (message) {
      const std::optional<std::string> note = read_note(message->bytes);
      if (!note) break;
      tell_progress(*note);
      message = channel_.receive([&wait] { return wait.goes_on(); });
    }
    if (!message) lose(wait);
    reply = read_reply(std::move(message->bytes));
  } catch (const Error& error) {
    if (is_lost()) throw;
    wait.verdict = fmt::format("its worker process sent a damaged answer ({})", error.what());
    lose(wait);
  }
  if (!reply.failure) return std::move(reply.result);
  if (reply.is_lost) {
    why_ = reply.failure->what();
    lost_.store(true, std::memory_order_relaxed);
  }
  if (wait.told_to_stop && reply.failure->code() == ErrorCode::cancelled) wait.scope->raise();
  throw Error(*reply.failure);
}

void WorkerConnection::lose(const Wait& wait) {
  if (!wait.verdict.empty()) child_.kill_now();
  become_lost(wait.verdict);
  if (wait.scope && wait.scope->is_met()) wait.scope->raise();
  throw lost_error(wait.verdict.empty() ? ErrorCode::unavailable : ErrorCode::deadline_exceeded);
}

void WorkerConnection::become_lost(const std::string& verdict) noexcept {
  const std::string ended = child_.end(kGraceMilliseconds);
  if (!verdict.empty())
    why_ = verdict;
  else if (is_abandoned_.load(std::memory_order_relaxed))
    why_ = "it did not answer and was given up";
  else
    why_ = fmt::format("its worker process {}", ended);
  lost_.store(true, std::memory_order_relaxed);
}

Error WorkerConnection::lost_error(ErrorCode code) const {
  return {code, fmt::format("{} is lost: {}", device_, why_),
          "run the program again; tensors that were only on the device are lost"};
}

void WorkerConnection::share(std::size_t bytes) {
  if (bytes <= memory_.bytes()) return;
  std::size_t size = kSmallestBytes;
  while (size < bytes) size *= 2;
  if (size > kKeptBytes) size = bytes;
  memory_ = SharedMemory();
  memory_ = SharedMemory::create(size);
  note_memory();
}

void WorkerConnection::trim() {
  if (memory_.bytes() <= kKeptBytes) return;
  memory_ = SharedMemory();
  note_memory();
}

void WorkerConnection::note_memory() {
  ByteWriter note = request_for(WorkerCommand::share);
  note.number(memory_.bytes());
  Wait wait{*this, limits_.transfer};
  if (!channel_.send(note.bytes(), memory_.fd(), [&wait] { return wait.goes_on(); })) lose(wait);
}

TransferWindow& WorkerConnection::window() {
  if (window_) return *window_;
  auto window = std::make_unique<TransferWindow>(SharedMemory::create(TransferWindow::kBytes));
  ByteWriter note = request_for(WorkerCommand::window);
  note.number(TransferWindow::kBytes);
  if (is_closed_) throw Error(ErrorCode::failed_precondition, fmt::format("{} is closed", device_));
  if (is_lost()) throw lost_error();
  Wait wait{*this, limits_.transfer};
  if (!channel_.send(note.bytes(), window->fd(), [&wait] { return wait.goes_on(); })) lose(wait);
  window_ = std::move(window);
  return *window_;
}

}  // namespace tenon
