// The command and the server say the same of the same thing.
#include <boost/json.hpp>

#include "e2e/server/serve.h"

namespace tenon::testing {
namespace {

namespace json = boost::json;

class SameDescription : public Serve {
 protected:
  json::object printed(std::vector<std::string> words) {
    words.insert(words.begin(), TENON_PROGRAM);
    words.insert(words.end(), {"--json", "--sim", kCard});
    const auto program = command(words);
    const std::string text = program->all_out();
    EXPECT_EQ(program->exit_status(), 0) << text;
    return json::parse(text).as_object();
  }
  json::object served(std::uint16_t port, const std::string& path, const std::string& body = {}) {
    return json::parse(body_of(body.empty() ? get(port, path) : post(port, path, body))).as_object();
  }
  // What differs from one look to the next.
  static json::object steady(const json::value& device) {
    json::object kept = device.as_object();
    for (const char* key : {"memory_free_bytes", "power_watts", "temperature_celsius", "holders", "status"}) kept.erase(key);
    kept["details"].as_object().erase("load");
    return kept;
  }
  static std::vector<std::string> keys(const json::value& object) {
    std::vector<std::string> names;
    for (const auto& member : object.as_object()) names.emplace_back(member.key());
    return names;
  }

  static constexpr const char* kCard = "gpu,open=0,close=0";
};

TEST_F(SameDescription, OfEveryDevice) {
  const auto server = start({"--sim", kCard});
  const json::array over_http = served(port_of(*server), "/api/devices").at("devices").as_array();
  const json::array by_command = printed({"devices"}).at("devices").as_array();
  ASSERT_EQ(by_command.size(), over_http.size());
  ASSERT_GE(by_command.size(), 2U);
  for (std::size_t i = 0; i < by_command.size(); ++i) {
    EXPECT_EQ(steady(by_command[i]), steady(over_http[i]));
    std::vector<std::string> with_status = keys(by_command[i]);
    with_status.emplace_back("status");
    EXPECT_EQ(with_status, keys(over_http[i]));
  }
}

TEST_F(SameDescription, OfAResultItsDeviceItsStagesAndTheRoute) {
  const auto server = start({"--sim", kCard});
  const json::object over_http =
      served(port_of(*server), "/api/execute",
             R"({"expression":"x / 3","inputs":{"x":{"value":[1,2.5]}},"output":"full","device":"sim:0"})");
  const json::object by_command = printed({"run", "x / 3", "x=[1, 2.5]", "--device", "sim:0", "--explain", "--compare"});
  const json::value& result = over_http.at("results").at(0);
  for (const char* key : {"shape", "dtype", "elements", "bytes", "values"}) EXPECT_EQ(by_command.at(key), result.at(key)) << key;
  json::object comparison = by_command.at("comparison").as_object(), other = result.at("comparison").as_object();
  comparison.erase("reference_seconds");
  other.erase("reference_seconds");
  EXPECT_EQ(comparison, other);
  EXPECT_EQ(by_command.at("device"), over_http.at("device"));
  EXPECT_EQ(keys(by_command.at("timeline").at(0)), keys(over_http.at("timeline").at(0)));

  const json::object route = by_command.at("route").as_object(), served_route = over_http.at("route").as_object();
  EXPECT_EQ(keys(route), keys(served_route));
  for (const char* key : {"requested", "device", "reason", "warning"}) EXPECT_EQ(route.at(key), served_route.at(key)) << key;
  const json::array &considered = route.at("considered").as_array(), &others = served_route.at("considered").as_array();
  ASSERT_EQ(considered.size(), others.size());
  for (std::size_t i = 0; i < considered.size(); ++i) {
    EXPECT_EQ(keys(considered[i]), keys(others[i]));
    for (const char* key : {"device", "eligible", "remark"}) EXPECT_EQ(considered[i].at(key), others[i].at(key)) << key;
  }
}

TEST_F(SameDescription, OfAnOp) {
  const auto server = start({"--sim", kCard});
  const json::array over_http = served(port_of(*server), "/api/catalogue").at("operations").as_array();
  const json::array by_command = printed({"ops"}).at("ops").as_array();
  EXPECT_EQ(by_command, over_http);
}

TEST_F(SameDescription, OfWhatDevicesCost) {
  const auto server = start({"--sim", kCard});
  const std::uint16_t port = port_of(*server);
  EXPECT_TRUE(compute(port, "sim:0").starts_with("HTTP/1.1 200"));
  server->send(SIGTERM);
  ASSERT_EQ(server->exit_status(), 0);
  const json::object by_command = printed({"cost"});
  const auto again = start({"--sim", kCard});
  const json::object over_http = served(port_of(*again), "/api/ledger");
  if (!over_http.at("enabled").as_bool()) GTEST_SKIP() << "this build has no SQLite";
  ASSERT_EQ(by_command.at("groups").as_array().size(), 1U) << by_command;
  EXPECT_EQ(keys(by_command.at("groups").at(0)), keys(over_http.at("totals").at(0)));
  EXPECT_EQ(by_command.at("groups").at(0).at("device"), "sim:0");
}

}  // namespace
}  // namespace tenon::testing
