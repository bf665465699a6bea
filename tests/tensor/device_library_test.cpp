// The calls of the device library, on simulated cards: as safe as everything else.
#include "tenon/tensor/device_library.h"

#include <gtest/gtest.h>

#include <optional>

#include "manager/simulated_machine.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

using namespace device_library;
using test::card;
using test::code_of;
using test::SimulatedMachine;

using Doubles = std::vector<double>;

SimulatedDevice grayskull() {
  SimulatedDevice device = card();
  device.architecture = "grayskull";
  return device;
}

class DeviceLibrary : public testing::Test {
 protected:
  DeviceLibrary()
      : machine_({grayskull(), card()}, [](Config& config) { config.keep_open = KeepOpenPolicy::always; }),
        use_(machine_.manager()) {}

  SimulatedMachine machine_;
  UseManager use_;
};

TEST_F(DeviceLibrary, CreateFindsTheCardInASlotAndOpensNothing) {
  const Device device = create_device(Arch::grayskull, 0);
  EXPECT_EQ(device.info().id, "sim:0");
  EXPECT_EQ(device.arch(), Arch::grayskull);
  EXPECT_EQ(create_device(Arch::wormhole, 1).info().id, "sim:1");
  EXPECT_EQ(machine_.counters().opens, 0U);
}

TEST_F(DeviceLibrary, CreateSaysWhatThereIsInstead) {
  try {
    create_device(Arch::blackhole, 0);
    FAIL() << "created a card that is not there";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::not_found);
    EXPECT_STREQ(e.what(), "no blackhole card in slot 0");
    EXPECT_NE(e.hint().find("grayskull in slot 0 (sim:0), wormhole in slot 1 (sim:1)"), std::string::npos) << e.hint();
  }
}

TEST_F(DeviceLibrary, ADeviceIsUsedBetweenInitialiseAndClose) {
  const Device device = create_device(Arch::grayskull, 0);
  const Tensor x = tensor({1.0, 2.0});
  EXPECT_EQ(code_of([&] { x.to(device); }), ErrorCode::failed_precondition);
  initialize_device(device);
  EXPECT_EQ(machine_.counters().opens, 1U);
  const Tensor y = x.to(device) * 2;
  EXPECT_EQ(y.eval().device(), "sim:0");
  const Tensor result = y.to(get_host());
  EXPECT_EQ(result.device(), "");
  close_device(device);
  EXPECT_EQ(machine_.state(), DeviceState::closed);
  EXPECT_EQ(code_of([&] { x.to(device); }), ErrorCode::failed_precondition);
  initialize_device(device);
  EXPECT_EQ(x.to(device).device(), "sim:0");
}

// The known defect of the original: the device goes before its tensors.
TEST_F(DeviceLibrary, TensorsOutliveTheirDevice) {
  Tensor y;
  {
    const Device device = create_device(Arch::grayskull, 0);
    initialize_device(device);
    y = tensor({1.0, 2.0}).to(device) + 1;
    y.eval();
    EXPECT_EQ(y.device(), "sim:0");
    close_device(device);
  }
  EXPECT_EQ(y.to_host().to_doubles(), (Doubles{2, 3}));
  EXPECT_EQ((y * 2).on("sim:1").to_host().to_doubles(), (Doubles{4, 6}));
}

TEST_F(DeviceLibrary, ClosingTwiceAndInitialisingTwiceAreHarmless) {
  const Device device = create_device(Arch::grayskull, 0), copy = device;
  close_device(device);
  initialize_device(device);
  initialize_device(copy);
  EXPECT_TRUE(copy.is_initialized());
  close_device(copy);
  close_device(device);
  EXPECT_EQ(machine_.counters().opens, 1U);
  EXPECT_EQ(machine_.counters().closes, 1U);
}

TEST_F(DeviceLibrary, TheDefaultDeviceIsWhereTensorsWithoutARequestGo) {
  machine_.manager().set_default_device("cpu");
  EXPECT_FALSE(get_default_device());
  const Device device = create_device(Arch::wormhole, 1);
  initialize_device(device);
  set_default_device(device);
  const std::optional<Device> chosen = get_default_device();
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->info().id, "sim:1");
  EXPECT_EQ(chosen->arch(), Arch::wormhole);
  EXPECT_EQ((tensor({1.0}) + 1).eval().device(), "sim:1");
}

TEST_F(DeviceLibrary, WhatIsWrongWithACardIsKnownWhenItIsInitialised) {
  SimulatedDevice broken = grayskull();
  broken.faults.open_fails = 1;
  SimulatedMachine machine({broken});
  const UseManager use(machine.manager());
  const Device device = create_device(Arch::grayskull, 0);
  EXPECT_EQ(code_of([&] { initialize_device(device); }), ErrorCode::unavailable);
  EXPECT_FALSE(device.is_initialized());
}

}  // namespace
}  // namespace tenon
