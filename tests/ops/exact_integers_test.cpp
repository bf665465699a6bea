// Integers beyond 2^53, which a double does not hold, and the signs of zeros.
#include <gtest/gtest.h>

#include <cmath>

#include "expression/expression_testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

std::vector<std::int64_t> integers(const std::string& source) {
  const HostArray result = run(source);
  EXPECT_EQ(result.dtype(), DType::i64) << source;
  const auto view = result.view<std::int64_t>();
  return {view.begin(), view.end()};
}
using Integers64 = std::vector<std::int64_t>;

TEST(ExactIntegers, ParametersKeepAll64Bits) {
  EXPECT_EQ(integers("full([2], 9007199254740993, dtype=int64)"), (Integers64{9007199254740993, 9007199254740993}));
  EXPECT_EQ(integers("full_like([1], 9223372036854775807)"), (Integers64{INT64_MAX}));
  EXPECT_EQ(integers("arange(9007199254740992, 9007199254740995)"),
            (Integers64{9007199254740992, 9007199254740993, 9007199254740994}));
  EXPECT_EQ(integers("arange(9007199254740995, 9007199254740992, -2)"), (Integers64{9007199254740995, 9007199254740993}));
  EXPECT_EQ(integers("clamp([0, 9007199254740999], 9007199254740993, 9007199254740995)"),
            (Integers64{9007199254740993, 9007199254740995}));
  EXPECT_EQ(integers("pad([1], padding=1, value=9007199254740993)"), (Integers64{9007199254740993, 1, 9007199254740993}));
  EXPECT_EQ(integers("masked_fill([1, 2], [true, false], 9007199254740993)"), (Integers64{9007199254740993, 2}));
}

TEST(ExactIntegers, FractionsStillMakeFloats) {
  EXPECT_EQ(run("arange(0, 1, 0.25)").dtype(), DType::f32);
  EXPECT_EQ(values("full([1], 2.5)"), (std::vector<double>{2.5}));
  EXPECT_EQ(values("clamp([1, 5], 0, 2.5)"), (std::vector<double>{1, 2.5}));
}

TEST(ExactIntegers, AnInnerProductKeepsItsTypeAndWraps) {
  const HostArray y = run("vecdot(cast([[16, 16], [1, 2]], uint8), cast([[16, 1], [3, 4]], uint8))");
  EXPECT_EQ(y.dtype(), DType::u8);
  EXPECT_EQ(y.to_doubles(), (std::vector<double>{16, 11}));
}

TEST(SignsOfZero, FloorDivisionHasTheSignOfTheQuotient) {
  const auto signs = [](const std::string& source) {
    std::vector<double> signs;
    for (const double v : values(source)) signs.push_back(v == 0 ? (std::signbit(v) ? -0.5 : 0.5) : v);
    return signs;
  };
  EXPECT_EQ(signs("floor_div([0.0, -0.0, 0.0, -0.0, 1.0, -1.0], [2.0, 2.0, -2.0, -2.0, 2.0, -2.0])"),
            (std::vector<double>{0.5, -0.5, -0.5, 0.5, 0.5, 0.5}));
  EXPECT_EQ(signs("floor_div([1.0, -1.0, 1.0, -1.0], [inf, inf, -inf, -inf])"), (std::vector<double>{0.5, -1, -1, 0.5}));
  EXPECT_EQ(signs("remainder([0.0, -0.0, 4.0, -4.0, 0.0], [2.0, 2.0, -2.0, 2.0, -2.0])"),
            (std::vector<double>{0.5, 0.5, -0.5, 0.5, -0.5}));
}

TEST(Ranks, OfUpTo16AxesAreComputed) {
  EXPECT_EQ(run("reshape(arange(16), [1, 2, 1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1])").shape().rank(), 16);
  EXPECT_EQ(values("sum(reshape(arange(16), [1, 2, 1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1]), axis=[1, 5, 15])").size(), 4u);
}

}  // namespace
}  // namespace tenon
