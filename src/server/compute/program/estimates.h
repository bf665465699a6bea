// What a request will take, in bytes, known before any of it is taken. Estimates are upper bounds of what counts; a few kilobytes
// more or less do not.
#pragma once

#include <cstdint>
#include <span>

#include "tenon/array.h"
#include "tenon/graph.h"

namespace tenon::server {

struct ComputeRequest;

// A node of a graph with what belongs to it, in a vector that grows by doubling.
inline constexpr std::uint64_t kNodeBytes = 2 * sizeof(Node) + 64;
// The same node while it is compiled, and in the executable.
inline constexpr std::uint64_t kCompiledNodeBytes = 2 * kNodeBytes;

// The graph itself, constants included.
std::uint64_t graph_bytes(const Graph& graph);
// All values as JSON lists, and what writing them needs besides.
std::uint64_t text_bytes(DType dtype, const Shape& shape);
// The answer to the program: JSON text or a file.
std::uint64_t answer_bytes(const ComputeRequest& program);
// The reference and the comparison with it.
std::uint64_t reference_bytes(const Graph& graph);
std::uint64_t result_bytes(std::span<const HostArray> results);
// A text of rows, which is there twice while it grows, and the copy that it is written from.
std::uint64_t csv_bytes(DType dtype, const Shape& shape);

}  // namespace tenon::server
