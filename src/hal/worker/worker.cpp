#include "hal/worker/worker.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/log.h"
#include "base/text/units.h"
#include "base/threads/progress_scope.h"
#include "base/threads/stop_scope.h"
#include "hal/collectives.h"
#include "hal/memory_exchange.h"
#include "hal/worker/channel.h"
#include "hal/worker/hosted.h"
#include "hal/worker/window.h"
#include "tenon/error.h"

extern char** environ;

namespace tenon {
namespace {

// How long a worker may take to exit after it was told to.
constexpr int kGraceMilliseconds = 2000;
// Shared memory is kept for the next transfer up to this size.
constexpr std::size_t kKeptBytes = std::size_t{64} << 20;
constexpr std::size_t kSmallestBytes = std::size_t{64} << 10;

// --- The process ---
class ChildProcess {
 public:
  ChildProcess() = default;
  explicit ChildProcess(pid_t pid) : pid_(pid), fd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)), fd_(std::move(other.fd_)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess() { end(0); }

  // These two from any thread; whoever talks to a killed process finds it gone.
  void send_stop(std::uint32_t request) const noexcept {
    siginfo_t info{};
    info.si_signo = kStopSignal;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_int = static_cast<int>(request);
    if (fd_) syscall(SYS_pidfd_send_signal, fd_.get(), kStopSignal, &info, 0);
  }
  bool kill_now() const noexcept { return fd_ && syscall(SYS_pidfd_send_signal, fd_.get(), SIGKILL, nullptr, 0) == 0; }
  bool is_running() const noexcept {
    pollfd watched{fd_.get(), POLLIN, 0};
    return pid_ >= 0 && fd_ && poll(&watched, 1, 0) == 0;
  }

  // Waits this long for the process to exit, then kills it, and reaps it. Returns how it ended.
  std::string end(int milliseconds) noexcept {
    if (pid_ < 0) return ended_;
    pollfd watched{fd_.get(), POLLIN, 0};
    if (!fd_ || poll(&watched, 1, milliseconds) <= 0) kill(pid_, SIGKILL);
    int status = 0;
    pid_t waited;
    do waited = waitpid(pid_, &status, 0);
    while (waited < 0 && errno == EINTR);
    // Another part of the program may have waited for all children.
    if (waited < 0)
      ended_ = "ended";
    else if (WIFSIGNALED(status))
      ended_ = fmt::format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
      ended_ = fmt::format("exited with status {}", WEXITSTATUS(status));
    pid_ = -1;
    return ended_;
  }

 private:
  pid_t pid_ = -1;
  FileDescriptor fd_;
  std::string ended_;
};

std::string folder_of(const std::string& file) {
  const std::size_t slash = file.find_last_of('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

// The folder of the executable, and of the library this function is in.
std::vector<std::string> own_folders() {
  std::vector<std::string> folders;
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size > 0) folders.push_back(folder_of(std::string(path, static_cast<std::size_t>(size))));
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(&worker_program), &library) && library.dli_fname && realpath(library.dli_fname, path))
    folders.push_back(folder_of(path));
  return folders;
}

std::vector<std::string> child_environment(const std::map<std::string, std::string>& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!more.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [key, value] : more)
    if (!value.empty()) all.push_back(key + "=" + value);
  return all;
}

