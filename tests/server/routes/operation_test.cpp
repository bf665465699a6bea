// What those who run it need: the document of all routes, metrics, health, draining.
#include <atomic>
#include <regex>
#include <set>
#include <sstream>

#include "eventually.h"
#include "server/application.h"
#include "server/http_client.h"
#include "server/watch/device_view.h"
#include "source_folder.h"
#include "tenon/device/simulated.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

// Every "$ref" of the document leads somewhere.
void check_references(const json::value& value, const json::object& schemas) {
  if (value.is_array())
    for (const json::value& item : value.get_array()) check_references(item, schemas);
  if (!value.is_object()) return;
  for (const auto& member : value.get_object()) {
    if (member.key() == "$ref") {
      const std::string name(member.value().as_string());
      EXPECT_TRUE(schemas.contains(name.substr(std::string("#/components/schemas/").size()))) << name;
    } else {
      check_references(member.value(), schemas);
    }
  }
}

TEST(OpenApi, HasEveryRouteAndNoOther) {
  const TestServer server;
  const json::value document = server.get("/openapi.json").json();
  EXPECT_EQ(at(document, "openapi"), "3.1.0");
  DeviceManager manager;
  ServerOptions options;
  const Application application(options, manager, [](std::function<void()>) {});
  std::size_t documented = 0;
  for (const auto& path : at(document, "paths").as_object()) documented += path.value().as_object().size();
  EXPECT_EQ(documented, application.routes().all().size());
  std::set<std::string> ids;
  for (const Route& route : application.routes().all()) {
    std::string method(name(route.method));
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    const json::value& operation = at(document, "paths", std::string_view(route.path), std::string_view(method));
    EXPECT_FALSE(at(operation, "summary").as_string().empty()) << route.path;
    EXPECT_TRUE(ids.insert(std::string(at(operation, "operationId").as_string())).second) << route.path;
    EXPECT_TRUE(at(operation, "responses").as_object().contains(std::to_string(route.success))) << route.path;
  }
  check_references(document, at(document, "components", "schemas").as_object());
}

TEST(OpenApi, EveryRouteOfTheDocumentPageIsThere) {
  std::ifstream page(source_folder() / "docs/http.md");
  std::stringstream text;
  text << page.rdbuf();
  const std::string documented = text.str();
  ASSERT_GT(documented.size(), 1000u);
  DeviceManager manager;
  ServerOptions options;
  const Application application(options, manager, [](std::function<void()>) {});
  for (const Route& route : application.routes().all()) {
    std::string path = route.path;
    if (path.starts_with("/v2/models/{model}")) path.replace(0, 18, "/v2/models/{m}");
    path = path.substr(0, path.find("/versions/"));
    EXPECT_NE(documented.find(path), std::string::npos) << route.path << " is not in docs/http.md";
  }
}

