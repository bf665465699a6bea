// HTTP itself: what arrives in pieces, in heaps, wrong, too large or too slowly.
#include <vector>

#include "server/http_client.h"

namespace tenon::server {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kGet = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";

TEST(Connection, AnswersSeveralRequestsInOneConnection) {
  const TestServer server;
  TestClient client = server.client();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.request("GET", "/livez").status, 200);
}

TEST(Connection, AnswersPipelinedRequestsInOrder) {
  const TestServer server;
  TestClient client = server.client();
  std::string text;
  for (const char* path : {"/livez", "/nowhere.txt", "/api/operations", "/readyz"})
    text += std::string("GET ") + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string body = R"({"operation":"add","inputs":[{"value":1},{"value":2}]})";
  text += "POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body;
  text += kGet;
  client.send(text);
  EXPECT_EQ(client.read().body, R"({"status":"ok"})");
  EXPECT_EQ(client.read().status, 404);
  EXPECT_NE(client.read().body.find("\"binary\""), std::string::npos);
  EXPECT_EQ(at(client.read().json(), "status"), "ready");
  EXPECT_EQ(at(client.read().json(), "value"), 3.0);
  EXPECT_EQ(client.read().body, R"({"status":"ok"})");
}

TEST(Connection, ReadsARequestThatArrivesByteByByte) {
  const TestServer server;
  TestClient client = server.client();
  const std::string body = R"({"operation":"neg","inputs":[{"value":4}]})";
  const std::string text = "POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
                           std::to_string(body.size()) + "\r\n\r\n" + body;
  for (const char& c : text) client.send({&c, 1});
  EXPECT_EQ(at(client.read().json(), "value"), -4.0);
}

TEST(Connection, ReadsChunkedBodiesAndTheRequestBehindThem) {
  const TestServer server;
  TestClient client = server.client();
  client.send(
      "POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
      "15\r\n{\"operation\":\"neg\",\"i\r\n");
  client.send("18;name=value\r\nnputs\":[{\"value\":4}]}   \r\n0\r\nTrailer: x\r\n\r\n" + std::string(kGet));
  EXPECT_EQ(at(client.read().json(), "value"), -4.0);
  EXPECT_EQ(client.read().status, 200);
}

TEST(Connection, SaysContinueOnlyWhereTheBodyIsWanted) {
  const TestServer server;
  TestClient client = server.client();
  const std::string head =
      "POST /api/execute HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Type: application/json\r\n";
  client.send(head + "Content-Length: 42\r\n\r\n");
  EXPECT_EQ(client.read().status, 100);
  client.send(R"({"operation":"neg","inputs":[{"value":4}]})");
  EXPECT_EQ(client.read().status, 200);
  client.send(head + "Content-Length: 99999999999\r\n\r\n");
  EXPECT_EQ(client.read().status, 413);
}

TEST(Connection, HeadHasTheLengthAndNoBody) {
  const TestServer server;
  TestClient client = server.client();
  const Reply head = client.request("HEAD", "/livez");
  EXPECT_EQ(head.field("content-length"), "15");
  EXPECT_EQ(client.request("GET", "/livez").body, R"({"status":"ok"})");
}

TEST(Connection, OptionsNamesTheMethods) {
  const TestServer server;
  const Reply reply = server.client().request("OPTIONS", "/api/jobs/j_1");
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.field("allow"), "GET, DELETE, HEAD, OPTIONS");
  EXPECT_EQ(server.client().request("OPTIONS", "*").status, 204);
}

