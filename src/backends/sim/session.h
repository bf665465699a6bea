// Card: a simulated device as it outlives its sessions. Session: one time of being open. SimBuffer: memory of a session.
#pragma once

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
  // Throws resource_exhausted when the device has not that much memory left.
  MemoryBudget::Share take(std::uint64_t bytes) const;
  Error out_of_memory(std::uint64_t bytes, std::string_view why) const;

  const SimulatedDevice device;
  const DeviceInfo info;
  const std::shared_ptr<MemoryBudget> memory;
  Faults faults;

  std::mutex mutex;          // of what follows
  int sessions = 0;          // open or being opened
  bool is_dirty = false;     // the last user crashed
  bool is_refusing = false;  // and the device shows it, until recover()
};

class SimBuffer;

// States: open -> closed (by close(), or abandoned without it), open -> lost. Only an open session can be used.
class Session {
 public:
  Session(std::shared_ptr<Card> card, std::unique_ptr<OpenDevice> inner) : card_(std::move(card)), inner_(std::move(inner)) {}

  Card& card() const { return *card_; }
  OpenDevice& inner() const { return *inner_; }

  // Throws unavailable when the device is lost, failed_precondition when it is closed.
  void check_open() const;
  bool is_lost() const noexcept;
  void close();             // may throw; closed in any case
  void abandon() noexcept;  // its user went away without close()
  // The device goes away under its users: every buffer is gone. Returns what to throw.
  Error lose();
  // What |buffer| stands for; stays alive while held, though the device be lost meanwhile. Throws as check_open does, and
  // failed_precondition for a buffer of another session.
  std::shared_ptr<Buffer> hold(const Buffer& buffer) const;

 private:
  friend class SimBuffer;
  enum class State : std::uint8_t { open, closed, lost };

  void check_state() const;  // with the mutex held
  // Takes every buffer's memory back. False if the session had ended already.
  bool end(State state) noexcept;

  const std::shared_ptr<Card> card_;
  const std::unique_ptr<OpenDevice> inner_;
  mutable std::mutex mutex_;
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
