// Changed GGUF files of small language models: the architecture, the weights in every form, and the programs that use them.
#include "array/io/byte_source.h"
#include "fuzz/fuzzer.h"
#include "fuzz/model/gguf_bytes.h"
#include "model/decoder/architecture.h"
#include "model/decoder/programs.h"
#include "model/decoder/weights.h"
#include "model/gguf/gguf_file.h"

namespace tenon {
namespace {

constexpr std::uint64_t kWidth = 32, kWords = 4;

// One layer of width 32 with two heads that share keys. |type|: of the matrices, with |row| bytes for 32 elements.
std::string small_model(const std::string& architecture, std::uint32_t type, std::size_t row, std::uint32_t experts = 0) {
  fuzz::GgufBytes out;
  const std::string a = architecture + ".";
  out.text("general.architecture", architecture)
      .integer(a + "block_count", 1)
      .integer(a + "embedding_length", kWidth)
      .integer(a + "feed_forward_length", kWidth)
      .integer(a + "attention.head_count", 2)
      .integer(a + "attention.head_count_kv", 1)
      .integer(a + "context_length", 64)
      .real(a + "attention.layer_norm_rms_epsilon", 1e-5f)
      .real(a + "rope.freq_base", 10000);
  const auto matrix = [&](const std::string& name, std::uint64_t rows) { out.tensor(name, {kWidth, rows}, type, rows * row); };
  const auto vector = [&](const std::string& name, std::uint64_t extent) { out.tensor(name, {extent}, 0, extent * 4); };
  matrix("token_embd.weight", kWords);
  vector("output_norm.weight", kWidth);
  vector("blk.0.attn_norm.weight", kWidth);
  vector("blk.0.ffn_norm.weight", kWidth);
  matrix("blk.0.attn_q.weight", kWidth);
  matrix("blk.0.attn_k.weight", kWidth / 2);
  matrix("blk.0.attn_v.weight", kWidth / 2);
  if (architecture == "qwen2")
    for (const char* name : {"q", "k", "v"})
      vector(std::string("blk.0.attn_") + name + ".bias", name[0] == 'q' ? kWidth : kWidth / 2);
  matrix("blk.0.attn_output.weight", kWidth);
  if (experts > 0) {
    out.integer(a + "expert_count", experts)
        .integer(a + "expert_used_count", 1)
        .integer(a + "expert_feed_forward_length", kWidth);
    out.tensor("blk.0.ffn_gate_inp.weight", {kWidth, experts}, 0, kWidth * experts * 4);
    for (const char* name : {"gate", "up", "down"}) matrix(std::string("blk.0.ffn_") + name + "_exps.weight", kWidth * experts);
    return out.file();
  }
  matrix("blk.0.ffn_gate.weight", kWidth);
  matrix("blk.0.ffn_up.weight", kWidth);
  matrix("blk.0.ffn_down.weight", kWidth);
  return out.file();
}

void build(fuzz::Bytes bytes) {
  const gguf::GgufFile file = gguf::GgufFile::read(std::make_shared<MemorySource>(bytes, "gguf data"));
  const decoder::Architecture a = decoder::architecture_of(file);
  fuzz::require(a.angles() == std::max<std::int64_t>(a.rotated / 2 * (a.has_two_sets ? 2 : 1), 1), "frequencies for other pairs");
  for (const decoder::WeightForm form :
       {decoder::WeightForm::as_stored, decoder::WeightForm::half, decoder::WeightForm::single}) {
    const decoder::Weights weights = decoder::load_weights(file, a, form, true);
    std::vector<decoder::StepProgram> programs;
    programs.push_back(decoder::prefill(a, weights, 16, 0, false));
    programs.push_back(decoder::decode(a, weights, 2, 64));
    if (a.is_uniform()) programs.push_back(decoder::advance(a, weights, 2, 64, 2));
    for (const decoder::StepProgram& program : programs)
      fuzz::require(program.feeds.size() == program.graph.inputs().size(), "an input of a program that nothing feeds");
  }
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "decoder"};
  target.seeds = {small_model("llama", 0, 128),     small_model("llama", 2, 18),  small_model("qwen2", 8, 34),
                  small_model("llama", 1, 64),      small_model("gemma2", 1, 64), small_model("gptneox", 8, 34),
                  small_model("gpt2", 0, 128),      small_model("gemma3", 2, 18), small_model("bloom", 1, 64),
                  small_model("cohere2", 8, 34),    small_model("falcon", 2, 18), small_model("llama", 8, 34, 2),
                  small_model("qwen2moe", 2, 18, 3)};
  target.words = {"llama",
                  "qwen3",
                  "phi3",
                  "olmo2",
                  "attn_qkv",
                  "post_attention_norm",
                  "attn_logit_softcapping",
                  "attention.sliding_window",
                  "block_count",
                  "rope.dimension_count",
                  "rope.scaling.type",
                  "expert_count",
                  "expert_used_count",
                  "expert_shared_feed_forward_length",
                  "chatglm",
                  "olmo",
                  "stablelm",
                  "attn_norm_2",
                  "token_embd_norm",
                  "rope_factors_long.weight",
                  "yarn",
                  "attention.key_length",
                  "output.weight",
                  "rope_freqs.weight",
                  std::string(4, '\xff'),
                  std::string(8, '\xff'),
                  std::string(8, '\0'),
                  std::string("\x02\0\0\0", 4),
                  std::string("\x08\0\0\0", 4)};
  target.parse = build;
  // Frequencies: up to 2^23 for a width that the file claims; weights in three forms.
  target.bound = [](std::size_t bytes) { return 4096 * bytes + (std::uint64_t{1} << 29); };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