TEST(Connection, ClosesAfterHttpOneZeroUnlessAsked) {
  const TestServer server;
  TestClient client = server.client();
  client.send("GET /livez HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.read().field("connection"), "close");
  EXPECT_TRUE(client.is_closed());
  TestClient kept = server.client();
  kept.send("GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.read().field("connection"), "keep-alive");
  EXPECT_EQ(kept.request("GET", "/livez").status, 200);
}

struct Malformed {
  const char* what;
  std::string text;
  int status;
};

TEST(Connection, RefusesWhatIsNoRequestWithTheRightStatus) {
  const TestServer server;
  const std::string many = [] {
    std::string fields;
    for (int i = 0; i < 200; ++i) fields += "X-" + std::to_string(i) + ": 1\r\n";
    return fields;
  }();
  const std::vector<Malformed> cases{
      {"no HTTP at all", "hello there\r\n\r\n", 400},
      {"a TLS greeting", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\r\n\r\n", 15), 400},
      {"lines without CR", "GET /livez HTTP/1.1\nHost: localhost\n\n", 400},
      {"no Host", "GET /livez HTTP/1.1\r\n\r\n", 400},
      {"two Hosts", "GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400},
      {"a later version", "GET /livez HTTP/3.0\r\nHost: localhost\r\n\r\n", 505},
      {"a space in a field's name", "GET /livez HTTP/1.1\r\nHost: localhost\r\nBad Field: 1\r\n\r\n", 400},
      {"a folded field", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\n 2\r\n\r\n", 400},
      {"a length that is no number", "POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: ten\r\n\r\n", 400},
      {"a negative length", "POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400},
      {"a length and chunks",
       "POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"two lengths", "POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
       400},
      {"an unknown coding", "POST /api/execute HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
      {"a chunk's length that is none",
       "POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: "
       "chunked\r\n\r\nxyz\r\n",
       400},
      {"a long header", "GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: " + std::string(20'000, 'a') + "\r\n\r\n", 431},
      {"a long target", "GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 431},
      {"many fields", "GET /livez HTTP/1.1\r\nHost: localhost\r\n" + many + "\r\n", 431},
      {"a large body",
       "POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n",
       413},
      {"a body where none belongs", "POST /logout HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n", 413},
  };
  for (const Malformed& test : cases) {
    TestClient client = server.client();
    client.send(test.text);
    const Reply reply = client.read();
    EXPECT_EQ(reply.status, test.status) << test.what << "\n" << reply.head;
    EXPECT_EQ(reply.field("content-type"), "application/problem+json") << test.what;
    EXPECT_TRUE(client.is_closed()) << test.what;
  }
}

TEST(Connection, GoesOnAfterAProblemOfTheRequestItself) {
  const TestServer server;
  TestClient client = server.client();
  EXPECT_EQ(client.request("POST", "/api/execute", "{").status, 400);
  EXPECT_EQ(client.request("POST", "/api/nothing", "{}").status, 404);
  EXPECT_EQ(client.request("PUT", "/api/execute", "{}").status, 405);
  EXPECT_EQ(client.request("POST", "/api/execute", "{}", "Content-Type: text/plain\r\n").status, 415);
  EXPECT_EQ(client.request("GET", "/livez").status, 200);
}

TEST(Connection, PathsAreTakenLiterally) {
  const TestServer server;
  for (const char* path : {"/../etc/passwd", "/assets/../../etc/passwd", "/%2e%2e/etc/passwd.txt", "/livez/", "//livez",
                           "/api/%00", "/api/jobs/%2F", "/api/jobs/a%zz", "/index.html%00.js"}) {
    const Reply reply = server.get(path);
    EXPECT_TRUE(reply.status == 404 || reply.body.find("root:") == std::string::npos) << path;
    EXPECT_NE(reply.status, 500) << path;
  }
  EXPECT_EQ(server.get("http://localhost/livez").status, 200);
  EXPECT_EQ(server.get("/livez?a=b#c").status, 200);
}

TEST(Connection, EveryAnswerHasARequestIdAndTheSecurityFields) {
  const TestServer server;
  const Reply given = server.get("/livez", "X-Request-Id: my-id.7\r\ntraceparent: 00-abc-def-01\r\n");
  EXPECT_EQ(given.field("x-request-id"), "my-id.7");
  EXPECT_EQ(given.field("traceparent"), "00-abc-def-01");
  const Reply made = server.get("/nothing.txt", "X-Request-Id: no spaces\r\n");
  EXPECT_EQ(made.field("x-request-id").size(), 16u);
  EXPECT_EQ(at(made.json(), "request_id").as_string(), made.field("x-request-id"));
  EXPECT_EQ(made.field("x-content-type-options"), "nosniff");
  EXPECT_NE(made.field("content-security-policy").find("default-src 'self'"), std::string::npos);
  EXPECT_EQ(made.field("content-security-policy").find("unsafe"), std::string::npos);
  EXPECT_EQ(made.field("access-control-allow-origin"), "");
  EXPECT_EQ(made.field("cache-control"), "no-store");
}

TEST(Connection, OtherSitesPagesAreRefused) {
  const TestServer server;
  const std::string body = R"({"operation":"neg","inputs":[{"value":4}]})";
  EXPECT_EQ(server.post("/api/execute", body, "Origin: http://evil.example\r\n").status, 403);
  EXPECT_EQ(server.post("/api/execute", body, "Origin: null\r\n").status, 403);
  EXPECT_EQ(server.post("/api/execute", body, "Sec-Fetch-Site: cross-site\r\n").status, 403);
  EXPECT_EQ(server.post("/api/execute", body, "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n").status, 200);
  // A name of somebody else's that was made to point here.
  TestClient rebound = server.client();
  rebound.send("GET /api/devices HTTP/1.1\r\nHost: evil.example:8080\r\n\r\n");
  EXPECT_EQ(rebound.read().status, 403);
}

TEST(Connection, SlowHeadersAndBodiesEndWith408) {
  ServerOptions options;
  options.header_timeout = options.body_timeout = milliseconds(300);
  const TestServer server(options);
  TestClient header = server.client(), body = server.client();
  header.send("GET /livez HTTP/1.1\r\nHost: loc");
  body.send("POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_EQ(header.read().status, 408);
  EXPECT_EQ(body.read().status, 408);
  EXPECT_TRUE(header.is_closed());
}

TEST(Connection, IdleConnectionsAreClosedQuietly) {
  ServerOptions options;
  options.idle_timeout = milliseconds(300);
  const TestServer server(options);
  TestClient client = server.client();
  EXPECT_EQ(client.request("GET", "/livez").status, 200);
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(client.buffer(), "");
}

TEST(Connection, AConnectionThatNeverSendsAByteIsClosedBeforeAnIdleOne) {
  ServerOptions options;
  options.header_timeout = milliseconds(300);
  options.idle_timeout = std::chrono::hours(1);
  const TestServer server(options);
  TestClient silent = server.client(), idle = server.client();
  EXPECT_EQ(idle.request("GET", "/livez").status, 200);
  EXPECT_TRUE(silent.is_closed());
  EXPECT_EQ(silent.buffer(), "");
  EXPECT_EQ(idle.request("GET", "/livez").status, 200) << "one that has asked may stay";
}

TEST(Connection, ManySlowClientsDelayNobody) {
  const TestServer server;
  std::vector<TestClient> slow;
  for (int i = 0; i < 200; ++i) {
    slow.push_back(server.client());
    slow.back().send("GET /livez HTTP/1.1\r\nX: ");
  }
  TestClient quick = server.client();
  for (int i = 0; i < 20; ++i) {
    for (TestClient& client : slow) client.send("a");
    EXPECT_EQ(quick.request("POST", "/api/execute", R"({"operation":"neg","inputs":[{"value":4}]})").status, 200);
  }
}

TEST(Connection, BeyondTheLimitConnectionsGet503) {
  ServerOptions options;
  options.max_connections = options.max_connections_of_address = 3;
  const TestServer server(options);
  std::vector<TestClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(server.client());
    EXPECT_EQ(clients.back().request("GET", "/livez").status, 200);
  }
  TestClient fourth = server.client();
  const Reply reply = fourth.read();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.field("retry-after"), "1");
  EXPECT_EQ(clients[0].request("GET", "/livez").status, 200);
}

TEST(Connection, ASlowReaderDelaysNobody) {
  const TestServer server;
  // A result that does not fit into any socket buffer, and nobody who reads it.
  TestClient slow = server.client();
  const std::string body = R"({"operation":"neg","inputs":[{"value":1,"shape":[4194304]}],"output":"npy","compare":false})";
  slow.send("POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body);
  ASSERT_TRUE(slow.fill());
  EXPECT_EQ(server.get("/livez").status, 200);
  EXPECT_EQ(server.post("/api/execute", R"({"operation":"neg","inputs":[{"value":4}]})").status, 200);
  const Reply whole = slow.read();
  EXPECT_EQ(whole.body.size(), 4194304u * 4 + 128);
}

TEST(Connection, EveryAnswerSaysWhatIsLeftOfTheLimit) {
  ServerOptions options;
  options.rate_limit = 50;
  const TestServer server(options);
  TestClient client = server.client();
  for (const char* path : {"/livez", "/api/devices", "/nothing"}) {
    const Reply reply = client.request("GET", path);
    EXPECT_EQ(reply.field("ratelimit-policy"), R"("address";q=50;w=1)") << path;
    EXPECT_TRUE(reply.field("ratelimit").starts_with(R"("address";r=)")) << path << ": " << reply.head;
    EXPECT_NE(reply.field("ratelimit").find(";t="), std::string::npos) << path << ": " << reply.head;
  }
  EXPECT_EQ(TestServer().get("/livez").field("ratelimit"), "") << "loopback has no limit unless one is set";
}

TEST(Connection, ManyRequestsFromOneAddressAreLimited) {
  ServerOptions options;
  options.rate_limit = 0.5;
  const TestServer server(options);
  TestClient client = server.client();
  Reply reply;
  for (int i = 0; i < 12 && reply.status != 429; ++i) reply = client.request("GET", "/livez");
  EXPECT_EQ(reply.status, 429);
  EXPECT_GE(std::atoi(reply.field("retry-after").c_str()), 1);
  EXPECT_NE(reply.field("ratelimit-policy"), "");
}

}  // namespace
}  // namespace tenon::server
