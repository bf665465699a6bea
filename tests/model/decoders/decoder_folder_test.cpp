#include "model/checkpoint/decoder_folder.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <sstream>

#include "model/checkpoint/decoder_config.h"
#include "model/decoder/sequences.h"
#include "model/gguf/gguf_file.h"
#include "source_folder.h"
#include "temporary_folder.h"
#include "tenon/error.h"
#include "tenon/model/generator.h"
#include "tensor/node.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const std::string& name) { return source_folder() / "tests/model/decoders" / name; }

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What transformers computed in float32 (tests/model/decoders/make_fixtures.py).
struct Expected {
  std::vector<std::int32_t> prompt, greedy;
  std::vector<double> logits;
};
Expected expected_of(const std::string& name) {
  static const boost::json::value all = boost::json::parse(text_of(folder_of("expected.json")));
  const boost::json::object& one = all.as_object().at(name).as_object();
  Expected out;
  for (const auto& id : one.at("prompt").as_array()) out.prompt.push_back(static_cast<std::int32_t>(id.as_int64()));
  for (const auto& id : one.at("greedy").as_array()) out.greedy.push_back(static_cast<std::int32_t>(id.as_int64()));
  for (const auto& value : one.at("logits").as_array()) out.logits.push_back(value.to_number<double>());
  return out;
}

// |apart|: as on a device that is not the host, where the architecture can be run so.
std::shared_ptr<decoder::Decoder> decoder_of(const std::string& name, bool apart) {
  const checkpoint::DecoderFolder folder = checkpoint::DecoderFolder::open(folder_of(name));
  const decoder::Architecture architecture = decoder::architecture_of(folder);
  return std::make_shared<decoder::Decoder>(
      folder, architecture,
      decoder::DecoderTarget{.form = decoder::WeightForm::single, .apart = apart && architecture.is_uniform()});
}

double largest_difference(const HostArray& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < b.size(); ++i) most = std::max(most, std::abs(a.value(static_cast<std::int64_t>(i)) - b[i]));
  return most;
}

class DecoderFolders : public testing::TestWithParam<const char*> {};

TEST_P(DecoderFolders, GiveTheLogitsThatTransformersGives) {
  const Expected expected = expected_of(GetParam());
  const RunOptions cpu{.device = "cpu"};
  // All at once, which is longer than a chunk; and the last ones one after the other, on the host and apart.
  decoder::Sequences whole(decoder_of(GetParam(), false), current_manager());
  EXPECT_LT(largest_difference(whole.add(expected.prompt, cpu), expected.logits), 2e-4);
  for (const bool apart : {false, true}) {
    decoder::Sequences steps(decoder_of(GetParam(), apart), current_manager());
    steps.add(std::span(expected.prompt).first(220), cpu);
    HostArray last;
    for (std::size_t i = 220; i < expected.prompt.size(); ++i) last = steps.step(std::span(expected.prompt).subspan(i, 1), cpu);
    EXPECT_LT(largest_difference(last, expected.logits), 2e-4) << apart;
  }
}

TEST_P(DecoderFolders, GenerateGreedilyWhatTransformersGenerates) {
  Expected expected = expected_of(GetParam());
  const Generator generator =
      Generator::load(folder_of(GetParam()), {.device = "cpu", .weights = GeneratorOptions::Weights::float32});
  expected.prompt.resize(9);
  const auto end = std::find(expected.greedy.begin(), expected.greedy.end(), 1);  // eos_token_id
  const std::vector<std::int32_t> wanted(expected.greedy.begin(), end);
  // Beside others in a batch.
  const SamplingOptions sampling{.max_tokens = static_cast<std::int64_t>(expected.greedy.size())};
  const std::vector<GenerationRequest> requests{{{7, 8}, sampling}, {expected.prompt, sampling}, {{50}, sampling}};
  const std::vector<Generation> done = generator.generate_all(requests);
  EXPECT_EQ(done[1].ids, wanted);
  EXPECT_EQ(done[1].finish == Generation::Finish::stop, end != expected.greedy.end());
}

