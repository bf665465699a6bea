#!/usr/bin/env python3
"""Makes a small BERT checkpoint with random weights, and what NumPy computes from it in double precision (expected.json).

    python3 -m venv v && v/bin/pip install numpy && v/bin/python make_fixture.py .
"""
import json
import math
import os
import sys

import numpy as np

OUT = sys.argv[1] if len(sys.argv) > 1 else "."
WIDTH, LAYERS, HEADS, INNER, WORDS, PLACES, EPS = 24, 2, 3, 40, 8, 16, 1e-12
rng = np.random.default_rng(3)
weights = {}


def add(name, *shape, mean=0.0):
    weights["bert." + name] = (mean + rng.normal(0, 0.5 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.1, shape)).astype(np.float32)


add("embeddings.word_embeddings.weight", WORDS, WIDTH)
add("embeddings.position_embeddings.weight", PLACES, WIDTH)
add("embeddings.token_type_embeddings.weight", 2, WIDTH)
add("embeddings.LayerNorm.weight", WIDTH, mean=1)
add("embeddings.LayerNorm.bias", WIDTH)
for i in range(LAYERS):
    p = f"encoder.layer.{i}."
    for name, out, inputs in (("attention.self.query", WIDTH, WIDTH), ("attention.self.key", WIDTH, WIDTH), ("attention.self.value", WIDTH, WIDTH), ("attention.output.dense", WIDTH, WIDTH), ("intermediate.dense", INNER, WIDTH), ("output.dense", WIDTH, INNER)):
        add(p + name + ".weight", out, inputs)
        add(p + name + ".bias", out)
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        add(p + name + ".weight", WIDTH, mean=1)
        add(p + name + ".bias", WIDTH)


def w(name):
    return weights["bert." + name].astype(np.float64)


def norm(x, name):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * w(name + ".weight") + w(name + ".bias")


def linear(x, name):
    return x @ w(name + ".weight").T + w(name + ".bias")


def forward(ids, mask, types):
    erf = np.vectorize(math.erf)
    x = norm(w("embeddings.word_embeddings.weight")[ids] + w("embeddings.position_embeddings.weight")[np.arange(ids.shape[1])] + w("embeddings.token_type_embeddings.weight")[types], "embeddings.LayerNorm")
    b, s = ids.shape
    for i in range(LAYERS):
        p = f"encoder.layer.{i}."
        q, k, v = (linear(x, p + "attention.self." + n).reshape(b, s, HEADS, -1).transpose(0, 2, 1, 3) for n in ("query", "key", "value"))
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(WIDTH // HEADS) + np.where(mask[:, None, None, :], 0, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(b, s, WIDTH)
        x = norm(linear(mixed, p + "attention.output.dense") + x, p + "attention.output.LayerNorm")
        inner = linear(x, p + "intermediate.dense")
        x = norm(linear(inner * 0.5 * (1 + erf(inner / math.sqrt(2))), p + "output.dense") + x, p + "output.LayerNorm")
    return x


def save(file):
    header, data, at = {}, b"", 0
    for name, array in weights.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        data += array.tobytes()
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text + data)


save(os.path.join(OUT, "model.safetensors"))
with open(os.path.join(OUT, "config.json"), "w") as file:
    json.dump({"model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": INNER, "max_position_embeddings": PLACES, "hidden_act": "gelu", "layer_norm_eps": EPS, "vocab_size": WORDS}, file)
    file.write("\n")
ids = np.array([[1, 2, 3, 4, 5], [6, 7, 1, 0, 0]])
mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
types = np.array([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]])
with open(os.path.join(OUT, "expected.json"), "w") as file:
    json.dump({"ids": ids.ravel().tolist(), "mask": mask.ravel().tolist(), "types": types.ravel().tolist(), "shape": [2, 5], "states": [round(x, 7) for x in forward(ids, mask, types).ravel()]}, file)
    file.write("\n")
