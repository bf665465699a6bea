#!/usr/bin/env python3
"""The time between two tokens of a text, in a process whose programs are known already, and what of the memory's speed that is.

    PYTHONPATH=build/release/python python3 bench/models/token_times.py MODEL.gguf [--device cuda:0] [--tokens 256] [--bandwidth 4.3e12]

The first text is not timed: it compiles. --bandwidth: bytes a second that the device's memory delivers to a copy; the weights are
read once for each token, so the file's size over it is the least time of a token."""

import argparse
import os
import statistics
import time

import tenon as tn

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("--device", default="cuda:0")
parser.add_argument("--tokens", type=int, default=256)
parser.add_argument("--bandwidth", type=float, default=0)
options = parser.parse_args()

generator = tn.Generator.load(options.model, device=options.device)


def times():
    moments = []
    for _ in generator.stream("Hello there", max_tokens=options.tokens):
        moments.append(time.perf_counter())
    return [b - a for a, b in zip(moments, moments[1:])]


times()
gaps = times()
median = statistics.median(gaps)
print(f"{len(gaps)} pieces: median {median * 1e3:.3f} ms, mean {statistics.mean(gaps) * 1e3:.3f} ms, slowest {max(gaps) * 1e3:.2f} ms", end="")
if options.bandwidth:
    least = os.path.getsize(options.model) / options.bandwidth
    print(f"; the weights alone {least * 1e3:.3f} ms: {least / median:.2f} of the memory's speed", end="")
print()
