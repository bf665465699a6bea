// Models of a folder over HTTP: the Open Inference Protocol, texts, batches, and what is refused.
#include <fmt/format.h>

#include <cstring>
#include <latch>
#include <thread>

#include "eventually.h"
#include "server/http_client.h"
#include "server/models/models.h"
#include "source_folder.h"
#include "tenon/device/simulated.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

namespace json = boost::json;
using namespace test_models;

class ModelServer {
 public:
  explicit ModelServer(const std::function<void(const std::filesystem::path&)>& fill = {}, Config config = {}) {
    write_file(folder_.path() / "linear.onnx", linear_model());
    write_file(folder_.path() / "scalar.onnx", scalar_model());
    write_file(folder_.path() / "coupled.onnx", batch_dependent_model());
    write_file(folder_.path() / "damaged.onnx", "this is no model");
    write_file(folder_.path() / "words" / "model.onnx", encoder_model());
    write_file(folder_.path() / "words" / "tokenizer.json", kTokenizer);
    if (fill) fill(folder_.path());
    ServerOptions options;
    options.model_folder = folder_.path();
    server_ = std::make_unique<TestServer>(options, config);
  }
  TestServer* operator->() const { return server_.get(); }
  const std::filesystem::path& folder() const { return folder_.path(); }
  json::value model(std::string_view name) const {
    const json::value models = (*this)->get("/api/models").json();
    for (const json::value& each : at(models, "models").as_array())
      if (at(each, "name").as_string() == name) return each;
    return {};
  }

 private:
  TestDirectory folder_;
  std::unique_ptr<TestServer> server_;
};

std::string infer_body(std::string_view name, std::string_view shape, std::string_view data, std::string_view datatype = "FP32") {
  return fmt::format(R"({{"inputs":[{{"name":"{}","shape":{},"datatype":"{}","data":{}}}]}})", name, shape, datatype, data);
}

