#include "tenon/model/encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "source_folder.h"
#include "temporary_folder.h"
#include "tenon/array/io.h"
#include "tenon/device/simulated.h"
#include "tenon/error.h"
#include "tenon/manager.h"
#include "tenon/manager/config.h"
#include "tenon/tensor.h"

namespace tenon {
namespace {

Encoder words(EncoderOptions options = {}) { return Encoder::load(source_folder() / "tests/fixtures/models/words", options); }

// Texts of 1 to 12 words.
std::vector<std::string> texts_of(int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    std::string text(1, static_cast<char>('a' + i % 6));
    for (int k = 0; k < i % 12; ++k) text += std::string(" ") + static_cast<char>('a' + (i + k) % 6);
    texts.push_back(std::move(text));
  }
  return texts;
}

void write_file(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

double largest_difference(const HostArray& a, const HostArray& b) {
  double most = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) most = std::max(most, std::abs(a.value(i) - b.value(i)));
  return most;
}

Config with_devices(std::initializer_list<const char*> devices) {
  Config config;
  config.keep_open = KeepOpenPolicy::always;  // a device that closes takes its weights down, which is not the subject here
  for (const char* device : devices) config.simulated.push_back(parse_simulated(device));
  return config;
}

std::uint64_t runs_on(const DeviceManager& manager, std::string_view id) {
  for (const DeviceStatus& status : manager.status())
    if (status.device.id == id) return status.counters.runs;
  return 0;
}

// Texts of one and two tokens too, whose products alone would be those of a vector.
TEST(EncoderBatches, AVectorHasTheSameBitsWhateverElseIsEncoded) {
  EncoderOptions options;
  options.max_tokens = 16;
  const auto encoder = [&](std::int64_t batch) {
    options.batch = batch;
    return Encoder::of(Model::load(source_folder() / "tests/model/bert/model.safetensors"),
                       Tokenizer::load(source_folder() / "tests/fixtures/models/words/tokenizer.json"), options);
  };
  const std::vector<std::string> texts = texts_of(36);
  const HostArray alone = encoder(1).encode(texts);
  for (const std::int64_t batch : {2, 5, 36}) EXPECT_EQ(largest_difference(encoder(batch).encode(texts), alone), 0) << batch;
}

TEST(EncoderFiles, AFolderMayKeepItsModelInAFolderNamedOnnx) {
  const test::TemporaryFolder folder;
  const std::filesystem::path from = source_folder() / "tests/fixtures/models/words";
  std::filesystem::copy_file(from / "tokenizer.json", folder.path() / "tokenizer.json");
  try {
    Model::load(folder.path());
    ADD_FAILURE() << "there is no model";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
  }
  std::filesystem::create_directory(folder.path() / "onnx");
  std::filesystem::copy_file(from / "model.onnx", folder.path() / "onnx/model.onnx");
  EXPECT_EQ(Model::load(folder.path()).info().inputs.size(), Model::load(from).info().inputs.size());
  const std::vector<std::string> texts = texts_of(3);
  EXPECT_EQ(largest_difference(Encoder::load(folder.path()).encode(texts), words().encode(texts)), 0);
}

TEST(EncoderFiles, TheModelsFilesSayHowTextsAreCutAndPooled) {
  const test::TemporaryFolder folder;
  for (const char* file : {"model.onnx", "tokenizer.json"})
    std::filesystem::copy_file(source_folder() / "tests/fixtures/models/words" / file, folder.path() / file);
  const auto options = [&](EncoderOptions given = {}) { return Encoder::load(folder.path(), given).options(); };
  EXPECT_EQ(options().max_tokens, 512);
  EXPECT_EQ(options().pooling, EncoderOptions::Pooling::mean);
  write_file(folder.path() / "config.json", R"({"max_position_embeddings": 128})");
  EXPECT_EQ(options().max_tokens, 128);
  write_file(folder.path() / "config.json", R"({"max_position_embeddings": 8192})");
  EXPECT_EQ(options().max_tokens, 512);
  write_file(folder.path() / "sentence_bert_config.json", R"({"max_seq_length": 3})");
  EXPECT_EQ(options().max_tokens, 3);
  EXPECT_LE(Encoder::load(folder.path()).tokens("one two three four five").ids.size(), 3u);
  write_file(folder.path() / "1_Pooling/config.json", R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  EXPECT_EQ(options().pooling, EncoderOptions::Pooling::first);
  EXPECT_EQ(options({.pooling = EncoderOptions::Pooling::mean, .max_tokens = 7}).max_tokens, 7);
  write_file(folder.path() / "config.json", "no json");
  EXPECT_EQ(options().max_tokens, 3);
  using Pooling = EncoderOptions::Pooling;
  for (const auto& [key, how] : {std::pair("max_tokens", Pooling::max),
                                 {"lasttoken", Pooling::last},
                                 {"mean_sqrt_len_tokens", Pooling::mean_sqrt_len},
                                 {"weightedmean_tokens", Pooling::weighted_mean}}) {
    write_file(folder.path() / "1_Pooling/config.json", "{\"pooling_mode_" + std::string(key) + "\": true}");
    EXPECT_EQ(options().pooling, how) << key;
  }
  write_file(folder.path() / "1_Pooling/config.json", R"({"pooling_mode": "lasttoken"})");
  EXPECT_EQ(options().pooling, Pooling::last);
  write_file(folder.path() / "1_Pooling/config.json", R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})");
  EXPECT_THROW(options(), Error);
}

// By sentence-transformers' formulas.
TEST(EncoderPooling, EachWayGivesItsVector) {
  const Model model = Model::load(source_folder() / "tests/model/bert/model.safetensors");
  const Tokenizer tokenizer = Tokenizer::load(source_folder() / "tests/fixtures/models/words/tokenizer.json");
  const std::vector<std::string> texts{"a b c", "d", "b c d a b"};
  using Pooling = EncoderOptions::Pooling;
  for (const Pooling how :
       {Pooling::mean, Pooling::first, Pooling::last, Pooling::max, Pooling::mean_sqrt_len, Pooling::weighted_mean}) {
    const Encoder encoder = Encoder::of(model, tokenizer, {.pooling = how, .normalize = false});
    const HostArray vectors = encoder.encode(texts);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Tokens tokens = encoder.tokens(texts[i]);
      const auto n = static_cast<std::int64_t>(tokens.ids.size());
      const std::vector<std::int64_t> ids(tokens.ids.begin(), tokens.ids.end()), ones(tokens.ids.size(), 1),
          zeros(tokens.ids.size(), 0);
      const auto tensor = [&](const std::vector<std::int64_t>& values) {
        return Tensor::from<std::int64_t>(values, Shape{1, n});
      };
      const HostArray states =
          model({{"input_ids", tensor(ids)}, {"attention_mask", tensor(ones)}, {"token_type_ids", tensor(zeros)}})
              .at("last_hidden_state")
              .to_host();
      for (std::int64_t j = 0; j < 24; ++j) {
        double sum = 0, weighted = 0, most = -1e9;
        for (std::int64_t k = 0; k < n; ++k) {
          const double value = states.value(k * 24 + j);
          sum += value;
          weighted += value * static_cast<double>(k + 1);
          most = std::max(most, value);
        }
        const double count = static_cast<double>(n);
        const double wanted = how == Pooling::mean            ? sum / count
                              : how == Pooling::first         ? states.value(j)
                              : how == Pooling::last          ? states.value((n - 1) * 24 + j)
                              : how == Pooling::max           ? most
                              : how == Pooling::mean_sqrt_len ? sum / std::sqrt(count)
                                                              : weighted / (count * (count + 1) / 2);
        ASSERT_NEAR(vectors.value(static_cast<std::int64_t>(i) * 24 + j), wanted, 1e-4)
            << static_cast<int>(how) << " " << i << " " << j;
      }
    }
  }
}

