#include "mesh/exchange/mpi_exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "mesh/exchange/watchdog.h"
#include "tenon/error.h"

namespace tenon::mesh {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// One call of MPI counts in int: larger messages are sent in pieces.
constexpr std::size_t kPiece = std::size_t{1} << 30;
constexpr std::size_t kName = 256;
// What a process says to the others in its turn, and how often within a deadline.
constexpr std::int32_t kBusy = 0, kDone = 1;
constexpr int kBeats = 4;
constexpr int kTags = 8192;  // in use at a time: an exchange is over before its tag comes again

int mark_tag(int sequence) { return sequence % kTags; }
int data_tag(int sequence) { return kTags + sequence % kTags; }

}  // namespace

// Memory that MPI reads or writes until the requests of an exchange are done.
struct MpiExchange::InFlight {
  std::vector<std::int32_t> words;
  std::vector<std::array<char, kName>> texts;
  std::vector<HostArray> arrays;
};

MpiExchange::MpiExchange(MpiLibrary& mpi, const Mesh& mesh, std::chrono::nanoseconds deadline,
                         std::chrono::nanoseconds start_deadline, std::stop_token cancel, const std::string& name)
    : mpi_(mpi),
      mesh_(mesh),
      deadline_(start_deadline),
      cancel_(std::move(cancel)),
      names_(index(mpi.size())) {
  for (std::size_t i = 0; i < names_.size(); ++i) names_[i] = fmt::format("rank {}", i);
  names_ = gather(name);
  make_groups();
  deadline_ = deadline;
}

MpiExchange::~MpiExchange() { take_off(); }

// Begins an exchange. If the last one has failed, MPI may still use its memory, which is therefore never freed.
void MpiExchange::take_off() {
  static std::vector<std::unique_ptr<InFlight>>& lost = *new std::vector<std::unique_ptr<InFlight>>;
  if (in_flight_) lost.push_back(std::move(in_flight_));
  in_flight_ = std::make_unique<InFlight>();
}

// Ends an exchange whose requests are all done.
void MpiExchange::land() { in_flight_.reset(); }

// Groups are made by all processes together, so they are made before the first of them is needed.
void MpiExchange::make_groups() {
  const Watchdog watchdog("the groups of processes were not made", deadline_);
  const auto axes = static_cast<int>(mesh_.axes().size());
  for (int chosen = 1; chosen < 1 << axes; ++chosen) {
    std::vector<int> list;
    for (int axis = 0; axis < axes; ++axis)
      if (chosen >> axis & 1) list.push_back(axis);
    groups_[list] = static_cast<int>(list.size()) == axes ? 0 : mpi_.split(group_of(mesh_, mpi_.rank(), list)[0]);
  }
}

// --- Waiting ---

void MpiExchange::begin(const std::vector<int>& peers) {
  take_off();
  ++sequence_;
  began_ = Clock::now();
  peers_.clear();
  for (const int peer : peers)
    if (peer != mpi_.rank()) peers_.push_back(peer);
  std::vector<std::int32_t>& words = in_flight_->words;
  words.assign(peers_.size() + 1, 0);
  words.back() = sequence_;
  arrivals_.clear();
  for (std::size_t i = 0; i < peers_.size(); ++i)
    arrivals_.push_back({mpi_.receive(&words[i], sizeof words[i], peers_[i], mark_tag(sequence_))});
  std::vector<MpiLibrary::Request> sends;
  for (const int peer : peers_) sends.push_back(mpi_.send(&words.back(), sizeof words.back(), peer, mark_tag(sequence_)));
  wait(std::move(sends));
}

void MpiExchange::wait(std::vector<MpiLibrary::Request> requests) {
  wait_until([&] {
    std::erase_if(requests, [&](MpiLibrary::Request request) { return mpi_.test(request); });
    return requests.empty();
  });
}

void MpiExchange::wait_until(const std::function<bool()>& is_done) {
  constexpr int kSpins = 200;
  constexpr std::chrono::milliseconds kSoon{2};
  constexpr std::chrono::microseconds kNap{200};
  for (int round = 0; !is_done(); ++round) {
    if (round < kSpins) continue;
    if (cancel_.stop_requested() || is_stopped_) fail_cancelled();
    const Clock::duration waited = Clock::now() - began_;
    if (waited > deadline_) fail_late();
    // Another process may need this core to send what we wait for. One that has not come still computes, perhaps for long.
    if (waited < kSoon || all_have_come())
      sched_yield();
    else
      std::this_thread::sleep_for(kNap);
  }
}

// Whether all peers have come to the present exchange.
bool MpiExchange::all_have_come() {
  bool all = arrivals_.size() == peers_.size();
  for (Arrival& arrival : arrivals_) {
    arrival.has_come = arrival.has_come || mpi_.test(arrival.request);
    all = all && arrival.has_come;
  }
  return all;
}

