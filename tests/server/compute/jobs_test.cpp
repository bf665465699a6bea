// Jobs and events: work that takes its time, seen while it does, and cancelled.
#include <atomic>
#include <set>

#include "eventually.h"
#include "server/http_client.h"
#include "tenon/device/simulated.h"

namespace tenon::server {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using test::eventually;

// A server with one exclusive device that takes a moment to open.
std::unique_ptr<TestServer> with_device(double open_seconds = 0.02) {
  SimulatedDevice device = SimulatedDevice::of_architecture("wormhole");
  device.id = "sim:0";
  device.open_seconds = open_seconds;
  device.close_seconds = 0;
  Config config;
  config.simulated.push_back(device);
  return std::make_unique<TestServer>(ServerOptions{}, config);
}

constexpr const char* kOnDevice = R"({"operation":"relu","device":"sim:0","inputs":[{"value":-1,"shape":[8,8]}]})";

std::string job_path(const TestServer& server, const char* request = kOnDevice) {
  const Reply reply = server.post("/api/jobs", request);
  EXPECT_EQ(reply.status, 202) << reply.body;
  EXPECT_EQ(reply.field("location"), std::string(at(reply.json(), "location").as_string()));
  return reply.field("location");
}

// The events of a job until its end.
std::vector<std::pair<std::string, json::value>> events_of(const TestServer& server, const std::string& path) {
  TestClient client = server.client();
  client.send("GET " + path + "/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Reply head = client.read(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.field("content-type"), "text/event-stream");
  std::vector<std::pair<std::string, json::value>> events;
  while (true) {
    const auto [name, data] = client.read_event();
    if (name.empty()) break;
    events.emplace_back(name, json::parse(data));
  }
  EXPECT_TRUE(client.is_closed());
  return events;
}

TEST(Jobs, EndWithTheAnswerOfExecute) {
  const auto server = with_device();
  const std::string path = job_path(*server);
  const auto events = events_of(*server, path);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().first, "done");
  const json::value job = server->get(path).json();
  EXPECT_EQ(at(job, "status"), "done");
  EXPECT_EQ(at(job, "result", "value"), 0.0);
  EXPECT_EQ(at(job, "result", "device", "id"), "sim:0");
  EXPECT_EQ(at(job, "result", "device", "simulated"), true);
  EXPECT_EQ(at(job, "problem"), nullptr);
  EXPECT_EQ(at(server->get("/api/jobs").json(), "jobs").as_array().size(), 1u);
}

TEST(Jobs, PreferRespondAsyncMakesAJobOfExecute) {
  const auto server = with_device();
  const Reply reply = server->post("/api/execute", kOnDevice, "Prefer: respond-async\r\n");
  EXPECT_EQ(reply.status, 202);
  EXPECT_EQ(events_of(*server, reply.field("location")).back().first, "done");
}

TEST(Jobs, MistakesAreToldAtOnce) {
  const auto server = with_device();
  EXPECT_EQ(server->post("/api/jobs", R"({"operation":"nothing"})").status, 404);
  EXPECT_EQ(server->get("/api/jobs/j_0").status, 404);
  EXPECT_EQ(server->get("/api/jobs/j_0/events").status, 404);
  EXPECT_EQ(server->client().request("DELETE", "/api/jobs/j_0").status, 404);
}

TEST(Jobs, OneThatWaitsShowsItsPlaceAndCanBeCancelled) {
  const auto server = with_device();
  Lease lease = server->manager().lease({.device = "sim:0"});
  const std::string path = job_path(*server);
  TestClient watcher = server->client();
  watcher.send("GET " + path + "/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(watcher.read(true).status, 200);
  // Until it stands in the device's queue.
  json::value progress;
  do {
    const auto [name, data] = watcher.read_event();
    ASSERT_EQ(name, "progress");
    progress = json::parse(data);
  } while (at(progress, "progress", "stage") != "queued");
  EXPECT_EQ(at(progress, "status"), "queued");
  EXPECT_EQ(at(progress, "progress", "device"), "sim:0");
  EXPECT_GE(at(progress, "progress", "ahead_here").as_int64() + at(progress, "progress", "ahead_elsewhere").as_int64(), 1);

  const json::value queue = server->get("/api/device/queue?device=sim:0").json();
  EXPECT_EQ(at(queue, "currently_waiting"), 1);
  const json::value leases = server->get("/api/leases").json();
  EXPECT_EQ(at(leases, "leases").as_array().size(), 2u);

  EXPECT_EQ(server->client().request("DELETE", path).status, 202);
  // The place in the queue may be told once more: by the stream's first event and by the change that was on its way then.
  std::pair<std::string, std::string> event;
  do event = watcher.read_event();
  while (event.first == "progress");
  EXPECT_EQ(event.first, "cancelled");
  EXPECT_EQ(at(json::parse(event.second), "problem", "code"), "cancelled");
  EXPECT_EQ(server->client().request("DELETE", path).status, 200);
  EXPECT_EQ(server->get(path).status, 404);
}

TEST(Jobs, TheResultIsThereBeforeALongComparison) {
  TestServer server;
  const std::string path = job_path(server, R"({"expression":"x @ x","device":"cpu","keep":true,)"
                                            R"("inputs":{"x":{"generator":"normal","shape":[900,900]}}})");
  const auto events = events_of(server, path);
  ASSERT_GE(events.size(), 2u);
  const auto& [name, early] = events[events.size() - 2];
  ASSERT_EQ(name, "result");
  EXPECT_EQ(at(early, "status"), "running");
  EXPECT_EQ(at(early, "progress", "stage"), "comparing");
  EXPECT_TRUE(at(early, "result", "results", 0, "comparison").is_null());
  EXPECT_TRUE(at(early, "result", "download").is_string());
  EXPECT_EQ(events.back().first, "done");
  const json::value& last = events.back().second;
  EXPECT_EQ(at(last, "result", "results", 0, "comparison", "matches"), true);
  EXPECT_EQ(at(last, "result", "results", 0, "value"), at(early, "result", "results", 0, "value"));
  EXPECT_EQ(at(last, "result", "download"), at(early, "result", "download"));
}

TEST(Jobs, AWaitThatTakesTooLongFailsWith504) {
  const auto server = with_device();
  const Lease lease = server->manager().lease({.device = "sim:0"});
  const std::string path =
      job_path(*server, R"({"operation":"relu","device":"sim:0","timeout_seconds":0.05,"inputs":[{"value":-1}]})");
  const auto events = events_of(*server, path);
  EXPECT_EQ(events.back().first, "failed");
  EXPECT_EQ(at(events.back().second, "problem", "status"), 504);
}

TEST(Jobs, ABusyDeviceDelaysNoOther) {
  ServerOptions options;
  options.threads = 4;
  SimulatedDevice device = SimulatedDevice::of_architecture("wormhole");
  device.id = "sim:0";
  device.open_seconds = device.close_seconds = 0;
  Config config;
  config.simulated.push_back(device);
  TestServer server(options, config);
  Lease lease = server.manager().lease({.device = "sim:0"});
  std::vector<std::string> paths;
  for (int i = 0; i < 10; ++i) paths.push_back(job_path(server));
  EXPECT_EQ(server.post("/api/execute", R"({"operation":"neg","device":"cpu","inputs":[{"value":4}]})").status, 200);
  lease.release();
  for (const std::string& path : paths) EXPECT_EQ(events_of(server, path).back().first, "done");
}

TEST(Jobs, AClientHasOnlySoMany) {
  ServerOptions options;
  options.max_jobs = 2;
  SimulatedDevice device = SimulatedDevice::of_architecture("wormhole");
  device.id = "sim:0";
  Config config;
  config.simulated.push_back(device);
  TestServer server(options, config);
  Lease lease = server.manager().lease({.device = "sim:0"});
  job_path(server);
  job_path(server);
  const Reply third = server.post("/api/jobs", kOnDevice);
  EXPECT_EQ(third.status, 429);
  EXPECT_NE(third.field("retry-after"), "");
}

TEST(Jobs, FilesOfAJobWaitToBeFetched) {
  const auto server = with_device();
  const std::string path = job_path(*server, R"({"expression":"[1.0, 2]","output":"npy"})");
  const auto events = events_of(*server, path);
  const std::string place(at(events.back().second, "result", "download").as_string());
  EXPECT_EQ(server->get(place).body.substr(1, 5), "NUMPY");
}

TEST(Jobs, ALostDeviceFailsTheJobAndTheNextOneWorks) {
  SimulatedDevice device = SimulatedDevice::of_architecture("wormhole");
  device.id = "sim:0";
  device.open_seconds = device.close_seconds = 0;
  device.script = {"lost_mid_run"};
  Config config;
  config.simulated.push_back(device);
  TestServer server({}, config);
  const auto first = events_of(server, job_path(server));
  if (first.back().first == "failed") {
    EXPECT_EQ(at(first.back().second, "problem", "code"), "unavailable");
  }
  EXPECT_EQ(events_of(server, job_path(server)).back().first, "done");
}

TEST(Disconnect, AClientThatGoesAwayCancelsItsWait) {
  const auto server = with_device();
  Lease lease = server->manager().lease({.device = "sim:0"});
  const auto waiting = [&] { return at(server->get("/api/device/queue?device=sim:0").json(), "currently_waiting"); };
  {
    TestClient client = server->client();
    const std::string body = kOnDevice;
    client.send("POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    ASSERT_TRUE(eventually(60s, [&] { return waiting() == 1; }));
  }
  EXPECT_TRUE(eventually(60s, [&] { return waiting() == 0; }));
  for (const DeviceStatus& status : server->manager().status())
    if (status.device.id == "sim:0") {
      EXPECT_EQ(status.counters.cancellations, 1u);
    }
}

TEST(OnDemand, ABurstOpensTheDeviceAFewTimesOnly) {
  SimulatedDevice device = SimulatedDevice::of_architecture("wormhole");
  device.id = "sim:0";
  device.open_seconds = device.close_seconds = 0.1;  // worth holding for two seconds
  Config config;
  config.simulated.push_back(device);
  TestServer server({}, config);
  std::vector<std::thread> clients;
  std::atomic<int> answered{0};
  for (int i = 0; i < 8; ++i)
    clients.emplace_back([&] {
      TestClient client = server.client();
      for (int k = 0; k < 50; ++k) answered += client.request("POST", "/api/execute", kOnDevice).status == 200;
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered, 400);
  EXPECT_LE(at(server.get("/api/device/status?device=sim:0").json(), "device", "status", "counters", "opens").as_int64(), 3);
}

TEST(Events, TellWhatHappensToDevices) {
  const auto server = with_device();
  TestClient client = server->client();
  client.send("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.read(true).status, 200);
  EXPECT_EQ(server->post("/api/execute", kOnDevice).status, 200);
  std::set<std::string> kinds;
  bool saw_snapshot = false;
  std::int64_t last_id = 0;
  while (!saw_snapshot || !kinds.contains("ran")) {
    const auto [name, data] = client.read_event();
    ASSERT_FALSE(name.empty());
    const json::value event = json::parse(data);
    if (name == "snapshot") {
      saw_snapshot = true;
      EXPECT_FALSE(at(event, "devices").as_array().empty());
    } else {
      kinds.emplace(at(event, "kind").as_string());
      EXPECT_GT(at(event, "id").as_int64(), last_id);
      last_id = at(event, "id").as_int64();
    }
  }
  EXPECT_TRUE(kinds.contains("opened"));
  EXPECT_TRUE(kinds.contains("granted"));
  // What was missed comes again.
  TestClient late = server->client();
  late.send("GET /api/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 0\r\n\r\n");
  late.read(true);
  auto event = late.read_event();
  while (event.first == "snapshot") event = late.read_event();
  EXPECT_EQ(at(json::parse(event.second), "id"), 1);
  EXPECT_GE(at(server->get("/api/timeline").json(), "next").as_int64(), last_id);
}

TEST(Events, EndWithAWordWhenTheServerDoes) {
  const auto server = with_device();
  TestClient client = server->client();
  client.send("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.read(true);
  server->server().stop();
  std::string last;
  while (true) {
    const auto [name, data] = client.read_event();
    if (name.empty()) break;
    last = name;
  }
  EXPECT_EQ(last, "shutdown");
}

}  // namespace
}  // namespace tenon::server
