// Reading and writing arrays in files: NumPy's .npy and safetensors.
//
// Reading is strict: a file that does not follow the format exactly is refused with invalid_argument and a message that names the
// file and the problem. A file is checked in full (sizes, offsets, types) before its arrays are allocated; until then reading
// uses at most kParseFactor bytes per byte of input, plus kParseAllowance. The arrays then take the same number of bytes as in
// the file (twice that while Fortran order is being transposed).
// Writing is atomic for readers: the bytes go to a temporary file in the same folder, which is then renamed. A failed write
// leaves the old file unchanged. Writing does not wait for the disk.
// Errors: not_found, permission_denied, and resource_exhausted if memory or disk is full.
// Thread safety: all functions may be called from any thread.
//
//   HostArray a = load_npy("a.npy");
//   save_safetensors("all.safetensors", {.arrays = {{"a", a}}, .metadata = {{"origin", "example"}}});
//   ArrayFile file = load_safetensors("all.safetensors");
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tenon/array.h"

namespace tenon {

inline constexpr std::size_t kParseFactor = 16;
inline constexpr std::size_t kParseAllowance = std::size_t{64} << 10;

// Reads .npy versions 1 to 3, little and big endian, C and Fortran order; the array is little endian and row-major. bfloat16,
// which NumPy lacks, is stored as its two raw bytes ("<V2", as ml_dtypes does) and read back as bfloat16. Block formats are
// refused (use safetensors), and so are bytes after the array.
HostArray load_npy(const std::filesystem::path& file);
void save_npy(const std::filesystem::path& file, const HostArray& array);
HostArray parse_npy(std::span<const std::byte> bytes);
std::vector<std::byte> format_npy(const HostArray& array);

// The contents of a safetensors file.
struct ArrayFile {
  std::map<std::string, HostArray, std::less<>> arrays;
  std::map<std::string, std::string, std::less<>> metadata;
};

// Block formats are stored as U8 tile bytes, with two metadata entries that are removed on reading:
// "tenon.<name>.format" and "tenon.<name>.logical_shape".
ArrayFile load_safetensors(const std::filesystem::path& file);
void save_safetensors(const std::filesystem::path& file, const ArrayFile& contents);
ArrayFile parse_safetensors(std::span<const std::byte> bytes);
std::vector<std::byte> format_safetensors(const ArrayFile& contents);

}  // namespace tenon
