#!/usr/bin/env python3
"""An encoder of MiniLM's size on a card beside PyTorch, eager and compiled, in bfloat16.

    PYTHONPATH=build/release/python python3 bench/models/encoder_cuda.py MODEL.onnx [--batch 1 8 32] [--tokens 128] [--device cuda:0]

MODEL.onnx is MiniLM (tools/models); PyTorch's side is transformers' BertModel with the same sizes and random weights, which takes the same time. Both
are called with inputs on the card, many calls in a row, the time of one call is the least of several rounds in turn."""

import argparse
import time

import torch
import transformers

import tenon as tn

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32])
parser.add_argument("--tokens", type=int, default=128)
parser.add_argument("--device", default="cuda:0")
parser.add_argument("--dtype", default="bfloat16")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--mode", default="default", help="of torch.compile, for example max-autotune")
options = parser.parse_args()

config = transformers.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
peer = transformers.BertModel(config, add_pooling_layer=False).eval().cuda().to(getattr(torch, options.dtype))
model = tn.Model.load(options.model, dtype=None if options.dtype == "float32" else options.dtype)


def of_peer(call, inputs):
    with torch.inference_mode():
        call(**inputs)
        torch.cuda.synchronize()


def seconds(call, count):
    begin = time.perf_counter()
    for _ in range(count):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count


for batch in options.batch:
    ids = torch.randint(1000, 20000, (batch, options.tokens), device="cuda")
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    ours = {name: tn.from_dlpack(value) for name, value in inputs.items()}
    compiled = torch.compile(peer, mode=options.mode, dynamic=False)

    def run(function, count):
        with torch.inference_mode():
            return seconds(lambda: function(**inputs), count)

    def run_ours(count):
        return seconds(lambda: model.run(ours, device=options.device), count)

    contenders = {"tenon": run_ours, "eager": lambda n: run(peer, n), "compiled": lambda n: run(compiled, n)}
    for call in contenders.values():
        call(5)
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(options.rounds):
        for name, call in contenders.items():
            best[name] = min(best[name], call(30))
    print(f"batch {batch} x {options.tokens} {options.dtype}: " + ", ".join(f"{n} {t * 1e6:.0f} us" for n, t in best.items())
          + f"; compiled / tenon {best['compiled'] / best['tenon']:.2f}, eager / tenon {best['eager'] / best['tenon']:.2f}", flush=True)
