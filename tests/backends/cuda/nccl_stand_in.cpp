// A stand-in for NCCL: the same functions, for cards that are plain memory and ranks that are threads.
//
// Like NCCL's non-blocking communicators, calls return at once; those of a group are done when all ranks have ended theirs. Ranks
// are matched by the order of their groups. Only what Tenon calls is here.
#include "backends/cuda/nccl_stand_in.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kSuccess = 0, kInvalidArgument = 4, kInvalidUsage = 5, kInProgress = 7;
enum class Kind { all_reduce, reduce_scatter, all_gather, reduce, broadcast, send, receive };

struct Id {
  char bytes[128];
};
struct Config {
  std::size_t size;
  unsigned magic, version;
  int is_blocking;
};
struct Call {
  Kind kind{};
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  int type = 0, operation = 0, peer = 0;
  const void* stream = nullptr;
};
using Round = std::map<int, std::vector<Call>>;  // by rank

std::mutex mutex;
StandIn state{22703, 0, 0, kSuccess, kSuccess};
std::multiset<const void*> busy;
int ids = 0;

struct World {
  int size = 0;
  std::set<int> ranks;
  std::map<int, Round> rounds;  // by number
};
std::map<std::string, std::shared_ptr<World>> worlds;

}  // namespace

struct CommHandle {
  std::shared_ptr<World> world;
  int rank = 0, rounds = 0;
  std::vector<Call> pending;
};

namespace {

// Between ncclGroupStart and ncclGroupEnd of this thread.
thread_local int depth = 0;
thread_local std::set<CommHandle*> touched;

std::size_t bytes_of(int type) {
  constexpr std::size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return sizes[type];
}

template <class T>
void combine_as(void* to, const void* from, std::size_t count, int operation) {
  T* const target = static_cast<T*>(to);
  const T* const source = static_cast<const T*>(from);
  for (std::size_t i = 0; i < count; ++i) {
    const T a = target[i], b = source[i];
    target[i] = operation == 0   ? static_cast<T>(a + b)
                : operation == 1 ? static_cast<T>(a * b)
                : operation == 2 ? std::max(a, b)
                                 : std::min(a, b);
  }
}
void combine(void* to, const void* from, std::size_t count, int type, int operation) {
  switch (type) {
    case 0: return combine_as<std::int8_t>(to, from, count, operation);
    case 1: return combine_as<std::uint8_t>(to, from, count, operation);
    case 2: return combine_as<std::int32_t>(to, from, count, operation);
    case 3: return combine_as<std::uint32_t>(to, from, count, operation);
    case 4: return combine_as<std::int64_t>(to, from, count, operation);
    case 5: return combine_as<std::uint64_t>(to, from, count, operation);
    case 7: return combine_as<float>(to, from, count, operation);
    case 8: return combine_as<double>(to, from, count, operation);
  }
}

std::vector<std::byte> reduced(const Round& round, std::size_t number, std::size_t count) {
  const Call& first = round.begin()->second[number];
  const std::size_t bytes = count * bytes_of(first.type);
  std::vector<std::byte> sum(bytes);
  std::memcpy(sum.data(), first.from, bytes);
  for (auto rank = std::next(round.begin()); rank != round.end(); ++rank)
    combine(sum.data(), rank->second[number].from, count, first.type, first.operation);
  return sum;
}

// One collective: the call of this number on all ranks.
void collect(const Round& round, std::size_t number) {
  const Call& any = round.begin()->second[number];
  const std::size_t bytes = any.count * bytes_of(any.type);
  const std::size_t ranks = round.size();
  const std::vector<std::byte> sum =
      any.kind == Kind::all_gather || any.kind == Kind::broadcast
          ? std::vector<std::byte>()
          : reduced(round, number, any.kind == Kind::reduce_scatter ? any.count * ranks : any.count);
  for (const auto& [rank, calls] : round) {
    const Call& call = calls[number];
    auto* const to = static_cast<std::byte*>(call.to);
    switch (call.kind) {
      case Kind::all_reduce: std::memcpy(to, sum.data(), bytes); break;
      case Kind::reduce_scatter: std::memcpy(to, sum.data() + static_cast<std::size_t>(rank) * bytes, bytes); break;
      case Kind::reduce:
        if (rank == call.peer) std::memcpy(to, sum.data(), bytes);
        break;
      case Kind::broadcast: std::memmove(to, round.at(call.peer)[number].from, bytes); break;
      case Kind::all_gather:
        for (const auto& [source, theirs] : round)
          std::memcpy(to + static_cast<std::size_t>(source) * bytes, theirs[number].from, bytes);
        break;
      default: break;
    }
  }
}

// Messages between two ranks are matched in order.
void deliver(const Round& round) {
  for (const auto& [rank, calls] : round)
    for (const auto& [peer, theirs] : round) {
      std::vector<const Call*> sent;
      for (const Call& call : theirs)
        if (call.kind == Kind::send && call.peer == rank) sent.push_back(&call);
      std::size_t next = 0;
      for (const Call& call : calls)
        if (call.kind == Kind::receive && call.peer == peer && next < sent.size()) {
          std::memcpy(call.to, sent[next]->from, std::min(call.count, sent[next]->count) * bytes_of(call.type));
          ++next;
        }
    }
}

bool is_message(const Call& call) { return call.kind == Kind::send || call.kind == Kind::receive; }

void perform(const Round& round) {
  const std::vector<Call>& first = round.begin()->second;
  for (std::size_t number = 0; number < first.size(); ++number)
    if (!is_message(first[number])) collect(round, number);
  deliver(round);
  for (const auto& [rank, calls] : round)
    for (const Call& call : calls) busy.erase(busy.find(call.stream));
}

int end_group() {
  const std::lock_guard lock(mutex);
  for (CommHandle* comm : touched) {
    World& world = *comm->world;
    const int number = comm->rounds++;
    Round& round = world.rounds[number];
    round[comm->rank] = std::move(comm->pending);
    comm->pending.clear();
    if (static_cast<int>(round.size()) < world.size) continue;
    perform(round);
    world.rounds.erase(number);
  }
  touched.clear();
  return kSuccess;
}

int put(CommHandle* comm, const Call& call) {
  {
    const std::lock_guard lock(mutex);
    if (state.next_call != kSuccess) return std::exchange(state.next_call, kSuccess);
    if (static_cast<int>(comm->world->ranks.size()) < comm->world->size) return kInvalidUsage;
    comm->pending.push_back(call);
    busy.insert(call.stream);
    touched.insert(comm);
  }
  return depth > 0 ? kInProgress : end_group();
}

}  // namespace

