#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "fuzz/fuzzer.h"
#include "tenon/array/io.h"

namespace tenon {
namespace {

// The header's length: up to the last brace and the spaces after it.
void repair(std::string& file) {
  const std::size_t brace = file.rfind('}');
  if (brace == std::string::npos || brace < 8) return;
  const std::uint64_t size = std::min(file.find_first_not_of(' ', brace + 1), file.size()) - 8;
  std::memcpy(file.data(), &size, 8);
}

// Many entries of the fewest bytes each, which cost the most memory per byte.
std::string dense_file(std::string_view before, std::string_view after, int count, std::string_view end) {
  std::string file(8, '\0');
  file += end == "}" ? "{" : "{\"__metadata__\":{";
  for (int i = 0; i < count; ++i) file.append(i == 0 ? "" : ",").append(before).append(std::to_string(i)).append(after);
  file += end;
  repair(file);
  return file;
}

fuzz::Target make_target() {
  ArrayFile all;
  for (DType dtype : all_dtypes()) all.arrays.emplace(name(dtype), HostArray::full(dtype, {2, 3}, 1));
  all.metadata = {{"origin", "fuzz"}};
  ArrayFile blocks;
  blocks.arrays = {{"w", HostArray::full(DType::bfloat4_b, {3}, 1)}};
  ArrayFile small;
  small.arrays = {{"a", HostArray::full(DType::f32, {2}, 1)},
                  {"b", HostArray::full(DType::u8, {}, 1)},
                  {"c", HostArray::zeros(DType::f64, {0, 4})}};
  ArrayFile noted;
  for (int i = 0; i < 40; ++i) noted.metadata.emplace("k" + std::to_string(i), "");
  fuzz::Target target{.name = "safetensors"};
  for (const ArrayFile* file : {&all, &blocks, &small, &noted})
    target.seeds.emplace_back(fuzz::text_of(format_safetensors(*file)));
  target.seeds.push_back(std::string("\2\0\0\0\0\0\0\0{}", 10));
  target.words = {"{",
                  "}",
                  "[",
                  "]",
                  "\"",
                  ",",
                  ":",
                  "null",
                  "true",
                  "1e3",
                  "-1",
                  "0",
                  "65536",
                  "4294967296",
                  "18446744073709551615",
                  "18446744073709551616",
                  "\"dtype\"",
                  "\"shape\"",
                  "\"data_offsets\"",
                  "\"__metadata__\":{",
                  "\"F8_E4M3\"",
                  "\"BF16\"",
                  "\\u0000",
                  "\\ud800",
                  "\xff",
                  "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},",
                  "\"x\":\"\",",
                  "\"tenon.a.format\":\"bfloat8_b\","};
  target.dense = {dense_file("\"", R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})", 50000, "}"),
                  dense_file("\"", "\":\"\"", 100000, "}}"), dense_file("\"", R"(":{})", 50000, "}"),
                  dense_file("\"tenon.", R"(.format":"")", 50000, "}}")};
  target.repair = repair;
  target.parse = [](fuzz::Bytes bytes) { (void)parse_safetensors(bytes); };
  target.bound = [](std::size_t bytes) { return (kParseFactor + 1) * bytes + kParseAllowance; };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
