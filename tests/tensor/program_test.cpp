#include "tenon/program.h"

#include <gtest/gtest.h>

#include <array>

#include "tenon/error.h"
#include "tenon/functions.h"
#include "tenon/use_device.h"

namespace tenon {
namespace {

TEST(Program, IsRecordedOnceAndRunManyTimes) {
  const Tensor x = program_input(DType::f32, {2});
  const Program program = Program::record(std::array{x}, std::array{x * 2 + 1});
  EXPECT_EQ(program.run(std::array{tensor({1.0, 2.0})})[0].to_vector<float>(), (std::vector<float>{3, 5}));
  EXPECT_EQ(program.run(std::array{tensor({3.0, 4.0}) + 1})[0].to_vector<float>(), (std::vector<float>{9, 11}));
}

TEST(Program, NumbersTakeTheDtypeOfTheTensorTheyMeet) {
  const Tensor x = program_input(DType::f64, {1}), factor = program_number(DType::f64);
  const Program program = Program::record(std::array{x, factor}, std::array{x * factor});
  EXPECT_EQ(program.graph()[program.graph().outputs()[0]].dtype, DType::f64);
  EXPECT_EQ(program.run(std::array{tensor({3.0}, DType::f64), Tensor(0.1)})[0].to_vector<double>(),
            (std::vector<double>{3.0 * 0.1}));
}

TEST(Program, ValuesFromOutsideAreCaptured) {
  const Tensor weight = tensor({2.0, 3.0}), x = program_input(DType::f32, {2});
  const Program program = Program::record(std::array{x}, std::array{x * weight, x, weight});
  ASSERT_EQ(program.captured().size(), 1u);
  const std::vector<Tensor> results = program.run(std::array{tensor({1.0, 1.0})});
  EXPECT_EQ(results[0].to_vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(results[1].to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(results[2].to_vector<float>(), (std::vector<float>{2, 3}));
}

TEST(Program, AnInputHasNoValue) {
  const Tensor x = program_input(DType::f32, {1});
  EXPECT_FALSE(has_value(x));
  try {
    (x + 1).eval();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
  }
  EXPECT_THROW(Program::record({}, std::array{x + 1}), Error);
}

TEST(Program, ArgumentsOfOtherTypesAreRefused) {
  const Tensor x = program_input(DType::f32, {2});
  const Program program = Program::record(std::array{x}, std::array{x + 1});
  EXPECT_THROW(program.run(std::array{tensor({1.0})}), Error);
  EXPECT_THROW(program.run(std::array{tensor({1, 2})}), Error);
  EXPECT_THROW(program.run({}), Error);
}

TEST(UseDevice, IsWhereTensorsWithoutARequestAreEvaluated) {
  Config config;
  config.simulated.push_back(parse_simulated("wormhole,virtual"));
  DeviceManager manager(config);
  const UseManager use(manager);
  {
    const UseDevice outer("sim:0");
    EXPECT_EQ(eval(tensor({1.0}) + 1).device.id, "sim:0");
    EXPECT_EQ(eval((tensor({1.0}) + 1).on("cpu")).device.id, "cpu:0");
    const UseDevice inner("cpu");
    EXPECT_EQ(eval(tensor({1.0}) + 1).device.id, "cpu:0");
  }
  EXPECT_EQ(eval(tensor({1.0}) + 1).device.id, "cpu:0");
}

}  // namespace
}  // namespace tenon