TEST(Models, TheFixturesForOtherTestsAreWhatThisFileWrites) {
  const auto contents = [](const std::filesystem::path& file) {
    std::ifstream in(source_folder() / "tests/fixtures/models" / file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ(contents("linear.onnx"), linear_model());
  EXPECT_EQ(contents("words/model.onnx"), encoder_model());
  EXPECT_EQ(contents("words/tokenizer.json"), kTokenizer);
}

TEST(Models, AreListedWithoutBeingLoaded) {
  const ModelServer server;
  const json::value index = server->post("/v2/repository/index", "{}").json();
  EXPECT_EQ(at(index, 0, "name"), "coupled");
  EXPECT_EQ(at(index, 0, "state"), "READY");
  EXPECT_EQ(at(server.model("linear"), "state"), "unloaded");
  EXPECT_EQ(server->get("/v2/models/linear/ready").status, 200);
  EXPECT_EQ(server->get("/v2/models/linear/versions/2").status, 404);
  EXPECT_EQ(server->get("/v2/models/unknown/ready").status, 404);
  EXPECT_EQ(at(server->get("/v1/models").json(), "data").as_array().size(), 5u);
  EXPECT_EQ(at(server->get("/v1/models/linear").json(), "id"), "linear");
}

TEST(Models, DescribeThemselvesAndRun) {
  const ModelServer server;
  const json::value metadata = server->get("/v2/models/linear").json();
  EXPECT_EQ(json::serialize(at(metadata, "inputs", 0, "shape")), "[-1,3]");
  EXPECT_EQ(at(metadata, "inputs", 0, "datatype"), "FP32");
  EXPECT_EQ(at(metadata, "parameters", "batched"), true);
  const json::value config = server->get("/v2/models/linear/config").json();
  EXPECT_EQ(at(config, "max_batch_size"), 32);
  EXPECT_EQ(json::serialize(at(config, "input", 0, "dims")), "[3]") << "without the batch axis";
  const Reply reply = server->post("/v2/models/linear/infer", infer_body("x", "[2,3]", "[1,0,0,0,1,0]"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(json::serialize(at(reply.json(), "outputs", 0, "data")), "[1E0,2E0,3E0,4E0]");
  EXPECT_EQ(at(reply.json(), "model_version"), "1");
  EXPECT_EQ(at(reply.json(), "parameters", "device"), "cpu:0");
  const json::value statistics = server->get("/v2/models/linear/stats").json();
  EXPECT_EQ(at(statistics, "model_stats", 0, "inference_count"), 2) << "rows";
  EXPECT_EQ(at(statistics, "model_stats", 0, "execution_count"), 1);
  EXPECT_EQ(at(statistics, "model_stats", 0, "batch_stats", 0, "batch_size"), 2);
}

TEST(Models, TakeAndGiveBinaryTensors) {
  const ModelServer server;
  const std::string header = R"({"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","parameters":{"binary_data_size":12}}],)"
                             R"("outputs":[{"name":"y","parameters":{"binary_data":true}}]})";
  const float values[] = {1, 1, 1};
  std::string tensor(sizeof values, '\0');
  std::memcpy(tensor.data(), values, sizeof values);
  const Reply reply = server->post(
      "/v2/models/linear/versions/1/infer", header + tensor,
      fmt::format("Content-Type: application/octet-stream\r\nInference-Header-Content-Length: {}\r\n", header.size()));
  ASSERT_EQ(reply.status, 200) << reply.body;
  float result[2];
  std::memcpy(result, reply.body.data() + reply.body.size() - sizeof result, sizeof result);
  EXPECT_EQ(result[0], 9);
  EXPECT_EQ(result[1], 12);
}

TEST(Models, OneThatIsDamagedDoesNotConcernTheOthers) {
  const ModelServer server;
  const Reply reply = server->get("/v2/models/damaged");
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(at(server.model("damaged"), "problem").as_string().find("damaged.onnx"), std::string::npos);
  const Reply again = server->post("/v2/models/damaged/infer", infer_body("x", "[1]", "[1]"));
  EXPECT_EQ(again.status, 409);
  EXPECT_NE(at(again.json(), "hint").as_string().find("/load"), std::string::npos);
  EXPECT_EQ(server->get("/v2/models/damaged/ready").status, 409);
  EXPECT_EQ(server->post("/v2/models/linear/infer", infer_body("x", "[1,3]", "[1,1,1]")).status, 200);
  write_file(server.folder() / "damaged.onnx", linear_model());
  EXPECT_EQ(server->post("/v2/repository/models/damaged/load", "").status, 200);
  EXPECT_EQ(server->post("/v2/models/damaged/infer", infer_body("x", "[1,3]", "[1,1,1]")).status, 200);
}

TEST(Models, VersionsAreServedSideBySideAndNewOnesAreFound) {
  const ModelServer server([](const std::filesystem::path& folder) {
    write_file(folder / "net" / "config.pbtxt", "name: \"net\" version_policy: {all {}}");
    write_file(folder / "net" / "1" / "model.onnx", linear_model(1));
    write_file(folder / "net" / "2" / "model.onnx", linear_model(10));
  });
  const auto first_output = [&](std::string_view path) {
    return at(server->post(path, infer_body("x", "[1,3]", "[1,0,0]")).json(), "outputs", 0, "data", 0);
  };
  EXPECT_EQ(first_output("/v2/models/net/versions/1/infer"), 1.0);
  EXPECT_EQ(first_output("/v2/models/net/infer"), 10.0) << "the newest";
  EXPECT_EQ(server->get("/v2/models/net/versions/3/ready").status, 404);
  write_file(server.folder() / "net" / "3" / "model.onnx", linear_model(100));
  EXPECT_EQ(server->post("/v2/repository/models/net/unload", "{}").status, 200);
  EXPECT_EQ(server->post("/v2/repository/models/net/load", "{}").status, 200);
  EXPECT_EQ(first_output("/v2/models/net/infer"), 100.0);
}

TEST(Models, UnloadedOnesRunOnlyAfterALoad) {
  const ModelServer server;
  EXPECT_EQ(server->post("/v2/repository/models/linear/load", "").status, 200);
  EXPECT_EQ(at(server.model("linear"), "state"), "ready");
  EXPECT_GT(at(server.model("linear"), "resident_bytes").as_int64(), 0);
  EXPECT_EQ(server->post("/v2/repository/models/linear/unload", R"({"parameters":{"unload_dependents":false}})").status, 200);
  EXPECT_EQ(at(server.model("linear"), "resident_bytes"), 0);
  const Reply refused = server->post("/v2/models/linear/infer", infer_body("x", "[1,3]", "[1,1,1]"));
  EXPECT_EQ(refused.status, 409) << refused.body;
  EXPECT_EQ(server->get("/v2/models/linear/ready").status, 409);
  EXPECT_EQ(server->post("/v2/repository/models/linear/load", "").status, 200);
  EXPECT_EQ(server->post("/v2/models/linear/infer", infer_body("x", "[1,3]", "[1,1,1]")).status, 200);
  EXPECT_EQ(server->post("/v2/repository/models/nothing/load", "").status, 404);
  EXPECT_EQ(server->post("/v2/repository/models/op.add/unload", "").status, 409);
  EXPECT_EQ(server->post("/v2/repository/models/linear/load", R"({"parameters":{"file:1/model.onnx":"AAAA"}})").status, 400);
}

TEST(Models, IdleOnesLeaveMemory) {
  const ModelServer server([](const std::filesystem::path& folder) {
    write_file(folder / "brief" / "config.pbtxt", R"(parameters { key: "keep_seconds" value { string_value: "0" } })");
    write_file(folder / "brief" / "1" / "model.onnx", linear_model());
  });
  EXPECT_EQ(server->post("/v2/models/brief/infer", infer_body("x", "[1,3]", "[1,1,1]")).status, 200);
  EXPECT_TRUE(test::eventually(std::chrono::seconds(60), [&] { return at(server.model("brief"), "state") == "unloaded"; }));
  EXPECT_EQ(server->post("/v2/models/brief/infer", infer_body("x", "[1,3]", "[1,1,1]")).status, 200) << "loaded again";
}

TEST(Models, WhoNeedsMemoryTakesItFromIdleModels) {
  TestDirectory folder;
  std::vector<float> weights(3 << 20, 1.0f);  // 12 MiB
  const std::string large =
      model_of(graph_of({node("Add", {"x", "w"}, {"y"})}, {named_value("x", kFloat, {1, 1})},
                        {named_value("y", kFloat, {1024, 3072})}, {tensor<float>("w", kFloat, {1024, 3072}, weights)}))
          .str();
  for (const char* name : {"one", "two", "three"}) write_file(folder.path() / (std::string(name) + ".onnx"), large);
  ServerOptions options;
  options.model_folder = folder.path();
  options.max_memory = 56 << 20;
  const TestServer server(options);
  const auto load = [&](const char* name) { return server.post(fmt::format("/v2/repository/models/{}/load", name), "").status; };
  EXPECT_EQ(load("one"), 200);
  EXPECT_EQ(load("two"), 200);
  EXPECT_EQ(load("three"), 200);
  const json::value models = server.get("/api/models").json();
  int resident = 0;
  for (const json::value& model : at(models, "models").as_array()) resident += at(model, "resident_bytes").as_int64() > 0;
  EXPECT_EQ(resident, 2) << "the one that was idle for longest made room";
}

TEST(Models, AreBatchedOnlyWhereTheBitsStayTheSame) {
  const ModelServer server;
  for (const char* name : {"linear", "coupled", "scalar", "words"})
    EXPECT_EQ(server->post(fmt::format("/v2/repository/models/{}/load", name), "").status, 200) << name;
  EXPECT_EQ(at(server.model("linear"), "batched"), true);
  EXPECT_EQ(at(server.model("words"), "batched"), true);
  EXPECT_EQ(at(server.model("words"), "padded"), true);
  EXPECT_EQ(at(server.model("coupled"), "batched"), false);
  EXPECT_NE(at(server.model("coupled"), "batching").as_string().find("differ"), std::string::npos);
  EXPECT_EQ(at(server.model("scalar"), "batched"), false);
  EXPECT_NE(at(server.model("scalar"), "batching").as_string().find("scalar"), std::string::npos);
  EXPECT_EQ(at(server->get("/v2/models/coupled/config").json(), "max_batch_size"), 0);
}

TEST(Models, ConcurrentRequestsShareBatchesAndGetTheirOwnAnswers) {
  const ModelServer server;
  server->post("/v2/repository/models/words/load", "");
  constexpr int kClients = 16, kRequests = 30;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> clients;
  std::latch start(kClients);
  for (int c = 0; c < kClients; ++c)
    clients.emplace_back([&, c] {
      TestClient client = server->client();
      start.arrive_and_wait();
      for (int i = 0; i < kRequests; ++i) {
        const int length = 1 + (c + i) % 20, id = 1 + (c * 7 + i) % 6;
        std::string ids, mask;
        for (int k = 0; k < length; ++k) ids += fmt::format("{}{}", k ? "," : "", id), mask += k ? ",1" : "1";
        const Reply reply =
            client.request("POST", "/v2/models/words/infer",
                           fmt::format(R"({{"inputs":[{{"name":"input_ids","shape":[1,{0}],"datatype":"INT64","data":[{1}]}},)"
                                       R"({{"name":"attention_mask","shape":[1,{0}],"datatype":"INT32","data":[{2}]}}]}})",
                                       length, ids, mask));
        if (reply.status != 200) {
          ++wrong;
          continue;
        }
        const json::value output = at(reply.json(), "outputs", 0);
        const bool fits = json::serialize(at(output, "shape")) == fmt::format("[1,{},4]", length);
        for (int k = 0; fits && k < length * 4; ++k)
          if (at(output, "data", k).as_double() != static_cast<double>(((id * 4 + k % 4) * 7) % 11 - 5)) ++wrong;
        wrong += !fits;
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  const json::value model = server.model("words");
  EXPECT_EQ(at(model, "inferences"), kClients * kRequests);
  EXPECT_LT(at(model, "executions").as_int64(), kClients * kRequests) << "some ran together";
  EXPECT_EQ(at(model, "batched"), true) << at(model, "batching").as_string();
}

TEST(Models, RefuseWrongTensorsWithAHint) {
  const ModelServer server;
  const auto refused = [&](const std::string& body, int status) {
    const Reply reply = server->post("/v2/models/linear/infer", body);
    EXPECT_EQ(reply.status, status) << body << "\n" << reply.body;
    EXPECT_NE(at(reply.json(), "error").as_string(), "");
  };
  refused("", 400);
  refused("{", 400);
  refused("[]", 400);
  refused("{}", 400);
  refused(infer_body("z", "[1,3]", "[1,2,3]"), 400);
  refused(infer_body("x", "[1,4]", "[1,2,3,4]"), 400);
  refused(infer_body("x", "[3]", "[1,2,3]"), 400);
  refused(infer_body("x", "[1,3]", "[1,2]"), 400);
  refused(infer_body("x", "[1,3]", "[1,2,3]", "FP64"), 400);
  refused(infer_body("x", "[1,3]", R"(["a","b","c"])", "BYTES"), 400);
  refused(infer_body("x", "[-1,3]", "[1,2,3]"), 400);
  refused(infer_body("x", "[100000000,3]", "[1]"), 413);
  refused(infer_body("x", "[1000000000000,1000000000000]", "[1]"), 413);
  refused(R"({"inputs":[]})", 400);
  refused(R"({"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}],"outputs":[{"name":"q"}]})", 404);
  refused(R"({"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}],"parameters":{"alpha":3}})", 400);
  refused(R"({"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}],"parameters":{"device":"gpu:77"}})", 404);
  refused(R"({"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}],"parameters":{"timeout":-4}})", 400);
  const Reply unknown = server->post("/v2/models/linaer/infer", infer_body("x", "[1,3]", "[1,2,3]"));
  EXPECT_EQ(unknown.status, 404);
  EXPECT_NE(at(unknown.json(), "hint").as_string().find("linear"), std::string::npos);
  EXPECT_EQ(server->post("/v2/models/linear/infer", infer_body("x", "[1,3]", "[1,2,3]")).status, 200);
}

