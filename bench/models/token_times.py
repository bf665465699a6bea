#!/usr/bin/env python3
"""The time of a token of a text, in a process whose programs are known already, and what of the memory's speed that is.

    PYTHONPATH=build/release/python python3 bench/models/token_times.py MODEL.gguf [--device cuda:0] [--tokens 256] [--bandwidth 4.3e12]

The first texts are not timed: they compile, and on CUDA the calls of a program are captured as a graph when it runs with the same
buffers again. Tokens may come several at a time, so a text's time after its first token is divided by the tokens after it.
--bandwidth: bytes a second that the device's memory delivers to a copy; the weights are read once for each token, so the file's size
over it is the least time of a token."""

import argparse
import os
import statistics

import tenon as tn

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--device", default="cuda:0")
parser.add_argument("--tokens", type=int, default=256)
parser.add_argument("--bandwidth", type=float, default=0)
options = parser.parse_args()

generator = tn.Generator.load(options.model, device=options.device)



def token_seconds():
    text = generator.generate("Hello there", max_tokens=options.tokens)
    return text.seconds / (len(text.ids) - 1)


first = [token_seconds() for _ in range(3)]
times = [token_seconds() for _ in range(5)]
median = statistics.median(times)
print(f"5 texts of {options.tokens} tokens: median {median * 1e3:.3f} ms a token, {min(times) * 1e3:.3f} to {max(times) * 1e3:.3f}; "
      f"the three before {', '.join(f'{t * 1e3:.3f}' for t in first)}", end="")
if options.bandwidth:
    least = os.path.getsize(options.model) / options.bandwidth
    print(f"; the weights alone {least * 1e3:.3f} ms: {least / median:.2f} of the memory's speed", end="")
print()
