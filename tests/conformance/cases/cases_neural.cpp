// Attention, gates, losses, quantization.
#include "conformance/plan.h"

namespace tenon::conformance {
namespace {

void attention(Plan& p) {
  p.add("matrices", {p.x({5, 8}), p.x({7, 8}), p.x({7, 3})});
  p.add("heads", {p.x({2, 3, 9, 4}), p.x({2, 3, 9, 4}), p.x({2, 3, 9, 5})});
  p.add("causal", {p.x({6, 4}), p.x({6, 4}), p.x({6, 4})}, {{"causal", true}});
  p.add("scale", {p.x({5, 4}), p.x({6, 4}), p.x({6, 2})}, {{"scale", 0.25}});
  p.add("mask", {p.x({5, 4}), p.x({6, 4}), p.x({6, 2}), p.of(DType::boolean, {5, 6}, Values::mask)});
  p.add("everything masked", {p.x({3, 4}), p.x({6, 4}), p.x({6, 2}), p.of(DType::boolean, {3, 6}, Values::zero)});
  p.add("float mask", {p.x({5, 4}), p.x({6, 4}), p.x({6, 2}), p.x({6})});
  p.add("shared heads", {p.x({2, 6, 5, 8}), p.x({2, 2, 7, 8}), p.x({2, 2, 7, 3})});
  p.add("one head for all", {p.x({2, 3, 5, 8}), p.x({2, 1, 7, 8}), p.x({2, 1, 7, 3})});
  p.add("computed, before a product", {p.x({9, 6}), p.x({8, 6}), p.x({8, 5})}).around = Around::products;
  // More rows and keys than a tile, and sizes that do not divide one.
  p.add("several tiles", {p.x({2, 70, 20}), p.x({2, 150, 20}), p.x({2, 150, 18})});
  p.add("several tiles, causal", {p.x({1, 2, 131, 16}), p.x({1, 2, 131, 16}), p.x({1, 2, 131, 16})}, {{"causal", true}});
  p.add("one query", {p.x({2, 2, 1, 16}), p.x({2, 2, 300, 16}), p.x({2, 2, 300, 16})});
  p.add("one query, masked",
        {p.x({2, 1, 16}), p.x({2, 300, 16}), p.x({2, 300, 16}), p.of(DType::boolean, {2, 1, 300}, Values::mask)});
  p.add("wide heads", {p.x({9, 256}), p.x({33, 256}), p.x({33, 256})});
}
void rope(Plan& p) {
  p.add("halves", {p.x({5, 8})});
  p.add("interleaved, heads", {p.x({2, 7, 6})}, {{"interleaved", true}});
  p.add("far positions", {p.x({9, 4})}, {{"offset", 100'000.0}, {"base", 500.0}});
  p.add("positions given", {p.x({4, 6}), p.indices({4}, 50)});
}
void gate(Plan& p) {
  p.add("last axis", {p.x({5, 34})});
  p.add("first axis", {p.x({6, 5})}, {{"axis", integer(0)}});
  p.add("empty", {p.x({3, 0})});
}
void loss(Plan& p) {
  for (const char* reduction : {"mean", "sum", "none"})
    p.add(reduction, {p.x({5, 7}), p.x({5, 7})}, {{"reduction", std::string(reduction)}});
  p.add("scalar", {p.x({}), p.x({})});
}
void huber_loss(Plan& p) {
  loss(p);
  p.add("delta", {p.x({5, 7}), p.x({5, 7})}, {{"delta", 0.25}});
}
void smooth_l1_loss(Plan& p) {
  loss(p);
  p.add("beta", {p.x({5, 7}), p.x({5, 7})}, {{"beta", 0.25}});
  p.add("no bend", {p.x({5, 7}), p.x({5, 7})}, {{"beta", 0.0}});
}
void probability_loss(Plan& p) {
  for (const char* reduction : {"mean", "sum", "none"})
    p.add(reduction, {p.x({5, 7}, Values::unit), p.x({5, 7}, Values::unit)}, {{"reduction", std::string(reduction)}});
  p.add("certain", {p.x({33}, Values::mask), p.x({33}, Values::mask)});
}
void logit_loss(Plan& p) {
  for (const char* reduction : {"mean", "sum", "none"})
    p.add(reduction, {p.x({5, 7}), p.x({5, 7}, Values::unit)}, {{"reduction", std::string(reduction)}});
  p.add("large values", {p.x({33}, Values::wide), p.x({33}, Values::mask)});
}
void kl_div(Plan& p) {
  for (const char* reduction : {"mean", "sum", "none"})
    p.add(reduction, {p.x({5, 7}, Values::negative), p.x({5, 7}, Values::unit)}, {{"reduction", std::string(reduction)}});
  p.add("zeros", {p.x({33}, Values::negative), p.x({33}, Values::mask)});
}
void class_loss(Plan& p) {
  const auto classes = [](const Shape& shape, DType dtype) { return CaseInput{shape, dtype, Fill{Values::class_index, 6}}; };
  for (const char* reduction : {"mean", "sum", "none"})
    p.add(reduction, {p.x({9, 6}), classes({9}, DType::i64)}, {{"reduction", std::string(reduction)}});
  p.add("small indices", {p.x({9, 6}, Values::negative), classes({9}, DType::u8)});
}
void quantize(Plan& p) {
  p.add("signed", {p.x({5, 33}, Values::wide)}, {{"scale", 0.1}});
  p.add("unsigned", {p.x({5, 33}, Values::wide)}, {{"scale", 0.5}, {"zero_point", integer(7)}, {"dtype", std::string("uint8")}});
  p.add("special values", {p.x({special_count(p.dtype(), 1)}, Values::special)}, {{"scale", 0.25}, {"zero_point", integer(-3)}});
}
void dequantize(Plan& p) {
  p.add("all values", {p.x({16, 33}, Values::wide)}, {{"scale", 0.1}});
  p.add("zero point", {p.x({257}, Values::wide)}, {{"scale", 0.5}, {"zero_point", integer(7)}});
}

}  // namespace

const PlanTable& neural_plans() {
  static const PlanTable table{
      {"scaled_dot_product_attention", attention},
      {"rope", rope},
      {"glu", gate},
      {"geglu", gate},
      {"swiglu", gate},
      {"mse_loss", loss},
      {"l1_loss", loss},
      {"huber_loss", huber_loss},
      {"smooth_l1_loss", smooth_l1_loss},
      {"binary_cross_entropy", probability_loss},
      {"binary_cross_entropy_with_logits", logit_loss},
      {"kl_div", kl_div},
      {"cross_entropy", class_loss},
      {"nll_loss", class_loss},
      {"quantize", quantize},
      {"fake_quantize", quantize},
      {"dequantize", dequantize},
  };
  return table;
}

}  // namespace tenon::conformance
