"""Steps of training and inference as they are written out by hand: cells, losses, gradients, attention with a cache, gates."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

import tenon as tn

from .registry import Program, normal, program, random, size, uniform, weight


@program
def lstm() -> Program:
    batch, width, steps = 8, size(128), 16

    def theirs(x, h, c, a, b, bias):
        for t in range(steps):
            i, f, g, o = (F.linear(x[:, t], a, bias) + F.linear(h, b)).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h, c

    def ours(x, h, c, a, b, bias):
        for t in range(steps):
            i, f, g, o = tn.split(tn.linear(x[:, t], a, bias) + tn.linear(h, b), 4, axis=-1)
            c = tn.sigmoid(f) * c + tn.sigmoid(i) * tn.tanh(g)
            h = tn.sigmoid(o) * tn.tanh(c)
        return h, c

    return [normal(batch, steps, width), normal(batch, width), normal(batch, width), weight(4 * width, width), weight(4 * width, width),
            normal(4 * width)], theirs, ours


@program
def recurrent_net() -> Program:
    batch, width, steps = 32, size(96), 24

    def run(tanh, stack, x, h, a, b):
        outputs = []
        for t in range(steps):
            h = tanh(x[:, t] @ a + h @ b)
            outputs.append(h)
        return stack(outputs)

    return ([normal(batch, steps, width), normal(batch, width), weight(width, width), weight(width, width)],
            lambda *v: run(torch.tanh, lambda o: torch.stack(o, 1), *v), lambda *v: run(tn.tanh, lambda o: tn.stack(o, axis=1), *v))


@program
def batch_norm_training() -> Program:
    batch, channels, side = 16, size(32), 28

    def theirs(x, gamma, beta, mean, variance):
        m, v = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)
        y = (x - m[:, None, None]) * torch.rsqrt(v + 1e-5)[:, None, None] * gamma[:, None, None] + beta[:, None, None]
        return F.relu(y), 0.9 * mean + 0.1 * m, 0.9 * variance + 0.1 * v

    def ours(x, gamma, beta, mean, variance):
        m, v = tn.mean(x, axis=(0, 2, 3)), tn.var(x, axis=(0, 2, 3))
        y = (x - m[:, None, None]) * tn.rsqrt(v + 1e-5)[:, None, None] * gamma[:, None, None] + beta[:, None, None]
        return tn.relu(y), 0.9 * mean + 0.1 * m, 0.9 * variance + 0.1 * v

    return [normal(batch, channels, side, side), normal(channels), normal(channels), normal(channels), uniform(channels)], theirs, ours


@program
def softmax_regression_step() -> Program:
    rows, width, classes = size(2000), 200, 10

    def theirs(x, w, b, target):
        p = torch.softmax(x @ w + b, -1)
        wrong = (p - F.one_hot(target, classes).to(p.dtype)) / rows
        return w - 0.1 * (x.T @ wrong), b - 0.1 * wrong.sum(0)

    def ours(x, w, b, target):
        p = tn.softmax(x @ w + b, axis=-1)
        wrong = (p - tn.astype(tn.one_hot(target, classes), p.dtype)) / rows
        return w - 0.1 * (x.T @ wrong), b - 0.1 * wrong.sum(axis=0)

    return [normal(rows, width), weight(width, classes), normal(classes), random.integers(0, classes, rows)], theirs, ours


@program
def two_layer_gradient() -> Program:
    rows, width, hidden = size(512), 128, 256

    def run(maximum, x, y, w1, w2):
        h = x @ w1
        a = maximum(h)
        wrong = (a @ w2 - y) * (2 / rows)
        g2 = a.T @ wrong
        gh = (wrong @ w2.T) * (h > 0)
        return w1 - 0.01 * (x.T @ gh), w2 - 0.01 * g2

    return ([normal(rows, width), normal(rows, 32), weight(width, hidden), weight(hidden, 32)], lambda *v: run(F.relu, *v),
            lambda *v: run(tn.relu, *v))


@program
def beam_search_step() -> Program:
    batch, beams, words = 4, 5, size(8000)

    def theirs(logits, scores):
        total = (torch.log_softmax(logits, -1) + scores[..., None]).view(batch, -1)
        best, where = torch.topk(total, beams, -1)
        return best, where // words, where % words

    def ours(logits, scores):
        total = (tn.log_softmax(logits, axis=-1) + scores[..., None]).reshape((batch, -1))
        best, where = tn.top_k(total, beams)
        return best, where // words, where % words

    return [normal(batch, beams, words), normal(batch, beams)], theirs, ours


@program
def rotary_attention_with_cache() -> Program:
    batch, heads, each, past = 2, 8, 64, size(512)

    def run(cat, softmax, qkv, keys, values, cos, sin):
        def rotate(x):
            half = cat([-x[..., each // 2 :], x[..., : each // 2]])
            return x * cos + half * sin

        q, k, v = (qkv[:, i] for i in range(3))
        k, v = cat([keys, rotate(k)], 2), cat([values, v], 2)
        return softmax(rotate(q) @ k.mT * (each**-0.5)) @ v, k, v

    angle = uniform(each)
    return ([normal(batch, 3, heads, 1, each), normal(batch, heads, past, each), normal(batch, heads, past, each), np.cos(angle), np.sin(angle)],
            lambda *v: run(lambda x, axis=-1: torch.cat(x, axis), lambda x: torch.softmax(x, -1), *v),
            lambda *v: run(lambda x, axis=-1: tn.concat(x, axis=axis), lambda x: tn.softmax(x, axis=-1), *v))


@program
def rotary_prompt() -> Program:
    batch, heads, rows, each = 1, 8, size(256), 64

    def theirs(x, angles):
        a, b = x[..., ::2], x[..., 1::2]
        cos, sin = torch.cos(angles), torch.sin(angles)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)

    def ours(x, angles):
        a, b = x[..., ::2], x[..., 1::2]
        cos, sin = tn.cos(angles), tn.sin(angles)
        return tn.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)

    return [normal(batch, heads, rows, each), normal(rows, each // 2)], theirs, ours


@program
def experts_gate() -> Program:
    tokens, width, experts = size(512), 64, 8

    def theirs(x, gate, w):
        values, chosen = torch.topk(x @ gate, 2, -1)
        share = torch.zeros(tokens, experts, dtype=x.dtype, device=x.device).scatter(1, chosen, torch.softmax(values, -1))
        y = torch.einsum("td,edf->tef", x, w)
        return torch.einsum("te,tef->tf", share, F.silu(y))

    def ours(x, gate, w):
        values, chosen = tn.top_k(x @ gate, 2)
        share = tn.scatter(tn.zeros((tokens, experts), dtype=x.dtype), chosen, tn.softmax(values, axis=-1), axis=1)
        y = tn.einsum("td,edf->tef", x, w)
        return tn.einsum("te,tef->tf", share, tn.silu(y))

    return [normal(tokens, width), weight(width, experts), weight(experts, width, width)], theirs, ours


@program
def norm_residual_dropout() -> Program:
    rows, width = size(1024), 384

    def theirs(x, y, keep, gamma, beta):
        z = x + torch.where(keep > 0.1, y / 0.9, 0.0)
        return F.layer_norm(z, (width,), gamma, beta), z

    def ours(x, y, keep, gamma, beta):
        z = x + tn.where(keep > 0.1, y / 0.9, 0.0)
        return tn.layer_norm(z, gamma, beta), z

    return [normal(rows, width), normal(rows, width), uniform(rows, width), normal(width), normal(width)], theirs, ours


@program
def focal_loss() -> Program:
    rows, classes = size(8000), 20

    def theirs(logits, target):
        p = torch.sigmoid(logits)
        ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        pt = p * target + (1 - p) * (1 - target)
        return ((0.25 * target + 0.75 * (1 - target)) * (1 - pt) ** 2 * ce).mean()

    def ours(logits, target):
        p = tn.sigmoid(logits)
        ce = tn.maximum(logits, 0) - logits * target + tn.log1p(tn.exp(-tn.abs(logits)))
        pt = p * target + (1 - p) * (1 - target)
        return ((0.25 * target + 0.75 * (1 - target)) * (1 - pt) ** 2 * ce).mean()

    return [normal(rows, classes), (uniform(rows, classes) < 0.1).astype(np.float32)], theirs, ours


@program
def label_smoothing_loss() -> Program:
    rows, classes = size(1000), 1000

    def theirs(logits, target):
        log_p = torch.log_softmax(logits, -1)
        nll = -log_p.gather(1, target[:, None])[:, 0]
        return (0.9 * nll - 0.1 * log_p.mean(-1)).mean()

    def ours(logits, target):
        log_p = tn.log_softmax(logits, axis=-1)
        nll = -tn.take_along_axis(log_p, target[:, None], axis=1)[:, 0]
        return (0.9 * nll - 0.1 * log_p.mean(axis=-1)).mean()

    return [normal(rows, classes), random.integers(0, classes, rows)], theirs, ours


@program
def embedding_bag_mean() -> Program:
    rows, length, words, width = size(512), 40, 20000, 64

    def theirs(table, ids, mask):
        e = F.embedding(ids, table) * mask[..., None]
        return e.sum(1) / mask.sum(1).clamp(min=1)[:, None]

    def ours(table, ids, mask):
        e = tn.embedding(ids, table) * mask[..., None]
        return e.sum(axis=1) / tn.clamp_min(mask.sum(axis=1), 1)[:, None]

    return [normal(words, width), random.integers(0, words, (rows, length)), (uniform(rows, length) < 0.8).astype(np.float32)], theirs, ours


@program
def int8_linear() -> Program:
    rows, width, out = size(256), 512, 512

    def theirs(x, w):
        step = x.abs().amax(-1, keepdim=True) / 127
        q = torch.clamp(torch.round(x / step), -127, 127)
        scale = w.abs().amax(-1) / 127
        k = torch.clamp(torch.round(w / scale[:, None]), -127, 127)
        return (q @ k.T) * step * scale

    def ours(x, w):
        step = tn.max(tn.abs(x), axis=-1, keepdims=True) / 127
        q = tn.clip(tn.round(x / step), -127, 127)
        scale = tn.max(tn.abs(w), axis=-1) / 127
        k = tn.clip(tn.round(w / scale[:, None]), -127, 127)
        return (q @ k.T) * step * scale

    return [normal(rows, width), weight(out, width)], theirs, ours


@program
def contrastive_loss() -> Program:
    rows, width = size(512), 128

    def theirs(a, b):
        a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
        logits = a @ b.T / 0.07
        same = torch.arange(rows, device=a.device)
        return (F.cross_entropy(logits, same) + F.cross_entropy(logits.T, same)) / 2

    def ours(a, b):
        a, b = tn.l2_normalize(a, axis=-1), tn.l2_normalize(b, axis=-1)
        logits = a @ b.T / 0.07
        same = tn.arange(rows)
        return (tn.cross_entropy(logits, same) + tn.cross_entropy(logits.T, same)) / 2

    return [normal(rows, width), normal(rows, width)], theirs, ours


@program
def squeeze_excite() -> Program:
    batch, channels, side = 8, size(64), 28

    def theirs(x, a, b):
        s = torch.sigmoid(F.relu(x.mean((2, 3)) @ a) @ b)
        return F.silu(x * s[:, :, None, None])

    def ours(x, a, b):
        s = tn.sigmoid(tn.relu(tn.mean(x, axis=(2, 3)) @ a) @ b)
        return tn.silu(x * s[:, :, None, None])

    return [normal(batch, channels, side, side), weight(channels, channels // 4), weight(channels // 4, channels)], theirs, ours


@program
def self_attention_of_pixels() -> Program:
    batch, channels, side = 2, 64, size(16)

    def run(softmax, x, q, k, v):
        flat = x.reshape((batch, channels, side * side))
        a, b, c = q @ flat, k @ flat, v @ flat
        return (c @ softmax(a.mT @ b / 8).mT).reshape((batch, channels, side, side)) + x

    return ([normal(batch, channels, side, side), weight(channels, channels), weight(channels, channels), weight(channels, channels)],
            lambda *v: run(lambda x: torch.softmax(x, -1), *v), lambda *v: run(lambda x: tn.softmax(x, axis=-1), *v))
