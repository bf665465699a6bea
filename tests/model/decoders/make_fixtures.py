#!/usr/bin/env python3
"""Makes the folders of this folder: small language models with random weights, as transformers saves them, and expected.json, what
transformers computes from them in float32.

    python3 -m venv v && v/bin/pip install torch transformers && v/bin/python make_fixtures.py . [NAME...]

With names only these models are made. The files are kept in the repository; run this only to change them (made with transformers 5.23.0, torch 2.11). Weights are stored in
16 bits, two models in 32, and the expected values are computed from what is stored.
"""
import json
import os
import shutil
import sys
import zlib

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from safetensors.torch import load_file, save_file
from transformers import (ArceeConfig, AutoModelForCausalLM, BloomConfig, Cohere2Config, CohereConfig, Ernie4_5Config, Exaone4Config,
                          FalconConfig, Gemma2Config, Gemma3TextConfig, GemmaConfig, Glm4Config, GlmConfig, GPT2Config, GPTBigCodeConfig,
                          GPTJConfig, GPTNeoConfig, GPTNeoXConfig, GraniteConfig, GraniteMoeHybridConfig, GraniteMoeSharedConfig,
                          LlamaConfig, MistralConfig, MixtralConfig, MptConfig, NemotronConfig, Olmo2Config, OlmoConfig, OlmoeConfig,
                          OPTConfig, Phi3Config, PhiConfig, Qwen2Config, Qwen2MoeConfig, Qwen3Config, Qwen3MoeConfig, SeedOssConfig,
                          SmolLM3Config, StableLmConfig, Starcoder2Config)

OUT = sys.argv[1] if len(sys.argv) > 1 else "."
VOCABULARY, WIDTH = 96, 32

