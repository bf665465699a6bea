#include "backends/cuda/context.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "backends/cuda/libraries.h"
#include "base/log.h"
#include "base/text/units.h"

namespace tenon::cuda {
namespace {

int ordinal_of(const std::string& id) {
  int ordinal = 0;
  const std::size_t colon = id.find(':');
  if (colon == std::string::npos) return 0;
  std::from_chars(id.data() + colon + 1, id.data() + id.size(), ordinal);
  return ordinal;
}

// An earlier kernel error, as opposed to a card that cannot be used at all.
bool keeps_the_process_out(Result result) { return result >= 700 && is_fatal(result); }

}  // namespace

BrokenProcess::BrokenProcess(const std::string& card)
    : Error(ErrorCode::unavailable, card + " cannot be opened: an earlier error broke its context in this process",
            "restart the process; with the setting isolate, every backend runs in a separate process") {}

Context::Context(const Driver& driver, const DeviceInfo& device, std::shared_ptr<MemoryBudget> budget, Compiler compiler)
    : driver_(driver),
      budget_(std::move(budget)),
      pool_(source()),
      transfers_(*this),
      direct_copies_(*this),
      modules_(*this, std::move(compiler)),
      products_(*this),
      captured_graphs_(*this) {
  card_.id = device.id;
  check(driver_.init(0), "starting the driver");
  find_card(device);
  const Result retained = driver_.context_retain(&raw_, card_.device);
  if (keeps_the_process_out(retained)) throw BrokenProcess(card_.id);
  check(retained, "opening the card");
  is_open_ = true;
  try {
    enter();
    const Result made = driver_.stream_create(&stream_, kStreamNonBlocking);
    if (keeps_the_process_out(made)) throw BrokenProcess(card_.id);
    check(made, "creating a stream");
  } catch (...) {
    is_open_ = false;
    driver_.context_release(card_.device);
    throw;
  }
}

Context::~Context() {
  try {
    close();
  } catch (const std::exception& error) {
    logging::warn("{} was not closed properly: {}", card_.id, error.what());
  }
}

Result find_device(const Driver& driver, const DeviceInfo& device, Device* found) {
  if (!device.pci_address.empty()) return driver.device_by_pci(found, device.pci_address.c_str());
  return driver.device_get(found, ordinal_of(device.id));
}

void Context::find_card(const DeviceInfo& device) {
  check(find_device(driver_, device, &card_.device), "finding the card");
  const auto attribute = [&](Attribute which) {
    int value = 0;
    check(driver_.device_attribute(&value, which, card_.device), "describing the card");
    return value;
  };
  card_.capability = attribute(kCapabilityMajor) * 10 + attribute(kCapabilityMinor);
  card_.multiprocessors = attribute(kMultiprocessors);
  card_.max_threads = attribute(kMaxThreadsPerBlock);
  check(driver_.driver_version(&card_.driver_version), "describing the driver");
}

void Context::enter() {
  if (!is_open_.load(std::memory_order_relaxed) || is_lost()) [[unlikely]]
    refuse();
  check(driver_.context_set_current(raw_), "entering the context");
}

void Context::refuse() const {
  if (is_lost())
    throw Error(ErrorCode::unavailable, card_.id + " was lost after an error",
                "run the program again; tensors that were only on the card are lost");
  throw Error(ErrorCode::failed_precondition, card_.id + " is closed");
}

void Context::fail(Result result, const char* what) {
  if (is_open_ && is_fatal(result)) is_lost_ = true;
  throw error_of(driver_, result, card_.id, what);
}

MemoryPool::Source Context::source() {
  return {.take = [this](std::uint64_t bytes) -> std::optional<DevicePointer> {
            DevicePointer address = 0;
            const Result result = driver_.memory_allocate(&address, bytes);
            if (result == kOutOfMemory) return std::nullopt;
            check(result, "allocating memory");
            return address;
          },
          .give_back = [this](DevicePointer address) { driver_.memory_free(address); },
          .limit_bytes = [this] { return budget_ ? budget_->limit_bytes() : std::numeric_limits<std::uint64_t>::max(); }};
}

Context::Memory Context::allocate(std::uint64_t bytes) {
  Memory memory;
  if (budget_) memory.share = budget_->reserve(bytes);
  if (const auto block = pool_.allocate(bytes)) {
    memory.block = *block;
    return memory;
  }
  std::size_t free = 0, total = 0;
  driver_.memory_info(&free, &total);
  const auto text = [](std::uint64_t count) { return format_bytes(static_cast<double>(count)); };
  throw Error(ErrorCode::resource_exhausted,
              fmt::format("{} has no room for {}: {} of {} are free", card_.id, text(bytes), text(free), text(total)),
              "free tensors that are not needed; nvidia-smi shows other users of the card");
}

void Context::finish() noexcept {
  if (!is_open_.load(std::memory_order_relaxed) || is_lost()) return;
  driver_.context_set_current(raw_);
  driver_.stream_synchronize(stream_);
}

void Context::lend(const MemoryPool::Block& block) {
  RawContext same = nullptr;
  check(driver_.context_retain(&same, card_.device), "lending memory");
  pool_.lend(block);
}

void Context::take_back(const MemoryPool::Block& block) noexcept {
  driver_.context_set_current(raw_);
  pool_.take_back(block);
  driver_.context_release(card_.device);
}

void Context::order(RawStream first, RawStream second) {
  RawEvent event = nullptr;
  check(driver_.event_create(&event, kEventDisableTiming), "creating an event");
  Result result = driver_.event_record(event, first);
  if (result == kSuccess) result = driver_.stream_wait_event(second, event, 0);
  driver_.event_destroy(event);  // once it has come to pass
  check(result, "ordering two streams");
}

void Context::close() {
  if (!is_open_) return;
  Result finished = kSuccess;
  if (!is_lost()) {
    driver_.context_set_current(raw_);
    finished = driver_.stream_synchronize(stream_);
    if (is_fatal(finished)) is_lost_ = true;
  }
  is_open_ = false;
  captured_graphs_.close(is_lost());
  products_.close(is_lost());
  modules_.close(is_lost());
  transfers_.close(is_lost());
  direct_copies_.close(is_lost());
  if (is_lost()) {
    pool_.abandon();
  } else {
    pool_.close();
    driver_.stream_destroy(stream_);
  }
  stream_ = nullptr;
  driver_.context_set_current(nullptr);
  const Result released = driver_.context_release(card_.device);
  // Other users in this process may also hold the context: cuBLASLt does once it has been used. A broken context is of no use.
  // Drivers that allow a new one create it after this call; driver 580 does not (BrokenProcess).
  if (is_lost() && finished != kDeinitialized) driver_.context_reset(card_.device);
  // At the end of the process the driver may have gone first, and everything with it.
  if (finished != kSuccess && finished != kDeinitialized)
    throw error_of(driver_, finished, card_.id, "waiting for outstanding work");
  if (released != kSuccess && !is_lost()) throw error_of(driver_, released, card_.id, "closing the card");
}

}  // namespace tenon::cuda
