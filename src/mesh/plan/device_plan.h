// DevicePlan: one exchange as calls of a group of devices (hal/collectives.h), seen from one of them.
//
// What is not contiguous in a device's part is made so by a small program before, and put together by another one after.
#pragma once

#include <optional>
#include <vector>

#include "hal/collectives.h"
#include "mesh/plan/partition.h"

namespace tenon::mesh {

struct DevicePlan {
  // Of a group call; buffers are numbers in |sent| and |received|.
  struct Call {
    GroupCall::Kind kind{};
    int peer = 0;  // place in |group|
    std::optional<std::size_t> from, to;
  };
  std::vector<int> group;  // ranks that exchange with each other, in order
  ReduceKind reduction = ReduceKind::sum;
  std::optional<Graph> pack;  // this device's part -> what it sends; none: the part itself is sent
  std::vector<Call> calls;
  std::vector<TensorType> received;
  std::optional<Graph> join;  // what was received -> this device's new part; none: that was received
};

// Whether groups of devices can do the exchange. The same on all devices.
bool is_for_devices(const Graph& graph, const Partition& partition, const Value& exchange);
// Of such an exchange, for the device |rank|, which has its part in |stored|.
DevicePlan device_plan(const Graph& graph, const Mesh& mesh, const Partition& partition, const Value& exchange, int rank,
                       DType stored);

}  // namespace tenon::mesh
