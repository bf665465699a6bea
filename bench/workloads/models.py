"""Layers and blocks of models, and what surrounds them: losses, sampling, an optimizer's step."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

import tenon as tn

from .registry import Program, normal, program, random, size, weight


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
def adam_step() -> Program:
    count = size(500000)

    def run(sqrt, w, g, m, v):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return w - 0.001 * (m / 0.1) / (sqrt(v / 0.001) + 1e-8), m, v

    return [normal(count), normal(count), normal(count), np.abs(normal(count))], lambda *x: run(torch.sqrt, *x), lambda *x: run(tn.sqrt, *x)
