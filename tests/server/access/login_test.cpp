// Who may: passwords, tokens, sessions, and the lock after too many failures.
#include "server/access/accounts.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/log.h"
#include "server/http/problem.h"
#include "server/http_client.h"

namespace tenon::server {
namespace {

namespace json = boost::json;
using std::chrono::seconds;

const std::string& hash() {
  static const std::string line = hash_password("correct horse");
  return line;
}

std::string cookie_of(const Reply& reply, const std::string& name) {
  const std::size_t at = reply.head.find("Set-Cookie: " + name + "=");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + 12;
  return reply.head.substr(begin, reply.head.find(';', begin) - begin);
}

class Login : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_passwords()) GTEST_SKIP() << "this build has no libsodium";
    ServerOptions options;
    options.password_file = files_.write("passwords", "# people\nadmin:" + hash() + "\nada:" + hash() + "\n");
    options.token_file = files_.write("tokens", "robot:0123456789abcdef0123\n");
    server_ = std::make_unique<TestServer>(options);
  }
  Reply login(const std::string& password, const std::string& account = "admin", std::string_view fields = {}) {
    return server_->post("/login", json::serialize(json::object{{"password", password}, {"account", account}}), fields);
  }
  TestDirectory files_;
  std::unique_ptr<TestServer> server_;
};

TEST_F(Login, WithoutOneThereIsNothingButTheDoor) {
  for (const char* path :
       {"/api/devices", "/api/catalogue", "/metrics", "/openapi.json", "/v2", "/api/events", "/api/jobs/j_1", "/api/nothing"}) {
    const Reply reply = server_->get(path);
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_EQ(reply.field("content-type"), "application/problem+json") << path;
  }
  EXPECT_EQ(server_->post("/api/execute", "{}").status, 401);
  for (const char* path : {"/livez", "/readyz", "/", "/login", "/api/session", "/v2/health/live"})
    EXPECT_EQ(server_->get(path).status, 200) << path;
  const json::value session = server_->get("/api/session").json();
  EXPECT_EQ(at(session, "required"), true);
  EXPECT_EQ(at(session, "authenticated"), false);
}

TEST_F(Login, APasswordOpensASessionUntilLogout) {
  const Reply reply = login("correct horse");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.head.find("HttpOnly; SameSite=Strict"), std::string::npos);
  const std::string fields = "Cookie: other=1; " + cookie_of(reply, "tenon_session") + "\r\n";
  EXPECT_EQ(server_->get("/api/devices", fields).status, 200);
  EXPECT_EQ(at(server_->get("/api/session", fields).json(), "account"), "admin");
  EXPECT_EQ(server_->post("/api/session", "", fields).status, 200);
  EXPECT_EQ(server_->post("/logout", "", fields).status, 200);
  EXPECT_EQ(server_->get("/api/devices", fields).status, 401);
}

TEST_F(Login, AFormWorksToo) {
  const Reply reply =
      server_->post("/login", "account=ada&password=correct+horse", "Content-Type: application/x-www-form-urlencoded\r\n");
  EXPECT_EQ(reply.status, 303);
  EXPECT_EQ(reply.field("location"), "/");
  EXPECT_NE(cookie_of(reply, "tenon_session"), "");
}

TEST_F(Login, TokensWorkAndWrongOnesDoNot) {
  EXPECT_EQ(server_->get("/api/devices", "Authorization: Bearer 0123456789abcdef0123\r\n").status, 200);
  EXPECT_EQ(server_->get("/api/devices", "Authorization: bearer 0123456789abcdef0123\r\n").status, 200);
  for (const char* wrong : {"Bearer 0123456789abcdef0124", "Bearer ", "Basic 0123456789abcdef0123", "0123456789abcdef0123"})
    EXPECT_EQ(server_->get("/api/devices", std::string("Authorization: ") + wrong + "\r\n").status, 401) << wrong;
  EXPECT_EQ(server_->get("/api/devices", "Cookie: tenon_session=0123456789abcdef0123\r\n").status, 401);
}

TEST_F(Login, FiveFailuresLockThisAccountAndNoOther) {
  const Reply known = login("correct horse", "ada");  // this browser has logged in before
  for (int i = 4; i >= 0; --i) {
    const Reply reply = login("wrong", "ada");
    EXPECT_EQ(reply.status, 401);
    EXPECT_EQ(at(reply.json(), "remaining_attempts"), i);
  }
  const Reply locked = login("correct horse", "ada");
  EXPECT_EQ(locked.status, 429);
  EXPECT_GT(std::atoi(locked.field("retry-after").c_str()), 600);
  EXPECT_GT(at(server_->get("/api/session?account=ada").json(), "locked_for_seconds").to_number<double>(), 600);
  // Another account from the same address, and the same account from a browser it knows, get in.
  EXPECT_EQ(login("correct horse", "admin").status, 200);
  EXPECT_EQ(login("correct horse", "ada", "Cookie: " + cookie_of(known, "tenon_client") + "\r\n").status, 200);
}

