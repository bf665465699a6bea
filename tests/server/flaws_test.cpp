// What the calculator this one replaces got wrong, one test each: none of it comes back.
//
// Tested elsewhere: one element compared by an absolute limit (Execute.ComparesTheWholeTensorByTheDtypesOwnPrecision), ops that
// need integers (Execute.OpsThatWantIntegersGetThemByDefault), numbers that JSON lacks (Execute.NumbersThatJsonLacksGoBothWays),
// made-up progress (Jobs.OneThatWaitsShowsItsPlaceAndCanBeCancelled), a reset that always failed (Reset), any attribute of a
// library called by name (Execute.RefusesWithTheRightStatusAndASentence), passwords, lockout and redirects (Login), other sites'
// pages (Connection.OtherSitesPagesAreRefused), errors run as HTML (tests/web/calculator.mjs).
#include <sys/utsname.h>

#include <set>

#include "server/http_client.h"
#include "tenon/device/simulated.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

std::unique_ptr<TestServer> with_card(const std::string& times = "open=0,close=0") {
  Config config;
  config.simulated.push_back(parse_simulated("wormhole,id=sim:0," + times));
  return std::make_unique<TestServer>(ServerOptions{}, config);
}

TEST(Flaws, ThatEveryPollOpensTheDevice) {
  const auto server = with_card();
  for (int i = 0; i < 20; ++i)
    for (const char* path : {"/api/device/status?device=sim:0", "/api/device/queue?device=sim:0", "/api/devices", "/api/leases",
                             "/api/policy", "/metrics", "/readyz", "/v2/health/ready"})
      EXPECT_EQ(server->get(path).status, 200) << path;
  const json::value status = server->get("/api/device/status?device=sim:0").json();
  EXPECT_EQ(at(status, "device", "status", "counters", "opens"), 0);
  EXPECT_EQ(at(status, "available"), true);
}

TEST(Flaws, ThatEveryRequestPaysForOpeningAndClosing) {
  const auto server = with_card("open=300ms,close=0");  // worth holding for three seconds
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(server->post("/api/execute", R"({"operation":"neg","inputs":[{"value":1}],"device":"sim:0"})").status, 200);
  EXPECT_EQ(at(server->get("/api/device/status?device=sim:0").json(), "device", "status", "counters", "opens"), 1);
}

TEST(Flaws, ThatTheQueueCountsWithoutALock) {
  const auto server = with_card();
  constexpr int kClients = 8, kRequests = 25;
  std::vector<std::jthread> clients;
  for (int i = 0; i < kClients; ++i)
    clients.emplace_back([&] {
      TestClient client = server->client();
      for (int k = 0; k < kRequests; ++k)
        EXPECT_EQ(client.request("POST", "/api/execute", R"({"operation":"neg","inputs":[{"value":1}],"device":"sim:0"})").status,
                  200);
    });
  clients.clear();
  const json::value queue = server->get("/api/device/queue?device=sim:0").json();
  EXPECT_EQ(at(queue, "total_requests"), kClients * kRequests);
  EXPECT_EQ(at(queue, "currently_waiting"), 0);
}

TEST(Flaws, ThatAnOpIsListedAndCannotBeReachedOrHasParametersNobodyCanGive) {
  const TestServer server;
  std::set<std::string> names;
  const json::value operations = server.get("/api/operations").json();
  for (const auto& category : operations.as_object())
    for (const json::value& name : category.value().as_array()) names.insert(std::string(name.as_string()));
  EXPECT_TRUE(names.contains("threshold"));
  const json::value parameters = server.get("/api/operations/params").json();
  for (const char* op : {"threshold", "clamp", "leaky_relu", "celu", "hardtanh", "softshrink", "logit", "round", "isclose"})
    EXPECT_FALSE(at(parameters, op, "parameters").as_array().empty()) << op;
  const Reply clamped = server.post("/api/execute", R"({"operation":"clamp","inputs":[{"value":[-3,0.5,9]}],)"
                                                    R"("parameters":{"min":-1,"max":2},"details":false})");
  EXPECT_EQ(at(clamped.json(), "sample_values"), json::parse("[-1.0,0.5,2.0]"));
}

TEST(Flaws, ThatWhatWasAskedForIsSilentlyReplaced) {
  const TestServer server;
  const auto run = [&](std::string_view body) { return server.post("/api/execute", body); };
  // Shapes of any rank are what they are, and what is no shape is refused.
  EXPECT_EQ(at(run(R"({"operation":"neg","inputs":[{"value":1,"shape":"3"}]})").json(), "shape"), json::parse("[3]"));
  EXPECT_EQ(at(run(R"({"operation":"neg","inputs":[{"value":1,"shape":[]}]})").json(), "shape"), json::parse("[]"));
  EXPECT_EQ(run(R"({"operation":"neg","inputs":[{"value":1,"shape":"1;1"}]})").status, 400);
  // The dtype of a scalar counts.
  const json::value scalar = run(R"({"operation":"neg","inputs":[{"type":"scalar","value":2.7,"dtype":"int32"}]})").json();
  EXPECT_EQ(at(scalar, "dtype"), "int32");
  EXPECT_EQ(at(scalar, "value"), -2);
}

TEST(Flaws, ThatReferencesComputeInAnotherType) {
  const TestServer server;
  const auto run = [&](std::string_view body) { return server.post("/api/execute", body).json(); };
  const json::value word = run(R"({"operation":"add","inputs":[{"value":4294967290,"dtype":"uint32","shape":[2]},)"
                               R"({"value":5,"dtype":"uint32","shape":[2]}]})");
  EXPECT_EQ(at(word, "value"), 4294967295);
  EXPECT_EQ(at(word, "torch_value"), 4294967295);
  const json::value half = run(R"({"operation":"add","inputs":[{"value":65000,"dtype":"uint16","shape":[2]},)"
                               R"({"value":535,"dtype":"uint16","shape":[2]}]})");
  EXPECT_EQ(at(half, "torch_value"), 65535);
  // 1.1 is 1.09375 in a block of eight bits, for the device and for the reference.
  const json::value block = run(R"({"operation":"neg","inputs":[{"value":1.1,"dtype":"bfloat8_b","shape":"32,32"}]})");
  EXPECT_EQ(at(block, "value"), -1.09375);
  EXPECT_EQ(at(block, "torch_value"), -1.09375);
  EXPECT_EQ(at(block, "results", 0, "comparison", "matches"), true);
}

TEST(Flaws, ThatOnlySomeOpsHaveAReference) {
  const TestServer server;
  for (const char* op : {"i0", "lgamma", "erfinv", "logit", "mish", "tanhshrink", "cbrt", "softplus"}) {
    const std::string body = std::string(R"({"operation":")") + op + R"(","inputs":[{"value":0.25,"shape":[4,4]}]})";
    EXPECT_EQ(at(server.post("/api/execute", body).json(), "results", 0, "comparison", "matches"), true) << op;
  }
}

TEST(Flaws, ThatTheMachineIsWrittenIntoTheProgram) {
  const TestServer server;
  const json::value machine = server.get("/api/machine/info").json();
  utsname system{};
  uname(&system);
  EXPECT_NE(std::string(at(machine, "system").as_string()).find(system.release), std::string::npos);
  EXPECT_EQ(at(machine, "pid"), getpid());
  const json::value devices = server.get("/api/devices").json();
  EXPECT_EQ(at(machine, "device_id"), at(devices, "default"));
}

}  // namespace
}  // namespace tenon::server
