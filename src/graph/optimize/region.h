// What the attributes of regions (Graph::mark) consist of: one list of fields, from which keys, texts and bytes are made.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/siphash.h"
#include "graph/encode/bytes.h"
#include "tenon/graph.h"

namespace tenon {

std::string_view name(const RegionAttr& attr) noexcept;  // "attention", "softmax" ...

// Throws invalid_argument, naming the op and the problem, unless the inputs exist before the output and fit the attribute.
void check_region(const Graph& graph, const Region& region);

void add_region(SipHash& hash, const RegionAttr& attr);
std::string region_text(const RegionAttr& attr);
void write_region(ByteWriter& out, const RegionAttr& attr);
RegionAttr read_region(ByteReader& in);

}  // namespace tenon