TEST_F(Login, FailuresAreLoggedWithAccountAndAddress) {
  const logging::Capture lines;
  EXPECT_EQ(login("wrong", "ada\x1b[2J").status, 401);
  EXPECT_EQ(login("correct horse").status, 200);
  EXPECT_TRUE(lines.has("failed login of account 'ada?[2J' from 127.0.0.1"));
  EXPECT_FALSE(lines.has("'admin'"));
  EXPECT_FALSE(lines.has("wrong")) << "never the password";
}

TEST_F(Login, AnHonestOneWorksDuringAFlood) {
  std::atomic<bool> is_over = false;
  std::vector<std::jthread> flood;
  for (int i = 0; i < 24; ++i)
    flood.emplace_back([&, i] {
      const std::string from = "127.0.3." + std::to_string(1 + i % 4);
      for (int n = 0; !is_over; ++n) try {
          TestClient client(server_->port(), from.c_str());
          client.request("POST", "/login",
                         json::serialize(json::object{{"password", "guess"}, {"account", "a" + std::to_string(i * 1000 + n)}}));
        } catch (const std::exception&) {
          // The flood's own troubles.
        }
    });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(login("correct horse").status, 200);
  is_over = true;
}

TEST_F(Login, CookiesAreSecureBehindAProxyThatSpeaksTls) {
  EXPECT_EQ(login("correct horse", "admin", "X-Forwarded-Proto: https\r\n").head.find("; Secure"), std::string::npos)
      << "anybody may claim that; the cookie would never come back over plain HTTP";
  ServerOptions options;
  options.password_file = files_.write("more", "admin:" + hash() + "\n");
  options.trusted_proxy = "127.0.0.1";
  const TestServer behind(options);
  const std::string body = R"({"password":"correct horse"})";
  EXPECT_NE(behind.post("/login", body, "X-Forwarded-Proto: https\r\n").head.find("; Secure"), std::string::npos);
  EXPECT_EQ(behind.post("/login", body, "X-Forwarded-Proto: http\r\n").head.find("; Secure"), std::string::npos);
}

TEST_F(Login, OtherSitesCannotLogIn) {
  EXPECT_EQ(login("correct horse", "admin", "Origin: http://evil.example\r\n").status, 403);
}

TEST(Accounts, CountByAccountAndAddressAndForgetAfterAWhile) {
  if (!has_passwords()) GTEST_SKIP() << "this build has no libsodium";
  const TestDirectory files;
  auto now = std::chrono::steady_clock::now();
  Accounts accounts({.password_file = files.write("passwords", hash()), .idle = seconds(100), .total = seconds(250), .now = [&] {
                       return now;
                     }});
  Request request;
  const auto status = [&](const char* password, const char* address) {
    try {
      accounts.login("admin", password, address, request);
      return 200;
    } catch (const Problem& problem) {
      return problem.status();
    }
  };
  for (int i = 0; i < 5; ++i) EXPECT_EQ(status("wrong", "10.0.0.1"), 401);
  EXPECT_EQ(status("correct horse", "10.0.0.1"), 429);
  EXPECT_EQ(status("correct horse", "10.0.0.2"), 200);
  now += seconds(899);
  EXPECT_EQ(status("correct horse", "10.0.0.1"), 429);
  now += seconds(2);
  EXPECT_EQ(status("correct horse", "10.0.0.1"), 200);
  // Addresses of one IPv6 network are one.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(status("wrong", ("2001:db8::" + std::to_string(i + 1)).c_str()), 401);
  EXPECT_EQ(status("correct horse", "2001:db8::77"), 429);
  EXPECT_EQ(status("correct horse", "2001:db8:0:1::1"), 200);
}

// Names that do not exist cost a hash each as well: without a count by network, a flood of them keeps everybody out.
TEST(Accounts, AFloodFromOneNetworkLeavesRoomForOthers) {
  if (!has_passwords()) GTEST_SKIP() << "this build has no libsodium";
  const TestDirectory files;
  Accounts accounts({.password_file = files.write("passwords", hash()), .network_attempts = 1'000'000});
  const auto status = [&](const std::string& account, const char* password, const char* address) {
    try {
      accounts.login(account, password, address, {});
      return 200;
    } catch (const Problem& problem) {
      return problem.status();
    }
  };
  std::atomic<bool> is_over = false;
  std::atomic<int> refused = 0;
  std::vector<std::jthread> flood;
  for (int i = 0; i < 24; ++i)
    flood.emplace_back([&, i] {
      for (int n = 0; !is_over; ++n) {
        refused += status("a" + std::to_string(i * 1'000'000 + n), "guess", "10.0.0.1") == 503;
        std::this_thread::yield();
      }
    });
  while (refused < 100) std::this_thread::yield();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status("admin", "correct horse", "10.0.0.2"), 200);
  is_over = true;
}

