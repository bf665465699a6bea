#include "codegen/c/attention/key_parts.h"

#include <fmt/format.h>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

constexpr std::string_view kJoin = R"(#define INFINITY_F32 AS_F32(0x7f800000u)
const i64 line = j / $WIDTH, c = j % $WIDTH;
f32 top = -INFINITY_F32, all = 0, x = 0;
for (i64 s = 0; s < $SPLITS; ++s) top = fmaxf(top, $STATE[(line * $SPLITS + s) * 2]);
const f32 base = top == -INFINITY_F32 ? 0.0f : top;
for (i64 s = 0; s < $SPLITS; ++s) {
f32 weight;
asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(weight) : "f"($STATE[(line * $SPLITS + s) * 2] - base));
all = fmaf($STATE[(line * $SPLITS + s) * 2 + 1], weight, all);
x = fmaf($PARTS[(line * $SPLITS + s) * $WIDTH + c], weight, x);
}
x = all == 0 ? 0.0f : x / all;
$TO[j] = $VALUE;
#undef INFINITY_F32
)";

}  // namespace

KeyParts divided_keys(std::int64_t keys, std::int64_t all, std::int64_t held, std::int64_t limit, std::int64_t step) {
  std::int64_t most = 1;
  for (std::int64_t parts = 2; parts <= limit; ++parts)
    if (ceil_div(all * parts, held) * most < ceil_div(all * most, held) * parts) most = parts;
  KeyParts parts;
  parts.keys = ceil_div(ceil_div(keys, most), step) * step;
  parts.count = ceil_div(keys, parts.keys);
  return parts;
}

void reserve_results(KeyParts& parts, std::int64_t lines, std::int64_t width, const Scratch& scratch) {
  if (parts.count == 1) return;
  parts.sums = scratch(static_cast<std::uint64_t>(lines * parts.count * width) * 4);
  parts.states = scratch(static_cast<std::uint64_t>(lines * parts.count) * 8);
}

void add_result(std::map<std::string, std::string>& names, Body& body, const KeyParts& parts, const Dense& out) {
  Parameters& p = body.parameters();
  if (parts.count == 1) {
    names["STORE"] = fmt::format("x = all == 0 ? 0.0f : x / all;\n{}[line * WIDTH + c] = {};", p.output(out.stored, out.slot),
                                 body.to_store(out.stored, "x"));
    names["STORE_STATE"] = "{}";
    return;
  }
  const std::string count = p.whole_number(parts.count);
  names["STORE"] = fmt::format("{}[(line * {} + split) * WIDTH + c] = x;", p.buffer("f32", parts.sums), count);
  names["STORE_STATE"] = fmt::format("{{ {0}[(line * {1} + split) * 2] = top; {0}[(line * {1} + split) * 2 + 1] = all; }}",
                                     p.buffer("f32", parts.states), count);
}

Launch emit_joined_parts(const KernelTarget& target, const KeyParts& parts, std::int64_t lines, std::int64_t width,
                         const Dense& out) {
  Parameters p(true);
  Body body(target, p);
  const std::map<std::string, std::string> names{{"WIDTH", p.whole_number(width)},
                                                 {"SPLITS", p.whole_number(parts.count)},
                                                 {"STATE", p.buffer("const f32", parts.states)},
                                                 {"PARTS", p.buffer("const f32", parts.sums)},
                                                 {"TO", p.output(out.stored, out.slot)},
                                                 {"VALUE", body.to_store(out.stored, "x")}};
  return emit_items(body, lines * width, parts.count, filled(kJoin, names));
}

}  // namespace tenon::emit