std::vector<std::string> MpiExchange::missing_peers() {
  all_have_come();
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < peers_.size(); ++i)
    if (i >= arrivals_.size() || !arrivals_[i].has_come) missing.push_back(names_[index(peers_[i])]);
  return missing;
}

void MpiExchange::fail_cancelled() {
  const std::vector<std::string> missing = missing_peers();
  if (missing.empty()) throw Error(ErrorCode::cancelled, "cancelled while exchanging values");
  throw Error(ErrorCode::cancelled, fmt::format("cancelled while waiting for {}", fmt::join(missing, ", ")),
              "the launcher ends all processes of a job when one of them is gone");
}

void MpiExchange::fail_late() {
  const std::vector<std::string> missing = missing_peers();
  const double seconds = std::chrono::duration<double>(deadline_).count();
  if (missing.empty())
    throw Error(ErrorCode::deadline_exceeded,
                fmt::format("exchange {} did not end within {} s, although all processes take part", sequence_, seconds),
                "a connection may be down or slow; --deadline allows more time");
  throw Error(ErrorCode::deadline_exceeded,
              fmt::format("{} did not answer within {} s in exchange {}", fmt::join(missing, ", "), seconds, sequence_),
              "the process or its host may be gone, or busy for longer than that: --deadline allows more time");
}

// --- Texts and turns ---

std::vector<std::string> MpiExchange::gather(const std::string& text) {
  std::vector<int> everybody(index(mpi_.size()));
  for (int i = 0; i < mpi_.size(); ++i) everybody[index(i)] = i;
  begin(everybody);
  auto& texts = in_flight_->texts;
  texts.resize(everybody.size());
  auto& own = texts[index(mpi_.rank())];
  text.copy(own.data(), kName - 1);
  std::vector<MpiLibrary::Request> requests;
  for (const int peer : peers_) {
    requests.push_back(mpi_.receive(texts[index(peer)].data(), kName, peer, data_tag(sequence_)));
    requests.push_back(mpi_.send(own.data(), kName, peer, data_tag(sequence_)));
  }
  wait(std::move(requests));
  wait_until([&] { return all_have_come(); });
  std::vector<std::string> result;
  for (const auto& each : texts) result.emplace_back(each.data());
  land();
  return result;
}

void MpiExchange::in_turn(const std::vector<int>& turn, const std::function<void()>& action) {
  ++sequence_;
  for (const int member : turn)
    if (member == mpi_.rank())
      take_turn(action);
    else
      wait_for_turn_of(member);
}

// The action may wait in a queue for its device, for as long as its own limit allows; signs of life tell the others.
void MpiExchange::take_turn(const std::function<void()>& action) {
  {
    std::mutex mutex;
    std::condition_variable_any over;
    const std::jthread beat([&](const std::stop_token& stop) {
      std::unique_lock lock(mutex);
      try {
        while (!over.wait_for(lock, stop, deadline_ / kBeats, [] { return false; }) && !stop.stop_requested()) tell_all(kBusy);
      } catch (const Error&) {
        // The next exchange of this process will fail, too, and say why.
      }
    });
    action();
  }
  tell_all(kDone);
}

void MpiExchange::wait_for_turn_of(int member) {
  take_off();
  arrivals_.clear();
  peers_ = {member};
  std::int32_t& word = in_flight_->words.emplace_back(kBusy);
  while (word != kDone) {
    began_ = Clock::now();
    wait({mpi_.receive(&word, sizeof word, member, data_tag(sequence_))});
  }
  land();
}

void MpiExchange::tell_all(std::int32_t word) {
  take_off();
  began_ = Clock::now();
  arrivals_.clear();
  peers_.clear();
  const std::int32_t& said = in_flight_->words.emplace_back(word);
  std::vector<MpiLibrary::Request> sends;
  for (int peer = 0; peer < mpi_.size(); ++peer) {
    if (peer == mpi_.rank()) continue;
    peers_.push_back(peer);
    sends.push_back(mpi_.send(&said, sizeof said, peer, data_tag(sequence_)));
  }
  wait(std::move(sends));
  land();
}

// --- Values ---

void MpiExchange::exchange(const std::vector<Message>& sends, std::vector<Message>& receives) {
  std::vector<MpiLibrary::Request> requests;
  const auto in_pieces = [](std::size_t bytes, const auto& call) {
    for (std::size_t at = 0; at < bytes; at += kPiece) call(at, std::min(kPiece, bytes - at));
  };
  for (Message& message : receives) {
    std::byte* data = message.data.mutable_data();
    in_flight_->arrays.push_back(message.data);
    bytes_ += message.data.bytes();
    in_pieces(message.data.bytes(), [&](std::size_t at, std::size_t size) {
      requests.push_back(mpi_.receive(data + at, size, message.peer, data_tag(sequence_)));
    });
  }
  for (const Message& message : sends) {
    in_flight_->arrays.push_back(message.data);
    in_pieces(message.data.bytes(), [&](std::size_t at, std::size_t size) {
      requests.push_back(mpi_.send(message.data.data() + at, size, message.peer, data_tag(sequence_)));
    });
  }
  wait(std::move(requests));
  wait_until([&] { return all_have_come(); });
  land();
}

