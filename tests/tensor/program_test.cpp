#include "tenon/tensor/program.h"

#include <gtest/gtest.h>

#include <array>

#include "temporary_folder.h"
#include "tenon/array/io.h"
#include "tenon/error.h"
#include "tenon/tensor/functions.h"
#include "tenon/tensor/use_device.h"

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

TEST(Program, ASavedOneComputesTheSameWithItsCapturedValues) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "step.tenon";
  const Tensor x = program_input(DType::f32, {2}), factor = program_number(DType::f64), weight = tensor({2.0, 3.0});
  const Tensor y = x * weight * factor;
  const std::array<std::string, 2> names{"x", "factor"};
  Program::record(std::array{x, factor}, std::array{y, x, y, weight}, names).save(file);
  const Program loaded = Program::load(file);
  EXPECT_EQ(loaded.graph()[loaded.graph().inputs()[1]].as<InputAttr>().name, "factor");
  const std::vector<Tensor> results = loaded.run(std::array{tensor({1.0, 2.0}), Tensor(0.5)});
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].to_vector<float>(), (std::vector<float>{1, 3}));
  EXPECT_EQ(results[1].to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(results[2].to_vector<float>(), results[0].to_vector<float>());
  EXPECT_EQ(results[3].to_vector<float>(), (std::vector<float>{2, 3}));
}

TEST(Program, AFileThatIsNoProgramIsRefused) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "step.tenon";
  const auto code = [&] {
    try {
      Program::load(file);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::ok;
  };
  EXPECT_EQ(code(), ErrorCode::not_found);
  save_safetensors(file, {.arrays = {{"graph", HostArray::full(DType::u8, {9}, 7)}}});
  EXPECT_EQ(code(), ErrorCode::invalid_argument);
  const Tensor x = program_input(DType::f32, {2});
  Program::record(std::array{x}, std::array{x * tensor({2.0, 3.0})}).save(file);
  const ArrayFile whole = load_safetensors(file);
  ArrayFile other = whole;
  other.arrays["captured.0"] = HostArray::full(DType::f32, {3}, 1);
  save_safetensors(file, other);
  EXPECT_EQ(code(), ErrorCode::invalid_argument);
  other = whole;
  for (std::int64_t i = 0; i < 9; ++i) other.arrays["captured." + std::to_string(i)] = HostArray::full(DType::f32, {2}, 1);
  save_safetensors(file, other);
  EXPECT_EQ(code(), ErrorCode::invalid_argument);
  other = whole;
  other.metadata["tenon.program"] = "99";
  save_safetensors(file, other);
  EXPECT_EQ(code(), ErrorCode::invalid_argument);
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