TEST(EncoderFiles, ModulesThatFollowTheModelAreApplied) {
  const test::TemporaryFolder folder;
  for (const char* name : {"model.safetensors", "config.json"})
    std::filesystem::copy_file(source_folder() / "tests/model/bert" / name, folder.path() / name);
  std::filesystem::copy_file(source_folder() / "tests/fixtures/models/words/tokenizer.json", folder.path() / "tokenizer.json");
  const std::vector<std::string> texts{"a b c", "d"};
  const HostArray plain = Encoder::load(folder.path(), {.normalize = false}).encode(texts);
  const std::string model = R"({"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"})";
  const auto modules = [&](const std::string& more) { write_file(folder.path() / "modules.json", "[" + model + more + "]"); };
  modules(
      R"(, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}, {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}, {"path": "3_Normalize", "type": "sentence_transformers.models.Normalize"})");
  EXPECT_THROW(Encoder::load(folder.path()), Error) << "there are no weights";
  HostArray weight = HostArray::empty(DType::f32, Shape{2, 24});
  for (std::size_t i = 0; i < 48; ++i)
    weight.mutable_view<float>()[i] = 0.01f * static_cast<float>(static_cast<int>(i * 7 % 31) - 15);
  const std::vector<float> bias{0.25f, -0.5f};
  std::filesystem::create_directory(folder.path() / "2_Dense");
  save_safetensors(
      folder.path() / "2_Dense/model.safetensors",
      {.arrays = {{"linear.weight", weight}, {"linear.bias", HostArray::from<float>(Shape{2}, bias)}}, .metadata = {}});
  for (const bool has_tanh : {false, true}) {
    write_file(folder.path() / "2_Dense/config.json", has_tanh
                                                          ? R"({"activation_function": "torch.nn.modules.activation.Tanh"})"
                                                          : R"({"activation_function": "torch.nn.modules.linear.Identity"})");
    const HostArray vectors = Encoder::load(folder.path(), {.normalize = false}).encode(texts);
    ASSERT_EQ(vectors.shape(), (Shape{2, 2}));
    for (std::int64_t i = 0; i < 2; ++i)
      for (std::int64_t j = 0; j < 2; ++j) {
        double wanted = bias[static_cast<std::size_t>(j)];
        for (std::int64_t k = 0; k < 24; ++k) wanted += plain.value(i * 24 + k) * weight.value(j * 24 + k);
        EXPECT_NEAR(vectors.value(i * 2 + j), has_tanh ? std::tanh(wanted) : wanted, 1e-4);
      }
  }
  modules(R"(, {"path": "2_CNN", "type": "sentence_transformers.models.CNN"})");
  EXPECT_THROW(Encoder::load(folder.path()), Error);
  modules(R"(, {"path": "../2_Dense", "type": "sentence_transformers.models.Dense"})");
  EXPECT_THROW(Encoder::load(folder.path()), Error);
}