TEST(Models, ARequestWithWrongTensorsLeavesItsNeighboursAlone) {
  const ModelServer server;
  server->post("/v2/repository/models/words/load", "");
  const auto status = [&](int ids, int mask) {
    const auto list = [](int count) {
      std::string text;
      for (int i = 0; i < count; ++i) text += i ? ",1" : "1";
      return text;
    };
    return server
        ->post("/v2/models/words/infer",
               fmt::format(R"({{"inputs":[{{"name":"input_ids","shape":[1,{0}],"datatype":"INT64","data":[{1}]}},)"
                           R"({{"name":"attention_mask","shape":[1,{2}],"datatype":"INT64","data":[{3}]}}]}})",
                           ids, list(ids), mask, list(mask)))
        .status;
  };
  std::vector<std::thread> clients;
  std::atomic<int> good = 0, bad = 0;
  for (int c = 0; c < 8; ++c)
    clients.emplace_back([&, c] {
      for (int i = 0; i < 20; ++i) {
        if (c % 2 == 0)
          good += status(1 + i % 5, 1 + i % 5) == 200;
        else
          bad += status(2, 3) == 400;
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 80);
  EXPECT_EQ(bad, 80);
}

TEST(Models, ShowTheirGraphAPartAtATime) {
  const TestServer server;
  const Reply sent = server.post("/api/models?name=net.onnx", linear_model(), "Content-Type: application/octet-stream\r\n");
  const std::string path = "/api/models/" + std::string(at(sent.json(), "model", "name").as_string()) + "/graph";
  const json::value whole = server.get(path).json();
  const std::size_t nodes = at(whole, "nodes").as_array().size();
  ASSERT_GE(nodes, 2u);
  EXPECT_EQ(at(whole, "next"), nullptr);
  EXPECT_FALSE(at(whole, "nodes", 0, "weights").as_array().empty());
  const json::value first = server.get(path + "?count=1").json();
  EXPECT_EQ(at(first, "nodes").as_array().size(), 1u);
  EXPECT_EQ(at(first, "next"), 1);
  EXPECT_EQ(at(server.get(path + "?first=1").json(), "nodes").as_array().size(), nodes - 1);
  EXPECT_EQ(server.get(path + "?first=x").status, 400);
  EXPECT_EQ(server.get("/api/models/nothing/graph").status, 404);
}

TEST(Models, WeightsStayOnEveryDeviceOfTheModel) {
  Config config;
  for (int i = 0; i < 2; ++i) config.simulated.push_back(parse_simulated("wormhole,open=0,close=0"));
  config.keep_open = KeepOpenPolicy::always;
  // 4 MiB of weights.
  const std::string model = model_of(graph_of({node("Mul", {"x", "w"}, {"y"})}, {named_value("x", kFloat, {"batch", 1048576})},
                                              {named_value("y", kFloat, {"batch", 1048576})},
                                              {tensor<float>("w", kFloat, {1048576}, std::vector<float>(1048576, 2))}))
                                .str();
  const ModelServer server(
      [&](const std::filesystem::path& folder) {
        write_file(folder / "twice" / "model.onnx", model);
        write_file(folder / "twice" / "config.pbtxt", R"(parameters { key: "devices" value { string_value: "sim:0,sim:1" } })");
      },
      config);
  ASSERT_EQ(server->post("/v2/repository/models/twice/load", "{}").status, 200);
  const std::string header =
      R"({"inputs":[{"name":"x","shape":[1,1048576],"datatype":"FP32","parameters":{"binary_data_size":4194304}}],)"
      R"("parameters":{"binary_data_output":true}})";
  const std::string fields =
      fmt::format("Content-Type: application/octet-stream\r\nInference-Header-Content-Length: {}\r\n", header.size());
  const auto ask = [&] {
    EXPECT_EQ(server->post("/v2/models/twice/infer", header + std::string(4194304, '\0'), fields).status, 200);
  };
  const auto uploaded = [&] {
    std::uint64_t bytes = 0;
    for (const DeviceStatus& status : server->manager().status())
      if (status.device.id.starts_with("sim:")) bytes += status.counters.bytes_up;
    return bytes;
  };
  const auto both = [&] {
    std::vector<std::thread> clients;
    for (int i = 0; i < 8; ++i) clients.emplace_back(ask);
    for (std::thread& client : clients) client.join();
  };
  both();
  const std::uint64_t before = uploaded();
  both();
  // Eight inputs and at most the probe of a new batch shape; weights that moved along would double that.
  EXPECT_LE(uploaded() - before, std::uint64_t{4194304} * 13);
}

TEST(Models, ABatchIsRepeatedOnAnotherInstanceOfTheModel) {
  Config config;
  config.simulated.push_back(parse_simulated("wormhole,open=0,close=0"));
  config.simulated.push_back(parse_simulated("wormhole,open=0,close=0"));
  const test::TemporaryFolder switches;
  config.simulated[0].unplug = switches.path() / "unplugged";
  const ModelServer server(
      [&](const std::filesystem::path& folder) {
        write_file(folder / "twice" / "model.onnx", linear_model());
        write_file(folder / "twice" / "config.pbtxt", R"(parameters { key: "devices" value { string_value: "sim:0,sim:1" } })");
      },
      config);
  const auto ask = [&] { return server->post("/v2/models/twice/infer", infer_body("x", "[1,3]", "[1,1,1]")); };
  ASSERT_EQ(ask().status, 200);
  std::ofstream(config.simulated[0].unplug) << "gone";
  for (int i = 0; i < 3; ++i) {
    const Reply reply = ask();
    EXPECT_EQ(reply.status, 200) << reply.body;
  }
}

TEST(Models, AClientCanSendOneAndTryIt) {
  const TestServer server;
  const std::string bytes = linear_model();
  const Reply sent = server.post("/api/models?name=my%20net.onnx", bytes, "Content-Type: application/octet-stream\r\n");
  ASSERT_EQ(sent.status, 201) << sent.body;
  const std::string name(at(sent.json(), "model", "name").as_string());
  EXPECT_TRUE(name.starts_with("my_net-")) << name;
  EXPECT_EQ(at(sent.json(), "route", "device"), "cpu:0");
  EXPECT_EQ(server.post("/v2/models/" + name + "/infer", infer_body("x", "[1,3]", "[1,1,1]")).status, 200);
  EXPECT_EQ(at(server.get("/api/models").json(), "models").as_array().size(), 1u);
  EXPECT_EQ(at(server.client("127.0.0.2").request("GET", "/api/models").json(), "models").as_array().size(), 0u)
      << "others do not see it";
  EXPECT_EQ(at(server.get("/v1/models").json(), "data").as_array().size(), 0u);
  EXPECT_EQ(server.post("/api/models", "no model", "Content-Type: application/octet-stream\r\n").status, 400);
  EXPECT_EQ(server.post("/api/models", "", "Content-Type: application/octet-stream\r\n").status, 400);
  EXPECT_EQ(server.client().request("DELETE", "/api/models/" + name).status, 204);
  EXPECT_EQ(server.client().request("DELETE", "/api/models/" + name).status, 404);
  EXPECT_EQ(server.post("/v2/models/" + name + "/infer", infer_body("x", "[1,3]", "[1,1,1]")).status, 404);
  int taken = 0;
  for (int i = 0; i < 12; ++i)
    taken += server.post("/api/models", bytes, "Content-Type: application/octet-stream\r\n").status == 201;
  EXPECT_EQ(taken, 8);
}

// --- Texts ---

TEST(Embeddings, TextsBecomeVectorsOfLengthOne) {
  const ModelServer server;
  const Reply reply = server->post("/v1/embeddings", R"({"model":"words","input":["a b c","d","a b c"]})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json::value answer = reply.json();
  EXPECT_EQ(at(answer, "object"), "list");
  EXPECT_EQ(at(answer, "model"), "words");
  EXPECT_EQ(at(answer, "usage", "prompt_tokens"), 7);
  ASSERT_EQ(at(answer, "data").as_array().size(), 3u);
  EXPECT_EQ(at(answer, "data", 1, "index"), 1);
  EXPECT_EQ(at(answer, "data", 0, "embedding"), at(answer, "data", 2, "embedding"));
  double sum = 0;
  for (const json::value& each : at(answer, "data", 0, "embedding").as_array())
    sum += each.to_number<double>() * each.to_number<double>();
  EXPECT_NEAR(sum, 1, 1e-5);
}

// A token for every letter: the texts with which a model is tried are then longer than any word count suggests.
TEST(Embeddings, ATokenizerOfLettersIsTriedAndServed) {
  const ModelServer server([](const std::filesystem::path& folder) {
    write_file(folder / "letters" / "model.onnx", encoder_model());
    write_file(
        folder / "letters" / "tokenizer.json",
        R"({"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":null,)"
        R"("model":{"type":"BPE","vocab":{"[PAD]":0,"a":1,"b":2,"[UNK]":3},"merges":[],"unk_token":"[UNK]"}})");
  });
  const Reply reply = server->post("/v1/embeddings", R"({"model":"letters","input":["abba"]})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(at(reply.json(), "usage", "prompt_tokens"), 4);
  EXPECT_EQ(at(server.model("letters"), "batched"), true);
}

TEST(Embeddings, Base64HasTheSameBitsAsFloats) {
  const ModelServer server;
  const json::value floats = server->post("/v1/embeddings", R"({"model":"words","input":"a b"})").json();
  const json::value text = server->post("/v1/embeddings", R"({"model":"words","input":"a b","encoding_format":"base64"})").json();
  const std::string digits(at(text, "data", 0, "embedding").as_string());
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : digits) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(c));
    if ((count += 6) >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 255);
  }
  ASSERT_EQ(bytes.size(), 16u);
  for (int i = 0; i < 4; ++i) {
    float value;
    std::memcpy(&value, bytes.data() + i * 4, 4);
    EXPECT_EQ(value, static_cast<float>(at(floats, "data", 0, "embedding", i).to_number<double>()));
  }
}

TEST(Embeddings, AreTheSameAloneAndInCompany) {
  const ModelServer server;
  const auto vector_of = [&](const std::string& text) {
    return json::serialize(
        at(server->post("/v1/embeddings", json::serialize(json::value{{"model", "words"}, {"input", text}})).json(), "data", 0,
           "embedding"));
  };
  std::vector<std::string> texts, alone;
  for (int i = 0; i < 40; ++i) {
    std::string text;
    for (int k = 0; k <= i % 17; ++k) text += fmt::format("{} ", static_cast<char>('a' + (i * 5 + k) % 6));
    texts.push_back(text);
  }
  for (const std::string& text : texts) alone.push_back(vector_of(text));
  std::vector<std::thread> clients;
  std::atomic<int> different = 0;
  for (int c = 0; c < 12; ++c)
    clients.emplace_back([&, c] {
      for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::size_t k = (i + static_cast<std::size_t>(c) * 3) % texts.size();
        different += vector_of(texts[k]) != alone[k];
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(different, 0);
}

TEST(Embeddings, LongListsGoThroughASmallQueue) {
  const ModelServer server([](const std::filesystem::path& folder) {
    write_file(folder / "words" / "config.pbtxt", "dynamic_batching { default_queue_policy { max_queue_size: 256 } }");
  });
  json::array texts;
  for (int i = 0; i < 2048; ++i) texts.emplace_back(i % 2 ? "a b" : "c");
  const Reply reply = server->post("/v1/embeddings", json::serialize(json::value{{"model", "words"}, {"input", texts}}));
  ASSERT_EQ(reply.status, 200) << reply.body.substr(0, 300);
  EXPECT_EQ(at(reply.json(), "data").as_array().size(), 2048u);
  EXPECT_GT(at(server.model("words"), "batches").as_array().size(), 0u);
}

TEST(Embeddings, DimensionsCutAndNormalise) {
  const ModelServer server;
  const json::value answer = server->post("/v1/embeddings", R"({"model":"words","input":"a","dimensions":2})").json();
  const double x = at(answer, "data", 0, "embedding", 0).to_number<double>(),
               y = at(answer, "data", 0, "embedding", 1).to_number<double>();
  EXPECT_NEAR(x * x + y * y, 1, 1e-6);
  EXPECT_EQ(server->post("/v1/embeddings", R"({"model":"words","input":"a","dimensions":5})").status, 400);
}

TEST(Embeddings, WrongRequestsAreRefusedWithAHint) {
  const ModelServer server([](const std::filesystem::path& folder) {
    write_file(folder / "words" / "config.pbtxt", R"(parameters { key: "max_tokens" value { string_value: "8" } })");
  });
  const auto refused = [&](const std::string& path, const std::string& body, int status) {
    const Reply reply = server->post(path, body);
    EXPECT_EQ(reply.status, status) << path << " " << body << "\n" << reply.body;
    return reply.status >= 400 ? std::string(at(reply.json(), "hint").as_string()) : std::string();
  };
  for (const char* path : {"/v1/embeddings", "/similarity", "/tokenize"}) {
    refused(path, "", 400);
    refused(path, "{", 400);
    refused(path, "[1]", 400);
    refused(path, "{}", 400);
    refused(path, std::string(20000, '['), 400);
    EXPECT_EQ(server->post(path, "{}", "Content-Type: text/plain\r\n").status, 415);
  }
  EXPECT_NE(refused("/v1/embeddings", R"({"model":"words","input":[1,2,3]})", 400).find("check_embedding_ctx_length"),
            std::string::npos);
  refused("/v1/embeddings", R"({"model":"words","input":[[1,2],[3]]})", 400);
  refused("/v1/embeddings", R"({"model":"words","input":[]})", 400);
  refused("/v1/embeddings", R"({"model":"words","input":["a",null]})", 400);
  refused("/v1/embeddings", R"({"model":"words","input":{"a":1}})", 400);
  refused("/v1/embeddings", R"({"model":"words","input":"a","encoding_format":"int8"})", 400);
  refused("/v1/embeddings", R"({"model":"words","input":"a","dimensions":0})", 400);
  refused("/v1/embeddings", R"({"model":"unknown","input":"a"})", 404);
  EXPECT_NE(refused("/v1/embeddings", R"({"model":"linear","input":"a"})", 400).find("tokenizer.json"), std::string::npos);
  EXPECT_NE(refused("/v1/embeddings", R"({"model":"words","input":"a a a a a a a a a"})", 400).find("truncate"),
            std::string::npos);
  EXPECT_EQ(server->post("/v1/embeddings", R"({"model":"words","input":"a a a a a a a a a","truncate":true})").status, 200);
  json::array many;
  for (int i = 0; i < 3000; ++i) many.emplace_back("a");
  refused("/v1/embeddings", json::serialize(json::value{{"model", "words"}, {"input", many}}), 400);
  refused("/v1/embeddings", fmt::format(R"({{"model":"words","input":"{}"}})", std::string(9 << 20, 'a')), 413);
  refused("/similarity", R"({"model":"words","source_sentence":"a"})", 400);
  refused("/similarity", R"({"model":"words","inputs":[1]})", 400);
  refused("/tokenize", R"({"model":"words","inputs":5})", 400);
  EXPECT_EQ(server->post("/v1/embeddings", R"({"input":"a"})").status, 200) << "the only model with a tokenizer";
}

TEST(Similarity, ComparesOneSentenceWithOthers) {
  const ModelServer server;
  for (const char* body : {R"({"model":"words","source_sentence":"a b","sentences":["b a","c"]})",
                           R"({"model":"words","inputs":{"source_sentence":"a b","sentences":["b a","c"]}})"}) {
    const Reply reply = server->post("/similarity", body);
    ASSERT_EQ(reply.status, 200) << reply.body;
    ASSERT_EQ(reply.json().as_array().size(), 2u);
    EXPECT_NEAR(at(reply.json(), 0).to_number<double>(), 1, 1e-6) << "the mean does not know the order";
    EXPECT_LT(at(reply.json(), 1).to_number<double>(), 0.99);
  }
}

TEST(Tokenize, GivesIdsAndTexts) {
  const ModelServer server;
  const json::value answer = server->post("/tokenize", R"({"model":"words","inputs":["a [PAD] z"]})").json();
  EXPECT_EQ(at(answer, 0, 0, "id"), 1);
  EXPECT_EQ(at(answer, 0, 0, "text"), "a");
  EXPECT_EQ(at(answer, 0, 1, "special"), true);
  EXPECT_EQ(at(answer, 0, 2, "text"), "[UNK]");
}

TEST(Models, AServerWithoutAFolderSaysHowToHaveOne) {
  const TestServer server;
  EXPECT_EQ(at(server.get("/api/models").json(), "folder"), false);
  const Reply reply = server.post("/v1/embeddings", R"({"model":"m","input":"a"})");
  EXPECT_EQ(reply.status, 404);
  EXPECT_NE(at(reply.json(), "hint").as_string().find("--models"), std::string::npos);
  ServerOptions options;
  options.model_folder = "/nowhere";
  EXPECT_THROW(TestServer{options}, Error);
}

}  // namespace
}  // namespace tenon::server
