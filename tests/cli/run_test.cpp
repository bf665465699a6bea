// tenon run: inputs, results, formats and exit codes.
#include <gtest/gtest.h>

#include <array>

#include "cli/cli_testing.h"
#include "tenon/array/io.h"
#include "tenon/tensor/functions.h"
#include "tenon/tensor/program.h"

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

TEST(Run, ASavedProgramTakesItsInputsByName) {
  const Folder folder;
  const std::string file = folder / "step.tenon";
  const Tensor x = program_input(DType::f32, {2}), scale = program_number(DType::f64);
  const std::array<std::string, 2> names{"x", "scale"};
  Program::record(std::array{x, scale}, std::array{x * scale + tensor({1.0, 2.0}), sum(x)}, names).save(file);
  const Outcome outcome = tenon({"run", "@" + file, "scale=0.5", "x=[2, 4]", "--compare", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.json()["results"].as_array()[0].as_object()["values"], boost::json::parse("[2.0, 4.0]"));
  EXPECT_EQ(outcome.json()["results"].as_array()[1].as_object()["name"], "result1");
  EXPECT_TRUE(contains(tenon({"run", "@" + file, "x=[2, 4]"}).err, "'scale' (float64 []) is missing"));
  EXPECT_TRUE(contains(tenon({"run", "@" + file, "x=[2]", "scale=1"}).err, "recorded for float32 [2]"));
  EXPECT_TRUE(contains(tenon({"run", "@" + file, "y=[2]"}).err, "its inputs: x, scale"));
  EXPECT_EQ(tenon({"run", "@" + (folder / "none.tenon")}).status, 3);
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
  EXPECT_TRUE(contains(tenon({"run", "x", "x=@a.txt"}).err, "a.txt"));
  EXPECT_TRUE(contains(tenon({"run", "x", "x=1", "--dtype", "flaot32"}).err, "did you mean 'float32'?"));
}

TEST(Run, ResultsHaveTheirNames) {
  const Outcome text = tenon({"run", "values, indices = top_k(x, 2); values, indices", "x=[3, 1, 4]"});
  EXPECT_TRUE(contains(text.out, "values: ")) << text.out;
  const boost::json::object document =
      tenon({"run", "values, indices = top_k(x, 2); values, indices", "x=[3, 1, 4]", "--json"}).json();
  EXPECT_EQ(document.at("results").at(1).at("name"), "indices");
}

TEST(Run, FilesAndPastedTextAreInputs) {
  const Folder folder;
  std::ofstream(folder / "m.csv") << "a,b\n1,2\n3,4\n";
  EXPECT_TRUE(tenon({"run", "sum(m)", "m=@" + (folder / "m.csv")}).out.starts_with("10\n"));
  EXPECT_TRUE(tenon({"run", "sum(m)", "m=tensor([[1., 2.], [3., 4.]], dtype=torch.float64)"}).out.starts_with("10.0\n"));
  EXPECT_TRUE(contains(tenon({"run", "m", "m=1 2; 3 4"}).out, "[2, 2] int64"));
  EXPECT_EQ(tenon({"run", "a, b = 1, 2; a, b", "-o", folder / "two.npz"}).status, 0);
  EXPECT_TRUE(tenon({"run", "x + 1", "x=@" + (folder / "two.npz") + ":b"}).out.starts_with("3\n"));
  EXPECT_EQ(tenon({"run", "[[1.5, 2], [3, 4]]", "-o", folder / "m2.csv"}).status, 0);
  std::stringstream written;
  written << std::ifstream(folder / "m2.csv").rdbuf();
  EXPECT_EQ(written.str(), "1.5,2\n3,4\n");
}

TEST(Run, RoutingCanBeChosenForOneRun) {
  const boost::json::object cheapest =
      tenon({"run", "1 + 1", "--routing", "cheapest", "--explain", "--json", "--sim", "gpu,open=0,close=0"}).json();
  EXPECT_EQ(cheapest.at("device").at("id"), "cpu:0");
  EXPECT_EQ(cheapest.at("cost").at("dollars"), 0.0);
  const boost::json::object preferred =
      tenon({"run", "1 + 1", "--prefer", "sim:0", "--json", "--sim", "gpu,open=0,close=0", "--set", "prices.sim:0=3600"}).json();
  EXPECT_EQ(preferred.at("device").at("id"), "sim:0");
  EXPECT_GT(preferred.at("cost").at("dollars").as_double(), 0);
  EXPECT_EQ(tenon({"run", "1 + 1", "--routing", "pinned"}).status, 2);
}

TEST(Warm, ShowsTheFirstRunAndLaterOnes) {
  const Outcome text = tenon({"warm", "x * 2", "x=[1, 2]", "--device", "sim:0", "--sim", "gpu,open=0,close=0"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "first run")) << text.out;
  const boost::json::object document = tenon({"warm", "x * 2", "x=[1, 2]", "--device", "cpu", "--json"}).json();
  EXPECT_FALSE(document.at("later").as_array().empty());
}

TEST(Profile, ShowsWhatWasLearnt) {
  tenon({"run", "rand([1000]) + 1", "--device", "cpu"});
  EXPECT_EQ(tenon({"profile"}).status, 0);
  EXPECT_EQ(tenon({"profile", "--json"}).json().at("schema"), 1);
}

TEST(Encode, StoresTensorsInFewerBytesAndBack) {
  const Folder folder;
  ASSERT_EQ(tenon({"run", "randn([8, 64], seed=1)", "-o", folder / "w.npy"}).status, 0);
  const Outcome encoded = tenon({"pack", folder / "w.npy", "--as", "int8", "-o", folder / "small.safetensors"});
  EXPECT_EQ(encoded.status, 0) << encoded.err;
  EXPECT_TRUE(contains(encoded.out, "3.")) << encoded.out;  // the ratio, below 4 because of the scales
  EXPECT_EQ(tenon({"unpack", folder / "small.safetensors", "-o", folder / "again.npy"}).status, 0);
  const std::string off =
      tenon({"run", "max(abs(a - b)) < 0.02", "a=@" + (folder / "w.npy"), "b=@" + (folder / "again.npy")}).out;
  EXPECT_TRUE(off.starts_with("true")) << off;
  const boost::json::object all = tenon({"pack", folder / "w.npy", "--as", "all", "--json"}).json();
  EXPECT_GE(all.at("tensors").as_array().size(), 11u);
  EXPECT_EQ(tenon({"pack", folder / "w.npy", "--as", "int7"}).status, 2);
}

}  // namespace
}  // namespace tenon::cli::testing
