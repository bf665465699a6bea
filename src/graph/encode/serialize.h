// Serializes a Graph for another process of the same version.
//
// The reader is strict: every graph it accepts is well-formed and uses no more memory than a small multiple of the input size.
// Thread safety: pure functions.
//
//   std::vector<std::byte> bytes = serialize(graph);
//   Graph same = deserialize(bytes);               // same.text() == graph.text()
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/encode/bytes.h"
#include "tenon/graph.h"

namespace tenon {

std::vector<std::byte> serialize(const Graph& graph);
// Throws invalid_argument for bytes that serialize() did not produce.
Graph deserialize(std::span<const std::byte> bytes);

void write_shape(ByteWriter& out, const Shape& shape);
Shape read_shape(ByteReader& in);
DType read_dtype(ByteReader& in);

}  // namespace tenon
