// StableHLO as text, one case for each kind of node and each way to write one. What it computes is tested where a PJRT plugin is
// (tests/backends/pjrt, conformance.pjrt); these need none.
#include <algorithm>
#include <regex>
#include <set>

#include "codegen/golden.h"
#include "codegen/stablehlo/emit.h"

namespace tenon::stablehlo {
namespace {

using test::GoldenCase;

constexpr GoldenCase kCases[] = {
    // elementwise.cpp, conversion.cpp
    {"arithmetic", "x * y + v / 2 - 1"},
    {"integers", "n // 3 + n % 3 + (n << 2)"},
    {"comparisons", "where((x > y) & ~(x == 0), x, -y)"},
    {"unsigned", "u + 200, u >> 1"},
    {"bfloat16_is_computed_in_float", "h * 2 + 1"},
    {"block_format", "k + 1"},
    {"casts_saturate", "cast(x, int8), cast(n, uint8), cast(d, int32), cast(x, bool), cast(d, float16)"},
    {"double", "sqrt(d) / d"},
    // functions.cpp
    {"exp", "exp(v)"},
    {"tanh_and_sigmoid", "tanh(v), sigmoid(v)"},
    {"erf", "gelu(v)"},
    {"pow", "v ** 3, v ** 0.5, v ** v"},
    // structure.cpp
    {"views", "reshape(x.T[1:, ::2], [14])"},
    {"broadcast", "expand(v, [2, 4, 8])"},
    {"pad_and_concat", "concat(pad(v, [1, 2], value=7), v, axis=0)"},
    {"take_checks_its_indices", "x[i]"},
    {"gather", "gather(v, i, axis=0)"},
    {"scatter", "scatter(v, i, [1.0, 2, 3], axis=0)"},
    {"scatter_add", "scatter_add(v, i, [1.0, 2, 3], axis=0)"},
    {"iota", "arange(6) * 2"},
    // reduction.cpp
    {"sum_of_rows", "sum(x, axis=1)"},
    {"max_and_min", "max(x, axis=0), min(n)"},
    {"product_and_any", "prod(n), any(x > 0)"},
    {"softmax", "softmax(x)"},
    {"argmax", "argmax(x, axis=1)"},
    {"sort", "sort(v)"},
    {"cumulative", "cumsum(v), cumprod(n)"},
    // products.cpp
    {"matmul", "x @ w"},
    {"matmul_transposed", "x.T @ y"},
    {"matmul_bfloat16", "h @ cast(w, bfloat16)"},
    {"convolution", "conv2d(image, filter, stride=2, padding=1)"},
    {"pooling", "max_pool2d(image, 2), avg_pool2d(image, 3, stride=1, padding=1)"},
    // random.cpp
    {"random_normal", "randn([4], seed=7)"},
    // emit.cpp
    {"constants_and_inputs_as_results", "x, [1.5, 2.5], 3"},
};

class StableHloGolden : public testing::TestWithParam<GoldenCase> {};

TEST_P(StableHloGolden, TheTextIsAsItWas) {
  const Emitted emitted = emit(test::golden_graph(GetParam().expression));
  test::expect_golden(std::string("stablehlo/") + GetParam().name + ".mlir",
                      std::string("// ") + GetParam().expression + "\n" + emitted.text);
}

// What every reader of MLIR checks first: a value is defined before it is used, and only once.
TEST_P(StableHloGolden, EveryValueIsDefinedOnceAndBeforeItsUse) {
  const std::string text = emit(test::golden_graph(GetParam().expression)).text;
  std::set<std::string> defined;
  std::istringstream lines(text);
  int depth_of_regions = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find(" = ");
    const std::size_t begin = line.find_first_not_of(' ');
    const bool defines = begin != std::string::npos && line[begin] == '%' && equals != std::string::npos;
    static const std::regex kValue("%[A-Za-z_][A-Za-z_0-9]*|%[0-9]+");
    const std::string declared = defines ? line.substr(0, equals) : "";
    const std::string used = defines ? line.substr(equals) : line;
    for (std::sregex_iterator at(used.begin(), used.end(), kValue), end; at != end; ++at) {
      const bool declares_argument = line.find('^') != std::string::npos || line.find("func.func") != std::string::npos;
      if (declares_argument) defined.insert(at->str());
      EXPECT_TRUE(defined.contains(at->str())) << at->str() << " in: " << line;
    }
    for (std::sregex_iterator at(declared.begin(), declared.end(), kValue), end; at != end; ++at)
      EXPECT_TRUE(defined.insert(at->str()).second || depth_of_regions > 0) << at->str() << " again in: " << line;
    depth_of_regions += static_cast<int>(std::count(line.begin(), line.end(), '{') - std::count(line.begin(), line.end(), '}'));
  }
  EXPECT_EQ(depth_of_regions, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, StableHloGolden, testing::ValuesIn(kCases), test::case_name);

TEST(StableHloGolden, EveryFileHasItsCase) { test::expect_no_other_golden("stablehlo", kCases); }

TEST(StableHloGolden, ATargetWithoutDoublesComputesFunctionsInFloat) {
  const std::string text = emit(test::golden_graph("exp(v), erf(v)"), {.wide = false}).text;
  EXPECT_EQ(text.find("f64"), std::string::npos) << text;
}

TEST(StableHloGolden, OnlyProgramsThatLookUpByIndexHaveAResultMore) {
  EXPECT_TRUE(emit(test::golden_graph("x[i]")).checks_indices);
  EXPECT_FALSE(emit(test::golden_graph("x[1]")).checks_indices);
}

}  // namespace
}  // namespace tenon::stablehlo
