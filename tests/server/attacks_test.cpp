// Attacks that once worked, each as its smallest reproduction.
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
  for (TestClient& client : clients) refused += client.fill(std::chrono::seconds(2)) && client.read().status == 503;
  EXPECT_GE(refused, 4);
  // A string grows by doubling.
  EXPECT_LT(resident_bytes(), before + 3 * options.max_memory);
}

TEST(Attacks, HeadersWithLargeLengthsReserveNothing) {
  ServerOptions options;
  options.max_memory = 512 * kMiB;
  const TestServer server(options);
  std::vector<TestClient> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(server.client());
    clients.back().send(
        "POST /api/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: "
        "260000000\r\n\r\nx");
  }
  EXPECT_EQ(server.post("/api/execute", R"json({"expression":"sum(zeros([8388608]))","device":"cpu:0"})json").status, 200);
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

}  // namespace
}  // namespace tenon::server
