// Matrix products and what is made of them.
#include "conformance/plan.h"

namespace tenon::conformance {
namespace {

// Ways through a product: smaller than a tile, not a multiple of one, long inner axes, vectors, broadcast batches.
void matmul(Plan& p) {
  p.add("odd sizes", {p.x({5, 7}), p.x({7, 3})});
  p.add("one by one", {p.x({1, 1}), p.x({1, 1})});
  p.add("row and column", {p.x({1, 37}), p.x({37, 1})});
  p.add("column and row", {p.x({9, 1}), p.x({1, 11})});
  p.add("vectors", {p.x({33}), p.x({33})});
  p.add("vector and matrix", {p.x({17}), p.x({17, 9})});
  p.add("matrix and vector", {p.x({9, 17}), p.x({17})});
  p.add("batches", {p.x({3, 5, 7}), p.x({3, 7, 4})});
  p.add("broadcast batches", {p.x({2, 1, 5, 7}), p.x({3, 7, 4})});
  p.add("nothing inside", {p.x({3, 0}), p.x({0, 4})});
  p.add("no rows", {p.x({0, 3}), p.x({3, 4})});
  p.add("several tiles", {p.x({67, 71}), p.x({71, 61})});
  p.add("whole range", {p.x({9, 13}, Values::wide), p.x({13, 5}, Values::wide)});
  p.add("special values", {p.x({7, 19}, Values::hard_rows), p.x({19, 5}, Values::positive)});
  // Steps of block formats add up from product to product, beyond the one step that a comparison allows.
  if (p.is_float() && !is_block(p.dtype()))
    p.add("before other products", {p.x({9, 17}), p.x({17, 12})}).around = Around::products;
  if (p.is_full() && (p.dtype() == DType::f32 || p.dtype() == DType::bf16 || p.dtype() == DType::f64))
    p.add("large", {p.x({150, 301}), p.x({301, 130})});
}
void bmm(Plan& p) {
  p.add("batches", {p.x({3, 5, 7}), p.x({3, 7, 4})});
  p.add("one", {p.x({1, 2, 3}), p.x({1, 3, 2})});
}
void addmm(Plan& p) {
  p.add("plain", {p.x({5, 3}), p.x({5, 7}), p.x({7, 3})});
  p.add("scaled", {p.x({5, 3}), p.x({5, 7}), p.x({7, 3})}, {{"beta", 2.0}, {"alpha", 3.0}});
  p.add("broadcast", {p.x({3}), p.x({5, 7}), p.x({7, 3})}, {{"beta", 0.0}});
}
void mv(Plan& p) {
  p.add("plain", {p.x({9, 17}), p.x({17})});
  p.add("tall", {p.x({131, 5}), p.x({5})});
}
void dot(Plan& p) {
  p.add("vectors", {p.x({67}), p.x({67})});
  p.add("one element", {p.x({1}), p.x({1})});
  p.add("long", {p.x({p.is_full() ? 20'011 : 501}), p.x({p.is_full() ? 20'011 : 501})});
}
void inner(Plan& p) {
  p.add("vectors", {p.x({33}), p.x({33})});
  p.add("matrix and vector", {p.x({3, 17}), p.x({17})});
}
void vecdot(Plan& p) {
  p.add("last axis", {p.x({5, 17}), p.x({5, 17})});
  p.add("first axis", {p.x({17, 5}), p.x({17, 5})}, {{"axis", integer(0)}});
}
void outer(Plan& p) { p.add("plain", {p.x({7}), p.x({19})}); }
void kron(Plan& p) {
  p.add("matrices", {p.x({2, 3}), p.x({3, 2})});
  p.add("square", {p.x({3, 3}), p.x({2, 2})});
}
void cross(Plan& p) {
  p.add("vectors", {p.x({3}), p.x({3})});
  p.add("rows", {p.x({7, 3}), p.x({7, 3})});
  p.add("columns", {p.x({3, 7}), p.x({3, 7})}, {{"axis", integer(0)}});
}
void linear(Plan& p) {
  p.add("plain", {p.x({5, 7}), p.x({3, 7})});
  p.add("bias", {p.x({2, 5, 7}), p.x({3, 7}), p.x({3})});
}
void matrix_power(Plan& p) {
  for (std::int64_t n : {0, 1, 2, 5}) p.add("power", {p.x({4, 4}, Values::unit)}, {{"n", integer(n)}});
}
void trace(Plan& p) {
  p.add("square", {p.x({7, 7})});
  p.add("offset", {p.x({5, 9})}, {{"offset", integer(2)}});
}
void einsum(Plan& p) {
  const auto equation = [](const char* text) { return std::vector<NamedValue>{{"equation", std::string(text)}}; };
  p.add("product", {p.x({5, 7}), p.x({7, 3})}, equation("ij,jk->ik"));
  p.add("batched, transposed result", {p.x({2, 5, 7}), p.x({2, 7, 3})}, equation("bij,bjk->bki"));
  p.add("diagonal", {p.x({6, 6})}, equation("ii->i"));
  p.add("trace", {p.x({6, 6})}, equation("ii"));
  p.add("sums", {p.x({3, 4, 5})}, equation("ijk->j"));
  p.add("outer", {p.x({4}), p.x({5})}, equation("i,j->ij"));
  p.add("three operands", {p.x({3, 4}), p.x({4, 5}), p.x({5, 2})}, equation("ij,jk,kl->il"));
  p.add("other axes", {p.x({2, 3, 4}), p.x({4, 5})}, equation("...j,jk->...k"));
}
void tensordot(Plan& p) {
  p.add("two axes", {p.x({3, 4, 5}), p.x({4, 5, 6})});
  p.add("one axis", {p.x({3, 4}), p.x({4, 5})}, {{"axes", integer(1)}});
  p.add("none", {p.x({3}), p.x({4})}, {{"axes", integer(0)}});
}
void cosine_similarity(Plan& p) {
  p.add("rows", {p.x({5, 17}), p.x({5, 17})});
  p.add("broadcast", {p.x({5, 1, 9}), p.x({4, 9})});
  p.add("first axis", {p.x({9, 4}), p.x({9, 4})}, {{"axis", integer(0)}, {"eps", 0.1}});
  p.add("zeros", {p.x({3, 9}, Values::zero), p.x({3, 9})});
}
void distances(Plan& p) {
  p.add("Euclidean", {p.x({5, 9}), p.x({5, 9})});
  p.add("Manhattan", {p.x({5, 9}), p.x({5, 9})}, {{"p", 1.0}});
  p.add("order 3", {p.x({5, 9}), p.x({5, 9})}, {{"p", 3.0}});
  if (p.op().name != "cdist") return;
  p.add("many rows", {p.x({33, 9}), p.x({40, 9})});
  p.add("many rows, exact", {p.x({33, 9}), p.x({40, 9})}, {{"exact", true}});
}

}  // namespace

const PlanTable& linear_algebra_plans() {
  static const PlanTable table{
      {"matmul", matmul},
      {"bmm", bmm},
      {"addmm", addmm},
      {"mv", mv},
      {"dot", dot},
      {"inner", inner},
      {"vecdot", vecdot},
      {"outer", outer},
      {"kron", kron},
      {"cross", cross},
      {"linear", linear},
      {"matrix_power", matrix_power},
      {"trace", trace},
      {"einsum", einsum},
      {"tensordot", tensordot},
      {"cdist", distances},
      {"pairwise_distance", distances},
      {"cosine_similarity", cosine_similarity},
  };
  return table;
}

}  // namespace tenon::conformance
