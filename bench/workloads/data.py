"""Data: series of numbers, images, boxes, texts as integers, samples."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

import tenon as tn

from .registry import Program, normal, program, random, size, uniform


@program
def returns_and_drawdown() -> Program:
    series, days = size(64), 1000

    def theirs(prices):
        returns = torch.log(prices[:, 1:] / prices[:, :-1])
        wealth = torch.cumsum(returns, 1)
        fall = wealth - torch.cummax(wealth, 1).values
        return returns.mean(1) / returns.std(1) * math.sqrt(252), fall.amin(1)

    def ours(prices):
        returns = tn.log(prices[:, 1:] / prices[:, :-1])
        wealth = tn.cumsum(returns, axis=1)
        top = wealth
        step = 1
        while step < days - 1:
            top = tn.concat([top[:, :step], tn.maximum(top[:, step:], top[:, :-step])], axis=1)
            step *= 2
        return returns.mean(axis=1) / tn.std(returns, axis=1, correction=1) * math.sqrt(252), tn.min(wealth - top, axis=1)

    return [np.exp(np.cumsum(normal(series, days) * 0.01, 1))], theirs, ours


@program
def moving_averages() -> Program:
    series, length = size(64), 2000

    def theirs(x):
        sums = F.pad(torch.cumsum(x, 1), (1, 0))
        short, long = (sums[:, 5:] - sums[:, :-5]) / 5, (sums[:, 20:] - sums[:, :-20]) / 20
        return torch.sign(short[:, 15:] - long)

    def ours(x):
        sums = tn.pad(tn.cumsum(x, axis=1), [0, 0, 1, 0])
        short, long = (sums[:, 5:] - sums[:, :-5]) / 5, (sums[:, 20:] - sums[:, :-20]) / 20
        return tn.sign(short[:, 15:] - long)

    return [normal(series, length)], theirs, ours


@program
def exponential_average() -> Program:
    series, length = size(2000), 64

    def run(stack, x):
        level, levels = x[:, 0], []
        for t in range(1, length):
            level = 0.9 * level + 0.1 * x[:, t]
            levels.append(level)
        return stack(levels)

    return [normal(series, length)], lambda x: run(lambda v: torch.stack(v, 1), x), lambda x: run(lambda v: tn.stack(v, axis=1), x)


@program
def fir_filter() -> Program:
    series, length, taps = size(16), 8000, 31

    def theirs(x, h):
        return x.unfold(1, taps, 1) @ h

    def ours(x, h):
        return tn.conv1d(x[:, None], h[None, None])[:, 0]

    return [normal(series, length), normal(taps)], theirs, ours


@program
def fir_filter_by_slices() -> Program:
    series, length, taps = size(16), 8000, 31

    def theirs(x, h):
        return x.unfold(1, taps, 1) @ h

    def ours(x, h):
        return tn.stack([x[:, i : length - taps + 1 + i] for i in range(taps)], axis=-1) @ h

    return [normal(series, length), normal(taps)], theirs, ours


@program
def histogram_by_one_hot() -> Program:
    count, bins = size(20000), 32

    def theirs(x):
        where = torch.clamp(((x + 4) * (bins / 8)).long(), 0, bins - 1)
        return F.one_hot(where, bins).sum(0)

    def ours(x):
        where = tn.clip(tn.astype((x + 4) * (bins / 8), tn.int64), 0, bins - 1)
        return tn.one_hot(where, bins).sum(axis=0)

    return [normal(count)], theirs, ours


@program
def joint_histogram() -> Program:
    count, bins = size(100000), 64

    def theirs(x, y):
        index = lambda v: torch.clamp((v * bins).long(), 0, bins - 1)
        counts = torch.bincount(index(x) * bins + index(y), minlength=bins * bins).to(torch.float32)
        p = counts.view(bins, bins) / count
        return (p * torch.log((p + 1e-12) / (p.sum(1, keepdim=True) * p.sum(0) + 1e-12))).sum()

    def ours(x, y):
        index = lambda v: tn.clip(tn.astype(v * bins, tn.int64), 0, bins - 1)
        counts = tn.scatter_add(tn.zeros(bins * bins), index(x) * bins + index(y), tn.ones(count), axis=0)
        p = counts.reshape((bins, bins)) / count
        return (p * tn.log((p + 1e-12) / (p.sum(axis=1, keepdims=True) * p.sum(axis=0) + 1e-12))).sum()

    x = uniform(count)
    return [x, np.clip(x + 0.1 * normal(count), 0, 1)], theirs, ours


@program
def bilinear_resize() -> Program:
    batch, channels, side, target = 2, 3, size(160), size(224)

    def run(arange, floor, clip, integer, x):
        at = (arange + 0.5) * (side / target) - 0.5
        at = clip(at, 0, side - 1)
        low = floor(at)
        part = at - low
        i, j = integer(low), integer(clip(low + 1, 0, side - 1))
        rows = x[:, :, i] * (1 - part)[:, None] + x[:, :, j] * part[:, None]
        return rows[..., i] * (1 - part) + rows[..., j] * part

    return ([normal(batch, channels, side, side)],
            lambda x: run(torch.arange(target, device=x.device, dtype=torch.float32).to(x.dtype), torch.floor, torch.clamp, lambda v: v.long(), x),
            lambda x: run(tn.astype(tn.arange(target), x.dtype), tn.floor, tn.clip, lambda v: tn.astype(v, tn.int64), x))


@program
def boxes_overlap() -> Program:
    boxes = size(800)

    def run(maximum, minimum, relu, a, b):
        corner = maximum(a[:, None, :2], b[None, :, :2])
        other = minimum(a[:, None, 2:], b[None, :, 2:])
        inside = relu(other - corner)
        both = inside[..., 0] * inside[..., 1]
        area = lambda v: (v[:, 2] - v[:, 0]) * (v[:, 3] - v[:, 1])
        return both / (area(a)[:, None] + area(b)[None] - both)

    def make():
        low = uniform(boxes, 2) * 10
        return np.concatenate([low, low + uniform(boxes, 2) * 3 + 0.1], 1)

    return ([make(), make()], lambda a, b: run(torch.maximum, torch.minimum, F.relu, a, b),
            lambda a, b: run(tn.maximum, tn.minimum, tn.relu, a, b))


@program
def pairwise_cosine() -> Program:
    rows, width = size(600), 48

    def theirs(x):
        return F.cosine_similarity(x[:, None], x[None], dim=-1)

    def ours(x):
        return tn.cosine_similarity(x[:, None], x[None], axis=-1)

    return [normal(rows, width)], theirs, ours


@program
def pi_by_chance() -> Program:
    count = size(1000000)

    def theirs(four):
        x, y = torch.rand(count, device=four.device), torch.rand(count, device=four.device)
        return four * (x * x + y * y <= 1).float().mean()

    def ours(four):
        x, y = tn.rand((count,), seed=1), tn.rand((count,), seed=2)
        return four * tn.astype(x * x + y * y <= 1, tn.float32).mean()

    return [np.full(1, 4, np.float32)], theirs, ours


@program
def option_paths() -> Program:
    paths, steps = size(4000), 64

    def theirs(z, start):
        log = torch.cumsum((0.02 - 0.045) / steps + 0.3 * math.sqrt(1 / steps) * z, 1)
        price = start * torch.exp(log)
        return (torch.relu(price.mean(1) - 100).mean() * math.exp(-0.02), torch.relu(price[:, -1] - 100).mean())

    def ours(z, start):
        log = tn.cumsum((0.02 - 0.045) / steps + 0.3 * math.sqrt(1 / steps) * z, axis=1)
        price = start * tn.exp(log)
        return (tn.relu(price.mean(axis=1) - 100).mean() * math.exp(-0.02), tn.relu(price[:, -1] - 100).mean())

    return [normal(paths, steps), np.full(1, 100, np.float32)], theirs, ours


@program
def hashes_of_trigrams() -> Program:
    rows, length, buckets = size(512), 256, 1 << 18

    def theirs(ids, table):
        h = ids[:, :-2] * 1000003 + ids[:, 1:-1] * 8191 + ids[:, 2:]
        h = h ^ (h >> 15)
        return table[h % buckets].sum(1)

    def ours(ids, table):
        h = ids[:, :-2] * 1000003 + ids[:, 1:-1] * 8191 + ids[:, 2:]
        h = h ^ (h >> 15)
        return tn.take(table, h % buckets, axis=0).sum(axis=1)

    return [random.integers(0, 30000, (rows, length)), normal(buckets)], theirs, ours


@program
def quantile_normalisation() -> Program:
    rows, columns = size(4000), 16

    def theirs(x):
        order = torch.argsort(x, dim=0, stable=True)
        mean = x.sort(0).values.mean(1, keepdim=True)
        return torch.zeros_like(x).scatter(0, order, mean.expand(-1, columns))

    def ours(x):
        order = tn.argsort(x, axis=0)
        mean = tn.sort(x, axis=0).mean(axis=1, keepdims=True)
        return tn.scatter(tn.zeros_like(x), order, tn.broadcast_to(mean, x.shape), axis=0)

    return [normal(rows, columns)], theirs, ours


@program
def first_of_each() -> Program:
    count = size(50000)

    def theirs(ids):
        order = torch.argsort(ids, stable=True)
        sorted_ids = ids[order]
        fresh = F.pad((sorted_ids[1:] != sorted_ids[:-1]).long(), (1, 0), value=1)
        return torch.zeros_like(ids).scatter(0, order, fresh), fresh.sum()

    def ours(ids):
        order = tn.argsort(ids)
        sorted_ids = tn.take(ids, order, axis=0)
        fresh = tn.pad(tn.astype(sorted_ids[1:] != sorted_ids[:-1], tn.int64), [1, 0], value=1)
        return tn.scatter(tn.zeros_like(ids), order, fresh, axis=0), fresh.sum()

    return [random.integers(0, 20000, count)], theirs, ours


@program
def means_of_groups() -> Program:
    rows, groups = size(30000), 200

    def theirs(key, value):
        ones = torch.ones_like(value)
        sums = torch.zeros(groups, dtype=value.dtype, device=value.device).index_add(0, key, value)
        count = torch.zeros(groups, dtype=value.dtype, device=value.device).index_add(0, key, ones)
        mean = sums / count
        return value - mean[key], mean

    def ours(key, value):
        ones = tn.ones_like(value)
        sums = tn.scatter_add(tn.zeros(groups, dtype=value.dtype), key, value, axis=0)
        count = tn.scatter_add(tn.zeros(groups, dtype=value.dtype), key, ones, axis=0)
        mean = sums / count
        return value - tn.take(mean, key, axis=0), mean

    return [random.integers(0, groups, rows), normal(rows)], theirs, ours


@program
def spherical_distances() -> Program:
    places = size(900)

    def run(sin, cos, sqrt, asin, a, b):
        lat, lon = a[:, None, 0] - b[None, :, 0], a[:, None, 1] - b[None, :, 1]
        h = sin(lat / 2) ** 2 + cos(a[:, 0])[:, None] * cos(b[:, 0])[None] * sin(lon / 2) ** 2
        return 12742 * asin(sqrt(h))

    return ([uniform(places, 2), uniform(places, 2)], lambda a, b: run(torch.sin, torch.cos, torch.sqrt, torch.asin, a, b),
            lambda a, b: run(tn.sin, tn.cos, tn.sqrt, tn.asin, a, b))


@program
def colours_to_grey_and_hsv() -> Program:
    side = size(400)

    def theirs(x):
        r, g, b = x[..., 0], x[..., 1], x[..., 2]
        top, bottom = x.amax(-1), x.amin(-1)
        spread = top - bottom + 1e-6
        hue = torch.where(top == r, (g - b) / spread, torch.where(top == g, 2 + (b - r) / spread, 4 + (r - g) / spread))
        return torch.stack([hue / 6, spread / (top + 1e-6), top], -1), 0.3 * r + 0.59 * g + 0.11 * b

    def ours(x):
        r, g, b = x[..., 0], x[..., 1], x[..., 2]
        top, bottom = tn.max(x, axis=-1), tn.min(x, axis=-1)
        spread = top - bottom + 1e-6
        hue = tn.where(top == r, (g - b) / spread, tn.where(top == g, 2 + (b - r) / spread, 4 + (r - g) / spread))
        return tn.stack([hue / 6, spread / (top + 1e-6), top], axis=-1), 0.3 * r + 0.59 * g + 0.11 * b

    return [uniform(side, side, 3)], theirs, ours


@program
def standardised_features() -> Program:
    rows, columns = size(20000), 7

    def theirs(x, w):
        z = (x - x.mean(0)) / x.std(0)
        return torch.sigmoid((z * w).sum(1)), (z > 2).sum(0)

    def ours(x, w):
        z = (x - x.mean(axis=0)) / tn.std(x, axis=0, correction=1)
        return tn.sigmoid((z * w).sum(axis=1)), tn.astype(z > 2, tn.int64).sum(axis=0)

    return [normal(rows, columns), normal(columns)], theirs, ours


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
