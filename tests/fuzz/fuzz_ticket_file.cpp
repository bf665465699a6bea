// A queue file that somebody else wrote: its header, the record of a holder, and a header changed while the device is held.
//
// A case: 32 bytes of header, 256 bytes of a record, 32 bytes of header; what is missing is left out.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "fuzz/fuzzer.h"
#include "lease/turnstile/queue_text.h"
#include "lease/turnstile/run_directory.h"
#include "lease/turnstile/turnstile.h"
#include "temporary_folder.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::size_t kHeader = sizeof(TicketFile::Header), kRecord = sizeof(TicketFile::Record);

struct Machine {
  test::TemporaryFolder folder;
  RunDirectory directory = RunDirectory::at(folder.path().string());
  Turnstile turnstile{directory, "sim:0"};
  FileDescriptor file;

  Machine() {
    turnstile.enter().give_back();
    file = directory.open_file(directory.files("").at(0));
  }
  void write(fuzz::Bytes bytes) const {
    if (bytes.empty()) return;
    if (pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("cannot write the file");
  }
};

Machine& machine() {
  static Machine made;
  return made;
}

void look(const Turnstile& turnstile) {
  const Turnstile::Queue queue = turnstile.queue();
  for (const Turnstile::Position& place : queue.places) {
    const double seconds = seconds_since(place);
    fuzz::require(seconds >= 0 && std::isfinite(seconds), "a place that has waited for a negative time");
    for (const char c : who(place) + waiting_sentence(queue, place.ticket))
      fuzz::require(static_cast<unsigned char>(c) >= ' ', "a control character in what is printed");
  }
}

void hold(TicketKind kind, fuzz::Bytes record_bytes, fuzz::Bytes header_bytes) {
  const Turnstile& turnstile = machine().turnstile;
  Turnstile::Pass pass = turnstile.enter({.kind = kind, .timeout = std::chrono::nanoseconds(0)});
  fuzz::require(pass.epoch() > 0, "a grant without an epoch");
  TicketFile::Record record{};
  if (!record_bytes.empty()) std::memcpy(&record, record_bytes.data(), record_bytes.size());
  record.ticket = pass.epoch();
  record.kind = kind;
  TicketFile(machine().directory.open_file(machine().directory.files("").at(0))).write_record(record);
  look(turnstile);
  fuzz::require(!pass.has_waiters(), "somebody waits who is not there");
  if (!header_bytes.empty()) machine().write(header_bytes);
  pass.give_back();
}

void parse(fuzz::Bytes bytes) {
  const auto take = [&](std::size_t count) {
    const fuzz::Bytes taken = bytes.first(std::min(count, bytes.size()));
    bytes = bytes.subspan(taken.size());
    return taken;
  };
  const fuzz::Bytes header = take(kHeader), record = take(kRecord), later = take(kHeader);
  if (ftruncate(machine().file.get(), 0) != 0) throw std::runtime_error("cannot empty the file");
  machine().write(header);
  look(machine().turnstile);
  for (const TicketKind kind : {TicketKind::exclusive, TicketKind::shared}) hold(kind, record, later);
}

std::string words(std::initializer_list<std::uint64_t> values) {
  std::string out;
  for (const std::uint64_t value : values) out.append(reinterpret_cast<const char*>(&value), sizeof value);
  return out;
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "ticket_file"};
  constexpr std::uint64_t kMagic = 0x3130516e6f6e6554, kLast = (std::uint64_t{1} << 61) - 1;
  TicketFile::Record record{.arrived_unix_ns = 1'793'534'400'000'000'000, .pid = 42, .uid = 1000};
  std::strcpy(record.boot_id, "b1946ac9-2f3c-4d7e-9f2d-2d1f1c3b5a6e");
  std::strcpy(record.command, "train.py --epochs 3");
  std::string record_text(reinterpret_cast<const char*>(&record), sizeof record);
  target.seeds = {"", words({kMagic, 7, 0, 0}), words({kMagic, 4096, 4095, 3}) + record_text,
                  words({kMagic, 9, 0, 2}) + record_text + words({kMagic, 1, 5, 0}), words({kMagic, kLast, 0, 0}) + record_text};
  target.words = {words({kMagic}),
                  words({0}),
                  words({1}),
                  words({kLast}),
                  words({kLast + 1}),
                  words({~std::uint64_t{0}}),
                  words({std::uint64_t{1} << 63}),
                  "\x1b[2J",
                  "\n"};
  target.repair = [](std::string& text) {
    if (text.size() >= 8) text.replace(0, 8, words({kMagic}));
  };
  target.parse = parse;
  target.bound = [](std::size_t) { return std::uint64_t{1} << 18; };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
