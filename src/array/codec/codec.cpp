#include "tenon/array/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#ifdef TENON_HAS_ZSTD
#include <zstd.h>
#endif

#include "array/codec/minifloat.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::int64_t kMxBlock = 32;
constexpr std::array kEncodings{Encoding::zstd,       Encoding::bfloat16,   Encoding::float8_e4m3, Encoding::float8_e5m2,
                                Encoding::int8,       Encoding::bfloat8_b,  Encoding::bfloat4_b,   Encoding::mxfp8_e4m3,
                                Encoding::mxfp8_e5m2, Encoding::mxfp6_e3m2, Encoding::mxfp6_e2m3,  Encoding::mxfp4_e2m1};

[[noreturn]] void refuse(const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorCode::invalid_argument, message, hint);
}

struct Rows {
  std::int64_t count = 0, length = 0;
};

Rows rows_of(const Shape& shape) {
  const std::int64_t length = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  return {length == 0 ? 0 : shape.elements() / length, length};
}

// --- zstd ---

std::vector<std::byte> compressed([[maybe_unused]] const HostArray& array) {
#ifdef TENON_HAS_ZSTD
  std::vector<std::byte> out(ZSTD_compressBound(array.bytes()));
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  if (!context) throw Error(ErrorCode::resource_exhausted, "out of memory");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  const std::size_t size = ZSTD_compress2(context.get(), out.data(), out.size(), array.data(), array.bytes());
  if (ZSTD_isError(size) != 0) throw Error(ErrorCode::internal, fmt::format("zstd: {}", ZSTD_getErrorName(size)));
  out.resize(size);
  out.shrink_to_fit();
  return out;
#else
  throw Error(ErrorCode::unimplemented, "this build has no zstd", "use another encoding");
#endif
}

void decompress([[maybe_unused]] std::span<const std::byte> bytes, [[maybe_unused]] HostArray& into) {
#ifdef TENON_HAS_ZSTD
  const std::size_t size = ZSTD_decompress(into.mutable_data(), into.bytes(), bytes.data(), bytes.size());
  if (ZSTD_isError(size) != 0) refuse(fmt::format("the compressed tensor is damaged: {}", ZSTD_getErrorName(size)));
  if (size != into.bytes()) refuse(fmt::format("the compressed tensor has {} bytes, but {} are expected", size, into.bytes()));
#else
  throw Error(ErrorCode::unimplemented, "this build has no zstd");
#endif
}

// --- Elements of less than a byte, the first in the lowest bits ---

std::size_t packed_bytes(std::int64_t elements, int bits) { return static_cast<std::size_t>((elements * bits + 7) / 8); }

void put_bits(std::byte* to, std::int64_t index, int bits, std::uint8_t code) {
  const std::int64_t at = index * bits;
  const auto shifted = static_cast<unsigned>(code) << (at % 8);
  to[at / 8] |= static_cast<std::byte>(shifted & 0xff);
  if (at % 8 + bits > 8) to[at / 8 + 1] |= static_cast<std::byte>(shifted >> 8);
}

std::uint8_t get_bits(const std::byte* from, std::int64_t index, int bits) {
  const std::int64_t at = index * bits;
  unsigned word = std::to_integer<unsigned>(from[at / 8]);
  if (at % 8 + bits > 8) word |= std::to_integer<unsigned>(from[at / 8 + 1]) << 8;
  return static_cast<std::uint8_t>(word >> (at % 8) & ((1u << bits) - 1));
}

// --- MX ---

const MinifloatFormat* mx_elements(Encoding encoding) {
  switch (encoding) {
    case Encoding::mxfp8_e4m3: return &kE4M3;
    case Encoding::mxfp8_e5m2: return &kE5M2;
    case Encoding::mxfp6_e3m2: return &kE3M2;
    case Encoding::mxfp6_e2m3: return &kE2M3;
    case Encoding::mxfp4_e2m1: return &kE2M1;
    default: return nullptr;
  }
}

struct MxLayout {
  Rows rows;
  std::int64_t blocks;  // in a row
  int bits;
  std::size_t scales, bytes;

  MxLayout(const Shape& shape, int element_bits)
      : rows(rows_of(shape)),
        blocks((rows.length + kMxBlock - 1) / kMxBlock),
        bits(element_bits),
        scales(static_cast<std::size_t>(rows.count * blocks)),
        bytes(scales + packed_bytes(shape.elements(), element_bits)) {}
};

