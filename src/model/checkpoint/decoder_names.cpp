// The names of the tensors of language models, as checkpoints have them and as GGUF has them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "base/text/printable.h"
#include "model/checkpoint/decoder_config.h"
#include "tenon/error.h"

namespace tenon::checkpoint {
namespace {

struct Name {
  std::string_view checkpoint, gguf;
};
constexpr Name kTopNames[] = {
    {"embed_tokens", "token_embd"},
    {"wte", "token_embd"},
    {"embed_in", "token_embd"},
    {"wpe", "position_embd"},
    {"norm", "output_norm"},
    {"ln_f", "output_norm"},
    {"final_layer_norm", "output_norm"},
    {"lm_head", "output"},
    {"embed_out", "output"},
    {"output", "output"},
    {"tok_embeddings", "token_embd"},
    {"word_embeddings", "token_embd"},
    {"word_embeddings_layernorm", "token_embd_norm"},
    {"final_layernorm", "output_norm"},
    {"embed_positions", "position_embd"},
    {"norm_f", "output_norm"},
};
constexpr Name kLayerNames[] = {
    {"input_layernorm", "attn_norm"},
    {"ln_1", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"attn.c_attn", "attn_qkv"},
    {"attention.query_key_value", "attn_qkv"},
    {"attn.qkv_proj", "attn_qkv"},
    {"attn.Wqkv", "attn_qkv"},
    {"attention.wqkv", "attn_qkv"},
    {"self_attention.query_key_value", "attn_qkv"},
    {"attn.q_proj", "attn_q"},
    {"attn.k_proj", "attn_k"},
    {"attn.v_proj", "attn_v"},
    {"attn.attention.q_proj", "attn_q"},
    {"attn.attention.k_proj", "attn_k"},
    {"attn.attention.v_proj", "attn_v"},
    {"attention_norm", "attn_norm"},
    {"self_attn_layer_norm", "attn_norm"},
    {"norm_1", "attn_norm"},
    {"ln_attn", "attn_norm"},
    {"self_attn.out_proj", "attn_output"},
    {"self_attn.dense", "attn_output"},
    {"attn.out_proj", "attn_output"},
    {"attn.attention.out_proj", "attn_output"},
    {"self_attention.dense", "attn_output"},
    {"attention.wo", "attn_output"},
    {"final_layer_norm", "ffn_norm"},
    {"norm_2", "ffn_norm"},
    {"ln_mlp", "ffn_norm"},
    {"ffn_norm", "ffn_norm"},
    {"feed_forward.w1", "ffn_gate"},
    {"feed_forward.w3", "ffn_up"},
    {"feed_forward.w2", "ffn_down"},
    {"mlp.c_fc_0", "ffn_gate"},
    {"mlp.c_fc_1", "ffn_up"},
    {"mlp.fc1", "ffn_up"},
    {"mlp.fc2", "ffn_down"},
    {"mlp.fc_in", "ffn_up"},
    {"mlp.fc_out", "ffn_down"},
    {"ffn.up_proj", "ffn_up"},
    {"ffn.down_proj", "ffn_down"},
    {"fc1", "ffn_up"},
    {"fc2", "ffn_down"},
    {"post_self_attn_layernorm", "post_attention_norm"},
    {"post_mlp_layernorm", "post_ffw_norm"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.o_proj", "attn_output"},
    {"attn.c_proj", "attn_output"},
    {"attention.dense", "attn_output"},
    {"post_attention_layernorm", "ffn_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"ln_2", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.c_fc", "ffn_up"},
    {"mlp.dense_h_to_4h", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.c_proj", "ffn_down"},
    {"mlp.dense_4h_to_h", "ffn_down"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"block_sparse_moe.input_linear", "ffn_gate_up_exps"},
    {"block_sparse_moe.output_linear", "ffn_down_exps"},
    {"shared_mlp.input_linear", "ffn_up_shexp"},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
};
// Of one expert, after its number.
constexpr Name kExpertNames[] = {
    {"gate_proj", "ffn_gate"}, {"up_proj", "ffn_up"}, {"down_proj", "ffn_down"},
    {"w1", "ffn_gate"},        {"w3", "ffn_up"},      {"w2", "ffn_down"},
};
// Tables that the model computes by itself.
constexpr std::string_view kTables[] = {"self_attn.rotary_emb.inv_freq",
                                        "attention.rotary_emb.inv_freq",
                                        "attn.bias",
                                        "attn.masked_bias",
                                        "attention.bias",
                                        "attention.masked_bias",
                                        "attn.attention.bias",
                                        "attn.attention.masked_bias",
                                        "attn.embed_positions"};

bool remove_prefix(std::string_view& text, std::initializer_list<std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes)
    if (text.starts_with(prefix)) {
      text.remove_prefix(prefix.size());
      return true;
    }
  return false;
}

std::string_view found_in(std::span<const Name> names, std::string_view name) {
  for (const Name& each : names)
    if (each.checkpoint == name) return each.gguf;
  return {};
}

// Types whose post_attention_layernorm normalises the result of the attention.
constexpr std::string_view kNormsResults[] = {"olmo2", "gemma2", "gemma3_text", "exaone4"};

}  // namespace

std::string gguf_name(std::string_view type, std::string_view name) {
  std::string_view rest = name;
  if (remove_prefix(rest, {"vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector."}))
    return {};  // of images, which are not read
  remove_prefix(rest, {"language_model.", "model.language_model."});
  remove_prefix(rest, {"model.decoder.", "model.", "transformer.", "gpt_neox.", "decoder."});
  const std::size_t dot = rest.rfind('.');
  const std::string_view kind = dot == std::string_view::npos ? "" : rest.substr(dot);  // ".weight"
  if (remove_prefix(rest, {"layers.", "h.", "blocks."})) {
    std::int64_t layer = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (error == std::errc{} && layer >= 0 && remove_prefix(rest, {"."})) {
      if (std::find(std::begin(kTables), std::end(kTables), rest) != std::end(kTables)) return {};
      if (rest.size() > kind.size()) rest.remove_suffix(kind.size());
      std::string_view found = found_in(kLayerNames, rest);
      const bool norms_results = std::ranges::find(kNormsResults, type) != std::end(kNormsResults);
      if (norms_results && rest == "post_attention_layernorm") found = "post_attention_norm";
      if (!found.empty() && (kind == ".weight" || kind == ".bias")) return fmt::format("blk.{}.{}{}", layer, found, kind);
      if (remove_prefix(rest, {"mlp.experts.", "block_sparse_moe.experts."}) && kind == ".weight") {
        std::int64_t expert = -1;
        const auto [last, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), expert);
        rest.remove_prefix(static_cast<std::size_t>(last - rest.data()));
        if (failed == std::errc{} && expert >= 0 && remove_prefix(rest, {"."}))
          if (found = found_in(kExpertNames, rest); !found.empty())
            return fmt::format("blk.{}.{}.{}{}", layer, found, expert, kind);
      }
    }
  } else if (rest.size() > kind.size() && (kind == ".weight" || kind == ".bias")) {
    rest.remove_suffix(kind.size());
    if (const std::string_view found = found_in(kTopNames, rest); !found.empty()) return fmt::format("{}{}", found, kind);
  }
  if (name.ends_with("rotary_emb.inv_freq")) return {};
  throw Error(ErrorCode::unimplemented,
              fmt::format("the tensor '{}' is not known in models of type '{}'", printable(name), type));
}

bool is_stored_transposed(std::string_view type, std::string_view gguf_name) {
  return type == "gpt2" && gguf_name.starts_with("blk.") && gguf_name.ends_with(".weight") &&
         gguf_name.find("norm") == std::string_view::npos;
}

}  // namespace tenon::checkpoint
