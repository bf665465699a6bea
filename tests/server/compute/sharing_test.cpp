// What requests share (executables, programs, devices) and what they must not.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/fnv_collision.h"
#include "server/http_client.h"
#include "tenon/device/simulated.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

double metric(const TestServer& server, std::string_view name) {
  const std::string text = server.get("/metrics").body;
  const std::size_t at = text.find(fmt::format("\n{} ", name));
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

// Until keys of graphs had 128 bits and were keyed, the second client got the first one's numbers.
TEST(Sharing, ConstantsMadeToCollideDoNotShareAnExecutable) {
  TestServer server;
  for (const bool second : {false, true, false, true}) {
    const std::string values = fmt::format("{}", fmt::join(test::colliding(second), ", "));
    const Reply reply = server.client().request(
        "POST", "/api/execute", fmt::format(R"({{"expression":"[{}] + 0","output":"full","compare":false}})", values));
    ASSERT_EQ(reply.status, 200) << reply.body;
    const std::string wanted = fmt::format("\"full_output\":[{}]", fmt::join(test::colliding(second), ","));
    EXPECT_NE(reply.body.find(wanted), std::string::npos) << reply.body;
  }
}

TEST(Sharing, TheRouteOfAnAnswerIsTheDeviceThatComputedIt) {
  Config config;
  for (int i = 0; i < 2; ++i) config.simulated.push_back(parse_simulated("wormhole,open=0,close=0"));
  TestServer server({}, config);
  const auto ask = [&] {
    const Reply reply =
        server.post("/api/execute", R"({"operation":"neg","inputs":[{"value":1}],"device":"tenstorrent","details":true})");
    EXPECT_EQ(reply.status, 200) << reply.body;
    const json::value answer = reply.json();
    EXPECT_EQ(at(answer, "route", "device"), at(answer, "device", "id"));
    EXPECT_EQ(at(answer, "route", "considered", 0, "device"), at(answer, "device", "id"));
    return std::string(at(answer, "device", "id").as_string());
  };
  for (const char* taken : {"sim:0", "sim:1"}) {
    const Lease lease = server.manager().lease({.device = taken});
    EXPECT_NE(ask(), taken);
  }
}

TEST(Sharing, ARequestIsCountedOnceByTheProgramCache) {
  TestServer server;
  constexpr std::string_view kHits = "tenon_program_cache_hits_total", kMisses = "tenon_program_cache_misses_total";
  const auto ask = [&](std::string_view body) { EXPECT_EQ(server.post("/api/execute", body).status, 200); };
  ask(R"({"expression":"1 + 1"})");
  EXPECT_EQ(metric(server, kMisses), 1);
  EXPECT_EQ(metric(server, kHits), 0);
  ask(R"({"expression":"1 + 1"})");
  EXPECT_EQ(metric(server, kMisses), 1);
  EXPECT_EQ(metric(server, kHits), 1);
  // Small enough to be answered by the I/O thread from the second time on.
  for (int i = 0; i < 20; ++i) ask(R"({"expression":"1 + 2","details":false,"compare":false})");
  EXPECT_EQ(metric(server, kMisses), 2);
  EXPECT_EQ(metric(server, kHits), 20);
}

}  // namespace
}  // namespace tenon::server
