// config.pbtxt and the folder of models.
#include "server/models/model_config.h"

#include <gtest/gtest.h>

#include "server/models/model_folder.h"
#include "server/models/models.h"
#include "temporary_folder.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

using test_models::write_file;

TEST(ModelConfig, ReadsWhatTritonsFilesSay) {
  const ModelConfig config = read_model_config(R"(
# a comment
name: "net"
platform: "onnxruntime_onnx"
max_batch_size: 16
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3, -1 ] }, { name: 'y' data_type: TYPE_INT64 dims: [ 1 ] } ]
output { name: "z" data_type: TYPE_FP32 dims: 2 }
instance_group [ { count: 2 kind: KIND_CPU } ]
version_policy: { specific: { versions: [1, 3] } }
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 100
  default_queue_policy { default_timeout_microseconds: 5000 max_queue_size: 12 }
}
model_warmup [ { name: "w" batch_size: 4 inputs { key: "x" value { data_type: TYPE_FP32 dims: [3, 8] zero_data: true } } } ]
parameters { key: "latency_objective_ms" value { string_value: "250" } }
parameters [ { key: "pooling" value: { string_value: "first" } } ]
parameters [ { key: "dtype" value: { string_value: "bfloat16" } } ]
)",
                                               "net");
  EXPECT_EQ(config.max_batch_size, 16);
  EXPECT_EQ(config.devices, (std::vector<std::string>{"cpu", "cpu"}));
  EXPECT_EQ(config.specific, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(config.timeout.count(), 5000);
  EXPECT_EQ(config.max_queue, 12u);
  EXPECT_EQ(config.latency_objective.count(), 250);
  EXPECT_EQ(config.encoder.pooling, EncoderOptions::Pooling::first);
  EXPECT_EQ(config.encoder.model.products, DType::bf16);
  ASSERT_EQ(config.warm_up.size(), 1u);
  EXPECT_EQ(config.warm_up[0].dims.at("x"), (std::vector<std::int64_t>{3, 8}));
}

TEST(ModelConfig, RefusesWhatIsNotOneWithThePlace) {
  for (const char* text : {"name: \"other\"", "max_batch_size: -1", "max_batch_size: many", "x {", "x: [1, 2", "x", "}",
                           "name: \"a", "x: {y: {z: }}"})
    EXPECT_THROW(read_model_config(text, "net"), Error) << text;
  EXPECT_THROW(read_model_config(std::string(100000, '{'), "net"), Error);
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "x{";
  EXPECT_THROW(read_model_config(deep, "net"), Error);
  try {
    read_model_config("name: \"net\"\n\nmax_batch_size {", "net");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("line 3"), std::string::npos) << error.what();
  }
}

TEST(ModelFolder, FindsTritonsLayoutAndPlainFiles) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "plain.onnx", "x");
  write_file(folder.path() / "net" / "config.pbtxt", "name: \"net\" version_policy: {latest: {num_versions: 2}}");
  for (const char* version : {"1", "2", "10"}) write_file(folder.path() / "net" / version / "model.onnx", "x");
  write_file(folder.path() / "text" / "model.onnx", "x");
  write_file(folder.path() / "text" / "tokenizer.json", "{}");
  write_file(folder.path() / "text" / "config.json", R"({"max_position_embeddings": 128})");
  write_file(folder.path() / "wrong" / "config.pbtxt", "max_batch_size: many");
  write_file(folder.path() / "empty" / "1" / "readme", "x");
  write_file(folder.path() / "notes" / "readme.md", "x");
  write_file(folder.path() / "a b.onnx", "x");
  std::string found;
  for (const ModelSource& source : scan_models(folder.path())) {
    found += source.name + ":" + std::to_string(source.version) + (source.problem.empty() ? "" : "!") + " ";
    if (source.name == "text") {
      EXPECT_TRUE(source.tokenizer);
      EXPECT_EQ(source.config.encoder.max_tokens, 128);
    }
  }
  EXPECT_EQ(found, "empty:1! net:2 net:10 plain:1 text:1 wrong:1! ");
  EXPECT_THROW(scan_models(folder.path() / "missing"), Error);
}

}  // namespace
}  // namespace tenon::server
