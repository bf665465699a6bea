#include "server/compute/memory/memory_gate.h"

#include <fmt/format.h>

#include "base/text/units.h"
#include "server/http/problem.h"

namespace tenon::server {

MemoryGate::MemoryGate(std::uint64_t limit, std::uint64_t client_limit)
    : limit_(limit),
      client_limit_(client_limit == 0 ? limit / 4 : std::min(client_limit, limit)) {}

MemoryGate::Holder& MemoryGate::holder_of(const std::string& client) {
  const auto [at, is_new] = holders_.try_emplace(client);
  if (is_new) {
    at->second.name = &at->first;
    at->second.is_bounded = client != kServer;
  }
  return at->second;
}

MemoryGate::Refusal MemoryGate::reserve(Holder& holder, std::uint64_t bytes) {
  if (holder.is_bounded && bytes > client_limit_ - std::min(client_limit_, holder.bytes)) return Refusal::client;
  if (bytes > limit_ - used_) return Refusal::all;
  holder.bytes += bytes;
  used_ += bytes;
  return Refusal::none;
}

void MemoryGate::refuse(Refusal why, std::uint64_t bytes) const {
  if (bytes > client_limit_)
    throw Problem(413, "too_large",
                  fmt::format("this needs about {} of the server's memory; a client may have {}",
                              format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(client_limit_))),
                  "use smaller tensors, or raise the server's --max-client-memory");
  if (why == Refusal::client)
    throw Problem(429, "resource_exhausted",
                  fmt::format("this client already uses most of the {} of memory that a client may have",
                              format_bytes(static_cast<double>(client_limit_))),
                  "wait until its other requests end, or delete its uploads and finished jobs")
        .with_retry(1);
  throw Problem(503, "overloaded", "the server's memory for requests is used up", "try again in a moment").with_retry(1);
}

void MemoryGate::drop(Holder& holder) noexcept {
  if (holder.shares == 0) holders_.erase(holders_.find(*holder.name));
}

MemoryGate::Share MemoryGate::take(const std::string& client, std::uint64_t bytes) {
  std::unique_lock lock(mutex_);
  Holder& holder = holder_of(client);
  if (const Refusal why = reserve(holder, bytes); why != Refusal::none) {
    drop(holder);
    lock.unlock();
    refuse(why, bytes);
  }
  ++holder.shares;
  return {this, &holder, bytes};
}

std::optional<MemoryGate::Share> MemoryGate::try_take(const std::string& client, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Holder& holder = holder_of(client);
  if (reserve(holder, bytes) != Refusal::none) {
    drop(holder);
    return std::nullopt;
  }
  ++holder.shares;
  return Share(this, &holder, bytes);
}

void MemoryGate::release(Share& share) noexcept {
  const std::lock_guard lock(mutex_);
  share.holder_->bytes -= share.bytes_;
  used_ -= share.bytes_;
  --share.holder_->shares;
  drop(*share.holder_);
}

void MemoryGate::Share::grow_to(std::uint64_t bytes) {
  if (bytes <= bytes_) return;
  {
    std::unique_lock lock(gate_->mutex_);
    if (const Refusal why = gate_->reserve(*holder_, bytes - bytes_); why != Refusal::none) {
      lock.unlock();
      gate_->refuse(why, bytes);
    }
  }
  bytes_ = bytes;
}

void MemoryGate::Share::shrink_to(std::uint64_t bytes) noexcept {
  if (bytes >= bytes_) return;
  const std::lock_guard lock(gate_->mutex_);
  holder_->bytes -= bytes_ - bytes;
  gate_->used_ -= bytes_ - bytes;
  bytes_ = bytes;
}

std::uint64_t MemoryGate::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::uint64_t MemoryGate::used_by(const std::string& client) const {
  const std::lock_guard lock(mutex_);
  const auto found = holders_.find(client);
  return found == holders_.end() ? 0 : found->second.bytes;
}

std::string excessive_limit(std::uint64_t bytes, std::uint64_t available) {
  // Beside the requests there are the program, its threads and the devices' own memory.
  if (bytes <= available - available / 8) return {};
  return fmt::format(
      "--max-memory is {}, but this process may have only {} (the machine's memory, or MemoryMax= of its unit): the "
      "kernel may end it before requests are refused",
      format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(available)));
}

MemoryGate::Share ClientMemory::take(std::uint64_t bytes) const {
  return bytes < MemoryGate::kCounted ? MemoryGate::Share() : gate.take(client, bytes);
}

std::optional<MemoryGate::Share> ClientMemory::try_take(std::uint64_t bytes) const {
  return bytes < MemoryGate::kCounted ? MemoryGate::Share() : gate.try_take(client, bytes);
}

void MemoryTally::grow_to(std::uint64_t bytes) {
  if (bytes <= bytes_) return;
  if (share_)
    share_.grow_to(bytes);
  else
    share_ = memory_.take(bytes);
  bytes_ = bytes;
}

MemoryGate::Share MemoryTally::take_share() noexcept {
  bytes_ = 0;
  return std::exchange(share_, {});
}

}  // namespace tenon::server