TEST(Metrics, ArePrometheusText) {
  const TestServer server;
  EXPECT_EQ(server.post("/api/execute", R"({"operation":"neg","inputs":[{"value":4}]})").status, 200);
  server.get("/nothing.txt");
  const Reply reply = server.get("/metrics");
  EXPECT_EQ(reply.field("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const std::regex sample(R"(^[a-z_]+(\{([a-z]+="([^"\\]|\\.)*",?)*\})? (-?[0-9.]+(e[+-]?[0-9]+)?|inf|nan)$)");
  std::istringstream lines(reply.body);
  std::string line, family;
  std::set<std::string> families;
  while (std::getline(lines, line)) {
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << family << " is there twice";
    } else if (!line.starts_with("#")) {
      EXPECT_TRUE(std::regex_match(line, sample)) << line;
      EXPECT_TRUE(line.starts_with(family)) << line;
    }
  }
  EXPECT_NE(reply.body.find(R"(tenon_http_requests_total{method="POST",route="/api/execute",status="200"} 1)"),
            std::string::npos);
  EXPECT_NE(reply.body.find(R"(tenon_device_runs_total{device="cpu:0"} 1)"), std::string::npos) << reply.body;
  EXPECT_NE(reply.body.find(R"(tenon_device_overtakes_total{device="cpu:0"} 0)"), std::string::npos);
  EXPECT_NE(reply.body.find(R"(tenon_device_lease_wait_seconds_count{device="cpu:0",wait="cold"} 1)"), std::string::npos);
}

// A card that reports what NVML reports.
class ReportingCard : public Detector {
 public:
  std::string_view name() const noexcept override { return "reporting"; }
  Detection detect(const SystemRoot&) const override {
    DeviceInfo card;
    card.id = "card:0";
    card.kind = DeviceKind::gpu;
    card.name = "Reporting card";
    card.uuid = "GPU-1";
    card.memory_total_bytes = std::uint64_t{3} << 30;
    card.memory_free_bytes = std::uint64_t{1} << 30;
    card.power_watts = 120.5;
    card.temperature_celsius = 41;
    card.details["utilization"] = "37 %";
    return {.devices = {card}};
  }
};

// A vendor's tool that counts how often it is asked.
class CountingDetector : public Detector {
 public:
  explicit CountingDetector(std::atomic<int>& asked) : asked_(asked) {}
  std::string_view name() const noexcept override { return "counting"; }
  Detection detect(const SystemRoot&) const override {
    ++asked_;
    return {};
  }

 private:
  std::atomic<int>& asked_;
};

TEST(Metrics, ScrapesAndPollsShareOneReadingOfTheMachine) {
  std::atomic<int> asked{0};
  TestServer server;
  server.manager().add_detector(std::make_unique<CountingDetector>(asked));
  server.get("/metrics");
  server.get("/api/device/status?device=cpu:0");
  const int first = asked;
  EXPECT_GE(first, 1);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(server.get("/metrics").status, 200);
    EXPECT_EQ(server.get("/api/device/status?device=cpu:0").status, 200);
    EXPECT_EQ(server.get("/readyz").status, 200);
  }
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
  EXPECT_LE(asked - first, seconds / DeviceView::kOld + 1) << "it is repeated in the background";
  EXPECT_EQ(server.post("/api/execute", R"({"expression":"1+1","device":"cpu"})").status, 200);
  EXPECT_NE(server.get("/metrics").body.find(R"(tenon_device_runs_total{device="cpu:0"} 1)"), std::string::npos) << "as of now";
}

TEST(Metrics, HaveTheNamesOfDcgmForWhatCardsReport) {
  TestServer server;
  server.manager().add_detector(std::make_unique<ReportingCard>());
  const std::string text = server.get("/metrics").body;
  const std::string labels = R"({gpu="0",UUID="GPU-1",device="card:0",modelName="Reporting card"} )";
  for (const auto& [name, value] : {std::pair("DCGM_FI_DEV_GPU_UTIL", "37"),
                                    {"DCGM_FI_DEV_FB_FREE", "1024"},
                                    {"DCGM_FI_DEV_FB_USED", "2048"},
                                    {"DCGM_FI_DEV_POWER_USAGE", "120.5"},
                                    {"DCGM_FI_DEV_GPU_TEMP", "41"}}) {
    EXPECT_NE(text.find(std::string("# TYPE ") + name + " gauge\n"), std::string::npos) << name;
    EXPECT_NE(text.find(name + labels + value + "\n"), std::string::npos) << name << " in " << text;
  }
  EXPECT_EQ(TestServer().get("/metrics").body.find(R"(DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="",device="cpu:0")"), std::string::npos);
}

TEST(Devices, SayWhichAcceleratorsWereLookedFor) {
  const TestServer server;
  const json::value document = server.get("/api/devices").json();
  std::set<std::string> vendors;
  for (const json::value& searched : at(document, "searched").as_array()) {
    vendors.insert(std::string(at(searched, "vendor").as_string()));
    EXPECT_FALSE(at(searched, "text").as_string().empty());
    EXPECT_EQ(at(searched, "remedy").is_null(), at(searched, "found").as_bool());
  }
  EXPECT_EQ(vendors, (std::set<std::string>{"NVIDIA", "AMD", "Intel", "Google", "Tenstorrent"}));
}

TEST(Devices, TheStatusNamesTheKeepOpenPolicyAsItsMode) {
  for (const auto& [policy, mode] : {std::pair(KeepOpenPolicy::on_demand, "on-demand"),
                                     {KeepOpenPolicy::linger, "linger"},
                                     {KeepOpenPolicy::adaptive, "adaptive"},
                                     {KeepOpenPolicy::always, "always"}}) {
    Config config;
    config.keep_open = policy;
    const TestServer server({}, config);
    EXPECT_EQ(at(server.get("/api/device/status?device=cpu:0").json(), "mode"), mode);
  }
}

TEST(Devices, AreListedWithoutOpeningAny) {
  const TestServer server;
  const json::value document = server.get("/api/devices").json();
  EXPECT_EQ(at(document, "default"), "cpu:0");
  const json::value status = server.get("/api/device/status?device=cpu:0").json();
  EXPECT_EQ(at(status, "available"), true);
  EXPECT_EQ(at(status, "device", "status", "counters", "opens"), 0);
  EXPECT_EQ(server.get("/api/device/status?device=gpu:99").status, 404);
  for (const char* path :
       {"/api/leases", "/api/policy", "/api/ledger", "/api/machine/info", "/api/git/info", "/api/device/queue"})
    EXPECT_EQ(server.get(path).status, 200) << path;
  EXPECT_EQ(server.get("/api/timeline?since=x").status, 400);
}

TEST(Catalogue, IsCachedByItsTag) {
  const TestServer server;
  const Reply first = server.get("/api/catalogue");
  EXPECT_FALSE(at(first.json(), "operations").as_array().empty());
  EXPECT_EQ(server.get("/api/catalogue", "If-None-Match: " + first.field("etag") + "\r\n").status, 304);
  const json::value parameters = server.get("/api/operations/params").json();
  EXPECT_EQ(at(parameters, "addalpha", "param_name"), "alpha");
  EXPECT_EQ(at(parameters, "threshold", "has_second_param"), true);
}

TEST(BugReport, IsWrittenToAFileOfTheServersOwn) {
  const TestServer server;
  const Reply reply = server.post("/api/bug-report", R"({"description":"<b>wrong</b>","report_data":{"operation":"add"}})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const std::string id(at(reply.json(), "id").as_string());
  std::ifstream file(server.directory() / "reports" / (id + ".json"));
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(at(json::parse(text.str()), "description"), "<b>wrong</b>");
  EXPECT_EQ(server.post("/api/bug-report", R"({"description":""})").status, 400);
}

TEST(Drain, LetsRunningRequestsEndAndTakesNoNewOnes) {
  SimulatedDevice device = SimulatedDevice::of_architecture("wormhole");
  device.id = "sim:0";
  device.open_seconds = device.close_seconds = 0;
  Config config;
  config.simulated.push_back(device);
  auto server = std::make_unique<TestServer>(ServerOptions{}, config);
  Lease lease = server->manager().lease({.device = "sim:0"});
  TestClient running = server->client(), other = server->client();
  const Reply ready = other.request("GET", "/readyz");
  EXPECT_EQ(ready.status, 200);
  EXPECT_EQ(ready.body, R"({"status":"ready","running":0,"waiting":0,"open_devices":1})");
  const std::string body = R"({"operation":"neg","device":"sim:0","inputs":[{"value":4}]})";
  running.send("POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
               std::to_string(body.size()) + "\r\n\r\n" + body);
  ASSERT_TRUE(test::eventually(std::chrono::seconds(60), [&] {
    return at(other.request("GET", "/api/device/queue?device=sim:0").json(), "currently_waiting") == 1;
  }));
  server->server().stop();
  EXPECT_TRUE(other.is_closed()) << "an idle connection ends at once";
  EXPECT_THROW(server->client(), std::runtime_error) << "nobody new comes in";
  lease.release();
  const Reply reply = running.read();
  EXPECT_EQ(at(reply.json(), "value"), -4.0);
  EXPECT_EQ(reply.field("connection"), "close");
}

}  // namespace
}  // namespace tenon::server
