// The worker's side: serves one device to the parent over a socket.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stop_token>
#include <thread>
#include <unordered_map>

#include "base/threads/stop_scope.h"
#include "hal/collectives.h"
#include "hal/worker/channel.h"
#include "hal/worker/hosted.h"
#include "hal/worker/window.h"
#include "hal/worker/worker.h"

namespace tenon {
namespace {

constexpr const char* kWorkerVariable = "TENON_WORKER_OF";

// Lets one thread stop the request that another one serves. A stop that comes late, for a request that is over, does nothing.
class Stopping {
 public:
  std::stop_token begin() {
    const std::lock_guard lock(mutex_);
    ++request_;
    source_ = std::stop_source();
    return source_.get_token();
  }
  void stop(std::uint32_t request) {
    const std::lock_guard lock(mutex_);
    if (request == request_) source_.request_stop();
  }

 private:
  std::mutex mutex_;
  std::uint32_t request_ = 0;
  std::stop_source source_;
};

class Server {
 public:
  Server(const BackendRegistry& registry, WorkerChannel& channel, Stopping& stopping)
      : registry_(registry),
        channel_(channel),
        stopping_(stopping) {}

  // Until the parent closes the device, or is gone.
  int serve() {
    try {
      return serve_messages();
    } catch (const std::exception& error) {
      // A message that nobody can answer: the parent sees the end of this process.
      std::fprintf(stderr, "tenon-worker: %s\n", error.what());
      return 1;
    }
  }

 private:
  using Number = std::uint64_t;

  int serve_messages() {
    while (auto message = channel_.receive()) {
      ByteReader in(message->bytes);
      const auto command = static_cast<WorkerCommand>(in.byte());
      if (command != WorkerCommand::several) {
        if (!serve_one(command, in, std::move(message->fd))) return 0;
        continue;
      }
      while (in.left() > 0) {
        ByteReader one(in.raw(in.below(in.left() + 1, "a message longer than those that contain it")));
        const auto next = static_cast<WorkerCommand>(one.byte());
        if (next == WorkerCommand::several || (is_answered(next) && in.left() > 0)) ByteReader::fail("a message in its middle");
        if (!serve_one(next, one, {})) return 0;
      }
    }
    return 0;
  }

  // False after the last one.
  bool serve_one(WorkerCommand command, ByteReader& in, FileDescriptor fd) {
    if (!is_answered(command)) {
      take_note(command, in, std::move(fd));
      return true;
    }
    ByteWriter reply;
    const StopScope scope(stopping_.begin());
    try {
      reply.flag(true);
      answer(command, in, reply);
    } catch (const Error& error) {
      reply = failure(error);
    } catch (const std::bad_alloc&) {
      reply = failure(Error(ErrorCode::resource_exhausted, "the worker process is out of memory"));
    } catch (const std::exception& error) {
      reply = failure(Error(ErrorCode::internal, error.what()));
    }
    return channel_.send(reply.bytes()) && command != WorkerCommand::close;
  }

  ByteWriter failure(const Error& error) const {
    ByteWriter reply;
    reply.flag(false);
    reply.byte(static_cast<std::uint8_t>(error.code()));
    reply.text(error.what());
    reply.text(error.hint());
    reply.flag(device_ && device_->is_lost());
    return reply;
  }

  void take_note(WorkerCommand command, ByteReader& in, FileDescriptor fd) {
    if (command == WorkerCommand::preload) return preload(in.text());
    const Number number = in.number();
    switch (command) {
      case WorkerCommand::share:
        memory_ = SharedMemory();
        if (number != 0) memory_ = SharedMemory::map(std::move(fd), number);
        return;
      case WorkerCommand::window: return map_window(std::move(fd), number);
      case WorkerCommand::put:
      case WorkerCommand::reserve: return make_small(command, number, in);
      case WorkerCommand::drop_buffer:
        buffers_.erase(number);
        failed_.erase(number);
        return;
      case WorkerCommand::drop_program: programs_.erase(number); return;
      case WorkerCommand::leave_group: groups_.erase(number); return;
      default: ByteReader::fail("a command that does not exist");
    }
  }

