// Attention as one step: softmax(q k^T scale + mask) v without the matrix of scores.
//
// Rows of q are taken in tiles, keys in blocks that stay in the L2 cache. Each block adds to the rows' results; when a block
// raises a row's largest score, what the row has so far is scaled down (online softmax; Milakov and Gimelshein, 2018). Memory
// is linear in the rows and keys. Few rows and many keys are split over the keys, into parts that are combined in order; how
// depends only on the shapes, so results do not depend on the number of threads.
// Thread safety: touches only its arguments.
#pragma once

#include "backends/cpu/primitives/primitives.h"

namespace tenon::cpu {

struct AttentionOperands {
  View q, k, v;  // AttentionAttr; f32, f16 or bf16, the last axis with unit stride
  View mask;     // bool or f32, any strides; without data if there is none
  bool has_mask = false;
  DType rounded = DType::f32;  // the dtype to which probabilities are rounded: that of q, k and v
};

// |dtype|: AttentionOperands::rounded.
std::size_t attention_scratch_bytes(const ThreadPool& pool, const Shape& q, const Shape& k, const Shape& v, DType dtype);
// out: f32, or rounded to 16 bits as it is stored.
void attention(ThreadPool& pool, const AttentionOperands& operands, const AttentionAttr& attr, const Target& out,
               std::span<std::byte> scratch);

}  // namespace tenon::cpu
