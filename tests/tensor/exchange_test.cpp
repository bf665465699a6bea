// DLPack on a device, tried with one whose memory is the host's: what is shared, where, and for how long.
#include <gtest/gtest.h>

#include "backends/cpu/backend.h"
#include "hal/memory_exchange.h"
#include "tenon/error.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

// The CPU as CUDA device 3.
class SharingDevice final : public OpenDevice, public MemoryExchange {
 public:
  explicit SharingDevice(std::unique_ptr<OpenDevice> cpu) : cpu_(std::move(cpu)) {}
  const DeviceInfo& info() const noexcept override { return cpu_->info(); }
  std::unique_ptr<Executable> compile(const Graph& graph) override { return cpu_->compile(graph); }
  std::unique_ptr<Buffer> allocate(const TensorType& type) override { return cpu_->allocate(type); }
  std::unique_ptr<Buffer> upload(const HostArray& array) override { return cpu_->upload(array); }
  HostArray download(const Buffer& buffer) override { return cpu_->download(buffer); }
  dlpack::Device place() const override { return {dlpack::kCuda, 3}; }
  Lent lend(std::shared_ptr<const Buffer> buffer, std::int64_t stream) override {
    streams.push_back(stream);
    return {const_cast<std::byte*>(cpu_->download(*buffer).data()), std::const_pointer_cast<Buffer>(buffer)};
  }
  std::unique_ptr<Buffer> adopt(const TensorType& type, void* address, std::shared_ptr<const void> owner,
                                std::int64_t stream) override {
    streams.push_back(stream);
    return cpu_->upload(HostArray::borrow(type.dtype, type.shape, address, std::move(owner)));
  }
  static inline std::vector<std::int64_t> streams;

 private:
  std::unique_ptr<OpenDevice> cpu_;
};

class SharingBackend final : public Backend, public ExchangingBackend {
 public:
  std::string_view name() const noexcept override { return "sharing"; }
  std::vector<DeviceInfo> devices() override {
    DeviceInfo info;
    info.id = "cuda:3";
    info.kind = DeviceKind::gpu;
    info.available = true;
    info.backends = {"sharing"};
    return {info};
  }
  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo&, const OpenOptions& options) override {
    return std::make_unique<SharingDevice>(cpu_->open(cpu_->devices().at(0), options));
  }
  bool is_used_here(const DeviceInfo&) const override { return true; }
  bool is_at(const DeviceInfo&, const dlpack::Device& place) const override { return place.id == 3; }

 private:
  std::unique_ptr<Backend> cpu_ = cpu::make_backend();
};

// A tensor of another library, with a count of its deleter's calls.
struct Theirs {
  alignas(256) float values[4] = {1, 2, 3, 4};
  std::int64_t shape[1] = {4}, strides[1] = {1};
  int deleted = 0;
  dlpack::ManagedTensorVersioned managed{};
  dlpack::ManagedTensorVersioned* on(std::int32_t id) {
    managed.version = {1, 1};
    managed.manager_context = this;
    managed.deleter = [](dlpack::ManagedTensorVersioned* self) { ++static_cast<Theirs*>(self->manager_context)->deleted; };
    managed.tensor = {values, {dlpack::kCuda, id}, 1, {dlpack::kFloat, 32, 1}, shape, strides, 0};
    return &managed;
  }
};

class TensorExchange : public testing::Test {
 protected:
  TensorExchange() {
    manager.add_backend(std::make_unique<SharingBackend>());
    SharingDevice::streams.clear();
  }
  DeviceManager manager;
  UseManager use{manager};
};

TEST_F(TensorExchange, ATensorOnADeviceIsUsedThereInPlaceAndItsResultsStayThere) {
  Theirs theirs;
  {
    const Tensor x = Tensor::from_dlpack(theirs.on(3));
    EXPECT_EQ(x.device(), "cuda:3");
    EXPECT_EQ(SharingDevice::streams, std::vector<std::int64_t>{kDefaultStream});
    const Tensor y = x * 2;
    EXPECT_EQ(y.dlpack_device().id, 3);
    EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 4, 6, 8}));
    dlpack::ManagedTensorVersioned* const back = x.lend_dlpack_versioned(77);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->tensor.data, theirs.values);
    EXPECT_EQ(back->tensor.device.type, dlpack::kCuda);
    EXPECT_EQ(back->flags, dlpack::kReadOnly);
    EXPECT_EQ(SharingDevice::streams.back(), 77);
    back->deleter(back);
    EXPECT_EQ(theirs.deleted, 0);
  }
  EXPECT_EQ(theirs.deleted, 1);
}

TEST_F(TensorExchange, ClosingTheDeviceMovesABorrowedTensorToTheHostAndGivesItBack) {
  Theirs theirs;
  const Tensor x = Tensor::from_dlpack(theirs.on(3));
  manager.close("cuda:3");
  EXPECT_EQ(x.dlpack_device().type, dlpack::kCpu);
  EXPECT_EQ(x.lend_dlpack(1), nullptr);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(TensorExchange, ATensorOnADeviceThatIsNotOursIsRefusedAndDeletedOnce) {
  Theirs theirs;
  EXPECT_FALSE(Tensor::can_use_in_place({dlpack::kCuda, 0}));
  EXPECT_TRUE(Tensor::can_use_in_place({dlpack::kCuda, 3}));
  try {
    Tensor::from_dlpack(theirs.on(0));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unimplemented);
  }
  EXPECT_EQ(theirs.deleted, 1);
  theirs.strides[0] = 2;
  EXPECT_THROW(Tensor::from_dlpack(theirs.on(3)), Error);
  EXPECT_EQ(theirs.deleted, 2);
}

TEST_F(TensorExchange, AValueOnTheCpuIsNotLentInPlace) {
  const Tensor x = Tensor::from(std::vector<float>{1, 2});
  EXPECT_EQ(x.dlpack_device().type, dlpack::kCpu);
  EXPECT_EQ(x.lend_dlpack_versioned(1), nullptr);
}

}  // namespace
}  // namespace tenon
