#!/usr/bin/env python3
"""Whole programs beside PyTorch, eager and compiled, on one device. Writes a table in Markdown.

    PYTHONPATH=build/release/python python3 bench/programs.py [--device cpu:0] [--only REGEX] [--dtypes float32,bfloat16]
                                                              [--scale 1.0] [--no-compile] [--out FILE]

Each program is what somebody computes: a layer of a model, a step of a simulation, an image pipeline, a piece of statistics. The files of
bench/workloads/ have them, written in the words of each library; they run from Python, ours through tn.jit. All take turns within each round;
the fastest round counts. --scale changes the sizes. Results are compared before they are timed.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tenon as tn
from workloads import arrangements, data, learning, models, numerics, registry  # noqa: F401  (each registers its programs)

ROUNDS, SECONDS = 7, 0.15

parser = argparse.ArgumentParser(description="Whole programs beside PyTorch.")
parser.add_argument("--device", default="cpu:0")
parser.add_argument("--only", default="")
parser.add_argument("--dtypes", default="float32,bfloat16")
parser.add_argument("--scale", type=float, default=1.0, help="multiplies the sizes")
parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
parser.add_argument("--out", default="")
options = parser.parse_args()
on = "cuda" if options.device.startswith("cuda") else "cpu"
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
registry.scale = options.scale


def to_torch(array: np.ndarray, dtype: str) -> torch.Tensor:
    tensor = torch.from_numpy(array).to(on)
    return tensor.to(getattr(torch, dtype)) if array.dtype == np.float32 else tensor


def to_tenon(array: np.ndarray, dtype: str) -> tn.Array:
    return tn.array(array, dtype=getattr(tn, dtype) if array.dtype == np.float32 else None)


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def difference(ours: Any, theirs: Any) -> float:
    """The largest difference of floating-point results, as a part of their largest value. Indices are not compared: ties may differ."""
    worst = 0.0
    for mine, other in zip(as_list(ours), as_list(theirs)):
        if other.dtype.is_floating_point:
            a, b = np.asarray(tn.astype(mine, tn.float32)), other.float().cpu().numpy()
            assert a.shape == b.shape, (a.shape, b.shape)
            worst = max(worst, float(np.max(np.abs(a - b)) / (np.max(np.abs(b)) + 1e-30)))
    return worst


def calls_within(call: Callable[[], Any], seconds: float) -> int:
    start = time.perf_counter()
    call()
    return max(1, min(10000, int(seconds / (time.perf_counter() - start + 1e-9))))


def main() -> int:
    lines = []
    synchronise = torch.cuda.synchronize if on == "cuda" else lambda: None
    with tn.device(options.device), torch.no_grad():
        for name, make in registry.programs.items():
            if not re.search(options.only, name):
                continue
            for dtype in options.dtypes.split(","):
                arrays, theirs, ours = make()
                given, taken = [to_torch(a, dtype) for a in arrays], [to_tenon(a, dtype) for a in arrays]
                tn.eval(*taken)
                jitted = tn.jit(ours)

                def run_ours(jitted=jitted, taken=taken):
                    tn.eval(*as_list(jitted(*taken)))

                def run_theirs(theirs=theirs, given=given):
                    theirs(*given)
                    synchronise()

                contenders = {"ours": run_ours, "eager": run_theirs}
                try:
                    apart = difference(jitted(*taken), theirs(*given))
                    if not options.no_compile:
                        torch._dynamo.reset()
                        compiled = torch.compile(theirs)
                        compiled(*given)
                        contenders["compiled"] = lambda compiled=compiled, given=given: (compiled(*given), synchronise())
                except Exception as error:  # one program that fails does not end the others
                    print(f"{name} {dtype}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", file=sys.stderr, flush=True)
                    continue
                best = {}
                for call in contenders.values():
                    call()
                    call()
                counts = {key: calls_within(call, SECONDS / 3) for key, call in contenders.items()}
                for _ in range(ROUNDS):
                    for key, call in contenders.items():
                        start = time.perf_counter()
                        for _ in range(counts[key]):
                            call()
                        best[key] = min(best.get(key, 1e9), (time.perf_counter() - start) / counts[key] * 1e6)
                lines.append((best["eager"] / best["ours"], name, dtype, best, apart))
                print(f"{name} {dtype}: ours {best['ours']:.1f} us, eager {best['eager']:.1f}, compiled {best.get('compiled', 0):.1f}, "
                      f"apart {apart:.1e}", file=sys.stderr, flush=True)
    lines.sort(key=lambda line: line[0])
    mean = lambda key: math.exp(sum(math.log(b[key] / b["ours"]) for _, _, _, b, _ in lines) / max(len(lines), 1))
    text = "| program | dtype | ours us | PyTorch us | ratio | compiled us | ratio | apart |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    for ratio, name, dtype, best, apart in lines:
        compiled = best.get("compiled")
        text += (f"| {name.replace('_', ' ')} | {dtype} | {best['ours']:.1f} | {best['eager']:.1f} | {ratio:.2f} | "
                 + (f"{compiled:.1f} | {compiled / best['ours']:.2f}" if compiled else " | ") + f" | {apart:.0e} |\n")
    text += f"\nGeometric mean over PyTorch: {mean('eager'):.2f}"
    if lines and all("compiled" in b for _, _, _, b, _ in lines):
        text += f"; over torch.compile: {mean('compiled'):.2f}"
    print(text)
    if options.out:
        with open(options.out, "w") as file:
            file.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
