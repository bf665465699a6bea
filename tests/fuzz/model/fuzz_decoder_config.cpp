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
      R"({"model_type":"qwen2","quantization_config":{"quant_method":"gptq","bits":4,"group_size":128,"desc_act":false},)" +
          sizes +
          R"("rope_scaling":{"type":"yarn","factor":4.0,"original_max_position_embeddings":128,"beta_fast":32,"mscale":1,"mscale_all_dim":0.7,"truncate":false}})",
      R"({"model_type":"qwen2_moe",)" + sizes +
          R"("num_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":32,"shared_expert_intermediate_size":64,"norm_topk_prob":true})",
      R"({"model_type":"falcon",)" + sizes +
          R"("new_decoder_architecture":true,"num_kv_heads":2,"parallel_attn":true,"alibi":false})",
      R"({"model_type":"mpt","d_model":64,"n_layers":2,"n_heads":4,"max_seq_len":512,"attn_config":{"alibi":true,"alibi_bias_max":8,"qk_ln":false}})",
      R"({"model_type":"cohere2",)" + sizes +
          R"("sliding_window":32,"layer_types":["sliding_attention","full_attention"],"logit_scale":0.25})",
      R"({"model_type":"gemma3","text_config":{"model_type":"gemma3_text",)" + sizes +
          R"("sliding_window":32},"tie_word_embeddings":true})",
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
                  "\"linear\"",
                  "\"longrope\"",
                  "\"dynamic\"",
                  "\"mixtral\"",
                  "\"granitemoehybrid\"",
                  "\"glm4\"",
                  "\"gpt_neo\"",
                  "\"opt\"",
                  "\"bloom\"",
                  "\"awq\"",
                  "\"factor\"",
                  "\"original_max_position_embeddings\"",
                  "\"text_config\"",
                  "mlp.experts.3.up_proj.weight"};
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