extern "C" {

StandIn* stand_in() { return &state; }
bool stand_in_is_busy(const void* stream) {
  const std::lock_guard lock(mutex);
  return busy.contains(stream);
}

int ncclGetVersion(int* version) { return *version = state.version, kSuccess; }
const char* ncclGetErrorString(int result) { return result == kInvalidUsage ? "invalid usage" : "made to fail"; }
const char* ncclGetLastError(CommHandle*) { return "the stand-in says so"; }
int ncclGetUniqueId(Id* id) {
  const std::lock_guard lock(mutex);
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->bytes, &++ids, sizeof ids);
  return kSuccess;
}

int ncclCommInitRankConfig(CommHandle** comm, int size, Id id, int rank, Config* config) {
  if (config->size != 24 || config->magic != 0xcafebeef || config->version != 21400 || config->is_blocking != 0)
    return kInvalidArgument;
  const std::lock_guard lock(mutex);
  std::shared_ptr<World>& world = worlds[std::string(id.bytes, sizeof id.bytes)];
  if (!world) world = std::make_shared<World>();
  world->size = size;
  if (rank < 0 || rank >= size || !world->ranks.insert(rank).second) return kInvalidArgument;
  ++state.communicators;
  *comm = new CommHandle{world, rank, 0, {}};
  return kInProgress;
}
int ncclCommGetAsyncError(CommHandle* comm, int* result) {
  const std::lock_guard lock(mutex);
  *result = state.next_state != kSuccess                                      ? std::exchange(state.next_state, kSuccess)
            : static_cast<int>(comm->world->ranks.size()) < comm->world->size ? kInProgress
                                                                              : kSuccess;
  return kSuccess;
}
int ncclCommAbort(CommHandle* comm) {
  const std::lock_guard lock(mutex);
  bool was_busy = false;
  for (auto& [number, round] : comm->world->rounds) {
    const auto mine = round.find(comm->rank);
    if (mine == round.end()) continue;
    was_busy = true;
    for (const Call& call : mine->second) busy.erase(busy.find(call.stream));
    round.erase(mine);
  }
  state.aborted += was_busy;
  --state.communicators;
  delete comm;
  return kSuccess;
}

int ncclGroupStart() { return ++depth, kSuccess; }
int ncclGroupEnd() { return --depth > 0 ? kSuccess : end_group(); }

int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation, CommHandle* comm, const void* stream) {
  return put(comm, {Kind::all_reduce, from, to, count, type, operation, 0, stream});
}
int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int operation, CommHandle* comm,
                      const void* stream) {
  return put(comm, {Kind::reduce_scatter, from, to, count, type, operation, 0, stream});
}
int ncclAllGather(const void* from, void* to, std::size_t count, int type, CommHandle* comm, const void* stream) {
  return put(comm, {Kind::all_gather, from, to, count, type, 0, 0, stream});
}
int ncclReduce(const void* from, void* to, std::size_t count, int type, int operation, int root, CommHandle* comm,
               const void* stream) {
  return put(comm, {Kind::reduce, from, to, count, type, operation, root, stream});
}
int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, CommHandle* comm, const void* stream) {
  return put(comm, {Kind::broadcast, from, to, count, type, 0, root, stream});
}
int ncclSend(const void* from, std::size_t count, int type, int peer, CommHandle* comm, const void* stream) {
  return put(comm, {Kind::send, from, nullptr, count, type, 0, peer, stream});
}
int ncclRecv(void* to, std::size_t count, int type, int peer, CommHandle* comm, const void* stream) {
  return put(comm, {Kind::receive, nullptr, to, count, type, 0, peer, stream});
}
}
