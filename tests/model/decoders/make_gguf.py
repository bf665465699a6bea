#!/usr/bin/env python3
"""Writes some folders of this folder as GGUF files, as converters lay them out: gguf/NAME.gguf. expected.json holds for them too.

    v/bin/pip install gguf numpy safetensors torch && v/bin/python make_gguf.py .

With names after the folder only these are written. What differs from the folders: names; experts in one tensor; scales of Gemma's norms with one added; queries and keys of Llama and Granite with pairs as
neighbours; matrices of GPT-2 transposed; query, key and value of NeoX one after the other; factors of llama3 positions as a tensor.
"""
import glob
import json
import math
import os
import sys

import gguf
import numpy as np
import torch
from safetensors.torch import load_file

OUT = sys.argv[1] if len(sys.argv) > 1 else "."
NAMES = {
    "input_layernorm": "attn_norm", "ln_1": "attn_norm", "post_attention_layernorm": "ffn_norm", "pre_feedforward_layernorm": "ffn_norm", "ln_2": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.qkv_proj": "attn_qkv", "attention.query_key_value": "attn_qkv", "attn.c_attn": "attn_qkv",
    "attention.dense": "attn_output", "attn.c_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "mlp.gate_up_proj": "ffn_up", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down", "mlp.dense_h_to_4h": "ffn_up", "mlp.dense_4h_to_h": "ffn_down",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate": "ffn_gate_inp", "block_sparse_moe.gate": "ffn_gate_inp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp", "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp", "self_attention.query_key_value": "attn_qkv", "self_attention.dense": "attn_output",
}
EXPERTS = {"gate_proj": "ffn_gate_exps", "up_proj": "ffn_up_exps", "down_proj": "ffn_down_exps", "w1": "ffn_gate_exps", "w3": "ffn_up_exps", "w2": "ffn_down_exps"}
TOP = {"model.embed_tokens": "token_embd", "transformer.wte": "token_embd", "gpt_neox.embed_in": "token_embd", "transformer.wpe": "position_embd",
       "model.norm": "output_norm", "transformer.word_embeddings": "token_embd", "transformer.word_embeddings_layernorm": "token_embd_norm", "transformer.ln_f": "output_norm", "gpt_neox.final_layer_norm": "output_norm", "lm_head": "output", "embed_out": "output"}


def gguf_name(name, has_result_norms):
    stem, kind = name.rsplit(".", 1)
    if stem in TOP:
        return f"{TOP[stem]}.{kind}", None
    number, rest = stem.split("layers." if "layers." in stem else "h.", 1)[1].split(".", 1)
    if ".experts." in rest:
        number_of_expert, part = rest.split("experts.")[1].split(".")
        return f"blk.{number}.{EXPERTS[part]}.{kind}", int(number_of_expert)
    known = "post_attention_norm" if has_result_norms and rest == "post_attention_layernorm" else NAMES[rest]
    return f"blk.{number}.{known}.{kind}", None


def pairs_as_neighbours(rows, heads):
    """Row i of the first half of a head and row i of the second become neighbours."""
    shape = rows.shape
    return rows.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def by_group(rows, groups, head):
    """The queries that share a key, the key and the value of one group after the other: all queries, all keys, all values."""
    parts = rows.reshape(groups, -1, head, *rows.shape[1:])
    return np.concatenate([parts[:, :-2].reshape(-1, *rows.shape[1:]), parts[:, -2].reshape(-1, *rows.shape[1:]), parts[:, -1].reshape(-1, *rows.shape[1:])])


