// The command as a whole: help, versions, colour, wrong usage, completion, ops, devices, bench.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "cli/cli_testing.h"
#include "present/operation.h"
#include "tenon/array/io.h"
#include "tenon/expression.h"
#include "tenon/ops.h"
#include "tenon/tensor.h"
#include "tenon/tensor/program.h"

namespace tenon::cli::testing {
namespace {

TEST(Application, VersionAndHelpSucceed) {
  EXPECT_EQ(tenon({"--version"}).status, 0);
  EXPECT_EQ(tenon({"--version"}).out.find("tenon "), 0u);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--help"}, {"run", "--help"}, {"ops", "--help"}, {"bench", "--help"}, {"devices", "--help"}}) {
    const Outcome outcome = tenon(arguments);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_TRUE(contains(outcome.out, "Examples:")) << arguments[0];
    EXPECT_TRUE(contains(outcome.out, "--progress")) << "an option of every command: " << arguments[0];
  }
}

// The files that the examples name.
void write_example_files(const std::filesystem::path& folder) {
  const Tensor x = program_input(DType::f32, {2}), scale = program_number(DType::f64);
  const std::array<std::string, 2> names{"x", "scale"};
  Program::record(std::array{x, scale}, std::array{x * scale}, names).save(folder / "step.tenon");
  save_npy(folder / "batch.npy", HostArray::from<float>({2}, {1, 2}));
}

// The examples in the help are commands; a reader will try them.
TEST(Application, TheExamplesOfTheHelpRun) {
  const Folder folder;
  write_example_files(folder.path());
  int tried = 0;
  for (const std::vector<std::string>& help :
       {std::vector<std::string>{"--help"}, {"run", "--help"}, {"bench", "--help"}, {"ops", "--help"}}) {
    std::istringstream lines(tenon(help).out);
    for (std::string line; std::getline(lines, line);) {
      if (line.find("  tenon ") != 0) continue;
      std::vector<std::string> arguments(1);
      bool quoted = false;
      for (const char c : line.substr(8)) {
        if (c == '\'') {
          quoted = !quoted;
        } else if (c == ' ' && !quoted) {
          arguments.emplace_back();
        } else {
          arguments.back() += c;
        }
      }
      for (std::string& argument : arguments)
        if (const std::size_t file = argument.find('@'); file == 0 || (file != std::string::npos && argument[file - 1] == '='))
          argument = argument.substr(0, file + 1) + (folder / argument.substr(file + 1));
      if (arguments[0] == "bench") {
        if (const auto given = std::find(arguments.begin(), arguments.end(), "--seconds"); given != arguments.end())
          arguments.erase(given, given + 2);
        arguments.insert(arguments.end(), {"--seconds", "0.001"});
      }
      const Outcome outcome = tenon(arguments);
      EXPECT_EQ(outcome.status, 0) << line << "\n" << outcome.err;
      ++tried;
    }
  }
  EXPECT_GE(tried, 10);
}

TEST(Application, WrongUsageExitsWithTwoAndSuggests) {
  EXPECT_EQ(tenon({}).status, 2);
  const Outcome command = tenon({"rnu", "1"});
  EXPECT_EQ(command.status, 2);
  EXPECT_TRUE(contains(command.err, "did you mean 'run'?")) << command.err;
  const Outcome option = tenon({"run", "1", "--jsno"});
  EXPECT_EQ(option.status, 2);
  EXPECT_TRUE(contains(option.err, "did you mean '--json'?")) << option.err;
  EXPECT_EQ(tenon({"run"}).status, 2);
  EXPECT_EQ(tenon({"run", "1", "--repeat", "0"}).status, 2);
  EXPECT_EQ(tenon({"run", "1", "--color", "sometimes"}).status, 2);
  EXPECT_EQ(tenon({"ops", "add", "sub"}).status, 2);
  const Outcome json = tenon({"run", "1", "--repeat", "x", "--json"});
  EXPECT_EQ(json.json()["error"].as_object()["code"], "invalid_argument");
}

// A disk that is full, a descriptor that is closed: what reads the file would take half a result for a whole one.
TEST(Application, OutputThatCannotBeWrittenIsAFailure) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"run", "1"}, {"run", "1", "--json"}, {"devices", "--json"}, {"--help"}}) {
    std::ofstream full("/dev/full");
    std::ostringstream err;
    Console console{.out = full, .err = err};
    EXPECT_EQ(run_application(arguments, console), 1) << arguments[0];
    EXPECT_TRUE(contains(err.str(), "could not be written")) << err.str();
  }
}

