// What is made of the answers of NVIDIA's management library.
#include <gtest/gtest.h>

#include "base/system/dynamic_library.h"
#include "device/nvidia/nvidia_management.h"

namespace tenon {
namespace {

class Nvml : public ::testing::Test {
 protected:
  Nvml() { set(0, 0); }
  ~Nvml() override { set(0, 0); }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  void set(int result_of_start, int mode) { library_.function<void(int, int)>("fake_nvml_set")(result_of_start, mode); }
  int started() const { return library_.function<int()>("fake_nvml_started")(); }

  const std::string names_[1] = {TENON_FAKE_NVML};
  const DynamicLibrary library_ = DynamicLibrary::load(names_);
};

TEST_F(Nvml, EveryFigureIsPassedOnAndWhatItCannotTellStaysEmpty) {
  const NvidiaAnswer answer = ask_nvml(names_);
  ASSERT_EQ(answer.cards.size(), 1u) << "a card without a handle is left out";
  const DeviceInfo& card = answer.cards[0];
  EXPECT_EQ(card.id, "cuda:0");
  EXPECT_EQ(card.name, "NVIDIA Stand-in");
  EXPECT_EQ(card.uuid, "GPU-42");
  EXPECT_EQ(card.serial, "");
  EXPECT_EQ(card.pci_address, "0000:af:00.0");
  EXPECT_EQ(card.memory_total_bytes, 1000u);
  EXPECT_EQ(card.memory_free_bytes, 600u);
  EXPECT_EQ(card.compute_capability, "8.9");
  EXPECT_EQ(card.architecture, "Ada Lovelace");
  EXPECT_EQ(card.driver_version, "580.159.04");
  EXPECT_EQ(card.runtime_version, "CUDA 13.2");
  EXPECT_EQ(card.power_watts, 71.5);
  EXPECT_EQ(card.power_limit_watts, std::nullopt) << "this version of the library has no such function";
  EXPECT_EQ(card.temperature_celsius, 44);
  EXPECT_EQ(card.holders, std::vector<int>{999999999});
  EXPECT_FALSE(card.exclusive);
  EXPECT_TRUE(card.available);
  EXPECT_EQ(started(), 0) << "what was started is shut down";
}

TEST_F(Nvml, TheComputeModeSaysWhoMayUseTheCard) {
  set(0, 3);
  EXPECT_TRUE(ask_nvml(names_).cards.at(0).exclusive);
  set(0, 2);
  const DeviceInfo prohibited = ask_nvml(names_).cards.at(0);
  EXPECT_FALSE(prohibited.available);
  EXPECT_EQ(prohibited.remedy, "as root: nvidia-smi -i 0000:af:00.0 -c DEFAULT");
}

TEST_F(Nvml, ALibraryThatDoesNotStartSaysWhyAndWhatToDo) {
  const auto problem = [&](int result) {
    set(result, 0);
    const NvidiaAnswer answer = ask_nvml(names_);
    EXPECT_TRUE(answer.cards.empty());
    EXPECT_FALSE(answer.remedy.empty());
    return answer.problem;
  };
  EXPECT_EQ(problem(4), "no permission to access the NVIDIA driver");
  EXPECT_EQ(problem(9), "the NVIDIA kernel driver is not loaded");
  EXPECT_EQ(problem(18), "the NVIDIA library and the loaded kernel driver have different versions");
  EXPECT_EQ(problem(77), "NVML failed to initialize (error 77)");
}

TEST_F(Nvml, ALibraryThatIsTooOldOrNotThereIsNamed) {
  const std::string old[] = {"libc.so.6"}, missing[] = {"libsurely-not-there.so.9"};
  EXPECT_NE(ask_nvml(old).problem.find("too old"), std::string::npos);
  EXPECT_NE(ask_nvml(missing).problem.find("is not installed"), std::string::npos);
}

}  // namespace
}  // namespace tenon
