#!/usr/bin/env python3
"""Makes the folders of this folder: small language models with random weights, as transformers saves them, and expected.json, what
transformers computes from them in float32.

    python3 -m venv v && v/bin/pip install torch transformers && v/bin/python make_fixtures.py .

The files are kept in the repository; run this only to change them (made with transformers 5.23.0, torch 2.11). Weights are stored in
16 bits, two models in 32, and the expected values are computed from what is stored.
"""
import json
import os
import shutil
import sys

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (AutoModelForCausalLM, Gemma2Config, Gemma3TextConfig, GemmaConfig, GPT2Config, GPTNeoXConfig, GraniteConfig,
                          LlamaConfig, MistralConfig, Olmo2Config, Phi3Config, Qwen2Config, Qwen3Config, SmolLM3Config, Starcoder2Config)

OUT = sys.argv[1] if len(sys.argv) > 1 else "."
VOCABULARY, WIDTH = 96, 32
torch.manual_seed(7)

ids = dict(vocab_size=VOCABULARY, bos_token_id=0, eos_token_id=1)
sizes = dict(ids, hidden_size=WIDTH, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=512, pad_token_id=None)
shared = dict(sizes, num_key_value_heads=2)
neox = dict(sizes, rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5})
llama3 = {"rope_type": "llama3", "rope_theta": 50000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
long = {"rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 1.0, "original_max_position_embeddings": 400, "short_factor": [1.0, 1.1, 1.3, 1.6], "long_factor": [2.0] * 4}
half = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
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


expected = {}
for name, config in MODELS.items():
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
    # Longer than two chunks of a prompt, than every window, and than what is kept open.
    prompt = [4 + (i * 37 + i * i % 11) % (VOCABULARY - 4) for i in range(300)]
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0, -1]
        ids, greedy = prompt[:9], []
        while len(greedy) < 40:
            greedy.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
            ids = ids + greedy[-1:]
    expected[name] = {"prompt": prompt, "logits": [round(float(x), 5) for x in logits], "greedy": greedy}
with open(os.path.join(OUT, "expected.json"), "w") as file:
    json.dump(expected, file)
    file.write("\n")
