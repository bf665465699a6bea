// The tier in which ops ran, over HTTP. TTNN is the stand-in of its tests.
#include "backends/ttnn/ttnn_testing.h"
#include "server/http_client.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

TEST(Tier, IsInTheAnswerWithTheOpsOfEach) {
  TENON_NEEDS_NUMPY();
  const test::TemporaryFolder folder;
  const std::string library = folder.write("libttsim.so", "");
  folder.write("soc_descriptor.yaml", "arch_name: BLACKHOLE\n");
  const ttnn::StandIn stand_in("auto");
  const ttnn::Variable simulator("TT_METAL_SIMULATOR", library), python("TENON_TTNN_PYTHON", TENON_TEST_PYTHON);
  TestServer server;
  const auto run = [&](const char* expression) {
    const Reply reply = server.post(
        "/api/execute", std::string(R"({"expression":")") + expression + R"(","dtype":"bfloat16","device":"ttsim:0"})");
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  };
  const json::value fast = run("exp(full([4], 0.0))");
  EXPECT_EQ(at(at(fast, "device"), "tier"), "fast") << json::serialize(fast);
  EXPECT_EQ(at(at(fast, "device"), "architecture"), "blackhole");
  const json::value mixed = run("sort(exp(full([4], 0.0)))");
  EXPECT_EQ(at(at(mixed, "device"), "tier"), "mixed") << json::serialize(mixed);
  EXPECT_EQ(json::serialize(at(at(at(mixed, "device"), "tiers"), "fast")), R"(["exp"])");
  EXPECT_EQ(json::serialize(at(at(at(mixed, "device"), "tiers"), "exact")), R"(["arg_sort","gather"])");
}

}  // namespace
}  // namespace tenon::server
