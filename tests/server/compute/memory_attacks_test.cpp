// Attacks on the server's memory that once worked, each as its smallest reproduction.
#include <fmt/format.h>

#include <cstring>

#include "eventually.h"
#include "server/compute/uploads.h"
#include "server/http/body/event_stream.h"
#include "server/http_client.h"
#include "tenon/array/io.h"
#include "tenon/device/simulated.h"

namespace tenon::server {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr const char* kFile = "Content-Type: application/octet-stream\r\n";

ServerOptions with_memory(std::size_t bytes) {
  ServerOptions options;
  options.max_memory = bytes;
  return options;
}

std::string text_of(const std::vector<std::byte>& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

double used_memory(const TestServer& server) {
  const std::string text = server.get("/metrics").body;
  constexpr std::string_view kName = "\ntenon_request_memory_used_bytes ";
  return std::stod(text.substr(text.find(kName) + kName.size()));
}

std::string upload(const TestServer& server, const HostArray& array) {
  const Reply reply = server.post("/api/uploads", text_of(format_npy(array)), kFile);
  EXPECT_EQ(reply.status, 201) << reply.body;
  return std::string(at(reply.json(), "id").as_string());
}

Reply wait_for(const TestServer& server, const std::string& path) {
  Reply reply;
  EXPECT_TRUE(eventually(60s, [&] {
    reply = server.get(path);
    return reply.status != 200 || (at(reply.json(), "status") != "queued" && at(reply.json(), "status") != "running");
  }));
  return reply;
}

std::string finished_job(const TestServer& server, std::string_view request) {
  const Reply reply = server.post("/api/jobs", request);
  EXPECT_EQ(reply.status, 202) << reply.body;
  const std::string path = reply.field("location");
  EXPECT_EQ(at(wait_for(server, path).json(), "status"), "done");
  return path;
}

// --- Answers ---

// 430 KB asked for 300 MB; 12 MB would have asked for terabytes.
TEST(MemoryAttacks, AnOutputIsAnsweredOnce) {
  const TestServer server;
  for (const auto& [times, status] : {std::pair(1, 200), {2, 400}, {1500, 400}}) {
    std::string outputs;
    for (int i = 0; i < times; ++i) outputs += fmt::format("{}{{\"name\":\"output\"}}", i == 0 ? "" : ",");
    const std::string request =
        fmt::format(R"({{"inputs":[{{"name":"x","datatype":"FP32","shape":[2],"data":[1,2]}}],"outputs":[{}]}})", outputs);
    const Reply reply = server.post("/v2/models/op.abs/infer", request);
    EXPECT_EQ(reply.status, status) << times << " times: " << reply.body.substr(0, 200);
  }
}

TEST(MemoryAttacks, AnInferenceIsRefusedByTheEstimateOfItsAnswer) {
  ServerOptions options;
  options.max_request_memory = 8 * kMiB;
  const TestServer server(options);
  const std::size_t elements = 300'000;
  const auto ask = [&](bool is_binary) {
    const std::string header =
        fmt::format(R"({{"inputs":[{{"name":"x","datatype":"FP64","shape":[{}],"parameters":{{"binary_data_size":{}}}}}],)"
                    R"("outputs":[{{"name":"output","parameters":{{"binary_data":{}}}}}]}})",
                    elements, elements * 8, is_binary);
    return server
        .post("/v2/models/op.abs/infer", header + std::string(elements * 8, '\0'),
              fmt::format("{}Inference-Header-Content-Length: {}\r\n", kFile, header.size()))
        .status;
  };
  EXPECT_EQ(ask(true), 200);
  EXPECT_EQ(ask(false), 413);
}

TEST(MemoryAttacks, FullOutputsAreRefusedByTheirEstimate) {
  ServerOptions options;
  options.max_request_memory = 64 * kMiB;
  const TestServer server(options);
  const std::size_t before = resident_bytes();
  std::string expression = "x = zeros([1048576])";
  for (const char* separator = ";"; expression.size() < 60; separator = ",") expression += fmt::format("{} x + 1", separator);
  const std::string request = fmt::format(R"({{"expression":"{}","output":"full","device":"cpu:0"}})", expression);
  EXPECT_EQ(server.post("/api/execute", request).status, 413);
  EXPECT_LT(resident_bytes(), before + 16 * kMiB);
}

// The estimate must be one: what is answered is never longer.
TEST(MemoryAttacks, TheEstimateOfAnAnswerCoversIt) {
  ServerOptions options;
  options.max_request_memory = 12 * kMiB;
  const TestServer server(options);
  for (const char* expression :
       {"rand([100000, 1], float64) * -1e-300", "rand([100000, 1, 1, 1]) * -1e-30 ", "zeros([100000], bool)",
        "cast(rand([100000]) * -1e30, bfloat16)", "zeros([100000], uint8) - 1"}) {
    const Reply reply = server.post(
        "/api/execute", fmt::format(R"({{"expression":"{}","output":"full","device":"cpu:0","compare":false}})", expression));
    ASSERT_EQ(reply.status, 200) << expression << reply.body.substr(0, 300);
    EXPECT_LT(reply.body.size(), 12 * kMiB);
  }
}

TEST(MemoryAttacks, AResultAsTextIsRefusedByTheSizeOfTheText) {
  ServerOptions options = with_memory(256 * kMiB);
  options.max_client_memory = 24 * kMiB;
  const TestServer server(options);
  // 4 MiB of bytes that become up to 20 MiB of text, which is there twice while it grows.
  const Reply run = server.post("/api/execute", R"({"expression":"zeros([4194304], uint8) + 200","compare":false,"keep":true})");
  ASSERT_EQ(run.status, 200) << run.body;
  const std::string path(at(run.json(), "download").as_string());
  EXPECT_EQ(server.get(path + "?format=npy").status, 200);
  EXPECT_EQ(server.get(path + "?format=csv").status, 413);
}

TEST(MemoryAttacks, ATextOfRowsIsTheSameAsBefore) {
  const TestServer server;
  const Reply reply = server.post("/api/execute", R"({"expression":"arange(0, 3) * 0.5","output":"csv"})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.body, "0\n0.5\n1\n");
}

// Unauthenticated: 8 MiB of lists became 200 MiB of JSON.
TEST(MemoryAttacks, ALoginIsShort) {
  const TestServer server;
  const std::string body = R"({"password":")" + std::string(5000, 'x') + R"("})";
  EXPECT_EQ(server.post("/login", body).status, 413);
  EXPECT_EQ(server.post("/login", R"({"password":"x"})").status, 409) << "no login is required here";
}

TEST(MemoryAttacks, DocumentsOfEveryRouteAreParsedUnderAShare) {
  ServerOptions options = with_memory(64 * kMiB);
  options.max_client_memory = 16 * kMiB;
  const TestServer server(options);
  std::string list = "[0";
  for (int i = 0; i < 1'000'000; ++i) list += ",0";
  list += "]";
  EXPECT_EQ(server.post("/api/bug-report", R"({"description":"x","report_data":)" + list + "}").status, 413);
  EXPECT_EQ(server.post("/api/device/reset", R"({"device":"cpu:0","more":)" + list + "}").status, 413);
  EXPECT_EQ(server.post("/v2/repository/models/x/load", R"({"parameters":{"more":)" + list + "}}").status, 413);
}

TEST(MemoryAttacks, TheCodecCountsTensorsAndRefusesWhatAFileClaims) {
  const TestServer server(with_memory(256 * kMiB));
  std::string header = "{";
  for (int i = 0; i < 70'000; ++i)
    header += fmt::format(R"({}"{}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", i == 0 ? "" : ",", i);
  header += "}";
  std::uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  file += header;
  for (const char* path : {"/api/encode", "/api/encode/report", "/api/decode"})
    EXPECT_EQ(server.post(path, file, kFile).status, 413) << path;

  // A file that claims to be of eight gigabytes, and another claim that would make up for it.
  ArrayFile bomb;
  bomb.arrays.emplace("a", HostArray::zeros(DType::u8, {16}));
  bomb.metadata = {{"tenon.a.encoding", "zstd"},
                   {"tenon.a.encoded_dtype", "float64"},
                   {"tenon.a.encoded_shape", "1000000000"},
                   {"tenon.b.encoded_shape", "-1000000000"}};
  EXPECT_EQ(server.post("/api/decode", text_of(format_safetensors(bomb)), kFile).status, 413);
}

TEST(MemoryAttacks, AComparisonIsLeftOutWhereItHasNoRoom) {
  const TestServer server(with_memory(64 * kMiB));
  const Reply reply = server.post("/api/execute", R"json({"expression":"exp(zeros([524288]))","device":"cpu:0"})json");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(at(reply.json(), "results", 0, "comparison", "skipped"), "the server's memory is in use");
}

// --- Programs ---

std::string many_nodes(int times, int parts, int variant) {
  std::string expression = fmt::format("x = zeros([{}]) + {}", parts, variant);
  for (int i = 0; i < times; ++i) expression += fmt::format("; x = concat(split(x, {}))", parts);
  return fmt::format(R"({{"expression":"{}; x[0]","device":"cpu:0","compare":false,"details":false}})", expression);
}

// 570 bytes made a graph of 82,000 nodes, and the cache kept 512 of them.
TEST(MemoryAttacks, AGraphIsCountedWhileItGrows) {
  const TestServer server(with_memory(64 * kMiB));
  const std::size_t before = resident_bytes();
  for (int i = 0; i < 12; ++i) {
    const Reply reply = server.post("/api/execute", many_nodes(20, 4096, i));
    EXPECT_EQ(reply.status, 413) << reply.body;
  }
  // The limit, and what the allocator keeps for the threads that answered.
  EXPECT_LT(resident_bytes(), before + 96 * kMiB);
}

TEST(MemoryAttacks, TheProgramCacheCountsGraphsAndIsBounded) {
  const TestServer server(with_memory(64 * kMiB));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(server.post("/api/check", many_nodes(1, 600, i)).status, 200);
  EXPECT_EQ(used_memory(server), 0) << "a check keeps nothing";
  for (int i = 0; i < 40; ++i) EXPECT_EQ(server.post("/api/execute", many_nodes(1, 600, i)).status, 200);
  const double used = used_memory(server);
  EXPECT_GT(used, 1 * kMiB) << "the cache is seen by the gate";
  EXPECT_LE(used, 8 * kMiB) << "an eighth of the limit";
}

// --- Jobs ---

constexpr const char* kLongResult =
    R"json({"expression":"zeros([1048576], bool)","output":"full","device":"cpu:0","compare":false,"details":false})json";

TEST(MemoryAttacks, ResultsOfFinishedJobsAreCountedAndGivenUp) {
  const TestServer server(with_memory(256 * kMiB));
  const std::size_t before = resident_bytes();
  std::vector<std::string> paths;
  for (int i = 0; i < 12; ++i) paths.push_back(finished_job(server, kLongResult));
  EXPECT_EQ(server.get(paths.front()).status, 404) << "the oldest made room";
  EXPECT_EQ(server.get(paths.back()).status, 200);
  EXPECT_GT(used_memory(server), 12 * kMiB);
  EXPECT_LE(used_memory(server), 40 * kMiB);
  EXPECT_LT(resident_bytes(), before + 256 * kMiB);
}

TEST(MemoryAttacks, AFinishedJobHoldsNothingButItsAnswer) {
  const TestServer server(with_memory(128 * kMiB));
  for (int i = 0; i < 20; ++i)
    finished_job(server,
                 fmt::format(R"json({{"operation":"sum","inputs":[{{"generator":"uniform","shape":[1250000],"seed":{}}}],)json"
                             R"json("device":"cpu:0","compare":false}})json",
                             i));
  // The last one is told to be finished a moment before it gives up its input.
  EXPECT_TRUE(test::eventually(std::chrono::seconds(20), [&] { return used_memory(server) < 2 * kMiB; })) << used_memory(server);
}

TEST(MemoryAttacks, ReadersOfOneResultShareIt) {
  const TestServer server(with_memory(512 * kMiB));
  const std::string path = finished_job(server, kLongResult);
  const std::size_t before = resident_bytes();
  std::vector<TestClient> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(server.client());
    const char* const what = i % 2 == 0 ? "/events" : "";
    clients.back().send(fmt::format("GET {}{} HTTP/1.1\r\nHost: localhost\r\n\r\n", path, what));
    EXPECT_TRUE(clients.back().fill()) << "the answer begins";
  }
  EXPECT_LT(resident_bytes(), before + 60 * kMiB) << "60 copies would be 750 MiB";
  // And it arrives whole.
  EXPECT_EQ(at(boost::json::parse(clients[0].read_event().second), "result", "results", 0, "elements"), 1048576);
  EXPECT_EQ(at(clients[1].read().json(), "result", "results", 0, "elements"), 1048576);
}

TEST(MemoryAttacks, EventStreamsAreCounted) {
  const TestServer server(with_memory(8 * kMiB));
  constexpr std::size_t kFit = (8 * kMiB - 8 * kMiB / 32) / 4 / EventStream::kMostBytes;  // a 32nd is for heaps
  std::vector<TestClient> clients;
  for (std::size_t i = 0; i <= kFit; ++i) {
    clients.push_back(server.client());
    clients.back().send("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(clients.back().read(true).status, i < kFit ? 200 : 503) << i;
  }
  clients.clear();
  EXPECT_TRUE(eventually(60s, [&] { return used_memory(server) == 0; }));
}

// --- Inputs and uploads ---

TEST(MemoryAttacks, TheCastOfAnUploadIsCheckedFirst) {
  ServerOptions options;
  options.max_request_memory = 64 * kMiB;
  const TestServer server(options);
  const std::string id = upload(server, HostArray::zeros(DType::u8, {12'000'000}));
  const std::size_t before = resident_bytes();
  for (const char* path : {"/api/check", "/api/execute"}) {
    const Reply reply = server.post(
        path, fmt::format(R"({{"operation":"neg","inputs":[{{"upload":"{}","dtype":"float64"}}],"device":"cpu:0"}})", id));
    EXPECT_EQ(reply.status, 413) << reply.body;
  }
  EXPECT_LT(resident_bytes(), before + 48 * kMiB);
}

TEST(MemoryAttacks, ManySmallInputsCountTogether) {
  const TestServer server(with_memory(128 * kMiB));
  std::string inputs;
  for (int i = 0; i < 4000; ++i) inputs += fmt::format("{}{{\"generator\":\"uniform\",\"shape\":[8000]}}", i == 0 ? "" : ",");
  const std::size_t before = resident_bytes();
  const Reply reply =
      server.post("/api/execute", fmt::format(R"({{"operation":"concat","inputs":[{}],"device":"cpu:0"}})", inputs));
  EXPECT_EQ(reply.status, 429) << reply.body.substr(0, 300);
  EXPECT_LT(resident_bytes(), before + 100 * kMiB);
}

std::string safetensors_of_empty_tensors(int count) {
  std::string json = "{";
  for (int i = 0; i < count; ++i)
    json += fmt::format("{}\"{}\":{{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", i == 0 ? "" : ",", i);
  json += "}";
  const std::uint64_t length = json.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + json;
}

TEST(MemoryAttacks, AFileOfVeryManyTensorsIsRefused) {
  const TestServer server;
  EXPECT_EQ(server.post("/api/uploads", safetensors_of_empty_tensors(100), kFile).status, 201);
  const Reply reply = server.post("/api/uploads", safetensors_of_empty_tensors(70'000), kFile);
  EXPECT_EQ(reply.status, 413) << reply.body;
}

TEST(MemoryAttacks, TinyTensorsCountWithTheirNames) {
  const TestServer server(with_memory(1024 * kMiB));
  EXPECT_EQ(server.post("/api/uploads", safetensors_of_empty_tensors(20'000), kFile).status, 201);
  EXPECT_GT(used_memory(server), 10 * kMiB);
}

TEST(MemoryAttacks, AClientHasOnlySoManyUploads) {
  const TestServer server;
  TestClient client = server.client();
  const std::string file = text_of(format_npy(HostArray::zeros(DType::u8, {1})));
  for (std::size_t i = 0; i < UploadStore::kMaxOfOwner; ++i)
    ASSERT_EQ(client.request("POST", "/api/uploads", file, kFile).status, 201) << i;
  EXPECT_EQ(client.request("POST", "/api/uploads", file, kFile).status, 429);
}

// A deleted upload is still in memory while a job uses it.
TEST(MemoryAttacks, ADeletedUploadCountsUntilTheLastUseEnds) {
  Config config;
  config.simulated.push_back(parse_simulated("wormhole,open=0,close=0"));
  TestServer server(with_memory(256 * kMiB), config);
  const std::string id = upload(server, HostArray::zeros(DType::u8, {8 << 20}));
  Lease lease = server.manager().lease({.device = "sim:0"});
  const Reply job = server.post(
      "/api/jobs",
      fmt::format(R"json({{"expression":"max(x)","inputs":{{"x":{{"upload":"{}"}}}},"device":"sim:0","compare":false}})json",
                  id));
  ASSERT_EQ(job.status, 202) << job.body;
  EXPECT_EQ(server.client().request("DELETE", "/api/uploads/" + id).status, 204);
  EXPECT_GE(used_memory(server), 8 * kMiB);
  lease.release();
  wait_for(server, job.field("location"));
  EXPECT_TRUE(eventually(60s, [&] { return used_memory(server) < 1 * kMiB; }));
}

// --- Fairness ---

TEST(MemoryAttacks, OneClientLeavesRoomForTheOthers) {
  const TestServer server(with_memory(64 * kMiB));
  const std::string file = text_of(format_npy(HostArray::zeros(DType::u8, {3 << 20})));
  int stored = 0, refused = 0;
  for (int i = 0; i < 12; ++i) {
    const int status = server.post("/api/uploads", file, kFile).status;
    stored += status == 201;
    refused += status == 429;
  }
  EXPECT_GE(stored, 2);
  EXPECT_EQ(stored + refused, 12) << "with its own limit, not for the want of memory";
  EXPECT_LE(used_memory(server), 16 * kMiB);
  const char* const request = R"json({"expression":"sum(rand([1000000]))","device":"cpu:0","compare":false})json";
  EXPECT_EQ(TestClient(server.port(), "127.0.0.2").request("POST", "/api/execute", request).status, 200);
}

TEST(MemoryAttacks, MoreThanAClientMayEverHaveIs413) {
  const TestServer server(with_memory(64 * kMiB));
  const Reply reply = server.post(
      "/api/execute", R"json({"expression":"sum(rand([8388608], float64) @ zeros([8388608]))","device":"cpu:0"})json");
  EXPECT_EQ(reply.status, 413) << reply.body;
}

TEST(MemoryAttacks, TheLimitOfAClientCanBeSet) {
  ServerOptions options = with_memory(64 * kMiB);
  options.max_client_memory = 48 * kMiB;
  const TestServer server(options);
  const std::string file = text_of(format_npy(HostArray::zeros(DType::u8, {12 << 20})));
  EXPECT_EQ(server.post("/api/uploads", file, kFile).status, 201);
  const TestServer strict(with_memory(64 * kMiB));
  EXPECT_EQ(strict.post("/api/uploads", file, kFile).status, 429);
}

}  // namespace
}  // namespace tenon::server
