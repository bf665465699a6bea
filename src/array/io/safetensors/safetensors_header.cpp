#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <utility>

#include "array/io/safetensors/safetensors.h"
#include "array/io/safetensors/safetensors_json.h"
#include "tenon/array.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::string_view kPrefix = "tenon.";
constexpr std::string_view kFormat = ".format";
constexpr std::string_view kLogicalShape = ".logical_shape";

struct TypeName {
  std::string_view text;
  DType dtype;
};
constexpr TypeName kTypeNames[] = {
    {"BOOL", DType::boolean}, {"U8", DType::u8},   {"U16", DType::u16}, {"U32", DType::u32}, {"U64", DType::u64},
    {"I8", DType::i8},        {"I16", DType::i16}, {"I32", DType::i32}, {"I64", DType::i64}, {"F16", DType::f16},
    {"BF16", DType::bf16},    {"F32", DType::f32}, {"F64", DType::f64},
};

[[noreturn]] void refuse(const std::string& why, std::string hint = {}) {
  throw Error(ErrorCode::invalid_argument, why, std::move(hint));
}

// Programs do not compute in floats of 8 bits; bfloat16 has all their values.
const Minifloat* code_of(std::string_view type) {
  if (type == "F8_E4M3") return &Minifloat::of(kE4M3);
  if (type == "F8_E5M2") return &Minifloat::of(kE5M2);
  return nullptr;
}

DType dtype_of_record(const SafetensorsRecord& record) {
  if (code_of(record.dtype) != nullptr) return DType::bf16;
  for (const TypeName& type : kTypeNames)
    if (type.text == record.dtype) return type.dtype;
  throw Error(ErrorCode::unimplemented,
              fmt::format("tensor '{}' has dtype '{}', which is not supported", record.name, record.dtype),
              "store it as F32, F16, BF16 or an integer type");
}

SafetensorsEntry entry_of(const SafetensorsRecord& record) {
  SafetensorsEntry entry{.name = record.name, .dtype = dtype_of_record(record), .begin = record.begin, .end = record.end};
  entry.code = code_of(record.dtype);
  try {
    entry.shape = Shape(std::span(record.dims).first(static_cast<std::size_t>(record.rank)));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("tensor '{}': {}", record.name, error.what()), error.hint());
  }
  if (entry.end < entry.begin) refuse(fmt::format("the end offset of tensor '{}' is less than its start offset", entry.name));
  const std::uint64_t wanted = storage_bytes(entry.code != nullptr ? DType::u8 : entry.dtype, entry.shape);
  if (entry.end - entry.begin != wanted)
    refuse(fmt::format("tensor '{}' ({} of shape {}) needs {} bytes, but its offsets span {}", entry.name, record.dtype,
                       to_string(entry.shape), wanted, entry.end - entry.begin));
  return entry;
}

void check_cover(const std::vector<SafetensorsEntry>& entries, std::uint64_t data_bytes) {
  std::uint64_t at = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin > at) refuse(fmt::format("bytes {} to {} of the data belong to no tensor", at, entry.begin));
    if (entry.begin < at) refuse(fmt::format("tensor '{}' overlaps the previous tensor", entry.name));
    at = entry.end;
  }
  if (at != data_bytes) refuse(fmt::format("the tensors need {} bytes, but the file has {}", at, data_bytes));
}

void check_names(const std::vector<SafetensorsEntry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) refuse(fmt::format("tensor '{}' appears twice", *twice));
}

// "[32, 64]", exactly as to_string(Shape) writes it.
Shape parse_shape(const std::string& key, std::string_view text) {
  std::array<std::int64_t, kMaxRank> dims{};
  std::size_t rank = 0;
  const char *at = text.data() + 1, *const end = text.data() + text.size();
  while (text.size() > 2 && rank < dims.size()) {
    const auto [stop, error] = std::from_chars(at, end, dims[rank]);
    if (error != std::errc{}) break;
    ++rank;
    if (stop == end || *stop != ',') break;
    at = stop + 2;
    if (at >= end) break;
  }
  const Shape shape(std::span<const std::int64_t>(dims.data(), rank));
  if (to_string(shape) != text) refuse(fmt::format("metadata '{}' is not a shape", key));
  return shape;
}

std::string format_key(std::string_view name) { return fmt::format("{}{}{}", kPrefix, name, kFormat); }
std::string shape_key(std::string_view name) { return fmt::format("{}{}{}", kPrefix, name, kLogicalShape); }
bool is_reserved(std::string_view key) {
  return key.starts_with(kPrefix) && (key.ends_with(kFormat) || key.ends_with(kLogicalShape)) &&
         key.size() > kPrefix.size() + kFormat.size();
}

