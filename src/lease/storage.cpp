#include "lease/storage.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "tenon/error.h"

namespace tenon {

std::shared_ptr<Storage> Storage::from_host(HostArray array) {
  const std::shared_ptr<Storage> storage(new Storage({array.dtype(), array.shape()}));
  storage->host_ = std::move(array);
  return storage;
}

std::shared_ptr<Storage> Storage::on_device(std::shared_ptr<Residency> residency, std::shared_ptr<Buffer> buffer) {
  const std::shared_ptr<Storage> storage(new Storage(buffer->type()));
  const std::lock_guard lock(storage->mutex_);  // others see it as soon as it is in the list
  storage->buffer_ = std::move(buffer);
  storage->position_ = residency->add(*storage);
  storage->home_ = std::move(residency);
  return storage;
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
    residency->touch(position_);
    return buffer_;
  }
  const HostArray array = download();
  std::shared_ptr<Buffer> buffer = residency->upload(array);
  leave_device();
  buffer_ = std::move(buffer);
  position_ = residency->add(*this);
  home_ = residency;
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
  home_->remove(position_);
  buffer_.reset();
  home_.reset();
}

Residency::Residency(std::string device_id, std::shared_ptr<OpenDevice> device, std::shared_ptr<Counters> counters)
    : device_id_(std::move(device_id)),
      device_(std::move(device)),
      counters_(std::move(counters)) {}

std::size_t Residency::size() const {
  const std::lock_guard lock(mutex_);
  return storages_.size();
}

std::list<Storage*>::iterator Residency::add(Storage& storage) {
  const std::lock_guard lock(mutex_);
  return storages_.insert(storages_.end(), &storage);
}

void Residency::remove(std::list<Storage*>::iterator position) noexcept {
  const std::lock_guard lock(mutex_);
  storages_.erase(position);
}

void Residency::touch(std::list<Storage*>::iterator position) {
  const std::lock_guard lock(mutex_);
  storages_.splice(storages_.end(), storages_, position);
}

std::shared_ptr<Buffer> Residency::allocate(const TensorType& type) {
  return with_room([&] { return std::shared_ptr<Buffer>(device_->allocate(type)); });
}

std::shared_ptr<Buffer> Residency::upload(const HostArray& array) {
  std::shared_ptr<Buffer> buffer = with_room([&] { return std::shared_ptr<Buffer>(device_->upload(array)); });
  counters_->bytes_up += array.bytes();
  return buffer;
}

HostArray Residency::download(const Buffer& buffer) {
  HostArray array = device_->download(buffer);
  counters_->bytes_down += array.bytes();
  return array;
}

template <class Allocate>
std::shared_ptr<Buffer> Residency::with_room(const Allocate& allocate) {
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
  const std::lock_guard lock(mutex_);
  for (Storage* storage : storages_) {
    if (found.size() == count) break;
    if (std::shared_ptr<Storage> alive = storage->weak_from_this().lock()) found.push_back(std::move(alive));
  }
  return found;
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
    const std::vector<std::shared_ptr<Storage>> next = oldest(1);
    if (next.empty()) return true;
    Storage& storage = *next.front();
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
    const std::vector<std::shared_ptr<Storage>> next = oldest(1);
    if (next.empty()) return;
    Storage& storage = *next.front();
    const std::lock_guard lock(storage.mutex_);
    if (storage.home_.get() != this) continue;
    if (!storage.host_) storage.loss_ = reason;
    storage.leave_device();
  }
}

}  // namespace tenon
