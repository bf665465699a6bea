// /v1/completions and /v1/chat/completions over a small language model with random weights.
#include <fmt/format.h>

#include <thread>

#include "eventually.h"
#include "server/http_client.h"
#include "source_folder.h"
#include "tenon/device/simulated.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

class LanguageServer {
 public:
  explicit LanguageServer(const Config& config = {}) {
    const std::filesystem::path from = source_folder() / "tests/model/gguf";
    std::filesystem::copy_file(from / "llama_q4_1.gguf", folder_.path() / "tiny.gguf");
    std::filesystem::create_directory(folder_.path() / "plain");
    std::filesystem::copy_file(from / "qwen2_f16.gguf", folder_.path() / "plain/model.gguf");
    for (const char* name : {"llama", "gpt2"})  // gpt2 has shards
      std::filesystem::copy(source_folder() / "tests/model/decoders" / name, folder_.path() / name);
    std::ofstream(folder_.path() / "broken.gguf") << "GGUF, but nothing else is here";
    if (!config.simulated.empty()) {
      std::filesystem::create_directory(folder_.path() / "twice");
      std::filesystem::copy_file(from / "llama_q4_1.gguf", folder_.path() / "twice/model.gguf");
      std::ofstream(folder_.path() / "twice/config.pbtxt") << R"(dynamic_batching { default_queue_policy { max_queue_size: 8 } }
parameters { key: "devices" value { string_value: "sim:0,sim:1" } })";
    }
    ServerOptions options;
    options.model_folder = folder_.path();
    server_ = std::make_unique<TestServer>(options, config);
  }
  TestServer* operator->() const { return server_.get(); }
  json::value generation(std::string_view name) const {
    const json::value models = (*this)->get("/api/models").json();
    for (const json::value& each : at(models, "models").as_array())
      if (at(each, "name").as_string() == name) return at(each, "generation");
    return {};
  }

 private:
  TestDirectory folder_;
  std::unique_ptr<TestServer> server_;
};

std::string chat_body(std::string_view more = "") {
  return fmt::format(
      R"({{"model":"tiny","messages":[{{"role":"user","content":"hello world"}}],"max_tokens":12,"temperature":0{}}})", more);
}

// The data of each event of a streamed answer.
std::vector<std::string> events_of(const std::string& body) {
  std::vector<std::string> out;
  for (std::size_t at = body.find("data: ", body.find("\r\n\r\n")); at != std::string::npos; at = body.find("data: ", at)) {
    at += 6;
    out.push_back(body.substr(at, body.find("\n\n", at) - at));
  }
  return out;
}

std::string streamed(const LanguageServer& server, const std::string& path, const std::string& body) {
  TestClient client(server->port());
  client.send(fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                          path, body.size(), body));
  client.is_closed();
  return client.buffer().substr(client.buffer().find("\r\n\r\n"));  // the head has a "data: " of its own
}

TEST(Completions, FoldersOfSafetensorsAreServed) {
  const LanguageServer server;
  for (const char* name : {"llama", "gpt2"}) {
    const Reply reply = server->post(
        "/v1/chat/completions",
        fmt::format(R"({{"model":"{}","messages":[{{"role":"user","content":"hi"}}],"max_tokens":4,"temperature":0}})", name));
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(at(at(reply.json(), "usage"), "prompt_tokens").as_int64(), 21);
    EXPECT_EQ(at(server->get(fmt::format("/v2/models/{}", name)).json(), "platform").as_string(), "tenon_safetensors");
  }
}

TEST(Completions, AChatIsAnsweredWithUsage) {
  const LanguageServer server;
  const Reply reply = server->post("/v1/chat/completions", chat_body());
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json::value answer = reply.json();
  EXPECT_EQ(at(answer, "object").as_string(), "chat.completion");
  EXPECT_EQ(at(answer, "model").as_string(), "tiny");
  const json::value& choice = at(answer, "choices").as_array().at(0);
  EXPECT_EQ(at(at(choice, "message"), "role").as_string(), "assistant");
  EXPECT_EQ(at(choice, "finish_reason").as_string(), "length");
  EXPECT_EQ(at(at(answer, "usage"), "completion_tokens").as_int64(), 12);
  EXPECT_EQ(server->post("/v1/chat/completions", chat_body()).json().as_object().at("choices"), at(answer, "choices"));
}

