// tenon tune, the plots it draws, and tenon run --explain.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/cli_testing.h"
#include "cli/explain.h"
#include "cli/terminal/plot.h"

namespace tenon::cli::testing {
namespace {

Curve rising() {
  Curve curve;
  curve.title = "a < b & c";
  curve.x_label = "batch";
  curve.y_label = "rows";
  curve.points = {{1, 1}, {2, 2}, {4, 4}, {8, 8}};
  curve.mark = 4;
  return curve;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Plot, ARisingCurveRises) {
  const std::vector<std::string> lines = lines_of(plot_text(rising(), 40, 10, true));
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines[0], "a < b & c");
  EXPECT_TRUE(lines[1].starts_with("8 |")) << lines[1];
  EXPECT_EQ(lines[1].back(), '*');
  EXPECT_EQ(lines[7].find('*'), 3u) << lines[7];
  EXPECT_TRUE(contains(lines[9], "batch 4"));
  for (const std::string& line : lines) EXPECT_LE(line.size(), 40u);
}

TEST(Plot, BrailleHasTheSameShape) {
  const std::string text = plot_text(rising(), 40, 10, false);
  EXPECT_TRUE(contains(text, "│"));
  EXPECT_TRUE(contains(text, "\xE2\xA0") || contains(text, "\xE2\xA1") || contains(text, "\xE2\xA2") ||
              contains(text, "\xE2\xA3"));
}

TEST(Plot, OnePointAndNoneAreDrawnToo) {
  Curve curve = rising();
  curve.points = {{1, 5}};
  curve.mark = 1;
  EXPECT_TRUE(contains(plot_text(curve, 40, 8, true), "*"));
  EXPECT_TRUE(contains(plot_svg(curve), "<polyline"));
  curve.points.clear();
  curve.mark.reset();
  EXPECT_NO_THROW(plot_text(curve, 40, 8, true));
  EXPECT_NO_THROW(plot_svg(curve));
}

TEST(Plot, SvgIsWellFormedAndEscapesItsTexts) {
  Curve curve = rising();
  curve.second = {{1, 3}, {2, 2}};
  curve.second_label = "seconds";
  const std::string svg = plot_svg(curve);
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_TRUE(contains(svg, "a &lt; b &amp; c"));
  EXPECT_EQ(svg, plot_svg(curve));
  // Every element is closed: as many ends as beginnings.
  std::ptrdiff_t open = 0;
  for (std::size_t i = 0; i + 1 < svg.size(); ++i) {
    if (svg[i] == '<') open += svg[i + 1] == '/' ? -1 : 1;
    if (svg[i] == '/' && svg[i + 1] == '>') --open;
  }
  EXPECT_EQ(open, 0);
}

TEST(TuneCommand, FindsABatchAndShowsTheCurve) {
  const Outcome shown = tenon(
      {"tune", "relu(x @ w)", "x=rand([1, 16])", "w=rand([16, 16])", "--max-batch", "64", "--device", "cpu", "--seconds", "2"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  for (const char* part : {"BATCH", "<- knee", "Use a batch of", "on cpu:0", "*"})
    EXPECT_TRUE(contains(shown.out, part)) << part << " in\n" << shown.out;
  EXPECT_TRUE(shown.err.empty()) << shown.err;
}

TEST(TuneCommand, JsonHasThePointsAndTheKnee) {
  const Outcome shown =
      tenon({"tune", "x * 2 + y", "x=rand([1, 8])", "y=rand([1, 8])", "--max-batch", "8", "--device", "cpu", "--json"});
  ASSERT_EQ(shown.status, 0) << shown.out;
  const boost::json::object document = shown.json();
  EXPECT_EQ(document.at("schema"), 1);
  ASSERT_GE(document.at("points").as_array().size(), 3u);
  EXPECT_EQ(document.at("points").at(1).at("batch"), 2);
  EXPECT_EQ(document.at("points").at(1).at("bytes"), 2 * 3 * 8 * 4);
  EXPECT_EQ(document.at("growing").as_array().size(), 2u);
  EXPECT_TRUE(document.at("knee").at("batch").is_int64());
}

TEST(TuneCommand, GrowsTheNamedInputsAlongTheGivenAxis) {
  const Outcome shown = tenon({"tune", "w @ x", "w=rand([4, 4])", "x=rand([4, 1])", "--batch-axis", "1", "--grow", "x",
                               "--max-batch", "4", "--device", "cpu", "--json"});
  ASSERT_EQ(shown.status, 0) << shown.out;
  EXPECT_EQ(shown.json().at("growing"), (boost::json::array{"x"}));
  EXPECT_EQ(shown.json().at("points").at(2).at("bytes"), 4 * (16 + 2 * 4 * 4));
}

TEST(TuneCommand, KeepsTheMemoryBudget) {
  const Outcome shown = tenon({"tune", "x * 2", "x=rand([1, 128])", "--memory-budget", "4KiB", "--device", "cpu", "--json"});
  ASSERT_EQ(shown.status, 0) << shown.out;
  const boost::json::object document = shown.json();
  for (const auto& point : document.at("points").as_array()) EXPECT_LE(point.at("bytes").to_number<double>(), 4096);
}

TEST(TuneCommand, WritesTheCurveAsSvg) {
  const Folder folder;
  const Outcome shown =
      tenon({"tune", "x * 2", "x=rand([1, 8])", "--max-batch", "4", "--device", "cpu", "--svg", folder / "curve.svg"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  std::ostringstream text;
  text << std::ifstream(folder / "curve.svg").rdbuf();
  EXPECT_TRUE(text.str().starts_with("<svg"));
  EXPECT_EQ(
      tenon({"tune", "x * 2", "x=rand([1, 8])", "--max-batch", "2", "--device", "cpu", "--svg", "/nonexistent/a.svg"}).status, 3);
}

TEST(TuneCommand, APlaceForTheCurveThatCannotBeWrittenIsSaidBeforeMeasuring) {
  const Outcome outcome = tenon({"tune", "relu(x)", "x=rand([1, 4])", "--seconds", "0.01", "--svg", "/proc/curve.svg"});
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(contains(outcome.err, "cannot write /proc/curve.svg: ")) << outcome.err;
}

TEST(TuneCommand, WhatCannotGrowIsAUsageError) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"tune", "1 + 1"},
                                                {"tune", "x * 2", "x=3"},
                                                {"tune", "x * 2", "x=rand([2])", "--batch-axis", "1"},
                                                {"tune", "x * 2", "x=rand([2])", "--grow", "y"},
                                                {"tune", "x * 2", "x=rand([2])", "--max-batch", "0"}})
    EXPECT_EQ(tenon(words).status, 2) << words[1];
}

TEST(RunExplain, ShowsEveryCandidateAndTheReason) {
  const Outcome shown = tenon({"run", "1 + 1", "--explain"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  for (const char* part : {"DEVICE", "COMPUTE", "TOTAL", "* cpu:0", "cpu:0: "})
    EXPECT_TRUE(contains(shown.out, part)) << part << " in\n" << shown.out;
  const Outcome document = tenon({"run", "1 + 1", "--explain", "--json"});
  EXPECT_EQ(document.json().at("routing").at("device"), "cpu:0");
  EXPECT_FALSE(document.json().at("routing").at("candidates").as_array().empty());
  EXPECT_FALSE(tenon({"run", "1 + 1", "--json"}).json().contains("routing"));
}

TEST(RunExplain, ADecisionIsShownStageByStage) {
  Decision decision;
  decision.device.id = "cpu:0";
  decision.reason = "fastest: 5 us, against 180 ms on cuda:0";
  decision.warning = "tpu requested but none was found; using cpu:0";
  Considered chosen, slower, unusable;
  chosen.candidate.device.id = "cpu:0";
  chosen.is_eligible = true;
  chosen.predicted = {.compute_seconds = 5e-6, .is_measured = true};
  chosen.dollars = 0;
  slower.candidate.device.id = "cuda:0";
  slower.is_eligible = true;
  slower.predicted = {.open_seconds = 0.18, .transfer_seconds = 2e-5, .compute_seconds = 1e-5};
  slower.remark = "180 ms slower";
  unusable.candidate.device.id = "tpu:0";
  unusable.remark = "in use by pid 7";
  decision.considered = {chosen, slower, unusable};
  std::ostringstream out, err;
  const Console console{.out = out, .err = err};
  const std::string text = explanation(decision, console);
  for (const char* part : {"* cpu:0", "5.00 us", "180 ms", "~10.0 us", "180 ms slower", "in use by pid 7",
                           "cpu:0: fastest: 5 us, against 180 ms on cuda:0", "warning: tpu requested", "~ guessed"})
    EXPECT_TRUE(contains(text, part)) << part << " in\n" << text;
  const boost::json::object document = explanation_json(decision);
  EXPECT_EQ(document.at("candidates").at(1).at("open_seconds").as_double(), 0.18);
  EXPECT_EQ(document.at("candidates").at(0).at("measured"), true);
  EXPECT_TRUE(document.at("candidates").at(1).at("dollars").is_null());
}

}  // namespace
}  // namespace tenon::cli::testing