  void preload(const std::string& name) {
    const std::shared_ptr<Backend> backend = registry_.find(name);
    if (auto* const able = dynamic_cast<Preloadable*>(backend.get())) able->preload();
  }

  // Until it is pinned, the device could not read it; a failure is reported by the first transfer.
  void map_window(FileDescriptor fd, Number bytes) {
    if (bytes != TransferWindow::kBytes) ByteReader::fail("a window of another size");
    window_ = std::make_unique<TransferWindow>(SharedMemory::map(std::move(fd), bytes));
    try {
      direct().pin(window_->data(), TransferWindow::kBytes);
    } catch (const Error& error) {
      window_failure_ = error;
    }
  }

  void make_small(WorkerCommand command, Number number, ByteReader& in) {
    const TensorType type = read_type(in);
    try {
      if (command == WorkerCommand::reserve)
        buffers_[number] = device().allocate(type);
      else
        buffers_[number] = device().upload(HostArray::from_bytes(type.dtype, type.shape, in.raw(in.left())));
    } catch (const Error& error) {
      buffers_.erase(number);
      failed_.insert_or_assign(number, error);
    }
  }

  void answer(WorkerCommand command, ByteReader& in, ByteWriter& reply) {
    switch (command) {
      case WorkerCommand::open: return open(in, reply);
      case WorkerCommand::compile: return compile(in, reply);
      case WorkerCommand::allocate: {
        const Number number = in.number();
        buffers_[number] = device().allocate(read_type(in));
        return;
      }
      case WorkerCommand::upload: return upload(in);
      case WorkerCommand::download: return download(in);
      case WorkerCommand::pass_upload: return pass_upload(in);
      case WorkerCommand::pass_download: return pass_download(in);
      case WorkerCommand::run: return run(in, reply);
      case WorkerCommand::close: return close();
      case WorkerCommand::make_group: return reply.text(collectives().make_group_id());
      case WorkerCommand::join_group: return join_group(in);
      case WorkerCommand::start_exchange: return start_exchange(in);
      case WorkerCommand::is_exchange_done: return reply.flag(group(in.number()).is_complete());
      default: ByteReader::fail("a command that does not exist");
    }
  }

  OpenDevice& device() const {
    if (!device_) throw Error(ErrorCode::failed_precondition, "the worker has no device open");
    return *device_;
  }
  DirectTransfers& direct() const {
    auto* const able = dynamic_cast<DirectTransfers*>(&device());
    if (!able) ByteReader::fail("a transfer that the device does not offer");
    return *able;
  }
  Collectives& collectives() const {
    auto* const able = dynamic_cast<Collectives*>(&device());
    if (!able) throw Error(ErrorCode::unimplemented, device().info().id + " cannot exchange with other devices directly");
    return *able;
  }
  DeviceGroup& group(Number number) const {
    const auto found = groups_.find(number);
    if (found == groups_.end()) ByteReader::fail("a group that does not exist");
    return *found->second;
  }
  TransferWindow& window() const {
    if (window_failure_) throw Error(*window_failure_);
    if (!window_) ByteReader::fail("a transfer without a window");
    return *window_;
  }
  Buffer& buffer(Number number) const {
    if (!failed_.empty())
      if (const auto failed = failed_.find(number); failed != failed_.end()) throw Error(failed->second);
    const auto found = buffers_.find(number);
    if (found == buffers_.end()) ByteReader::fail("a buffer that does not exist");
    return *found->second;
  }

