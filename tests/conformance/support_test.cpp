// The support matrix: the page is what its files say, and the files cover the catalogue.
#include "conformance/report/support.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/system/file_descriptor.h"
#include "tenon/error.h"

namespace tenon::conformance {
namespace {

const std::string kResults = TENON_SOURCE_DIR "/tests/conformance/results";

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Results result(DType dtype, Status status, std::int64_t cases = 1) {
  Verdict verdict;
  verdict.status = status;
  verdict.cases = cases;
  if (status == Status::unsupported) verdict.reason = "no float64 here";
  return {{{"softmax", dtype}, verdict}};
}

TEST(SupportTest, ThePageIsMadeFromTheResults) {
  EXPECT_EQ(text_of(TENON_SOURCE_DIR "/docs/support.md"), support_text(kResults))
      << "make it again: tenon_conformance --support tests/conformance/results > docs/support.md";
}

TEST(SupportTest, EveryFileKnowsEveryOpAndTypeOfTheCatalogue) {
  for (const auto& entry : std::filesystem::directory_iterator(kResults)) {
    const Column column = read_column(entry.path().string());
    for (const char* name : {"device", "date", "command", "extent"})
      EXPECT_TRUE(column.about.contains(name)) << entry.path() << " does not say its " << name;
    for (const OpInfo& op : all_ops()) {
      ASSERT_TRUE(column.marks.contains(op.name)) << entry.path() << " lacks " << op.name;
      const std::string& marks = column.marks.at(op.name);
      for (const DType dtype : all_dtypes()) {
        const bool takes = std::find(op.dtypes.begin(), op.dtypes.end(), dtype) != op.dtypes.end();
        EXPECT_EQ(marks[static_cast<std::size_t>(dtype)] != '_', takes) << entry.path() << ", " << op.name << " " << name(dtype);
      }
    }
  }
}

TEST(SupportTest, PartsOfTheCatalogueAddUp) {
  Column column = column_of(result(DType::f32, Status::pass), {{"date", "1"}});
  column.merge(column_of(result(DType::f64, Status::unsupported), {{"date", "2"}}));
  const auto mark = [&](DType dtype) { return column.marks.at("softmax")[static_cast<std::size_t>(dtype)]; };
  EXPECT_EQ(mark(DType::f32), '.');
  EXPECT_EQ(mark(DType::f64), '-');
  EXPECT_EQ(mark(DType::f16), 'x');
  EXPECT_EQ(column.about.at("date"), "2");
  EXPECT_EQ(column.refused, std::vector<std::string>{"no float64 here"});
}

TEST(SupportTest, AColumnIsReadAsItWasWritten) {
  std::string path = testing::TempDir() + "tenon-column-XXXXXX";
  const FileDescriptor file(mkstemp(path.data()));
  ASSERT_TRUE(file);
  const Column column =
      column_of(result(DType::f64, Status::unsupported), {{"device", "a card: its name"}, {"date", "2026-01-01"}});
  std::ofstream(path) << column_text(column) << column_text(column_of(result(DType::f32, Status::fail), {}));
  const Column back = read_column(path);
  EXPECT_EQ(back.about, column.about);
  EXPECT_EQ(back.refused, column.refused);
  EXPECT_EQ(back.marks.at("softmax")[static_cast<std::size_t>(DType::f32)], 'F');
  EXPECT_EQ(back.marks.at("softmax")[static_cast<std::size_t>(DType::f64)], '-');
  std::ofstream(path) << "softmax ..\n";
  EXPECT_THROW(read_column(path), Error);
  std::remove(path.c_str());
}

TEST(SupportTest, ARunThatDisagreesIsTold) {
  const Column saved = column_of(result(DType::f32, Status::pass), {});
  EXPECT_EQ(differences(saved, saved), "");
  EXPECT_EQ(differences(column_of(result(DType::f32, Status::unsupported), {}), saved), "softmax f32: '-', was '.'\n");
  EXPECT_EQ(differences(column_of(result(DType::f16, Status::pass), {}), saved), "softmax f16: '.', was 'x'\n");
  // A sample without a case of a pair says nothing about it.
  EXPECT_EQ(differences(column_of(result(DType::f32, Status::pass, 0), {}), saved), "");
}

}  // namespace
}  // namespace tenon::conformance
