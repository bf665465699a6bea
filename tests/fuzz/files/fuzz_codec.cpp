// Files of encoded tensors, with the check of their claimed sizes that the server makes before it decodes one.
#include <algorithm>
#include <cstring>
#include <string>

#include "fuzz/fuzzer.h"
#include "tenon/array/codec.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::uint64_t kMostDecoded = 256 << 10;

// As in fuzz_safetensors.cpp: the length of the header.
void repair(std::string& file) {
  const std::size_t brace = file.rfind('}');
  if (brace == std::string::npos || brace < 8) return;
  const std::uint64_t size = std::min(file.find_first_not_of(' ', brace + 1), file.size()) - 8;
  std::memcpy(file.data(), &size, 8);
}

void parse(fuzz::Bytes bytes) {
  const ArrayFile file = parse_safetensors(bytes);
  const std::uint64_t most = decoded_bytes(file);
  if (most > kMostDecoded) throw Error(ErrorCode::resource_exhausted, "the file claims too much");
  const ArrayFile decoded = decoded_file(file);
  fuzz::require(decoded.arrays.size() == file.arrays.size(), "tensors were lost");
  std::uint64_t before = 0, after = 0;
  for (const auto& [name, array] : file.arrays) before += array.bytes();
  for (const auto& [name, array] : decoded.arrays) after += array.bytes();
  fuzz::require(after <= before + most, "the tensors are larger than announced");
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "codec"};
  const HostArray numbers = HostArray::full(DType::f32, {2, 3}, 1.5);
  for (const Encoding encoding : all_encodings()) try {
      target.seeds.emplace_back(fuzz::text_of(format_safetensors(to_file({{"a", encode(numbers, encoding)}}))));
    } catch (const Error&) {
      // This build has no zstd.
    }
  target.words = {"tenon.a.encoding",
                  "tenon.a.encoded_dtype",
                  "tenon.a.encoded_shape",
                  "\"2,3\"",
                  "\"\"",
                  "\"-1\"",
                  "\"4294967296,4294967296\"",
                  "\"65536\"",
                  "\"0\"",
                  "\"1,1,1,1,1,1,1,1,1\"",
                  "\"zstd\"",
                  "\"int8\"",
                  "\"mxfp4_e2m1\"",
                  "\"bfloat4_b\"",
                  "\"float64\"",
                  "\"bool\"",
                  "\"shape\":[0]",
                  "\x28\xb5\x2f\xfd"};
  ArrayFile many;
  for (int i = 0; i < 2000; ++i) {
    const std::string name = std::to_string(i);
    many.arrays.emplace(name, HostArray::zeros(DType::u8, {0}));
    many.metadata.emplace("tenon." + name + ".encoding", "int8");
    many.metadata.emplace("tenon." + name + ".encoded_dtype", "float32");
    many.metadata.emplace("tenon." + name + ".encoded_shape", "0");
  }
  target.dense = {std::string(fuzz::text_of(format_safetensors(many)))};
  target.repair = repair;
  target.parse = parse;
  target.bound = [](std::size_t bytes) { return (2 * kParseFactor + 2) * bytes + 4 * kMostDecoded + 2 * kParseAllowance; };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
