#include "present/tensor/tensor.h"

#include <cmath>
#include <limits>

#include "present/present_testing.h"
#include "present/tensor/comparison.h"
#include "tenon/error.h"

namespace tenon::present::testing {
namespace {

std::string values(const HostArray& array) {
  return json_of([&](JsonWriter& json) { write_values(json, array); });
}

TEST(Tensor, ValuesAreNestedListsInTheTensorsShape) {
  EXPECT_EQ(values(HostArray::from<float>({2, 2}, {1, 2.5F, -3, 0.1F})), "[[1.0,2.5],[-3.0,0.1]]");
  EXPECT_EQ(values(HostArray::from<float>({}, {7})), "7.0");
  EXPECT_EQ(values(HostArray::zeros(DType::f32, {2, 0})), "[[],[]]");
  EXPECT_EQ(values(HostArray::zeros(DType::f32, {1'000'000'000'000, 0})), "[]");
}

TEST(Tensor, EveryDTypeReadsAsItself) {
  for (const DType dtype : all_dtypes()) {
    const HostArray array = HostArray::full(dtype, {2}, 1);
    EXPECT_EQ(values(array), dtype == DType::boolean ? "[true,true]" : is_integer(dtype) ? "[1,1]" : "[1.0,1.0]") << name(dtype);
    EXPECT_EQ(json_of([&](JsonWriter& json) { write_element(json, array, 1); }), dtype == DType::boolean ? "true"
                                                                                 : is_integer(dtype)     ? "1"
                                                                                                         : "1.0")
        << name(dtype);
  }
}

TEST(Tensor, NumbersAreExactAndAsShortAsTheirDTypeAllows) {
  EXPECT_EQ(values(HostArray::from<float>({2}, {0.1F, 1e20F})), "[0.1,1e+20]");
  EXPECT_EQ(values(HostArray::from<double>({1}, {0.1})), "[0.1]");
  EXPECT_EQ(values(HostArray::from<std::int64_t>({2}, {9007199254740993, std::numeric_limits<std::int64_t>::min()})),
            "[9007199254740993,-9223372036854775808]");
  EXPECT_EQ(values(HostArray::from<float>({3}, {NAN, INFINITY, -INFINITY})), R"(["NaN","Infinity","-Infinity"])");
}

TEST(Tensor, TypeAndSize) {
  EXPECT_EQ(object_of([](JsonWriter& json) {
              write_type(json, DType::bf16, {2, 3});
              write_size(json, DType::bf16, {2, 3});
            }),
            R"({"shape":[2,3],"dtype":"bfloat16","elements":6,"bytes":12})");
}

TEST(Tensor, TheFirstTenValuesAreASample) {
  EXPECT_EQ(object_of([](JsonWriter& json) { write_first_values(json, HostArray::full(DType::i32, {4, 4}, 3)); }),
            R"({"value":3,"sample_values":[3,3,3,3,3,3,3,3,3,3]})");
  EXPECT_EQ(object_of([](JsonWriter& json) { write_first_values(json, HostArray::zeros(DType::f32, {0})); }),
            R"({"value":null,"sample_values":[]})");
}

TEST(Tensor, DetailsAreStatisticsAHistogramAndAGrid) {
  EXPECT_EQ(object_of([](JsonWriter& json) { write_details(json, HostArray::from<float>({1, 3}, {2, 2, NAN})); }),
            R"({"statistics":{"min":2.0,"max":2.0,"mean":2.0,"deviation":0.0,"nan":1,"positive_infinity":0,)"
            R"("negative_infinity":0,"zero":0},"histogram":{"low":2.0,"high":2.0,"counts":[2]},)"
            R"("grid":{"at":[],"rows":[0],"columns":[0,1,2],"values":[[2.0,2.0,"NaN"]]}})");
  EXPECT_EQ(object_of([](JsonWriter& json) { write_details(json, HostArray::from<float>({1}, {NAN})); }),
            R"({"statistics":{"min":null,"max":null,"mean":null,"deviation":null,"nan":1,"positive_infinity":0,)"
            R"("negative_infinity":0,"zero":0},"histogram":null,"grid":{"at":[],"rows":[0],"columns":[0],"values":[["NaN"]]}})");
}

TEST(Tensor, AGridOfALargeTensorHasItsEdges) {
  const std::string text = object_of([](JsonWriter& json) { write_details(json, HostArray::zeros(DType::f32, {1000, 2})); });
  EXPECT_NE(text.find(R"("grid":{"at":[],"rows":[0,15,)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(983,999],"columns":[0,1])"), std::string::npos) << text;
}

TEST(Tensor, AWindowIsCutAtTheEdgesAndReadAtItsPlace) {
  std::vector<std::int64_t> numbers(2 * 3 * 100 * 70);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
  const HostArray deep = HostArray::from<std::int64_t>({2, 3, 100, 70}, numbers);
  const Slice2d window = window_of(deep.shape(), {1, 2}, 98, 69, 10, 10);
  EXPECT_EQ(json_of([&](JsonWriter& json) { write_slice(json, deep, window); }),
            R"({"at":[1,2],"rows":[98,99],"columns":[69],"values":[[41929],[41999]]})");
  EXPECT_EQ(window_of(deep.shape(), {0, 0}, 0, 0, 1000, 1000).rows.size(), 64u);
  EXPECT_EQ(sample_of(deep.shape(), {1, 0}).rows.back(), 99);
  EXPECT_THROW(window_of(deep.shape(), {1, 3}, 0, 0, 1, 1), Error);
  EXPECT_THROW(window_of(deep.shape(), {1}, 0, 0, 1, 1), Error);
  EXPECT_THROW(window_of(deep.shape(), {1, 2}, 100, 0, 1, 1), Error);
  EXPECT_TRUE(window_of({0, 4}, {}, 0, 0, 1, 1).rows.empty());
}

TEST(Tensor, ResultsAreCalledTheSameEverywhere) {
  EXPECT_EQ(result_name(0, 1), "result");
  EXPECT_EQ(result_name(1, 2), "result1");
  const std::vector<HostArray> two{HostArray::zeros(DType::f32, {1}), HostArray::zeros(DType::f32, {2})};
  EXPECT_EQ(results_file(two).arrays.at("result1").elements(), 2);
  EXPECT_EQ(results_file(two, std::vector<std::string>{"values", "indices"}).arrays.at("indices").elements(), 2);
}

Compared compared_with(const HostArray& result, const std::vector<double>& reference) {
  return {compare(result, reference), HostArray::from<double>(result.shape(), reference)};
}

TEST(Comparison, JsonNamesTheWorstElementAndTheTolerance) {
  const HostArray result = HostArray::from<float>({2, 2}, {1, 2, 3, 5});
  EXPECT_EQ(json_of([&](JsonWriter& json) { write_comparison(json, result, compared_with(result, {1, 2, 3, 4}), 0.25); }),
            R"({"matches":false,"mismatches":1,"max_abs":1.0,"max_rel":0.25,"max_ulp":2097152.0,"worst_index":[1,1],)"
            R"("worst_value":5.0,"worst_reference":4.0,"pcc":0.9827076298239906,)"
            R"("ulp_histogram":{"edges":[0.0,0.5,1.0,2.0,4.0,8.0,16.0,64.0,256.0],"counts":[3,0,0,0,0,0,0,0,1]},)"
            R"("nan":0,"reference_nan":0,"infinity":0,"reference_infinity":0,)"
            R"("tolerance":{"ulp":16.0,"relative_to_largest":3.0517578125e-05},"reference_value":1.0,)"
            R"("reference_sample_values":[1.0,2.0,3.0,4.0],"reference_seconds":0.25})");
}

TEST(Comparison, IntegersBeyondDoublesAreExact) {
  constexpr std::int64_t kOdd = 9007199254740993;  // 2^53 + 1
  const HostArray result = HostArray::from<std::int64_t>({2}, {kOdd, 3}),
                  other = HostArray::from<std::int64_t>({2}, {kOdd - 1, 3});
  const Compared same{compare(result, result), result}, off{compare(result, other), other};
  EXPECT_EQ(same.comparison.mismatches, 0);
  EXPECT_EQ(off.comparison.mismatches, 1);
  EXPECT_EQ(off.comparison.max_abs, 1);
  const std::string text = json_of([&](JsonWriter& json) { write_comparison(json, result, off, 0); });
  EXPECT_NE(text.find(R"("worst_value":9007199254740993,"worst_reference":9007199254740992)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("reference_sample_values":[9007199254740992,3])"), std::string::npos) << text;
}

TEST(Comparison, OfNothingHasNoWorstElement) {
  const HostArray none = HostArray::zeros(DType::f32, {0});
  const std::string text = json_of([&](JsonWriter& json) { write_comparison(json, none, compared_with(none, {}), 0); });
  EXPECT_NE(text.find(R"("worst_index":null,"worst_value":null,"worst_reference":null)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("reference_value":null,"reference_sample_values":[])"), std::string::npos) << text;
}

TEST(Comparison, TextSaysHowFarTheResultIsOff) {
  const HostArray result = HostArray::from<float>({2}, {1, 3});
  EXPECT_EQ(comparison_text(result, compare(result, std::vector<double>{1, 2})),
            "compared with the reference: max abs 1, max rel 0.5, max 4.19e+06 ULP: 1 of 2 differ");
  EXPECT_EQ(comparison_text(result, compare(result, std::vector<double>{1, 3})),
            "compared with the reference: max abs 0, max rel 0, max 0 ULP: match");
  const HostArray whole = HostArray::from<std::int64_t>({1}, {3});
  EXPECT_EQ(comparison_text(whole, compare(whole, std::vector<double>{3})), "compared with the reference: equal");
}

}  // namespace
}  // namespace tenon::present::testing
