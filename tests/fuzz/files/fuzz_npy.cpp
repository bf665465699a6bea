#include "array/io/numpy/npy.h"
#include "fuzz/fuzzer.h"
#include "tenon/array/io.h"

namespace tenon {
namespace {

std::string file_of(int version, std::string dictionary, const std::string& data) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += static_cast<char>(dictionary.size() >> (8 * i) & 0xff);
  return out + dictionary + data;
}

// The header's length: up to the line's end after the dictionary.
void repair(std::string& file) {
  const std::size_t begin = file.size() > 6 && file[6] == 1 ? 10 : 12;
  const std::size_t brace = file.find('}', begin);
  if (brace == std::string::npos) return;
  const std::size_t end = file.find_first_not_of(" \n", brace + 1), size = std::min(end, file.size()) - begin;
  for (std::size_t i = 8; i < begin; ++i) file[i] = static_cast<char>(size >> (8 * (i - 8)) & 0xff);
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "npy"};
  for (DType dtype : all_dtypes())
    if (!is_block(dtype))
      for (const Shape& shape : {Shape{}, Shape{0}, Shape{3}, Shape{2, 3}, Shape{1, 2, 1, 2}})
        target.seeds.emplace_back(fuzz::text_of(format_npy(HostArray::full(dtype, shape, 1))));
  for (int version : {1, 2, 3}) {
    target.seeds.push_back(
        file_of(version, "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }\n", std::string(24, '\1')));
    target.seeds.push_back(file_of(version, "{'shape': (4L,), 'descr': '|V2', 'fortran_order': False}", std::string(8, '\1')));
  }
  target.words = {"{",
                  "}",
                  "(",
                  ")",
                  "'",
                  "\"",
                  ",",
                  ":",
                  "True",
                  "False",
                  "'descr'",
                  "'shape'",
                  "'fortran_order'",
                  "'<f8'",
                  "'>i2'",
                  "'|O'",
                  "'<U4'",
                  "[('a','<f4')]",
                  "()",
                  "(1,)",
                  "0",
                  "-1",
                  "65536",
                  "4294967296",
                  "1099511627776",
                  "18446744073709551616",
                  "1e9",
                  "\\x",
                  "\xff\xff\xff\x7f",
                  "L"};
  target.dense = {file_of(2, "{'descr': '>f8', 'fortran_order': True, 'shape': (500, 1000), }", std::string(4000000, '\1')),
                  file_of(2, "{'descr': '" + std::string(60000, 'x') + "', }", "")};
  target.repair = repair;
  target.parse = [](fuzz::Bytes bytes) { (void)parse_npy(bytes); };
  // Parsing, then the array: the input's size, and once more while Fortran order is transposed.
  target.bound = [](std::size_t bytes) { return (kParseFactor + 2) * bytes + kParseAllowance; };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
