#include <fmt/format.h>

#include "model/onnx/converters/families.h"

namespace tenon::onnx {
namespace {

using namespace build;

// Log-probabilities x [n, classes, ...] of the classes in |target| [n, ...].
Expr likelihood_loss(const NodeContext& node, Expr x) {
  const Expr target = cast(node.in(1), DType::i64);
  const bool ignores = node.given("ignore_index");
  const std::string reduction = node.text("reduction", "mean");
  std::optional<Expr> kept;
  Expr index = target;
  if (ignores) {
    kept = target != static_cast<double>(node.integer("ignore_index"));
    index = where(*kept, target, target * 0.0);  // an ignored class may not exist
  }
  Expr loss = -squeeze(gather(x, unsqueeze(index, 1), 1), one_axis(1));
  std::optional<Expr> weight;
  if (node.has(2)) weight = take(node.in(2), index, 0);
  if (kept) weight = weight ? where(*kept, *weight, 0.0) : cast(*kept, loss.dtype());
  if (weight) loss = kept ? where(*kept, loss * *weight, 0.0) : loss * *weight;
  if (reduction == "none") return loss;
  const AxisSet all = all_axes(loss.rank());
  const Expr sum = reshape(sum_keep(loss, all), {});
  if (reduction == "sum") return sum;
  if (reduction != "mean") node.refuse(fmt::format("the reduction '{}'", reduction));
  if (weight) return sum / reshape(sum_keep(*weight, all), {});
  return sum / static_cast<double>(loss.shape().elements());
}

Results negative_log_likelihood(const NodeContext& node) { return {cast(likelihood_loss(node, node.in(0)), node.dtype(0))}; }

Results softmax_cross_entropy(const NodeContext& node) {
  const Expr logs = node.apply("log_softmax", {node.in(0)}, {{"axis", std::int64_t{1}}});
  return {cast(likelihood_loss(node, logs), node.dtype(0)), logs};
}

}  // namespace

void add_losses(ConverterTable& table) {
  table.add("NegativeLogLikelihoodLoss", negative_log_likelihood);
  table.add("SoftmaxCrossEntropyLoss", softmax_cross_entropy);
}

}  // namespace tenon::onnx
