// What one client may take of the server's time: attacks of shared threads, endless runs, hung devices.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <future>

#include "eventually.h"
#include "lease/turnstile/run_directory.h"
#include "lease/turnstile/turnstile.h"
#include "server/http_client.h"
#include "tenon/device/simulated.h"

namespace tenon::server {
namespace {

using namespace std::chrono_literals;
using test::eventually;

// One fused loop that takes minutes: a few hundred bytes of text.
std::string endless(std::string_view device = "cpu", int repeat = 1) {
  std::string expression = "full([4194304], 1.5)";
  for (int i = 0; i < 150; ++i) expression = "lgamma(" + expression + ")";
  return R"({"compare":false,"repeat":)" + std::to_string(repeat) + R"(,"device":")" + std::string(device) +
         R"(","expression":")" + expression + "\"}";
}

std::string small(std::string_view device = "cpu") {
  return R"({"expression":"1+1","compare":false,"details":false,"device":")" + std::string(device) + "\"}";
}

void send_post(const TestClient& client, std::string_view path, std::string_view body) {
  client.send("POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
}

bool has_answer(const TestClient& client) {
  pollfd ready{client.fd(), POLLIN, 0};
  return poll(&ready, 1, 0) > 0;
}

double metric(const TestServer& server, const std::string& name) {
  const std::string text = server.get("/metrics").body;
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::atof(text.c_str() + at + name.size() + 2);
}

DeviceState state_of(TestServer& server, const std::string& id) {
  for (const DeviceStatus& status : server.manager().status())
    if (status.device.id == id) return status.state;
  return DeviceState::closed;
}

TEST(Time, OneClientCannotTakeTheThreadsOfOthers) {
  ServerOptions options;
  options.threads = 8;
  const TestServer server(options);
  std::vector<TestClient> greedy;
  for (int i = 0; i < 12; ++i) {
    greedy.push_back(server.client());
    send_post(greedy.back(), "/api/execute", endless(i % 2 == 0 ? "cpu" : "auto", 100));
  }
  EXPECT_TRUE(eventually(60s, [&] { return metric(server, "tenon_requests_running") >= 2; }));
  for (const char* path : {"/metrics", "/api/devices", "/api/leases", "/api/device/status", "/api/machine/info"})
    EXPECT_EQ(server.get(path).status, 200) << path;
  EXPECT_EQ(server.client("127.0.0.2").request("POST", "/api/execute", small()).status, 200) << "another client computes";
  EXPECT_TRUE(eventually(60s, [&] { return metric(server, "tenon_requests_running") <= 2; })) << "a quarter of the threads";
  for (const TestClient& client : greedy) EXPECT_FALSE(has_answer(client)) << "they were to compute all the while";
}

TEST(Time, RunOfAClientThatHasGoneEndsInsideOneOp) {
  const TestServer server;
  {
    const TestClient client = server.client();
    send_post(client, "/api/execute", endless("cpu", 100));
    EXPECT_TRUE(eventually(60s, [&] { return metric(server, "tenon_requests_running") == 1; }));
  }
  EXPECT_TRUE(eventually(60s, [&] { return metric(server, "tenon_requests_running") == 0; }));
}

TEST(Time, RunEndsAtItsLimit) {
  ServerOptions options;
  options.max_run_time = 50ms;
  const TestServer server(options);
  const Reply reply = server.post("/api/execute", endless());
  EXPECT_EQ(reply.status, 504);
  EXPECT_NE(reply.body.find("time limit"), std::string::npos) << reply.body;
  const Reply inference = server.post(
      "/v2/models/op.matmul/infer",
      R"({"inputs":[{"name":"a","datatype":"FP32","shape":[1],"data":[1]},{"name":"b","datatype":"FP32","shape":[1],"data":[1]}]})");
  EXPECT_LT(inference.status, 500) << "short ones are not concerned";
}

TEST(Time, ComparisonEndsWithTheClient) {
  const TestServer server;
  {
    const TestClient client = server.client();
    // Fast on the device; the reference takes long.
    send_post(client, "/api/execute", R"json({"expression":"a = full([1500, 1500], 1.5); a @ a @ a @ a"})json");
    EXPECT_TRUE(eventually(60s, [&] { return metric(server, "tenon_requests_running") == 1; }));
  }
  EXPECT_TRUE(eventually(60s, [&] { return metric(server, "tenon_requests_running") == 0; }));
}

TEST(Time, RepeatsCountAsOperations) {
  ServerOptions options;
  options.max_operations = 1e6;
  const TestServer server(options);
  const auto repeated = [](int times) {
    return R"json({"expression":"exp(full([100000], 1.0))","compare":false,"repeat":)json" + std::to_string(times) + "}";
  };
  EXPECT_EQ(server.post("/api/execute", repeated(1)).status, 200);
  EXPECT_EQ(server.post("/api/execute", repeated(1000)).status, 413);
}

TEST(Time, SmallProgramNeverOpensADeviceInTheThreadOfAllConnections) {
  Config config;
  SimulatedDevice card = SimulatedDevice::of_architecture("wormhole");
  card.open_seconds = 2;
  card.close_seconds = 0;
  config.simulated = {card};
  config.keep_open = KeepOpenPolicy::linger;
  config.linger_seconds = 1;
  TestServer server({}, config);
  // On the open device the program is a quick one; then the device closes.
  for (int i = 0; i < 3; ++i) ASSERT_EQ(server.post("/api/execute", small("sim:0")).status, 200);
  ASSERT_TRUE(eventually(60s, [&] { return state_of(server, "sim:0") == DeviceState::closed; }));
  const TestClient client = server.client();
  send_post(client, "/api/execute", small("sim:0"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(server.get("/livez").status, 200);
  EXPECT_FALSE(has_answer(client)) << "/livez waited for the device";
}

TEST(Time, CheckComputesNothing) {
  TestServer server;
  const Reply reply = server.post("/api/check", R"({"operation":"exp","inputs":[{"generator":"uniform","shape":[1048576]}]})");
  EXPECT_EQ(reply.status, 200) << reply.body;
  for (const DeviceStatus& status : server.manager().status()) EXPECT_EQ(status.counters.runs, 0u) << status.device.id;
}

// --- Devices that hang ---

Config with_card(const std::vector<std::string>& script) {
  Config config;
  SimulatedDevice card = SimulatedDevice::of_architecture("wormhole");
  card.open_seconds = card.close_seconds = 0;
  card.hang_seconds = 3600;
  card.script = script;
  config.simulated = {card};
  config.keep_open = KeepOpenPolicy::always;
  return config;
}

TEST(Time, HungDeviceIsLostAtTheLimitAndWorksAgain) {
  ServerOptions options;
  options.max_run_time = 100ms;
  TestServer server(options, with_card({"run_hangs"}));
  EXPECT_GE(server.post("/api/execute", small("sim:0")).status, 500);
  EXPECT_TRUE(eventually(60s, [&] { return state_of(server, "sim:0") == DeviceState::lost; }));
  EXPECT_EQ(server.post("/api/execute", small("sim:0")).status, 200);
}

Reply reset(const TestServer& server, const std::string& device) {
  const Reply asked = server.post("/api/device/reset", R"({"device":")" + device + "\"}");
  const std::string token(at(asked.json(), "confirm").as_string());
  return server.post("/api/device/reset", R"({"device":")" + device + R"(","confirm":")" + token + "\"}");
}

TEST(Time, ResetFreesAHungDevice) {
  ServerOptions options;
  options.reset_patience = 2s;
  TestServer server(options, with_card({"run_hangs"}));
  const Reply job = server.post("/api/jobs", small("sim:0"));
  const std::string path(at(job.json(), "location").as_string());
  EXPECT_TRUE(eventually(60s, [&] { return at(server.get(path).json(), "progress", "stage") == "computing"; }));
  EXPECT_EQ(reset(server, "sim:0").status, 200);
  EXPECT_TRUE(eventually(60s, [&] { return at(server.get(path).json(), "status") == "failed"; })) << "its device was lost";
  EXPECT_EQ(server.post("/api/execute", small("sim:0")).status, 200);
}

std::vector<pid_t> workers() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream status(entry.path() / "status");
    std::string line, name;
    while (std::getline(status, line)) {
      if (line.starts_with("Name:")) name = line.substr(6);
      if (line == "PPid:\t" + std::to_string(getpid()) && name == "tenon-worker")
        found.push_back(static_cast<pid_t>(std::stol(entry.path().filename())));
    }
  }
  return found;
}