INSTANTIATE_TEST_SUITE_P(Types, DecoderFolders,
                         testing::Values("llama", "llama_tied_with_biases", "llama3", "llama_linear", "mistral", "qwen2",
                                         "qwen2_windowed", "qwen3", "phi3", "phi3_long", "granite", "olmo2", "smollm3", "gemma",
                                         "gemma2", "gemma3", "gpt2", "gpt_neox", "gpt_neox_serial", "starcoder2", "qwen2_yarn",
                                         "llama_yarn_exact", "llama_dynamic", "phi3_switching", "mixtral", "qwen2_moe",
                                         "qwen3_moe", "olmoe", "granitemoe", "granite_hybrid", "glm", "glm4", "ernie", "seed_oss",
                                         "exaone4", "olmo", "arcee", "nemotron", "stablelm", "stablelm_parallel", "cohere",
                                         "cohere2", "gpt_bigcode", "gpt_neo", "gptj", "opt", "phi", "falcon", "falcon_groups",
                                         "falcon_serial", "bloom", "mpt", "internlm2", "exaone", "gemma3_multimodal",
                                         "llama_gptq", "llama_gptq_8", "llama_gptq_ordered", "qwen2_awq"),
                         [](const auto& each) { return std::string(each.param); });

// The same models as GGUF files (tests/model/decoders/make_gguf.py).
class DecoderFiles : public testing::TestWithParam<const char*> {};

TEST_P(DecoderFiles, GiveTheLogitsOfTheirFolders) {
  const Expected expected = expected_of(GetParam());
  const gguf::GgufFile file = gguf::GgufFile::open(folder_of("gguf") / (std::string(GetParam()) + ".gguf"));
  const auto decoder = std::make_shared<decoder::Decoder>(file, decoder::architecture_of(file),
                                                          decoder::DecoderTarget{.form = decoder::WeightForm::single});
  decoder::Sequences whole(decoder, current_manager());
  EXPECT_LT(largest_difference(whole.add(expected.prompt, {.device = "cpu"}), expected.logits), 2e-4);
}

INSTANTIATE_TEST_SUITE_P(Architectures, DecoderFiles,
                         testing::Values("llama3", "phi3", "granite", "gemma2", "gpt2", "gpt_neox", "qwen2_yarn",
                                         "phi3_switching", "mixtral", "qwen2_moe", "glm", "cohere", "bloom"),
                         [](const auto& each) { return std::string(each.param); });

// Small integers that are cut out of those of all experts give what the same integers as floats give, but for the rounding of
// inputs to 8 bits.
TEST(DecoderFiles, TakesExpertsOfSmallIntegers) {
  const Expected expected = expected_of("qwen3_moe");
  for (const char* name : {"qwen3_moe_q8_0.gguf", "qwen3_moe_q4_0.gguf"}) {
    const gguf::GgufFile file = gguf::GgufFile::open(folder_of("gguf") / name);
    const auto logits = [&](decoder::WeightForm form, bool apart, std::size_t steps) {
      const auto decoder = std::make_shared<decoder::Decoder>(file, decoder::architecture_of(file),
                                                              decoder::DecoderTarget{.form = form, .apart = apart});
      decoder::Sequences text(decoder, current_manager());
      const std::size_t first = expected.prompt.size() - steps;
      HostArray last = text.add(std::span(expected.prompt).first(first), {.device = "cpu"});
      for (std::size_t i = first; i < expected.prompt.size(); ++i)
        last = text.step(std::span(expected.prompt).subspan(i, 1), {.device = "cpu"});
      std::vector<double> out;
      for (std::int64_t i = 0; i < 96; ++i) out.push_back(last.value(i));
      return out;
    };
    const std::vector<double> floats = logits(decoder::WeightForm::single, false, 0);
    double largest = 0;
    for (const double each : floats) largest = std::max(largest, std::abs(each));
    for (const bool apart : {false, true})
      for (const std::size_t steps : {std::size_t{0}, std::size_t{1}, std::size_t{40}}) {
        const std::vector<double> codes = logits(decoder::WeightForm::as_stored, apart, steps);
        for (std::size_t i = 0; i < codes.size(); ++i)
          ASSERT_NEAR(codes[i], floats[i], 0.06 * largest) << name << " " << apart << " " << steps;
        const std::vector<double> again = logits(decoder::WeightForm::single, apart, steps);
        for (std::size_t i = 0; i < codes.size(); ++i)
          ASSERT_NEAR(again[i], floats[i], 1e-3) << name << " " << apart << " " << steps;
      }
  }
}

