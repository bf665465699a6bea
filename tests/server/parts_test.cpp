// The server's pure parts: JSON text, workers, routes, percent signs, streams.
#include <atomic>
#include <charconv>
#include <cmath>
#include <latch>

#include "eventually.h"
#include "server/access/rate_limit.h"
#include "server/compute/task_pool.h"
#include "server/http/event_stream.h"
#include "server/http/json_writer.h"
#include "server/http_client.h"
#include "server/routes/routes.h"

namespace tenon::server {
namespace {

using namespace std::chrono_literals;
using test::eventually;

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
  for (const double number : {0.0, -0.0, 1.0, -7.0, 99999.0, -99999.0, 100000.0, 123456.0, 0.5, -0.25, 1e300, 5e-324}) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    EXPECT_EQ(text(number), std::string(digits, end));
  }
  EXPECT_EQ(text(-0.0F), "-0");
  EXPECT_EQ(text(16777216.0F), "16777216");
  EXPECT_EQ(text(100000.0F), "1e+05");
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
  EXPECT_EQ(text(0), R"({"s":0})");
  EXPECT_EQ(text(0.000004669), R"({"s":0.000004669})");
  EXPECT_EQ(text(12.5), R"({"s":12.5})");
  EXPECT_EQ(text(0.9999999999), R"({"s":1})");
  EXPECT_EQ(text(-1), R"({"s":-1})");
  EXPECT_EQ(text(INFINITY), R"({"s":"Infinity"})");
}

TEST(JsonWriter, TextThatIsNoUtf8IsMadeSo) {
  EXPECT_EQ(json_of([](JsonWriter& j) { j.value(std::string_view("\xC3\xA4 \xFF \xC0\x80 \xED\xA0\x80")); }),
            "\"\xC3\xA4 \xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD \xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(PercentDecode, RefusesWhatIsMalformed) {
  EXPECT_EQ(percent_decode("a%20b+c", true), "a b c");
  EXPECT_EQ(percent_decode("a%2", false), std::nullopt);
  EXPECT_EQ(percent_decode("%zz", false), std::nullopt);
  EXPECT_EQ(percent_decode("%00", false), std::nullopt);
  EXPECT_EQ(percent_decode("%41%7a", false), "Az");
}

TEST(RouteTable, FindsFixedPathsAndPatterns) {
  RouteTable routes;
  routes.add({.method = Method::get, .path = "/a"});
  routes.add({.method = Method::post, .path = "/a"});
  routes.add({.method = Method::get, .path = "/a/{id}/b"});
  EXPECT_NE(routes.find(Method::head, "/a").route, nullptr);
  EXPECT_EQ(routes.find(Method::delete_, "/a").route, nullptr);
  EXPECT_EQ(routes.find(Method::delete_, "/a").allow, "GET, POST, HEAD, OPTIONS");
  EXPECT_EQ(routes.find(Method::get, "/a/x%20y/b").arguments, std::vector<std::string>{"x y"});
  EXPECT_EQ(routes.find(Method::get, "/a//b").route, nullptr);
  EXPECT_EQ(routes.find(Method::get, "/a/x/c").allow, "");
}

TEST(TaskPool, OneKeyCannotTakeAllThreads) {
  std::latch block(1), others(3);
  std::atomic<int> blocked{0};
  {
    TaskPool workers(4, 100);
    for (int i = 0; i < 10; ++i)
      ASSERT_TRUE(workers.submit("busy", [&] {
        ++blocked;
        block.wait();
      }));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(workers.submit("other", [&] { others.count_down(); }));
    others.wait();
    EXPECT_LE(blocked, 2);
    block.count_down();
    EXPECT_TRUE(eventually(60s, [&] { return workers.running() + workers.waiting() == 0; }));
  }
  EXPECT_EQ(blocked, 10);
}

TEST(TaskPool, RefuseWhenTooManyWait) {
  std::latch block(1);
  TaskPool workers(2, 3);
  ASSERT_TRUE(workers.submit("a", [&] { block.wait(); }));
  EXPECT_TRUE(eventually(60s, [&] { return workers.running() == 1; }));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(workers.submit("a", [] {}));
  EXPECT_FALSE(workers.submit("a", [] {}));
  block.count_down();
}

TEST(RateLimit, AllowsABurstAndThenTheRate) {
  RateLimit limit(2);
  auto now = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(limit.take("a", now), 0) << i;
  EXPECT_NEAR(limit.take("a", now), 0.5, 1e-9);
  EXPECT_EQ(limit.take("b", now), 0);
  now += std::chrono::milliseconds(500);
  EXPECT_EQ(limit.take("a", now), 0);
  EXPECT_GT(limit.take("a", now), 0);
}

TEST(EventStream, DropsTheOldestForASlowReaderAndSaysSo) {
  EventStream stream;
  for (std::size_t i = 0; i < EventStream::kMaxWaiting + 5; ++i) stream.send("device", "{}", i + 1);
  const std::string text = stream.take();
  EXPECT_TRUE(text.starts_with("event: lag\ndata: {\"dropped\":5}\n\nevent: device\nid: 6\n")) << text.substr(0, 100);
  EXPECT_EQ(stream.take(), "");
}

}  // namespace
}  // namespace tenon::server