  void open(ByteReader& in, ByteWriter& reply) {
    if (in.number() != kWorkerProtocol)
      throw Error(ErrorCode::failed_precondition, "the worker program belongs to another version of Tenon",
                  "install the library and the worker together, or set TENON_WORKER");
    const std::string name = in.text();
    OpenOptions options;
    options.fuse = in.flag();
    const DeviceInfo info = read_device(in);
    const std::shared_ptr<Backend> backend = registry_.find(name);
    if (!backend) throw Error(ErrorCode::unavailable, fmt::format("the worker program has no backend {}", name));
    device_ = backend->open(info, options);
    write_device(reply, device_->info());
    reply.flag(dynamic_cast<DirectTransfers*>(device_.get()) != nullptr);
  }

  void compile(ByteReader& in, ByteWriter& reply) {
    const Number number = in.number();
    const Graph graph = deserialize(in.raw(in.left()));
    std::unique_ptr<Executable> program = device().compile(graph);
    for (const auto types : {program->input_types(), program->output_types()}) {
      reply.number(types.size());
      for (const TensorType& type : types) write_type(reply, type);
    }
    programs_[number] = std::move(program);
  }

  void upload(ByteReader& in) {
    const Number number = in.number();
    const TensorType type = read_type(in);
    const std::size_t bytes = storage_bytes(type.dtype, type.shape);
    if (bytes > memory_.bytes()) ByteReader::fail("more bytes than were shared");
    const std::span<const std::byte> given(memory_.data(), bytes);
    // The shared memory will be reused, so a backend that keeps the array's bytes gets a copy.
    const auto owner = std::make_shared<int>(0);
    std::unique_ptr<Buffer> made;
    if (bytes != 0) made = device().upload(HostArray::borrow(type.dtype, type.shape, given.data(), owner));
    if (!made || owner.use_count() > 1) made = device().upload(HostArray::from_bytes(type.dtype, type.shape, given));
    buffers_[number] = std::move(made);
  }

  // The parent's threads are already at work; they must hear of every failure.
  template <class Transfer>
  void pass(const Transfer& transfer) {
    try {
      transfer();
    } catch (...) {
      if (window_) window_->give_up();
      throw;
    }
  }
  void pass_upload(ByteReader& in) {
    const Number number = in.number();
    const TensorType type = read_type(in);
    pass([&] {
      std::unique_ptr<Buffer> made = device().allocate(type);
      window().upload(direct(), *made, storage_bytes(type.dtype, type.shape));
      buffers_[number] = std::move(made);
    });
  }
  void pass_download(ByteReader& in) {
    const Number number = in.number();
    pass([&] {
      const Buffer& from = buffer(number);
      window().download(direct(), from, storage_bytes(from.type().dtype, from.type().shape));
    });
  }

  void download(ByteReader& in) {
    const HostArray array = device().download(buffer(in.number()));
    if (array.bytes() > memory_.bytes()) ByteReader::fail("more bytes than were shared");
    if (array.bytes() != 0) std::memcpy(memory_.data(), array.data(), array.bytes());
  }

  void run(ByteReader& in, ByteWriter& reply) {
    const bool answers_results = in.flag();
    const auto program = programs_.find(in.number());
    if (program == programs_.end()) ByteReader::fail("a program that does not exist");
    inputs_.clear();
    outputs_.clear();
    for (Number count = in.below(in.left() + 1, "more inputs than bytes"); count > 0; --count)
      inputs_.push_back(&buffer(in.number()));
    for (Number count = in.below(in.left() + 1, "more outputs than bytes"); count > 0; --count)
      outputs_.push_back(&buffer(in.number()));
    program->second->run(inputs_, outputs_);
    if (!answers_results) return;
    for (const Buffer* output : outputs_) {
      const std::size_t bytes = storage_bytes(output->type().dtype, output->type().shape);
      if (bytes == 0 || bytes > kMessageBytes) continue;
      const HostArray array = device().download(*output);
      reply.raw({array.data(), array.bytes()});
    }
  }

