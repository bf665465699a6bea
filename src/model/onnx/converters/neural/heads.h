// What every form of attention does with its heads.
#pragma once

#include <optional>

#include "model/onnx/converters/families.h"

namespace tenon::onnx {

// [batch, length, heads * width] as [batch, heads, length, width], and back.
Expr heads_apart(const NodeContext& node, Expr x, std::int64_t heads);
Expr heads_together(Expr x);
// Each head |count| times in a row.
Expr repeat_heads(Expr x, std::int64_t count);
// Pairs of the last axis of x [batch, length, heads, width] turned by the angles whose cosines and sines are
// [1 or batch, length, half]; what is beyond 2 * half stays.
Expr rotated(const NodeContext& node, Expr x, Expr cosine, Expr sine, bool interleaved);

}  // namespace tenon::onnx
