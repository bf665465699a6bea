// Reading and writing arrays in files: NumPy's .npy and .npz, safetensors, and CSV.
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
#include <string_view>
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

// The contents of a file of named arrays.
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

// .npz: a zip archive of .npy files, stored or (in builds with zlib) deflated. Written without compression. Metadata is not kept.
ArrayFile load_npz(const std::filesystem::path& file);
void save_npz(const std::filesystem::path& file, const ArrayFile& contents);
ArrayFile parse_npz(std::span<const std::byte> bytes);
std::vector<std::byte> format_npz(const ArrayFile& contents);

// CSV: rows of numbers separated by commas, semicolons, tabs or spaces; empty lines, lines that start with # and a first line of
// column names are skipped. One column or one row is a vector, anything else a matrix. The result is int64 if every number is an
// integer, else |floats|. Throws invalid_argument naming the line.
HostArray parse_csv(std::string_view text, DType floats = DType::f32);
HostArray load_csv(const std::filesystem::path& file, DType floats = DType::f32);
// Vectors are written as one column, matrices as rows; other ranks are refused with invalid_argument.
std::string format_csv(const HostArray& array);
void save_csv(const std::filesystem::path& file, const HostArray& array);

// A file in any of these formats, recognised by its content; a single array without a name has the name "".
ArrayFile load_arrays(const std::filesystem::path& file);
ArrayFile parse_arrays(std::span<const std::byte> bytes);
// In the format of the name's extension (.npy, .npz, .safetensors, .csv). Throws invalid_argument for another extension, and for
// several arrays in a format that stores one.
void save_arrays(const std::filesystem::path& file, const ArrayFile& contents);

}  // namespace tenon
