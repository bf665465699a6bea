// Communication between a worker and its parent: messages over a socket, and shared memory.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/system/file_descriptor.h"
#include "graph/encode/serialize.h"
#include "tenon/backend.h"
#include "tenon/error.h"

namespace tenon {

// Requests of the parent.
enum class WorkerCommand : std::uint8_t {
  open,           // backend, options, device -> the opened device, whether it has direct transfers
  compile,        // program number, graph -> input types, output types
  allocate,       // buffer number, type ->
  upload,         // buffer number, type; the bytes are in the shared memory ->
  download,       // buffer number -> ; the bytes are in the shared memory
  pass_upload,    // buffer number, type; the bytes pass through the window ->
  pass_download,  // buffer number; the bytes pass through the window ->
  run,            // whether to answer with small outputs, program number, input numbers, output numbers -> outputs
  close,          // -> ; the worker ends
  // Not answered. The failure of a buffer is reported when it is used.
  preload,  // backend
  share,    // bytes; carries the descriptor of new shared memory, which replaces the old one
  window,   // bytes; carries the descriptor of the transfer window
  put,      // buffer number, type, bytes: a small upload
  reserve,  // buffer number, type: a small allocation
  drop_buffer,
  drop_program,
  leave_group,
  several,  // messages, each after its size; only the last one may be one that is answered
  // Answered: those of devices that exchange with others (hal/collectives.h).
  make_group,        // -> its id
  join_group,        // group number, id, rank, size ->
  start_exchange,    // group number, calls ->
  is_exchange_done,  // group number -> whether it is
};
constexpr bool is_answered(WorkerCommand command) { return command <= WorkerCommand::close || command > WorkerCommand::several; }
inline constexpr std::uint64_t kWorkerProtocol = 3;
// Tensors of up to this size travel in the messages themselves; larger ones of up to kSharedBytes through shared memory.
inline constexpr std::size_t kMessageBytes = 16 << 10, kSharedBytes = 64 << 10;
// Buffers of up to this size are allocated without waiting for the answer: the cache of a text has dozens of them at each step.
inline constexpr std::size_t kReservedBytes = 256 << 10;
// Messages that are not answered wait for one that is, up to so many bytes of messages, or of memory that they free.
inline constexpr std::size_t kWaitingBytes = 16 << 10, kWaitingMemory = std::size_t{1} << 20;
inline constexpr int kWorkerSocket = 3;
// Tells the worker to stop the request whose number, counted from 1 on both sides, is the signal's value.
inline constexpr int kStopSignal = SIGUSR1;

// Anonymous memory that another process maps by its descriptor; freed when neither process uses it any more.
class SharedMemory {
 public:
  SharedMemory() = default;
  // Throws resource_exhausted.
  static SharedMemory create(std::size_t bytes);
  static SharedMemory map(FileDescriptor fd, std::size_t bytes);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  int fd() const noexcept { return fd_.get(); }

 private:
  FileDescriptor fd_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class WorkerChannel {
 public:
  struct Message {
    std::vector<std::byte> bytes;
    FileDescriptor fd;  // the descriptor sent with the message, if any
  };

  explicit WorkerChannel(FileDescriptor socket) : socket_(std::move(socket)) {}

  // Whether to go on waiting; called at each |kInterval| of a wait.
  using Patience = std::function<bool()>;
  static constexpr std::chrono::milliseconds kInterval{50};
  // Makes waits end at each kInterval, for Patience to decide.
  void set_interval() const noexcept;

  // False if the other side is gone or patience has ended. A message too large for the socket goes through separate shared
  // memory.
  bool send(std::span<const std::byte> bytes, int fd = -1, const Patience& patience = {}) noexcept;
  // Waits for a message; nullopt if the other side is gone or patience has ended. Polls for a short time first, because sleeping
  // and being woken takes longer than most answers. Throws invalid_argument for a damaged message.
  std::optional<Message> receive(const Patience& patience = {});

  int fd() const noexcept { return socket_.get(); }
  // Ends the communication.
  void shut() noexcept;

 private:
  FileDescriptor socket_;
  std::unique_ptr<std::byte[]> received_;
};

// Before its answer to a request a worker may say what it is doing: this byte, and a text.
inline constexpr std::uint8_t kWorkerNote = 2;
std::optional<std::string> read_note(std::span<const std::byte> bytes);

// An answer of the worker, but for what a command returns: that follows in |result|.
struct WorkerReply {
  std::optional<Error> failure;
  bool is_lost = false;  // the device, with the failure
  std::vector<std::byte> result;
};
// Throws invalid_argument for what no worker sends.
WorkerReply read_reply(std::vector<std::byte> bytes);

void write_type(ByteWriter& out, const TensorType& type);
TensorType read_type(ByteReader& in);
void write_device(ByteWriter& out, const DeviceInfo& device);
DeviceInfo read_device(ByteReader& in);

}  // namespace tenon
