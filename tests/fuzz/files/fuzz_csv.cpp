// Text of numbers, as clients upload it.
#include <string>

#include "fuzz/fuzzer.h"
#include "tenon/array/io.h"

namespace tenon {
namespace {

void parse(fuzz::Bytes bytes) {
  const HostArray array = parse_csv(fuzz::text_of(bytes));
  fuzz::require(array.shape().rank() <= 2, "a table has two axes");
  // Every number is at least a character, and what was read can be written and read again.
  fuzz::require(static_cast<std::size_t>(array.elements()) <= bytes.size(), "more numbers than characters");
  if (array.elements() > 0)
    fuzz::require(parse_csv(format_csv(array)).elements() == array.elements(), "what is written is not what was read");
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "csv"};
  target.seeds = {"1,2,3\n4,5,6\n",
                  "a;b\n1.5;2.5\n",
                  "# note\n\n1\t2\n3\t4",
                  "1\n2\n3\n",
                  "-1e-3 inf nan\n",
                  "9223372036854775807\n",
                  "x,y\n0.1,1e308\n-0,5.",
                  "\xef\xbb\xbf"
                  "1,2\r\n3,4\r\n"};
  target.words = {"\n",
                  "\r\n",
                  ",",
                  ";",
                  "\t",
                  " ",
                  "#",
                  "\"",
                  "1",
                  "-",
                  "+",
                  ".",
                  "e",
                  "1e309",
                  "1e-400",
                  "nan",
                  "inf",
                  "NaN",
                  "18446744073709551616",
                  "0x10",
                  "1_000",
                  "\xff",
                  std::string(1, '\0'),
                  "a,b\n"};
  std::string dense;
  for (int i = 0; i < 200'000; ++i) dense += "1,";
  target.dense = {dense + "1", std::string(400'000, '\n'), std::string(200'000, '1')};
  target.parse = parse;
  // A number of two characters is eight bytes, in a list that grows by doubling, and twice that while it is written again.
  target.bound = [](std::size_t bytes) { return 128 * bytes + kParseAllowance; };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
