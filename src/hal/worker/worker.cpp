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

#include "hal/worker/channel.h"
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

  pid_t pid() const noexcept { return pid_; }

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
  for (const auto& [key, value] : more) all.push_back(key + "=" + value);
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

ChildProcess spawn(const std::string& program, int socket, std::map<std::string, std::string> more) {
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

  std::string name = program;
  char* arguments[] = {name.data(), nullptr};
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &settings.actions, &settings.attributes, arguments, entries.data());
  if (error != 0)
    throw Error(ErrorCode::unavailable, fmt::format("cannot start the worker program {}: {}", program, std::strerror(error)));
  return ChildProcess(pid);
}

// --- The connection: one worker, its socket, the memory shared with it ---
class Connection {
 public:
  Connection(std::string device, const std::map<std::string, std::string>& environment)
      : Connection(std::move(device), environment, socket_pair()) {}
  ~Connection() {
    channel_.shut();
    child_.end(kGraceMilliseconds);
  }

  using Number = std::uint64_t;
  Number next_number() noexcept { return numbers_.fetch_add(1, std::memory_order_relaxed); }
  bool is_lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

  // Sends a request and waits for the answer. Throws the worker's error, or unavailable if the worker is gone.
  std::vector<std::byte> call(const ByteWriter& request) {
    const std::lock_guard lock(mutex_);
    return exchange(request);
  }

  void upload(const ByteWriter& request, const HostArray& array) {
    const std::lock_guard lock(mutex_);
    share(array.bytes());
    if (array.bytes() != 0) std::memcpy(memory_.data(), array.data(), array.bytes());
    exchange(request);
    trim();
  }

  HostArray download(const ByteWriter& request, const TensorType& type) {
    HostArray array = HostArray::empty(type.dtype, type.shape);
    const std::lock_guard lock(mutex_);
    share(array.bytes());
    exchange(request);
    if (array.bytes() != 0) std::memcpy(array.mutable_data(), memory_.data(), array.bytes());
    trim();
    return array;
  }

  // Sends a message without an answer.
  void tell(WorkerCommand command, Number number) noexcept {
    ByteWriter note;
    note.byte(static_cast<std::uint8_t>(command));
    note.number(number);
    const std::lock_guard lock(mutex_);
    if (!is_closed_ && !is_lost()) channel_.send(note.bytes());
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
    if (!is_lost()) exchange(request);
  }

 private:
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
  Connection(std::string device, const std::map<std::string, std::string>& environment, Sockets sockets)
      : device_(std::move(device)),
        child_(spawn(worker_program(), sockets.theirs.get(), environment)),
        channel_(std::move(sockets.ours)) {}

  std::vector<std::byte> exchange(const ByteWriter& request) {
    if (is_closed_) throw Error(ErrorCode::failed_precondition, fmt::format("{} is closed", device_));
    if (is_lost()) throw lost_error();
    if (!channel_.send(request.bytes())) lose();
    auto message = channel_.receive();
    if (!message) lose();
    WorkerReply reply = read_reply(std::move(message->bytes));
    if (!reply.failure) return std::move(reply.result);
    if (reply.is_lost) {
      lost_.store(true, std::memory_order_relaxed);
      why_ = reply.failure->what();
    }
    throw Error(*reply.failure);
  }

  [[noreturn]] void lose() {
    why_ = fmt::format("its worker process {}", child_.end(kGraceMilliseconds));
    lost_.store(true, std::memory_order_relaxed);
    throw lost_error();
  }
  Error lost_error() const {
    return {ErrorCode::unavailable, fmt::format("{} is lost: {}", device_, why_), "open the device again"};
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
    if (!channel_.send(note.bytes(), memory_.fd())) lose();
  }

  const std::string device_;
  std::mutex mutex_;
  ChildProcess child_;
  WorkerChannel channel_;
  SharedMemory memory_;
  bool is_closed_ = false;
  std::string why_;
  std::atomic<bool> lost_{false};
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
  ~WorkerBuffer() override { connection_->tell(WorkerCommand::drop_buffer, number_); }

  Connection::Number number() const { return number_; }

 private:
  std::shared_ptr<Connection> connection_;
  Connection::Number number_;
  MemoryBudget::Share share_;
};

class WorkerProgram final : public Executable {
 public:
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

  using Executable::run;
  void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override {
    ByteWriter request = request_for(WorkerCommand::run);
    request.number(number_);
    request.number(inputs.size());
    for (const Buffer* input : inputs) request.number(static_cast<const WorkerBuffer*>(input)->number());
    request.number(outputs.size());
    for (const Buffer* output : outputs) request.number(static_cast<const WorkerBuffer*>(output)->number());
    connection_->call(request);
  }

 private:
  std::shared_ptr<Connection> connection_;
  Connection::Number number_;
  std::vector<TensorType> input_types_, output_types_;
};