  void join_group(ByteReader& in) {
    const Number number = in.number();
    const std::string id = in.text();
    const auto rank = in.number(), size = in.below(1 << 20, "a group of too many devices");
    if (rank >= size) ByteReader::fail("a rank outside of its group");
    groups_[number] = collectives().join(id, static_cast<int>(rank), static_cast<int>(size));
  }
  void start_exchange(ByteReader& in) {
    DeviceGroup& with = group(in.number());
    std::vector<GroupCall> calls;
    for (Number count = in.below(in.left() + 1, "more calls than bytes"); count > 0; --count) {
      GroupCall& call = calls.emplace_back();
      call.kind = static_cast<GroupCall::Kind>(in.below(GroupCall::kKinds, "an exchange that does not exist"));
      call.peer = static_cast<int>(in.below(1 << 20, "a device outside of the group"));
      call.reduction = static_cast<ReduceKind>(in.below(6, "a reduction that does not exist"));
      // Numbers of buffers begin at 1.
      if (const Number from = in.number()) call.from = &buffer(from);
      if (const Number to = in.number()) call.to = &buffer(to);
    }
    with.start(calls);
  }

  void close() {
    groups_.clear();
    if (window_ && device_ && !window_failure_) direct().unpin(window_->data());
    window_.reset();
    programs_.clear();
    buffers_.clear();
    if (device_) device_->close();
    device_.reset();
  }

  const BackendRegistry& registry_;
  WorkerChannel& channel_;
  Stopping& stopping_;
  std::unique_ptr<OpenDevice> device_;
  std::unordered_map<Number, std::unique_ptr<Buffer>> buffers_;
  std::unordered_map<Number, std::unique_ptr<Executable>> programs_;
  std::unordered_map<Number, std::unique_ptr<DeviceGroup>> groups_;
  std::vector<const Buffer*> inputs_;
  std::vector<Buffer*> outputs_;
  std::unordered_map<Number, Error> failed_;
  SharedMemory memory_;
  std::unique_ptr<TransferWindow> window_;
  std::optional<Error> window_failure_;
};

// A runtime may be busy for a long time, so a thread receives the parent's stops and detects its end. It watches both the
// parent's descriptor and its process, because a forked child may keep the descriptor open. A parent-death signal would arrive
// when the thread that started this process ends, which is too early.
void watch_parent(int socket, Stopping& stopping) {
  // Blocked before any thread exists, so that only the descriptor receives it.
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, kStopSignal);
  pthread_sigmask(SIG_BLOCK, &stops, nullptr);
  // A library may unblock it in a thread of its own, which then takes a signal that poll() has seen: reading must not wait.
  const int signals = signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK);
  const int parent = static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0));
  std::thread([socket, parent, signals, &stopping] {
    pollfd watched[] = {{socket, POLLRDHUP, 0}, {parent, POLLIN, 0}, {signals, POLLIN, 0}};  // negative ones are ignored
    for (;;) {
      if (poll(watched, 3, -1) <= 0) continue;
      if ((watched[0].revents & (POLLHUP | POLLRDHUP | POLLERR)) || watched[1].revents) _exit(0);
      signalfd_siginfo info{};
      if (watched[2].revents && read(signals, &info, sizeof info) == sizeof info)
        stopping.stop(static_cast<std::uint32_t>(info.ssi_int));
    }
  }).detach();
}

}  // namespace

bool is_worker() noexcept {
  static const bool answer = std::getenv(kWorkerVariable) != nullptr;
  return answer;
}

int run_worker(const BackendRegistry& registry) {
  // Interrupts from the terminal are left to the parent, which decides what happens to the device.
  signal(SIGINT, SIG_IGN);
  WorkerChannel channel{FileDescriptor(kWorkerSocket)};
  // If the parent is not the process named here, it is already gone.
  const char* parent = std::getenv(kWorkerVariable);
  if (!parent || std::atol(parent) != getppid()) return 1;
  Stopping stopping;
  watch_parent(channel.fd(), stopping);
  const int status = Server(registry, channel, stopping).serve();
  // Exit without running the threads and exit handlers of runtimes; everything that matters is closed.
  _exit(status);
}

}  // namespace tenon