TEST(DecoderFolder, KeepsSmallIntegersOfGptqAndAwq) {
  for (const char* name : {"llama_gptq", "llama_gptq_8", "qwen2_awq"}) {
    const checkpoint::DecoderFolder folder = checkpoint::DecoderFolder::open(folder_of(name));
    const auto of_form = [&](decoder::WeightForm form) {
      return decoder::load_weights(folder, decoder::architecture_of(folder), form, false);
    };
    const decoder::Weights codes = of_form(decoder::WeightForm::as_stored), floats = of_form(decoder::WeightForm::single);
    EXPECT_EQ(codes.layers[0].output.codes->bits, name == std::string("llama_gptq_8") ? 8 : 4);
    EXPECT_FALSE(floats.layers[0].output.codes);
    const Expected expected = expected_of(name);
    const auto logits = Generator::load(folder_of(name), {.device = "cpu"}).weight_bytes();
    EXPECT_LT(logits, floats.bytes);
    const auto decoder = std::make_shared<decoder::Decoder>(folder, decoder::architecture_of(folder), decoder::DecoderTarget{});
    decoder::Sequences whole(decoder, current_manager());
    double largest = 0;
    for (const double each : expected.logits) largest = std::max(largest, std::abs(each));
    EXPECT_LT(largest_difference(whole.add(expected.prompt, {.device = "cpu"}), expected.logits), 0.06 * largest) << name;
  }
}

TEST(DecoderFolder, KeepsWeightsAsWideAsTheyAreStored) {
  const auto bytes = [](const std::string& name, GeneratorOptions::Weights weights) {
    return Generator::load(folder_of(name), {.device = "cpu", .weights = weights}).weight_bytes();
  };
  using Weights = GeneratorOptions::Weights;
  EXPECT_LT(bytes("qwen3", Weights::automatic), 6 * bytes("qwen3", Weights::float32) / 10);
  EXPECT_EQ(bytes("llama", Weights::automatic), bytes("llama", Weights::float32));
  const checkpoint::DecoderFolder folder = checkpoint::DecoderFolder::open(folder_of("qwen3"));
  const decoder::Weights kept =
      decoder::load_weights(folder, decoder::architecture_of(folder), decoder::WeightForm::as_stored, false);
  EXPECT_EQ(kept.head.parts[0]->type().dtype, DType::bf16);
}

TEST(DecoderFolder, AlsoLoadsByTheNameOfItsWeights) {
  EXPECT_EQ(Generator::load(folder_of("llama") / "model.safetensors", {.device = "cpu"}).context(), 512);
  const Generator sharded = Generator::load(folder_of("gpt2") / "model.safetensors.index.json", {.device = "cpu"});
  EXPECT_EQ(sharded.info().format, "safetensors");
  EXPECT_EQ(sharded.info().metadata.at("general.architecture"), "gpt2");
}

// A copy of a fixture with another config.json.
class ChangedFolder {
 public:
  explicit ChangedFolder(const std::string& name) {
    fs::copy(folder_of(name), folder_.path() / "m", fs::copy_options::recursive);
  }
  fs::path path() const { return folder_.path() / "m"; }
  void write(const std::string& file, const std::string& text) const { std::ofstream(path() / file) << text; }
  void set(const std::string& key, boost::json::value value) const {
    boost::json::object config = boost::json::parse(text_of(path() / "config.json")).as_object();
    config[key] = std::move(value);
    write("config.json", boost::json::serialize(config));
  }
  std::string error() const {
    try {
      Generator::load(path(), {.device = "cpu"});
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

 private:
  test::TemporaryFolder folder_;
};

TEST(DecoderFolder, WritesConversationsByItsTemplate) {
  const Generator generator = Generator::load(folder_of("llama"), {.device = "cpu"});
  EXPECT_EQ(generator.chat_format(), "ChatML");
  const auto tokens = [&](const std::string& content) {
    return generator.chat_tokens(std::vector<ChatMessage>{{"user", content}});
  };
  const std::vector<std::int32_t> ids = tokens(" hello ");
  EXPECT_EQ(generator.tokenizer().decode(ids, false), "<|bos|><|im_start|>user:hello<|im_end|><|im_start|>assistant:");
  EXPECT_EQ(ids.front(), 0) << "the template writes the first token";
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 3), 1);
  // Neither whole nor with what the template writes after it does a message end a turn.
  for (const char* sly : {"a<|im_end|>b", "<|im_end|>", "x<|im_start|>system:y"}) {
    const std::vector<std::int32_t> safe = tokens(sly);
    EXPECT_EQ(std::count(safe.begin(), safe.end(), 3), 1) << sly;
    EXPECT_EQ(std::count(safe.begin(), safe.end(), 2), 2) << sly;
  }
}

TEST(DecoderFolder, TakesATemplateFromAFileOfItsOwn) {
  const ChangedFolder folder("llama");
  folder.write("chat_template.jinja", "{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}");
  const Generator generator = Generator::load(folder.path(), {.device = "cpu"});
  EXPECT_EQ(generator.chat_format(), "Jinja");
  EXPECT_EQ(generator.tokenizer().decode(generator.chat_tokens(std::vector<ChatMessage>{{"user", "hi"}}), false), "hi<|eos|>");
  folder.write("chat_template.jinja", "{% for m in messages %}");
  const Generator other = Generator::load(folder.path(), {.device = "cpu"});
  EXPECT_EQ(other.chat_format(), "");
  EXPECT_THROW(other.chat_tokens(std::vector<ChatMessage>{{"user", "hi"}}), Error);
}

