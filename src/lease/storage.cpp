#include "lease/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "tenon/error.h"

namespace tenon {

class Storage::Made {};

std::shared_ptr<Storage> Storage::from_host(HostArray array) {
  auto storage = std::make_shared<Storage>(Made(), TensorType{array.dtype(), array.shape()});
  storage->host_ = std::move(array);
  return storage;
}

std::shared_ptr<Storage> Storage::on_device(const std::shared_ptr<Residency>& residency, std::shared_ptr<Buffer> buffer) {
  auto storage = std::make_shared<Storage>(Made(), buffer->type());
  residency->add(*storage, std::move(buffer));
  return storage;
}

std::vector<std::shared_ptr<Storage>> Storage::on_device(const std::shared_ptr<Residency>& residency,
                                                         std::span<std::shared_ptr<Buffer>> buffers) {
  std::vector<std::shared_ptr<Storage>> storages;
  storages.reserve(buffers.size());
  for (const std::shared_ptr<Buffer>& buffer : buffers) storages.push_back(std::make_shared<Storage>(Made(), buffer->type()));
  residency->add(storages, buffers);
  return storages;
}

Storage::~Storage() { leave_device(); }

HostArray Storage::to_host() {
  const std::lock_guard lock(mutex_);
  return download();
}

const HostArray& Storage::download() {
  if (host_) return *host_;
  if (!buffer_) throw_lost();
  try {
    host_ = home_->download(*buffer_);
  } catch (const Error&) {
    if (!home_->device().is_lost()) throw;
    loss_ = home_->device_id() + " was lost";
    leave_device();
    throw_lost();
  }
  return *host_;
}

std::shared_ptr<const Buffer> Storage::on(const std::shared_ptr<Residency>& residency) {
  const std::lock_guard lock(mutex_);
  if (home_ == residency) {
    residency->touch(*this);
    return buffer_;
  }
  const HostArray array = download();
  std::shared_ptr<Buffer> buffer = residency->upload(array);
  leave_device();
  residency->add(*this, std::move(buffer));
  if (std::exchange(is_spilled_, false)) ++residency->counters().restores;
  return buffer_;
}

std::optional<MemoryExchange::Lent> Storage::lend(std::int64_t stream) {
  const std::lock_guard lock(mutex_);
  auto* const able = home_ ? dynamic_cast<MemoryExchange*>(&home_->device()) : nullptr;
  if (!able) return std::nullopt;
  return able->lend(buffer_, stream);
}

std::optional<dlpack::Device> Storage::place() const {
  const std::lock_guard lock(mutex_);
  const auto* const able = home_ ? dynamic_cast<const MemoryExchange*>(&home_->device()) : nullptr;
  if (!able) return std::nullopt;
  return able->place();
}

bool Storage::is_on_host() const {
  const std::lock_guard lock(mutex_);
  return host_.has_value();
}

std::string Storage::device() const {
  const std::lock_guard lock(mutex_);
  return home_ ? home_->device_id() : std::string();
}

bool Storage::is_lost() const {
  const std::lock_guard lock(mutex_);
  return !host_ && !buffer_;
}

void Storage::throw_lost() const {
  throw Error(ErrorCode::data_loss, fmt::format("a tensor of {} was lost with its device: {}", to_string(type_.shape), loss_),
              "compute it again; use to_host() to keep values that must survive the loss of a device");
}

void Storage::spill() {
  download();
  leave_device();
  is_spilled_ = true;
}

void Storage::leave_device() noexcept {
  if (!home_) return;
  const std::shared_ptr<Residency> home = home_;
  const std::shared_ptr<Buffer> left = home->remove(*this);
}

Residency::Residency(std::string device_id, std::shared_ptr<OpenDevice> device, std::shared_ptr<Counters> counters)
    : device_id_(std::move(device_id)),
      device_(std::move(device)),
      counters_(std::move(counters)) {}

std::size_t Residency::size() const {
  const std::lock_guard lock(mutex_);
  return storages_.size();
}

void Residency::put(Storage& storage, std::shared_ptr<Buffer> buffer, std::shared_ptr<Residency> self) noexcept {
  storage.position_ = storages_.size();
  storages_.push_back(&storage);
  storage.buffer_ = std::move(buffer);
  storage.home_ = std::move(self);
  storage.at_.store(this, std::memory_order_relaxed);
  touch(storage);
}

void Residency::add(Storage& storage, std::shared_ptr<Buffer> buffer) {
  std::shared_ptr<Residency> self = shared_from_this();
  const std::lock_guard lock(mutex_);
  if (storages_.size() == storages_.capacity()) storages_.reserve(2 * storages_.size() + 1);
  put(storage, std::move(buffer), std::move(self));
}

void Residency::add(std::span<const std::shared_ptr<Storage>> storages, std::span<std::shared_ptr<Buffer>> buffers) {
  const std::shared_ptr<Residency> self = shared_from_this();
  const std::lock_guard lock(mutex_);
  const std::size_t count = storages_.size() + storages.size();
  if (count > storages_.capacity()) storages_.reserve(2 * count);
  for (std::size_t i = 0; i < storages.size(); ++i) put(*storages[i], std::move(buffers[i]), self);
}

std::shared_ptr<Buffer> Residency::remove(Storage& storage) noexcept {
  const std::lock_guard lock(mutex_);
  storages_[storage.position_] = storages_.back();
  storages_[storage.position_]->position_ = storage.position_;
  storages_.pop_back();
  storage.at_.store(nullptr, std::memory_order_relaxed);
  storage.home_.reset();
  return std::move(storage.buffer_);
}

void Residency::find(std::span<const std::shared_ptr<Storage>> storages, std::span<std::shared_ptr<const Buffer>> buffers) {
  const std::lock_guard lock(mutex_);
  std::uint64_t use = uses_.fetch_add(storages.size(), std::memory_order_relaxed);
  for (std::size_t i = 0; i < storages.size(); ++i) {
    Storage& storage = *storages[i];
    if (storage.at_.load(std::memory_order_relaxed) != this) continue;
    storage.last_use_.store(++use, std::memory_order_relaxed);
    buffers[i] = storage.buffer_;
  }
}

std::unique_ptr<Buffer> Residency::allocate(const TensorType& type) {
  return with_room([&] { return device_->allocate(type); });
}

std::unique_ptr<Buffer> Residency::upload(const HostArray& array) {
  std::unique_ptr<Buffer> buffer = with_room([&] { return device_->upload(array); });
  counters_->bytes_up += array.bytes();
  return buffer;
}

HostArray Residency::download(const Buffer& buffer) {
  HostArray array = device_->download(buffer);
  counters_->bytes_down += array.bytes();
  return array;
}

template <class Allocate>
std::unique_ptr<Buffer> Residency::with_room(const Allocate& allocate) {
  for (;;) try {
      return allocate();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::resource_exhausted || !evict_one()) throw;
    }
}

