// The calculator: ops, expressions, inputs of every kind, answers, and what is refused.
#include <cmath>
#include <sstream>

#include "server/http_client.h"
#include "tenon/array/io.h"
#include "tenon/ops.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

class Execute : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new TestServer; }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  static TestServer& server() { return *server_; }
  static Reply post(std::string_view body) { return server_->post("/api/execute", body); }
  static json::value run(std::string_view body) {
    const Reply reply = post(body);
    EXPECT_EQ(reply.status, 200) << body << "\n" << reply.body;
    return reply.json();
  }
  static std::string upload(std::string_view bytes, std::string_view name = "a.npy") {
    const Reply reply =
        server_->post("/api/uploads?name=" + std::string(name), bytes, "Content-Type: application/octet-stream\r\n");
    EXPECT_EQ(reply.status, 201) << reply.body;
    return std::string(at(reply.json(), "id").as_string());
  }
  static TestServer* server_;
};
TestServer* Execute::server_ = nullptr;

std::string text_of(const std::vector<std::byte>& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

struct Worked {
  const char* request;
  double value;
};

// From the calculator's own documents.
TEST_F(Execute, WorkedExamplesOfTheCalculatorHold) {
  const Worked examples[] = {
      {R"({"operation":"addalpha","inputs":[{"value":1,"shape":"1,1,32,32"},{"value":2,"shape":"1,1,32,32"}],"optional_param":3})",
       7},
      {R"({"operation":"subalpha","inputs":[{"value":10,"shape":"32,32"},{"value":2,"shape":"32,32"}],"parameters":{"alpha":3}})",
       4},
      {R"({"operation":"addcmul","inputs":[{"value":1,"shape":[4]},{"value":2,"shape":[4]},{"value":3,"shape":[4]}],"optional_param":5})",
       31},
      {R"({"operation":"addcdiv","inputs":[{"value":10,"shape":[4]},{"value":6,"shape":[4]},{"value":2,"shape":[4]}],"optional_param":2})",
       16},
      {R"({"operation":"threshold","inputs":[{"value":0.5,"shape":[4]}],"optional_param":1,"optional_param_2":99})", 99},
      {R"({"operation":"elu","inputs":[{"value":-1,"shape":[4],"dtype":"bfloat16"}],"optional_param":2})", -1.265625},
  };
  for (const Worked& example : examples) {
    const json::value answer = run(example.request);
    EXPECT_EQ(at(answer, "value").to_number<double>(), example.value) << example.request;
    EXPECT_EQ(at(answer, "results", 0, "comparison", "matches"), true) << example.request;
    EXPECT_EQ(at(answer, "success"), true);
    EXPECT_FALSE(at(answer, "status_log").as_array().empty());
  }
}

TEST_F(Execute, EveryOpRunsItsExampleAndMatchesTheReference) {
  for (const OpInfo& op : all_ops()) {
    const json::value answer = run(json::serialize(json::object{{"expression", op.example}}));
    EXPECT_EQ(at(answer, "results", 0, "comparison", "matches"), true) << op.name << ": " << op.example;
  }
}

TEST_F(Execute, EveryDtypeIsTakenAndShownAsItsDeviceGetsIt) {
  for (const DType dtype : all_dtypes()) {
    const json::value answer = run(json::serialize(
        json::object{{"operation", "identity"},
                     {"inputs", json::array{json::object{{"value", 1}, {"dtype", name(dtype)}, {"shape", {3, 3}}}}}}));
    EXPECT_EQ(at(answer, "dtype").as_string(), name(dtype));
  }
  const json::value third = run(R"({"operation":"identity","inputs":[{"value":0.3333333,"shape":[2],"dtype":"bfloat16"}]})");
  EXPECT_EQ(at(third, "inputs", 0, "given_value"), 0.3333333);
  EXPECT_FLOAT_EQ(at(third, "inputs", 0, "value").to_number<float>(), 0.333984375F);
}

TEST_F(Execute, NumbersThatJsonLacksGoBothWays) {
  const json::value answer = run(R"({"operation":"neg","inputs":[{"value":["NaN","Infinity","-Infinity",0]}],"output":"full"})");
  EXPECT_EQ(at(answer, "full_output"), json::parse(R"(["NaN","-Infinity","Infinity",-0.0])"));
  EXPECT_EQ(at(answer, "results", 0, "statistics", "nan"), 1);
  EXPECT_EQ(at(answer, "results", 0, "comparison", "matches"), true);
}

TEST_F(Execute, SixtyFourBitIntegersAreExact) {
  const Reply reply = post(
      R"({"operation":"identity","inputs":[{"value":[9007199254740993,-9223372036854775808],"dtype":"int64"}],"output":"full","compare":false})");
  EXPECT_NE(reply.body.find("\"full_output\":[9007199254740993,-9223372036854775808]"), std::string::npos) << reply.body;
  const Reply filled =
      post(R"({"operation":"identity","inputs":[{"value":9007199254740993,"shape":[2],"dtype":"uint64"}],"compare":false})");
  EXPECT_NE(filled.body.find("\"value\":9007199254740993"), std::string::npos) << filled.body;
}

TEST_F(Execute, GeneratorsMakeWhatTheyPromise) {
  const auto values = [](const char* input) {
    return json::serialize(
        at(run(std::string(R"({"operation":"identity","output":"full","inputs":[)") + input + "]}"), "full_output"));
  };
  EXPECT_EQ(values(R"({"generator":"range","shape":[2,2],"start":1,"step":2,"dtype":"int32"})"), "[[1,3],[5,7]]");
  EXPECT_EQ(values(R"({"generator":"linspace","shape":[5],"start":0,"stop":1,"dtype":"float64"})"),
            "[0E0,2.5E-1,5E-1,7.5E-1,1E0]");
  EXPECT_EQ(values(R"({"generator":"eye","shape":[2,3],"dtype":"int8"})"), "[[1,0,0],[0,1,0]]");
  EXPECT_EQ(values(R"({"generator":"constant","value":2,"shape":[2],"dtype":"int8"})"), "[2,2]");
  EXPECT_EQ(values(R"({"expression":"[1, 2] + 1","dtype":"int8"})"), "[2,3]");
  EXPECT_EQ(values(R"({"generator":"uniform","shape":[3],"seed":1})"), values(R"({"generator":"random","shape":[3],"seed":1})"));
  EXPECT_NE(values(R"({"generator":"normal","shape":[3],"seed":1})"), values(R"({"generator":"normal","shape":[3],"seed":2})"));
  const json::value spread =
      run(R"({"operation":"identity","inputs":[{"generator":"uniform","shape":[10000],"seed":3,"low":-2,"high":5}]})");
  EXPECT_GE(at(spread, "results", 0, "statistics", "min").to_number<double>(), -2);
  EXPECT_LT(at(spread, "results", 0, "statistics", "max").to_number<double>(), 5);
  EXPECT_NEAR(at(spread, "results", 0, "statistics", "mean").to_number<double>(), 1.5, 0.1);
}

TEST_F(Execute, ScalarsTakeTheTypeOfWhatTheyMeet) {
  const json::value answer = run(
      R"({"operation":"mul","inputs":[{"value":3,"shape":[2],"dtype":"bfloat16"},{"type":"scalar","value":0.5,"dtype":"float"}]})");
  EXPECT_EQ(at(answer, "dtype"), "bfloat16");
  EXPECT_EQ(at(answer, "value").to_number<double>(), 1.5);
}

TEST_F(Execute, OpsThatWantIntegersGetThemByDefault) {
  EXPECT_EQ(at(run(R"({"operation":"bitwise_and","inputs":[{"value":12},{"value":10}]})"), "value"), 8);
  EXPECT_EQ(at(run(R"({"operation":"gcd","inputs":[{"value":12,"shape":[2]},{"value":18,"shape":[2]}]})"), "value"), 6);
}

TEST_F(Execute, UploadedFilesAreInputs) {
  const std::string id = upload(text_of(format_npy(HostArray::from<float>({2, 2}, {1, 2, 3, 4}))));
  const json::value answer = run(json::serialize(
      json::object{{"expression", "a @ a"}, {"inputs", json::object{{"a", json::object{{"upload", id}}}}}, {"output", "full"}}));
  EXPECT_EQ(at(answer, "full_output"), json::parse("[[7.0,10.0],[15.0,22.0]]"));
  ArrayFile file;
  file.arrays.emplace("w", HostArray::from<float>({2}, {5, 6}));
  file.arrays.emplace("b", HostArray::from<float>({2}, {1, 1}));
  const std::string two = upload(text_of(format_safetensors(file)), "two.safetensors");
  const auto request = [&](const char* tensor) {
    return json::serialize(
        json::object{{"operation", "neg"}, {"inputs", json::array{json::object{{"upload", two}, {"tensor", tensor}}}}});
  };
  EXPECT_EQ(at(run(request("w")), "value"), -5.0);
  EXPECT_EQ(post(request("v")).status, 404);
  EXPECT_EQ(post(request("")).status, 400);
  EXPECT_EQ(server().client().request("DELETE", "/api/uploads/" + two).status, 204);
  EXPECT_EQ(post(request("w")).status, 404);
  EXPECT_EQ(at(server().get("/api/uploads").json(), "uploads").as_array().size(), 1u);
  EXPECT_EQ(server().post("/api/uploads", "rubbish", "Content-Type: application/octet-stream\r\n").status, 400);
}

TEST_F(Execute, ResultsComeAsFiles) {
  const Reply npy = post(R"({"expression":"[[1.5, 2], [3, 4]]","output":"npy"})");
  EXPECT_EQ(npy.field("content-type"), "application/octet-stream");
  EXPECT_NE(npy.field("server-timing").find("computing"), std::string::npos);
  const HostArray array = parse_npy(std::as_bytes(std::span(npy.body.data(), npy.body.size())));
  EXPECT_EQ(array.to_doubles(), (std::vector<double>{1.5, 2, 3, 4}));
  const Reply both = post(R"({"expression":"v, i = top_k([3, 1, 4], 2); v, i","output":"safetensors"})");
  const ArrayFile file = parse_safetensors(std::as_bytes(std::span(both.body.data(), both.body.size())));
  EXPECT_EQ(file.arrays.at("i").to_doubles(), (std::vector<double>{2, 0}));
  EXPECT_EQ(post(R"({"expression":"v, i = top_k([3, 1, 4], 2); v, i","output":"npy"})").status, 400);
  const json::value kept = run(R"({"expression":"[1.0, 2]","keep":true})");
  const std::string place(at(kept, "download").as_string());
  EXPECT_EQ(server().get(place).body.substr(0, 6), "\x93NUMPY");
  EXPECT_EQ(server().get(place + "?format=safetensors").status, 200);
  EXPECT_EQ(server().get(place + "?format=zip").status, 400);
  EXPECT_EQ(server().get("/api/results/r_0").status, 404);
}

TEST_F(Execute, AnyPartOfAKeptResultCanBeRead) {
  const json::value kept = run(
      R"({"expression":"t = reshape(arange(0, 60000), [3, 200, 100]); v, i = top_k(t, 1); t, v","keep":true,"compare":false})");
  EXPECT_EQ(at(kept, "results", 0, "name"), "t");
  EXPECT_EQ(at(kept, "results", 1, "name"), "v");
  const std::string place(at(kept, "download").as_string());
  const auto values = [&](const std::string& query) { return json::parse(server().get(place + "/values" + query).body); };
  const json::value window = values("?at=2&row=198&column=97&rows=5&columns=2");
  EXPECT_EQ(at(window, "slice", "rows").as_array().size(), 2u);
  EXPECT_EQ(at(window, "slice", "values", 1, 1), 59998);
  EXPECT_EQ(at(values("?at=1"), "slice", "values", 63, 63), 39999);
  EXPECT_EQ(at(values("?index=1&at=2&row=0"), "slice", "values", 0, 0), 40099);
  for (const char* query : {"?at=3&row=0", "?at=0&row=200", "?row=0", "?at=x&row=0", "?index=2"})
    EXPECT_EQ(server().get(place + "/values" + query).status, 400) << query;
}

TEST_F(Execute, TheReferenceOfIntegersIsExact) {
  const json::value answer =
      run(R"({"expression":"x + 0","inputs":{"x":{"value":[9007199254740993, -9223372036854775807],"dtype":"int64"}}})");
  EXPECT_EQ(at(answer, "results", 0, "comparison", "reference_value"), 9007199254740993);
  EXPECT_EQ(at(answer, "results", 0, "comparison", "reference_sample_values", 1), -9223372036854775807);
  EXPECT_EQ(at(answer, "results", 0, "comparison", "matches"), true);
  EXPECT_EQ(at(answer, "torch_value"), 9007199254740993);
}

TEST_F(Execute, TheGridShowsAnySizeInAtMost64By64) {
  const json::value answer =
      run(R"({"operation":"identity","inputs":[{"generator":"range","shape":[2,1000,100]}],"compare":false})");
  const json::value& grid = at(answer, "results", 0, "grid");
  EXPECT_EQ(at(grid, "rows").as_array().size(), 64u);
  EXPECT_EQ(at(grid, "rows", 63), 999);
  EXPECT_EQ(at(grid, "columns", 63), 99);
  EXPECT_EQ(at(grid, "values", 63, 63).to_number<double>(), 99999);
}

TEST_F(Execute, ComparesTheWholeTensorByTheDtypesOwnPrecision) {
  // 0.1 in bfloat16 is off by 0.0001; an absolute limit of 0.001 would pass anything here and nothing at 1e6.
  const json::value large = run(
      R"({"operation":"mul","inputs":[{"generator":"range","shape":[1000],"start":1000,"step":1000,"dtype":"bfloat16"},{"type":"scalar","value":3}]})");
  EXPECT_EQ(at(large, "results", 0, "comparison", "matches"), true);
  EXPECT_GT(at(large, "results", 0, "comparison", "max_abs").to_number<double>(), 0.001);
  EXPECT_LE(at(large, "results", 0, "comparison", "max_ulp").to_number<double>(), 2);
  EXPECT_GT(at(large, "results", 0, "comparison", "pcc").to_number<double>(), 0.999);
  std::int64_t counted = 0;
  for (const json::value& count : at(large, "results", 0, "comparison", "ulp_histogram", "counts").as_array())
    counted += count.as_int64();
  EXPECT_EQ(counted, 1000);
  const json::value huge = run(R"({"operation":"neg","inputs":[{"value":1,"shape":[5000000]}],"details":false})");
  EXPECT_NE(at(huge, "results", 0, "comparison", "skipped").as_string(), "");
}

TEST_F(Execute, EveryOpOfTheCalculatorIsThere) {
  std::istringstream names(
      "abs acos acosh asin asinh atan atanh cbrt ceil celu clamp clip clone cos cosh deg2rad elu eqz erf erfc erfinv exp exp2 "
      "expm1 "
      "floor frac gelu gez gtz hardsigmoid hardswish hardtanh heaviside i0 identity isfinite isinf isnan isneginf isposinf "
      "leaky_relu "
      "lez lgamma log log10 log1p log2 log_sigmoid logical_not logit ltz mish neg nez prelu rad2deg reciprocal relu relu6 round "
      "rsqrt "
      "selu sigmoid sigmoid_accurate sign signbit silu sin sinh softplus softshrink softsign sqrt square swish tan tanh "
      "tanhshrink "
      "threshold tril triu trunc add addalpha subalpha mul multiply subtract div divide div_no_nan floor_div remainder fmod gcd "
      "lcm "
      "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 hypot xlogy squared_difference "
      "gt "
      "lt ge le eq ne isclose maximum minimum pow atan2 addcdiv addcmul mac where lerp");
  std::string name;
  int count = 0;
  for (; names >> name; ++count) EXPECT_NE(lookup_op(name), nullptr) << name;
  EXPECT_EQ(count, 123);
}

struct Refused {
  int status;
  const char* body;
  const char* part;  // of the message
};

TEST_F(Execute, RefusesWithTheRightStatusAndASentence) {
  const Refused cases[] = {
      {400, R"([])", "object"},
      {400, R"({"operation":"add"} x)", "not JSON"},
      {400, R"({})", "either 'operation' or 'expression'"},
      {400, R"({"operation":"add","expression":"1"})", "either"},
      {400, R"({"operation":"add","inputz":[]})", "inputz"},
      {404, R"({"operation":"sofmax","inputs":[{"value":1}]})", "sofmax"},
      {404, R"({"operation":"__class__","inputs":[{"value":1}]})", "__class__"},
      {400, R"({"operation":"add","inputs":[{"value":1}]})", "add"},
      {400, R"({"operation":"add","inputs":[{"value":[1,2]},{"value":[1,2,3]}]})", "[2]"},
      {400, R"({"operation":"neg","inputs":[{"value":[[1,2],[3]]}]})", "different lengths"},
      {400, R"({"operation":"neg","inputs":[{"value":[1,[2]]}]})", "different depths"},
      {400, R"({"operation":"neg","inputs":[{"value":"two"}]})", "number"},
      {400, R"({"operation":"neg","inputs":[{"value":1,"shape":"a,b"}]})", "shape"},
      {400, R"({"operation":"neg","inputs":[{"value":1,"shape":[-1]}]})", "input 'x'"},
      {400, R"({"operation":"neg","inputs":[{"value":1,"dtype":"float33"}]})", "float33"},
      {400, R"({"operation":"neg","inputs":[{"value":1,"colour":1}]})", "colour"},
      {400, R"({"operation":"neg","inputs":[{}]})", "value"},
      {400, R"({"operation":"neg","inputs":[{"generator":"gaussian","shape":[2]}]})", "gaussian"},
      {400, R"({"operation":"elu","inputs":[{"value":1}],"parameters":{"beta":1}})", "beta"},
      {400, R"({"operation":"elu","inputs":[{"value":1}],"parameters":{"alpha":"x"}})", "alpha"},
      {404, R"({"operation":"neg","inputs":[{"value":1}],"device":"gpu:77"})", "gpu:77"},
      {400, R"({"operation":"neg","inputs":[{"value":1}],"repeat":0})", "repeat"},
      {400, R"({"operation":"neg","inputs":[{"value":1}],"output":"png"})", "output"},
      {400, R"({"expression":"a +","inputs":{"a":1}})", "column"},
      {400, R"({"expression":"a","inputs":{"a":1,"b":2}})", "'b'"},
      {413, R"({"operation":"neg","inputs":[{"value":1,"shape":[1000000,1000000]}]})", "elements"},
      {413, R"({"operation":"neg","inputs":[{"value":1,"shape":[9000000000000000000]}]})", "elements"},
      {413, R"json({"expression":"ones([100000, 100000])"})json", "elements"},
      {413, R"json({"expression":"rand([60000, 1000]) @ rand([1000, 60000])"})json", "elements"},
      {413, R"({"operation":"neg","inputs":[{"value":1,"shape":[2000000]}],"output":"full"})", "full"},
  };
  for (const Refused& test : cases) {
    const Reply reply = post(test.body);
    EXPECT_EQ(reply.status, test.status) << test.body << "\n" << reply.body;
    const json::value problem = reply.json();
    EXPECT_NE(at(problem, "detail").as_string().find(test.part), std::string::npos) << test.body << "\n" << reply.body;
    EXPECT_EQ(at(problem, "success"), false);
    EXPECT_EQ(at(problem, "status"), test.status);
  }
}

TEST_F(Execute, ErrorsInExpressionsHaveTheirPlace) {
  const json::value problem = post(R"json({"expression":"1 + sofmax(x)","inputs":{"x":1}})json").json();
  const json::value& place = at(problem, "place");
  EXPECT_EQ(at(place, "length"), 6);
  EXPECT_EQ(at(problem, "hint"), "did you mean 'softmax'?");
}

TEST_F(Execute, DeepJsonIsRefused) {
  EXPECT_EQ(post(R"({"operation":"neg","inputs":[{"value":)" + std::string(100'000, '[')).status, 400);
  EXPECT_EQ(post(std::string(100'000, '{')).status, 400);
}

TEST_F(Execute, CheckTellsTypesWithoutComputing) {
  const json::value full =
      server()
          .post("/api/check", R"({"expression":"a @ b","inputs":{"a":{"value":1,"shape":[2,3]},"b":{"value":1,"shape":[3,4]}}})")
          .json();
  EXPECT_EQ(json::serialize(at(full, "results", 0, "shape")), "[2,4]");
  const json::value partial =
      server().post("/api/check", R"({"expression":"a @ b","inputs":{"a":{"value":1,"shape":[2,3]}}})").json();
  EXPECT_EQ(json::serialize(at(partial, "missing")), R"(["b"])");
  EXPECT_EQ(server().post("/api/check", R"({"expression":"a @"})").status, 400);
}

TEST_F(Execute, TheSameRequestAgainAnswersTheSame) {
  const char* const request =
      R"({"operation":"add","inputs":[{"value":1,"shape":[32,32]},{"value":2,"shape":[32,32]}],"compare":false,"details":false})";
  TestClient client = server().client();
  for (int i = 0; i < 50; ++i) {
    const Reply reply = client.request("POST", "/api/execute", request);
    ASSERT_EQ(reply.status, 200);
    ASSERT_EQ(at(reply.json(), "value"), 3.0);
  }
}

TEST(ExecuteLimits, MemoryOfOneRequestAndOfAllIsBounded) {
  ServerOptions options;
  options.max_request_memory = 1 << 20;
  options.max_memory = 12 << 20;
  options.upload_quota_bytes = 1 << 20;
  const TestServer server(options);
  EXPECT_EQ(server.post("/api/execute", R"({"operation":"neg","inputs":[{"value":1,"shape":[1000000]}]})").status, 413);
  EXPECT_EQ(server.post("/api/execute", R"json({"expression":"sum(rand([1000, 1000]) @ rand([1000, 1000]))"})json").status, 413);
  EXPECT_EQ(server.post("/api/execute", R"({"operation":"neg","inputs":[{"value":1,"shape":[10000]}],"compare":false})").status,
            200);
  const std::string file = text_of(format_npy(HostArray::zeros(DType::u8, {700'000})));
  EXPECT_EQ(server.post("/api/uploads", file, "Content-Type: application/octet-stream\r\n").status, 201);
  EXPECT_EQ(server.post("/api/uploads", file, "Content-Type: application/octet-stream\r\n").status, 429);
  const std::string most = text_of(format_npy(HostArray::zeros(DType::u8, {5 << 19})));
  const Reply full = server.post("/api/uploads", most, "Content-Type: application/octet-stream\r\n");
  EXPECT_EQ(full.status, 429) << "with the first one more than a client's quarter";
  EXPECT_NE(full.field("retry-after"), "");
}

TEST(ExecuteLimits, ArithmeticIsBounded) {
  ServerOptions options;
  options.max_operations = 1e6;
  const TestServer server(options);
  EXPECT_EQ(server.post("/api/execute", R"json({"expression":"rand([200, 200]) @ rand([200, 200])"})json").status, 413);
}

TEST_F(Execute, RoutingAndPreferenceAreOfOneRequest) {
  const json::value fastest = run(R"({"expression":"1 + 1","routing":"fastest"})");
  EXPECT_EQ(at(fastest, "device", "id").as_string(), "cpu:0");
  EXPECT_TRUE(at(fastest, "cost").is_object());
  EXPECT_EQ(post(R"({"expression":"1 + 1","routing":"quickest"})").status, 400);
  EXPECT_EQ(post(R"({"expression":"1 + 1","routing":"fastest","device":"cpu:0"})").status, 400);
  EXPECT_EQ(post(R"({"expression":"1 + 1","routing":"pinned"})").status, 400);
}

TEST_F(Execute, ResultsHaveTheNamesOfTheExpression) {
  const json::value answer = run(R"({"expression":"values, indices = top_k(x, 2); values, indices","inputs":{"x":[3,1,4]}})");
  EXPECT_EQ(at(answer, "results").as_array()[0].at("name").as_string(), "values");
  EXPECT_EQ(at(answer, "results").as_array()[1].at("name").as_string(), "indices");
}

TEST_F(Execute, LogLinesHaveTimes) {
  const json::value answer = run(R"({"expression":"1 + 1"})");
  EXPECT_EQ(at(answer, "status_log").as_array().size(), at(answer, "status_log_seconds").as_array().size());
}

TEST_F(Execute, AFractionIsNoInteger) {
  const Reply refused = post(R"({"operation":"gcd","inputs":[1.5,2]})");
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_NE(refused.body.find("1.5 is not one"), std::string::npos) << refused.body;
  EXPECT_EQ(post(R"({"operation":"gcd","inputs":[[4.0,6],[2,3]]})").status, 200);
}

TEST_F(Execute, ReferencesOfIntegersAreExact) {
  const json::value answer =
      run(R"({"operation":"add","inputs":[{"value":9007199254740993,"dtype":"int64"},{"value":0,"dtype":"int64"}]})");
  EXPECT_EQ(at(answer, "value").as_int64(), 9007199254740993);
  EXPECT_EQ(at(answer, "torch_value").as_int64(), 9007199254740993);
}

TEST_F(Execute, CsvAndNpzAreUploads) {
  const auto sum_of = [&](const std::string& id) {
    return at(run(R"j({"expression":"sum(x)","inputs":{"x":{"upload":")j" + id + R"j("}}})j"), "value");
  };
  EXPECT_EQ(sum_of(upload("1,2\n3,4\n", "m.csv")).as_int64(), 10);
  const std::string npz = text_of(format_npz({.arrays = {{"a", HostArray::from<float>({2}, {1, 2})}}}));
  EXPECT_EQ(sum_of(upload(npz, "m.npz")).as_double(), 3);
  const auto count = [&] { return at(server().get("/api/uploads").json(), "uploads").as_array().size(); };
  const std::size_t before = count();
  const std::string damaged("\x01\x02\x03", 3);
  EXPECT_EQ(server().post("/api/uploads?name=x", damaged, "Content-Type: application/octet-stream\r\n").status, 400);
  EXPECT_EQ(count(), before) << "a refused file leaves none";
}

TEST_F(Execute, PastedTextIsData) {
  const json::value answer = run(R"j({"expression":"sum(x)","inputs":{"x":{"expression":"tensor([[1., 2.], [3., 4.]])"}}})j");
  EXPECT_EQ(at(answer, "value").as_double(), 10);
}

TEST_F(Execute, TensorsAreEncodedAndDecoded) {
  const std::string npy = text_of(format_npy(HostArray::from<float>({4}, {1, 2, 3, 4})));
  const std::string_view binary = "Content-Type: application/octet-stream\r\n";
  const Reply report = server().post("/api/encode/report?as=bfloat16", npy, binary);
  EXPECT_EQ(report.status, 200) << report.body;
  EXPECT_EQ(at(report.json(), "tensors").as_array()[0].at("ratio").as_double(), 2);
  const Reply encoded = server().post("/api/encode?as=bfloat16", npy, binary);
  EXPECT_EQ(encoded.status, 200) << encoded.body;
  const Reply decoded = server().post("/api/decode?format=npy", encoded.body, binary);
  EXPECT_EQ(decoded.status, 200) << decoded.body;
  EXPECT_EQ(parse_npy(std::as_bytes(std::span(decoded.body))).to_doubles(), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(server().post("/api/encode?as=int7", npy, binary).status, 400);
}

TEST_F(Execute, TheCatalogueIsSentCompressedToThoseWhoTakeIt) {
  const Reply plain = server().get("/api/catalogue");
  const Reply packed = server().get("/api/catalogue", "Accept-Encoding: br;q=0.5, gzip\r\n");
  EXPECT_EQ(packed.status, 200);
  if (packed.field("content-encoding") != "gzip") GTEST_SKIP() << "this build has no zlib";
  EXPECT_LT(packed.body.size() * 4, plain.body.size());
  EXPECT_EQ(packed.body.substr(0, 2), "\x1f\x8b");
}

}  // namespace
}  // namespace tenon::server
