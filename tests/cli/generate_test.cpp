// tenon generate, and tenon model info of a GGUF file.
#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "cli/cli_testing.h"
#include "source_folder.h"
#include "tenon/model/generator.h"

namespace tenon::cli {
namespace {

using namespace testing;

std::string fixture(const char* name) { return (source_folder() / "tests/model/gguf" / name).string(); }

TEST(Generate, PrintsTheTextAndReportsItsSpeed) {
  const Outcome one = tenon({"generate", "hello", "--model", fixture("llama_q4_1.gguf"), "--max-tokens", "5", "--device", "cpu"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_TRUE(contains(one.err, "1 prompt tokens")) << one.err;
  EXPECT_TRUE(contains(one.err, "tokens/s")) << one.err;
  const Outcome again =
      tenon({"generate", "hello", "--model", fixture("llama_q4_1.gguf"), "--max-tokens", "5", "--json", "--quiet"});
  EXPECT_EQ(again.err, "");
  const boost::json::object json = again.json();
  EXPECT_EQ(std::string(json.at("text").as_string()) + "\n", one.out);
  EXPECT_EQ(json.at("ids").as_array().size(), 5u);
  EXPECT_EQ(json.at("finish").as_string(), "length");
}

TEST(Generate, ADashReadsThePromptAndATextMayBeginWithOne) {
  const auto prompt_tokens = [](const char* prompt) {
    return tenon({"generate", prompt, "--model", fixture("llama_q4_1.gguf"), "--max-tokens", "1", "--json"})
        .json()
        .at("prompt_tokens")
        .as_int64();
  };
  std::istringstream given("hello hello hello\n");
  std::streambuf* const before = std::cin.rdbuf(given.rdbuf());
  const std::int64_t read = prompt_tokens("-");
  std::cin.rdbuf(before);
  EXPECT_EQ(read, prompt_tokens("hello hello hello"));
  const Generator generator = Generator::load(fixture("llama_q4_1.gguf"));
  EXPECT_EQ(prompt_tokens("-hello"), std::ssize(generator.tokens("-hello")));
  EXPECT_NE(prompt_tokens("-hello"), std::ssize(generator.tokens(" -hello"))) << "or the line above shows nothing";
}

TEST(Generate, SpeaksInTheChatFormat) {
  const std::vector<std::string> common{"generate",     "hello", "--model", fixture("llama_q4_1.gguf"),
                                        "--max-tokens", "2",     "--json"};
  const auto with = [&](std::initializer_list<const char*> more) {
    std::vector<std::string> arguments = common;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return tenon(arguments).json().at("prompt_tokens").as_int64();
  };
  EXPECT_EQ(with({}), 1);
  EXPECT_GT(with({"--chat"}), 10);
  EXPECT_GT(with({"--system", "the"}), with({"--chat"}));
}

TEST(Generate, RefusesWhatIsNoLanguageModel) {
  const Outcome missing = tenon({"generate", "x", "--model", "/nowhere/model.gguf"});
  EXPECT_EQ(missing.status, 3) << missing.err;
  const Outcome other = tenon({"generate", "x", "--model", fixture("blocks.gguf")});
  EXPECT_EQ(other.status, 1) << other.err;
  EXPECT_TRUE(contains(other.err, "architecture 'none' is not supported")) << other.err;
  const Outcome plain = tenon({"generate", "x", "--chat", "--model", fixture("qwen2_f16.gguf")});
  EXPECT_TRUE(contains(plain.err, "has no chat template")) << plain.err;
}

TEST(Generate, ShowsWhatAFileSaysAboutItself) {
  const Outcome text = tenon({"model", "info", fixture("llama_q4_1.gguf")});
  EXPECT_TRUE(contains(text.out, "GGUF 3, ")) << text.out;
  EXPECT_TRUE(contains(text.out, "llama.embedding_length")) << text.out;
  const boost::json::object json = tenon({"model", "info", fixture("llama_q4_1.gguf"), "--json"}).json();
  EXPECT_EQ(json.at("metadata").as_object().at("general.architecture").as_string(), "llama");
  EXPECT_EQ(json.at("tensors").as_array().size(), 20u);
}

TEST(Generate, TakesAFolderOfSafetensors) {
  const std::string folder = (source_folder() / "tests/model/decoders/qwen2").string();
  const Outcome one = tenon({"generate", "hello", "--model", folder, "--max-tokens", "5", "--json", "--chat", "--device", "cpu"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(one.json().at("prompt_tokens").as_int64(), 24);
  const Outcome info = tenon({"model", "info", folder});
  EXPECT_TRUE(contains(info.out, "safetensors, ")) << info.out << info.err;
  EXPECT_TRUE(contains(info.out, "qwen2.embedding_length")) << info.out;
}

}  // namespace
}  // namespace tenon::cli
