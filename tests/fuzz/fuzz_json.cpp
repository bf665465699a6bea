// JSON requests: parse_object(), and each way of asking for a member.
#include <cmath>
#include <limits>

#include "fuzz/fuzzer.h"
#include "server/http/body/json_reader.h"
#include "tenon/error.h"

namespace tenon {
namespace {

void parse(fuzz::Bytes bytes) {
  const boost::json::object object = server::parse_object(fuzz::text_of(bytes));
  server::Members members(object, "the case");
  (void)members.text("text");
  (void)members.boolean("flag");
  (void)members.number("number");
  if (const auto value = members.integer("small", -3, 7)) fuzz::require(*value >= -3 && *value <= 7, "outside of its bounds");
  if (const auto value =
          members.integer("integer", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()))
    fuzz::require(static_cast<double>(*value) == object.at("integer").to_number<double>(), "another integer than was given");
  (void)members.natural("natural");
  (void)members.dtype("dtype");
  if (const auto shape = members.shape("shape")) fuzz::require(shape->elements() >= 0, "a shape with a negative extent");
  members.done();
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "json"};
  target.seeds = {
      R"({})",
      R"({"text":"a\u00e9\n","flag":true,"number":-1.5e3,"small":3,"natural":18446744073709551615})",
      R"({"dtype":"bfloat16","shape":[2,3],"number":"NaN","integer":-9223372036854775808})",
      R"j({"shape":"(2, 3,)","integer":9223372036854775807,"small":7.0})j",
      R"({"shape":[],"text":null,"number":"-Infinity"})",
      R"({"other":[[[[{"a":{}}]]]],"number":0})",
  };
  target.words = {"{",
                  "}",
                  "[",
                  "]",
                  ",",
                  ":",
                  "\"",
                  "null",
                  "true",
                  "false",
                  "1e999",
                  "-0",
                  "0.1e-400",
                  "9223372036854775808",
                  "18446744073709551616",
                  "\"text\":",
                  "\"flag\":",
                  "\"number\":",
                  "\"small\":",
                  "\"integer\":",
                  "\"natural\":",
                  "\"dtype\":",
                  "\"shape\":",
                  "\"f32\"",
                  "\"NaN\"",
                  "\\u0000",
                  "\\ud800",
                  "\xff",
                  "[[[[[[[["};
  target.dense = {"{" +
                      [] {
                        std::string members;
                        for (int i = 0; i < 20000; ++i) members += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":[]";
                        return members;
                      }() +
                      "}",
                  "{\"a\":[" + std::string(100000, '[') + "]}"};
  target.parse = parse;
  target.bound = [](std::size_t bytes) { return 128 * bytes + (1 << 17); };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