def convert(name, architecture, file_name=None, quantised=None):
    with open(os.path.join(OUT, name, "config.json")) as file:
        c = json.load(file)
    heads = c.get("num_attention_heads", c.get("n_head"))
    kv = c.get("num_key_value_heads", heads)
    width = c.get("hidden_size", c.get("n_embd"))
    head = c.get("head_dim") or width // heads
    rope = c.get("rope_parameters", {})
    file_name = file_name or name
    writer = gguf.GGUFWriter(os.path.join(OUT, "gguf", file_name + ".gguf"), architecture)
    writer.add_block_count(c.get("num_hidden_layers", c.get("n_layer")))
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(c.get("intermediate_size") or 4 * width)
    writer.add_context_length(c.get("max_position_embeddings", c.get("n_positions", 512)))
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv)
    writer.add_key_length(head)
    writer.add_value_length(head)
    if "rms_norm_eps" in c:
        writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    else:
        writer.add_layer_norm_eps(c.get("layer_norm_epsilon", c.get("layer_norm_eps")))
    theta = rope.get("rope_theta") or rope.get("full_attention", {}).get("rope_theta")
    if theta:
        writer.add_rope_freq_base(theta)
        writer.add_rope_dimension_count(int(head * rope.get("partial_rotary_factor", 1.0)))
    if rope.get("rope_type") == "llama3":
        frequencies = theta ** (-np.arange(0, head, 2) / head)
        low, high, before = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
        kept = np.clip((before * frequencies / (2 * math.pi) - low) / (high - low), 0, 1)
        writer.add_tensor("rope_freqs.weight", (1 / ((1 - kept) / rope["factor"] + kept)).astype(np.float32))
    if rope.get("rope_type") == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope.get("rope_type") == "longrope":
        before = c["original_max_position_embeddings"]
        writer.add_rope_scaling_orig_ctx_len(before)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(c["max_position_embeddings"] / before) / math.log(before)))
        for kind in ("short", "long"):
            writer.add_tensor(f"rope_factors_{kind}.weight", np.array(rope[kind + "_factor"], np.float32))
    if "num_experts_per_tok" in c:
        writer.add_expert_count(c.get("num_local_experts", c.get("num_experts")))
        writer.add_expert_used_count(c["num_experts_per_tok"])
        if "moe_intermediate_size" in c:
            writer.add_expert_feed_forward_length(c["moe_intermediate_size"])
        if "shared_expert_intermediate_size" in c:
            writer.add_expert_shared_feed_forward_length(c["shared_expert_intermediate_size"])
    if name == "granite":
        writer.add_attention_scale(c["attention_multiplier"])
        writer.add_embedding_scale(c["embedding_multiplier"])
        writer.add_residual_scale(c["residual_multiplier"])
        writer.add_logit_scale(c["logits_scaling"])
    if name == "gemma2":
        writer.add_attn_logit_softcapping(c["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(c["final_logit_softcapping"])
        writer.add_attention_scale(c["query_pre_attn_scalar"] ** -0.5)
        writer.add_sliding_window(c["sliding_window"])
    if name == "gpt_neox":
        writer.add_parallel_residual(True)
    if name == "cohere":
        writer.add_logit_scale(c["logit_scale"])
    experts, fused = {}, {}

    def add(to, values, is_half):
        if quantised and values.ndim >= 2 and "gate_inp" not in to and values.shape[-1] % 32 == 0:
            writer.add_tensor(to, gguf.quants.quantize(np.ascontiguousarray(values, np.float32), quantised), raw_dtype=quantised)
        else:
            writer.add_tensor(to, np.ascontiguousarray(values.astype(np.float16 if is_half else np.float32)))

    for path in sorted(glob.glob(os.path.join(OUT, name, "*.safetensors"))):
        for key, tensor in load_file(path).items():
            to, expert = gguf_name(key, name.startswith("gemma"))
            values = tensor.to(torch.float32).numpy()
            if architecture in ("llama", "granite") and (".attn_q." in to or ".attn_k." in to):
                values = pairs_as_neighbours(values, heads if ".attn_q." in to else kv)
            if name == "gpt2" and values.ndim == 2 and to.startswith("blk."):
                values = values.T
            if name == "gpt_neox" and ".attn_qkv." in to:
                values = values.reshape(heads, 3, head, -1).swapaxes(0, 1).reshape(values.shape)
            if name.startswith("gemma") and "norm" in to:
                values = values + 1
            if name == "bloom" and ".attn_qkv." in to:
                values = by_group(values, heads, head)
            if name == "glm" and any(f".attn_{part}." in to for part in "qkv"):  # as one tensor
                fused.setdefault(to.replace(".attn_q.", ".attn_qkv.").replace(".attn_k.", ".attn_qkv.").replace(".attn_v.", ".attn_qkv."), {})[to] = values
                continue
            if "gate_inp_shexp" in to:
                values = values[0]
            is_half = values.ndim == 2 and tensor.dtype == torch.float16 and "gate_inp" not in to
            if expert is not None:
                experts.setdefault(to, {})[expert] = values
                continue
            add(to, values, is_half)
    for to, parts in experts.items():
        add(to, np.stack([parts[i] for i in range(len(parts))]), True)
    for to, parts in fused.items():
        add(to, np.concatenate([parts[to.replace("attn_qkv", "attn_" + part)] for part in "qkv"]), "weight" in to)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


os.makedirs(os.path.join(OUT, "gguf"), exist_ok=True)
for each, made in {"llama3": "llama", "phi3": "phi3", "granite": "granite", "gemma2": "gemma2", "gpt2": "gpt2", "gpt_neox": "gptneox",
                   "qwen2_yarn": "qwen2", "phi3_switching": "phi3", "mixtral": "llama", "qwen2_moe": "qwen2moe", "glm": "chatglm",
                   "cohere": "command-r", "bloom": "bloom"}.items():
    if not sys.argv[2:] or each in sys.argv[2:]:
        convert(each, made)
for made in (gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0):
    convert("qwen3_moe", "qwen3moe", "qwen3_moe_" + made.name.lower(), made)
