// Ops that pick elements by index or by mask.
#include "conformance/plan.h"

namespace tenon::conformance {
namespace {

constexpr Values kAny = Values::wide;

void gather(Plan& p) {
  p.add("first axis", {p.x({9, 5}, kAny), p.indices({4, 5}, 9)});
  p.add("last axis", {p.x({5, 9}, kAny), p.indices({5, 13}, 9)}, {{"axis", integer(-1)}});
  p.add("fewer rows, small indices", {p.x({9, 5}, kAny), p.indices({3, 2}, 9, DType::u8)});
  p.add("none", {p.x({9, 5}, kAny), p.indices({0, 5}, 9)});
}
void take_along_axis(Plan& p) {
  p.add("last axis", {p.x({5, 9}, kAny), p.indices({5, 3}, 9)});
  p.add("broadcast", {p.x({9, 5}, kAny), p.indices({4, 1}, 9)}, {{"axis", integer(0)}});
}
void scatter(Plan& p) {
  p.add("first axis", {p.x({9, 5}, kAny), p.indices({4, 5}, 9), p.x({4, 5}, kAny)});
  p.add("last axis", {p.x({5, 9}, kAny), p.indices({5, 21}, 9, DType::i32), p.x({5, 21}, kAny)}, {{"axis", integer(1)}});
  p.add("one update for all", {p.x({33}, kAny), p.indices({50}, 33), p.x({}, kAny)});
}
void take(Plan& p) {
  p.add("flat", {p.x({5, 7}, kAny), p.indices({3, 4}, 35)});
  p.add("rows", {p.x({9, 33}, kAny), p.indices({21}, 9)}, {{"axis", integer(0)}});
  p.add("columns", {p.x({5, 9}, kAny), p.indices({2, 3}, 9, DType::i16)}, {{"axis", integer(-1)}});
  p.add("one", {p.x({9}, kAny), p.indices({}, 9)});
}
void index_select(Plan& p) {
  p.add("rows", {p.x({9, 5}, kAny), p.indices({21}, 9)});
  p.add("columns", {p.x({5, 9}, kAny), p.indices({4}, 9)}, {{"axis", integer(1)}});
}
void select(Plan& p) {
  p.add("row", {p.x({5, 7}, kAny)}, {{"index", integer(2)}});
  p.add("column", {p.x({5, 7}, kAny)}, {{"axis", integer(-1)}, {"index", integer(-3)}});
}
void masked_fill(Plan& p) {
  p.add("same shape", {p.x({5, 33}, kAny), p.of(DType::boolean, {5, 33}, Values::mask)}, {{"value", 1.0}});
  p.add("broadcast", {p.x({5, 33}, kAny), p.of(DType::boolean, {33}, Values::mask)});
}
void triangle(Plan& p) {
  p.add("square", {p.x({7, 7}, kAny)});
  p.add("above", {p.x({2, 5, 9}, kAny)}, {{"diagonal", integer(2)}});
  p.add("below", {p.x({9, 5}, kAny)}, {{"diagonal", integer(-3)}});
  p.add("far away", {p.x({3, 3}, kAny)}, {{"diagonal", integer(100)}});
}
void diag(Plan& p) {
  p.add("matrix of a vector", {p.x({7}, kAny)});
  p.add("above", {p.x({5}, kAny)}, {{"offset", integer(2)}});
  p.add("vector of a matrix", {p.x({5, 9}, kAny)}, {{"offset", integer(-1)}});
}
void diagonal(Plan& p) {
  p.add("last axes", {p.x({3, 5, 9}, kAny)}, {{"offset", integer(1)}});
  p.add("first axes", {p.x({5, 4, 3}, kAny)}, {{"axis1", integer(0)}, {"axis2", integer(1)}});
}
void embedding(Plan& p) {
  p.add("rows", {{{3, 7}, p.dtype(), Fill{Values::index, 9}}, p.of(DType::f32, {9, 17})});
  p.add("half precision", {{{11}, p.dtype(), Fill{Values::index, 9}}, p.of(DType::bf16, {9, 5})});
}
void one_hot(Plan& p) {
  p.add("matrix", {{{5, 7}, p.dtype(), Fill{Values::class_index, 9}}}, {{"classes", integer(9)}});
  p.add("to bool", {{{33}, p.dtype(), Fill{Values::class_index, 4}}}, {{"classes", integer(3)}, {"dtype", std::string("bool")}});
}

}  // namespace

const PlanTable& indexing_plans() {
  static const PlanTable table{
      {"gather", gather},       {"take_along_axis", take_along_axis},
      {"scatter", scatter},     {"scatter_add", scatter},
      {"take", take},           {"index_select", index_select},
      {"select", select},       {"masked_fill", masked_fill},
      {"tril", triangle},       {"triu", triangle},
      {"diag", diag},           {"diagonal", diagonal},
      {"embedding", embedding}, {"one_hot", one_hot},
  };
  return table;
}

}  // namespace tenon::conformance
