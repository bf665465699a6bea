// Matrices that GPTQ or AWQ quantised: small integers, several in a word, with a scale and a zero for each group of inputs.
//
//   PackedWeights packed(packing);
//   if (!packed.add(file, data_begin, entry)) ...;              // a tensor of another kind
//   for (PackedWeights::Matrix& each : packed.matrices()) ...;  // each.source has it in rows of blocks
//
// A matrix becomes a source that has it in the blocks BlockType::grouped_4 or grouped_8, which keep its values exactly. Where the
// inputs of a group do not follow each other (act-order) it has 16-bit floats.
// Thread safety: sources may be read concurrently.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "array/io/byte_source.h"
#include "array/io/safetensors/safetensors.h"
#include "model/gguf/block_types.h"

namespace tenon::checkpoint {

struct Packing {
  bool is_awq = false;
  int bits = 4;          // or 8
  bool adds_one = true;  // zeros are stored minus one, as GPTQ first did
};

class PackedWeights {
 public:
  explicit PackedWeights(const Packing& packing) : packing_(packing) {}

  // Whether the tensor is a part of such a matrix.
  bool add(std::shared_ptr<const ByteSource> file, std::uint64_t data_begin, const SafetensorsEntry& entry);

  struct Matrix {
    std::string name;  // "model.layers.0.mlp.up_proj.weight"
    gguf::BlockType type{};
    std::int64_t rows = 0, columns = 0;
    std::shared_ptr<const ByteSource> source;
  };
  // Throws invalid_argument for parts that are missing or do not fit each other, unimplemented for groups of other sizes.
  std::vector<Matrix> matrices() const;

  struct Part {
    std::shared_ptr<const ByteSource> file;
    std::uint64_t offset = 0, bytes = 0;
    std::vector<std::int64_t> shape;
    DType dtype{};
  };
  using Parts = std::map<std::string, Part, std::less<>>;  // by what their names end with

 private:
  const Packing packing_;
  std::map<std::string, Parts> parts_;  // by the names of matrices
};

}  // namespace tenon::checkpoint
