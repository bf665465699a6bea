// Programs on several devices over HTTP.
#include "server/http_client.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

constexpr const char* kMlp = R"("expression":"gelu(x @ w) @ v","inputs":{"x":{"generator":"normal","seed":1,"shape":[6,16]},
"w":{"generator":"normal","seed":2,"shape":[16,32]},"v":{"generator":"normal","seed":3,"shape":[32,4]}})";
constexpr const char* kSplit = R"("mesh":"model=2","shard":{"w":"-,model","v":"model,-"})";

std::string request(const std::string& members) { return "{" + members + "," + kMlp + "}"; }

Config two_devices(const std::string& second = "") {
  Config config;
  for (const std::string& properties : {std::string(), second})
    config.simulated.push_back(parse_simulated("gpu,virtual,exclusive,memory=1GiB" + properties));
  return config;
}

TEST(MeshOverHttp, AProgramRunsOnAllDevicesAndMatchesTheReference) {
  TestServer server({}, two_devices());
  const Reply reply = server.post("/api/execute", request(kSplit));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json::value answer = reply.json();
  EXPECT_EQ(at(answer, "results", 0, "comparison", "matches"), true);
  const json::value& mesh = at(answer, "mesh");
  EXPECT_EQ(at(mesh, "axes"), "model=2");
  EXPECT_EQ(at(mesh, "devices"), (json::array{"sim:0", "sim:1"}));
  // Columns, then rows: one sum of 6 x 4 floats, of which each of two devices sends 2 n / 2.
  ASSERT_EQ(at(mesh, "collectives").as_array().size(), 1u) << reply.body;
  EXPECT_EQ(at(mesh, "collectives", 0, "kind"), "all-reduce");
  EXPECT_EQ(at(mesh, "bytes"), 2 * 6 * 4 * 4);
  EXPECT_EQ(at(mesh, "timelines").as_array().size(), 2u);
  EXPECT_GT(at(mesh, "shardings").as_array().size(), 4u);
  EXPECT_TRUE(at(answer, "route").is_null());
}

TEST(MeshOverHttp, DevicesMayBeNamedAndDetailsLeftOut) {
  TestServer server({}, two_devices());
  const Reply reply = server.post("/api/execute", request(std::string(kSplit) + R"(,"device":"sim:1,sim:0","details":false)"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(at(reply.json(), "mesh", "devices"), (json::array{"sim:1", "sim:0"}));
  EXPECT_EQ(at(reply.json(), "mesh").as_object().if_contains("shardings"), nullptr);
}

TEST(MeshOverHttp, FasterDevicesMayGetLargerShares) {
  TestServer server({}, two_devices());
  for (const char* path : {"/api/execute", "/api/check"}) {
    const Reply reply = server.post(path, request(std::string(kSplit) + R"(,"speeds":[3,1])"));
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(at(reply.json(), "mesh", "shares"), (json::array{0.75, 0.25})) << path;
  }
  // Nothing was measured on these devices: equal shares.
  const Reply reply = server.post("/api/check", request(std::string(kSplit) + R"(,"speeds":"measured")"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(at(reply.json(), "mesh", "notes"), json::array{});
}

TEST(MeshOverHttp, CheckingShowsThePlanAndOpensNothing) {
  TestServer server({}, two_devices(",open_fails=1"));
  const Reply reply = server.post("/api/check", request(kSplit));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(at(reply.json(), "mesh", "collectives", 0, "kind"), "all-reduce");
  EXPECT_EQ(at(reply.json(), "mesh", "bytes"), 192);
  EXPECT_EQ(at(reply.json(), "mesh").as_object().if_contains("timelines"), nullptr);
  EXPECT_TRUE(at(reply.json(), "route").is_null());
}

TEST(MeshOverHttp, MistakesAreRefusedWithASentence) {
  TestServer server({}, two_devices());
  const struct {
    const char *members, *words;
    int status;
  } mistakes[] = {
      {R"("shard":{"w":"-,model"})", "'shard' needs a 'mesh'", 400},
      {R"("mesh":"model")", "is not an axis of a mesh", 400},
      {R"("mesh":"model=2","shard":"w")", "must be an object", 400},
      {R"("mesh":"model=2","shard":{"w":1})", "must be a string", 400},
      {R"("mesh":"model=2","shard":{"y":"model"})", "no input of that name", 400},
      {R"("mesh":"model=2","shard":{"w":"data"})", "no axis data", 404},
      {R"("speeds":[1,1])", "'speeds' needs a 'mesh'", 400},
      {R"("mesh":"model=2","speeds":"fast")", "'speeds' must be", 400},
      {R"("mesh":"model=2","speeds":[1,"2"])", "'speeds' must be", 400},
      {R"("mesh":"model=2","speeds":[1])", "1 speeds are given for 2 devices", 400},
      {R"("mesh":"model=2","speeds":[1,-1])", "must be positive", 400},
      {R"("mesh":"model=2","repeat":3)", "'repeat' does not work", 400},
      {R"("mesh":"model=2","routing":"fastest")", "for one device", 400},
      {R"("mesh":"model=64")", "needs 64 devices", 409},
      {R"("mesh":"model=2","device":"sim:0")", "2 places, but 1 devices", 400},
      {R"("mesh":"model=2","device":"sim:0,nothing:7")", "nothing:7", 404},
  };
  for (const auto& mistake : mistakes)
    for (const char* path : {"/api/execute", "/api/check"}) {
      const Reply reply = server.post(path, request(mistake.members));
      EXPECT_EQ(reply.status, mistake.status) << mistake.members << path << reply.body;
      EXPECT_NE(reply.body.find(mistake.words), std::string::npos) << mistake.members << path << reply.body;
    }
}

TEST(MeshOverHttp, AFailedDeviceIsNamedAndTheOthersAreFreeAgain) {
  TestServer server({}, two_devices(",script=lost_mid_run:run"));
  const Reply failed = server.post("/api/execute", request(kSplit));
  EXPECT_GE(failed.status, 500) << failed.body;
  EXPECT_NE(failed.body.find("sim:1"), std::string::npos) << failed.body;
  const Reply next = server.post("/api/execute", R"({"expression":"1 + 1","device":"sim:0","timeout_seconds":5})");
  EXPECT_EQ(next.status, 200) << next.body;
}

TEST(MeshOverHttp, AJobRunsOnAMesh) {
  TestServer server({}, two_devices());
  const Reply created = server.post("/api/jobs", request(kSplit));
  ASSERT_EQ(created.status, 202) << created.body;
  TestClient client = server.client();
  client.send("GET " + std::string(at(created.json(), "events").as_string()) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::pair<std::string, std::string> event;
  do event = client.read_event();
  while (event.first == "progress");
  EXPECT_EQ(event.first, "done");
  EXPECT_EQ(at(json::parse(event.second), "result", "mesh", "bytes"), 192);
}

}  // namespace
}  // namespace tenon::server
