// The server as a process: its start, its end, and what a service manager hears of it.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>

#include "e2e/server/serve.h"

namespace tenon::testing {
namespace {

TEST_F(Serve, EndsWellOnSigterm) {
  const auto program = start({});
  const std::uint16_t port = port_of(*program);
  EXPECT_TRUE(get(port, "/livez").starts_with("HTTP/1.1 200"));
  program->send(SIGTERM);
  EXPECT_EQ(program->exit_status(), 0);
  EXPECT_EQ(get(port, "/livez"), "no connection");
}

TEST_F(Serve, RefusesOtherAddressesWithoutALogin) {
  const auto program = start({"--host", "0.0.0.0"});
  const std::string said = program->all_err();
  EXPECT_NE(said.find("no login"), std::string::npos) << said;
  EXPECT_NE(said.find("--password-file"), std::string::npos) << said;
  EXPECT_EQ(program->exit_status(), 2);
}

TEST_F(Serve, AWrongValueOfAnOptionIsRefusedWithWhatItMayBe) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"--port", "99999"}, "--port: must be a whole number from 0 to 65535, not 99999"},
      {{"--port", "-1"}, "--port: must be a whole number from 0 to 65535, not -1"},
      {{"--port", "http"}, "--port: must be a whole number from 0 to 65535, not http"},
      {{"--host", "nowhere"}, "'nowhere' is not an address"},
      {{"--trusted-proxy", "nowhere"}, "'nowhere' is not an address"},
      {{"--threads", "0"}, "--threads: must be a whole number from 1 to 4096, not 0"},
      {{"--max-connections", "0"}, "--max-connections: must be a whole number from 1"},
      {{"--max-waiting", "many"}, "--max-waiting: must be a whole number from 0"},
      {{"--rate-limit", "-1"}, "--rate-limit: must be a number from 0"},
      {{"--max-json", "1zb"}, "--max-json: must be a size such as 4096 or 512MiB, not 1zb"},
      {{"--max-body", "-5"}, "--max-body: must be a size such as 4096 or 512MiB, not -5"},
      {{"--drain-seconds", "nan"}, "--drain-seconds: must be a number from 0 to 86400, not nan"},
      {{"hash-password", "--account", "a:b"}, "--account: must be a word"},
  };
  for (const auto& [words, sentence] : wrong) {
    std::vector<std::string> line{TENON_PROGRAM, "serve"};
    line.insert(line.end(), words.begin(), words.end());
    const auto program = command(line);
    const std::string said = program->all_err();
    EXPECT_TRUE(said.starts_with("tenon: " + sentence)) << said;
    EXPECT_NE(said.find("hint: "), std::string::npos) << said;
    EXPECT_EQ(program->exit_status(), 2) << said;
  }
}

TEST_F(Serve, APortInUseIsASentence) {
  const auto first = start({});
  const std::uint16_t port = port_of(*first);
  Program second({TENON_PROGRAM, "serve", "--port", std::to_string(port)}, {{"TENON_RUN_DIR", directory_ / "run"}});
  EXPECT_NE(second.all_err().find("cannot listen"), std::string::npos);
  EXPECT_EQ(second.exit_status(), 4);
}

TEST_F(Serve, TellsTheServiceManager) {
  const std::string path = directory_ / "notify";
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const auto program = start({}, {{"NOTIFY_SOCKET", path}, {"WATCHDOG_USEC", "100000"}});
  const auto message = [&] {
    char bytes[256];
    const ssize_t count = recv(socket.get(), bytes, sizeof bytes, 0);
    return std::string(bytes, count > 0 ? static_cast<std::size_t>(count) : 0);
  };
  EXPECT_TRUE(message().starts_with("READY=1"));
  EXPECT_EQ(message(), "WATCHDOG=1");
  // One that is behind with reading, so that there is no room, hears of the end all the same.
  const FileDescriptor other(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  while (sendto(other.get(), "full", 4, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address), sizeof address) > 0) {
  }
  program->send(SIGTERM);
  std::string last = message();
  while (last == "full" || last == "WATCHDOG=1") last = message();
  EXPECT_TRUE(last.starts_with("STOPPING=1")) << last;
  EXPECT_EQ(program->exit_status(), 0);
}

// The number of inotify watches per user is limited, and other programs may use them all.
TEST_F(Serve, YieldsADeviceAlsoWhereNothingCanBeWatched) {
  std::vector<std::string> line{
      "unshare", "--user", "--map-root-user", "sh", "-c", "echo 0 >/proc/sys/user/max_inotify_instances && exec \"$@\"", "sh"};
  std::vector<std::string> probe = line;
  probe.emplace_back("true");
  if (command(probe)->exit_status() != 0) GTEST_SKIP() << "this system permits no user namespace";
  const std::string device = "wormhole,id=sim:0,open=0,close=0";
  line.insert(line.end(), {TENON_PROGRAM, "serve", "--port", "0", "--sim", device, "--set", "keep_open=always"});
  const auto server = command(line);
  EXPECT_TRUE(compute(port_of(*server), "sim:0").starts_with("HTTP/1.1 200"));
  const auto other = command({TENON_PROGRAM, "run", "2 * 21", "--sim", device, "--device", "sim:0", "--timeout", "60"});
  EXPECT_NE(other->all_out().find("42"), std::string::npos);
  EXPECT_EQ(other->exit_status(), 0) << other->all_err();
}

TEST_F(Serve, KeepsReportsInItsStateFolder) {
  const auto program = start({});
  const std::uint16_t port = port_of(*program);
  EXPECT_TRUE(post(port, "/api/bug-report", R"({"description":"it is wrong"})").starts_with("HTTP/1.1 200"));
  const std::filesystem::directory_iterator reports(directory_ / "state/reports");
  EXPECT_EQ(std::distance(begin(reports), end(reports)), 1);
}

TEST_F(Serve, HashPasswordPrintsALineThatLogsIn) {
  const std::string script = "printf 'correct horse\\n' | " + std::string(TENON_PROGRAM) + " serve hash-password --account ada";
  Program hash({"sh", "-c", script}, {});
  const std::string line = hash.out_line();
  if (line.empty()) GTEST_SKIP() << hash.all_err();
  EXPECT_TRUE(line.starts_with("ada:$argon2id$")) << line;
  const std::filesystem::path file = directory_ / "passwords";
  std::ofstream(file) << line << '\n';
  chmod(file.c_str(), 0600);
  const auto program = start({"--password-file", file});
  const std::uint16_t port = port_of(*program);
  EXPECT_TRUE(get(port, "/api/devices").starts_with("HTTP/1.1 401"));
  const std::string body = "account=ada&password=correct+horse";
  const std::string answer = request(
      port,
      "POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n"
      "Content-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 303")) << answer;
  EXPECT_NE(answer.find("tenon_session="), std::string::npos);
}

}  // namespace
}  // namespace tenon::testing
