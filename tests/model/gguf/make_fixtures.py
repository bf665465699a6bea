#!/usr/bin/env python3
"""Makes the GGUF files of this folder, with random weights, and what NumPy computes from them (expected.json).

    python3 -m venv v && v/bin/pip install numpy gguf && v/bin/python make_fixtures.py .

The files are kept in the repository; run this only to change them. The forward pass is written here from the papers (RoPE, RMSNorm, SwiGLU,
grouped-query attention), in double precision over the dequantised weights, so it shares nothing with src/model/.
"""
import json
import os
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q

OUT = sys.argv[1] if len(sys.argv) > 1 else "."
rng = np.random.default_rng(12)


def half(values):
    return np.asarray(values, np.float16).view(np.uint8).reshape(-1, 2)


def random_blocks(kind, blocks):
    """Random codes with scales that are finite and not huge."""
    size = gguf.GGML_QUANT_SIZES[kind][1]
    raw = rng.integers(0, 256, (blocks, size), dtype=np.uint8)
    places = {Q.Q4_0: [0], Q.Q4_1: [0, 2], Q.Q5_0: [0], Q.Q5_1: [0, 2], Q.Q8_0: [0], Q.Q2_K: [80, 82], Q.Q3_K: [108], Q.Q4_K: [0, 2], Q.Q5_K: [0, 2], Q.Q6_K: [208], Q.IQ4_NL: [0], Q.IQ4_XS: [0]}
    for place in places.get(kind, []):
        raw[:, place:place + 2] = half(rng.normal(0, 0.02, blocks))
    if kind == Q.Q8_K:
        raw[:, 0:4] = rng.normal(0, 0.02, blocks).astype(np.float32).view(np.uint8).reshape(-1, 4)
    return raw


def make_blocks():
    """One tensor of each type, and the same values as floats beside it."""
    writer = gguf.GGUFWriter(os.path.join(OUT, "blocks.gguf"), "none")
    for kind in [Q.F16, Q.BF16, Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0, Q.Q2_K, Q.Q3_K, Q.Q4_K, Q.Q5_K, Q.Q6_K, Q.Q8_K, Q.IQ4_NL, Q.IQ4_XS]:
        if kind in (Q.F16, Q.BF16):
            raw = gguf.quants.quantize(rng.normal(0, 1, (2, 32)).astype(np.float32), kind)
        else:
            raw = random_blocks(kind, 4).reshape(2, -1)
        if kind == Q.Q8_K:  # the gguf package cannot read it
            rows = raw.reshape(4, -1)
            values = (rows[:, :4].copy().view(np.float32) * rows[:, 4:260].view(np.int8)).reshape(2, -1)
        else:
            values = gguf.quants.dequantize(raw, kind)
        values = np.asarray(values, np.float32)
        writer.add_tensor(kind.name, raw if raw.dtype == np.uint8 or kind == Q.F16 else raw.view(np.uint8), raw_dtype=kind)
        writer.add_tensor(kind.name + ".expected", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def byte_characters():
    table, extra = {}, 256
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(extra)
            extra += 1
    return table


def byte_vocabulary():
    chars = byte_characters()
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] + [chars[b] for b in range(256)]
    merges = [("t", "h"), ("th", "e"), ("i", "n"), ("a", "n"), ("Ġ", "t"), ("Ġt", "he"), ("Ġ", "a"), ("e", "r"), ("o", "n"), ("l", "l"), ("h", "e"), ("he", "ll"), ("hell", "o"), ("o", "r"), ("l", "d"), ("Ġ", "w"), ("Ġw", "or"), ("Ġwor", "ld")]
    tokens += [a + b for a, b in merges]
    while len(tokens) < 288:
        tokens.append(f"[PAD{len(tokens)}]")
    types = [3, 3, 3] + [1] * (len(tokens) - 3)
    for i, token in enumerate(tokens):
        if token.startswith("[PAD"):
            types[i] = 5
    return tokens, types, [f"{a} {b}" for a, b in merges]


