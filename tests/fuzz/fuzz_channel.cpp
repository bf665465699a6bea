// Messages between a worker and its parent. The first byte of a case says which descriptors come along; the rest is what is sent.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "fuzz/fuzzer.h"
#include "hal/worker/channel.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::size_t kSharedBytes = 4096;

struct Ends {
  FileDescriptor sender;
  WorkerChannel receiver;
  FileDescriptor memory;
};

Ends& ends() {
  static Ends made = [] {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) throw std::runtime_error("no socket");
    FileDescriptor memory(memfd_create("fuzz", MFD_CLOEXEC));
    if (ftruncate(memory.get(), kSharedBytes) != 0) throw std::runtime_error("no memory");
    return Ends{FileDescriptor(pair[0]), WorkerChannel(FileDescriptor(pair[1])), std::move(memory)};
  }();
  return made;
}

void send_with(std::span<const std::byte> bytes, std::size_t descriptors) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  constexpr std::size_t kMost = 4;
  alignas(cmsghdr) char control[CMSG_SPACE(kMost * sizeof(int))] = {};
  if (descriptors > 0) {
    int fds[kMost];
    for (int& fd : fds) fd = ends().memory.get();
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds, descriptors * sizeof(int));
  }
  fuzz::require(sendmsg(ends().sender.get(), &message, MSG_NOSIGNAL) >= 0, "the message cannot be sent");
}

// New descriptors have the lowest free numbers, so those left open are soon among these.
int open_descriptors() {
  int open = 0;
  for (int fd = 0; fd < 64; ++fd) open += fcntl(fd, F_GETFD) != -1;
  return open;
}

// What either side makes of a message.
void read_all(std::span<const std::byte> bytes) {
  std::size_t refused = 0;
  const auto attempt = [&](auto read) {
    try {
      ByteReader in(bytes);
      read(in);
    } catch (const Error&) {
      ++refused;
    }
  };
  attempt([](ByteReader& in) { (void)read_device(in); });
  attempt([](ByteReader& in) {
    const TensorType type = read_type(in);
    fuzz::require(type.shape.elements() >= 0, "a type with a negative extent");
  });
  attempt([&](ByteReader&) { (void)read_reply({bytes.begin(), bytes.end()}); });
  attempt([](ByteReader& in) { (void)deserialize(in.raw(in.left())); });
  if (refused == 4) ByteReader::fail("nothing that is sent");
}

void parse(fuzz::Bytes bytes) {
  if (bytes.size() < 2) throw Error(ErrorCode::invalid_argument, "there is no message");
  WorkerChannel& receiver = ends().receiver;
  const int before = open_descriptors();
  send_with(bytes.subspan(1, std::min<std::size_t>(bytes.size() - 1, 60000)), static_cast<std::size_t>(bytes[0]) % 5);
  {
    const std::optional<WorkerChannel::Message> message = receiver.receive();
    fuzz::require(open_descriptors() <= before + 1, "more than one descriptor came along");
    if (!message) throw Error(ErrorCode::invalid_argument, "the channel takes this for its end");
    read_all(message->bytes);
  }
  fuzz::require(open_descriptors() == before, "a descriptor was left open");
}

std::string message(char descriptors, char form, std::span<const std::byte> bytes) {
  return std::string{descriptors, form}.append(fuzz::text_of(bytes));
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "channel"};
  ByteWriter device, type, failure;
  write_device(device, {.id = "sim:0", .name = "Card", .backends = {"sim"}, .details = {{"a", "b"}}});
  write_type(type, {DType::f32, {2, 3}});
  failure.flag(false);
  failure.byte(static_cast<std::uint8_t>(ErrorCode::unavailable));
  failure.text("it is gone");
  failure.text("open it again");
  failure.flag(true);
  for (const ByteWriter* writer : {&device, &type, &failure})
    for (const char descriptors : {'\0', '\1'}) target.seeds.push_back(message(descriptors, 0, writer->bytes()));
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{kSharedBytes}, std::uint64_t{kSharedBytes + 1}})
    target.seeds.push_back(message(1, 1, std::as_bytes(std::span(&size, 1))));
  target.words = {std::string(1, '\0'), "\x01", "\x02", "\x7f", "\xff\xff\xff\xff\x0f", "sim:0", "\x05hello"};
  target.dense = {std::string(2, '\0') + std::string(60000, '\1')};
  target.parse = parse;
  // The buffer of a message, the shared memory, and what the readers make of it.
  target.bound = [](std::size_t bytes) { return 256 * bytes + (5 << 15); };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
