#include "backends/cuda/nccl/group.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "base/threads/stop_scope.h"
#include "tenon/error.h"

namespace tenon::cuda::nccl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{30};

constexpr const char* kHint = "NCCL_DEBUG=INFO makes NCCL say more";

Error error_of(const Library& library, Comm comm, const std::string& card, const char* what, int result) {
  const char* const last = library.last_error(comm);
  return Error(ErrorCode::unavailable,
               fmt::format("{}: {} failed: NCCL: {}{}{}", card, what, library.error_string(result), last && *last ? ": " : "",
                           last ? last : ""),
               kHint);
}

Type type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return kFloat32;
    case DType::f64: return kFloat64;
    case DType::i8: return kInt8;
    case DType::i32: return kInt32;
    case DType::u32: return kUint32;
    case DType::i64: return kInt64;
    case DType::u64: return kUint64;
    default: return kUint8;
  }
}

// Of truth values: 0 and 1.
Operation operation_of(ReduceKind kind, DType dtype) {
  switch (kind) {
    case ReduceKind::sum: return dtype == DType::boolean ? kMax : kSum;
    case ReduceKind::prod: return kProd;
    case ReduceKind::max:
    case ReduceKind::any: return kMax;
    default: return kMin;
  }
}

bool is_reduction(GroupCall::Kind kind) {
  return kind == GroupCall::Kind::all_reduce || kind == GroupCall::Kind::reduce_scatter || kind == GroupCall::Kind::reduce;
}

const DeviceBuffer* of(const Buffer* buffer) { return dynamic_cast<const DeviceBuffer*>(buffer); }
void* address(const DeviceBuffer* buffer) { return buffer ? reinterpret_cast<void*>(buffer->address()) : nullptr; }

class NcclGroup final : public DeviceGroup {
 public:
  NcclGroup(const Library& library, std::shared_ptr<Context> context, const std::string& id, int rank, int size)
      : library_(library),
        context_(std::move(context)) {
    UniqueId wanted;
    if (id.size() != sizeof wanted.bytes)
      throw Error(ErrorCode::invalid_argument, fmt::format("the id of a group has {} bytes, not {}", id.size(), sizeof wanted));
    std::memcpy(wanted.bytes, id.data(), sizeof wanted.bytes);
    context_->enter();
    context_->check(context_->driver().stream_create(&stream_, kStreamNonBlocking), "creating a stream");
    try {
      context_->check(context_->driver().event_create(&event_, kEventDisableTiming), "creating an event");
      Config config;
      settle(library_.init(&comm_, size, wanted, rank, &config), "joining a group of cards");
    } catch (...) {
      end();
      throw;
    }
  }
  ~NcclGroup() override { end(); }

  void start(std::span<const GroupCall> calls) override {
    for (const GroupCall& call : calls) check_call(call);
    context_->enter();
    context_->order(context_->stream(), stream_);
    int result = library_.group_start();
    for (const GroupCall& call : calls)
      if (result == kSuccess || result == kInProgress) result = put(call);
    // A group that was begun has to end, whatever happened in it.
    const int ended = library_.group_end();
    settle(result == kSuccess || result == kInProgress ? ended : result, "starting an exchange between cards");
    context_->check(context_->driver().event_record(event_, stream_), "recording an event");
  }

  bool is_complete() override {
    context_->enter();
    const Result result = context_->driver().event_query(event_);
    if (result != kNotReady) context_->check(result, "an exchange between cards");
    int state = kSuccess;
    check(library_.async_error(comm_, &state), "asking for the state of an exchange");
    check(state, "an exchange between cards");
    return result != kNotReady;
  }