def sentence_piece_vocabulary():
    tokens, scores, types = ["<unk>", "<s>", "</s>"], [0.0] * 3, [2, 3, 3]
    for byte in range(256):
        tokens.append(f"<0x{byte:02X}>")
        scores.append(0.0)
        types.append(6)
    for i, piece in enumerate(["▁t", "he", "▁the", "in", "▁a", "er", "ll", "llo", "hello", "▁hello", "or", "ld", "▁w", "▁wor", "▁world", "▁", "e", "t", "a", "o", "i", "n", "s", "r", "h", "l", "d", "w"]):
        tokens.append(piece)
        scores.append(-float(i))
        types.append(1)
    while len(tokens) < 288:
        tokens.append(f"[PAD{len(tokens)}]")
        scores.append(-1000.0)
        types.append(5)
    return tokens[:288], scores[:288], types[:288]


CHATML = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"


class Net:
    def __init__(self, arch, width, heads, kv_heads, ff, layers, kinds, base, bias, tied):
        self.arch, self.width, self.heads, self.kv_heads, self.ff, self.layers, self.base, self.eps = arch, width, heads, kv_heads, ff, layers, base, 1e-5
        self.raw, self.values = {}, {}
        vocabulary, kv = 288, width // heads * kv_heads
        def add(name, shape, kind, scale=None):
            values = rng.normal(0, scale or 1.4 / np.sqrt(shape[-1]), shape).astype(np.float32)
            if name.endswith("norm.weight"):
                values = (1 + 0.2 * values).astype(np.float32)
            raw = values if kind == Q.F32 else gguf.quants.quantize(values, kind)
            self.raw[name] = (raw, kind)
            self.values[name] = values.astype(np.float64) if kind == Q.F32 else gguf.quants.dequantize(raw, kind).astype(np.float64)
        add("token_embd.weight", (vocabulary, width), kinds["embedding"], 1.0)
        for i in range(layers):
            p = f"blk.{i}."
            for name in ("attn_norm", "ffn_norm"):
                add(p + name + ".weight", (width,), Q.F32, 1.0)
            for name, rows, columns in (("attn_q", width, width), ("attn_k", kv, width), ("attn_v", kv, width), ("attn_output", width, width), ("ffn_gate", ff, width), ("ffn_up", ff, width), ("ffn_down", width, ff)):
                add(p + name + ".weight", (rows, columns), kinds.get(name, kinds["weight"]))
                if bias and name in ("attn_q", "attn_k", "attn_v"):
                    add(p + name + ".bias", (rows,), Q.F32, 0.3)
        add("output_norm.weight", (width,), Q.F32, 1.0)
        if not tied:
            add("output.weight", (vocabulary, width), kinds["weight"])

    def write(self, file, tokenizer):
        writer = gguf.GGUFWriter(os.path.join(OUT, file), self.arch)
        writer.add_name("tiny " + self.arch)
        writer.add_context_length(1024)
        writer.add_embedding_length(self.width)
        writer.add_block_count(self.layers)
        writer.add_feed_forward_length(self.ff)
        writer.add_head_count(self.heads)
        writer.add_head_count_kv(self.kv_heads)
        writer.add_layer_norm_rms_eps(self.eps)
        writer.add_rope_freq_base(self.base)
        tokenizer(writer)
        for name, (raw, kind) in self.raw.items():
            writer.add_tensor(name, raw, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.values[name]

    def rotate(self, x):  # [tokens, heads, size]
        size = x.shape[-1]
        angles = np.arange(x.shape[0])[:, None] * self.base ** (-np.arange(0, size, 2) / size)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        out = np.empty_like(x)
        if self.arch == "llama":  # pairs of neighbours
            a, b = x[..., 0::2], x[..., 1::2]
            out[..., 0::2], out[..., 1::2] = a * cos - b * sin, a * sin + b * cos
        else:  # halves
            a, b = x[..., :size // 2], x[..., size // 2:]
            out[..., :size // 2], out[..., size // 2:] = a * cos - b * sin, a * sin + b * cos
        return out

    def product(self, x, name):
        """With a matrix of small integers, what is multiplied with it has 8 bits: multiples of a 127th of the largest of 32."""
        if self.rounds and self.raw[name][1] not in (Q.F32, Q.F16):
            blocks = x.reshape(*x.shape[:-1], -1, 32)
            largest = np.abs(blocks).max(-1, keepdims=True)
            step = (largest.astype(np.float32) / np.float32(127)).astype(np.float16).astype(np.float64)
            x = (np.rint(blocks * (127 / largest)) * step).reshape(x.shape)
        return x @ self.values[name].T

    def logits(self, ids, rounds=True):
        self.rounds = rounds
        w = self.values
        x = w["token_embd.weight"][ids]
        n, size = len(ids), self.width // self.heads
        for i in range(self.layers):
            p = f"blk.{i}."
            h = self.norm(x, p + "attn_norm.weight")
            q, k, v = (self.product(h, p + f"attn_{c}.weight") + w.get(p + f"attn_{c}.bias", 0) for c in "qkv")
            q, k = self.rotate(q.reshape(n, self.heads, size)), self.rotate(k.reshape(n, self.kv_heads, size))
            v = v.reshape(n, self.kv_heads, size)
            out = np.zeros((n, self.heads, size))
            for head in range(self.heads):
                g = head // (self.heads // self.kv_heads)
                s = q[:, head] @ k[:, g].T / np.sqrt(size)
                s[np.triu_indices(n, 1)] = -np.inf
                s = np.exp(s - s.max(-1, keepdims=True))
                out[:, head] = s / s.sum(-1, keepdims=True) @ v[:, g]
            x = x + self.product(out.reshape(n, -1), p + "attn_output.weight")
            h = self.norm(x, p + "ffn_norm.weight")
            gate = self.product(h, p + "ffn_gate.weight")
            x = x + self.product(gate / (1 + np.exp(-gate)) * self.product(h, p + "ffn_up.weight"), p + "ffn_down.weight")
        h = self.norm(x, "output_norm.weight")
        return self.product(h, "output.weight" if "output.weight" in w else "token_embd.weight")

    def expected(self, prompt, count):
        logits = self.logits(prompt)
        ids = list(prompt)
        margins = []
        for _ in range(count):
            last = self.logits(ids)[-1]
            best = np.sort(last)[-2:]
            margins.append(float(best[1] - best[0]))
            ids.append(int(last.argmax()))
        return {"prompt": prompt, "logits": [round(float(x), 6) for x in logits[-1]], "float_logits": [round(float(x), 6) for x in self.logits(prompt, False)[-1]], "greedy": ids[len(prompt):], "smallest_margin": min(margins)}


def bytes_tokenizer(writer):
    tokens, types, merges = byte_vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHATML)


def pieces_tokenizer(writer):
    tokens, scores, types = sentence_piece_vocabulary()
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)


def main():
    make_blocks()
    expected = {}
    prompt = [int(x) for x in rng.integers(3, 250, 21)]
    plain = Net("llama", 48, 6, 2, 40, 2, {"embedding": Q.F32, "weight": Q.F32}, 10000.0, False, True)
    plain.write("llama_f32.gguf", bytes_tokenizer)
    expected["llama_f32.gguf"] = plain.expected(prompt, 24)
    # Products with 32 to 128 rows, of which the kernels take 16 at once, and with two formats in one layer.
    mixed = Net("llama", 64, 4, 2, 128, 2, {"embedding": Q.Q8_0, "weight": Q.Q4_1, "attn_v": Q.Q8_0, "ffn_down": Q.Q5_0}, 10000.0, False, True)
    mixed.write("llama_q4_1.gguf", bytes_tokenizer)
    expected["llama_q4_1.gguf"] = mixed.expected(prompt, 24)
    halves = Net("qwen2", 32, 4, 2, 48, 2, {"embedding": Q.F16, "weight": Q.F16}, 1000000.0, True, False)
    halves.write("qwen2_f16.gguf", pieces_tokenizer)
    expected["qwen2_f16.gguf"] = halves.expected(prompt, 24)
    with open(os.path.join(OUT, "expected.json"), "w") as file:
        json.dump(expected, file)
        file.write("\n")
    for name, each in expected.items():
        print(name, os.path.getsize(os.path.join(OUT, name)), "bytes; smallest margin of greedy tokens", each["smallest_margin"])


main()