struct SpawnSettings {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

ChildProcess spawn(std::vector<std::string> command, int socket, std::map<std::string, std::string> more) {
  more["TENON_WORKER_OF"] = fmt::format("{}", getpid());
  std::vector<std::string> environment = child_environment(more);
  std::vector<char*> entries;
  for (std::string& entry : environment) entries.push_back(entry.data());
  entries.push_back(nullptr);

  SpawnSettings settings;
  posix_spawn_file_actions_addopen(&settings.actions, 0, "/dev/null", O_RDONLY, 0);
  // The output of a runtime must not be mixed with the program's results.
  posix_spawn_file_actions_adddup2(&settings.actions, 2, 1);
  // The socket is never descriptor 3 itself (see below), which would keep its close-on-exec flag.
  posix_spawn_file_actions_adddup2(&settings.actions, socket, kWorkerSocket);
  posix_spawn_file_actions_addclosefrom_np(&settings.actions, kWorkerSocket + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setsigdefault(&settings.attributes, &all);
  posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<char*> arguments;
  for (std::string& part : command) arguments.push_back(part.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, command[0].c_str(), &settings.actions, &settings.attributes, arguments.data(), entries.data());
  if (error != 0)
    throw Error(ErrorCode::unavailable, fmt::format("cannot start the worker program {}: {}", command[0], std::strerror(error)));
  return ChildProcess(pid);
}

// --- The connection: one worker, its socket, the memory shared with it ---
class Connection {
 public:
  using Limit = std::optional<std::chrono::milliseconds>;

  // |command|: the program and its arguments.
  Connection(std::string device, const WorkerOptions& options, std::vector<std::string> command = {worker_program()})
      : Connection(std::move(device), options, std::move(command), socket_pair()) {}
  ~Connection() {
    channel_.shut();
    child_.end(kGraceMilliseconds);
  }

  // A worker without a device can be ended at any time.
  void discard() noexcept {
    is_closed_ = true;
    child_.end(0);
  }
  // Ends a worker that does not answer: calls that wait for it fail.
  bool abandon() noexcept {
    is_abandoned_.store(true, std::memory_order_relaxed);
    return child_.kill_now();
  }
  bool is_alive() const noexcept { return child_.is_running(); }
  // The device it is used for, in messages.
  void name_device(const std::string& device) { device_ = device; }
  void set_direct(bool has_direct) noexcept { has_direct_ = has_direct; }
  bool has_direct() const noexcept { return has_direct_; }
  // The worker takes several messages in one.
  void set_several(bool takes_several) noexcept { takes_several_ = takes_several; }

  using Number = std::uint64_t;
  Number next_number() noexcept { return numbers_.fetch_add(1, std::memory_order_relaxed); }
  bool is_lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

  const WorkerLimits& limits() const noexcept { return limits_; }

  // Sends a request and waits for the answer. Throws the worker's error; unavailable if the worker is gone; deadline_exceeded or
  // cancelled if it had to be killed.
  std::vector<std::byte> call(const ByteWriter& request, Limit limit = std::nullopt) {
    const std::lock_guard lock(mutex_);
    return exchange(request, limit);
  }

  void upload(const ByteWriter& request, const HostArray& array) {
    const std::lock_guard lock(mutex_);
    share(array.bytes());
    if (array.bytes() != 0) std::memcpy(memory_.data(), array.data(), array.bytes());
    exchange(request, limits_.transfer);
    trim();
  }

  HostArray download(const ByteWriter& request, const TensorType& type) {
    HostArray array = HostArray::empty(type.dtype, type.shape);
    const std::lock_guard lock(mutex_);
    share(array.bytes());
    exchange(request, limits_.transfer);
    if (array.bytes() != 0) std::memcpy(array.mutable_data(), memory_.data(), array.bytes());
    trim();
    return array;
  }

  // Large tensors of devices with direct transfers: the worker starts on the first piece while the others are being copied.
  void pass_upload(const ByteWriter& request, const HostArray& array) {
    const std::lock_guard lock(mutex_);
    TransferWindow& through = window();
    through.start();
    ++requests_;
    Wait wait{*this, limits_.transfer};
    send(request, wait);
    through.fill(array.data(), array.bytes(), still_waits(wait));
    take_answer(wait);
  }
  HostArray pass_download(const ByteWriter& request, const TensorType& type) {
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

  // Sends a message without an answer, if the worker takes several with the next one that has an answer: a run with dozens of
  // results is one message then, and wakes the worker once. Throws like call().
  void notify(const ByteWriter& note) {
    const std::lock_guard lock(mutex_);
    if (takes_several_ && !is_closed_ && !is_lost() && waiting_bytes() + note.bytes().size() <= kWaitingBytes)
      return add_waiting(note);
    Wait wait{*this, limits_.transfer};
    send(note, wait);
  }
  // The same for one that may be lost, and that frees |bytes| of the device's memory.
  void tell(WorkerCommand command, Number number, std::size_t bytes = 0) noexcept {
    ByteWriter note;
    note.byte(static_cast<std::uint8_t>(command));
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

  void close() {
    ByteWriter request;
    request.byte(static_cast<std::uint8_t>(WorkerCommand::close));
    const std::lock_guard lock(mutex_);
    if (is_closed_) return;
    struct Ending {
      Connection& connection;
      ~Ending() {
        connection.is_closed_ = true;
        connection.channel_.shut();
        connection.child_.end(kGraceMilliseconds);
      }
    } ending{*this};
    if (!is_lost()) exchange(request, limits_.close);
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct Sockets {
    FileDescriptor ours, theirs;
  };
  static Sockets socket_pair() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      throw Error(ErrorCode::resource_exhausted, fmt::format("cannot create a socket for a worker: {}", std::strerror(errno)));
    Sockets sockets{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
    if (sockets.theirs.get() <= kWorkerSocket)
      sockets.theirs = FileDescriptor(fcntl(sockets.theirs.get(), F_DUPFD_CLOEXEC, kWorkerSocket + 1));
    return sockets;
  }
  Connection(std::string device, const WorkerOptions& options, std::vector<std::string> command, Sockets sockets)
      : device_(std::move(device)),
        limits_(options.limits),
        child_(spawn(std::move(command), sockets.theirs.get(), options.environment)),
        channel_(std::move(sockets.ours)) {
    channel_.set_interval();
  }

  // Decides, while the worker does not answer, whether to wait on; if not, it is killed.
  struct Wait {
    const Connection& connection;
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

  // For the threads that copy pieces of a tensor: several may ask at once.
  std::function<bool()> still_waits(Wait& wait) const {
    return [this, &wait, one_at_a_time = std::make_shared<std::mutex>()] {
      const std::lock_guard lock(*one_at_a_time);
      return is_alive() && wait.goes_on();
    };
  }

  std::vector<std::byte> exchange(const ByteWriter& request, Limit limit) {
    ++requests_;
    Wait wait{*this, limit};
    send(request, wait);
    return take_answer(wait);
  }

  void send(const ByteWriter& request, Wait& wait) {
    if (is_closed_) throw Error(ErrorCode::failed_precondition, fmt::format("{} is closed", device_));
    if (is_lost()) throw lost_error();
    if (!channel_.send(with_waiting(request), -1, [&wait] { return wait.goes_on(); })) lose(wait);
  }

  std::size_t waiting_bytes() const noexcept { return waiting_.bytes().size(); }
  void add_waiting(const ByteWriter& message) {
    if (waiting_bytes() == 0) waiting_.byte(static_cast<std::uint8_t>(WorkerCommand::several));
    waiting_.number(message.bytes().size());
    waiting_.raw(message.bytes());
  }
  // |message| after those that wait. Valid until the next call.
  std::span<const std::byte> with_waiting(const ByteWriter& message) {
    waiting_memory_ = 0;
    if (waiting_bytes() == 0) return message.bytes();
    add_waiting(message);
    several_ = waiting_.take();
    waiting_ = {};
    return several_;
  }

  std::vector<std::byte> take_answer(Wait& wait) {
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

  [[noreturn]] void lose(const Wait& wait) {
    if (!wait.verdict.empty()) child_.kill_now();
    become_lost(wait.verdict);
    if (wait.scope && wait.scope->is_met()) wait.scope->raise();
    throw lost_error(wait.verdict.empty() ? ErrorCode::unavailable : ErrorCode::deadline_exceeded);
  }
  // |verdict|: "" if the worker ended by itself.
  void become_lost(const std::string& verdict = {}) noexcept {
    const std::string ended = child_.end(kGraceMilliseconds);
    if (!verdict.empty())
      why_ = verdict;
    else if (is_abandoned_.load(std::memory_order_relaxed))
      why_ = "it did not answer and was given up";
    else
      why_ = fmt::format("its worker process {}", ended);
    lost_.store(true, std::memory_order_relaxed);
  }
  Error lost_error(ErrorCode code = ErrorCode::unavailable) const {
    return {code, fmt::format("{} is lost: {}", device_, why_),
            "run the program again; tensors that were only on the device are lost"};
  }

  // Ensures that the shared memory holds |bytes|.
  void share(std::size_t bytes) {
    if (bytes <= memory_.bytes()) return;
    std::size_t size = kSmallestBytes;
    while (size < bytes) size *= 2;
    if (size > kKeptBytes) size = bytes;
    memory_ = SharedMemory();
    memory_ = SharedMemory::create(size);
    note_memory();
  }
  void trim() {
    if (memory_.bytes() <= kKeptBytes) return;
    memory_ = SharedMemory();
    note_memory();
  }
  void note_memory() {
    ByteWriter note;
    note.byte(static_cast<std::uint8_t>(WorkerCommand::share));
    note.number(memory_.bytes());
    Wait wait{*this, limits_.transfer};
    if (!channel_.send(note.bytes(), memory_.fd(), [&wait] { return wait.goes_on(); })) lose(wait);
  }

  TransferWindow& window() {
    if (window_) return *window_;
    auto window = std::make_unique<TransferWindow>(SharedMemory::create(TransferWindow::kBytes));
    ByteWriter note;
    note.byte(static_cast<std::uint8_t>(WorkerCommand::window));
    note.number(TransferWindow::kBytes);
    if (is_closed_) throw Error(ErrorCode::failed_precondition, fmt::format("{} is closed", device_));
    if (is_lost()) throw lost_error();
    Wait wait{*this, limits_.transfer};
    if (!channel_.send(note.bytes(), window->fd(), [&wait] { return wait.goes_on(); })) lose(wait);
    window_ = std::move(window);
    return *window_;
  }

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

ByteWriter request_for(WorkerCommand command) {
  ByteWriter request;
  request.byte(static_cast<std::uint8_t>(command));
  return request;
}

class WorkerBuffer final : public Buffer {
 public:
  WorkerBuffer(TensorType type, std::shared_ptr<Connection> connection, Connection::Number number, MemoryBudget::Share share)
      : Buffer(std::move(type)),
        connection_(std::move(connection)),
        number_(number),
        share_(std::move(share)) {}
  ~WorkerBuffer() override { connection_->tell(WorkerCommand::drop_buffer, number_, storage_bytes(type().dtype, type().shape)); }

  Connection::Number number() const { return number_; }

  // The content, if it came with the answer of the run that wrote it; else empty.
  const std::vector<std::byte>& copy() const { return copy_; }
  // |reader| is notified when the content is read.
  void set_copy(std::vector<std::byte> copy, std::shared_ptr<std::atomic<bool>> reader) {
    copy_ = std::move(copy);
    reader_ = std::move(reader);
  }
  void was_read() const {
    if (reader_) reader_->store(true, std::memory_order_relaxed);
  }

 private:
  std::shared_ptr<Connection> connection_;
  Connection::Number number_;
  MemoryBudget::Share share_;
  std::vector<std::byte> copy_;
  std::shared_ptr<std::atomic<bool>> reader_;
};

class WorkerProgram final : public Executable, public Tiered {
 public:
  WorkerProgram(std::shared_ptr<Connection> connection, Connection::Number number, TranslatedProgram program)
      : connection_(std::move(connection)),
        number_(number),
        input_types_(std::move(program.input_types)),
        output_types_(std::move(program.output_types)),
        tier_(std::move(program.tier)),
        other_tier_(std::move(program.other_tier)),
        ops_by_tier_(std::move(program.ops_by_tier)) {}
  WorkerProgram(std::shared_ptr<Connection> connection, Connection::Number number, std::span<const std::byte> types)
      : connection_(std::move(connection)),
        number_(number) {
    ByteReader in(types);
    for (std::vector<TensorType>* list : {&input_types_, &output_types_})
      for (std::uint64_t count = in.below(in.left() + 1, "more types than bytes"); count > 0; --count)
        list->push_back(read_type(in));
  }
  ~WorkerProgram() override { connection_->tell(WorkerCommand::drop_program, number_); }

  std::span<const TensorType> input_types() const noexcept override { return input_types_; }
  std::span<const TensorType> output_types() const noexcept override { return output_types_; }
  const std::string& tier() const noexcept override { return has_changed_.load() ? other_tier_ : tier_; }

  std::map<std::string, std::vector<std::string>> ops_by_tier() const override {
    if (!has_changed_.load()) return ops_by_tier_;
    std::vector<std::string> all;
    for (const auto& [tier, ops] : ops_by_tier_) all.insert(all.end(), ops.begin(), ops.end());
    return {{other_tier_, std::move(all)}};
  }

  using Executable::run;
  void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override {
    // Results that were read after the last run are likely to be read after this one.
    const bool send_along = results_are_read_->exchange(false, std::memory_order_relaxed);
    ByteWriter request = request_for(WorkerCommand::run);
    request.flag(send_along);
    request.number(number_);
    request.number(inputs.size());
    for (const Buffer* input : inputs) request.number(static_cast<const WorkerBuffer*>(input)->number());
    request.number(outputs.size());
    for (const Buffer* output : outputs) request.number(static_cast<const WorkerBuffer*>(output)->number());
    const std::vector<std::byte> answer = connection_->call(request);
    ByteReader in(answer);
    for (Buffer* output : outputs) {
      std::vector<std::byte> copy;
      const std::size_t bytes = storage_bytes(output->type().dtype, output->type().shape);
      if (send_along && bytes != 0 && bytes <= kMessageBytes) {
        const std::span<const std::byte> sent = in.raw(bytes);
        copy.assign(sent.begin(), sent.end());
      }
      static_cast<WorkerBuffer*>(output)->set_copy(std::move(copy), results_are_read_);
    }
    if (!other_tier_.empty() && in.left() > 0) has_changed_.store(in.flag());
  }

 private:
  std::shared_ptr<Connection> connection_;
  Connection::Number number_;
  std::shared_ptr<std::atomic<bool>> results_are_read_ = std::make_shared<std::atomic<bool>>(false);
  std::vector<TensorType> input_types_, output_types_;
  std::string tier_, other_tier_;
  std::map<std::string, std::vector<std::string>> ops_by_tier_;
  std::atomic<bool> has_changed_{false};
};

// A group that the worker has joined. The worker ends its own waits; the limits are for one that does not.
class WorkerGroup final : public DeviceGroup {
 public:
  WorkerGroup(std::shared_ptr<Connection> connection, const std::string& id, int rank, int size)
      : connection_(std::move(connection)),
        number_(connection_->next_number()) {
    ByteWriter request = request_for(WorkerCommand::join_group);
    request.number(number_);
    request.text(id);
    request.number(static_cast<std::uint64_t>(rank));
    request.number(static_cast<std::uint64_t>(size));
    connection_->call(request, connection_->limits().transfer);
  }
  // Sent at once: it ends what the device may still be doing.
  ~WorkerGroup() override { connection_->tell(WorkerCommand::leave_group, number_, kWaitingMemory + 1); }

  void start(std::span<const GroupCall> calls) override {
    const auto number_of = [](const Buffer* buffer) {
      return buffer ? static_cast<const WorkerBuffer*>(buffer)->number() : Connection::Number{0};
    };
    ByteWriter request = request_for(WorkerCommand::start_exchange);
    request.number(number_);
    request.number(calls.size());
    for (const GroupCall& call : calls) {
      request.number(static_cast<std::uint64_t>(call.kind));
      request.number(static_cast<std::uint64_t>(call.peer));
      request.number(static_cast<std::uint64_t>(call.reduction));
      request.number(number_of(call.from));
      request.number(number_of(call.to));
    }
    connection_->call(request, connection_->limits().transfer);
  }

  // Waits for a program that the worker runs.
  bool is_complete() override {
    ByteWriter request = request_for(WorkerCommand::is_exchange_done);
    request.number(number_);
    const std::vector<std::byte> answer = connection_->call(request);
    return ByteReader(answer).flag();
  }

 private:
  std::shared_ptr<Connection> connection_;
  const Connection::Number number_;
};

// A worker that has loaded its backend's libraries but opened no device. It is started when a device closes, so that the next
// open does not wait for a process to start and its libraries to load.
class SpareWorker {
 public:
  explicit SpareWorker(std::string backend) : backend_(std::move(backend)) {}
  ~SpareWorker() {
    if (connection_) connection_->discard();
  }

  void start() noexcept {
    const std::lock_guard lock(mutex_);
    if (connection_) return;
    try {
      auto connection = std::make_shared<Connection>(backend_, WorkerOptions());
      ByteWriter note = request_for(WorkerCommand::preload);
      note.text(backend_);
      connection->notify(note);
      connection_ = std::move(connection);
    } catch (const std::exception& error) {
      logging::debug("no worker is held ready for {}: {}", backend_, error.what());
    }
  }
  // Null if none is ready.
  std::shared_ptr<Connection> take() {
    const std::lock_guard lock(mutex_);
    if (connection_ && !connection_->is_alive()) connection_.reset();
    return std::exchange(connection_, nullptr);
  }

 private:
  const std::string backend_;
  std::mutex mutex_;
  std::shared_ptr<Connection> connection_;
};

class WorkerDevice final : public OpenDevice, public Collectives {
 public:
  // |spare|, which may be null, is started when the device has closed.
  WorkerDevice(std::shared_ptr<Connection> connection, DeviceInfo info, std::shared_ptr<MemoryBudget> budget,
               std::shared_ptr<SpareWorker> spare, const TranslatingWorker& program = {})
      : connection_(std::move(connection)),
        info_(std::move(info)),
        budget_(std::move(budget)),
        spare_(std::move(spare)),
        translate_(program.translate) {}

  const DeviceInfo& info() const noexcept override { return info_; }

  std::unique_ptr<Executable> compile(const Graph& graph) override {
    const Connection::Number number = connection_->next_number();
    ByteWriter request = request_for(WorkerCommand::compile);
    request.number(number);
    if (translate_) {
      TranslatedProgram program = translate_(graph, info_);
      request.raw(program.bytes);
      connection_->call(request);
      return std::make_unique<WorkerProgram>(connection_, number, std::move(program));
    }
    request.raw(serialize(graph));
    return std::make_unique<WorkerProgram>(connection_, number, connection_->call(request));
  }

  std::unique_ptr<Buffer> allocate(const TensorType& type) override {
    std::unique_ptr<WorkerBuffer> buffer = make_buffer(type);
    if (storage_bytes(type.dtype, type.shape) <= kReservedBytes)
      connection_->notify(describe(WorkerCommand::reserve, *buffer));
    else
      connection_->call(describe(WorkerCommand::allocate, *buffer), connection_->limits().transfer);
    return buffer;
  }

  std::unique_ptr<Buffer> upload(const HostArray& array) override {
    std::unique_ptr<WorkerBuffer> buffer = make_buffer({array.dtype(), array.shape()});
    if (array.bytes() <= kMessageBytes) {
      ByteWriter note = describe(WorkerCommand::put, *buffer);
      note.raw({array.data(), array.bytes()});
      connection_->notify(note);
    } else if (is_passed(array.bytes())) {
      connection_->pass_upload(describe(WorkerCommand::pass_upload, *buffer), array);
    } else {
      connection_->upload(describe(WorkerCommand::upload, *buffer), array);
    }
    return buffer;
  }

  HostArray download(const Buffer& buffer) override {
    const auto& ours = static_cast<const WorkerBuffer&>(buffer);
    const TensorType& type = buffer.type();
    ours.was_read();
    if (!ours.copy().empty()) return HostArray::from_bytes(type.dtype, type.shape, ours.copy());
    const bool passes = is_passed(storage_bytes(type.dtype, type.shape));
    ByteWriter request = request_for(passes ? WorkerCommand::pass_download : WorkerCommand::download);
    request.number(ours.number());
    return passes ? connection_->pass_download(request, type) : connection_->download(request, type);
  }

  std::string make_group_id() override {
    const std::vector<std::byte> answer =
        connection_->call(request_for(WorkerCommand::make_group), connection_->limits().transfer);
    return ByteReader(answer).text();
  }
  std::unique_ptr<DeviceGroup> join(const std::string& id, int rank, int size) override {
    return std::make_unique<WorkerGroup>(connection_, id, rank, size);
  }

  void close() override {
    connection_->close();
    if (spare_) spare_->start();
  }
  bool is_lost() const noexcept override { return connection_->is_lost(); }
  bool abandon() noexcept override { return connection_->abandon(); }

 private:
  std::unique_ptr<WorkerBuffer> make_buffer(const TensorType& type) {
    MemoryBudget::Share share;
    if (budget_) share = budget_->reserve(storage_bytes(type.dtype, type.shape));
    return std::make_unique<WorkerBuffer>(type, connection_, connection_->next_number(), std::move(share));
  }
  bool is_passed(std::size_t bytes) const { return bytes > kSharedBytes && connection_->has_direct(); }
  static ByteWriter describe(WorkerCommand command, const WorkerBuffer& buffer) {
    ByteWriter request = request_for(command);
    request.number(buffer.number());
    write_type(request, buffer.type());
    return request;
  }

  std::shared_ptr<Connection> connection_;
  DeviceInfo info_;
  std::shared_ptr<MemoryBudget> budget_;
  std::shared_ptr<SpareWorker> spare_;
  decltype(TranslatingWorker::translate) translate_;
};

std::unique_ptr<OpenDevice> open_over(std::shared_ptr<Connection> connection, std::string_view backend, const DeviceInfo& device,
                                      const OpenOptions& options, std::shared_ptr<SpareWorker> spare) {
  ByteWriter request = request_for(WorkerCommand::open);
  request.number(kWorkerProtocol);
  request.text(backend);
  request.flag(options.fuse);
  write_device(request, device);
  const std::vector<std::byte> answer = connection->call(request, connection->limits().open);
  ByteReader in(answer);
  DeviceInfo opened = read_device(in);
  connection->set_direct(in.flag());
  connection->set_several(true);
  // Keeps the fields that only the manager knows.
  DeviceInfo info = device;
  info.name = opened.name;
  info.memory_total_bytes = opened.memory_total_bytes;
  info.details = opened.details;
  return std::make_unique<WorkerDevice>(std::move(connection), std::move(info), options.budget, std::move(spare));
}

class IsolatedBackend final : public Backend, public ExchangingBackend, public CollectiveBackend {
 public:
  IsolatedBackend(std::unique_ptr<Backend> backend, bool needs_worker)
      : backend_(std::move(backend)),
        needs_worker_(needs_worker),
        spare_(dynamic_cast<Preloadable*>(backend_.get()) ? std::make_shared<SpareWorker>(std::string(backend_->name()))
                                                          : nullptr) {}

  std::string_view name() const noexcept override { return backend_->name(); }
  std::vector<DeviceInfo> devices() override { return backend_->devices(); }
  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) override {
    if (!needs_worker_ && (is_used_here(device) || !has_worker_program())) return backend_->open(device, options);
    std::shared_ptr<Connection> connection = spare_ ? spare_->take() : nullptr;
    if (connection)
      connection->name_device(device.id);
    else
      connection = std::make_shared<Connection>(device.id, WorkerOptions());
    return open_over(std::move(connection), backend_->name(), device, options, spare_);
  }
  void check(const DeviceInfo& device, const Graph& graph) const override { backend_->check(device, graph); }
  void recover(const DeviceInfo& device) override { backend_->recover(device); }
  Latency latency(const DeviceInfo& device) const override { return backend_->latency(device); }

  // This process keeps such a card until it ends, whatever Tenon does. In it, memory can be exchanged without a copy.
  bool is_used_here(const DeviceInfo& device) const override {
    const auto* const able = dynamic_cast<const ExchangingBackend*>(backend_.get());
    return able && able->is_used_here(device);
  }
  bool is_at(const DeviceInfo& device, const dlpack::Device& place) const override {
    const auto* const able = dynamic_cast<const ExchangingBackend*>(backend_.get());
    return able && !needs_worker_ && able->is_at(device, place);
  }

  // Loaded into the workers for use, and into this process to be asked about.
  std::string_view collective_library() const noexcept override {
    const auto* const able = dynamic_cast<const CollectiveBackend*>(backend_.get());
    return able ? able->collective_library() : "";
  }
  std::string collective_version() const override {
    const auto* const able = dynamic_cast<const CollectiveBackend*>(backend_.get());
    return able ? able->collective_version() : "";
  }

 private:
  bool has_worker_program() const {
    try {
      worker_program();
      return true;
    } catch (const Error& error) {
      static std::once_flag once;
      std::call_once(once, [&] {
        logging::warn("{} runs in this process, where it may keep its device after closing, or hang: {}", backend_->name(),
                      error.what());
      });
      return false;
    }
  }

  std::unique_ptr<Backend> backend_;
  bool needs_worker_;
  std::shared_ptr<SpareWorker> spare_;
};

}  // namespace

std::string worker_program() { return worker_file("tenon-worker", "TENON_WORKER"); }

std::string worker_file(const char* name, const char* variable) {
  if (const char* named = std::getenv(variable); named && *named) {
    if (access(named, X_OK) == 0) return named;
    throw Error(ErrorCode::unavailable, fmt::format("{} is {}, which is not executable", variable, named));
  }
  std::string tried;
  for (const std::string& folder : own_folders())
    for (const std::string& place : {folder, folder + "/../libexec/tenon", folder + "/../../libexec/tenon"}) {
      std::string file = fmt::format("{}/{}", place, name);
      if (access(file.c_str(), X_OK) == 0) return file;
      tried += (tried.empty() ? "" : ", ") + place;
    }
  throw Error(ErrorCode::unavailable, fmt::format("{} does not exist in {}", name, tried),
              fmt::format("install it with Tenon, or set {} to its path", variable));
}

std::unique_ptr<OpenDevice> open_in_worker(const TranslatingWorker& program, const DeviceInfo& device, const OpenOptions& options,
                                           const WorkerOptions& worker) {
  const auto connection = std::make_shared<Connection>(device.id, worker, program.command);
  ByteWriter request = request_for(WorkerCommand::open);
  request.number(kWorkerProtocol);
  request.text(device.id);
  const std::vector<std::byte> answer = connection->call(request, connection->limits().open);
  ByteReader in(answer);
  DeviceInfo info = device;
  info.name = in.text();
  if (const std::uint64_t bytes = in.number(); bytes != 0) info.memory_total_bytes = bytes;
  for (std::uint64_t count = in.below(in.left() + 1, "more details than bytes"); count > 0; --count) {
    const std::string key = in.text();
    info.details[key] = in.text();
  }
  in.finish();
  return std::make_unique<WorkerDevice>(connection, std::move(info), options.budget, nullptr, program);
}

std::unique_ptr<OpenDevice> open_in_worker(std::string_view backend, const DeviceInfo& device, const OpenOptions& options,
                                           const WorkerOptions& worker) {
  return open_over(std::make_shared<Connection>(device.id, worker), backend, device, options, nullptr);
}

std::unique_ptr<Backend> isolate(std::unique_ptr<Backend> backend) {
  return std::make_unique<IsolatedBackend>(std::move(backend), true);
}

std::unique_ptr<Backend> isolate_if_possible(std::unique_ptr<Backend> backend) {
  return std::make_unique<IsolatedBackend>(std::move(backend), false);
}

}  // namespace tenon