HostArray MpiExchange::move(const HostArray& mine, const Layout& from, const Layout& to, const Shape& shape) {
  const int rank = mpi_.rank();
  const Box have = box_of(from, shape, mesh_, rank), wanted = box_of(to, shape, mesh_, rank);
  // Those who need parts of mine are those that I need parts of: they differ from me along the split axes.
  const std::vector<int> peers = sources_of(from, mesh_, rank);
  begin(peers);
  std::vector<Message> sends, receives;
  for (const int peer : peers_) {
    const Box theirs = intersection(have, box_of(to, shape, mesh_, peer)),
              ours = intersection(box_of(from, shape, mesh_, peer), wanted);
    if (theirs.elements() > 0) sends.push_back({peer, cut(mine, have, theirs)});
    if (ours.elements() > 0) receives.push_back({peer, HostArray::empty(mine.dtype(), ours.shape())});
  }
  exchange(sends, receives);
  HostArray result = HostArray::empty(mine.dtype(), wanted.shape());
  std::byte* target = result.mutable_data();
  copy_common(mine, have, target, wanted);
  for (const Message& message : receives)
    copy_common(message.data, intersection(box_of(from, shape, mesh_, message.peer), wanted), target, wanted);
  return result;
}

HostArray MpiExchange::reduce(const HostArray& mine, const Layout& from, const Layout& to, const Shape& shape) {
  std::vector<int> axes;
  ReduceKind kind = ReduceKind::sum;
  for (std::size_t m = 0; m < from.partials.size(); ++m)
    if (from.partials[m] && !to.partials[m]) {
      axes.push_back(static_cast<int>(m));
      kind = *from.partials[m];
    }
  const std::vector<int> group = group_of(mesh_, mpi_.rank(), axes);
  const bool is_whole = box_of(from, shape, mesh_, mpi_.rank()) == box_of(to, shape, mesh_, mpi_.rank());
  if (is_whole && mpi_.can_reduce(mine.dtype(), kind)) return reduce_all(mine, kind, axes, group);
  return reduce_parts(mine, kind, group, from, to, shape);
}

HostArray MpiExchange::reduce_all(const HostArray& mine, ReduceKind kind, const std::vector<int>& axes,
                                  const std::vector<int>& group) {
  begin(group);
  HostArray result = HostArray::empty(mine.dtype(), mine.shape());
  std::byte* const to = result.mutable_data();
  in_flight_->arrays = {mine, result};
  const std::size_t size = element_bytes(mine.dtype());
  std::vector<MpiLibrary::Request> requests;
  for (std::int64_t at = 0; at < mine.elements();) {
    const std::int64_t count = std::min<std::int64_t>(static_cast<std::int64_t>(kPiece / size), mine.elements() - at);
    const std::size_t offset = static_cast<std::size_t>(at) * size;
    requests.push_back(mpi_.all_reduce(mine.data() + offset, to + offset, count, mine.dtype(), kind, groups_.at(axes)));
    at += count;
  }
  wait(std::move(requests));
  wait_until([&] { return all_have_come(); });
  land();
  // What MPI's algorithms receive at least: every other term of one share, then every other share.
  bytes_ += 2 * mine.bytes() * (group.size() - 1) / group.size();
  return result;
}

// Every term comes here, and is added in the order of the devices.
HostArray MpiExchange::reduce_parts(const HostArray& mine, ReduceKind kind, const std::vector<int>& group, const Layout& from,
                                    const Layout& to, const Shape& shape) {
  const int rank = mpi_.rank();
  const Box have = box_of(from, shape, mesh_, rank), wanted = box_of(to, shape, mesh_, rank);
  begin(group);
  std::vector<Message> sends, receives;
  for (const int peer : peers_) {
    sends.push_back({peer, cut(mine, have, box_of(to, shape, mesh_, peer))});
    receives.push_back({peer, HostArray::empty(mine.dtype(), wanted.shape())});
  }
  exchange(sends, receives);
  HostArray result;
  for (const int member : group) {
    const auto received = std::find_if(receives.begin(), receives.end(), [&](const Message& m) { return m.peer == member; });
    const HostArray term = member == rank ? cut(mine, have, wanted) : received->data;
    if (member == group[0])
      result = term;
    else
      accumulate(kind, mine.dtype(), result.mutable_data(), term.data(), term.elements());
  }
  return result;
}

std::uint64_t MpiExchange::take_bytes() { return std::exchange(bytes_, 0); }

}  // namespace tenon::mesh
