#include "present/operation.h"

#include "present/present_testing.h"

namespace tenon::present::testing {
namespace {

OpInfo soften() {
  OpInfo op;
  op.name = "soften";
  op.aliases = {"soft"};
  op.category = "activation";
  op.min_inputs = 1;
  op.max_inputs = 2;
  op.input_names = {"x", "weight"};
  op.parameters = {Parameter{.name = "alpha",
                             .type = ParameterType::number,
                             .fallback = 1.0,
                             .required = false,
                             .min = 0.0,
                             .max = std::nullopt,
                             .choices = {},
                             .doc = "How soft."}};
  op.dtypes = {DType::f32, DType::f64};
  op.formula = "x / alpha";
  op.doc = "Softens.";
  op.example = "soften 1";
  return op;
}

TEST(Operation, JsonIsWhatTheCatalogueSays) {
  EXPECT_EQ(json_of([](JsonWriter& json) { write_operation(json, soften()); }),
            R"({"name":"soften","aliases":["soft"],"category":"activation","min_inputs":1,"max_inputs":2,)"
            R"("input_names":["x","weight"],"dtypes":["float32","float64"],"parameters":[{"name":"alpha","type":"number",)"
            R"("default":1.0,"required":false,"min":0.0,"max":null,"range":"at least 0","choices":[],"doc":"How soft."}],)"
            R"("formula":"x / alpha","doc":"Softens.","example":"soften 1"})");
}

TEST(Operation, ItsPageHasFormulaParametersAndTheExamplesOutput) {
  EXPECT_EQ(op_page(soften(), {}, "0.5\n"),
            "soften(x, weight=none, alpha=1)\n"
            "Softens.\n\n"
            "formula     x / alpha\n"
            "category    activation\n"
            "aliases     soft\n"
            "dtypes      float32, float64\n"
            "\nparameters\n"
            "  alpha     number, default 1, at least 0\n"
            "            How soft.\n"
            "\nexample\n"
            "  tenon run 'soften 1'\n"
            "  0.5\n");
}

TEST(Operation, BoundsThatNoSensibleValueCrossesAreNotPrinted) {
  const auto range = [](std::optional<double> min, std::optional<double> max) {
    Parameter parameter;
    parameter.min = min;
    parameter.max = max;
    return range_text(parameter);
  };
  EXPECT_EQ(range(0, 1), "0 to 1");
  EXPECT_EQ(range(2, std::nullopt), "at least 2");
  EXPECT_EQ(range(std::nullopt, 7), "at most 7");
  EXPECT_EQ(range(1e-30, std::nullopt), "more than 0");
  EXPECT_EQ(range(1e-30, 1), "more than 0, at most 1");
  EXPECT_EQ(range(-1e9, 1e9), "");
  EXPECT_EQ(range(-kMaxRank, kMaxRank - 1), "") << "any axis";
}

TEST(Operation, NoPageOfTheCatalogueHasABoundThatSaysNothing) {
  for (const OpInfo& op : all_ops()) {
    const std::string page = op_page(op, {.width = 1000}, "");
    for (const char* bound : {"at least 1e-", "at least 1.17", "-16 to 15", "e+09", "1000000000"})
      EXPECT_EQ(page.find(bound), std::string::npos) << op.name << ": " << page;
  }
}

TEST(Operation, ParameterValuesOfEveryType) {
  const std::pair<ParameterValue, const char*> cases[] = {
      {std::monostate(), "null"},      {true, "true"},
      {std::int64_t{-1}, "-1"},        {0.5, "0.5"},
      {std::string("sum"), "\"sum\""}, {std::vector<std::int64_t>{0, 1}, "[0,1]"}};
  for (const auto& [value, text] : cases)
    EXPECT_EQ(json_of([&, &held = value](JsonWriter& json) { write_parameter_value(json, held); }), text);
}

}  // namespace
}  // namespace tenon::present::testing