// A storage whose last owner is just dropping it cannot be locked any more; its destructor takes it off the list, and it has
// nothing that anybody could still want.
std::vector<std::shared_ptr<Storage>> Residency::oldest(std::size_t count) const {
  std::vector<std::shared_ptr<Storage>> found;
  std::vector<std::pair<std::uint64_t, Storage*>> by_use;
  const std::lock_guard lock(mutex_);
  by_use.reserve(storages_.size());
  for (Storage* storage : storages_) by_use.emplace_back(storage->last_use_.load(std::memory_order_relaxed), storage);
  std::ranges::make_heap(by_use, std::greater());
  for (; !by_use.empty() && found.size() < count; by_use.pop_back()) {
    std::ranges::pop_heap(by_use, std::greater());
    if (std::shared_ptr<Storage> alive = by_use.back().second->weak_from_this().lock()) found.push_back(std::move(alive));
  }
  return found;
}

std::shared_ptr<Storage> Residency::any() const {
  const std::lock_guard lock(mutex_);
  for (Storage* storage : storages_)
    if (std::shared_ptr<Storage> alive = storage->weak_from_this().lock()) return alive;
  return nullptr;
}

bool Residency::evict_one() {
  constexpr std::size_t kFew = 16;  // most of the time one of the oldest will do
  for (const std::size_t count : {kFew, std::numeric_limits<std::size_t>::max()})
    for (const std::shared_ptr<Storage>& storage : oldest(count)) {
      // Another thread may hold this one's mutex while it waits for room itself, so this must not wait for it.
      const std::unique_lock lock(storage->mutex_, std::try_to_lock);
      if (!lock || storage->home_.get() != this || storage->buffer_.use_count() > 1) continue;
      storage->spill();
      ++counters_->evictions;
      return true;
    }
  return false;
}

bool Residency::spill() {
  for (;;) {
    const std::shared_ptr<Storage> next = any();
    if (!next) return true;
    Storage& storage = *next;
    const std::lock_guard lock(storage.mutex_);
    if (storage.home_.get() != this) continue;
    try {
      storage.spill();
      ++counters_->spills;
    } catch (const std::exception&) {        // not only Error: the host may have no memory, and the caller is a thread
      if (!storage.loss_.empty()) continue;  // the device is lost, and this value with it
      return false;
    }
  }
}

void Residency::lose(const std::string& reason) {
  for (;;) {
    const std::shared_ptr<Storage> next = any();
    if (!next) return;
    Storage& storage = *next;
    const std::lock_guard lock(storage.mutex_);
    if (storage.home_.get() != this) continue;
    if (!storage.host_) storage.loss_ = reason;
    storage.leave_device();
  }
}

}  // namespace tenon