ids = dict(vocab_size=VOCABULARY, bos_token_id=0, eos_token_id=1)
sizes = dict(ids, hidden_size=WIDTH, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=512, pad_token_id=None)
shared = dict(sizes, num_key_value_heads=2)
neox = dict(sizes, rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5})
llama3 = {"rope_type": "llama3", "rope_theta": 50000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
long = {"rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 1.0, "original_max_position_embeddings": 400, "short_factor": [1.0, 1.1, 1.3, 1.6], "long_factor": [2.0] * 4}
half = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
yarn = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}
exact = dict(yarn, truncate=False, beta_fast=4.0, mscale=1.0, mscale_all_dim=0.6)
early = dict(long, original_max_position_embeddings=30, long_factor=[1.5, 2.0, 3.0, 4.0])
falcon = dict(ids, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, ffn_hidden_size=40, max_position_embeddings=512)
local = dict(sliding_window=20, layer_types=["sliding_attention", "full_attention"])
experts = dict(num_experts_per_tok=2, output_router_logits=False)
MODELS = {
    "llama": LlamaConfig(**shared),
    "llama_tied_with_biases": LlamaConfig(**shared, tie_word_embeddings=True, attention_bias=True, mlp_bias=True, head_dim=12),
    "llama3": LlamaConfig(**shared, rope_parameters=llama3),
    "llama_linear": LlamaConfig(**sizes, rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}),
    "mistral": MistralConfig(**shared, sliding_window=40),
    "qwen2": Qwen2Config(**shared),
    "qwen2_windowed": Qwen2Config(**shared, use_sliding_window=True, sliding_window=24, max_window_layers=1),
    "qwen3": Qwen3Config(**shared, head_dim=16),
    "phi3": Phi3Config(**shared, rope_parameters=half),
    "phi3_long": Phi3Config(**sizes, original_max_position_embeddings=400, rope_parameters=long),
    "granite": GraniteConfig(**shared, embedding_multiplier=12.0, logits_scaling=0.5, residual_multiplier=0.22, attention_multiplier=0.4),
    "olmo2": Olmo2Config(**shared),
    "smollm3": SmolLM3Config(**shared, no_rope_layer_interval=2),
    "gemma": GemmaConfig(**shared, head_dim=16),
    "gemma2": Gemma2Config(**shared, head_dim=16, sliding_window=30, query_pre_attn_scalar=20, attn_logit_softcapping=2.0, final_logit_softcapping=3.0),
    "gemma3": Gemma3TextConfig(**shared, head_dim=16, sliding_window=20, query_pre_attn_scalar=24, layer_types=["sliding_attention", "full_attention"]),
    "gpt2": GPT2Config(**ids, n_embd=WIDTH, n_layer=2, n_head=4, n_positions=512),
    "gpt_neox": GPTNeoXConfig(**neox),
    "gpt_neox_serial": GPTNeoXConfig(**neox, use_parallel_residual=False),
    "starcoder2": Starcoder2Config(**shared, sliding_window=50),
    "qwen2_yarn": Qwen2Config(**shared, rope_parameters=yarn),
    "llama_yarn_exact": LlamaConfig(**shared, rope_parameters=exact),
    "llama_dynamic": LlamaConfig(**shared, rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}),
    "phi3_switching": Phi3Config(**sizes, original_max_position_embeddings=30, rope_parameters=early),
    "mixtral": MixtralConfig(**dict(shared, intermediate_size=24), **experts, num_local_experts=4),
    "qwen2_moe": Qwen2MoeConfig(**shared, **experts, num_experts=5, moe_intermediate_size=16, shared_expert_intermediate_size=20, mlp_only_layers=[0]),
    "qwen3_moe": Qwen3MoeConfig(**dict(shared, intermediate_size=32), **experts, num_experts=4, moe_intermediate_size=32, norm_topk_prob=True, head_dim=8),
    "olmoe": OlmoeConfig(**dict(shared, intermediate_size=16), num_experts=8, num_experts_per_tok=1),
    "granitemoe": GraniteMoeSharedConfig(**dict(shared, intermediate_size=16), **experts, num_local_experts=4, shared_intermediate_size=20, embedding_multiplier=12.0, logits_scaling=0.5, residual_multiplier=0.22, attention_multiplier=0.4),
    "granite_hybrid": GraniteMoeHybridConfig(**shared, layer_types=["attention"] * 2, num_local_experts=0, shared_intermediate_size=40, mamba_n_heads=4, position_embedding_type="rope", attention_multiplier=0.3),
    "glm": GlmConfig(**shared, head_dim=8, attention_bias=True),
    "glm4": Glm4Config(**shared, head_dim=8),
    "ernie": Ernie4_5Config(**shared, head_dim=8),
    "seed_oss": SeedOssConfig(**shared, head_dim=8, attention_bias=True),
    "exaone4": Exaone4Config(**shared, **local),
    "olmo": OlmoConfig(**shared, clip_qkv=0.7),
    "arcee": ArceeConfig(**shared),
    "nemotron": NemotronConfig(**shared),
    "stablelm": StableLmConfig(**shared, use_qkv_bias=True),
    "stablelm_parallel": StableLmConfig(**shared, use_parallel_residual=True),
    "cohere": CohereConfig(**shared, logit_scale=0.5),
    "cohere2": Cohere2Config(**shared, **local, logit_scale=0.5),
    "gpt_bigcode": GPTBigCodeConfig(**ids, n_embd=WIDTH, n_layer=2, n_head=4, n_positions=512, n_inner=40),
    "gpt_neo": GPTNeoConfig(**ids, hidden_size=WIDTH, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=20, max_position_embeddings=512, intermediate_size=40),
    "gptj": GPTJConfig(**ids, n_embd=WIDTH, n_layer=2, n_head=4, n_positions=512, rotary_dim=4, n_inner=40, tie_word_embeddings=False),
    "opt": OPTConfig(**ids, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, ffn_dim=40, max_position_embeddings=512, word_embed_proj_dim=WIDTH, pad_token_id=None),
    "phi": PhiConfig(**sizes),
    "falcon": FalconConfig(**falcon),
    "falcon_groups": FalconConfig(**falcon, new_decoder_architecture=True, num_kv_heads=2),
    "falcon_serial": FalconConfig(**falcon, multi_query=False, parallel_attn=False, bias=True),
    "bloom": BloomConfig(**ids, hidden_size=WIDTH, n_layer=2, n_head=4),
    "mpt": MptConfig(**ids, d_model=36, n_layers=2, n_heads=6, max_seq_len=512, expansion_ratio=4),
}
STORED = {"llama": torch.float32, "gpt2": torch.float32, "qwen3": torch.bfloat16, "llama3": torch.bfloat16}
SHARDED = ("llama3", "gpt2")
CHAT = "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}:{{ m.content | trim }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}"


