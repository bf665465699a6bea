#include "hal/worker/channel.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/stream_copy.h"
#include "base/threads/thread_pool.h"

namespace tenon {
namespace {

// Well below the limit of a socket for one message.
constexpr std::size_t kInlineBytes = 32 * 1024;
enum class Form : std::uint8_t { inside, in_memory };

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kPolling(60);

// Two processes that poll on few cores would only take them from each other.
bool polling_pays() {
  static const bool answer = usable_cores() >= 4;
  return answer;
}

// Whether a system call on the socket is to be repeated.
bool is_to_repeat(ssize_t result, const WorkerChannel::Patience& patience) {
  if (result >= 0) return false;
  if (errno == EINTR) return true;
  return (errno == EAGAIN || errno == EWOULDBLOCK) && (!patience || patience());
}

bool send_once(int socket, std::uint8_t form, std::span<const std::byte> bytes, int fd,
               const WorkerChannel::Patience& patience) noexcept {
  iovec parts[2] = {{&form, 1}, {const_cast<std::byte*>(bytes.data()), bytes.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  ssize_t sent;
  do sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  while (is_to_repeat(sent, patience));
  return sent >= 0;
}

// The first descriptor that came along. A message has one at most; further ones are closed, or they would stay open for good.
FileDescriptor taken_descriptor(msghdr& message) {
  FileDescriptor first;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      FileDescriptor taken(fd);
      if (!first) first = std::move(taken);
    }
  }
  return first;
}

void write_texts(ByteWriter& out, const std::vector<std::string>& texts) {
  out.number(texts.size());
  for (const std::string& text : texts) out.text(text);
}
std::vector<std::string> read_texts(ByteReader& in) {
  std::vector<std::string> texts;
  for (std::uint64_t count = in.below(in.left() + 1, "more strings than bytes"); count > 0; --count) texts.push_back(in.text());
  return texts;
}
void write_optional(ByteWriter& out, const std::optional<std::uint64_t>& value) {
  out.flag(value.has_value());
  if (value) out.number(*value);
}
std::optional<std::uint64_t> read_optional(ByteReader& in) {
  return in.flag() ? std::optional<std::uint64_t>(in.number()) : std::nullopt;
}

constexpr std::string DeviceInfo::* kTexts[] = {&DeviceInfo::id,
                                                &DeviceInfo::same_as,
                                                &DeviceInfo::name,
                                                &DeviceInfo::vendor,
                                                &DeviceInfo::architecture,
                                                &DeviceInfo::pci_address,
                                                &DeviceInfo::uuid,
                                                &DeviceInfo::serial,
                                                &DeviceInfo::compute_capability,
                                                &DeviceInfo::driver_version,
                                                &DeviceInfo::runtime_version,
                                                &DeviceInfo::firmware_version};
constexpr bool DeviceInfo::* kFlags[] = {&DeviceInfo::available, &DeviceInfo::supports_mixed_precision,
                                         &DeviceInfo::supports_distributed, &DeviceInfo::exclusive,
                                         &DeviceInfo::memory_is_nominal};

}  // namespace

SharedMemory SharedMemory::create(std::size_t bytes) {
  FileDescriptor fd(memfd_create("tenon", MFD_CLOEXEC));
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    throw Error(ErrorCode::resource_exhausted,
                fmt::format("cannot allocate {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  return map(std::move(fd), bytes);
}

SharedMemory SharedMemory::map(FileDescriptor fd, std::size_t bytes) {
  // Reading past the end of the file would kill the process (SIGBUS).
  struct stat about{};
  if (bytes == 0 || fstat(fd.get(), &about) != 0 || static_cast<std::uint64_t>(about.st_size) < bytes)
    throw Error(ErrorCode::invalid_argument, "the shared memory is smaller than announced");
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED)
    throw Error(ErrorCode::resource_exhausted,
                fmt::format("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  SharedMemory memory;
  memory.fd_ = std::move(fd);
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  return memory;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}
SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}
SharedMemory::~SharedMemory() {
  if (data_) munmap(data_, bytes_);
}

void WorkerChannel::set_interval() const noexcept {
  const timeval interval{0, std::chrono::microseconds(kInterval).count()};
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &interval, sizeof interval);
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &interval, sizeof interval);
}

bool WorkerChannel::send(std::span<const std::byte> bytes, int fd, const Patience& patience) noexcept {
  if (bytes.size() <= kInlineBytes) return send_once(socket_.get(), static_cast<std::uint8_t>(Form::inside), bytes, fd, patience);
  try {
    const SharedMemory memory = SharedMemory::create(bytes.size());
    std::memcpy(memory.data(), bytes.data(), bytes.size());
    const std::uint64_t size = bytes.size();
    return send_once(socket_.get(), static_cast<std::uint8_t>(Form::in_memory), std::as_bytes(std::span(&size, 1)), memory.fd(),
                     patience);
  } catch (const Error&) {
    return false;
  }
}

std::optional<WorkerChannel::Message> WorkerChannel::receive(const Patience& patience) {
  if (!received_) received_ = std::make_unique_for_overwrite<std::byte[]>(kInlineBytes + 1);
  std::byte* const buffer = received_.get();
  iovec part{buffer, kInlineBytes + 1};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t size = -1;
  const auto take = [&](int flags) {
    header.msg_controllen = sizeof control;
    size = recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC | flags);
    return size >= 0 || (errno != EAGAIN && errno != EINTR);
  };
  bool is_taken = false;
  if (polling_pays())
    for (const auto end = Clock::now() + kPolling; !is_taken && Clock::now() < end; pause_cpu()) is_taken = take(MSG_DONTWAIT);
  while (!is_taken) {
    is_taken = take(0);
    if (!is_taken && !is_to_repeat(size, patience)) break;
  }
  if (size <= 0) return std::nullopt;
  Message message;
  message.fd = taken_descriptor(header);
  const auto form = static_cast<Form>(buffer[0]);
  message.bytes.assign(buffer + 1, buffer + size);
  if (form == Form::inside) return message;
  std::uint64_t bytes = 0;
  if (message.bytes.size() != sizeof bytes) return std::nullopt;
  std::memcpy(&bytes, message.bytes.data(), sizeof bytes);
  const SharedMemory memory = SharedMemory::map(std::move(message.fd), bytes);
  message.bytes.assign(memory.data(), memory.data() + memory.bytes());
  return message;
}

