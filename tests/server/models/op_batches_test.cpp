// Equal requests for an op: which programs may share a batch, and that answers do not depend on it.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "eventually.h"
#include "server/compute/program/row_program.h"
#include "server/http_client.h"
#include "tenon/ops.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

Graph graph_of(const std::string& op, const std::vector<Shape>& shapes, const std::vector<NamedValue>& parameters = {}) {
  Graph graph;
  std::vector<NodeId> inputs;
  for (const Shape& shape : shapes) inputs.push_back(graph.input("x", DType::f32, shape));
  graph.set_outputs(apply(graph, find_op(op), inputs, parameters));
  return graph;
}

const NamedValue kAxis0{"axis", std::vector<std::int64_t>{0}}, kAxis1{"axis", std::vector<std::int64_t>{1}};

TEST(RowProgram, ElementwiseOpsAndReductionsOfARowKeepRowsApart) {
  EXPECT_EQ(rows_of(graph_of("gelu", {{5}})), 5);
  EXPECT_EQ(rows_of(graph_of("add", {{5, 3}, {5, 3}})), 5);
  EXPECT_EQ(rows_of(graph_of("add", {{5, 3}, {5, 1}})), 5);
  EXPECT_EQ(rows_of(graph_of("softmax", {{5, 3}}, {{"axis", std::int64_t{1}}})), 5);
  EXPECT_EQ(rows_of(graph_of("layer_norm", {{5, 3}})), 5);
  EXPECT_EQ(rows_of(graph_of("sum", {{5, 3}}, {kAxis1})), 5);
  EXPECT_EQ(rows_of(graph_of("sort", {{5, 3}}, {{"axis", std::int64_t{1}}})), 5);
}

TEST(RowProgram, WhatMixesRowsIsFoundOut) {
  EXPECT_FALSE(rows_of(graph_of("sum", {{5, 3}}, {kAxis0})));
  EXPECT_FALSE(rows_of(graph_of("sum", {{5, 3}})));
  EXPECT_FALSE(rows_of(graph_of("softmax", {{5, 3}}, {{"axis", std::int64_t{0}}})));
  EXPECT_FALSE(rows_of(graph_of("add", {{5, 3}, {3}}))) << "all rows of one request have its second operand";
  EXPECT_FALSE(rows_of(graph_of("matmul", {{5, 3}, {3, 5}})));
  EXPECT_FALSE(rows_of(graph_of("transpose", {{5, 5}})));
  EXPECT_FALSE(rows_of(graph_of("flip", {{5, 3}}, {kAxis0})));
  EXPECT_FALSE(rows_of(graph_of("cumsum", {{5}}, {{"axis", std::int64_t{0}}})));
  EXPECT_FALSE(rows_of(graph_of("add", {{}, {}})));
}

TEST(RowProgram, AProgramForMoreRowsMustBeTheSameOne) {
  EXPECT_TRUE(is_same_for_more_rows(graph_of("layer_norm", {{2, 3}}), graph_of("layer_norm", {{8, 3}})));
  EXPECT_FALSE(is_same_for_more_rows(graph_of("layer_norm", {{2, 3}}), graph_of("layer_norm", {{8, 4}})));
  EXPECT_FALSE(is_same_for_more_rows(graph_of("exp", {{2, 3}}), graph_of("log", {{8, 3}})));
  // Two rows of three are one row of six, but eight rows of three are not.
  const std::vector<NamedValue> to_two{{"shape", std::vector<std::int64_t>{2, -1}}};
  EXPECT_FALSE(is_same_for_more_rows(graph_of("reshape", {{2, 3}}, to_two), graph_of("reshape", {{8, 3}}, to_two)));
}

// A device on which every run takes a while, so that requests meet.
Config slow_device() {
  Config config;
  config.simulated = {parse_simulated("gpu,open=1ms,close=1ms,compute=40ms")};
  return config;
}

std::string request_of(const std::vector<float>& values) {
  std::string data;
  for (const float value : values) data += (data.empty() ? "" : ",") + fmt::format("{}", value);
  return fmt::format(R"({{"parameters":{{"device":"sim:0","axis":1}},"inputs":[{{"name":"x","shape":[2,{}],"datatype":"FP32",)"
                     R"("data":[{}]}}]}})",
                     values.size() / 2, data);
}

struct Answered {
  std::vector<json::value> data;
  std::int64_t inferences = 0, executions = 0, largest = 0;
};

Answered ask_at_once(const TestServer& server, const std::string& op, const std::vector<std::string>& requests) {
  Answered out;
  out.data.resize(requests.size());
  {
    std::vector<std::jthread> clients;
    for (std::size_t i = 0; i < requests.size(); ++i)
      clients.emplace_back([&, i] {
        const Reply reply = server.post("/v2/models/" + op + "/infer", requests[i]);
        EXPECT_EQ(reply.status, 200) << reply.body;
        if (reply.status == 200) out.data[i] = at(reply.json(), "outputs", 0, "data");
      });
  }
  const json::value all = server.get("/v2/models/" + op + "/stats").json();
  const json::value& statistics = at(all, "model_stats", 0);
  out.inferences = at(statistics, "inference_count").as_int64();
  out.executions = at(statistics, "execution_count").as_int64();
  for (const json::value& batch : at(statistics, "batch_stats").as_array())
    out.largest = std::max(out.largest, at(batch, "batch_size").as_int64());
  return out;
}

TEST(OpBatches, EqualRequestsRunTogetherAndAnswersHaveTheBitsOfARequestAlone) {
  const TestServer server({}, slow_device());
  std::mt19937 random(5);
  std::normal_distribution<float> values;
  std::vector<std::string> requests;
  for (int i = 0; i < 24; ++i) {
    std::vector<float> row(2 * 37);
    for (float& value : row) value = 10 * values(random);
    requests.push_back(request_of(row));
  }
  const Answered together = ask_at_once(server, "op.softmax", requests);
  EXPECT_EQ(together.inferences, 24);
  EXPECT_GT(together.largest, 1);
  EXPECT_LT(together.executions, 24);
  for (std::size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(at(server.post("/v2/models/op.softmax/infer", requests[i]).json(), "outputs", 0, "data"), together.data[i]) << i;
}

TEST(OpBatches, OpsThatMixRowsRunAlone) {
  const TestServer server({}, slow_device());
  std::vector<std::string> requests(6, R"({"parameters":{"device":"sim:0"},"inputs":[{"name":"x","shape":[2,2],)"
                                       R"("datatype":"FP32","data":[1,2,3,4]}]})");
  const Answered answered = ask_at_once(server, "op.sum", requests);
  EXPECT_EQ(answered.executions, 6);
  for (const json::value& data : answered.data) EXPECT_EQ(data, json::parse("[10.0]"));
}

TEST(OpBatches, ARequestWithoutCompanyDoesNotWait) {
  const TestServer server;
  const std::string request = R"({"inputs":[{"name":"x","shape":[2],"datatype":"FP32","data":[1,-2]}]})";
  for (int i = 0; i < 3; ++i) ASSERT_EQ(server.post("/v2/models/op.relu/infer", request).status, 200);
  const json::value all = server.get("/v2/models/op.relu/stats").json();
  EXPECT_EQ(at(all, "model_stats", 0, "execution_count"), 3);
  EXPECT_EQ(at(all, "model_stats", 0, "inference_stats", "success", "count"), 3);
}

}  // namespace
}  // namespace tenon::server
