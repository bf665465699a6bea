// NcclGroup: cards that exchange by NCCL, seen from one of them.
//
// The communicator is a non-blocking one, so that every wait can end: at its deadline, or when the StopScope of the calling
// thread is met, it is aborted. Exchanges have a stream of their own, after the context's stream, and run while that computes.
#pragma once

#include <memory>
#include <string>

#include "backends/cuda/context.h"
#include "backends/cuda/nccl/api.h"
#include "hal/collectives.h"

namespace tenon::cuda::nccl {

// Throws unavailable.
std::string make_id(const Library& library);
// Blocks until all have joined. |library| must outlive the group.
std::unique_ptr<DeviceGroup> join(const Library& library, std::shared_ptr<Context> context, const std::string& id, int rank,
                                  int size);

}  // namespace tenon::cuda::nccl
