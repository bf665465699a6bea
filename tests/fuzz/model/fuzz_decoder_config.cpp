// Changed config.json files of language models, and names of tensors.
#include "fuzz/fuzzer.h"
#include "model/checkpoint/decoder_config.h"
#include "tenon/error.h"

namespace tenon {
namespace {

fuzz::Target make_target() {
  fuzz::Target target{.name = "decoder_config"};
  const std::string sizes =
      R"("hidden_size":64,"intermediate_size":96,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"rms_norm_eps":1e-06,)";
  target.seeds = {
      R"({"model_type":"llama",)" + sizes +
          R"("rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":128},"tie_word_embeddings":true})",
      R"({"model_type":"gemma3_text",)" + sizes +
          R"("sliding_window":32,"layer_types":["sliding_attention","full_attention"],"rope_parameters":{"full_attention":{"rope_theta":1e6},"sliding_attention":{"rope_theta":1e4}}})",
      R"({"model_type":"phi3",)" + sizes +
          R"("rope_scaling":{"type":"su","short_factor":[1.0,1.5],"long_factor":[2,2]},"original_max_position_embeddings":4096,"partial_rotary_factor":0.5})",
      R"({"model_type":"gpt2","n_embd":64,"n_layer":2,"n_head":4,"n_inner":null,"n_positions":512,"activation_function":"gelu_new"})"};
  target.words = {"null",
                  "-1",
                  "1e400",
                  "9223372036854775807",
                  "true",
                  "[]",
                  "{}",
                  "\"qwen2\"",
                  "\"mistral\"",
                  "\"granite\"",
                  "\"smollm3\"",
                  "\"head_dim\"",
                  "\"rope_theta\"",
                  "\"max_window_layers\"",
                  "\"use_sliding_window\"",
                  "\"no_rope_layers\"",
                  "\"linear\""};
  target.parse = [](fuzz::Bytes bytes) {
    const std::string_view text = fuzz::text_of(bytes);
    const checkpoint::DecoderConfig config = checkpoint::decoder_config(text);
    fuzz::require(checkpoint::is_decoder_config(text), "a configuration that is read but not known");
    fuzz::require(config.settings.contains("general.architecture"), "no architecture");
    try {
      (void)checkpoint::gguf_name(config.type, "model.layers.0." + std::string(text.substr(0, 40)));
    } catch (const Error&) {  // not the name of a tensor
    }
  };
  target.bound = [](std::size_t bytes) { return 4096 * bytes + (1 << 26); };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
