// What the classifiers and regressors of the domain ai.onnx.ml share.
#pragma once

#include "model/onnx/converters/families.h"

namespace tenon::onnx {

// Input 0 as floats [rows, features]; one row if it has one axis. f64 stays f64.
Expr features(const NodeContext& node);
// The attribute post_transform: NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT.
std::string transform_of(const NodeContext& node);
// It applied to the last axis of |scores|.
Expr transformed(const NodeContext& node, Expr scores);
// The numbers of an attribute, or of the attribute NAME_as_tensor.
std::vector<double> doubles(const NodeContext& node, std::string_view name);

// The labels of a classifier, of which |integers| and classlabels_strings are the attributes.
class Labels {
 public:
  Labels(const NodeContext& node, std::string_view integers);
  std::int64_t count() const noexcept;
  // The labels of |places|, one per row. Strings are looked up on the host.
  Result at(Expr places) const;
  // The label of the largest score of each row.
  Result best(Expr scores) const;

 private:
  const NodeContext& node_;
  std::vector<std::int64_t> integers_;
  std::vector<std::string> strings_;
};

}  // namespace tenon::onnx