TEST(Accounts, GuessingUnderManyNamesLocksTheNetworkButNotWhoHasLoggedInBefore) {
  if (!has_passwords()) GTEST_SKIP() << "this build has no libsodium";
  const TestDirectory files;
  auto now = std::chrono::steady_clock::now();
  Accounts accounts({.password_file = files.write("passwords", hash()), .network_attempts = 6, .now = [&] { return now; }});
  const auto status = [&](const std::string& account, const char* password, const char* address, const Request& request = {}) {
    try {
      accounts.login(account, password, address, request);
      return 200;
    } catch (const Problem& problem) {
      return problem.status();
    }
  };
  const std::string cookie = "tenon_client=" + accounts.login("admin", "correct horse", "10.0.0.1", {}).client;
  Request known;
  known.fields.push_back({"Cookie", cookie});
  for (int i = 0; i < 6; ++i) EXPECT_EQ(status("nobody" + std::to_string(i), "wrong", "10.0.0.1"), 401);
  EXPECT_EQ(status("nobody7", "wrong", "10.0.0.1"), 429);
  EXPECT_EQ(status("admin", "correct horse", "10.0.0.1"), 429) << "a stranger from there";
  EXPECT_EQ(status("admin", "correct horse", "10.0.0.1", known), 200);
  EXPECT_EQ(status("admin", "correct horse", "10.0.0.2"), 200);
  now += seconds(901);
  EXPECT_EQ(status("admin", "correct horse", "10.0.0.1"), 200);
}

TEST(Accounts, SessionsEndWhenIdleAndInTheEndAnyway) {
  if (!has_passwords()) GTEST_SKIP() << "this build has no libsodium";
  const TestDirectory files;
  auto now = std::chrono::steady_clock::now();
  Accounts accounts({.password_file = files.write("passwords", hash()), .idle = seconds(100), .total = seconds(250), .now = [&] {
                       return now;
                     }});
  Request request;
  const auto session = [&] {
    const std::string cookie = "tenon_session=" + accounts.login("admin", "correct horse", "10.0.0.1", request).session;
    return cookie;
  };
  const std::string idle = session();
  Request with_idle;
  with_idle.fields = {{"cookie", idle}};
  now += seconds(99);
  EXPECT_TRUE(accounts.account_of(with_idle, false));
  now += seconds(1);
  EXPECT_FALSE(accounts.account_of(with_idle, true)) << "looking did not keep it alive";
  const std::string used = session();
  Request with_used;
  with_used.fields = {{"Cookie", used}};
  for (int i = 0; i < 4; ++i) {
    now += seconds(60);
    EXPECT_TRUE(accounts.account_of(with_used, true)) << i;
  }
  now += seconds(60);
  EXPECT_FALSE(accounts.account_of(with_used, true));
}

TEST(Accounts, FilesMustBePrivateAndRight) {
  const TestDirectory files;
  const auto code = [&](const char* text, int mode = 0600) {
    const std::string file = files.write("tokens", text);
    std::filesystem::permissions(file, static_cast<std::filesystem::perms>(mode));
    try {
      Accounts accounts({.token_file = file});
      return ErrorCode::ok;
    } catch (const Error& error) {
      return error.code();
    }
  };
  EXPECT_EQ(code("robot:0123456789abcdef\n"), ErrorCode::ok);
  EXPECT_EQ(code("robot:0123456789abcdef\n", 0644), ErrorCode::permission_denied);
  EXPECT_EQ(code("robot:short\n"), ErrorCode::invalid_argument);
  EXPECT_EQ(code("# nothing\n"), ErrorCode::invalid_argument);
  EXPECT_THROW(Accounts({.token_file = "/nonexistent/tokens"}), Error);
}

TEST(Accounts, FilesOfOthersOrOfAGroupAreRefused) {
  const TestDirectory files;
  const auto code = [](const std::string& file) {
    try {
      Accounts accounts({.token_file = file});
      return ErrorCode::ok;
    } catch (const Error& error) {
      return error.code();
    }
  };
  const std::string file = files.write("tokens", "robot:0123456789abcdef\n");
  const auto set = [&](int mode) { std::filesystem::permissions(file, static_cast<std::filesystem::perms>(mode)); };
  set(0660);
  EXPECT_EQ(code(file), ErrorCode::permission_denied) << "a group may never write it";
  set(0640);
  // A group may read what root gave it: systemd units and containers do so.
  EXPECT_EQ(code(file), geteuid() == 0 ? ErrorCode::ok : ErrorCode::permission_denied);
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  set(0600);
  ASSERT_EQ(chown(file.c_str(), 61001, 61001), 0);
  EXPECT_EQ(code(file), ErrorCode::permission_denied);
}

TEST(Server, OtherAddressesNeedALogin) {
  DeviceManager manager;
  for (const char* host : {"0.0.0.0", "::", "192.0.2.1"}) {
    try {
      Server server({.host = host, .port = 0}, manager);
      FAIL() << host;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(error.hint().find("--password-file"), std::string::npos);
    }
  }
  EXPECT_NO_THROW(Server({.host = "::1", .port = 0}, manager));
  EXPECT_THROW(Server({.host = "my host", .port = 0}, manager), Error);
}

}  // namespace
}  // namespace tenon::server
