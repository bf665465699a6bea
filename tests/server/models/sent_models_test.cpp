// Models that clients send: what they take is their sender's, counted before it is taken.
#include <fmt/format.h>

#include "eventually.h"
#include "server/http_client.h"
#include "server/models/models.h"

namespace tenon::server {
namespace {

using namespace test_models;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr const char* kFile = "Content-Type: application/octet-stream\r\n";

ServerOptions with_memory(std::size_t bytes, std::size_t of_client) {
  ServerOptions options;
  options.max_memory = bytes;
  options.max_client_memory = of_client;
  return options;
}

double used_memory(const TestServer& server) {
  const std::string text = server.get("/metrics").body;
  constexpr std::string_view kName = "\ntenon_request_memory_used_bytes ";
  return std::stod(text.substr(text.find(kName) + kName.size()));
}

// 2,000 constants of 64 Ki elements in a file of less than 200 KB, all of them known while it is imported.
std::string folding_bomb() {
  std::vector<Message> nodes;
  std::vector<std::string> names{"x"};
  for (int i = 0; i < 2000; ++i) {
    names.push_back(fmt::format("c{}", i));
    nodes.push_back(node("ConstantOfShape", {"shape"}, {names.back()}));
  }
  nodes.push_back(node("Sum", names, {"y"}));
  return model_of(graph_of(nodes, {named_value("x", kFloat, {65536})}, {named_value("y", kFloat, {65536})},
                           {tensor<std::int64_t>("shape", kInt64, {1}, {65536})}))
      .str();
}

// 300,000 nodes of five bytes.
std::string node_bomb() {
  return model_of(graph_of(std::vector<Message>(300'000, Message().text(4, "A")), {named_value("x", kFloat, {1})},
                           {named_value("x", kFloat, {1})}))
      .str();
}

std::string weights_of(std::size_t bytes) {
  return model_of(
             graph_of({node("Add", {"x", "w"}, {"y"})}, {named_value("x", kFloat, {1})}, {named_value("y", kFloat, {"n"})},
                      {tensor<float>("w", kFloat, {static_cast<std::int64_t>(bytes / 4)}, std::vector<float>(bytes / 4, 1))}))
      .str();
}

TEST(SentModels, AreCountedForTheirSenderUntilTheyAreDeleted) {
  const TestServer server(with_memory(512 * kMiB, 128 * kMiB));
  const double before = used_memory(server);
  const Reply sent = server.post("/api/models", weights_of(8 * kMiB), kFile);
  ASSERT_EQ(sent.status, 201) << sent.body;
  // The body, its copy and the weights.
  EXPECT_GE(used_memory(server) - before, 3.0 * 8 * kMiB);
  // A second one would not fit even if the first left its place.
  const Reply refused = server.post("/api/models", weights_of(70 * kMiB), kFile);
  EXPECT_TRUE(refused.status == 413 || refused.status == 429) << refused.status;
  EXPECT_EQ(server.client().request("DELETE", std::string(sent.field("location"))).status, 204);
  EXPECT_TRUE(test::eventually(std::chrono::seconds(60), [&] { return used_memory(server) <= before; }));
}

TEST(SentModels, AShortFileOfLargeConstantsIsRefused) {
  const TestServer server(with_memory(256 * kMiB, 64 * kMiB));
  const std::string bomb = folding_bomb();
  ASSERT_LT(bomb.size(), 200'000u);
  const std::size_t before = resident_bytes();
  const Reply sent = server.post("/api/models", bomb, kFile);
  // It is loaded, but never imported: neither the batch probe nor a request may take so much.
  EXPECT_LT(resident_bytes(), before + 128 * kMiB);
  if (sent.status != 201) return;
  const std::string name(at(sent.json(), "model", "name").as_string());
  EXPECT_TRUE(at(sent.json(), "route").is_null());
  std::string zeros = "0";
  for (int i = 1; i < 65536; ++i) zeros += ",0";
  const Reply run =
      server.post("/v2/models/" + name + "/infer",
                  fmt::format(R"({{"inputs":[{{"name":"x","shape":[65536],"datatype":"FP32","data":[{}]}}]}})", zeros));
  EXPECT_TRUE(run.status == 413 || run.status == 429) << run.status << run.body.substr(0, 300);
  EXPECT_LT(resident_bytes(), before + 128 * kMiB);
}

TEST(SentModels, NodesAreCountedWhileTheyAreParsed) {
  const TestServer server(with_memory(256 * kMiB, 64 * kMiB));
  const Reply sent = server.post("/api/models", node_bomb(), kFile);
  EXPECT_TRUE(sent.status == 413 || sent.status == 429) << sent.status << sent.body;
}

TEST(SentModels, TooManyAreRefusedBeforeAnythingIsLoaded) {
  const TestServer server;
  for (int i = 0; i < 8; ++i) ASSERT_EQ(server.post("/api/models", linear_model(), kFile).status, 201);
  EXPECT_EQ(server.post("/api/models", "no model at all", kFile).status, 429);
  EXPECT_EQ(server.client("127.0.0.2").request("POST", "/api/models", "no model at all", kFile).status, 400);
}

TEST(SentModels, NeverTakeThePlaceOfTheOperatorsModels) {
  const TestDirectory folder;
  constexpr int kModels = 12;
  for (int i = 0; i < kModels; ++i) write_file(folder.path() / fmt::format("m{}.onnx", i), linear_model());
  ServerOptions options = with_memory(128 * kMiB, 128 * kMiB);
  options.model_folder = folder.path();
  const TestServer server(options);
  for (int i = 0; i < kModels; ++i) ASSERT_EQ(server.post(fmt::format("/v2/repository/models/m{}/load", i), "{}").status, 200);
  const Reply sent = server.post("/api/models", weights_of(16 * kMiB), kFile);
  EXPECT_EQ(sent.status, 503) << sent.body;
  const boost::json::value models = server.get("/api/models").json();
  for (const boost::json::value& each : at(models, "models").as_array())
    EXPECT_EQ(at(each, "state"), "ready") << at(each, "name");
}

TEST(SentModels, AShapeThatDependsOnTheDataIsCheckedBeforeItIsComputed) {
  const TestServer server(with_memory(256 * kMiB, 64 * kMiB));
  // y = zeros(x): four gigabytes for a request of a few bytes.
  const std::string model = model_of(graph_of({node("ConstantOfShape", {"x"}, {"y"})}, {named_value("x", kInt64, {1})},
                                              {named_value("y", kFloat, {"n"})}))
                                .str();
  const Reply sent = server.post("/api/models", model, kFile);
  ASSERT_EQ(sent.status, 201) << sent.body;
  const std::string name(at(sent.json(), "model", "name").as_string());
  const auto ask = [&](const char* extent) {
    return server
        .post("/v2/models/" + name + "/infer",
              fmt::format(R"({{"inputs":[{{"name":"x","shape":[1],"datatype":"INT64","data":[{}]}}]}})", extent))
        .status;
  };
  EXPECT_EQ(ask("5"), 200);
  const std::size_t before = resident_bytes();
  EXPECT_EQ(ask("1000000000"), 413);
  EXPECT_LT(resident_bytes(), before + 64 * kMiB);
}

}  // namespace
}  // namespace tenon::server
