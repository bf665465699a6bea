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
            R"("default":1.0,"required":false,"min":0.0,"max":null,"choices":[],"doc":"How soft."}],)"
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