TEST(Application, ANumberThatIsNoneOrOutsideItsBoundsIsRefusedInWords) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"run", "1", "--timeout", "nan"},
                                                    {"run", "1", "--timeout", "-1"},
                                                    {"run", "1", "--timeout", "inf"},
                                                    {"bench", "1", "--seconds", "nan"},
                                                    {"devices", "--watch", "--interval", "nan"},
                                                    {"devices", "--watch", "--interval", "0"},
                                                    {"tune", "x", "x=[1]", "--latency", "nan"},
                                                    {"exec", "--device", "cpu", "--timeout", "nan"},
                                                    {"run", "1", "--repeat", "1.5"},
                                                    {"tune", "x", "x=[1]", "--memory-budget", "-1"},
                                                    {"tune", "x", "x=[1]", "--memory-budget", "0"},
                                                    {"serve", "--port", "99999"},
                                                    {"serve", "--port", "-1"},
                                                    {"serve", "--max-json", "0"},
                                                    {"serve", "--max-body", "0MiB"},
                                                    {"serve", "--max-request-memory", "0"},
                                                    {"serve", "--max-memory", "0"},
                                                    {"tune", "x", "x=[1]", "--memory-budget", "10XB"}}) {
    const Outcome outcome = tenon(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments[0] << " " << arguments.back();
    EXPECT_TRUE(contains(outcome.err, arguments[arguments.size() - 2] + ": must be a ")) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, ", not " + arguments.back() + "\n")) << outcome.err;
  }
}

TEST(Application, AWordThatIsNoneOfThoseAnOptionTakesIsRefusedInWords) {
  EXPECT_TRUE(contains(tenon({"run", "1", "--color", "often"}).err, "--color: must be auto, always or never, not often\n"));
  EXPECT_TRUE(contains(tenon({"completion", "ksh"}).err, "shell: must be bash, zsh or fish, not ksh\n"));
}

TEST(Application, AnOptionWithoutItsValueSaysSo) {
  const Outcome outcome = tenon({"run", "1", "--timeout"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "tenon: --timeout needs a value\nhint: see tenon run --help\n");
}

TEST(Application, PlacesInAnExpressionThatBeginsWithADashAreThoseThatWereTyped) {
  const Outcome outcome = tenon({"run", "-foo(1)", "--json"});
  EXPECT_EQ(outcome.json()["error"].as_object()["column"], 2);
  EXPECT_TRUE(contains(tenon({"run", "-foo(1)"}).err, "\n  -foo(1)\n   ^~~\n"));
  EXPECT_TRUE(contains(tenon({"cost", "--since", "-3d"}).err, "'-3d' is not a time"));
  EXPECT_EQ(tenon({"run", "-2 + 1"}).status, 0);
}

TEST(Application, ColourFollowsTheFlagThenTheEnvironmentThenTheTerminal) {
  const auto coloured = [](std::vector<std::string> extra, const Surroundings& surroundings) {
    std::vector<std::string> arguments{"run", "1"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return contains(tenon(arguments, surroundings).out, "\033[");
  };
  EXPECT_FALSE(coloured({}, {}));
  EXPECT_TRUE(coloured({}, {.terminal = true}));
  EXPECT_FALSE(coloured({}, {.environment = {{"NO_COLOR", "1"}}, .terminal = true}));
  EXPECT_TRUE(coloured({}, {.environment = {{"NO_COLOR", ""}}, .terminal = true}));
  EXPECT_FALSE(coloured({}, {.environment = {{"TERM", "dumb"}}, .terminal = true}));
  EXPECT_TRUE(coloured({}, {.environment = {{"FORCE_COLOR", "1"}}}));
  EXPECT_TRUE(coloured({}, {.environment = {{"CLICOLOR_FORCE", "1"}}}));
  EXPECT_FALSE(coloured({}, {.environment = {{"FORCE_COLOR", "1"}, {"NO_COLOR", "1"}}}));
  EXPECT_TRUE(coloured({"--color", "always"}, {.environment = {{"NO_COLOR", "1"}}}));
  EXPECT_FALSE(coloured({"--color=never"}, {.environment = {{"FORCE_COLOR", "1"}}, .terminal = true}));
}

TEST(Application, CompletionNamesEveryCommandAndOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome outcome = tenon({"completion", shell});
    EXPECT_EQ(outcome.status, 0);
    for (const char* word : {"run", "bench", "ops", "devices", "completion", "compare", "repeat", "seconds"})
      EXPECT_TRUE(contains(outcome.out, word)) << shell << " " << word;
  }
  EXPECT_EQ(tenon({"completion", "tcsh"}).status, 2);
}

TEST(Ops, TheListHasEveryOpUnderItsCategory) {
  const Outcome outcome = tenon({"ops"});
  for (const OpInfo& op : all_ops())
    EXPECT_TRUE(contains(outcome.out, "\n  " + op.name + " ") || contains(outcome.out, "\n  " + op.name + "\n")) << op.name;
  for (const std::string& category : present::categories())
    EXPECT_TRUE(contains("\n" + outcome.out, "\n" + category + "\n")) << category;
}

TEST(Ops, LinesFitTheTerminal) {
  for (const int width : {60, 100}) {
    std::istringstream lines(tenon({"ops"}, {.width = width}).out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << line;
  }
}

TEST(Ops, JsonHasTheSchemaOfTheCatalogue) {
  boost::json::object document = tenon({"ops", "--json"}).json();
  EXPECT_EQ(document["schema"], 2);
  EXPECT_EQ(document["ops"].as_array().size(), all_ops().size());
  for (boost::json::value& op : document["ops"].as_array())
    for (const char* key : {"name", "aliases", "category", "min_inputs", "parameters", "dtypes", "formula", "doc"})
      EXPECT_TRUE(op.as_object().contains(key)) << op.as_object()["name"] << " " << key;
}

TEST(Ops, APageShowsFormulaParametersAndTheExamplesOutput) {
  const Outcome page = tenon({"ops", "elu"});
  EXPECT_EQ(page.status, 0) << page.err;
  for (const char* part : {"formula", "alpha", "number, default 1", "dtypes", "example", "tenon run '"})
    EXPECT_TRUE(contains(page.out, part)) << part << "\n" << page.out;
  EXPECT_EQ(tenon({"ops", "sofmax"}).status, 3);
  EXPECT_TRUE(contains(tenon({"ops", "sofmax"}).err, "softmax"));
}

TEST(Ops, EveryExampleIsAProgram) {
  for (const OpInfo& op : all_ops()) {
    EXPECT_FALSE(op.example.empty()) << op.name;
    EXPECT_NO_THROW(parse_expression(op.example)) << op.name << ": " << op.example;
  }
}

TEST(Ops, NamesAloneAreForScripts) {
  std::istringstream lines(tenon({"ops", "--names"}).out);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_NE(lookup_op(line), nullptr) << line;
  EXPECT_EQ(count, all_ops().size());
}

TEST(Devices, TheCpuIsThere) {
  EXPECT_TRUE(contains(tenon({"devices"}).out, "cpu:0"));
  boost::json::object document = tenon({"devices", "--json"}).json();
  EXPECT_EQ(document["schema"], 2);
  EXPECT_GE(document["devices"].as_array().size(), 1u);
}

TEST(Progress, ATerminalSeesALineUnlessItsUserWantsQuiet) {
  const Surroundings terminal{.terminal = true};
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"bench", "1 + 1", "--seconds", "0.01"}, {"tune", "x * 2", "x=[1]", "--max-batch", "2"}}) {
    const Outcome talking = tenon(command, terminal);
    EXPECT_TRUE(talking.err.ends_with("\r\033[K")) << talking.err;
    std::vector<std::string> quiet = command;
    quiet.push_back("--quiet");
    EXPECT_EQ(tenon(quiet, terminal).err, "");
    EXPECT_EQ(tenon(command).err, "");
  }
}

