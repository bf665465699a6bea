#!/usr/bin/env python3
"""Whole programs beside PyTorch, eager and compiled, on one device. Writes a table in Markdown.

    PYTHONPATH=build/release/python python3 bench/programs.py [--device cpu:0] [--only REGEX] [--dtypes float32,bfloat16]
                                                              [--scale 1.0] [--no-compile] [--out FILE]

Each program is what somebody computes: a layer of a model, a step of a simulation, an image pipeline, a piece of statistics. It is written in
the words of each library and runs from Python: ours through tn.jit. All take turns within each round; the fastest round counts. --scale
changes the sizes. Results are compared before they are timed.
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
import torch.nn.functional as F

import tenon as tn

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
random = np.random.default_rng(1)


def size(n: int) -> int:
    return max(2, round(n * options.scale))


def normal(*shape: int) -> np.ndarray:
    return random.standard_normal(shape, dtype=np.float32)


def weight(*shape: int) -> np.ndarray:
    return normal(*shape) / np.float32(math.sqrt(shape[-1]))


# name -> (inputs as NumPy arrays, in PyTorch's words, in ours, tolerance of float32)
Program = tuple[list[np.ndarray], Callable[..., Any], Callable[..., Any]]
programs: dict[str, Callable[[], Program]] = {}


def program(make: Callable[[], Program]) -> Callable[[], Program]:
    programs[make.__name__] = make
    return make


@program
def mlp() -> Program:
    rows, width = size(512), size(512)

    def theirs(x, a, b, c, d):
        return F.linear(F.gelu(F.linear(x, a, b)), c, d)

    def ours(x, a, b, c, d):
        return tn.linear(tn.gelu(tn.linear(x, a, b)), c, d)

    return [normal(rows, width), weight(4 * width, width), normal(4 * width), weight(width, 4 * width), normal(width)], theirs, ours


@program
def swiglu_mlp_of_one_row() -> Program:
    width = size(1024)

    def theirs(x, gate, up, down):
        return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)

    def ours(x, gate, up, down):
        return tn.linear(tn.silu(tn.linear(x, gate)) * tn.linear(x, up), down)

    return [normal(1, width), weight(3 * width, width), weight(3 * width, width), weight(width, 3 * width)], theirs, ours


@program
def transformer_block() -> Program:
    batch, rows, heads, each = 4, size(128), 8, 32
    width = heads * each

    def theirs(x, n1, b1, qkv, out, n2, b2, up, down):
        h = F.linear(F.layer_norm(x, (width,), n1, b1), qkv).view(batch, rows, 3, heads, each).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(h[0], h[1], h[2], is_causal=True)
        x = x + F.linear(y.transpose(1, 2).reshape(batch, rows, width), out)
        return x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,), n2, b2), up)), down)

    def ours(x, n1, b1, qkv, out, n2, b2, up, down):
        h = tn.linear(tn.layer_norm(x, n1, b1), qkv).reshape((batch, rows, 3, heads, each)).permute_dims((2, 0, 3, 1, 4))
        y = tn.attention(h[0], h[1], h[2], causal=True)
        x = x + tn.linear(y.permute_dims((0, 2, 1, 3)).reshape((batch, rows, width)), out)
        return x + tn.linear(tn.gelu(tn.linear(tn.layer_norm(x, n2, b2), up)), down)

    return [normal(batch, rows, width), normal(width), normal(width), weight(3 * width, width), weight(width, width), normal(width), normal(width),
            weight(4 * width, width), weight(width, 4 * width)], theirs, ours


@program
def attention_written_out() -> Program:
    batch, heads, rows, each = 2, 6, size(200), 48

    def theirs(q, k, v, mask):
        return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(each) + mask, -1) @ v

    def ours(q, k, v, mask):
        return tn.softmax(q @ k.mT / math.sqrt(each) + mask, axis=-1) @ v

    return [normal(batch, heads, rows, each), normal(batch, heads, rows, each), normal(batch, heads, rows, each), normal(rows, rows)], theirs, ours


@program
def residual_block() -> Program:
    batch, channels, side = 2, 48, size(40)

    def theirs(x, w1, m1, v1, g1, b1, w2, m2, v2, g2, b2):
        y = F.relu(F.batch_norm(F.conv2d(x, w1, padding=1), m1, v1, g1, b1))
        return F.max_pool2d(F.relu(x + F.batch_norm(F.conv2d(y, w2, padding=1), m2, v2, g2, b2)), 2)

    def ours(x, w1, m1, v1, g1, b1, w2, m2, v2, g2, b2):
        y = tn.relu(tn.batch_norm(tn.conv2d(x, w1, padding=1), m1, v1, g1, b1))
        return tn.max_pool2d(tn.relu(x + tn.batch_norm(tn.conv2d(y, w2, padding=1), m2, v2, g2, b2)), 2)

    norm = lambda: [normal(channels), np.abs(normal(channels)) + 1, normal(channels), normal(channels)]
    kernel = lambda: weight(channels, channels * 9).reshape(channels, channels, 3, 3)
    return [normal(batch, channels, side, side), kernel(), *norm(), kernel(), *norm()], theirs, ours


@program
def separable_block() -> Program:
    batch, channels, side = 2, 40, size(48)

    def theirs(x, deep, point):
        return F.hardswish(F.conv2d(F.hardswish(F.conv2d(x, deep, padding=2, stride=2, groups=channels)), point))

    def ours(x, deep, point):
        return tn.hardswish(tn.conv2d(tn.hardswish(tn.conv2d(x, deep, padding=2, stride=2, groups=channels)), point))

    return [normal(batch, channels, side, side), normal(channels, 1, 5, 5), weight(2 * channels, channels).reshape(2 * channels, channels, 1, 1)], theirs, ours


@program
def vocabulary_loss() -> Program:
    rows, width, words = size(256), 128, size(8000)

    def theirs(x, table, target):
        return F.cross_entropy(F.linear(x, table), target)

    def ours(x, table, target):
        return tn.cross_entropy(tn.linear(x, table), target)

    return [normal(rows, width), weight(words, width), random.integers(0, words, rows)], theirs, ours


@program
def next_tokens() -> Program:
    rows, words, best = 16, size(32000), 40

    def theirs(logits):
        values, indices = torch.topk(logits / 0.8, best, -1)
        return torch.cumsum(torch.softmax(values, -1), -1), indices

    def ours(logits):
        values, indices = tn.top_k(logits / 0.8, best)
        return tn.cumsum(tn.softmax(values, axis=-1), axis=-1), indices

    return [normal(rows, words)], theirs, ours


@program
def nearest_centres() -> Program:
    points, centres, width = size(20000), 64, 16

    def theirs(x, c):
        nearest = torch.argmin(torch.cdist(x, c), 1)
        sums = torch.zeros_like(c).index_add(0, nearest, x)
        return sums / torch.bincount(nearest, minlength=centres).clamp(min=1)[:, None]

    def ours(x, c):
        nearest = tn.argmin(tn.cdist(x, c), axis=1)
        sums = tn.zeros_like(c).scatter_add(tn.broadcast_to(nearest[:, None], x.shape), x, axis=0)
        return sums / tn.clamp_min(tn.sum(tn.one_hot(nearest, centres), axis=0), 1)[:, None]

    return [normal(points, width), normal(centres, width)], theirs, ours


@program
def bodies() -> Program:
    count = size(800)

    def theirs(p, m):
        d = p[None] - p[:, None]
        inverse = torch.rsqrt((d * d).sum(-1) + 1e-3)
        return (d * (m[None] * inverse**3)[..., None]).sum(1)

    def ours(p, m):
        d = p[None] - p[:, None]
        inverse = tn.rsqrt((d * d).sum(axis=-1) + 1e-3)
        return (d * (m[None] * inverse**3)[..., None]).sum(axis=1)

    return [normal(count, 3), np.abs(normal(count))], theirs, ours


@program
def heat() -> Program:
    side, steps = size(512), 10

    def run(roll, u):
        for _ in range(steps):
            u = u + 0.1 * (roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1) - 4 * u)
        return u

    return [normal(side, side)], lambda u: run(torch.roll, u), lambda u: run(lambda x, n, axis: tn.roll(x, n, axis=axis), u)


@program
def wave_of_slices() -> Program:
    side = size(700)

    def theirs(u, before, speed):
        inner = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        return F.pad(2 * u[1:-1, 1:-1] - before[1:-1, 1:-1] + speed[1:-1, 1:-1] * inner, (1, 1, 1, 1))

    def ours(u, before, speed):
        inner = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        return tn.pad(2 * u[1:-1, 1:-1] - before[1:-1, 1:-1] + speed[1:-1, 1:-1] * inner, 1)

    return [normal(side, side), normal(side, side), np.abs(normal(side, side))], theirs, ours


@program
def mandelbrot() -> Program:
    side, steps = size(300), 30

    def run(where, zeros_like, x, y):
        a, b, n = x, y, zeros_like(x)
        for _ in range(steps):
            squares = a * a + b * b
            n = n + where(squares < 4, 1.0, 0.0)
            a, b = where(squares < 4, a * a - b * b + x, a), where(squares < 4, 2 * a * b + y, b)
        return n

    x, y = np.meshgrid(np.linspace(-2, 1, side, dtype=np.float32), np.linspace(-1, 1, side, dtype=np.float32))
    return [x, y], lambda x, y: run(torch.where, torch.zeros_like, x, y), lambda x, y: run(tn.where, tn.zeros_like, x, y)


@program
def image_pipeline() -> Program:
    batch, side = 2, size(320)

    def theirs(x, blur, edge):
        x = (x.float() / 255 - 0.45) / 0.22
        x = x.to(blur.dtype).permute(0, 3, 1, 2)
        x = F.conv2d(F.pad(x, (2, 2, 2, 2), mode="reflect"), blur, groups=3)
        grey = x.mean(1, keepdim=True)
        g = F.conv2d(grey, edge, padding=1)
        return torch.sqrt(g[:, 0] ** 2 + g[:, 1] ** 2 + 1e-6)

    def ours(x, blur, edge):
        x = (tn.astype(x, tn.float32) / 255 - 0.45) / 0.22
        x = tn.astype(x, blur.dtype).permute_dims((0, 3, 1, 2))
        x = tn.conv2d(tn.pad(x, [0, 0, 0, 0, 2, 2, 2, 2], mode="reflect"), blur, groups=3)
        grey = x.mean(axis=1, keepdims=True)
        g = tn.conv2d(grey, edge, padding=1)
        return tn.sqrt(g[:, 0] ** 2 + g[:, 1] ** 2 + 1e-6)

    pixels = random.integers(0, 256, (batch, side, side, 3)).astype(np.uint8)
    return [pixels, np.abs(normal(3, 1, 5, 5)) / 20, normal(2, 1, 3, 3)], theirs, ours


@program
def statistics_of_columns() -> Program:
    rows, columns = size(50000), 40

    def theirs(x):
        mean, deviation = x.mean(0), x.std(0)
        z = (x - mean) / (deviation + 1e-6)
        return torch.stack([mean, deviation, (z**3).mean(0), (z**4).mean(0), x.amin(0), x.amax(0)])

    def ours(x):
        mean, deviation = x.mean(axis=0), tn.std(x, axis=0, correction=1)
        z = (x - mean) / (deviation + 1e-6)
        return tn.stack([mean, deviation, (z**3).mean(axis=0), (z**4).mean(axis=0), tn.min(x, axis=0), tn.max(x, axis=0)])

    return [normal(rows, columns)], theirs, ours


@program
def covariance() -> Program:
    rows, columns = size(20000), 96

    def theirs(x):
        x = x - x.mean(0)
        c = x.T @ x / (x.shape[0] - 1)
        d = torch.rsqrt(torch.diagonal(c))
        return c * d[:, None] * d[None]

    def ours(x):
        x = x - x.mean(axis=0)
        c = x.T @ x / (x.shape[0] - 1)
        d = tn.rsqrt(tn.diagonal(c))
        return c * d[:, None] * d[None]

    return [normal(rows, columns)], theirs, ours


@program
def power_iteration() -> Program:
    side, steps = size(800), 12

    def theirs(a, v):
        for _ in range(steps):
            v = a @ v
            v = v / torch.sqrt((v * v).sum())
        return v, v @ (a @ v)

    def ours(a, v):
        for _ in range(steps):
            v = a @ v
            v = v / tn.sqrt((v * v).sum())
        return v, v @ (a @ v)

    return [weight(side, side), normal(side)], theirs, ours


@program
def page_rank() -> Program:
    pages, links, steps = size(5000), size(60000), 8

    def theirs(source, target, share):
        rank = torch.ones_like(share) / pages
        for _ in range(steps):
            rank = 0.15 / pages + 0.85 * torch.zeros_like(share).index_add(0, target, (rank * share)[source])
        return rank * pages

    def ours(source, target, share):
        rank = tn.ones_like(share) / pages
        for _ in range(steps):
            rank = 0.15 / pages + 0.85 * tn.zeros_like(share).scatter_add(target, tn.take(rank * share, source, axis=0), axis=0)
        return rank * pages

    source = random.integers(0, pages, links)
    return [source, random.integers(0, pages, links), (1 / np.maximum(np.bincount(source, minlength=pages), 1)).astype(np.float32)], theirs, ours


@program
def gru() -> Program:
    batch, width, steps = 8, size(128), 16

    def theirs(x, h, a, b, c):
        gates = F.linear(x, a)
        for t in range(steps):
            r, z, n = gates[:, t].chunk(3, -1)
            rh, zh, nh = F.linear(h, b, c).chunk(3, -1)
            z = torch.sigmoid(z + zh)
            h = (1 - z) * torch.tanh(n + torch.sigmoid(r + rh) * nh) + z * h
        return h

    def ours(x, h, a, b, c):
        gates = tn.linear(x, a)
        for t in range(steps):
            r, z, n = tn.split(gates[:, t], 3, axis=-1)
            rh, zh, nh = tn.split(tn.linear(h, b, c), 3, axis=-1)
            z = tn.sigmoid(z + zh)
            h = (1 - z) * tn.tanh(n + tn.sigmoid(r + rh) * nh) + z * h
        return h

    return [normal(batch, steps, width), normal(batch, width), weight(3 * width, width), weight(3 * width, width), normal(3 * width)], theirs, ours


@program
def graph_convolution() -> Program:
    nodes, edges, width = size(4000), size(30000), 32

    def theirs(x, source, target, w):
        messages = F.relu(F.linear(x, w))[source]
        return F.normalize(x + torch.zeros_like(x).index_add(0, target, messages), dim=1)

    def ours(x, source, target, w):
        messages = tn.take(tn.relu(tn.linear(x, w)), source, axis=0)
        return tn.l2_normalize(x + tn.zeros_like(x).scatter_add(tn.broadcast_to(target[:, None], messages.shape), messages, axis=0), axis=1)

    return [normal(nodes, width), random.integers(0, nodes, edges), random.integers(0, nodes, edges), weight(width, width)], theirs, ours


@program
def moving_median() -> Program:
    series, length, window = 8, size(4000), 9

    def theirs(x):
        return x.unfold(1, window, 1).median(-1).values

    def ours(x):
        return tn.median(tn.stack([x[:, i : length - window + 1 + i] for i in range(window)], axis=-1), axis=-1)

    return [normal(series, length)], theirs, ours


@program
def black_scholes() -> Program:
    count = size(200000)

    def run(log, sqrt, erf, exp, price, strike, years):
        rate, spread = 0.02, 0.3
        root = spread * sqrt(years)
        d1 = (log(price / strike) + (rate + spread * spread / 2) * years) / root
        normal_of = lambda x: 0.5 * (1 + erf(x / math.sqrt(2)))
        return price * normal_of(d1) - strike * exp(-rate * years) * normal_of(d1 - root)

    return ([np.abs(normal(count)) * 20 + 80, np.abs(normal(count)) * 20 + 80, np.abs(normal(count)) + 0.1],
            lambda *x: run(torch.log, torch.sqrt, torch.erf, torch.exp, *x), lambda *x: run(tn.log, tn.sqrt, tn.erf, tn.exp, *x))


@program
def adam_step() -> Program:
    count = size(500000)

    def run(sqrt, w, g, m, v):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return w - 0.001 * (m / 0.1) / (sqrt(v / 0.001) + 1e-8), m, v

    return [normal(count), normal(count), normal(count), np.abs(normal(count))], lambda *x: run(torch.sqrt, *x), lambda *x: run(tn.sqrt, *x)


@program
def search() -> Program:
    queries, texts, width = 4, size(20000), 128

    def theirs(q, table):
        return torch.topk(F.normalize(q, dim=1) @ F.normalize(table, dim=1).T, 10, -1)

    def ours(q, table):
        return tn.top_k(tn.l2_normalize(q, axis=1) @ tn.l2_normalize(table, axis=1).T, 10)

    return [normal(queries, width), normal(texts, width)], theirs, ours


@program
def rank_correlation() -> Program:
    rows, length = 16, size(5000)

    def theirs(x, y):
        a, b = x.argsort(-1).argsort(-1).float(), y.argsort(-1).argsort(-1).float()
        a, b = a - a.mean(-1, keepdim=True), b - b.mean(-1, keepdim=True)
        return (a * b).sum(-1) / torch.sqrt((a * a).sum(-1) * (b * b).sum(-1))

    def ours(x, y):
        a, b = (tn.astype(tn.argsort(tn.argsort(v, axis=-1), axis=-1), tn.float32) for v in (x, y))
        a, b = a - a.mean(axis=-1, keepdims=True), b - b.mean(axis=-1, keepdims=True)
        return (a * b).sum(axis=-1) / tn.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))

    return [normal(rows, length), normal(rows, length)], theirs, ours


# --- Running them ---


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
        for name, make in programs.items():
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
