// Collectives: exchanges between several devices of one backend, from device memory to device memory.
//
// A Backend, and the OpenDevice it opens, may offer these interfaces; callers find them by dynamic_cast. Devices that are to
// exchange form a group: one of them makes its id, and each joins with the id and its rank, at the same time. The devices may be
// in this process or in processes of their own. Then every device starts the same exchanges in the same order, and goes on with
// other work while they are under way.
//
// Lifetime: a group must be destroyed before its device closes. Then it is of no use to the others; they notice by an error, or
// not at all: whoever waits for is_complete() needs a deadline, and destroys the group when it has passed. The buffers of an
// exchange must live until it is complete or the group is destroyed.
// Thread safety: the calls on one group must not overlap; they may come from any thread.
//
//   auto& mine = dynamic_cast<Collectives&>(*device);
//   const std::string id = mine.make_group_id();                // on one device, told to the other
//   const auto group = mine.join(id, rank, 2);                  // on both
//   const GroupCall sum[] = {{.kind = GroupCall::Kind::all_reduce, .from = x.get(), .to = y.get()}};
//   group->start(sum);
//   while (!group->is_complete()) {}                            // until a deadline
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tenon/backend.h"
#include "tenon/graph.h"

namespace tenon {

// One device's side of an exchange. Buffers are contiguous; counts follow from their types.
struct GroupCall {
  enum class Kind : std::uint8_t {
    all_reduce,      // |to|: the reduction of all |from|
    reduce_scatter,  // |to|: this device's part of it; parts are equal and in the order of ranks
    all_gather,      // |to|: all |from|, which are equally large, in the order of ranks
    reduce,          // |to| on device |peer|: the reduction of all |from|
    broadcast,       // |to|: what |from| is on device |peer|
    send,            // |from| to |peer|, which may be the device itself
    receive,         // |to| from |peer|
  };
  static constexpr int kKinds = 7;
  Kind kind{};
  int peer = 0;
  ReduceKind reduction = ReduceKind::sum;
  const Buffer* from = nullptr;  // null where the device has nothing to give
  Buffer* to = nullptr;          // null where it gets nothing
};

// Whether all groups can reduce values of this type in this way. max and min of floats are not among them: they would lose NaN.
constexpr bool is_reducible(ReduceKind kind, DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::f64: return kind == ReduceKind::sum || kind == ReduceKind::prod;
    case DType::i8:
    case DType::u8:
    case DType::i32:
    case DType::u32:
    case DType::i64:
    case DType::u64: return kind <= ReduceKind::min;
    // 0 and 1, in a byte each.
    case DType::boolean: return kind != ReduceKind::prod;
    default: return false;
  }
}

class DeviceGroup {
 public:
  // Ends an exchange that is under way: the device can be used for other work afterwards.
  virtual ~DeviceGroup() = default;
  // Starts |calls| together, after all work that the device was given before. Sends and receives of one start may depend on each
  // other. The last start must be complete. Returns when the device has them all. Throws unavailable, deadline_exceeded.
  virtual void start(std::span<const GroupCall> calls) = 0;
  // Whether what was started last is done. Does not block. Throws unavailable if it failed.
  virtual bool is_complete() = 0;
};

// An OpenDevice.
class Collectives {
 public:
  virtual ~Collectives() = default;
  // Bytes that name a new group. Throws unavailable if the library is missing, unimplemented if there is none.
  virtual std::string make_group_id() = 0;
  // Blocks until all |size| devices have joined. Throws unavailable, deadline_exceeded.
  virtual std::unique_ptr<DeviceGroup> join(const std::string& id, int rank, int size) = 0;
};

// A Backend whose devices are Collectives. Neither call opens a device.
class CollectiveBackend {
 public:
  virtual ~CollectiveBackend() = default;
  // "NCCL"; "" if they are not.
  virtual std::string_view collective_library() const noexcept = 0;
  // "2.27.3": of the library that this process finds. Loads it. Throws unavailable with a hint.
  virtual std::string collective_version() const = 0;
};

// The groups that a device has joined since it was opened, by the ids of their devices.
using JoinedGroups = std::map<std::string, std::unique_ptr<DeviceGroup>>;

}  // namespace tenon
