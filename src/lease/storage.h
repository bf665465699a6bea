// Storage: the value of a tensor, in host memory, on a device, or both. Residency: the tensors on one open device.
//
// A value never changes once it is there, so copies in several places are equal. Before a device closes, its values move to host
// memory (spill); they are uploaded again on next use, on whatever device that is. Only a device that is lost takes with it
// values that existed nowhere else: reading one throws data_loss from then on.
//
// Lifetime: a Storage may be dropped at any time, from any thread, after its device and its manager.
// Thread safety: all calls may run concurrently. A device is not closed while one of its values is being read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/threads/fork_section.h"
#include "hal/memory_exchange.h"
#include "tenon/backend.h"

namespace tenon {

class Residency;

class Storage : public std::enable_shared_from_this<Storage> {
 public:
  static std::shared_ptr<Storage> from_host(HostArray array);
  // A result of an operation on the device of |residency|.
  static std::shared_ptr<Storage> on_device(const std::shared_ptr<Residency>& residency, std::shared_ptr<Buffer> buffer);
  // All results of one.
  static std::vector<std::shared_ptr<Storage>> on_device(const std::shared_ptr<Residency>& residency,
                                                         std::span<std::shared_ptr<Buffer>> buffers);
  class Made;  // only this class makes them
  Storage(const Made&, TensorType type) : type_(std::move(type)) {}
  ~Storage();

  const TensorType& type() const noexcept { return type_; }
  // The value in host memory, downloaded if it is nowhere else; the copy is kept. Throws data_loss, and what the device throws.
  HostArray to_host();
  // The value on the device of |residency|, uploaded if it is not there, evicting other values if it must. Called within an
  // operation on that device. The buffer stays while the pointer is held, even if the value moves elsewhere.
  std::shared_ptr<const Buffer> on(const std::shared_ptr<Residency>& residency);

  // The value as another library of this process can use it on the device it is on; nullopt unless it is on one that offers this.
  // Work on |stream| of that library comes after what produced the value (hal/memory_exchange.h). The borrower must not write.
  std::optional<MemoryExchange::Lent> lend(std::int64_t stream);
  std::optional<dlpack::Device> place() const;

  bool is_on_host() const;
  // The id of the device it is on; "" if it is in host memory alone.
  std::string device() const;
  bool is_lost() const;

 private:
  friend class Residency;
  [[noreturn]] void throw_lost() const;
  // With mutex_ held.
  const HostArray& download();
  void spill();
  void leave_device() noexcept;

  const TensorType type_;
  mutable SectionMutex mutex_;
  std::optional<HostArray> host_;
  // Both change with the mutex of home_ held as well, so that either mutex is enough to read them; whoever holds that of a
  // residency sees by |at_| whether it is the one.
  std::shared_ptr<Buffer> buffer_;
  std::shared_ptr<Residency> home_;  // of buffer_
  std::atomic<const Residency*> at_ = nullptr;
  std::atomic<std::uint64_t> last_use_ = 0;  // of buffer_, as home_ counts uses
  std::size_t position_ = 0;                 // in home_'s list, whose mutex guards it
  bool is_spilled_ = false;                  // it was on a device that it had to leave
  std::string loss_;                         // why the value is gone; "" if it is not
};

// One for each time a device is opened.
class Residency : public std::enable_shared_from_this<Residency> {
 public:
  struct Counters {
    std::atomic<std::uint64_t> spills{0}, restores{0}, evictions{0}, bytes_up{0}, bytes_down{0};
  };
  // |counters| must outlive the device's opening; they are shared by all openings of one device.
  Residency(std::string device_id, std::shared_ptr<OpenDevice> device, std::shared_ptr<Counters> counters);

  OpenDevice& device() const noexcept { return *device_; }
  const std::string& device_id() const noexcept { return device_id_; }
  Counters& counters() const noexcept { return *counters_; }
  std::size_t size() const;

  // The buffers of those values that are here, null for the others: on() brings those. Called within an operation.
  void find(std::span<const std::shared_ptr<Storage>> storages, std::span<std::shared_ptr<const Buffer>> buffers);

  // Memory for a result. Least recently used values are evicted to host memory until there is room. Throws resource_exhausted.
  std::unique_ptr<Buffer> allocate(const TensorType& type);
  std::unique_ptr<Buffer> upload(const HostArray& array);
  HostArray download(const Buffer& buffer);

  // Moves every value to host memory. False, with some still on the device, if one could not be read although the device is not
  // lost. No operation may run.
  bool spill();
  // The device is gone: values that exist nowhere else are lost because of |reason|.
  void lose(const std::string& reason);

 private:
  friend class Storage;
  void add(std::span<const std::shared_ptr<Storage>> storages, std::span<std::shared_ptr<Buffer>> buffers);
  void add(Storage& storage, std::shared_ptr<Buffer> buffer);
  // With mutex_ held, and room in the list.
  void put(Storage& storage, std::shared_ptr<Buffer> buffer, std::shared_ptr<Residency> self) noexcept;
  // The caller keeps this object, and drops the buffer.
  std::shared_ptr<Buffer> remove(Storage& storage) noexcept;
  void touch(Storage& storage) noexcept { storage.last_use_.store(++uses_, std::memory_order_relaxed); }
  // Evicts one value that nobody uses; false if there is none.
  bool evict_one();
  template <class Allocate>
  std::unique_ptr<Buffer> with_room(const Allocate& allocate);
  std::vector<std::shared_ptr<Storage>> oldest(std::size_t count) const;
  std::shared_ptr<Storage> any() const;

  const std::string device_id_;
  const std::shared_ptr<OpenDevice> device_;
  const std::shared_ptr<Counters> counters_;
  mutable SectionMutex mutex_;  // taken after a Storage's, never before
  std::vector<Storage*> storages_;
  std::atomic<std::uint64_t> uses_ = 0;
};

}  // namespace tenon