TEST(Completions, AStreamHasTheSameText) {
  const LanguageServer server;
  const json::value whole = server->post("/v1/chat/completions", chat_body()).json();
  const std::vector<std::string> events =
      events_of(streamed(server, "/v1/chat/completions", chat_body(R"(,"stream":true,"stream_options":{"include_usage":true})")));
  ASSERT_GE(events.size(), 4u);
  EXPECT_EQ(events.back(), "[DONE]");
  std::string text, finish;
  for (std::size_t i = 0; i + 2 < events.size(); ++i) {
    const json::value chunk = json::parse(events[i]);
    EXPECT_EQ(at(chunk, "object").as_string(), "chat.completion.chunk");
    const json::value& choice = at(chunk, "choices").as_array().at(0);
    if (const json::value* content = at(choice, "delta").as_object().if_contains("content")) text += content->as_string();
    if (at(choice, "finish_reason").is_string()) finish = at(choice, "finish_reason").as_string();
  }
  EXPECT_EQ(text, at(at(at(whole, "choices").as_array().at(0), "message"), "content").as_string());
  EXPECT_EQ(finish, "length");
  EXPECT_EQ(at(at(json::parse(events[events.size() - 2]), "usage"), "completion_tokens").as_int64(), 12);
}

TEST(Completions, PromptsRunTogetherAndDoNotDependOnEachOther) {
  const LanguageServer server;
  const auto body = [](std::string_view prompt) {
    return fmt::format(R"({{"model":"tiny","prompt":{},"max_tokens":20,"temperature":0.8,"seed":5}})", prompt);
  };
  const auto text = [](const Reply& reply, std::size_t i) {
    return std::string(at(at(reply.json(), "choices").as_array().at(i), "text").as_string());
  };
  const Reply both = server->post("/v1/completions", body(R"(["hello","the world"])"));
  ASSERT_EQ(both.status, 200) << both.body;
  EXPECT_EQ(text(both, 0), text(server->post("/v1/completions", body(R"("hello")")), 0));
  EXPECT_EQ(text(both, 1), text(server->post("/v1/completions", body(R"("the world")")), 0));
  std::vector<std::thread> clients;
  for (int i = 0; i < 12; ++i)
    clients.emplace_back([&] { EXPECT_EQ(text(server->post("/v1/completions", body(R"("hello")")), 0), text(both, 0)); });
  for (std::thread& client : clients) client.join();
}

TEST(Completions, AClientThatLeavesEndsItsGeneration) {
  const LanguageServer server;
  {
    TestClient client(server->port());
    const std::string body = R"({"model":"tiny","prompt":"hello","max_tokens":1000,"stream":true,"temperature":5,"seed":3})";
    client.send(fmt::format(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        body.size(), body));
    client.fill();
  }
  EXPECT_TRUE(
      test::eventually(std::chrono::seconds(30), [&] { return at(server.generation("tiny"), "running").as_int64() == 0; }));
}

Config two_simulated() {
  Config config;
  for (int i = 0; i < 2; ++i) config.simulated.push_back(parse_simulated("wormhole,open=0,close=0"));
  return config;
}

TEST(Completions, AModelRunsOnAllOfItsDevices) {
  const LanguageServer server(two_simulated());
  const std::string body = R"({"model":"twice","prompt":["hello","hello"],"max_tokens":100,"temperature":0})";
  const Reply reply = server->post("/v1/completions", body);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(at(reply.json(), "choices", 0, "text"), at(reply.json(), "choices", 1, "text"));
  EXPECT_EQ(at(server.generation("twice"), "devices"), json::value({"sim:0", "sim:1"}));
  for (const DeviceStatus& status : server->manager().status())
    if (status.device.id.starts_with("sim:")) EXPECT_GT(status.counters.leases, 0u) << status.device.id;
}