class WorkerDevice final : public OpenDevice {
 public:
  WorkerDevice(std::shared_ptr<Connection> connection, DeviceInfo info, std::shared_ptr<MemoryBudget> budget)
      : connection_(std::move(connection)),
        info_(std::move(info)),
        budget_(std::move(budget)) {}

  const DeviceInfo& info() const noexcept override { return info_; }

  std::unique_ptr<Executable> compile(const Graph& graph) override {
    const Connection::Number number = connection_->next_number();
    ByteWriter request = request_for(WorkerCommand::compile);
    request.number(number);
    request.raw(serialize(graph));
    return std::make_unique<WorkerProgram>(connection_, number, connection_->call(request));
  }

  std::unique_ptr<Buffer> allocate(const TensorType& type) override {
    std::unique_ptr<WorkerBuffer> buffer = make_buffer(type);
    connection_->call(describe(WorkerCommand::allocate, *buffer));
    return buffer;
  }

  std::unique_ptr<Buffer> upload(const HostArray& array) override {
    std::unique_ptr<WorkerBuffer> buffer = make_buffer({array.dtype(), array.shape()});
    connection_->upload(describe(WorkerCommand::upload, *buffer), array);
    return buffer;
  }

  HostArray download(const Buffer& buffer) override {
    ByteWriter request = request_for(WorkerCommand::download);
    request.number(static_cast<const WorkerBuffer&>(buffer).number());
    return connection_->download(request, buffer.type());
  }

  void close() override { connection_->close(); }
  bool is_lost() const noexcept override { return connection_->is_lost(); }

 private:
  std::unique_ptr<WorkerBuffer> make_buffer(const TensorType& type) {
    MemoryBudget::Share share;
    if (budget_) share = budget_->reserve(storage_bytes(type.dtype, type.shape));
    return std::make_unique<WorkerBuffer>(type, connection_, connection_->next_number(), std::move(share));
  }
  static ByteWriter describe(WorkerCommand command, const WorkerBuffer& buffer) {
    ByteWriter request = request_for(command);
    request.number(buffer.number());
    write_type(request, buffer.type());
    return request;
  }

  std::shared_ptr<Connection> connection_;
  DeviceInfo info_;
  std::shared_ptr<MemoryBudget> budget_;
};

class IsolatedBackend final : public Backend {
 public:
  explicit IsolatedBackend(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  std::string_view name() const noexcept override { return backend_->name(); }
  std::vector<DeviceInfo> devices() override { return backend_->devices(); }
  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) override {
    return open_in_worker(backend_->name(), device, options);
  }
  void check(const DeviceInfo& device, const Graph& graph) const override { backend_->check(device, graph); }
  void recover(const DeviceInfo& device) override { backend_->recover(device); }
  Latency latency(const DeviceInfo& device) const override { return backend_->latency(device); }

 private:
  std::unique_ptr<Backend> backend_;
};

}  // namespace

std::string worker_program() {
  constexpr const char* kName = "tenon-worker";
  if (const char* named = std::getenv("TENON_WORKER"); named && *named) {
    if (access(named, X_OK) == 0) return named;
    throw Error(ErrorCode::unavailable, fmt::format("TENON_WORKER is {}, which is not executable", named));
  }
  std::string tried;
  for (const std::string& folder : own_folders())
    for (const std::string& place : {folder, folder + "/../libexec/tenon", folder + "/../../libexec/tenon"}) {
      std::string file = fmt::format("{}/{}", place, kName);
      if (access(file.c_str(), X_OK) == 0) return file;
      tried += (tried.empty() ? "" : ", ") + place;
    }
  throw Error(ErrorCode::unavailable, fmt::format("{} does not exist in {}", kName, tried),
              "install it with Tenon, or set TENON_WORKER to its path");
}

std::unique_ptr<OpenDevice> open_in_worker(std::string_view backend, const DeviceInfo& device, const OpenOptions& options,
                                           const WorkerOptions& worker) {
  auto connection = std::make_shared<Connection>(device.id, worker.environment);
  ByteWriter request = request_for(WorkerCommand::open);
  request.number(kWorkerProtocol);
  request.text(backend);
  request.flag(options.fuse);
  write_device(request, device);
  const std::vector<std::byte> answer = connection->call(request);
  ByteReader in(answer);
  DeviceInfo opened = read_device(in);
  // Keeps the fields that only the manager knows.
  DeviceInfo info = device;
  info.name = opened.name;
  info.memory_total_bytes = opened.memory_total_bytes;
  info.details = opened.details;
  return std::make_unique<WorkerDevice>(std::move(connection), std::move(info), options.budget);
}

std::unique_ptr<Backend> isolate(std::unique_ptr<Backend> backend) {
  return std::make_unique<IsolatedBackend>(std::move(backend));
}

}  // namespace tenon
