#include "base/text/json_writer.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <functional>
#include <vector>

namespace tenon {
namespace {

std::string json_of(const std::function<void(JsonWriter&)>& write) {
  std::string text;
  JsonWriter json(text);
  write(json);
  return text;
}

TEST(JsonWriter, WritesWhatReadersReadBack) {
  EXPECT_EQ(json_of([](JsonWriter& j) {
              j.begin_object();
              j.member("a", 1);
              j.member("b", 0.1);
              j.member("c", "x\"\\\n\x01");
              j.key("d").begin_array();
              j.value(true);
              j.null();
              j.begin_array();
              j.end_array();
              j.value(std::uint64_t{18446744073709551615u});
              j.end_array();
              j.end_object();
            }),
            R"({"a":1,"b":0.1,"c":"x\"\\\n\u0001","d":[true,null,[],18446744073709551615]})");
  EXPECT_EQ(json_of([](JsonWriter& j) { j.value(NAN); }), "\"NaN\"");
  EXPECT_EQ(json_of([](JsonWriter& j) { j.value(-INFINITY); }), "\"-Infinity\"");
  EXPECT_EQ(json_of([](JsonWriter& j) { j.value(0.1F); }), "0.1");
}

TEST(JsonWriter, NumbersHaveTheFewestDigitsThatReadBackTheSame) {
  const auto text = [](auto number) { return json_of([&](JsonWriter& j) { j.value(number); }); };
  for (const double number : {0.5, -0.25, 0.1, 1e300, 5e-324, 1e5, 1e20}) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    EXPECT_EQ(text(number), std::string(digits, end));
  }
  EXPECT_EQ(text(0.1F), "0.1");
  EXPECT_EQ(text(100000.0F), "1e+05");
}

TEST(JsonWriter, WholeFloatsAreStillFloats) {
  const auto text = [](auto number) { return json_of([&](JsonWriter& j) { j.value(number); }); };
  EXPECT_EQ(text(0.0), "0.0");
  EXPECT_EQ(text(-0.0), "-0.0");
  EXPECT_EQ(text(-7.0), "-7.0");
  EXPECT_EQ(text(99999.0F), "99999.0");
  EXPECT_EQ(text(123456.0), "123456.0");
  EXPECT_EQ(text(16777216.0F), "16777216.0");
  EXPECT_EQ(text(7), "7");
}

TEST(JsonWriter, FindsWhatHasToBeEscapedAtEveryPlace) {
  for (const char special : {'"', '\\', '\n', '\x1f', '\x7f'})
    for (std::size_t length = 1; length < 20; ++length)
      for (std::size_t place = 0; place < length; ++place) {
        std::string plain(length, 'a'), text = plain;
        text[place] = special;
        const std::string written = json_of([&](JsonWriter& j) { j.value(text); });
        EXPECT_EQ(written[place + 1], '\\') << length << " " << place;
        EXPECT_EQ(json_of([&](JsonWriter& j) { j.value(plain); }), '"' + plain + '"');
      }
}

TEST(JsonWriter, NamesOfMembersAreEscapedWhereTheyComeFromElsewhere) {
  EXPECT_EQ(json_of([](JsonWriter& j) {
              j.begin_object();
              j.member(std::string("a\"b"), 1);
              j.member("plain", 2);
              j.key(std::string_view("c")).null();
              j.end_object();
            }),
            R"({"a\"b":1,"plain":2,"c":null})");
}

TEST(JsonWriter, SecondsAreWrittenToTheNanosecond) {
  const auto text = [](double seconds) {
    return json_of([&](JsonWriter& j) {
      j.begin_object();
      j.seconds("s", seconds);
      j.end_object();
    });
  };
  EXPECT_EQ(text(0), R"({"s":0.0})");
  EXPECT_EQ(text(0.00000466912345), R"({"s":0.000004669})");
  EXPECT_EQ(text(12.5), R"({"s":12.5})");
  EXPECT_EQ(text(0.9999999999), R"({"s":1.0})");
  EXPECT_EQ(text(-1), R"({"s":-1.0})");
  EXPECT_EQ(text(INFINITY), R"({"s":"Infinity"})");
}

TEST(JsonWriter, WhatIsNotKnownIsNull) {
  EXPECT_EQ(json_of([](JsonWriter& j) {
              j.begin_object();
              j.text_or_null("a", "");
              j.text_or_null("b", "x");
              j.member("c", std::optional<int>());
              j.list("d", std::vector<double>{1, 2.5});
              j.end_object();
            }),
            R"({"a":null,"b":"x","c":null,"d":[1.0,2.5]})");
}

TEST(JsonWriter, TextThatIsNoUtf8IsMadeSo) {
  EXPECT_EQ(json_of([](JsonWriter& j) { j.value(std::string_view("\xC3\xA4 \xFF \xC0\x80 \xED\xA0\x80")); }),
            "\"\xC3\xA4 \xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(Indented, ObjectsAreOnLinesAndListsOnOneLine) {
  EXPECT_EQ(indented(R"({"a":[1,2],"b":[{"c":null}],"d":{},"e":[[1],[]],"f":[]})"),
            "{\n  \"a\": [1, 2],\n  \"b\": [\n    {\n      \"c\": null\n    }\n  ],\n  \"d\": {},\n  \"e\": [[1], []],\n"
            "  \"f\": []\n}");
}

TEST(Indented, TextsAreLeftAlone) {
  const std::string text = R"("a\"b{[,:]}\\")";
  EXPECT_EQ(indented(text), text);
  EXPECT_EQ(indented("[" + text + "," + text + "]"), "[" + text + ", " + text + "]");
  EXPECT_EQ(indented("{" + text + ":" + text + "}"), "{\n  " + text + ": " + text + "\n}");
}

}  // namespace
}  // namespace tenon