// First the scales (E8M0: 2^(code - 127), 255 for NaN), then the elements.
std::vector<std::byte> mx_encoded(const HostArray& array, const MinifloatFormat& format) {
  const Minifloat& elements = Minifloat::of(format);
  const MxLayout layout(array.shape(), elements.bits());
  const int largest_exponent = std::ilogb(elements.largest());
  const std::span<const float> values = array.view<float>();
  std::vector<std::byte> out(layout.bytes);
  std::byte* const codes = out.data() + layout.scales;
  for (std::int64_t row = 0; row < layout.rows.count; ++row)
    for (std::int64_t block = 0; block < layout.blocks; ++block) {
      const std::int64_t begin = row * layout.rows.length + block * kMxBlock;
      const std::int64_t end = std::min(begin + kMxBlock, (row + 1) * layout.rows.length);
      float peak = 0;
      bool is_finite = true;
      for (std::int64_t i = begin; i < end; ++i) {
        const float size = std::fabs(values[static_cast<std::size_t>(i)]);
        is_finite = is_finite && std::isfinite(size);
        if (std::isfinite(size)) peak = std::max(peak, size);
      }
      const int exponent = peak == 0 ? -127 : std::clamp(std::ilogb(peak) - largest_exponent, -127, 127);
      const bool is_nan = !is_finite && !format.has_nan;
      out[static_cast<std::size_t>(row * layout.blocks + block)] = static_cast<std::byte>(is_nan ? 255 : exponent + 127);
      for (std::int64_t i = begin; i < end; ++i) {
        const float scaled = std::ldexp(values[static_cast<std::size_t>(i)], -exponent);
        put_bits(codes, i, layout.bits, elements.encode(scaled));
      }
    }
  return out;
}

void mx_decode(std::span<const std::byte> bytes, const MinifloatFormat& format, std::span<float> values, const Shape& shape) {
  const Minifloat& elements = Minifloat::of(format);
  const MxLayout layout(shape, elements.bits());
  const std::byte* const codes = bytes.data() + layout.scales;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const std::int64_t row = i / layout.rows.length, block = i % layout.rows.length / kMxBlock;
    const int scale = std::to_integer<int>(bytes[static_cast<std::size_t>(row * layout.blocks + block)]);
    const float element = elements.decode(get_bits(codes, i, layout.bits));
    values[static_cast<std::size_t>(i)] = scale == 255 ? NAN : std::ldexp(element, scale - 127);
  }
}

// --- int8 ---

std::vector<std::byte> int8_encoded(const HostArray& array) {
  const Rows rows = rows_of(array.shape());
  const std::span<const float> values = array.view<float>();
  std::vector<std::byte> out(static_cast<std::size_t>(rows.count) * sizeof(float) + values.size());
  std::byte* const codes = out.data() + static_cast<std::size_t>(rows.count) * sizeof(float);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const std::span<const float> line =
        values.subspan(static_cast<std::size_t>(row * rows.length), static_cast<std::size_t>(rows.length));
    float peak = 0;
    for (const float value : line) {
      if (!std::isfinite(value)) refuse("int8 has no NaN and no infinity", "use bfloat16 or a float8 encoding");
      peak = std::max(peak, std::fabs(value));
    }
    const float scale = peak / 127;
    std::memcpy(out.data() + static_cast<std::size_t>(row) * sizeof scale, &scale, sizeof scale);
    for (std::size_t i = 0; i < line.size(); ++i) {
      // A row of subnormals may have a scale of 0.
      const float code = scale == 0 ? 0 : std::clamp(std::nearbyint(line[i] / scale), -127.0F, 127.0F);
      codes[static_cast<std::size_t>(row * rows.length) + i] = static_cast<std::byte>(static_cast<std::int8_t>(code));
    }
  }
  return out;
}

void int8_decode(std::span<const std::byte> bytes, std::span<float> values, const Shape& shape) {
  const Rows rows = rows_of(shape);
  const std::byte* const codes = bytes.data() + static_cast<std::size_t>(rows.count) * sizeof(float);
  for (std::size_t i = 0; i < values.size(); ++i) {
    float scale = 0;
    std::memcpy(&scale, bytes.data() + i / static_cast<std::size_t>(rows.length) * sizeof scale, sizeof scale);
    values[i] = static_cast<float>(static_cast<std::int8_t>(codes[i])) * scale;
  }
}

// --- All ---

std::optional<DType> dtype_of_encoding(Encoding encoding) {
  switch (encoding) {
    case Encoding::bfloat16: return DType::bf16;
    case Encoding::bfloat8_b: return DType::bfloat8_b;
    case Encoding::bfloat4_b: return DType::bfloat4_b;
    default: return std::nullopt;
  }
}

const MinifloatFormat* float8(Encoding encoding) {
  return encoding == Encoding::float8_e4m3 ? &kE4M3 : encoding == Encoding::float8_e5m2 ? &kE5M2 : nullptr;
}