def write_tokenizer(folder):
    """Letters, and some control tokens."""
    special = ["<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>"]
    vocabulary = {token: i for i, token in enumerate(special)}
    for byte in range(32, 32 + VOCABULARY - len(special)):
        vocabulary["Ġ" if byte == 32 else chr(byte)] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as file:
        json.dump({"bos_token": "<|bos|>", "eos_token": {"content": "<|eos|>"}, "chat_template": CHAT}, file)


def randomize(model):
    """Larger than transformers begins with, so that every part counts."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.add_(0.3 * torch.randn_like(weight))
            else:
                is_table = any(part in name for part in ("embed_tokens", "wte", "wpe", "embed_in"))
                weight.copy_(torch.randn_like(weight) * (0.5 if is_table else 1.6 / weight.shape[-1] ** 0.5))


def quantised(name, method, config, with_order=False):
    """A model whose products have weights of small integers in groups of 32 inputs, packed as GPTQ or AWQ packs them."""
    torch.manual_seed(zlib.crc32(name.encode()))
    folder = os.path.join(OUT, name)
    shutil.rmtree(folder, ignore_errors=True)
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config).float().eval()
    randomize(model)
    with torch.no_grad():  # not of the tables of rotary frequencies
        for weight in model.parameters():
            weight.copy_(weight.half().float())
    bits = 8 if name.endswith("8") else 4
    each, tensors = 32 // bits, {}

    def packed(values, order):  # rows of several values become rows of words
        words = sum(values[..., place::each].long() << (bits * at) for at, place in enumerate(order))
        return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)

    plain = list(range(each))
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if not any(part in key for part in ("_proj",)) or not key.endswith("weight"):
                tensors[key] = weight.half()
                continue
            outputs, inputs = weight.shape
            groups = inputs // 32
            codes = torch.randint(0, 2**bits, (inputs, outputs))
            zeros = torch.randint(1, 2**bits, (groups, outputs))
            scales = (torch.rand(groups, outputs) * 3.2 / 2**bits / inputs**0.5 + 0.02 / 2**bits).half()
            group_of = torch.arange(inputs) // 32
            if with_order:
                group_of = group_of[torch.randperm(inputs)]
            weight.copy_((scales.float()[group_of] * (codes - zeros[group_of])).T)
            if with_order and groups > 1:  # groups that do not lie together become 16-bit floats
                weight.copy_(weight.half().float())
            stem = key[:-len("weight")]
            if method == "awq":
                order = [0, 2, 4, 6, 1, 3, 5, 7]
                tensors |= {stem + "qweight": packed(codes, order), stem + "qzeros": packed(zeros, order), stem + "scales": scales}
            else:
                tensors |= {stem + "qweight": packed(codes.T, plain).T, stem + "qzeros": packed(zeros - 1, plain), stem + "scales": scales, stem + "g_idx": group_of.to(torch.int32)}
        expected[name] = expectation(model)
    os.makedirs(folder)
    config.dtype = "float16"
    config.save_pretrained(folder)
    save_file({key: value.contiguous() for key, value in tensors.items()}, os.path.join(folder, "model.safetensors"), {"format": "pt"})
    with open(os.path.join(folder, "config.json")) as file:
        made = json.load(file)
    made["quantization_config"] = {"quant_method": method, "bits": bits, "group_size": 32, "desc_act": with_order} | ({"version": "gemm", "zero_point": True} if method == "awq" else {"sym": False})
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(made, file, indent=2)
        file.write("\n")
    write_tokenizer(folder)


def renamed_copy(name, base, config, tensors):
    """A model whose code is not in transformers, or has other parts besides: |base| with other names."""
    folder = os.path.join(OUT, name)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(os.path.join(OUT, base), folder)
    path = os.path.join(folder, "model.safetensors")
    save_file(tensors({key: value.contiguous() for key, value in load_file(path).items()}), path, {"format": "pt"})
    with open(os.path.join(folder, "config.json")) as file:
        changed = config(json.load(file))
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(changed, file, indent=2)
        file.write("\n")
    expected[name] = expected[base]


def expectation(model):
    # Longer than two chunks of a prompt, than every window, and than what is kept open.
    prompt = [4 + (i * 37 + i * i % 11) % (VOCABULARY - 4) for i in range(300)]
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0, -1]
        ids, greedy = prompt[:9], []
        while len(greedy) < 40:
            greedy.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
            ids = ids + greedy[-1:]
    return {"prompt": prompt, "logits": [round(float(x), 5) for x in logits], "greedy": greedy}


def as_internlm2(tensors):
    names = {"input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm", "self_attn.o_proj": "attention.wo",
             "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2",
             "model.embed_tokens": "model.tok_embeddings", "lm_head": "output"}
    out = {}
    for key, value in tensors.items():
        if "self_attn.q_proj" in key:
            # Two groups: the queries that share a key, the key, the value.
            k, v = (tensors[key.replace("q_proj", part)] for part in ("k_proj", "v_proj"))
            out[key.replace("self_attn.q_proj", "attention.wqkv")] = torch.cat([part for i in range(2) for part in (value[16 * i:16 * i + 16], k[8 * i:8 * i + 8], v[8 * i:8 * i + 8])])
        elif "k_proj" not in key and "v_proj" not in key:
            for old, new in names.items():
                key = key.replace(old, new)
            out[key] = value
    return out


def as_exaone(tensors):
    names = {"model.layers": "transformer.h", "input_layernorm": "ln_1", "post_attention_layernorm": "ln_2", "self_attn.o_proj": "attn.attention.out_proj",
             "self_attn.": "attn.attention.", "mlp.gate_proj": "mlp.c_fc_0", "mlp.up_proj": "mlp.c_fc_1", "mlp.down_proj": "mlp.c_proj",
             "model.embed_tokens": "transformer.wte", "model.norm": "transformer.ln_f"}
    out = {}
    for key, value in tensors.items():
        for old, new in names.items():
            key = key.replace(old, new)
        out[key] = value
    return out


def in_multimodal(tensors):
    return {"vision_tower.x.weight": torch.zeros(2, 2), "multi_modal_projector.mm_input_projection_weight": torch.zeros(2, 2, 1)} | {
        "language_model." + key: value for key, value in tensors.items()}


wanted, expected = sys.argv[2:], {}
if wanted:
    with open(os.path.join(OUT, "expected.json")) as file:
        expected = json.load(file)
for name, config in MODELS.items():
    if wanted and name not in wanted:
        continue
    torch.manual_seed(zlib.crc32(name.encode()))
    folder = os.path.join(OUT, name)
    shutil.rmtree(folder, ignore_errors=True)
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config).float().eval()
    randomize(model)
    model = model.to(STORED.get(name, torch.float16))
    model.save_pretrained(folder, max_shard_size="20KB" if name in SHARDED else "1GB")
    write_tokenizer(folder)
    # Not model.float(): tables such as rotary frequencies would keep what 16 bits left of them.
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    expected[name] = expectation(model)
if not wanted or "quantised" in wanted:
    small = dict(shared, intermediate_size=64)
    quantised("llama_gptq", "gptq", LlamaConfig(**small))
    quantised("llama_gptq_8", "gptq", LlamaConfig(**dict(small, num_hidden_layers=1)))
    quantised("llama_gptq_ordered", "gptq", LlamaConfig(**dict(small, num_hidden_layers=1)), with_order=True)
    quantised("qwen2_awq", "awq", Qwen2Config(**small))
if not wanted or "renamed" in wanted:
    renamed_copy("internlm2", "llama_dynamic", lambda c: c | {"model_type": "internlm2"}, as_internlm2)
    renamed_copy("exaone", "llama_dynamic", lambda c: c | {"model_type": "exaone"}, as_exaone)
    renamed_copy("gemma3_multimodal", "gemma3", lambda c: {"model_type": "gemma3", "eos_token_id": [1], "text_config": {key: value for key, value in c.items() if key != "torch_dtype"}, "vision_config": {"hidden_size": 2}}, in_multimodal)
with open(os.path.join(OUT, "expected.json"), "w") as file:
    json.dump(expected, file)
    file.write("\n")
