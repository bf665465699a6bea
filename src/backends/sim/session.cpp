#include "backends/sim/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "base/text/units.h"
#include "base/threads/stop_scope.h"

namespace tenon::sim {

Card::Card(SimulatedDevice description, DeviceInfo device_info)
    : device(std::move(description)),
      info(std::move(device_info)),
      memory(MemoryBudget::make(info.id, device.memory_bytes)),
      faults(device, info.id) {}

void Card::wait(double seconds) const {
  if (!device.virtual_time && seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

bool Card::is_unplugged() const { return !device.unplug.empty() && access(device.unplug.c_str(), F_OK) == 0; }

MemoryBudget::Share Card::take(std::uint64_t bytes) const {
  try {
    return memory->reserve(bytes);
  } catch (const Error&) {
    throw out_of_memory(bytes, "");
  }
}

Error Card::out_of_memory(std::uint64_t bytes, std::string_view why) const {
  return Error(ErrorCode::resource_exhausted,
               fmt::format("{}: {} are needed; {} of its memory of {} are in use{}", info.id,
                           format_bytes(static_cast<double>(bytes)), format_bytes(static_cast<double>(memory->used_bytes())),
                           format_bytes(static_cast<double>(memory->limit_bytes())), why),
               "use smaller tensors or a smaller batch");
}

void Session::check_state() const {
  if (state_ == State::lost)
    throw Error(ErrorCode::unavailable, card_->info.id + " was lost",
                "run the program again; tensors that were only on the device are lost");
  if (state_ == State::closed) throw Error(ErrorCode::failed_precondition, card_->info.id + " is closed");
}

void Session::check_open() const {
  const std::lock_guard lock(mutex_);
  check_state();
}

bool Session::is_lost() const noexcept {
  const std::lock_guard lock(mutex_);
  return state_ == State::lost;
}

bool Session::end(State state) noexcept {
  // Freed after the lock is released, because freeing memory may take time.
  std::vector<std::shared_ptr<Buffer>> gone;
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::open) return false;
    state_ = state;
    for (SimBuffer* buffer : buffers_) {
      buffer->inner_.swap(gone.emplace_back());
      buffer->memory_ = {};
    }
    buffers_.clear();
  }
  ended_.notify_all();
  return true;
}

void Session::compute_for(double seconds) const {
  if (card_->device.virtual_time || seconds <= 0) return;
  constexpr std::chrono::duration<double> kTile = std::chrono::milliseconds(5);
  for (std::chrono::duration<double> left(seconds); left.count() > 0;) {
    check_stop();  // others may compute meanwhile, which is no time of this run
    const auto begin = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    if (state_ != State::open || card_->is_unplugged()) return;
    ended_.wait_for(lock, std::min(kTile, left));
    left -= std::chrono::steady_clock::now() - begin;
  }
}

void Session::hang() const {
  if (card_->device.virtual_time) return;
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, std::chrono::duration<double>(card_->device.hang_seconds), [this] { return state_ != State::open; });
}

void Session::close() {
  if (is_lost()) return;
  if (!end(State::closed)) throw Error(ErrorCode::failed_precondition, card_->info.id + " is already closed");
  card_->wait(card_->device.close_seconds);
  const bool fails = card_->faults.next(Call::close) == Fault::close_fails;
  {
    const std::lock_guard lock(card_->mutex);
    --card_->sessions;
    card_->is_dirty = card_->is_dirty || fails;
  }
  inner_->close();
  if (fails) throw Error(ErrorCode::unavailable, card_->info.id + " did not close cleanly (simulated fault)");
}

void Session::abandon() noexcept {
  if (!end(State::closed)) return;
  const std::lock_guard lock(card_->mutex);
  --card_->sessions;
  card_->is_dirty = true;
}

Error Session::lose() {
  if (end(State::lost)) {
    const std::lock_guard lock(card_->mutex);
    --card_->sessions;
    card_->is_dirty = true;
  }
  return Error(ErrorCode::unavailable, card_->info.id + " was lost (simulated fault)",
               "run the program again; tensors that were only on the device are lost");
}

std::shared_ptr<Buffer> Session::hold(const Buffer& buffer) const {
  const auto* ours = dynamic_cast<const SimBuffer*>(&buffer);
  const std::lock_guard lock(mutex_);
  check_state();
  if (!ours || ours->session_.get() != this)
    throw Error(ErrorCode::failed_precondition,
                fmt::format("{}: a buffer belongs to another device, or to an earlier time this one was open", card_->info.id));
  return ours->inner_;
}

SimBuffer::SimBuffer(std::shared_ptr<Session> session, std::unique_ptr<Buffer> inner, MemoryBudget::Share memory,
                     MemoryBudget::Share budget)
    : Buffer(inner->type()),
      session_(std::move(session)),
      inner_(std::move(inner)),
      memory_(std::move(memory)),
      budget_(std::move(budget)) {
  const std::lock_guard lock(session_->mutex_);
  session_->check_state();
  session_->buffers_.insert(this);
}

SimBuffer::~SimBuffer() {
  std::shared_ptr<Buffer> gone;
  const std::lock_guard lock(session_->mutex_);
  session_->buffers_.erase(this);
  gone.swap(inner_);
}

}  // namespace tenon::sim
