// The parts of NCCL's C interface that Tenon calls, declared by hand, and the table of its functions.
//
// The library is loaded at run time (libraries.h) and never linked. The layouts are those of NCCL 2.14, which later versions keep
// for callers that say so in Config::version.
#pragma once

#include <climits>
#include <cstddef>

#include "backends/cuda/api.h"

namespace tenon::cuda::nccl {

inline constexpr int kSuccess = 0, kInProgress = 7;
inline constexpr int kOldest = 21400;  // the first that can be given up: 2.14

using Comm = struct CommHandle*;
struct UniqueId {
  char bytes[128];
};
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = kOldest;
  int is_blocking = 0;
  int unused = INT_MIN;  // padding in 2.14; a number that later versions take as not given
};
static_assert(sizeof(UniqueId) == 128 && sizeof(Config) == 24 && offsetof(Config, is_blocking) == 16);

enum Type : int { kInt8 = 0, kUint8 = 1, kInt32 = 2, kUint32 = 3, kInt64 = 4, kUint64 = 5, kFloat32 = 7, kFloat64 = 8 };
enum Operation : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3 };

// member, exported name, signature
#define TENON_NCCL(X)                                                                                                     \
  X(version, "ncclGetVersion", int(int*))                                                                                 \
  X(error_string, "ncclGetErrorString", const char*(int))                                                                 \
  X(last_error, "ncclGetLastError", const char*(Comm))                                                                    \
  X(unique_id, "ncclGetUniqueId", int(UniqueId*))                                                                         \
  X(init, "ncclCommInitRankConfig", int(Comm*, int size, UniqueId, int rank, Config*))                                    \
  X(async_error, "ncclCommGetAsyncError", int(Comm, int*))                                                                \
  X(abort, "ncclCommAbort", int(Comm))                                                                                    \
  X(group_start, "ncclGroupStart", int(void))                                                                             \
  X(group_end, "ncclGroupEnd", int(void))                                                                                 \
  X(all_reduce, "ncclAllReduce", int(const void*, void*, std::size_t, Type, Operation, Comm, RawStream))                  \
  X(reduce_scatter, "ncclReduceScatter", int(const void*, void*, std::size_t received, Type, Operation, Comm, RawStream)) \
  X(all_gather, "ncclAllGather", int(const void*, void*, std::size_t sent, Type, Comm, RawStream))                        \
  X(reduce, "ncclReduce", int(const void*, void*, std::size_t, Type, Operation, int root, Comm, RawStream))               \
  X(broadcast, "ncclBroadcast", int(const void*, void*, std::size_t, Type, int root, Comm, RawStream))                    \
  X(send, "ncclSend", int(const void*, std::size_t, Type, int peer, Comm, RawStream))                                     \
  X(receive, "ncclRecv", int(void*, std::size_t, Type, int peer, Comm, RawStream))

#define TENON_NCCL_MEMBER(member, symbol, ...) FunctionPointer<__VA_ARGS__>::Type member = nullptr;
struct Library {
  TENON_NCCL(TENON_NCCL_MEMBER)
};
#undef TENON_NCCL_MEMBER

}  // namespace tenon::cuda::nccl
