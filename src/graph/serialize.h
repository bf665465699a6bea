// A Graph as bytes, to be sent to another process of the same version.
//
// The reader is strict: whatever it accepts is a well-formed graph, and takes no more memory than a small multiple of the bytes
// given. Thread safety: pure functions.
//
//   std::vector<std::byte> bytes = serialize(graph);
//   Graph same = deserialize(bytes);               // same.text() == graph.text()
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/bytes.h"
#include "tenon/graph.h"

namespace tenon {

std::vector<std::byte> serialize(const Graph& graph);
// Throws invalid_argument for anything that serialize() did not make.
Graph deserialize(std::span<const std::byte> bytes);

void write_shape(ByteWriter& out, const Shape& shape);
Shape read_shape(ByteReader& in);
DType read_dtype(ByteReader& in);

}  // namespace tenon