TEST(Progress, AMeasurementTellsProgramsHowFarItIs) {
  const std::string bench = tenon({"bench", "1 + 1", "--seconds", "0.01", "--progress=json"}).err;
  EXPECT_TRUE(contains(bench, R"({"progress":{"stage":"measuring","what":"compute","percent":0}})")) << bench;
  const std::string tune = tenon({"tune", "x * 2", "x=[1]", "--max-batch", "2", "--progress=json"}).err;
  EXPECT_EQ(tune, "{\"progress\":{\"stage\":\"measuring\",\"batch\":1}}\n{\"progress\":{\"stage\":\"measuring\",\"batch\":2}}\n");
}

TEST(Progress, QuietAndAFormContradictEachOther) {
  const Outcome outcome = tenon({"run", "1", "-q", "--progress=json"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(contains(outcome.err, "--quiet and --progress=json cannot be combined")) << outcome.err;
  EXPECT_EQ(tenon({"run", "1", "--quiet"}).status, 0);
}

TEST(Bench, ReportsBothTimesAndTheWork) {
  const std::vector<std::string> arguments{"bench", "a @ b", "a=rand([8, 16])", "b=rand([16, 4])", "--seconds", "0.01"};
  const Outcome text = tenon(arguments);
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "compute ") && contains(text.out, "end to end ")) << text.out;
  EXPECT_EQ(text.err, "");
  std::vector<std::string> with_json = arguments;
  with_json.emplace_back("--json");
  boost::json::object document = tenon(with_json).json();
  EXPECT_EQ(document["flops"].to_number<double>(), 2 * 8 * 16 * 4);
  EXPECT_EQ(document["bytes_read"].to_number<int>(), 4 * (8 * 16 + 16 * 4));
  EXPECT_EQ(document["bytes_written"].to_number<int>(), 4 * 8 * 4);
  for (const char* part : {"compute", "end_to_end"}) {
    boost::json::object& times = document[part].as_object();
    EXPECT_GT(times["median_seconds"].to_number<double>(), 0);
    EXPECT_LE(times["p10_seconds"].to_number<double>(), times["median_seconds"].to_number<double>());
    EXPECT_GE(times["p90_seconds"].to_number<double>(), times["median_seconds"].to_number<double>());
  }
}

}  // namespace
}  // namespace tenon::cli::testing