// Every batch takes 20 ms of a device and next to nothing of the CPU: what counts is which device got how many.
TEST(EncoderOnSeveralDevices, TwoShareTheBatchesAndKeepTheOrder) {
  const std::vector<std::string> texts = texts_of(160);
  const HostArray alone = words({.batch = 4}).encode(texts);
  DeviceManager manager(with_devices({"gpu,id=a,open=0,close=0,compute=20ms", "gpu,id=b,open=0,close=0,compute=20ms"}));
  const UseManager use(manager);
  const std::vector<std::string> devices{"a", "b"};
  std::vector<std::size_t> seen;
  const HostArray shared = words({.batch = 4}).encode(texts, devices, {}, [&](std::size_t done) { seen.push_back(done); });
  ASSERT_EQ(shared.shape(), alone.shape());
  EXPECT_EQ(largest_difference(shared, alone), 0);
  EXPECT_EQ(seen.size(), 40u);
  EXPECT_EQ(seen.back(), 160u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  const std::uint64_t a = runs_on(manager, "a"), b = runs_on(manager, "b");
  EXPECT_GE(static_cast<double>(a + b) / static_cast<double>(std::max(a, b)), 1.8) << a << " and " << b << " runs";
}

TEST(EncoderOnSeveralDevices, FourWorkersMayShareTwoDevices) {
  const std::vector<std::string> texts = texts_of(60);
  const HostArray alone = words({.batch = 4}).encode(texts);
  DeviceManager manager(with_devices({"gpu,id=a,open=0,close=0", "gpu,id=b,open=0,close=0"}));
  const UseManager use(manager);
  const std::vector<std::string> devices{"a", "b", "a", "b"};
  EXPECT_EQ(largest_difference(words({.batch = 4}).encode(texts, devices), alone), 0);
}

TEST(EncoderOnSeveralDevices, WeightsStayOnEachDevice) {
  DeviceManager manager(with_devices({"gpu,id=a,open=0,close=0", "gpu,id=b,open=0,close=0"}));
  const UseManager use(manager);
  const Encoder encoder = words({.batch = 4});
  const std::vector<std::string> texts = texts_of(4), devices{"a", "b"};
  for (int i = 0; i < 10; ++i)
    for (const std::string& device : devices) encoder.encode(texts, {.device = device});
  for (const DeviceStatus& status : manager.status())
    if (status.device.id == "a" || status.device.id == "b") {
      EXPECT_EQ(status.counters.restores, 0u) << status.device.id;
    }
}

TEST(EncoderOnSeveralDevices, ADeviceThatIsNotThereEndsTheCall) {
  DeviceManager manager(with_devices({"gpu,id=a,open=0,close=0"}));
  const UseManager use(manager);
  const std::vector<std::string> texts = texts_of(40), devices{"a", "nowhere"};
  try {
    words({.batch = 1}).encode(texts, devices);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
  }
}

TEST(Encoder, RoundedShapesNeedFewProgramsAndGiveTheSameVectors) {
  const std::vector<std::string> texts = texts_of(47);
  const Encoder exact = words({.batch = 5, .rounds_shapes = false}), rounded = words({.batch = 5, .rounds_shapes = true});
  const HostArray a = exact.encode(texts), b = rounded.encode(texts);
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_LT(largest_difference(a, b), 1e-6);
  EXPECT_GE(exact.model().programs(), 5u);
  EXPECT_EQ(rounded.model().programs(), 2u);  // 8 and 2 rows, of 16 tokens each
}

// A device on which a run costs the same whatever its batch: the largest is best. The profile has it measured.
TEST(Encoder, TakesItsBatchFromMeasuredTimes) {
  DeviceManager manager(with_devices({"gpu,id=a,open=0,close=0,compute=30ms"}));
  const UseManager use(manager);
  const Encoder encoder = words({.batch = 0});
  const auto inputs = [](std::int64_t batch) {
    const HostArray ids = HostArray::zeros(DType::i64, Shape{batch, 3});
    return Model::Tensors{{"input_ids", Tensor(ids)}, {"attention_mask", Tensor(ids)}};
  };
  // Several times each: the fastest counts, and the others may have been disturbed.
  for (std::int64_t batch = 1; batch <= 16; batch *= 2)
    for (int i = 0; i < 4; ++i) encoder.model()(inputs(batch), {.device = "a"});
  EXPECT_EQ(encoder.model().recommended_batch(inputs, "a", 16), 16);
  const std::vector<std::string> texts(64, "a b c");
  const std::uint64_t before = runs_on(manager, "a");
  const HostArray vectors = encoder.encode(texts, {.device = "a"});
  EXPECT_EQ(vectors.shape()[0], 64);
  EXPECT_LE(runs_on(manager, "a") - before, 16u);  // one text at a time they would be 64 and more
}

// The fixture has ten thousand parameters: the strategy for small models leaves it 60 % of the device.
TEST(Encoder, TheModelsSizeSetsTheMemoryThatItMayTake) {
  const Model model = Model::load(source_folder() / "tests/model/bert/model.safetensors");
  Config config = optimize_for_model_size(with_devices({"gpu,id=a,open=0,close=0,memory=1MiB"}),
                                          static_cast<double>(model.info().parameters));
  EXPECT_EQ(config.memory_strategy, MemoryStrategy::conservative);
  DeviceManager manager(config);
  const UseManager use(manager);
  const auto inputs = [](std::int64_t batch) {
    const HostArray ones = HostArray::full(DType::i64, Shape{batch, 16}, 1),
                    zeros = HostArray::zeros(DType::i64, Shape{batch, 16});
    return Model::Tensors{{"input_ids", Tensor(ones)}, {"attention_mask", Tensor(ones)}, {"token_type_ids", Tensor(zeros)}};
  };
  model(inputs(1), {.device = "a"});
  for (const DeviceStatus& status : manager.status())
    if (status.device.id == "a") {
      EXPECT_EQ(status.memory_limit_bytes, (1 << 20) * 6 / 10);
      EXPECT_GT(status.memory_peak_bytes, model.info().weight_bytes / 2);
    }
  try {
    model(inputs(512), {.device = "a"}).begin()->second.to_host();
    FAIL() << "more than its share was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource_exhausted) << error.what();
  }
}

}  // namespace
}  // namespace tenon
