// Context: one card from open to close: its primary context, the stream for all work, its memory and its compiled
// kernels.
//
// All work goes to one stream in the order of the calls; a caller that enqueues several operations that belong together holds
// queue() meanwhile. Memory can therefore be released and reused while work that reads it is still queued. Everything that is
// slow to create is created on first use, so opening takes only the driver's own time.
//
// Lifetime: buffers and executables share the context. After close() they may only be destroyed.
// Thread safety: all calls may run concurrently, except that close() must be called alone.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backends/cuda/api.h"
#include "backends/cuda/captured_runs.h"
#include "backends/cuda/kernel_modules.h"
#include "backends/cuda/memory/direct_copies.h"
#include "backends/cuda/memory/memory_pool.h"
#include "backends/cuda/memory/transfers.h"
#include "backends/cuda/products.h"
#include "tenon/backend.h"
#include "tenon/error.h"

namespace tenon::cuda {

struct Card {
  std::string id;  // "cuda:0"
  Device device = 0;
  int capability = 0;  // 90: compute capability 9.0
  int multiprocessors = 1;
  int max_threads = 1024;  // of a block
  int driver_version = 0;  // 13000: CUDA 13.0
};

// The driver's number of |device|. The driver numbers cards by speed and skips those hidden by CUDA_VISIBLE_DEVICES, so the PCI
// slot identifies the card.
Result find_device(const Driver& driver, const DeviceInfo& device, Device* found);

// An earlier fatal error locks this process out of the card; only another process can open it.
class BrokenProcess : public Error {
 public:
  explicit BrokenProcess(const std::string& card);
};

class Context {
 public:
  // Throws unavailable, resource_exhausted; BrokenProcess.
  Context(const Driver& driver, const DeviceInfo& device, std::shared_ptr<MemoryBudget> budget, Compiler compiler);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const noexcept { return driver_; }
  const Card& card() const noexcept { return card_; }
  RawStream stream() const noexcept { return stream_; }
  std::mutex& queue() noexcept { return queue_; }

  // Makes this the calling thread's context. Throws failed_precondition after close(), unavailable if the card is lost.
  void enter();
  // Throws the error of |result|; |what| names the failed operation. A fatal error marks the card as lost.
  void check(Result result, const char* what) {
    if (result != kSuccess) [[unlikely]]
      fail(result, what);
  }
  // Blocks until all work in the stream is done.
  void wait() { check(driver_.stream_synchronize(stream_), "waiting for the card"); }
  // The same where nothing can be done about an error; nothing after close().
  void finish() noexcept;

  // A block and its share of the budget. Throws resource_exhausted.
  struct Memory {
    MemoryPool::Block block;
    MemoryBudget::Share share;
  };
  Memory allocate(std::uint64_t bytes);
  MemoryPool& pool() noexcept { return pool_; }
  Transfers& transfers() noexcept { return transfers_; }
  DirectCopies& direct_copies() noexcept { return direct_copies_; }
  KernelModules& modules() noexcept { return modules_; }
  Products& products() noexcept { return products_; }
  CapturedGraphs& captured_graphs() noexcept { return captured_graphs_; }

  // Keeps |block| and the primary context, also after close(), until it is taken back.
  void lend(const MemoryPool::Block& block);
  void take_back(const MemoryPool::Block& block) noexcept;
  // The order between our stream and one of another library (numbered as in hal/memory_exchange.h): what was submitted to |first|
  // so far comes before what is submitted to |second| from now on.
  void order(RawStream first, RawStream second);

  // Frees everything that is not lent and releases the primary context.
  void close();
  bool is_lost() const noexcept { return is_lost_.load(std::memory_order_relaxed); }

 private:
  [[noreturn]] void fail(Result result, const char* what);
  [[noreturn]] void refuse() const;
  void find_card(const DeviceInfo& device);
  MemoryPool::Source source();

  const Driver& driver_;
  Card card_;
  std::shared_ptr<MemoryBudget> budget_;
  RawContext raw_ = nullptr;
  RawStream stream_ = nullptr;
  std::mutex queue_;
  std::atomic<bool> is_open_{false}, is_lost_{false};
  MemoryPool pool_;
  Transfers transfers_;
  DirectCopies direct_copies_;
  KernelModules modules_;
  Products products_;
  CapturedGraphs captured_graphs_;
};

// A tensor in the card's memory.
class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(std::shared_ptr<Context> context, TensorType type, Context::Memory memory)
      : Buffer(std::move(type)),
        context_(std::move(context)),
        memory_(std::move(memory)) {}
  // Over memory of another library, which is |owner|'s.
  DeviceBuffer(std::shared_ptr<Context> context, TensorType type, DevicePointer address, std::shared_ptr<const void> owner)
      : Buffer(std::move(type)),
        context_(std::move(context)),
        memory_{.block = {address, 0}, .share = {}},
        owner_(std::move(owner)) {}
  ~DeviceBuffer() override {
    drop_copy();
    if (owner_)
      context_->finish();  // the owner may reuse the memory at once
    else
      context_->pool().give_back(memory_.block);
  }

  const Context* context() const noexcept { return context_.get(); }
  const MemoryPool::Block& block() const noexcept { return memory_.block; }
  bool is_adopted() const noexcept { return owner_ != nullptr; }
  DevicePointer address() const noexcept { return memory_.block.address; }

  // The content in a slot of host memory, if the program that wrote it also copied it there; valid once that run is complete.
  void* copy() const noexcept { return copy_; }
  // |slot| may be null; |reader| is notified when the content is read.
  void set_copy(void* slot, std::shared_ptr<std::atomic<bool>> reader) noexcept {
    drop_copy();
    copy_ = slot;
    reader_ = std::move(reader);
  }
  void was_read() const noexcept {
    if (reader_) reader_->store(true, std::memory_order_relaxed);
  }

 private:
  void drop_copy() noexcept {
    if (copy_) context_->transfers().give_back_slot(std::exchange(copy_, nullptr));
  }

  std::shared_ptr<Context> context_;
  Context::Memory memory_;
  std::shared_ptr<const void> owner_;
  void* copy_ = nullptr;
  std::shared_ptr<std::atomic<bool>> reader_;
};

}  // namespace tenon::cuda
