#include "backends/cuda/backend.h"

#include <fmt/format.h>

#include <cstring>

#include "backends/cuda/libraries.h"
#include "backends/cuda/nccl/group.h"
#include "base/log.h"
#include "device/detectors.h"
#include "device/nvidia/nvidia_management.h"
#include "hal/memory_exchange.h"
#include "hal/worker/hosted.h"
#include "hal/worker/worker.h"

namespace tenon::cuda {
namespace {

RawStream stream_of(std::int64_t number) { return reinterpret_cast<RawStream>(static_cast<std::intptr_t>(number)); }

// What another library has of a buffer.
class LentBuffer {
 public:
  LentBuffer(std::shared_ptr<Context> context, std::shared_ptr<const Buffer> buffer, std::int64_t stream)
      : context_(std::move(context)),
        buffer_(std::move(buffer)),
        stream_(stream) {
    if (!ours().is_adopted()) context_->lend(ours().block());
  }
  // The memory is reused in the order of our stream, which follows the borrower's default stream. Other streams may be gone by
  // now, so that only waiting for all of them is safe.
  ~LentBuffer() {
    try {
      context_->enter();
      if (stream_ == kDefaultStream)
        context_->order(stream_of(stream_), context_->stream());
      else
        context_->driver().context_synchronize();
    } catch (const Error&) {
      // Closed or lost: nothing of ours reuses the memory, and freeing it waits for its users.
    }
    if (!ours().is_adopted()) context_->take_back(ours().block());
  }
  LentBuffer(const LentBuffer&) = delete;
  LentBuffer& operator=(const LentBuffer&) = delete;

 private:
  const DeviceBuffer& ours() const { return static_cast<const DeviceBuffer&>(*buffer_); }

  std::shared_ptr<Context> context_;
  std::shared_ptr<const Buffer> buffer_;
  std::int64_t stream_;
};

class CudaDevice final : public OpenDevice, public DirectTransfers, public MemoryExchange, public Collectives {
 public:
  CudaDevice(DeviceInfo info, std::shared_ptr<Context> context, const ExecutableOptions& programs, const nccl::Library* nccl)
      : info_(std::move(info)),
        context_(std::move(context)),
        programs_(programs),
        nccl_(nccl) {}

  const DeviceInfo& info() const noexcept override { return info_; }

  std::unique_ptr<Executable> compile(const Graph& graph) override {
    context_->enter();
    return std::make_unique<CudaExecutable>(context_, graph, programs_);
  }

  std::unique_ptr<Buffer> allocate(const TensorType& type) override {
    context_->enter();
    return make(type);
  }

  std::unique_ptr<Buffer> upload(const HostArray& array) override {
    context_->enter();
    std::unique_ptr<DeviceBuffer> buffer = make({array.dtype(), array.shape()});
    context_->transfers().upload(buffer->address(), array.data(), array.bytes());
    return buffer;
  }

  HostArray download(const Buffer& buffer) override {
    const DeviceBuffer& mine = ours(buffer);
    context_->enter();
    HostArray array = HostArray::empty(buffer.type().dtype, buffer.type().shape);
    if (array.bytes() == 0) return array;
    mine.was_read();
    if (mine.copy())
      std::memcpy(array.mutable_data(), mine.copy(), array.bytes());
    else
      context_->transfers().download(array.mutable_data(), mine.address(), array.bytes());
    return array;
  }

  void pin(std::byte* memory, std::size_t bytes) override {
    context_->enter();
    context_->direct_copies().pin(memory, bytes);
  }
  void unpin(std::byte* memory) noexcept override { context_->direct_copies().unpin(memory); }
  void start_upload(Buffer& to, std::size_t offset, const std::byte* from, std::size_t bytes, int slot) override {
    context_->direct_copies().start_upload(ours(to).address() + offset, from, bytes, slot);
  }
  void start_download(std::byte* to, const Buffer& from, std::size_t offset, std::size_t bytes, int slot) override {
    context_->direct_copies().start_download(to, ours(from).address() + offset, bytes, slot);
  }
  bool is_complete(int slot) override { return context_->direct_copies().is_complete(slot); }

  dlpack::Device place() const override {
    Device found = -1;
    std::int32_t ordinal = 0;
    while (context_->driver().device_get(&found, ordinal) == kSuccess && found != context_->card().device) ++ordinal;
    return {dlpack::kCuda, ordinal};
  }

  Lent lend(std::shared_ptr<const Buffer> buffer, std::int64_t stream) override {
    const DevicePointer address = ours(*buffer).address();
    context_->enter();
    Lent lent{reinterpret_cast<void*>(address), std::make_shared<LentBuffer>(context_, std::move(buffer), stream)};
    if (stream != kNoStream) context_->order(context_->stream(), stream_of(stream));
    return lent;
  }

