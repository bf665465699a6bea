// Zip archives of .npy files, with the check of their announced sizes that the server makes before it unpacks one.
#include <string>

#include "array/io/numpy/npz.h"
#include "fuzz/fuzzer.h"
#include "tenon/array/io.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::uint64_t kMostContents = 256 << 10;

void parse(fuzz::Bytes bytes) {
  const NpzContents contents = npz_contents(bytes);
  if (contents.bytes > kMostContents) throw Error(ErrorCode::resource_exhausted, "the archive announces too much");
  const ArrayFile file = parse_npz(bytes);
  fuzz::require(file.arrays.size() <= contents.files, "more arrays than announced");
  std::uint64_t sum = 0;
  for (const auto& [name, array] : file.arrays) sum += array.bytes();
  fuzz::require(sum <= contents.bytes, "the arrays are larger than announced");
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "npz"};
  ArrayFile small, several;
  small.arrays = {{"a", HostArray::full(DType::f32, {2}, 1)}};
  several.arrays = {{"", HostArray::full(DType::u8, {3}, 1)},
                    {"b/c", HostArray::zeros(DType::f64, {0, 4})},
                    {"d", HostArray::full(DType::i64, {}, 7)}};
  for (const ArrayFile* file : {&small, &several}) target.seeds.emplace_back(fuzz::text_of(format_npz(*file)));
  // Raw deflate of 1,000 zeros after a .npy header would need a compressor; the method alone leads there, too.
  std::string deflated = target.seeds[0];
  for (std::size_t at = deflated.find("PK\1\2"); at != std::string::npos; at = deflated.find("PK\1\2", at + 1))
    deflated[at + 10] = 8;
  target.seeds.push_back(deflated);
  target.words = {"PK\1\2",
                  "PK\3\4",
                  "PK\5\6",
                  std::string("PK\6\6"),
                  std::string("PK\6\7"),
                  ".npy",
                  std::string("\0\0\0\0", 4),
                  "\xff\xff\xff\xff",
                  std::string("\x08\0", 2),
                  std::string("\1\0\x18\0", 4),
                  "\x93NUMPY"};
  std::string ends(70'000, '\0');
  for (std::size_t at = 0; at + 4 < ends.size(); at += 22) ends.replace(at, 4, "PK\5\6");
  target.dense = {ends};
  target.parse = parse;
  // The list of files, its entries, and each file packed and unpacked beside its array.
  target.bound = [](std::size_t bytes) { return (kParseFactor + 4) * (bytes + kMostContents) + 2 * kParseAllowance; };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