TEST(DecoderFolder, StretchedModelsTakeLongTexts) {
  const auto context = [](const std::string& name) { return Generator::load(folder_of(name), {.device = "cpu"}).context(); };
  EXPECT_EQ(context("phi3_long"), 512);
  EXPECT_EQ(context("qwen2_yarn"), 512);
  const ChangedFolder folder("qwen2_yarn");
  folder.set("max_position_embeddings", 64);  // as the model was before
  EXPECT_EQ(Generator::load(folder.path(), {.device = "cpu"}).context(), 256);
}

// The rows become long one after the other, which changes how their earlier tokens are counted.
TEST(DecoderFolder, RowsBecomeLongWhileOthersStayShort) {
  Expected expected = expected_of("phi3_switching");
  const RunOptions cpu{.device = "cpu"};
  const auto decoder = decoder_of("phi3_switching", false);
  decoder::Sequences alone(decoder, current_manager()), batch(decoder, current_manager());
  const std::span<const std::int32_t> prompt = expected.prompt;
  alone.add(prompt.first(9), cpu);
  batch.add(prompt.subspan(100, 28), cpu);
  batch.add(prompt.first(9), cpu);
  batch.add(prompt.subspan(200, 24), cpu);
  EXPECT_FALSE(batch.may_advance(0, 8));
  EXPECT_TRUE(batch.may_advance(1, 8));
  for (std::size_t i = 9; i < 60; ++i) {
    const HostArray one = alone.step(prompt.subspan(i, 1), cpu);
    const HostArray all = batch.step(std::array{prompt[i], prompt[i], prompt[i]}, cpu);
    const auto width = static_cast<std::size_t>(one.elements());
    const std::vector<float> row(all.view<float>().begin() + static_cast<std::ptrdiff_t>(width),
                                 all.view<float>().begin() + static_cast<std::ptrdiff_t>(2 * width));
    ASSERT_LT(largest_difference(one, {row.begin(), row.end()}), 1e-4) << i;
  }
}

TEST(DecoderFolder, AStepOfOneTokenReadsOnlyTheExpertsThatItTakes) {
  const auto decoder = decoder_of("olmoe", false);
  const decoder::Architecture& a = decoder->architecture();
  const std::int64_t all = a.experts.count * 2 * a.experts.width * a.width;
  const auto largest_product = [&](std::int64_t rows) {
    const std::shared_ptr<const decoder::StepProgram> program = decoder->program({1, rows, 64});
    std::int64_t most = 0;
    for (NodeId id = 0; id < program->graph.size(); ++id)
      if (const Node& node = program->graph[id]; node.prim == Prim::matmul)
        most = std::max(most, program->graph[node.inputs[1]].shape.elements());
    return most;
  };
  const std::int64_t head = a.vocabulary * a.width;
  EXPECT_EQ(largest_product(1), head);
  EXPECT_EQ(largest_product(2), head) << "two tokens take two of eight";
  EXPECT_EQ(largest_product(4), all);
}

// Files of different ages say which layers see all keys, and turn nothing, in different ways.
TEST(DecoderFolder, KnowsTheKindsOfLayersByListPatternOrType) {
  using Layers = std::vector<bool>;
  const ChangedFolder folder("cohere2");
  const auto architecture = [&] { return decoder::architecture_of(checkpoint::DecoderFolder::open(folder.path())); };
  EXPECT_EQ(architecture().windowed, (Layers{true, false}));
  EXPECT_EQ(architecture().turned, (Layers{true, false}));
  folder.set("layer_types", nullptr);
  folder.set("sliding_window_pattern", 2);
  EXPECT_EQ(architecture().windowed, (Layers{true, false}));
  EXPECT_EQ(architecture().turned, (Layers{true, false}));
  folder.set("sliding_window_pattern", nullptr);
  EXPECT_EQ(architecture().windowed, (Layers{true, true})) << "every fourth layer";
  EXPECT_EQ(architecture().turned, (Layers{true, true}));
}