std::size_t expected_bytes(Encoding encoding, const Shape& shape) {
  if (const std::optional<DType> dtype = dtype_of_encoding(encoding)) return storage_bytes(*dtype, shape);
  if (const MinifloatFormat* format = mx_elements(encoding)) return MxLayout(shape, Minifloat::of(*format).bits()).bytes;
  const auto elements = static_cast<std::size_t>(shape.elements());
  return encoding == Encoding::int8 ? elements + static_cast<std::size_t>(rows_of(shape).count) * sizeof(float) : elements;
}

std::vector<std::byte> bytes_of(const HostArray& array) { return {array.data(), array.data() + array.bytes()}; }

}  // namespace

std::string_view name(Encoding encoding) noexcept {
  constexpr std::string_view names[] = {"zstd",      "bfloat16",   "float8_e4m3", "float8_e5m2", "int8",       "bfloat8_b",
                                        "bfloat4_b", "mxfp8_e4m3", "mxfp8_e5m2",  "mxfp6_e3m2",  "mxfp6_e2m3", "mxfp4_e2m1"};
  return names[static_cast<int>(encoding)];
}

std::optional<Encoding> parse_encoding(std::string_view text) noexcept {
  constexpr std::pair<std::string_view, Encoding> aliases[] = {
      {"bf16", Encoding::bfloat16},    {"fp8", Encoding::float8_e4m3},  {"float8", Encoding::float8_e4m3},
      {"mxfp8", Encoding::mxfp8_e4m3}, {"mxfp6", Encoding::mxfp6_e3m2}, {"mxfp4", Encoding::mxfp4_e2m1}};
  for (const Encoding encoding : kEncodings)
    if (text == name(encoding)) return encoding;
  for (const auto& [alias, encoding] : aliases)
    if (text == alias) return encoding;
  return std::nullopt;
}

std::span<const Encoding> all_encodings() noexcept { return kEncodings; }

Encoded encode(const HostArray& array, Encoding encoding) {
  Encoded encoded{encoding, array.dtype(), array.shape(), {}};
  if (encoding == Encoding::zstd) {
    encoded.bytes = compressed(array);
    return encoded;
  }
  if (!is_float(array.dtype()))
    refuse(fmt::format("{} encodes floats, not {}", name(encoding), name(array.dtype())), "use zstd, which takes every dtype");
  const HostArray values = array.cast(DType::f32);
  if (const std::optional<DType> dtype = dtype_of_encoding(encoding)) {
    encoded.bytes = bytes_of(array.cast(*dtype));
  } else if (const MinifloatFormat* block = mx_elements(encoding)) {
    encoded.bytes = mx_encoded(values, *block);
  } else if (const MinifloatFormat* format = float8(encoding)) {
    const Minifloat& elements = Minifloat::of(*format);
    encoded.bytes.resize(static_cast<std::size_t>(values.elements()));
    std::ranges::transform(values.view<float>(), encoded.bytes.begin(),
                           [&](float value) { return static_cast<std::byte>(elements.encode(value)); });
  } else {
    encoded.bytes = int8_encoded(values);
  }
  return encoded;
}

HostArray decode(const Encoded& encoded) {
  if (encoded.encoding == Encoding::zstd) {
    HostArray out = HostArray::empty(encoded.dtype, encoded.shape);
    decompress(encoded.bytes, out);
    return out;
  }
  const std::size_t wanted = expected_bytes(encoded.encoding, encoded.shape);
  if (!is_float(encoded.dtype)) refuse(fmt::format("{} does not encode {}", name(encoded.encoding), name(encoded.dtype)));
  if (encoded.bytes.size() != wanted)
    refuse(fmt::format("{} of shape {} needs {} bytes, but there are {}", name(encoded.encoding), to_string(encoded.shape),
                       wanted, encoded.bytes.size()));
  if (const std::optional<DType> dtype = dtype_of_encoding(encoded.encoding)) {
    HostArray stored = HostArray::empty(*dtype, encoded.shape);
    if (wanted > 0) std::memcpy(stored.mutable_data(), encoded.bytes.data(), wanted);
    return stored.cast(encoded.dtype);
  }
  HostArray values = HostArray::empty(DType::f32, encoded.shape);
  const std::span<float> to = values.mutable_view<float>();
  if (const MinifloatFormat* block = mx_elements(encoded.encoding)) {
    mx_decode(encoded.bytes, *block, to, encoded.shape);
  } else if (const MinifloatFormat* format = float8(encoded.encoding)) {
    const Minifloat& elements = Minifloat::of(*format);
    std::ranges::transform(encoded.bytes, to.begin(),
                           [&](std::byte code) { return elements.decode(std::to_integer<std::uint8_t>(code)); });
  } else {
    int8_decode(encoded.bytes, to, encoded.shape);
  }
  return values.cast(encoded.dtype);
}

