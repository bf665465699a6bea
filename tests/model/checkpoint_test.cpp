#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <sstream>

#include "model/checkpoint/encoder.h"
#include "source_folder.h"
#include "temporary_folder.h"
#include "tenon/array/io.h"
#include "tenon/error.h"
#include "tenon/model.h"
#include "tenon/model/encoder.h"

namespace tenon {
namespace {

std::filesystem::path fixture(const char* name) { return source_folder() / "tests/model/bert" / name; }

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// expected.json has what NumPy computed in double precision (make_fixture.py).
TEST(Checkpoint, ABertGivesTheStatesThatNumPyGives) {
  const boost::json::value all = boost::json::parse(text_of(fixture("expected.json")));
  const auto integers = [&](const char* name) {
    std::vector<std::int64_t> out;
    for (const auto& value : all.as_object().at(name).as_array()) out.push_back(value.as_int64());
    return Tensor::from<std::int64_t>(std::span<const std::int64_t>(out), Shape{2, 5});
  };
  const Model model = Model::load(fixture("model.safetensors"));
  const Model::Tensors out =
      model({{"input_ids", integers("ids")}, {"attention_mask", integers("mask")}, {"token_type_ids", integers("types")}});
  const std::vector<float> states = out.at("last_hidden_state").to_vector<float>();
  const boost::json::array& expected = all.as_object().at("states").as_array();
  ASSERT_EQ(states.size(), expected.size());
  for (std::size_t i = 0; i < states.size(); ++i) ASSERT_NEAR(states[i], expected[i].to_number<double>(), 2e-5) << i;
}

// checkpoints/TYPE/expected.json has what Hugging Face's transformers computed (checkpoints/make_fixtures.py), in double
// precision. States of tokens that the mask leaves out are not compared: nobody reads them.
class Relative : public testing::TestWithParam<const char*> {};

TEST_P(Relative, GivesTheStatesThatTransformersGives) {
  const std::filesystem::path folder = source_folder() / "tests/model/checkpoints" / GetParam();
  const boost::json::value all = boost::json::parse(text_of(folder / "expected.json"));
  const auto integers = [&](const char* name) {
    std::vector<std::int64_t> out;
    for (const auto& value : all.as_object().at(name).as_array()) out.push_back(value.as_int64());
    return out;
  };
  const std::vector<std::int64_t> ids = integers("ids"), mask = integers("mask"), shape = integers("shape");
  const auto tensor = [&](const std::vector<std::int64_t>& values) {
    return Tensor::from<std::int64_t>(std::span<const std::int64_t>(values), Shape{shape[0], shape[1]});
  };
  const Model model = Model::load(folder / "model.safetensors");
  Model::Tensors inputs{{"input_ids", tensor(ids)}, {"attention_mask", tensor(mask)}};
  if (model.info().inputs.size() > 2)
    inputs.emplace("token_type_ids",
                   tensor(all.as_object().contains("types") ? integers("types") : std::vector<std::int64_t>(ids.size())));
  const bool is_classifier = model.info().outputs[0].name == "logits";
  const std::vector<float> states = model(inputs).at(model.info().outputs[0].name).to_vector<float>();
  const boost::json::array& expected = all.as_object().at("states").as_array();
  ASSERT_EQ(states.size(), expected.size());
  const std::size_t width = states.size() / ids.size();
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (is_classifier || mask[i / width] == 1) {
      ASSERT_NEAR(states[i], expected[i].to_number<double>(), 2e-5) << i;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(OfBert, Relative,
                         testing::Values("roberta", "distilbert", "mpnet", "electra", "albert", "deberta", "deberta_plain",
                                         "modernbert", "nomic_bert", "gte", "t5", "t5_gated", "bert_classifier",
                                         "roberta_classifier", "distilbert_classifier", "mpnet_classifier", "electra_classifier",
                                         "albert_classifier", "deberta_classifier", "modernbert_classifier"),
                         [](const auto& each) { return std::string(each.param); });

TEST(Checkpoint, XlmRobertaAndCamembertAreRobertas) {
  const std::filesystem::path folder = source_folder() / "tests/model/checkpoints/roberta";
  const ArrayFile weights = load_safetensors(folder / "model.safetensors");
  const std::string config = text_of(folder / "config.json");
  for (const char* type : {"xlm-roberta", "camembert"}) {
    std::string changed = config;
    changed.replace(changed.find("\"roberta\""), 9, '"' + std::string(type) + '"');
    EXPECT_EQ(checkpoint::encoder_as_onnx(changed, weights), checkpoint::encoder_as_onnx(config, weights)) << type;
  }
}

TEST(Checkpoint, AFolderIsAnEncoder) {
  const test::TemporaryFolder folder;
  for (const char* name : {"model.safetensors", "config.json"}) std::filesystem::copy_file(fixture(name), folder.path() / name);
  std::filesystem::copy_file(source_folder() / "tests/fixtures/models/words/tokenizer.json", folder.path() / "tokenizer.json");
  const Encoder encoder = Encoder::load(folder.path());
  const std::vector<std::string> texts{"a b c", "d"};
  const HostArray vectors = encoder.encode(texts);
  EXPECT_EQ(vectors.shape(), (Shape{2, 24}));
  double length = 0;
  for (std::int64_t i = 0; i < 24; ++i) length += vectors.value(i) * vectors.value(i);
  EXPECT_NEAR(length, 1, 1e-5);
}

TEST(Checkpoint, WhatIsNotSupportedOrMissingIsNamed) {
  const ArrayFile weights = load_safetensors(fixture("model.safetensors"));
  const std::string config = text_of(fixture("config.json"));
  const auto message = [&](const std::string& json, const ArrayFile& arrays) -> std::string {
    try {
      checkpoint::encoder_as_onnx(json, arrays);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = config;
    return changed.replace(changed.find(from), from.size(), to);
  };
  EXPECT_NE(message(with("\"bert\"", "\"longformer\""), weights).find("'longformer'"), std::string::npos);
  EXPECT_NE(message(with("gelu", "mish"), weights).find("'mish'"), std::string::npos);
  EXPECT_NE(message(with("\"hidden_size\": 24", "\"hidden_size\": -1"), weights).find("hidden_size"), std::string::npos);
  EXPECT_NE(message(with("\"hidden_size\": 24", "\"hidden_size\": 48"), weights).find("needs"), std::string::npos);
  EXPECT_NE(message("[", weights).find("JSON"), std::string::npos);
  ArrayFile fewer = weights;
  fewer.arrays.erase("bert.encoder.layer.1.output.dense.bias");
  EXPECT_NE(message(config, fewer).find("encoder.layer.1.output.dense.bias"), std::string::npos);
}

}  // namespace
}  // namespace tenon