// Reinterprets U8 tile bytes as the block format named in their metadata, and removes that metadata.
void apply_block_format(SafetensorsEntry& entry, std::map<std::string, std::string, std::less<>>& metadata) {
  const auto format = metadata.find(format_key(entry.name));
  const auto logical = metadata.find(shape_key(entry.name));
  if (format == metadata.end() && logical == metadata.end()) return;
  if (format == metadata.end() || logical == metadata.end())
    refuse(
        fmt::format("tensor '{}' needs both metadata '{}' and '{}'", entry.name, format_key(entry.name), shape_key(entry.name)));
  const std::optional<DType> dtype = parse_dtype(format->second);
  if (!dtype || !is_block(*dtype) || name(*dtype) != format->second)
    refuse(fmt::format("metadata '{}' is not a block format", format->first), "use bfloat8_b or bfloat4_b");
  const Shape shape = parse_shape(logical->first, logical->second);
  if (entry.dtype != DType::u8 || entry.shape.rank() != 1 || storage_bytes(*dtype, shape) != entry.end - entry.begin)
    refuse(fmt::format("tensor '{}' must have {} bytes of U8 for {} of shape {}", entry.name, storage_bytes(*dtype, shape),
                       name(*dtype), to_string(shape)));
  entry.dtype = *dtype;
  entry.shape = shape;
  metadata.erase(format);
  metadata.erase(logical);
}

std::string json_text(std::string_view text) {
  return boost::json::serialize(boost::json::value(boost::json::string_view(text.data(), text.size())));
}

std::string_view type_name(DType dtype) {
  for (const TypeName& type : kTypeNames)
    if (type.dtype == dtype) return type.text;
  return "U8";
}

// Sorted by this, and with a header padded to 8, every array lies at a multiple of its element size.
std::size_t alignment_of(DType dtype) { return is_block(dtype) ? 8 : element_bytes(dtype); }

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes) {
  if (json.empty() || json.front() != '{') refuse("the header does not start with '{'");
  SafetensorsJson parsed = parse_safetensors_json(json);
  SafetensorsHeader header{.entries = {}, .metadata = std::move(parsed.metadata)};
  header.entries.reserve(parsed.records.size());
  for (const SafetensorsRecord& record : parsed.records) header.entries.push_back(entry_of(record));
  std::sort(header.entries.begin(), header.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_cover(header.entries, data_bytes);
  check_names(header.entries);
  for (SafetensorsEntry& entry : header.entries)
    if (!header.metadata.empty()) apply_block_format(entry, header.metadata);
  for (const auto& [key, value] : header.metadata)
    if (is_reserved(key)) refuse(fmt::format("metadata '{}' belongs to no tensor of this file", key));
  return header;
}

std::string format_safetensors_header(SafetensorsHeader& header) {
  std::sort(header.entries.begin(), header.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    const std::size_t left = alignment_of(a.dtype), right = alignment_of(b.dtype);
    return left != right ? left > right : a.name < b.name;
  });
  std::vector<std::string> parts;
  std::vector<std::string> metadata;
  std::uint64_t at = 0;
  for (SafetensorsEntry& entry : header.entries) {
    if (entry.name == "__metadata__") refuse("'__metadata__' cannot be the name of a tensor");
    entry.begin = at;
    entry.end = at += storage_bytes(entry.dtype, entry.shape);
    const std::string shape = is_block(entry.dtype) ? fmt::format("{}", entry.end - entry.begin)
                                                    : fmt::format("{}", fmt::join(entry.shape.dims(), ","));
    parts.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", json_text(entry.name),
                                type_name(entry.dtype), shape, entry.begin, entry.end));
    if (!is_block(entry.dtype)) continue;
    metadata.push_back(fmt::format("{}:{}", json_text(format_key(entry.name)), json_text(name(entry.dtype))));
    metadata.push_back(fmt::format("{}:{}", json_text(shape_key(entry.name)), json_text(to_string(entry.shape))));
  }
  for (const auto& [key, value] : header.metadata) {
    if (is_reserved(key)) refuse(fmt::format("metadata key '{}' is reserved for Tenon", key), "use another key");
    metadata.push_back(fmt::format("{}:{}", json_text(key), json_text(value)));
  }
  if (!metadata.empty()) parts.insert(parts.begin(), fmt::format("\"__metadata__\":{{{}}}", fmt::join(metadata, ",")));
  std::string json = fmt::format("{{{}}}", fmt::join(parts, ","));
  json.append((8 - json.size() % 8) % 8, ' ');
  if (json.size() > kMaxSafetensorsHeaderBytes)
    throw Error(ErrorCode::resource_exhausted, "the header would exceed 100 MB",
                "write fewer tensors into one file, or shorter names and metadata");
  (void)parse_safetensors_json(json);  // the output must be readable: a name that is not UTF-8 is refused here
  return json;
}

}  // namespace tenon