Config isolated() {
  Config config;
  config.isolate = Isolate::always;
  config.keep_open = KeepOpenPolicy::always;
  return config;
}

TEST(Time, StoppedWorkerIsKilledAtTheLimit) {
  ServerOptions options;
  options.max_run_time = 300ms;
  TestServer server(options, isolated());
  ASSERT_TRUE(eventually(60s, [&] { return server.post("/api/execute", small()).status == 200; }));
  ASSERT_EQ(workers().size(), 1u);
  kill(workers()[0], SIGSTOP);
  EXPECT_EQ(server.post("/api/execute", small()).status, 504);
  EXPECT_TRUE(eventually(60s, [&] { return server.post("/api/execute", small()).status == 200; })) << "in a new worker";
}

TEST(Time, ResetKillsAStoppedWorker) {
  ServerOptions options;
  options.reset_patience = 2s;
  TestServer server(options, isolated());
  ASSERT_EQ(server.post("/api/execute", small()).status, 200);
  ASSERT_EQ(workers().size(), 1u);
  const pid_t stopped = workers()[0];
  kill(stopped, SIGSTOP);
  TestClient hanging = server.client();
  send_post(hanging, "/api/execute", small());
  EXPECT_TRUE(eventually(60s, [&] { return metric(server, "tenon_requests_running") == 1; }));
  EXPECT_EQ(reset(server, "cpu:0").status, 200);
  EXPECT_EQ(hanging.read().status, 503);
  EXPECT_NE(kill(stopped, 0), 0) << "it is gone";
  EXPECT_EQ(server.post("/api/execute", small()).status, 200);
}

