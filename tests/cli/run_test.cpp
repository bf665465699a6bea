// tenon run: inputs, results, formats and exit codes.
#include <gtest/gtest.h>

#include "cli/cli_testing.h"
#include "tenon/io.h"

namespace tenon::cli::testing {
namespace {

TEST(Run, PrintsTheResultAndWhereItWasMade) {
  const Outcome outcome = tenon({"run", "1 + 1"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.substr(0, outcome.out.find('\n')), "2");
  EXPECT_TRUE(contains(outcome.out, "[] int64 on cpu:0")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "computing ")) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

TEST(Run, InputsAreLiteralsExpressionsAndFiles) {
  const Folder folder;
  save_npy(folder / "c.npy", HostArray::from<float>({2}, {10, 20}));
  save_safetensors(folder / "d.safetensors", {.arrays = {{"one", HostArray::from<float>({2}, {100, 200})}}});
  const Outcome outcome = tenon({"run", "a + b + c + d", "a=[1, 2]", "b=ones([2])", "c=@" + (folder / "c.npy"),
                                 "d=@" + (folder / "d.safetensors"), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.out;
  EXPECT_EQ(outcome.json()["values"], boost::json::parse("[112.0, 223.0]"));
}

TEST(Run, ATensorOfManyIsChosenByName) {
  const Folder folder;
  const std::string file = folder / "two.safetensors";
  save_safetensors(file, {.arrays = {{"a", HostArray::full(DType::f32, {}, 1)}, {"b", HostArray::full(DType::f32, {}, 2)}}});
  EXPECT_EQ(tenon({"run", "x", "x=@" + file + ":b", "--json"}).json()["values"], boost::json::value(2.0));
  EXPECT_TRUE(contains(tenon({"run", "x", "x=@" + file}).err, "contains 2 tensors"));
  EXPECT_EQ(tenon({"run", "x", "x=@" + file + ":c"}).status, 3);
}

TEST(Run, DtypeIsThatOfValuesLiteralsAndCreatedTensors) {
  const auto dtype = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "run");
    arguments.emplace_back("--json");
    const Outcome outcome = tenon(arguments);
    return outcome.status == 0 ? std::string(outcome.json()["dtype"].as_string()) : outcome.out;
  };
  EXPECT_EQ(dtype({"x * 2", "x=[1, 2]", "--dtype", "bfloat16"}), "bfloat16");
  EXPECT_EQ(dtype({"x", "x=[1, 2]", "--dtype", "uint8"}), "uint8");
  EXPECT_EQ(dtype({"[0.5] + rand([1])", "--dtype", "f16"}), "float16");
  EXPECT_EQ(dtype({"elu(-1, 2)", "--dtype", "bf16"}), "bfloat16");
  EXPECT_EQ(dtype({"x", "x=true", "--dtype", "bf16"}), "bool");
}

TEST(Run, TheCalculatorsEluPrintsItsDocumentedValue) {
  const Outcome outcome = tenon({"run", "elu(-1, 2)", "--dtype", "bfloat16"});
  EXPECT_EQ(outcome.out.substr(0, outcome.out.find('\n')), "-1.2656");
}

TEST(Run, JsonHasSchemaShapeDtypeValuesDeviceAndTimeline) {
  boost::json::object document = tenon({"run", "[[1, 2.5], [nan, inf], [-inf, 0.1]]", "--json"}).json();
  EXPECT_EQ(document["schema"], 2);
  EXPECT_EQ(document["shape"], boost::json::parse("[3, 2]"));
  EXPECT_EQ(document["dtype"], "float32");
  EXPECT_EQ(document["values"], boost::json::parse(R"([[1.0, 2.5], ["NaN", "Infinity"], ["-Infinity", 0.1]])"));
  EXPECT_EQ(document["device"].as_object()["id"], "cpu:0");
  bool computed = false;
  for (const auto& span : document["timeline"].as_array()) computed = computed || span.as_object().at("stage") == "computing";
  EXPECT_TRUE(computed);
}

TEST(Run, JsonIntegersAreExact) {
  EXPECT_EQ(tenon({"run", "9007199254740993", "--json"}).json()["values"].as_int64(), 9007199254740993);
}

TEST(Run, SeveralResultsAreAList) {
  boost::json::object document = tenon({"run", "top_k([3, 1, 4], 2)", "--json"}).json();
  ASSERT_EQ(document["results"].as_array().size(), 2u);
  EXPECT_EQ(document["results"].as_array()[1].as_object()["values"], boost::json::parse("[2, 0]"));
}

TEST(Run, ResultsAreSavedInsteadOfPrinted) {
  const Folder folder;
  const Outcome npy = tenon({"run", "[1, 2] * 2", "-o", folder / "out.npy"});
  EXPECT_EQ(npy.status, 0) << npy.err;
  EXPECT_TRUE(contains(npy.out, "saved to"));
  EXPECT_EQ(load_npy(folder / "out.npy").to_doubles(), (std::vector<double>{2, 4}));
  EXPECT_EQ(tenon({"run", "1, 2.5", "-o", folder / "out.safetensors"}).status, 0);
  EXPECT_EQ(load_safetensors(folder / "out.safetensors").arrays.at("result1").value(0), 2.5);
  EXPECT_EQ(tenon({"run", "1, 2", "-o", folder / "two.npy"}).status, 2);
  EXPECT_EQ(tenon({"run", "1", "-o", folder / "out.txt"}).status, 2);
}

TEST(Run, EveryStageIsAnObjectALineForPrograms) {
  const Outcome outcome = tenon({"run", "1 + 1", "--device", "cpu", "--progress=json", "--json"});
  EXPECT_EQ(outcome.json().at("values"), 2);
  std::istringstream lines(outcome.err);
  std::string line, stages;
  while (std::getline(lines, line)) {
    const boost::json::value progress = boost::json::parse(line).at("progress");
    EXPECT_EQ(progress.at("device"), "cpu:0");
    stages += std::string(progress.at("stage").as_string()) + " ";
  }
  EXPECT_TRUE(stages.ends_with("compiling uploading computing downloading ")) << stages;
}

TEST(Run, CompareReportsTheErrorAgainstTheReference) {
  const Outcome text = tenon({"run", "exp(x)", "x=linspace(-1, 1, 100)", "--compare"});
  EXPECT_EQ(text.status, 0);
  EXPECT_TRUE(contains(text.out, "ULP: match")) << text.out;
  boost::json::object comparison = tenon({"run", "exp(0.5)", "--compare", "--json"}).json()["comparison"].as_object();
  EXPECT_EQ(comparison["matches"], true);
  EXPECT_LT(comparison["max_ulp"].to_number<double>(), 4);
}

TEST(Run, AnExpressionMayBeginWithADash) {
  EXPECT_EQ(tenon({"run", "-1 + 2", "--json"}).json()["values"], 1);
  EXPECT_EQ(tenon({"run", "-x * 2", "x=3", "--json"}).json()["values"], -6);
}

TEST(Run, ErrorsPointAtTheColumnAndExitWithTheirCode) {
  const Outcome unknown = tenon({"run", "1 + sofmax(2)"});
  EXPECT_EQ(unknown.status, 3);
  EXPECT_EQ(unknown.out, "");
  EXPECT_EQ(unknown.err,
            "tenon: column 5: unknown op 'sofmax'\n"
            "  1 + sofmax(2)\n"
            "      ^~~~~~\n"
            "hint: did you mean 'softmax'?\n");
  EXPECT_EQ(tenon({"run", "1 +"}).status, 2);
  EXPECT_EQ(tenon({"run", "x"}).status, 2);
  EXPECT_EQ(tenon({"run", "1", "--device", "nosuch"}).status, 3);
  EXPECT_EQ(tenon({"run", "x", "x=@missing.npy"}).status, 3);
  EXPECT_EQ(tenon({"run", "zeros([1000000, 1000000])"}).status, 1);
}

TEST(Run, ErrorsUnderJsonAreOneDocumentOnStdout) {
  const Outcome outcome = tenon({"run", "1 + sofmax(2)", "--json"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.err, "");
  boost::json::object document = outcome.json(), error = document["error"].as_object();
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(error["code"], "not_found");
  EXPECT_EQ(error["hint"], "did you mean 'softmax'?");
  EXPECT_EQ(error["column"], 5);
}

TEST(Run, WrongInputsAreNamed) {
  EXPECT_TRUE(contains(tenon({"run", "x", "x=1", "x=2"}).err, "'x' is given twice"));
  EXPECT_TRUE(contains(tenon({"run", "weight", "wieght=1"}).err, "did you mean 'weight'?"));
  EXPECT_TRUE(contains(tenon({"run", "x", "x=[1,"}).err, "input 'x': "));
  EXPECT_TRUE(contains(tenon({"run", "x", "3"}).err, "'3' is not an input"));
  EXPECT_TRUE(contains(tenon({"run", "x", "x=@a.txt"}).err, "neither a .npy nor a .safetensors"));
  EXPECT_TRUE(contains(tenon({"run", "x", "x=1", "--dtype", "flaot32"}).err, "did you mean 'float32'?"));
}

}  // namespace
}  // namespace tenon::cli::testing
