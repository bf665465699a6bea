// A simulated card that a test controls, and its owner in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "eventually.h"
#include "lease/owner/device_owner.h"
#include "manual_clock.h"
#include "temporary_folder.h"
#include "tenon/error.h"

namespace tenon::test {

using namespace std::chrono_literals;
constexpr std::chrono::minutes kLimit{1};  // for a fault; nothing here takes long

template <class Call>
ErrorCode code_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

// Stops who passes while it is shut.
class Gate {
 public:
  void shut() { is_shut_ = true; }
  void open() {
    is_shut_ = false;
    is_shut_.notify_all();
  }
  void pass() {
    ++arrivals_;
    is_shut_.wait(true);
  }
  ::testing::AssertionResult is_reached(int times = 1) const {
    return eventually(kLimit, [&] { return arrivals_ >= times; });
  }

 private:
  std::atomic<bool> is_shut_{false};
  std::atomic<int> arrivals_{0};
};

// What happens to the card, and what is to happen.
struct Card {
  ManualClock clock;
  Gate at_open, at_close;
  std::atomic<int> open_attempts{0}, recoveries{0};
  std::vector<ErrorCode> open_errors;  // of the next attempts, the last first; set while the card is closed
  std::atomic<bool> is_lost{false}, close_fails{false}, download_fails{false}, can_be_abandoned{false};
  std::atomic<int> abandoned{0};
  std::atomic<std::thread::id> owner_thread;  // which opens and closes it

  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    log_.push_back(std::move(what));
  }
  std::vector<std::string> log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> log_;
};

class CardBuffer final : public Buffer {
 public:
  explicit CardBuffer(HostArray array) : Buffer({array.dtype(), array.shape()}), array(std::move(array)) {}
  const HostArray array;
};

class OpenCard final : public OpenDevice {
 public:
  OpenCard(std::shared_ptr<Card> card, DeviceInfo info) : card_(std::move(card)), info_(std::move(info)) {}
  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Executable> compile(const Graph&) override { throw Error(ErrorCode::unimplemented, "this card runs nothing"); }
  std::unique_ptr<Buffer> allocate(const TensorType& type) override { return upload(HostArray::empty(type.dtype, type.shape)); }
  std::unique_ptr<Buffer> upload(const HostArray& array) override { return std::make_unique<CardBuffer>(array); }
  HostArray download(const Buffer& buffer) override {
    if (card_->download_fails || card_->is_lost) throw Error(ErrorCode::unavailable, "no answer");
    card_->note("download");
    return static_cast<const CardBuffer&>(buffer).array;
  }
  void close() override {
    card_->at_close.pass();
    card_->note("close");
    if (card_->close_fails) throw Error(ErrorCode::internal, "it does not close");
  }
  bool is_lost() const noexcept override { return card_->is_lost; }
  bool abandon() noexcept override {
    ++card_->abandoned;
    if (card_->can_be_abandoned) card_->is_lost = true;
    return card_->can_be_abandoned;
  }

 private:
  const std::shared_ptr<Card> card_;
  const DeviceInfo info_;
};

class CardBackend final : public Backend {
 public:
  explicit CardBackend(std::shared_ptr<Card> card) : card_(std::move(card)) {}
  std::string_view name() const noexcept override { return "card"; }
  std::vector<DeviceInfo> devices() override { return {}; }
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions&) override {
    card_->owner_thread = std::this_thread::get_id();
    ++card_->open_attempts;
    card_->at_open.pass();
    if (!card_->open_errors.empty()) {
      const ErrorCode code = card_->open_errors.back();
      card_->open_errors.pop_back();
      throw Error(code, "it does not open");
    }
    card_->is_lost = false;
    card_->note("open");
    return std::make_unique<OpenCard>(card_, device);
  }
  void recover(const DeviceInfo&) override { ++card_->recoveries; }

 private:
  const std::shared_ptr<Card> card_;
};

// What another thread waits for. Dropped, it is cancelled: a test that fails must not hang.
template <class T>
struct Asked {
  std::stop_source stop;
  std::thread::id thread;
  std::future<T> answer;

  template <class Ask>
  explicit Asked(Ask ask) {
    std::promise<std::thread::id> started;
    std::future<std::thread::id> id = started.get_future();
    answer = std::async(std::launch::async, [ask, cancel = stop.get_token(), started = std::move(started)]() mutable {
      started.set_value(std::this_thread::get_id());
      return ask(cancel);
    });
    thread = id.get();
  }
  ~Asked() { stop.request_stop(); }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  // Waits for it. Throws what was thrown there.
  T get() {
    if (answer.wait_for(kLimit) != std::future_status::ready) throw Error(ErrorCode::internal, "no answer to a request");
    return answer.get();
  }
};

class DeviceOwnerTest : public ::testing::Test {
 protected:
  DeviceOwnerTest() {
    options_.device.id = "card:0";
    options_.device.exclusive = true;
    options_.backend = std::make_shared<CardBackend>(card_);
    options_.turnstile = turnstile_;
    options_.clock = std::shared_ptr<const Clock>(card_, &card_->clock);
    options_.policy = KeepOpen::always(1);
    options_.quantum_seconds = 10;
    options_.min_hold_seconds = 1;
  }
  ~DeviceOwnerTest() override {
    card_->at_open.open();
    card_->at_close.open();
    if (owner_) owner_->shut_down();
  }

  // Made of options_ on first use.
  DeviceOwner& owner() {
    if (!owner_) owner_ = DeviceOwner::make(options_);
    return *owner_;
  }
  Lease lease(const LeaseOptions& options = {}) { return owner().acquire(options); }
  Asked<Lease> ask(LeaseOptions options = {}) {
    owner();
    return Asked<Lease>([this, options](const std::stop_token& cancel) mutable {
      options.cancel = cancel;
      return lease(options);
    });
  }
  // Another process: the turnstile cannot tell it from a thread that enters by itself.
  Asked<Turnstile::Pass> enter_from_elsewhere() {
    return Asked<Turnstile::Pass>([this](const std::stop_token& cancel) { return turnstile_.enter({.cancel = cancel}); });
  }

  void advance(Clock::Duration by) { card_->clock.advance(by); }
  // The owner thread has done all it does at the present time.
  ::testing::AssertionResult settles() { return card_->clock.settle(card_->owner_thread); }
  DeviceState state() { return owner().status().state; }
  DeviceCounters counters() { return owner().status().counters; }
  ::testing::AssertionResult reaches(DeviceState wanted) {
    const auto result = eventually(kLimit, [&] { return state() == wanted; });
    return result ? result : ::testing::AssertionFailure() << "it is " << name(state()) << ", not " << name(wanted);
  }
  ::testing::AssertionResult has_users(int count) {
    return eventually(kLimit, [&] { return owner().queue_length() == count; });
  }
  // |count| places in the queue of processes, ours included, and the owner knows.
  ::testing::AssertionResult has_places(std::size_t count) {
    const auto result = eventually(kLimit, [&] { return turnstile_.queue().places.size() == count; });
    return result ? settles() : result;
  }

  const std::shared_ptr<Card> card_ = std::make_shared<Card>();
  const TemporaryFolder folder_;
  const Turnstile turnstile_{RunDirectory::at(folder_.path().string()), "card:0"};
  DeviceOwner::Options options_;
  std::shared_ptr<DeviceOwner> owner_;
};

}  // namespace tenon::test
