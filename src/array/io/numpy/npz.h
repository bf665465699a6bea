// The size of what an .npz archive contains, read from its list of files before anything is unpacked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon {

struct NpzContents {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
};

// Throws invalid_argument for bytes that are no zip archive.
NpzContents npz_contents(std::span<const std::byte> bytes);

}  // namespace tenon
