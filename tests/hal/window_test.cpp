// Tensors that pass through the window between a worker and its parent; here both are threads.
#include "hal/worker/window.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tenon/error.h"

namespace tenon {
namespace {

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(std::size_t bytes) : Buffer({DType::u8, {static_cast<std::int64_t>(bytes)}}), content(bytes) {}
  std::vector<std::byte> content;
};

// A device whose copies happen when somebody asks whether they are complete.
class SlowDevice final : public DirectTransfers {
 public:
  int fails_at = -1;

  void pin(std::byte*, std::size_t) override {}
  void unpin(std::byte*) noexcept override {}
  void start_upload(Buffer& to, std::size_t offset, const std::byte* from, std::size_t bytes, int slot) override {
    start(static_cast<HostBuffer&>(to).content.data() + offset, from, bytes, slot);
  }
  void start_download(std::byte* to, const Buffer& from, std::size_t offset, std::size_t bytes, int slot) override {
    start(to, static_cast<const HostBuffer&>(from).content.data() + offset, bytes, slot);
  }
  bool is_complete(int slot) override {
    Copy& copy = copies_[static_cast<std::size_t>(slot)];
    if (copy.questions++ < 2) return false;
    std::memcpy(copy.to, copy.from, copy.bytes);
    copy = {};
    return true;
  }

 private:
  struct Copy {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    int questions = 0;
  };
  void start(std::byte* to, const std::byte* from, std::size_t bytes, int slot) {
    if (started_++ == fails_at) throw Error(ErrorCode::unavailable, "the device is gone");
    Copy& copy = copies_[static_cast<std::size_t>(slot)];
    ASSERT_EQ(copy.to, nullptr) << "a slot is used before it is free";
    copy = {to, from, bytes, 0};
  }

  Copy copies_[kSlots];
  int started_ = 0;
};

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>((i * 2654435761u) >> 13);
  return made;
}

TransferWindow make_window() { return TransferWindow(SharedMemory::create(TransferWindow::kBytes)); }

TEST(TransferWindow, PassesTensorsOfAnySizeBothWays) {
  TransferWindow window = make_window();
  const auto alive = [] { return true; };
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100'001}, TransferWindow::kBytes, std::size_t{90} << 20 | 77}) {
    const std::vector<std::byte> wanted = pattern(bytes);
    HostBuffer buffer(bytes);
    SlowDevice device;
    window.start();
    std::thread worker([&] { window.upload(device, buffer, bytes); });
    window.fill(wanted.data(), bytes, alive);
    worker.join();
    ASSERT_EQ(buffer.content, wanted) << bytes;

    std::vector<std::byte> back(bytes);
    window.start();
    worker = std::thread([&] { window.download(device, buffer, bytes); });
    window.empty(back.data(), bytes, alive);
    worker.join();
    ASSERT_EQ(back, wanted) << bytes;
  }
}

TEST(TransferWindow, ADeviceThatFailsEndsTheTransferOnBothSides) {
  TransferWindow window = make_window();
  const std::size_t bytes = std::size_t{80} << 20;
  HostBuffer buffer(bytes);
  SlowDevice device;
  device.fails_at = 5;
  std::vector<std::byte> content(bytes);
  window.start();
  bool has_failed = false;
  std::thread worker([&] {
    try {
      window.upload(device, buffer, bytes);
    } catch (const Error&) {
      has_failed = true;
      window.give_up();
    }
  });
  window.fill(content.data(), bytes, [] { return true; });
  worker.join();
  EXPECT_TRUE(has_failed);
}

TEST(TransferWindow, AWorkerThatDiedEndsTheTransfer) {
  TransferWindow window = make_window();
  std::vector<std::byte> content(std::size_t{80} << 20);
  window.start();
  window.fill(content.data(), content.size(), [] { return false; });
  window.start();
  window.empty(content.data(), content.size(), [] { return false; });
}

}  // namespace
}  // namespace tenon
