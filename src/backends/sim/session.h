// Card: a simulated device, which outlives its sessions. Session: one period of being open. SimBuffer: memory of a session.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_set>

#include "backends/sim/faults.h"
#include "tenon/backend.h"
#include "tenon/error.h"

namespace tenon::sim {

struct Card {
  Card(SimulatedDevice description, DeviceInfo device_info);

  void wait(double seconds) const;  // not in virtual time
  bool is_unplugged() const;
  // Throws resource_exhausted if the device does not have enough free memory.
  MemoryBudget::Share take(std::uint64_t bytes) const;
  Error out_of_memory(std::uint64_t bytes, std::string_view why) const;

  const SimulatedDevice device;
  const DeviceInfo info;
  const std::shared_ptr<MemoryBudget> memory;
  Faults faults;

  std::mutex mutex;          // protects the following fields
  int sessions = 0;          // open or being opened
  bool is_dirty = false;     // the last user crashed
  bool is_refusing = false;  // open() fails until recover()
};

class SimBuffer;

// States: open -> closed (by close(), or abandoned without it), open -> lost. Only an open session is usable.
class Session {
 public:
  Session(std::shared_ptr<Card> card, std::unique_ptr<OpenDevice> inner) : card_(std::move(card)), inner_(std::move(inner)) {}

  Card& card() const { return *card_; }
  OpenDevice& inner() const { return *inner_; }

  // Throws unavailable if the device is lost, failed_precondition if it is closed.
  void check_open() const;
  bool is_lost() const noexcept;
  void close();             // may throw; closed in any case
  void abandon() noexcept;  // its user disappeared without close()
  // Loses the device while it is in use: every buffer is gone. Returns the error to throw.
  Error lose();
  // Waits like a computation: ends early if the device is lost, and throws if the StopScope of the thread is met.
  void compute_for(double seconds) const;
  // Waits like a driver call that hangs: only lose() ends it early, whatever the thread's StopScope says.
  void hang() const;
  // The inner buffer of |buffer|; it stays alive while the caller holds it, even if the device is lost meanwhile. Throws like
  // check_open, and failed_precondition for a buffer of another session.
  std::shared_ptr<Buffer> hold(const Buffer& buffer) const;

 private:
  friend class SimBuffer;
  enum class State : std::uint8_t { open, closed, lost };

  void check_state() const;  // with the mutex held
  // Releases the memory of every buffer. False if the session had already ended.
  bool end(State state) noexcept;

  const std::shared_ptr<Card> card_;
  const std::unique_ptr<OpenDevice> inner_;
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  State state_ = State::open;
  std::unordered_set<SimBuffer*> buffers_;
};

class SimBuffer final : public Buffer {
 public:
  SimBuffer(std::shared_ptr<Session> session, std::unique_ptr<Buffer> inner, MemoryBudget::Share memory,
            MemoryBudget::Share budget);
  ~SimBuffer() override;

 private:
  friend class Session;
  const std::shared_ptr<Session> session_;
  std::shared_ptr<Buffer> inner_;  // null when the session has ended; this and the next with the session's mutex held
  MemoryBudget::Share memory_;
  MemoryBudget::Share budget_;
};

}  // namespace tenon::sim
