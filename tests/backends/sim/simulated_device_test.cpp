// The description of simulated devices, and its text form.
#include "tenon/device/simulated.h"

#include <gtest/gtest.h>

#include "tenon/error.h"

namespace tenon {
namespace {

Error error_of(std::string_view text) {
  try {
    parse_simulated(text);
  } catch (const Error& e) {
    return e;
  }
  return {ErrorCode::ok, ""};
}

TEST(SimulatedDevice, EveryArchitectureHasTimesAndMemory) {
  for (const char* architecture : {"grayskull", "wormhole", "blackhole", "tpu", "gpu"}) {
    const SimulatedDevice device = SimulatedDevice::of_architecture(architecture);
    EXPECT_EQ(device.architecture, architecture);
    EXPECT_GT(device.open_seconds, 0);
    EXPECT_GT(device.close_seconds, 0);
    EXPECT_GT(device.memory_bytes, 0U);
    EXPECT_EQ(device.exclusive, device.architecture != "gpu");
  }
}

TEST(SimulatedDevice, AnUnknownArchitectureNamesTheKnownOnes) {
  const Error error = error_of("voodoo");
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_NE(error.hint().find("grayskull, wormhole, blackhole, tpu, gpu"), std::string::npos);
}

TEST(SimulatedDevice, TextSetsWhatItNamesAndKeepsTheRest) {
  const SimulatedDevice device =
      parse_simulated("wormhole,open=50ms,memory=8GiB,shared,lost_mid_run=0.05,seed=7,id=sim:card,script=ok:run+lost_mid_run");
  SimulatedDevice expected = SimulatedDevice::of_architecture("wormhole");
  expected.open_seconds = 0.05;
  expected.memory_bytes = std::uint64_t{8} << 30;
  expected.exclusive = false;
  expected.faults.lost_mid_run = 0.05;
  expected.seed = 7;
  expected.id = "sim:card";
  expected.script = {"ok:run", "lost_mid_run"};
  EXPECT_EQ(device, expected);
}

TEST(SimulatedDevice, EveryKeyHasItsField) {
  const SimulatedDevice device = parse_simulated(
      "gpu,exclusive,close=2s,hang=3,virtual,factor=2.5,compute=50ms,memory=1024,open_fails=0.1,open_hangs=0.2,close_fails=0.3,"
      "out_of_memory=0.4,dirty_refuses=0.5");
  EXPECT_TRUE(device.exclusive);
  EXPECT_EQ(device.close_seconds, 2);
  EXPECT_EQ(device.hang_seconds, 3);
  EXPECT_TRUE(device.virtual_time);
  EXPECT_EQ(device.compute_factor, 2.5);
  EXPECT_EQ(device.compute_seconds, 0.05);
  EXPECT_EQ(device.memory_bytes, 1024U);
  EXPECT_EQ(device.faults, (FaultRates{0.1, 0.2, 0.3, 0.4, 0.5, 0}));
  EXPECT_EQ(parse_simulated("gpu,faults=0.05").faults, (FaultRates{0.05, 0.05, 0.05, 0.05, 0.05, 0.05}));
  EXPECT_FALSE(parse_simulated("tpu,exclusive=false").exclusive);
}

TEST(SimulatedDevice, BadValuesNameTheKeyAndWhatIsWanted) {
  for (const char* bad :
       {"gpu,open=soon", "gpu,open=-1", "gpu,open=inf", "gpu,open=nan", "gpu,memory=8GiBs", "gpu,memory=0", "gpu,memory=1e30",
        "gpu,lost_mid_run=2", "gpu,seed=1.5", "gpu,seed=", "gpu,factor=0.5", "gpu,shared=yes", "gpu,open", "gpu,faults"}) {
    const Error error = error_of(bad);
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << bad;
    const std::string_view pair = std::string_view(bad).substr(4);
    EXPECT_NE(std::string_view(error.what()).find(pair.substr(0, pair.find('='))), std::string_view::npos) << error.what();
  }
}

TEST(SimulatedDevice, AnUnknownKeyListsTheKnownOnesAndTheNearest) {
  const Error error = error_of("gpu,memry=1GiB");
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string_view(error.what()).find("did you mean memory"), std::string_view::npos) << error.what();
  EXPECT_NE(error.hint().find("lost_mid_run"), std::string::npos);
}

}  // namespace
}  // namespace tenon