// --- A vendor's driver, here PoCL ---

Config with_drivers_in_workers() {
  Config config;
  config.isolate = Isolate::drivers;
  config.keep_open = KeepOpenPolicy::always;
  return config;
}

bool has_opencl(const TestServer& server) {
  return server.get("/api/devices?all=true").body.find("\"opencl:0\"") != std::string::npos;
}

TEST(Time, DriverThatHangsIsKilledWithItsWorker) {
  ServerOptions options;
  options.max_run_time = 500ms;
  TestServer server(options, with_drivers_in_workers());
  if (!has_opencl(server)) GTEST_SKIP() << "there is no OpenCL platform here";
  ASSERT_TRUE(eventually(60s, [&] { return server.post("/api/execute", small("opencl:0")).status == 200; }));
  ASSERT_EQ(workers().size(), 1u);
  const pid_t hung = workers()[0];
  kill(hung, SIGSTOP);
  TestClient hanging = server.client();
  send_post(hanging, "/api/execute", small("opencl:0"));
  EXPECT_EQ(server.post("/api/execute", small()).status, 200) << "the CPU does not wait for it";
  EXPECT_EQ(hanging.read().status, 504);
  EXPECT_NE(kill(hung, 0), 0) << "it is gone";
  EXPECT_TRUE(eventually(60s, [&] { return server.post("/api/execute", small("opencl:0")).status == 200; })) << "in a new worker";
}

TEST(Time, ServerEndsAlthoughADeviceHangs) {
  TestServer server({}, with_card({"run_hangs"}));
  const TestClient hanging = server.client();
  send_post(hanging, "/api/execute", small("sim:0"));
  EXPECT_TRUE(eventually(60s, [&] { return state_of(server, "sim:0") == DeviceState::busy; }));
  EXPECT_TRUE(server.end());
}

// --- What is told of others ---

TEST(Time, AnotherHolderIsNamedButNotItsCommandLine) {
  TestServer server({}, with_card({}));
  setenv("TENON_HELD_RUN_DIR", RunDirectory::open().path().c_str(), 1);
  const pid_t holder = fork();
  if (holder == 0) {
    execl("/proc/self/exe", "holder", "--gtest_filter=Time.DISABLED_HoldTheCard", "--gtest_also_run_disabled_tests",
          "--token=SECRET", nullptr);
    _exit(1);
  }
  EXPECT_TRUE(eventually(60s, [&] { return server.get("/api/leases").body.find("holder") != std::string::npos; }));
  const std::string message(at(server.get("/api/device/status?device=sim:0").json(), "message").as_string());
  EXPECT_TRUE(message.starts_with("sim:0 is held by pid " + std::to_string(holder))) << message;
  TestClient waiting = server.client();
  send_post(waiting, "/api/execute", R"({"expression":"1+1","device":"sim:0","timeout_seconds":0.2})");
  const Reply refused = waiting.read();
  EXPECT_EQ(refused.status, 504);
  for (const char* path : {"/api/leases", "/api/devices", "/api/device/queue", "/api/device/status?device=sim:0"}) {
    const std::string body = server.get(path).body;
    EXPECT_NE(body.find("holder"), std::string::npos) << path;
    EXPECT_EQ(body.find("SECRET"), std::string::npos) << path;
  }
  EXPECT_EQ(refused.body.find("SECRET"), std::string::npos) << refused.body;
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
}

// Run by the test above, as another process.
TEST(Time, DISABLED_HoldTheCard) {
  const char* const directory = std::getenv("TENON_HELD_RUN_DIR");
  ASSERT_NE(directory, nullptr);
  const Turnstile::Pass pass = Turnstile(RunDirectory::at(directory), "sim:0").enter({});
  pause();
}

// --- Reports ---

TEST(Time, ReportsOfOneClientAreLimited) {
  TestServer server;
  const std::string large(2 << 20, 'x');
  EXPECT_EQ(server.post("/api/bug-report", R"({"description":"a","report_data":")" + large + "\"}").status, 413);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(server.post("/api/bug-report", R"({"description":"a"})").status, 200);
  EXPECT_EQ(server.post("/api/bug-report", R"({"description":"a"})").status, 429);
  EXPECT_EQ(server.client("127.0.0.2").request("POST", "/api/bug-report", R"({"description":"a"})").status, 200);
  for (const auto& entry : std::filesystem::directory_iterator(server.directory() / "reports")) {
    struct stat status{};
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
  }
}

}  // namespace
}  // namespace tenon::server