  std::unique_ptr<Buffer> adopt(const TensorType& type, void* address, std::shared_ptr<const void> owner,
                                std::int64_t stream) override {
    // Kernels and products count on the alignment of the pool's blocks.
    constexpr std::uintptr_t kBlockAlignment = 256;
    if (reinterpret_cast<std::uintptr_t>(address) % kBlockAlignment != 0) return nullptr;
    context_->enter();
    if (stream != kNoStream) context_->order(stream_of(stream), context_->stream());
    return std::make_unique<DeviceBuffer>(context_, type, reinterpret_cast<DevicePointer>(address), std::move(owner));
  }

  std::string make_group_id() override {
    context_->enter();
    return nccl::make_id(nccl());
  }
  std::unique_ptr<DeviceGroup> join(const std::string& id, int rank, int size) override {
    return nccl::join(nccl(), context_, id, rank, size);
  }

  void close() override { context_->close(); }
  bool is_lost() const noexcept override { return context_->is_lost(); }

 private:
  const nccl::Library& nccl() const { return nccl_ ? *nccl_ : nccl_library().table; }
  const DeviceBuffer& ours(const Buffer& buffer) const {
    const auto* const mine = dynamic_cast<const DeviceBuffer*>(&buffer);
    if (!mine || mine->context() != context_.get())
      throw Error(ErrorCode::failed_precondition,
                  fmt::format("{}: a buffer belongs to another device, or to an earlier time this one was open", info_.id));
    return *mine;
  }
  std::unique_ptr<DeviceBuffer> make(const TensorType& type) {
    return std::make_unique<DeviceBuffer>(context_, type, context_->allocate(storage_bytes(type.dtype, type.shape)));
  }

  DeviceInfo info_;
  std::shared_ptr<Context> context_;
  ExecutableOptions programs_;
  const nccl::Library* nccl_;
};

// Nominal memory of models whose name does not contain it; the management library knows the exact figure.
std::optional<std::uint64_t> memory_of(std::string_view model) {
  struct Known {
    std::string_view part;
    std::uint64_t gigabytes;
  };
  static constexpr Known kKnown[] = {{"GB200", 186}, {"B200", 180}, {"H200", 140}, {"L40", 45}, {"L4", 22}, {"T4", 15}};
  for (const Known& known : kKnown)
    if (model.find(known.part) != std::string_view::npos) return known.gigabytes << 30;
  return std::nullopt;
}

class CudaBackend final : public Backend, public Preloadable, public ExchangingBackend, public CollectiveBackend {
 public:
  std::string_view name() const noexcept override { return "cuda"; }

  std::vector<DeviceInfo> devices() override {
    // Reads files only: the detector queries the management library only for the real machine.
    const SystemRoot files({.root = "/"});
    std::vector<DeviceInfo> cards = make_nvidia_detector()->detect(files).devices;
    // In some containers the kernel does not list the card.
    if (cards.empty() && files.exists("/dev/nvidiactl")) cards = ask_nvml().cards;
    for (DeviceInfo& card : cards) {
      card.backends = {"cuda"};
      if (card.memory_total_bytes) continue;
      card.memory_total_bytes = memory_of(card.name);
      card.memory_is_nominal = card.memory_total_bytes.has_value();
    }
    return cards;
  }

  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) override {
    try {
      return open_with(driver(), device, options);
    } catch (const BrokenProcess&) {
      if (is_worker()) throw;
    }
    logging::warn("{} is opened in a process of its own: an earlier error broke this one's context", device.id);
    return open_in_worker(name(), device, options);
  }

  bool is_used_here(const DeviceInfo& device) const override {
    if (!is_driver_loaded()) return false;
    Device card = 0;
    unsigned flags = 0;
    int is_active = 0;
    return find_device(driver(), device, &card) == kSuccess && driver().context_state(card, &flags, &is_active) == kSuccess &&
           is_active != 0;
  }

  bool is_at(const DeviceInfo& device, const dlpack::Device& place) const override {
    if (place.type != dlpack::kCuda || !is_driver_loaded()) return false;
    Device card = -1, other = -2;
    return find_device(driver(), device, &card) == kSuccess && driver().device_get(&other, place.id) == kSuccess && card == other;
  }

  std::string_view collective_library() const noexcept override { return "NCCL"; }
  std::string collective_version() const override { return nccl_library().version; }

  void preload() noexcept override {
    try {
      driver();
      blas_library();
    } catch (const std::exception&) {
      // open() tells.
    }
  }

  void check(const DeviceInfo&, const Graph& graph) const override { check_kernels(graph, target_of(Card{})); }

  Latency latency(const DeviceInfo&) const override { return {.open_seconds = 0.22, .close_seconds = 0.07}; }
};

}  // namespace

std::unique_ptr<OpenDevice> open_with(const Driver& driver, const DeviceInfo& device, const OpenOptions& options,
                                      const DriverOptions& how) {
  ExecutableOptions programs = how.programs;
  programs.fuse = options.fuse;
  return std::make_unique<CudaDevice>(device, std::make_shared<Context>(driver, device, options.budget, how.compiler), programs,
                                      how.nccl);
}

std::unique_ptr<Backend> make_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace tenon::cuda
