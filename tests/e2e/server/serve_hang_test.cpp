// A server whose device does not answer: what SIGTERM does.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "e2e/server/serve.h"
#include "eventually.h"

namespace tenon::testing {
namespace {

using namespace std::chrono_literals;

class HungServer : public Serve {
 protected:
  // The tenon-worker processes whose parent is |server|.
  static std::vector<pid_t> workers_of(pid_t server) {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream status(entry.path() / "status");
      std::string line, name;
      while (std::getline(status, line)) {
        if (line.starts_with("Name:")) name = line.substr(6);
        if (line == "PPid:\t" + std::to_string(server) && name == "tenon-worker")
          found.push_back(static_cast<pid_t>(std::stol(entry.path().filename())));
      }
    }
    return found;
  }
};

TEST_F(HungServer, EndsOnSigtermAndTakesAStoppedWorkerWithIt) {
  const auto server = start({"--drain-seconds", "1"}, {{"TENON_ISOLATE", "true"}});
  const std::uint16_t port = port_of(*server);
  ASSERT_TRUE(compute(port, "cpu").starts_with("HTTP/1.1 200"));
  const std::vector<pid_t> workers = workers_of(server->pid());
  ASSERT_EQ(workers.size(), 1u);
  kill(workers[0], SIGSTOP);
  std::jthread client([port] { compute(port, "cpu"); });
  EXPECT_TRUE(
      test::eventually(60s, [&] { return get(port, "/metrics").find("\ntenon_requests_running 1") != std::string::npos; }));
  server->send(SIGTERM);
  EXPECT_EQ(server->exit_status(), 0);
  EXPECT_NE(kill(workers[0], 0), 0) << "the worker is still there";
}

TEST_F(HungServer, EndsOnSigtermAlthoughADeviceHangs) {
  const auto server = start({"--drain-seconds", "1", "--sim", "wormhole,open=0,close=0,hang=3600,script=run_hangs"});
  const std::uint16_t port = port_of(*server);
  std::jthread client([port] { compute(port, "sim:0"); });
  EXPECT_TRUE(
      test::eventually(60s, [&] { return get(port, "/metrics").find("\ntenon_requests_running 1") != std::string::npos; }));
  server->send(SIGTERM);
  EXPECT_EQ(server->exit_status(), 0);
}

}  // namespace
}  // namespace tenon::testing
