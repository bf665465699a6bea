#!/usr/bin/env python3
"""Writes a language model with random weights to a GGUF file, to measure generation where no model can be had.

  bench/models/make_gguf.py FILE [--layers 16] [--width 2048] [--feed-forward 8192] [--heads 32] [--kv-heads 8] [--vocabulary 32000] [--weights f16|q4_0]

The weights are 16-bit floats or codes of 4 bits; the tokenizer has one token for each byte. What it generates has no meaning, but takes the time of a real
model of that size. Needs NumPy."""

import argparse
import struct

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("file")
for name, value in {"layers": 16, "width": 2048, "feed-forward": 8192, "heads": 32, "kv-heads": 8, "vocabulary": 32000, "context": 4096}.items():
    parser.add_argument(f"--{name}", type=int, default=value)
parser.add_argument("--weights", choices=("f16", "q4_0"), default="f16")
options = parser.parse_args()

F32, F16, Q4_0 = 0, 1, 2
ALIGNMENT = 32
U32, FLOAT, STRING, ARRAY, I32 = 4, 6, 8, 9, 5


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key, kind, data):
    return text(key) + struct.pack("<I", kind) + data


def strings(key, values):
    return pair(key, ARRAY, struct.pack("<IQ", STRING, len(values)) + b"".join(text(v) for v in values))


def byte_tokens():
    """Byte-level BPE's characters for the 256 bytes."""
    table, extra = [], 256
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            table.append(chr(byte))
        else:
            table.append(chr(extra))
            extra += 1
    return table


tokens = ["<|endoftext|>"] + byte_tokens()
tokens += [f"[unused{i}]" for i in range(options.vocabulary - len(tokens))]
types = [3] + [1] * 256 + [5] * (options.vocabulary - 257)
numbers = {"context_length": options.context, "embedding_length": options.width, "block_count": options.layers,
           "feed_forward_length": options.feed_forward, "attention.head_count": options.heads, "attention.head_count_kv": options.kv_heads}
pairs = [pair("general.architecture", STRING, text("llama")), pair("general.name", STRING, text("random"))]
pairs += [pair(f"llama.{key}", U32, struct.pack("<I", value)) for key, value in numbers.items()]
pairs += [pair("llama.attention.layer_norm_rms_epsilon", FLOAT, struct.pack("<f", 1e-5)),
          pair("llama.rope.freq_base", FLOAT, struct.pack("<f", 10000.0)),
          pair("tokenizer.ggml.model", STRING, text("gpt2")), pair("tokenizer.ggml.pre", STRING, text("gpt-2")),
          strings("tokenizer.ggml.tokens", tokens),
          pair("tokenizer.ggml.token_type", ARRAY, struct.pack("<IQ", I32, len(types)) + np.array(types, "<i4").tobytes()),
          strings("tokenizer.ggml.merges", []),
          pair("tokenizer.ggml.eos_token_id", U32, struct.pack("<I", 0))]

head = options.width // options.heads
kv = head * options.kv_heads
tensors = [("token_embd.weight", (options.vocabulary, options.width), F16), ("output_norm.weight", (options.width,), F32)]
for i in range(options.layers):
    for name, shape in {"attn_norm": (options.width,), "attn_q": (options.width, options.width), "attn_k": (kv, options.width),
                        "attn_v": (kv, options.width), "attn_output": (options.width, options.width), "ffn_norm": (options.width,),
                        "ffn_gate": (options.feed_forward, options.width), "ffn_up": (options.feed_forward, options.width),
                        "ffn_down": (options.width, options.feed_forward)}.items():
        tensors.append((f"blk.{i}.{name}.weight", shape, F32 if len(shape) == 1 else Q4_0 if options.weights == "q4_0" else F16))

infos, offset = b"", 0
for name, shape, kind in tensors:
    infos += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape)) + struct.pack("<IQ", kind, offset)
    size = int(np.prod(shape)) * {F32: 64, F16: 32, Q4_0: 9}[kind] // 16
    offset += (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT

random = np.random.default_rng(1)
pool = random.standard_normal(1 << 22, dtype=np.float32)  # repeated: only the time matters
with open(options.file, "wb") as out:
    out.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs) + infos)
    out.write(bytes(-out.tell() % ALIGNMENT))
    for name, shape, kind in tensors:
        if kind == F32:
            out.write(np.ones(shape, np.float32).tobytes())
        elif kind == Q4_0:  # blocks of 32: a scale and 16 bytes of codes, whose zero is 8
            blocks = random.integers(0, 256, (1 << 16, 18), np.uint8)
            blocks[:, :2] = np.full(1 << 16, 0.2 / np.sqrt(shape[-1]), np.float16)[:, None].view(np.uint8)
            data, size = blocks.tobytes(), int(np.prod(shape)) // 32 * 18
            for first in range(0, size, len(data)):
                out.write(data[:min(len(data), size - first)])
        else:
            count = int(np.prod(shape))
            scaled = (pool / np.sqrt(shape[-1])).astype(np.float16)
            for first in range(0, count, len(scaled)):
                out.write(scaled[:min(len(scaled), count - first)].tobytes())
        out.write(bytes(-out.tell() % ALIGNMENT))
