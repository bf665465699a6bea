// Attacks that once worked, each as its smallest reproduction.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cmath>

#include "array/host_memory.h"
#include "eventually.h"
#include "server/http_client.h"

namespace tenon::server {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr const char* kSmallRun = R"({"operation":"neg","device":"cpu:0","inputs":[{"value":4}]})";

// A name that resolves to 127.0.0.1 for a moment gives a web page the whole API of a server without login.
TEST(Attacks, ARebindingHostNameIsRefused) {
  const TestServer server;
  for (const char* host : {"127.evil.example:18001", "[::1]evil.example"}) {
    TestClient client = server.client();
    const std::string body = R"({"expression":"1+1"})";
    client.send("POST /api/execute HTTP/1.1\r\nHost: " + std::string(host) + "\r\nOrigin: http://" + host +
                "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    EXPECT_EQ(client.read().status, 403) << host;
  }
}

// Whoever opened all streams kept everybody else from watching.
TEST(Attacks, OneClientHasAQuarterOfTheEventStreams) {
  ServerOptions options;
  options.max_streams = 8;
  const TestServer server(options);
  std::vector<TestClient> clients;
  const auto subscribe = [&] {
    clients.push_back(server.client());
    clients.back().send("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return clients.back().read(true).status;
  };
  EXPECT_EQ(subscribe(), 200);
  EXPECT_EQ(subscribe(), 200);
  EXPECT_EQ(subscribe(), 429);
  clients.clear();
  EXPECT_TRUE(test::eventually(std::chrono::seconds(60), [&] { return subscribe() == 200; }));
}

// HEAD made a subscriber that nobody ever read from or removed; any web page could send it.
TEST(Attacks, HeadOfTheEventStreamLeavesNoSubscriber) {
  const TestServer server;
  TestClient client = server.client();
  const std::size_t before = resident_bytes();
  for (int i = 0; i < 1000; ++i) {
    if (client.is_closed(std::chrono::milliseconds(0))) client = server.client();
    client.send("HEAD /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(client.read(true).status, 200);
  }
  for (int i = 0; i < 300; ++i) EXPECT_EQ(server.post("/api/execute", kSmallRun).status, 200);
  EXPECT_LT(resident_bytes(), before + 64 * kMiB);
}

TEST(Attacks, ACrossSiteHeadIsRefused) {
  const TestServer server;
  TestClient client = server.client();
  client.send("HEAD /api/events HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n");
  EXPECT_EQ(client.read(true).status, 403);
}

TEST(Attacks, UnfinishedChunkedBodiesAreCountedAsTheyCome) {
  ServerOptions options;
  options.max_memory = 64 * kMiB;
  const TestServer server(options);
  const std::size_t before = resident_bytes();
  const std::string piece(kMiB, 'x');
  std::vector<TestClient> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(server.client());
    clients.back().send(
        "POST /api/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: "
        "chunked\r\n\r\n");
    for (int mebibyte = 0; mebibyte < 40; ++mebibyte) clients.back().send("100000\r\n" + piece + "\r\n");
  }
  int refused = 0;
  for (TestClient& client : clients) refused += client.fill(std::chrono::seconds(2)) && client.read().status >= 400;
  EXPECT_GE(refused, 4);
  // A string grows by doubling.
  EXPECT_LT(resident_bytes(), before + 3 * options.max_memory);
}

TEST(Attacks, HeadersWithLargeLengthsReserveNothing) {
  ServerOptions options;
  options.max_memory = 512 * kMiB;
  const TestServer server(options);
  // Each less than a client may have, all together as much.
  std::vector<TestClient> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(server.client());
    clients.back().send(
        "POST /api/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: "
        "30000000\r\n\r\nx");
  }
  EXPECT_EQ(server.post("/api/execute", R"json({"expression":"sum(zeros([8388608]))","device":"cpu:0"})json").status, 200);
  // Nor in the arrays of the process.
  const std::uint64_t arrays = host_memory::statistics().in_use_bytes;
  EXPECT_LT(arrays, 100 * kMiB);
}

TEST(Attacks, OneAddressDoesNotTakeEveryConnection) {
  ServerOptions options;
  options.max_connections = 40;
  const TestServer server(options);
  std::vector<TestClient> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(server.client());
    EXPECT_EQ(clients.back().request("GET", "/livez").status, 200);
  }
  TestClient eleventh = server.client();
  eleventh.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Reply reply = eleventh.read();
  EXPECT_TRUE(reply.status == 503 || reply.status == 0) << reply.status;
  clients.pop_back();
  EXPECT_TRUE(test::eventually(std::chrono::seconds(60), [&] { return server.get("/livez").status == 200; }))
      << "a place is free again";
}

TEST(Attacks, OnlyPlainChunkedIsTakenAsChunked) {
  const TestServer server;
  for (const char* encoding : {"gzip, chunked", "chunked;q=1", "chunked, chunked"}) {
    TestClient client = server.client();
    client.send("POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: " +
                std::string(encoding) + "\r\n\r\n0\r\n\r\n");
    EXPECT_GE(client.read().status, 400) << encoding;
  }
  TestClient old = server.client();
  old.send(
      "POST /api/execute HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: "
      "chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
  EXPECT_EQ(old.read().status, 501);
}

// --- Resources that end ---

// An allocation that fails in the I/O thread costs one connection, not the server.
TEST(Attacks, ABodyThatCannotBeAllocatedCostsOneConnection) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers need more address space than they could be left";
#endif
#endif
  ServerOptions options;
  options.max_memory = 8192 * kMiB;
  options.max_body_bytes = 2048 * kMiB;
  const TestServer server(options);
  EXPECT_EQ(server.get("/livez").status, 200);
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const std::string piece(kMiB, 'x');
  const rlimit tight{pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + 200 * kMiB, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  TestClient client = server.client();
  client.send(
      "POST /api/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: "
      "2000000000\r\n\r\n");
  for (int i = 0; i < 100; ++i) client.send(piece);
  const int status = client.read().status;
  const int other = server.get("/livez").status;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(status, 503);
  EXPECT_EQ(other, 200);
}

// A tool that the server starts and that stays would keep the port and the connections.
TEST(Attacks, SocketsAreNotInherited) {
  const TestServer server;
  TestClient client = server.client();
  EXPECT_EQ(client.request("GET", "/livez").status, 200);
  int sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code failed;
    if (!std::filesystem::read_symlink(entry.path(), failed).string().starts_with("socket:")) continue;
    ++sockets;
    EXPECT_TRUE(fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC) << entry.path();
  }
  EXPECT_GE(sockets, 3) << "the listener and both ends of the connection";
}

// Deadlines are for progress: a steady reader that takes several of them gets everything.
TEST(Attacks, ASlowButSteadyReaderGetsTheWholeAnswer) {
  ServerOptions options;
  options.write_timeout = std::chrono::milliseconds(1500);
  options.least_bytes_a_second = 1;
  const TestServer server(options);
  const std::string job =
      server
          .post(
              "/api/jobs",
              R"json({"expression":"zeros([1048576], bool)","output":"full","device":"cpu:0","compare":false,"details":false})json")
          .field("location");
  EXPECT_TRUE(test::eventually(std::chrono::seconds(60), [&] { return server.get(job).body.size() > 12'000'000; }));
  for (const char* what : {"", "/events"}) {
    TestClient client = server.client();
    const int small = 64 << 10;
    setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    client.send("GET " + job + what + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < 3 * options.write_timeout) {
      for (int i = 0; i < 8; ++i) ASSERT_TRUE(client.fill());
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    while (client.fill(std::chrono::milliseconds(500))) {
    }
    EXPECT_GT(client.buffer().size(), 12'000'000u) << what;
  }
}

// Answers that nobody reads must not keep their memory from others.
TEST(Attacks, AReaderThatDoesNotReadIsCutAndItsShareFreed) {
  ServerOptions options;
  options.write_timeout = std::chrono::seconds(5);
  const TestServer server(options);
  const auto used = [&] {
    const std::string text = server.get("/metrics").body;
    constexpr std::string_view kName = "\ntenon_request_memory_used_bytes ";
    const std::size_t at = text.find(kName);
    return at == std::string::npos ? HUGE_VAL : std::stod(text.substr(at + kName.size()));
  };
  constexpr double kResult = 16 << 20;
  const Reply run = server.post(
      "/api/execute", R"json({"expression":"zeros([16777216], uint8)","compare":false,"details":false,"keep":true})json");
  ASSERT_EQ(run.status, 200) << run.body;
  const std::string path(at(run.json(), "download").as_string());
  ASSERT_TRUE(test::eventually(std::chrono::seconds(60), [&] { return used() < 1.5 * kResult; })) << "only the kept result";
  TestClient slow = server.client();
  const int small = 64 << 10;
  setsockopt(slow.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  slow.send("GET " + path + "?format=npy HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(slow.fill()) << "the answer begins";
  EXPECT_TRUE(test::eventually(std::chrono::seconds(60), [&] { return used() < 1.5 * kResult; })) << "the share comes back";
  // What was on the way arrives, then the connection ends before the answer is whole.
  EXPECT_TRUE(slow.is_closed(std::chrono::seconds(60)));
  EXPECT_LT(static_cast<double>(slow.buffer().size()), kResult);
}

// A network has 2^64 addresses; they are one client.
TEST(Attacks, TheAddressesOfOneNetworkShareOneRate) {
  ServerOptions options;
  options.rate_limit = 1;
  options.trusted_proxy = "127.0.0.1";
  const TestServer server(options);
  const auto last_of_thirty = [&](const char* format) {
    int status = 0;
    for (int i = 1; i <= 30; ++i)
      status = server.get("/livez", "X-Forwarded-For: " + fmt::format(fmt::runtime(format), i) + "\r\n").status;
    return status;
  };
  EXPECT_EQ(last_of_thirty("2001:db8:0:{:x}::1"), 200) << "different networks";
  EXPECT_EQ(last_of_thirty("2001:db8:1:1::{:x}"), 429) << "one network";
}

}  // namespace
}  // namespace tenon::server