TEST(Completions, WhoSendsTooMuchAtOnceIsToldToComeBack) {
  const LanguageServer server(two_simulated());
  for (const char* form : {"", R"(,"stream":true)"}) {
    const Reply reply =
        server->post("/v1/completions", fmt::format(R"({{"model":"twice","prompt":["a","b","c"],"max_tokens":2{}}})", form));
    EXPECT_EQ(reply.status, 429) << reply.body;
    EXPECT_NE(reply.field("retry-after"), "");
  }
  EXPECT_EQ(at(server.generation("twice"), "waiting").as_int64(), 0);
}

TEST(Completions, ARequestMayBoundItsOwnTime) {
  const LanguageServer server;
  const Reply reply = server->post("/v1/completions", R"({"model":"tiny","prompt":"hello","timeout_seconds":0})");
  EXPECT_EQ(reply.status, 504) << reply.body;
  EXPECT_EQ(server->post("/v1/completions", R"({"model":"tiny","prompt":"hello","timeout_seconds":-1})").status, 400);
  EXPECT_EQ(server->post("/v1/completions", R"({"model":"tiny","prompt":"x","max_tokens":2,"priority":3})").status, 200);
  EXPECT_EQ(at(server.generation("tiny"), "late").as_int64(), 1);
}

TEST(Completions, MistakesAreExplainedInOpenAisForm) {
  const LanguageServer server;
  const auto error = [&](const std::string& path, const std::string& body, int status) {
    const Reply reply = server->post(path, body);
    EXPECT_EQ(reply.status, status) << reply.body;
    return std::string(at(at(reply.json(), "error"), "message").as_string());
  };
  EXPECT_NE(error("/v1/chat/completions", R"({"model":"tiny","messages":[]})", 400).find("messages"), std::string::npos);
  EXPECT_NE(
      error("/v1/chat/completions", R"({"model":"plain","messages":[{"role":"user","content":"x"}]})", 501).find("plain prompt"),
      std::string::npos);
  EXPECT_NE(
      error("/v1/chat/completions", R"({"model":"tiny","messages":[{"role":"robot","content":"x"}]})", 400).find("roles are"),
      std::string::npos);
  EXPECT_NE(error("/v1/completions", R"({"model":"tiny","prompt":[1,2]})", 400).find("token ids"), std::string::npos);
  EXPECT_NE(error("/v1/completions", R"({"model":"tiny","prompt":"x","n":2})", 400).find("'n'"), std::string::npos);
  EXPECT_NE(error("/v1/completions", R"({"model":"tiny","prompt":"x","temperature":-1})", 400).find("temperature"),
            std::string::npos);
  EXPECT_NE(error("/v1/completions", R"({"prompt":"x"})", 400).find("'model' is required"), std::string::npos);
  error("/v1/completions", R"({"model":"nothing","prompt":"x"})", 404);
  error("/v1/completions", R"({"model":"broken","prompt":"x"})", 400);
  EXPECT_EQ(server->post("/v2/models/tiny/infer", R"({"inputs":[]})").status, 400);
  EXPECT_EQ(server->post("/v1/embeddings", R"({"model":"tiny","input":"x"})").status, 400);
}

TEST(Completions, AModelCanBeUnloadedAndLoaded) {
  const LanguageServer server;
  EXPECT_EQ(server->post("/v1/completions", R"({"model":"tiny","prompt":"x","max_tokens":2})").status, 200);
  EXPECT_EQ(server->post("/v2/repository/models/tiny/unload", "{}").status, 200);
  EXPECT_EQ(server->post("/v1/completions", R"({"model":"tiny","prompt":"x","max_tokens":2})").status, 409);
  EXPECT_EQ(server->post("/v2/repository/models/tiny/load", "{}").status, 200);
  EXPECT_EQ(server->post("/v1/completions", R"({"model":"tiny","prompt":"x","max_tokens":2})").status, 200);
}

}  // namespace
}  // namespace tenon::server
