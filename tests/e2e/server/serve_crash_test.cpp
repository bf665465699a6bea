// A server that is killed while it works: what the next one finds.
#include <atomic>
#include <boost/json.hpp>
#include <latch>
#include <string_view>
#include <thread>

#include "e2e/server/serve.h"
#include "eventually.h"

namespace tenon::testing {
namespace {

namespace json = boost::json;

const std::vector<std::string> kDevice{"--sim", "wormhole,id=sim:0,open=5ms,close=5ms"};

class KilledServer : public Serve {
 protected:
  static constexpr int kClients = 8;

  // Clients that compute without a pause until the server is gone, and how many answers they got.
  struct Load {
    std::atomic<int> answers{0};
    std::vector<std::jthread> clients;
  };
  static void put_under_load(Load& load, std::uint16_t port) {
    auto first_answers = std::make_shared<std::latch>(kClients);
    for (int i = 0; i < kClients; ++i)
      load.clients.emplace_back([&load, port, first_answers] {
        for (bool is_first = true;; is_first = false) {
          const bool is_answered = compute(port, "sim:0").starts_with("HTTP/1.1 200");
          if (is_first) first_answers->count_down();
          if (!is_answered) return;
          ++load.answers;
        }
      });
    first_answers->wait();
  }
  json::value cost() {
    const auto program = command({TENON_PROGRAM, "cost", "--json"});
    const std::string text = program->all_out();
    return program->exit_status() == 0 ? json::parse(text) : json::value();
  }
  static int recorded_runs(const json::value& sums, std::string_view key) {
    for (const json::value& sum : sums.as_array())
      if (sum.at(key) == "sim:0") return sum.at("runs").to_number<int>();
    return 0;
  }
  json::object ledger_check() {
    const auto program = command({TENON_PROGRAM, "doctor", "--json", "--device", "cpu:0"});
    const json::value report = json::parse(program->all_out());
    for (const json::value& check : report.at("checks").as_array())
      if (check.at("id") == "host.ledger") return check.as_object();
    return {};
  }
};

TEST_F(KilledServer, LeavesNoDeviceLockedAndTheLedgerIntact) {
  if (cost().is_null()) GTEST_SKIP() << "this build has no SQLite";
  int answers = 0;
  // Each time at another moment of the work, and of the ledger's writing.
  constexpr int kKills = 4;
  for (int round = 0; round < kKills; ++round) {
    const auto server = start(kDevice);
    const std::uint16_t port = port_of(*server);

    // The device is free for whoever asks first: nobody holds it, nobody is ahead.
    const json::value before = json::parse(body_of(get(port, "/api/device/status?device=sim:0")));
    EXPECT_TRUE(before.at("device").at("status").at("users").as_array().empty()) << before;
    const std::string answer = compute(port, "sim:0");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
    ++answers;
    // After a kill it is brought into a known state first.
    const json::value after = json::parse(body_of(get(port, "/api/device/status?device=sim:0")));
    EXPECT_EQ(after.at("device").at("status").at("counters").at("dirty_grants").to_number<int>(), round == 0 ? 0 : 1);

    Load load;
    put_under_load(load, port);
    if (round == 0) {  // until the ledger has something to lose
      EXPECT_TRUE(test::eventually(std::chrono::seconds(60), [&] {
        return recorded_runs(json::parse(body_of(get(port, "/api/ledger"))).at("totals"), "device") > 0;
      }));
    }
    server->send(SIGKILL);
    EXPECT_EQ(server->exit_status(), 128 + SIGKILL);
    load.clients.clear();
    answers += load.answers;

    const json::object check = ledger_check();
    ASSERT_FALSE(check.empty());
    EXPECT_EQ(check.at("verdict"), "PASS") << json::serialize(check);
  }
  const json::value report = cost();
  ASSERT_FALSE(report.is_null());
  const int runs = recorded_runs(report.at("groups"), "device");
  EXPECT_GT(runs, 0) << report;
  // Nothing is counted that nobody asked for; what was computed and not answered may be.
  EXPECT_LE(runs, answers + kKills * kClients) << report;
}

TEST_F(KilledServer, HandsTheDeviceToAnotherProcessThatWaits) {
  const auto server = start(kDevice);
  const std::uint16_t port = port_of(*server);
  Load load;
  put_under_load(load, port);
  const auto other = command({TENON_PROGRAM, "run", "2 * 21", "--sim", kDevice[1], "--device", "sim:0", "--timeout", "60"});
  server->send(SIGKILL);
  EXPECT_NE(other->all_out().find("42"), std::string::npos);
  EXPECT_EQ(other->exit_status(), 0) << other->all_err();
}

}  // namespace
}  // namespace tenon::testing
