// Golden texts: what the generators write, kept in tests/codegen/golden and compared line by line.
//
// A changed text is a finding or an intention. After looking at the difference:
//   TENON_UPDATE_GOLDEN=1 build/release/test_codegen --gtest_filter='*Golden*'      and commit what git shows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

#include "source_folder.h"
#include "tenon/expression.h"

namespace tenon::test {

struct GoldenCase {
  const char* name;  // of the file
  const char* expression;
};
inline void PrintTo(const GoldenCase& golden, std::ostream* out) { *out << golden.expression; }
inline std::string case_name(const ::testing::TestParamInfo<GoldenCase>& info) { return info.param.name; }

// The graph of an expression over these inputs, of which it has those it reads.
inline Graph golden_graph(const char* expression) {
  static const std::vector<NamedType> inputs = {
      {"x", DType::f32, {4, 8}},
      {"y", DType::f32, {4, 8}},
      {"v", DType::f32, {8}},
      {"w", DType::f32, {8, 4}},
      {"d", DType::f64, {4}},
      {"h", DType::bf16, {4, 8}},
      {"k", DType::bfloat8_b, {4, 8}},
      {"n", DType::i32, {4}},
      {"u", DType::u8, {4}},
      {"i", DType::i64, {3}},
      {"image", DType::f32, {1, 2, 5, 5}},
      {"filter", DType::f32, {3, 2, 3, 3}},
      {"image_filter", DType::f32, {2, 3, 4, 4}},
      {"picture", DType::f16, {8, 64, 32, 32}},
      {"filters", DType::f16, {64, 64, 3, 3}},
      {"many_filters", DType::f16, {128, 64, 3, 3}},
      {"square", DType::f32, {256, 256}},
      {"wide", DType::f32, {64, 1000}},
      {"very_wide", DType::f32, {64, 40'000}},
      {"line", DType::f32, {1 << 24}},
      {"narrow_line", DType::bf16, {1 << 24}},
      {"heads", DType::f32, {1, 2, 100, 64}},
      {"half_heads", DType::bf16, {1, 2, 100, 64}},
      {"one_query", DType::f32, {1, 2, 1, 64}},
      {"places", DType::i64, {256, 256}},
      {"volume", DType::f16, {2, 32, 8, 8, 8}},
      {"volume_filters", DType::f16, {32, 32, 3, 3, 3}},
  };
  const std::vector<std::string> names = free_names(expression);
  std::vector<NamedType> used;
  for (const NamedType& input : inputs)
    if (std::find(names.begin(), names.end(), input.name) != names.end()) used.push_back(input);
  return parse_expression(expression, used);
}

inline std::filesystem::path golden_folder() { return source_folder() / "tests/codegen/golden"; }

inline std::string text_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// |text| is that of golden/|name|; with TENON_UPDATE_GOLDEN it becomes that.
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path file = golden_folder() / name;
  if (std::getenv("TENON_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(file)) << file << " is missing: see golden.h";
  std::istringstream expected(text_of_file(file)), actual(text);
  std::string was, is;
  for (int line = 1;; ++line) {
    const bool more_was = static_cast<bool>(std::getline(expected, was)), more_is = static_cast<bool>(std::getline(actual, is));
    if (!more_was && !more_is) return;
    ASSERT_TRUE(more_was && more_is && was == is)
        << name << ", line " << line << "\n  was: " << (more_was ? was : "(end)") << "\n  is:  " << (more_is ? is : "(end)")
        << "\nIf it should be so: TENON_UPDATE_GOLDEN=1 test_codegen --gtest_filter='*Golden*'\n\nThe whole text:\n"
        << text;
  }
}

// No file under golden/|folder| belongs to a case that is gone.
inline void expect_no_other_golden(const std::string& folder, std::span<const GoldenCase> cases) {
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder() / folder)) {
    const std::string name = entry.path().stem().string();
    const bool is_known = std::any_of(cases.begin(), cases.end(), [&](const GoldenCase& golden) { return golden.name == name; });
    EXPECT_TRUE(is_known) << entry.path() << " belongs to no case: remove it";
  }
}

}  // namespace tenon::test
