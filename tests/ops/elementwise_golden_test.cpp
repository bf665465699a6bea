// The formulas of the elementwise bodies against tests/golden/elementwise.txt, which an independent source made.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ops/elementwise/reference.h"
#include "source_folder.h"

namespace tenon {
namespace {

struct Case {
  std::string line;
  DType dtype = DType::f64;
  ElementwiseOp op{};
  std::vector<std::string> inputs;
  std::vector<double> params;
  std::string expected;
};

ElementwiseOp body_named(const std::string& name) {
  for (int i = 0; i < kElementwiseCount; ++i)
    if (kElementwiseNames[i] == name) return static_cast<ElementwiseOp>(i);
  ADD_FAILURE() << "no body is called " << name;
  return {};
}

std::vector<Case> golden_cases() {
  const std::filesystem::path file = source_folder() / "tests/golden/elementwise.txt";
  std::ifstream in(file);
  EXPECT_TRUE(in.good()) << file;
  std::vector<Case> cases;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Case c;
    c.line = line;
    std::string word;
    words >> word;
    c.dtype = parse_dtype(word).value();
    words >> word;
    c.op = body_named(word);
    while (words >> word && word != ":") c.inputs.push_back(word);
    while (words >> word && word != "=") c.params.push_back(std::strtod(word.c_str(), nullptr));
    words >> c.expected;
    cases.push_back(c);
  }
  return cases;
}

// Relative error allowed in double. The default leaves room for three or four roundings; an exponential of a large argument
// magnifies the rounding of that argument.
double limit(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::Gelu:
    case ElementwiseOp::GeluTanh:
    case ElementwiseOp::Ndtr: return 4e-13;
    case ElementwiseOp::Exp10:
    case ElementwiseOp::QuickGelu:
    case ElementwiseOp::Digamma:
    case ElementwiseOp::Tanhshrink: return 1e-14;
    default: return 3e-15;
  }
}

bool agrees(double actual, double expected, double relative) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isinf(expected) || expected == 0) return actual == expected;
  return std::fabs(actual - expected) <= relative * std::fabs(expected);
}

double evaluate_real(const Case& c) {
  std::vector<double> in;
  for (const std::string& text : c.inputs) in.push_back(std::strtod(text.c_str(), nullptr));
  return evaluate(c.op, in.data(), c.params.data());
}

template <class T>
std::string evaluate_integer(const Case& c) {
  std::vector<T> in;
  for (const std::string& text : c.inputs) in.push_back(static_cast<T>(std::strtoll(text.c_str(), nullptr, 10)));
  std::vector<const void*> pointers;
  for (const T& value : in) pointers.push_back(&value);
  std::uint8_t condition = 0;
  if (traits(c.op).condition) {
    condition = in[0] != 0 ? 1 : 0;
    pointers[0] = &condition;
  }
  T result{};
  std::uint8_t truth = 0;
  const bool returns_bool = traits(c.op).returns_bool;
  evaluate_block(c.op, c.dtype, pointers.data(), returns_bool ? static_cast<void*>(&truth) : &result, 1, c.params.data());
  return std::to_string(returns_bool ? static_cast<T>(truth) : result);
}

TEST(ElementwiseGolden, FloatsAgreeWithAnIndependentSource) {
  for (const Case& c : golden_cases()) {
    if (c.dtype != DType::f64) continue;
    const double actual = evaluate_real(c), expected = std::strtod(c.expected.c_str(), nullptr);
    EXPECT_TRUE(agrees(actual, expected, limit(c.op)))
        << c.line << "   got " << std::hexfloat << actual << std::defaultfloat << ", off by " << (actual - expected) / expected;
  }
}

TEST(ElementwiseGolden, IntegersAreExactAndWrap) {
  for (const Case& c : golden_cases()) {
    if (c.dtype == DType::f64) continue;
    std::string actual;
    switch (c.dtype) {
      case DType::i8: actual = evaluate_integer<std::int8_t>(c); break;
      case DType::u8: actual = evaluate_integer<std::uint8_t>(c); break;
      case DType::i32: actual = evaluate_integer<std::int32_t>(c); break;
      case DType::i64: actual = evaluate_integer<std::int64_t>(c); break;
      default: FAIL() << c.line;
    }
    EXPECT_EQ(actual, c.expected) << c.line;
  }
}

TEST(ElementwiseGolden, EveryBodyIsCovered) {
  std::map<ElementwiseOp, int> count;
  for (const Case& c : golden_cases()) ++count[c.op];
  for (int i = 0; i < kElementwiseCount; ++i) EXPECT_GE(count[static_cast<ElementwiseOp>(i)], 2) << kElementwiseNames[i];
}

}  // namespace
}  // namespace tenon