 private:
  void check_call(const GroupCall& call) const {
    const Buffer* const any = call.from ? call.from : call.to;
    if (!any) throw Error(ErrorCode::invalid_argument, context_->card().id + ": a call of an exchange has no buffer");
    for (const Buffer* buffer : {call.from, static_cast<const Buffer*>(call.to)})
      if (buffer && (!of(buffer) || of(buffer)->context() != context_.get()))
        throw Error(ErrorCode::failed_precondition, context_->card().id + ": a buffer of an exchange belongs to another device");
    if (is_reduction(call.kind) && !is_reducible(call.reduction, any->type().dtype))
      throw Error(ErrorCode::unimplemented, fmt::format("{}: NCCL cannot reduce values of type {} by {}", context_->card().id,
                                                        name(any->type().dtype), name(call.reduction)));
  }

  int put(const GroupCall& call) {
    const DeviceBuffer *const from = of(call.from), *const to = of(call.to);
    const TensorType& type = (from ? from : to)->type();
    const bool is_reduced = is_reduction(call.kind);
    // What is only moved is bytes.
    const Type as = is_reduced ? type_of(type.dtype) : kUint8;
    const auto count = [&](const DeviceBuffer* buffer) {
      return is_reduced ? static_cast<std::size_t>(buffer->type().shape.elements())
                        : storage_bytes(buffer->type().dtype, buffer->type().shape);
    };
    const Operation operation = operation_of(call.reduction, type.dtype);
    void *const source = address(from), *const target = address(to);
    switch (call.kind) {
      case GroupCall::Kind::all_reduce: return library_.all_reduce(source, target, count(from), as, operation, comm_, stream_);
      case GroupCall::Kind::reduce_scatter:
        return library_.reduce_scatter(source, target, count(to), as, operation, comm_, stream_);
      case GroupCall::Kind::all_gather: return library_.all_gather(source, target, count(from), as, comm_, stream_);
      case GroupCall::Kind::reduce: return library_.reduce(source, target, count(from), as, operation, call.peer, comm_, stream_);
      case GroupCall::Kind::broadcast: return library_.broadcast(source, target, count(to), as, call.peer, comm_, stream_);
      case GroupCall::Kind::send: return library_.send(source, count(from), as, call.peer, comm_, stream_);
      case GroupCall::Kind::receive: return library_.receive(target, count(to), as, call.peer, comm_, stream_);
    }
    return kSuccess;
  }

  void check(int result, const char* what) const {
    if (result != kSuccess && result != kInProgress) throw error_of(library_, comm_, context_->card().id, what, result);
  }

  // Waits until a call that went on in the background has ended.
  void settle(int result, const char* what) {
    const Clock::time_point deadline = Clock::now() + kPatience;
    for (check(result, what); result == kInProgress; check(result, what)) {
      check_stop();
      if (Clock::now() >= deadline)
        throw Error(ErrorCode::deadline_exceeded,
                    fmt::format("{}: {} took longer than {} s", context_->card().id, what, kPatience.count()), kHint);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      check(library_.async_error(comm_, &result), what);
    }
  }

  // Aborting waits for no other card, and frees the communicator as well as its proper end does.
  void end() noexcept {
    try {
      context_->enter();
    } catch (const Error&) {
      return;  // closed or lost: the driver has freed everything with the context
    }
    if (comm_) library_.abort(comm_);
    if (event_) context_->driver().event_destroy(event_);
    context_->driver().stream_destroy(stream_);
  }

  const Library& library_;
  std::shared_ptr<Context> context_;
  RawStream stream_ = nullptr;
  RawEvent event_ = nullptr;
  Comm comm_ = nullptr;
};

}  // namespace

std::string make_id(const Library& library) {
  UniqueId id;
  if (const int result = library.unique_id(&id); result != kSuccess)
    throw error_of(library, nullptr, "cuda", "making a group of cards", result);
  return {id.bytes, sizeof id.bytes};
}

std::unique_ptr<DeviceGroup> join(const Library& library, std::shared_ptr<Context> context, const std::string& id, int rank,
                                  int size) {
  return std::make_unique<NcclGroup>(library, std::move(context), id, rank, size);
}

}  // namespace tenon::cuda::nccl