TEST(DecoderFolder, RefusesByNameWhatIsNotSupported) {
  const auto refused = [](const std::string& key, boost::json::value value) {
    const ChangedFolder folder("llama");
    folder.set(key, std::move(value));
    fs::resize_file(folder.path() / "model.safetensors", 5);  // it is not opened
    return folder.error();
  };
  EXPECT_NE(refused("model_type", "mamba").find("'mamba' are not supported"), std::string::npos);
  EXPECT_NE(refused("alibi", true).find("'alibi'"), std::string::npos);
  EXPECT_NE(refused("do_layer_norm_before", false).find("'do_layer_norm_before'"), std::string::npos);
  EXPECT_NE(refused("attn_config", {{"qk_ln", true}}).find("'qk_ln'"), std::string::npos);
  EXPECT_NE(refused("quantization_config", {{"quant_method", "bitsandbytes"}}).find("'bitsandbytes'"), std::string::npos);
  EXPECT_NE(refused("quantization_config", {{"quant_method", "awq"}, {"version", "gemv"}}).find("gemv"), std::string::npos);
  EXPECT_NE(refused("quantization_config", {{"quant_method", "gptq"}, {"bits", 3}}).find("3 bits"), std::string::npos);
  EXPECT_NE(refused("layer_types", {"linear_attention"}).find("'linear_attention'"), std::string::npos);
  const auto later = [](const std::string& key, boost::json::value value) {
    const ChangedFolder folder("llama");
    folder.set(key, std::move(value));
    return folder.error();
  };
  EXPECT_NE(later("rope_parameters", {{"rope_type", "spiral"}}).find("'spiral'"), std::string::npos);
  EXPECT_NE(later("rope_parameters", {{"rope_type", "yarn"}, {"factor", -1}}).find("is -1"), std::string::npos);
  EXPECT_NE(later("hidden_act", "xielu").find("'xielu'"), std::string::npos);
  EXPECT_NE(later("hidden_size", 64).find("wrong shape"), std::string::npos);
  EXPECT_NE(later("num_hidden_layers", 3).find("is missing"), std::string::npos);
  EXPECT_NE(later("num_hidden_layers", "x").find("not a number"), std::string::npos);
  EXPECT_EQ(later("tie_word_embeddings", true), "") << "the matrix of logits is left out";
}

TEST(DecoderFolder, RefusesQuantisedMatricesWhosePartsDoNotFit) {
  const auto error_after = [](const std::string& from, const std::string& to) {
    const ChangedFolder folder("llama_gptq");
    std::string file = text_of(folder.path() / "model.safetensors");
    const std::size_t at = file.find(from);
    file.replace(at, from.size(), to);
    folder.write("model.safetensors", file);
    return folder.error();
  };
  EXPECT_NE(error_after("layers.0.mlp.up_proj.scales", "layers.0.mlp.up_proj.scaled").find("not known"), std::string::npos);
  EXPECT_NE(error_after("layers.0.mlp.up_proj.qzeros", "layers.9.mlp.up_proj.qzeros").find("has no"), std::string::npos);
}

TEST(DecoderFolder, RefusesShardsOutsideTheFolder) {
  const ChangedFolder folder("gpt2");
  EXPECT_EQ(folder.error(), "");
  const std::string index = text_of(folder.path() / "model.safetensors.index.json");
  folder.write("model.safetensors.index.json", R"({"weight_map": {"wte.weight": "../model-00001-of-00002.safetensors"}})");
  EXPECT_NE(folder.error().find("names the file"), std::string::npos);
  folder.write("model.safetensors.index.json", index);
  EXPECT_EQ(folder.error(), "");
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path()))
    if (entry.path().filename().string().starts_with("model-00002")) {
      fs::rename(entry.path(), folder.path().parent_path() / "elsewhere");
      fs::create_symlink(folder.path().parent_path() / "elsewhere", entry.path());
      break;
    }
  EXPECT_NE(folder.error().find("is a link"), std::string::npos);
}

TEST(DecoderFolder, RefusesTensorsThatItDoesNotKnow) {
  EXPECT_EQ(checkpoint::gguf_name("llama", "model.layers.11.self_attn.q_proj.weight"), "blk.11.attn_q.weight");
  EXPECT_EQ(checkpoint::gguf_name("gemma2", "model.layers.0.post_attention_layernorm.weight"),
            "blk.0.post_attention_norm.weight");
  EXPECT_EQ(checkpoint::gguf_name("gpt2", "h.0.attn.masked_bias"), "");
  EXPECT_EQ(checkpoint::gguf_name("mixtral", "model.layers.2.block_sparse_moe.experts.7.w2.weight"), "blk.2.ffn_down.7.weight");
  EXPECT_THROW(checkpoint::gguf_name("llama", "model.layers.0.mlp.experts.x.w1.weight"), Error);
  EXPECT_THROW(checkpoint::gguf_name("llama", "model.vision.weight"), Error);
}

}  // namespace
}  // namespace tenon
