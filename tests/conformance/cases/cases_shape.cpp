// Ops that move elements without changing them, and conversions.
#include <fmt/format.h>

#include "conformance/plan.h"

namespace tenon::conformance {
namespace {

constexpr Values kAny = Values::wide;

void transpose(Plan& p) {
  p.add("matrix", {p.x({33, 17}, kAny)});
  p.add("three axes", {p.x({3, 5, 7}, kAny)});
  p.add("order given", {p.x({3, 5, 7}, kAny)}, {{"axes", integers({1, 2, 0})}});
  p.add("scalar", {p.x({}, kAny)});
  p.add("empty", {p.x({0, 5}, kAny)});
  if (p.is_full()) p.add("large", {p.x({331, 307}, kAny)});
}
void permute(Plan& p) {
  p.add("three axes", {p.x({3, 5, 7}, kAny)}, {{"axes", integers({2, 0, 1})}});
  p.add("four axes", {p.x({2, 3, 4, 5}, kAny)}, {{"axes", integers({0, 2, 1, 3})}});
}
void swapaxes(Plan& p) {
  p.add("first two", {p.x({3, 5, 7}, kAny)});
  p.add("outer two", {p.x({3, 5, 7}, kAny)}, {{"axis1", integer(0)}, {"axis2", integer(-1)}});
}
void movedim(Plan& p) {
  p.add("to the end", {p.x({3, 5, 7}, kAny)}, {{"source", integer(0)}, {"destination", integer(-1)}});
  p.add("to the front", {p.x({3, 5, 7}, kAny)}, {{"source", integer(2)}, {"destination", integer(0)}});
}
void reshape(Plan& p) {
  p.add("flat", {p.x({3, 5, 7}, kAny)}, {{"shape", integers({105})}});
  p.add("worked out", {p.x({6, 10}, kAny)}, {{"shape", integers({4, -1, 3})}});
  p.add("empty", {p.x({0, 3}, kAny)}, {{"shape", integers({3, 0})}});
}
void squeeze(Plan& p) {
  p.add("all", {p.x({1, 5, 1, 7}, kAny)});
  p.add("one", {p.x({1, 5, 1, 7}, kAny)}, {{"axis", integers({2})}});
}
void unsqueeze(Plan& p) {
  p.add("first", {p.x({5, 7}, kAny)}, {{"axis", integer(0)}});
  p.add("last", {p.x({5, 7}, kAny)}, {{"axis", integer(-1)}});
}
void flatten(Plan& p) {
  p.add("all", {p.x({3, 5, 7}, kAny)});
  p.add("some", {p.x({3, 5, 7}, kAny)}, {{"start_axis", integer(1)}});
  p.add("scalar", {p.x({}, kAny)});
}
void expand(Plan& p) {
  p.add("row", {p.x({7}, kAny)}, {{"shape", integers({5, 7})}});
  p.add("column", {p.x({5, 1}, kAny)}, {{"shape", integers({3, 5, 4})}});
  p.add("kept", {p.x({5, 1}, kAny)}, {{"shape", integers({-1, 3})}});
  p.add("to nothing", {p.x({1, 4}, kAny)}, {{"shape", integers({0, 4})}});
}
void tile(Plan& p) {
  p.add("matrix", {p.x({3, 5}, kAny)}, {{"reps", integers({2, 3})}});
  p.add("more axes", {p.x({5}, kAny)}, {{"reps", integers({2, 1, 3})}});
  p.add("none", {p.x({5}, kAny)}, {{"reps", integers({0})}});
}
void repeat(Plan& p) {
  p.add("flat", {p.x({3, 5}, kAny)}, {{"repeats", integer(2)}});
  p.add("axis", {p.x({3, 5}, kAny)}, {{"repeats", integer(3)}, {"axis", integer(0)}});
}
void flip(Plan& p) {
  p.add("all", {p.x({5, 33}, kAny)});
  p.add("first axis", {p.x({5, 7, 3}, kAny)}, {{"axis", integers({0})}});
  p.add("last axis", {p.x({5, 37}, kAny)}, {{"axis", integers({-1})}});
}
void roll(Plan& p) {
  p.add("flat", {p.x({5, 7}, kAny)}, {{"shift", integers({3})}});
  p.add("axes", {p.x({5, 7}, kAny)}, {{"shift", integers({-2, 9})}, {"axis", integers({0, 1})}});
  p.add("empty", {p.x({0}, kAny)}, {{"shift", integers({1})}});
}
void concat(Plan& p) {
  p.add("first axis", {p.x({3, 5}, kAny), p.x({1, 5}, kAny), p.x({7, 5}, kAny)});
  p.add("last axis", {p.x({3, 5}, kAny), p.x({3, 2}, kAny)}, {{"axis", integer(-1)}});
  p.add("one", {p.x({3, 5}, kAny)});
  p.add("an empty part", {p.x({0, 5}, kAny), p.x({2, 5}, kAny)});
}
void stack(Plan& p) {
  p.add("first axis", {p.x({3, 5}, kAny), p.x({3, 5}, kAny)});
  p.add("last axis", {p.x({7}, kAny), p.x({7}, kAny), p.x({7}, kAny)}, {{"axis", integer(-1)}});
  p.add("scalars", {p.x({}, kAny), p.x({}, kAny)});
}
void split(Plan& p) {
  p.add("equal parts", {p.x({6, 5}, kAny)}, {{"sections", integers({3})}});
  p.add("sizes", {p.x({3, 9}, kAny)}, {{"sections", integers({2, 0, 7})}, {"axis", integer(1)}});
}
void chunk(Plan& p) {
  p.add("parts", {p.x({7, 5}, kAny)}, {{"chunks", integer(3)}});
  p.add("last axis", {p.x({3, 8}, kAny)}, {{"chunks", integer(2)}, {"axis", integer(-1)}});
}
void slice(Plan& p) {
  p.add("middle", {p.x({9, 11}, kAny)}, {{"start", integers({2, 3})}, {"stop", integers({7, 9})}});
  p.add("steps", {p.x({9, 11}, kAny)}, {{"start", integers({1, -1})}, {"stop", integers({9, -12})}, {"step", integers({2, -3})}});
  p.add("one axis", {p.x({5, 33}, kAny)}, {{"start", integers({-20})}, {"axis", integers({1})}});
  p.add("nothing", {p.x({5}, kAny)}, {{"start", integers({4})}, {"stop", integers({2})}});
}
void pad(Plan& p) {
  p.add("constant", {p.x({5, 7}, kAny)}, {{"padding", integers({2})}});
  p.add("constant, value", {p.x({5, 7}, kAny)}, {{"padding", integers({1, 2, 3, 0})}, {"value", 1.0}});
  for (const char* mode : {"edge", "reflect", "wrap"})
    p.add(mode, {p.x({5, 7}, kAny)}, {{"padding", integers({2, 3})}, {"mode", std::string(mode)}});
  p.add("of nothing", {p.x({0, 2}, kAny)}, {{"padding", integers({1})}});
}
void cast(Plan& p) {
  for (DType to : all_dtypes()) {
    const std::vector<NamedValue> dtype{{"dtype", std::string(name(to))}};
    p.add(fmt::format("specials to {}", name(to)), {p.x({special_count(p.dtype(), 1)}, Values::special)}, dtype);
    p.add(fmt::format("to {}", name(to)), {p.x({5, 67}, Values::mixed)}, dtype);
    p.add(fmt::format("scalar to {}", name(to)), {p.x({}, Values::mixed)}, dtype);
    p.add(fmt::format("empty to {}", name(to)), {p.x({0}, Values::mixed)}, dtype);
    if (p.is_full() && (p.dtype() == DType::f16 || p.dtype() == DType::bf16))
      p.add(fmt::format("every value to {}", name(to)), {p.x({65536}, Values::every)}, dtype);
    if (p.is_full() && p.dtype() == DType::f32)
      p.add(fmt::format("large to {}", name(to)), {p.x({331, 353}, Values::mixed)}, dtype);
  }
}
void pixel_shuffle(Plan& p) {
  p.add("by 2", {p.x({2, 8, 3, 5}, kAny)}, {{"factor", integer(2)}});
  p.add("by 3", {p.x({1, 9, 2, 2}, kAny)}, {{"factor", integer(3)}});
}
void pixel_unshuffle(Plan& p) {
  p.add("by 2", {p.x({2, 3, 6, 4}, kAny)}, {{"factor", integer(2)}});
  p.add("by 3", {p.x({1, 1, 6, 9}, kAny)}, {{"factor", integer(3)}});
}
void upsample(Plan& p) {
  p.add("plane", {p.x({2, 3, 4, 5}, kAny)}, {{"factor", integer(2)}});
  p.add("line", {p.x({2, 3, 7}, kAny)}, {{"factor", integer(3)}});
}

}  // namespace

const PlanTable& shape_plans() {
  static const PlanTable table{
      {"transpose", transpose},
      {"permute", permute},
      {"swapaxes", swapaxes},
      {"movedim", movedim},
      {"reshape", reshape},
      {"squeeze", squeeze},
      {"unsqueeze", unsqueeze},
      {"flatten", flatten},
      {"expand", expand},
      {"tile", tile},
      {"repeat", repeat},
      {"flip", flip},
      {"roll", roll},
      {"concat", concat},
      {"stack", stack},
      {"split", split},
      {"chunk", chunk},
      {"slice", slice},
      {"pad", pad},
      {"cast", cast},
      {"pixel_shuffle", pixel_shuffle},
      {"pixel_unshuffle", pixel_unshuffle},
      {"upsample_nearest", upsample},
  };
  return table;
}

}  // namespace tenon::conformance
