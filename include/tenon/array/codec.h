// Codec: a tensor as fewer bytes, and what that costs in precision.
//
// Lossless: zstd (in builds with libzstd). Lossy: 16-bit and 8-bit floats, int8 with one scale for each row, Tenstorrent's block
// formats, and the OCP microscaling (MX) formats, in which 32 adjacent elements of a row share a power of two. These are storage
// types: decode() gives the dtype that was encoded, and programs compute in that.
// A file of encoded tensors is safetensors: the bytes as U8, and what is needed to decode them in its metadata.
// Thread safety: all functions may be called from any thread.
//
//   Encoded small = encode(weights, Encoding::int8);
//   EncodingReport report = report_of(weights, small);       // report.ratio, report.max_abs_error
//   HostArray again = decode(small);
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/array.h"
#include "tenon/array/io.h"

namespace tenon {

enum class Encoding : std::uint8_t {
  zstd,         // lossless, any dtype
  bfloat16,     // 2 bytes
  float8_e4m3,  // 1 byte: up to 448, no infinities (E4M3FN)
  float8_e5m2,  // 1 byte: up to 57344
  int8,         // 1 byte, and a float32 scale for each row: largest magnitude / 127
  bfloat8_b,    // Tenstorrent: 16 elements share an exponent; 7-bit magnitudes
  bfloat4_b,    // the same with 3-bit magnitudes
  mxfp8_e4m3,   // OCP MX: 32 elements share a power of two (1 byte); elements as above
  mxfp8_e5m2,
  mxfp6_e3m2,  // 6 bits
  mxfp6_e2m3,
  mxfp4_e2m1,  // 4 bits
};
std::string_view name(Encoding encoding) noexcept;  // "mxfp4_e2m1"
std::optional<Encoding> parse_encoding(std::string_view text) noexcept;
std::span<const Encoding> all_encodings() noexcept;

struct Encoded {
  Encoding encoding = Encoding::zstd;
  DType dtype = DType::f32;  // of the tensor
  Shape shape;
  std::vector<std::byte> bytes;
};

// Lossy encodings take floats; finite values beyond the range of a format become its largest value. Throws invalid_argument for
// another dtype and for NaN or infinity where the format has none (int8), unimplemented for zstd in a build without it.
Encoded encode(const HostArray& array, Encoding encoding);
// Throws invalid_argument if the bytes do not match the encoding, dtype and shape, or are damaged.
HostArray decode(const Encoded& encoded);

struct EncodingReport {
  std::uint64_t bytes_before = 0, bytes_after = 0;
  double ratio = 1;            // before / after
  bool is_lossless = true;     // every element is the same bit for bit
  double max_abs_error = 0;    // over the elements that are finite on both sides
  double max_rel_error = 0;    // where the element is not 0
  double rms_error = 0;        // root of the mean square
  std::int64_t differing = 0;  // elements that are not the same
};
EncodingReport report_of(const HostArray& original, const Encoded& encoded);

// Encoded tensors in one safetensors file, and back. Arrays of a file that are not encoded stay as they are.
ArrayFile to_file(const std::map<std::string, Encoded, std::less<>>& encoded);
ArrayFile decoded_file(const ArrayFile& file);
// What decoded_file() allocates for tensors at most, known before it does: an encoded file may claim to be far larger than it is.
// Throws invalid_argument for a damaged shape.
std::uint64_t decoded_bytes(const ArrayFile& file);

}  // namespace tenon