EncodingReport report_of(const HostArray& original, const Encoded& encoded) {
  EncodingReport report;
  report.bytes_before = original.bytes();
  report.bytes_after = encoded.bytes.size();
  report.ratio = report.bytes_after == 0 ? 1 : static_cast<double>(report.bytes_before) / static_cast<double>(report.bytes_after);
  if (encoded.encoding == Encoding::zstd) return report;
  const std::vector<double> before = original.to_doubles(), after = decode(encoded).to_doubles();
  double squares = 0, count = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == after[i] || (std::isnan(before[i]) && std::isnan(after[i]))) {
      count += std::isfinite(before[i]);
      continue;
    }
    ++report.differing;
    if (!std::isfinite(before[i]) || !std::isfinite(after[i])) continue;
    const double error = std::fabs(before[i] - after[i]);
    ++count;
    squares += error * error;
    report.max_abs_error = std::max(report.max_abs_error, error);
    if (before[i] != 0) report.max_rel_error = std::max(report.max_rel_error, error / std::fabs(before[i]));
  }
  report.is_lossless = report.differing == 0;
  report.rms_error = count > 0 ? std::sqrt(squares / count) : 0;
  return report;
}

ArrayFile to_file(const std::map<std::string, Encoded, std::less<>>& encoded) {
  ArrayFile file;
  for (const auto& [array, one] : encoded) {
    const std::string key = fmt::format("tenon.{}.", array);
    const auto bytes = static_cast<std::int64_t>(one.bytes.size());
    file.arrays.emplace(array, HostArray::from<std::uint8_t>(
                                   {bytes}, {reinterpret_cast<const std::uint8_t*>(one.bytes.data()), one.bytes.size()}));
    file.metadata[key + "encoding"] = name(one.encoding);
    file.metadata[key + "encoded_dtype"] = name(one.dtype);
    std::vector<std::int64_t> extents(one.shape.begin(), one.shape.end());
    file.metadata[key + "encoded_shape"] = fmt::format("{}", fmt::join(extents, ","));
  }
  return file;
}

namespace {

Shape parse_extents(std::string_view text) {
  std::vector<std::int64_t> extents;
  while (!text.empty()) {
    std::int64_t extent = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (failure != std::errc() || extent < 0 || extents.size() >= static_cast<std::size_t>(kMaxRank))
      refuse("the shape of an encoded tensor is damaged");
    extents.push_back(extent);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.empty() && text.front() != ',') refuse("the shape of an encoded tensor is damaged");
    if (!text.empty()) text.remove_prefix(1);
  }
  return Shape(std::span<const std::int64_t>(extents));
}

}  // namespace

std::uint64_t decoded_bytes(const ArrayFile& file) {
  // The bytes, the values as float32, and the tensor in its own dtype.
  constexpr std::uint64_t kElementBytes = 2 * sizeof(double);
  std::uint64_t bytes = 0;
  for (const auto& [array, stored] : file.arrays) {
    const auto shape = file.metadata.find(fmt::format("tenon.{}.encoded_shape", array));
    if (shape == file.metadata.end()) continue;
    const auto elements = static_cast<std::uint64_t>(parse_extents(shape->second).elements());
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / 4;
    const std::uint64_t own = elements > most / kElementBytes ? most : elements * kElementBytes + stored.bytes();
    bytes = std::min(most, bytes + own);
  }
  return bytes;
}

ArrayFile decoded_file(const ArrayFile& file) {
  ArrayFile out;
  for (const auto& [array, stored] : file.arrays) {
    const std::string key = fmt::format("tenon.{}.", array);
    const auto encoding = file.metadata.find(key + "encoding"), dtype = file.metadata.find(key + "encoded_dtype"),
               shape = file.metadata.find(key + "encoded_shape");
    if (encoding == file.metadata.end() || dtype == file.metadata.end() || shape == file.metadata.end()) {
      out.arrays.emplace(array, stored);
      continue;
    }
    const std::optional<Encoding> known = parse_encoding(encoding->second);
    const std::optional<DType> type = parse_dtype(dtype->second);
    if (!known || !type)
      refuse(fmt::format("'{}' has the unknown encoding '{}' of '{}'", array, encoding->second, dtype->second));
    out.arrays.emplace(array, decode({*known, *type, parse_extents(shape->second), bytes_of(stored)}));
  }
  for (const auto& [key, value] : file.metadata)
    if (!key.ends_with(".encoding") && !key.ends_with(".encoded_dtype") && !key.ends_with(".encoded_shape"))
      out.metadata.emplace(key, value);
  return out;
}

}  // namespace tenon