void WorkerChannel::shut() noexcept { shutdown(socket_.get(), SHUT_RDWR); }

std::optional<std::string> read_note(std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes[0] != std::byte{kWorkerNote}) return std::nullopt;
  ByteReader in(bytes.subspan(1));
  return in.text();
}

WorkerReply read_reply(std::vector<std::byte> bytes) {
  ByteReader in(bytes);
  WorkerReply reply;
  if (in.flag()) {
    bytes.erase(bytes.begin());
    reply.result = std::move(bytes);
    return reply;
  }
  const auto code = static_cast<ErrorCode>(in.byte());
  const std::string text = in.text(), hint = in.text();
  reply.is_lost = in.flag();
  reply.failure.emplace(code, text, hint);
  return reply;
}

void write_type(ByteWriter& out, const TensorType& type) {
  out.byte(static_cast<std::uint8_t>(type.dtype));
  write_shape(out, type.shape);
}
TensorType read_type(ByteReader& in) {
  const DType dtype = read_dtype(in);
  return {dtype, read_shape(in)};
}

void write_device(ByteWriter& out, const DeviceInfo& device) {
  out.byte(static_cast<std::uint8_t>(device.kind));
  for (const auto text : kTexts) out.text(device.*text);
  for (const auto flag : kFlags) out.flag(device.*flag);
  write_texts(out, device.backends);
  write_texts(out, device.aliases);
  write_optional(out, device.memory_total_bytes);
  write_optional(out, device.memory_free_bytes);
  out.flag(device.numa_node.has_value());
  if (device.numa_node) out.integer(*device.numa_node);
  out.number(device.runtimes.size());
  for (const RuntimeInfo& runtime : device.runtimes) write_texts(out, {runtime.backend, runtime.library, runtime.vendor});
  out.number(device.details.size());
  for (const auto& [key, value] : device.details) write_texts(out, {key, value});
}

DeviceInfo read_device(ByteReader& in) {
  DeviceInfo device;
  device.kind = static_cast<DeviceKind>(in.below(static_cast<std::uint64_t>(DeviceKind::other) + 1, "a kind of device"));
  for (const auto text : kTexts) device.*text = in.text();
  for (const auto flag : kFlags) device.*flag = in.flag();
  device.backends = read_texts(in);
  device.aliases = read_texts(in);
  device.memory_total_bytes = read_optional(in);
  device.memory_free_bytes = read_optional(in);
  if (in.flag()) device.numa_node = static_cast<int>(in.integer());
  for (std::uint64_t count = in.below(in.left() + 1, "more runtimes than bytes"); count > 0; --count) {
    const std::vector<std::string> texts = read_texts(in);
    if (texts.size() != 3) ByteReader::fail("a runtime");
    device.runtimes.push_back({texts[0], texts[1], texts[2]});
  }
  for (std::uint64_t count = in.below(in.left() + 1, "more details than bytes"); count > 0; --count) {
    const std::vector<std::string> texts = read_texts(in);
    if (texts.size() != 2) ByteReader::fail("a detail");
    device.details[texts[0]] = texts[1];
  }
  return device;
}

}  // namespace tenon
