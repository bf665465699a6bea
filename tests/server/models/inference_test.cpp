// Open Inference Protocol v2, with tensors as JSON and as bytes.
#include <cstring>

#include "server/http_client.h"
#include "tenon/ops.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

std::string bytes_of(std::initializer_list<float> values) {
  std::string text(values.size() * sizeof(float), '\0');
  std::memcpy(text.data(), values.begin(), text.size());
  return text;
}

std::vector<float> floats_of(std::string_view bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

Reply infer_binary(const TestServer& server, const std::string& model, const std::string& header, const std::string& tensors) {
  return server.post(
      "/v2/models/" + model + "/infer", header + tensors,
      "Content-Type: application/octet-stream\r\nInference-Header-Content-Length: " + std::to_string(header.size()) + "\r\n");
}

TEST(Inference, DescribesTheServerAndItsModels) {
  const TestServer server;
  EXPECT_EQ(at(server.get("/v2").json(), "name"), "tenon");
  EXPECT_EQ(server.get("/v2/health/ready").status, 200);
  const json::value model = server.get("/v2/models/op.add/versions/1").json();
  EXPECT_EQ(at(model, "inputs").as_array().size(), 2u);
  EXPECT_EQ(server.get("/v2/models/op.softmax/ready").status, 200);
  EXPECT_EQ(server.get("/v2/models/op.sofmax").status, 404);
  EXPECT_EQ(server.get("/v2/models/resnet").status, 404);
  EXPECT_EQ(server.get("/v2/models/op.add/versions/2").status, 404);
  EXPECT_EQ(server.get("/v2/models/op.add/config").status, 200);
  EXPECT_EQ(server.post("/v2/repository/index", "").json().as_array().size(), all_ops().size());
}

TEST(Inference, TakesJsonTensorsFlatOrNested) {
  const TestServer server;
  const Reply reply = server.post("/v2/models/op.add/infer",
                                  R"({"id":"7","inputs":[{"name":"x","shape":[2,2],"datatype":"FP32","data":[1,2,3,4]},)"
                                  R"({"name":"y","shape":[2,2],"datatype":"FP32","data":[[1,1],[1,1]]}]})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json::value answer = reply.json();
  EXPECT_EQ(at(answer, "id"), "7");
  EXPECT_EQ(at(answer, "outputs", 0, "data"), json::parse("[2.0,3.0,4.0,5.0]"));
  EXPECT_EQ(json::serialize(at(answer, "outputs", 0, "shape")), "[2,2]");
  const json::value statistics = server.get("/v2/models/op.add/stats").json();
  EXPECT_EQ(at(statistics, "model_stats", 0, "inference_count"), 1);
}

TEST(Inference, TakesParametersOfTheOp) {
  const TestServer server;
  const Reply reply = server.post(
      "/v2/models/op.sum/infer",
      R"({"parameters":{"axis":[0],"device":"cpu"},"inputs":[{"name":"x","shape":[2,2],"datatype":"INT64","data":[1,2,3,4]}]})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(json::serialize(at(reply.json(), "outputs", 0, "data")), "[4,6]");
}

TEST(Inference, BinaryTensorsGoInAndOut) {
  const TestServer server;
  const std::string header = R"({"inputs":[{"name":"x","shape":[3],"datatype":"FP32","parameters":{"binary_data_size":12}},)"
                             R"({"name":"y","shape":[3],"datatype":"FP32","parameters":{"binary_data_size":12}}],)"
                             R"("parameters":{"binary_data_output":true}})";
  const Reply reply = infer_binary(server, "op.mul", header, bytes_of({1, 2, 3}) + bytes_of({4, 5, 6}));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const std::size_t length = static_cast<std::size_t>(std::atoi(reply.field("inference-header-content-length").c_str()));
  EXPECT_EQ(at(json::parse(reply.body.substr(0, length)), "outputs", 0, "parameters", "binary_data_size"), 12);
  EXPECT_EQ(floats_of(std::string_view(reply.body).substr(length)), (std::vector<float>{4, 10, 18}));
}

TEST(Inference, LargeTensorsAreUsedWhereTheyLie) {
  const TestServer server;
  constexpr int count = 1 << 20;
  for (const char* padding : {"", " ", "  ", "   "}) {  // whatever the alignment of the bytes behind the header
    const std::string header =
        std::string(padding) +
        R"({"inputs":[{"name":"x","shape":[1048576],"datatype":"FP32","parameters":{"binary_data_size":4194304}}],"outputs":[{"name":"output","parameters":{"binary_data":true}}]})";
    std::string tensor(count * sizeof(float), '\0');
    for (int i = 0; i < count; ++i) {
      const float value = static_cast<float>(i);
      std::memcpy(tensor.data() + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
    }
    const Reply reply = infer_binary(server, "op.neg", header, tensor);
    ASSERT_EQ(reply.status, 200) << reply.body.substr(0, 300);
    const std::vector<float> values = floats_of(std::string_view(reply.body).substr(reply.body.size() - tensor.size()));
    EXPECT_EQ(values[0], 0);
    EXPECT_EQ(values[count - 1], -1048575);
  }
}

TEST(Inference, RefusesWhatDoesNotFit) {
  const TestServer server;
  const auto status = [&](const std::string& header, const std::string& tensors = "") {
    return infer_binary(server, "op.neg", header, tensors).status;
  };
  const std::string input = R"({"inputs":[{"name":"x","shape":[3],"datatype":"FP32","parameters":{"binary_data_size":12}}]})";
  EXPECT_EQ(status(input, bytes_of({1, 2, 3})), 200);
  EXPECT_EQ(status(input, bytes_of({1, 2})), 400);
  EXPECT_EQ(status(input, bytes_of({1, 2, 3, 4})), 400);
  EXPECT_EQ(status(R"({"inputs":[{"name":"x","shape":[3],"datatype":"FP32","parameters":{"binary_data_size":16}}]})",
                   bytes_of({1, 2, 3, 4})),
            400);
  EXPECT_EQ(status(R"({"inputs":[{"name":"z","shape":[1],"datatype":"FP32","data":[1]}]})"), 400);
  EXPECT_EQ(status(R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP99","data":[1]}]})"), 400);
  EXPECT_EQ(status(R"({"inputs":[{"name":"x","shape":[1000000,1000000],"datatype":"FP32","data":[1]}]})"), 413);
  EXPECT_EQ(status(R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32"}]})"), 400);
  EXPECT_EQ(status(R"({"inputs":7})"), 400);
  EXPECT_EQ(status(R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}],"outputs":[{"name":"q"}]})"), 404);
  const Reply lied = server.post("/v2/models/op.neg/infer", "{}", "Inference-Header-Content-Length: 999\r\n");
  EXPECT_EQ(lied.status, 400);
  EXPECT_NE(at(lied.json(), "error").as_string(), "");
}

}  // namespace
}  // namespace tenon::server
