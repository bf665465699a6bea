"""Unusual shapes and layouts: short axes, middle axes, small matrices, windows, bits."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

import tenon as tn

from .registry import Program, normal, program, random, size, uniform, weight


@program
def viterbi_steps() -> Program:
    batch, states, steps = size(32), 48, 12

    def theirs(emission, transition):
        best = emission[:, 0]
        for t in range(1, steps):
            best = (best[:, :, None] + transition[None]).amax(1) + emission[:, t]
        return best

    def ours(emission, transition):
        best = emission[:, 0]
        for t in range(1, steps):
            best = tn.max(best[:, :, None] + transition[None], axis=1) + emission[:, t]
        return best

    return [normal(batch, steps, states), normal(states, states)], theirs, ours


@program
def forward_algorithm() -> Program:
    batch, states, steps = size(32), 32, 10

    def theirs(emission, transition):
        alpha = emission[:, 0]
        for t in range(1, steps):
            alpha = torch.logsumexp(alpha[:, :, None] + transition[None], 1) + emission[:, t]
        return torch.logsumexp(alpha, 1)

    def ours(emission, transition):
        alpha = emission[:, 0]
        for t in range(1, steps):
            alpha = tn.logsumexp(alpha[:, :, None] + transition[None], axis=1) + emission[:, t]
        return tn.logsumexp(alpha, axis=1)

    return [normal(batch, steps, states), normal(states, states)], theirs, ours


@program
def manhattan_distances() -> Program:
    a, b, width = size(500), size(400), 20

    def theirs(x, y):
        d = (x[:, None] - y[None]).abs().sum(-1)
        return d.amin(1), d.argmin(1)

    def ours(x, y):
        d = tn.abs(x[:, None] - y[None]).sum(axis=-1)
        return tn.min(d, axis=1), tn.argmin(d, axis=1)

    return [normal(a, width), normal(b, width)], theirs, ours


@program
def rotations_of_points() -> Program:
    count = size(40000)

    def run(sqrt, stack, cross, q, p):
        q = q / sqrt((q * q)[..., 0:1] + (q * q)[..., 1:2] + (q * q)[..., 2:3] + (q * q)[..., 3:4])
        w, v = q[:, :1], q[:, 1:]
        t = 2 * cross(v, p)
        return p + w * t + cross(v, t)

    def crossed(stack):
        return lambda a, b: stack([a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1], a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2],
                                   a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]])

    return ([normal(count, 4), normal(count, 3)],
            lambda q, p: run(torch.sqrt, None, crossed(lambda x: torch.stack(x, -1)), q, p),
            lambda q, p: run(tn.sqrt, None, crossed(lambda x: tn.stack(x, axis=-1)), q, p))


@program
def small_transforms() -> Program:
    count = size(20000)

    def theirs(m, x):
        return torch.einsum("nij,nj->ni", m, x)

    def ours(m, x):
        return tn.einsum("nij,nj->ni", m, x)

    return [normal(count, 4, 4), normal(count, 4)], theirs, ours


@program
def products_of_small_matrices() -> Program:
    count = size(20000)
    return [normal(count, 3, 3), normal(count, 3, 3)], lambda a, b: a @ b @ a.mT, lambda a, b: a @ b @ a.mT


@program
def colour_matrix() -> Program:
    side = size(400)

    def theirs(x, m, shift):
        return torch.clamp((x.float() / 255) @ m.float().T + shift.float(), 0, 1)

    def ours(x, m, shift):
        return tn.clip((tn.astype(x, tn.float32) / 255) @ tn.astype(m, tn.float32).T + tn.astype(shift, tn.float32), 0, 1)

    return [random.integers(0, 256, (side, side, 3)).astype(np.uint8), uniform(3, 3), uniform(3)], theirs, ours


@program
def polynomial_features() -> Program:
    rows, width = size(3000), 24

    def run(x, w):
        return (x[:, :, None] * x[:, None, :]).reshape((rows, width * width)) @ w

    return [normal(rows, width), weight(width * width, 8)], run, run


@program
def softmax_of_few_classes() -> Program:
    rows, classes = size(40000), 5

    def theirs(x, bias):
        p = torch.softmax(x + bias, -1)
        return p, p.argmax(-1), -(p * torch.log(p + 1e-9)).sum(-1)

    def ours(x, bias):
        p = tn.softmax(x + bias, axis=-1)
        return p, tn.argmax(p, axis=-1), -(p * tn.log(p + 1e-9)).sum(axis=-1)

    return [normal(rows, classes), normal(classes)], theirs, ours


@program
def softmax_of_pixels() -> Program:
    batch, classes, side = 2, 21, size(96)

    def theirs(x):
        p = torch.softmax(x, 1)
        return p, p.argmax(1)

    def ours(x):
        p = tn.softmax(x, axis=1)
        return p, tn.argmax(p, axis=1)

    return [normal(batch, classes, side, side)], theirs, ours


@program
def norm_of_channels() -> Program:
    batch, channels, side = 4, size(64), 32

    def theirs(x, gamma, beta):
        mean = x.mean(1, keepdim=True)
        v = ((x - mean) ** 2).mean(1, keepdim=True)
        return (x - mean) / torch.sqrt(v + 1e-6) * gamma[:, None, None] + beta[:, None, None]

    def ours(x, gamma, beta):
        mean = x.mean(axis=1, keepdims=True)
        v = ((x - mean) ** 2).mean(axis=1, keepdims=True)
        return (x - mean) / tn.sqrt(v + 1e-6) * gamma[:, None, None] + beta[:, None, None]

    return [normal(batch, channels, side, side), normal(channels), normal(channels)], theirs, ours


@program
def windows_of_an_image() -> Program:
    batch, side, window, channels = 2, size(8) * 7, 7, 96

    def run(permute, x, w):
        n = side // window
        y = permute(x.reshape((batch, n, window, n, window, channels)), (0, 1, 3, 2, 4, 5)).reshape((-1, window * window, channels)) @ w
        return permute(y.reshape((batch, n, n, window, window, channels)), (0, 1, 3, 2, 4, 5)).reshape((batch, side, side, channels)) + x

    return ([normal(batch, side, side, channels), weight(channels, channels)], lambda x, w: run(lambda v, p: v.permute(p), x, w),
            lambda x, w: run(lambda v, p: v.permute_dims(p), x, w))


@program
def patches_as_tokens() -> Program:
    batch, side, patch, width = 4, size(14) * 16, 16, 192

    def run(permute, x, w, position):
        n = side // patch
        tokens = permute(x.reshape((batch, 3, n, patch, n, patch)), (0, 2, 4, 1, 3, 5)).reshape((batch, n * n, 3 * patch * patch))
        return tokens @ w + position

    return ([normal(batch, 3, side, side), weight(3 * patch * patch, width), normal((side // patch) ** 2, width)],
            lambda *v: run(lambda x, p: x.permute(p), *v), lambda *v: run(lambda x, p: x.permute_dims(p), *v))


@program
def autocorrelation() -> Program:
    series, length, lags = size(32), 2000, 16

    def theirs(x):
        x = x - x.mean(1, keepdim=True)
        return torch.stack([(x[:, lag:] * x[:, : length - lag]).sum(1) for lag in range(lags)], 1) / (x * x).sum(1, keepdim=True)

    def ours(x):
        x = x - x.mean(axis=1, keepdims=True)
        return tn.stack([(x[:, lag:] * x[:, : length - lag]).sum(axis=1) for lag in range(lags)], axis=1) / (x * x).sum(axis=1, keepdims=True)

    return [normal(series, length)], theirs, ours


@program
def ones_in_words() -> Program:
    count = size(400000)

    def run(x):
        x = x - ((x >> 1) & 0x55555555)
        x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
        x = (x + (x >> 4)) & 0x0F0F0F0F
        return (x * 0x01010101 >> 24) & 0xFF

    return [random.integers(0, 1 << 31, count)], run, run


@program
def attention_with_distances() -> Program:
    batch, heads, rows, each = 2, 4, size(160), 32

    def run(abs, softmax, q, k, v, slopes, place):
        distance = abs(place[:, None] - place[None])
        return softmax(q @ k.mT / 6 - slopes[:, None, None] * distance) @ v

    return ([normal(batch, heads, rows, each), normal(batch, heads, rows, each), normal(batch, heads, rows, each), uniform(heads),
             np.arange(rows, dtype=np.float32)], lambda *v: run(torch.abs, lambda x: torch.softmax(x, -1), *v),
            lambda *v: run(tn.abs, lambda x: tn.softmax(x, axis=-1), *v))


@program
def linear_attention() -> Program:
    batch, heads, rows, each = 2, 4, size(256), 32

    def run(elu, total, q, k, v):
        q, k = elu(q) + 1, elu(k) + 1
        return (q @ (k.mT @ v)) / (q @ total(k)[..., None] + 1e-6)

    return ([normal(batch, heads, rows, each), normal(batch, heads, rows, each), normal(batch, heads, rows, each)],
            lambda *v: run(F.elu, lambda x: x.sum(-2), *v), lambda *v: run(tn.elu, lambda x: x.sum(axis=-2), *v))


@program
def fourier_by_products() -> Program:
    frames, length, bands = size(400), 256, 40

    def run(log, x, cos, sin, window, mel):
        x = x * window
        power = (x @ cos) ** 2 + (x @ sin) ** 2
        return log(power @ mel + 1e-6)

    angle = 2 * np.pi * np.outer(np.arange(length), np.arange(length // 2)) / length
    return ([normal(frames, length), np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32), np.hanning(length).astype(np.float32),
             uniform(length // 2, bands)], lambda *v: run(torch.log, *v), lambda *v: run(tn.log, *v))


@program
def triplet_loss() -> Program:
    rows, width = size(256), 64

    def theirs(x, same):
        d = torch.sqrt(((x[:, None] - x[None]) ** 2).sum(-1) + 1e-9)
        far, near = torch.where(same > 0, d, 0.0).amax(1), torch.where(same > 0, 1e9, d).amin(1)
        return torch.relu(far - near + 0.2).mean()

    def ours(x, same):
        d = tn.sqrt(((x[:, None] - x[None]) ** 2).sum(axis=-1) + 1e-9)
        far, near = tn.max(tn.where(same > 0, d, 0.0), axis=1), tn.min(tn.where(same > 0, 1e9, d), axis=1)
        return tn.relu(far - near + 0.2).mean()

    label = random.integers(0, 16, rows)
    return [normal(rows, width), (label[:, None] == label[None]).astype(np.float32)], theirs, ours


@program
def chamfer_distance() -> Program:
    count = size(800)

    def theirs(a, b):
        d = ((a[:, None] - b[None]) ** 2).sum(-1)
        return d.amin(1).mean() + d.amin(0).mean()

    def ours(a, b):
        d = ((a[:, None] - b[None]) ** 2).sum(axis=-1)
        return tn.min(d, axis=1).mean() + tn.min(d, axis=0).mean()

    return [normal(count, 3), normal(count, 3)], theirs, ours


@program
def volume_rendering() -> Program:
    rays, samples = size(2000), 48

    def theirs(density, colour, step):
        alpha = 1 - torch.exp(-F.relu(density) * step)
        passed = torch.cumprod(F.pad(1 - alpha + 1e-10, (1, 0), value=1.0), -1)[:, :-1]
        w = alpha * passed
        return (w[..., None] * torch.sigmoid(colour)).sum(1), w.sum(1)

    def ours(density, colour, step):
        alpha = 1 - tn.exp(-tn.relu(density) * step)
        passed = tn.cumprod(tn.pad(1 - alpha + 1e-10, [0, 0, 1, 0], value=1.0), axis=-1)[:, :-1]
        w = alpha * passed
        return (w[..., None] * tn.sigmoid(colour)).sum(axis=1), w.sum(axis=1)

    return [normal(rays, samples), normal(rays, samples, 3), uniform(rays, samples)], theirs, ours


@program
def positions_encoded() -> Program:
    points, octaves = size(20000), 6

    def run(sin, cos, concat, stack, x):
        scaled = stack([x * 2**i for i in range(octaves)])
        return concat([sin(scaled), cos(scaled)]).reshape((points, -1))

    return ([normal(points, 3)], lambda x: run(torch.sin, torch.cos, lambda v: torch.cat(v, -1), lambda v: torch.stack(v, 1), x),
            lambda x: run(tn.sin, tn.cos, lambda v: tn.concat(v, axis=-1), lambda v: tn.stack(v, axis=1), x))
