"""Linear algebra and simulations: solvers, iterations, kernels of Gaussian processes, cellular automata."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

import tenon as tn

from .registry import Program, normal, program, random, size, uniform, weight


def positive_definite(side: int) -> np.ndarray:
    a = weight(side, side)
    return a @ a.T + np.eye(side, dtype=np.float32)


@program
def gaussian_kernel_matrix() -> Program:
    points, width = size(900), 6

    def theirs(x, scales):
        x = x / scales
        d = ((x[:, None] - x[None]) ** 2).sum(-1)
        return torch.exp(-0.5 * d) + 1e-4 * torch.eye(points, dtype=x.dtype, device=x.device)

    def ours(x, scales):
        x = x / scales
        d = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
        return tn.exp(-0.5 * d) + 1e-4 * tn.eye(points, dtype=x.dtype)

    return [normal(points, width), uniform(width) + 0.5], theirs, ours


@program
def kmeans_by_broadcasting() -> Program:
    points, centres, width = size(4000), 12, 8

    def theirs(x, c):
        nearest = ((x[:, None] - c[None]) ** 2).sum(-1).argmin(1)
        chosen = F.one_hot(nearest, centres).to(x.dtype)
        return chosen.T @ x / chosen.sum(0).clamp(min=1)[:, None]

    def ours(x, c):
        nearest = tn.argmin(((x[:, None] - c[None]) ** 2).sum(axis=-1), axis=1)
        chosen = tn.astype(tn.one_hot(nearest, centres), x.dtype)
        return chosen.T @ x / tn.clamp_min(chosen.sum(axis=0), 1)[:, None]

    return [normal(points, width), normal(centres, width)], theirs, ours


@program
def conjugate_gradient() -> Program:
    side, steps = size(500), 10

    def run(zeros_like, a, b):
        x, r = zeros_like(b), b
        p, rr = r, (r * r).sum()
        for _ in range(steps):
            ap = a @ p
            alpha = rr / (p * ap).sum()
            x, r = x + alpha * p, r - alpha * ap
            new = (r * r).sum()
            p, rr = r + new / rr * p, new
        return x

    return [positive_definite(side), normal(side)], lambda a, b: run(torch.zeros_like, a, b), lambda a, b: run(tn.zeros_like, a, b)


@program
def jacobi_solver() -> Program:
    side, steps = size(300), 20

    def theirs(a, b):
        d = torch.diagonal(a)
        rest = a - torch.diag(d)
        x = torch.zeros_like(b)
        for _ in range(steps):
            x = (b - rest @ x) / d
        return x

    def ours(a, b):
        d = tn.diagonal(a)
        rest = a - tn.diag(d)
        x = tn.zeros_like(b)
        for _ in range(steps):
            x = (b - rest @ x) / d
        return x

    return [weight(side, side) + 3 * np.eye(side, dtype=np.float32), normal(side)], theirs, ours


@program
def matrix_exponential() -> Program:
    side, terms, batch = size(48), 10, 8

    def run(eye, a):
        total = term = eye
        for k in range(1, terms + 1):
            term = term @ a / k
            total = total + term
        return total

    return ([weight(batch, side, side)], lambda a: run(torch.eye(side, dtype=a.dtype, device=a.device).expand(batch, side, side), a),
            lambda a: run(tn.broadcast_to(tn.eye(side, dtype=a.dtype), (batch, side, side)), a))


@program
def principal_components() -> Program:
    rows, columns, steps = size(4000), 64, 8

    def theirs(x, v):
        x = x - x.mean(0)
        for _ in range(steps):
            v = x.T @ (x @ v)
            v = v / v.norm(dim=0)
        return x @ v

    def ours(x, v):
        x = x - x.mean(axis=0)
        for _ in range(steps):
            v = x.T @ (x @ v)
            v = v / tn.norm(v, axis=0)
        return x @ v

    return [normal(rows, columns) * (uniform(columns) + 0.1), normal(columns, 3)], theirs, ours


@program
def floyd_warshall() -> Program:
    nodes = size(96)

    def run(minimum, d):
        for k in range(nodes):
            d = minimum(d, d[:, k : k + 1] + d[k : k + 1])
        return d

    return [uniform(nodes, nodes) * 10], lambda d: run(torch.minimum, d), lambda d: run(tn.minimum, d)


@program
def sinkhorn() -> Program:
    side, steps = size(256), 15

    def theirs(cost, a, b):
        log_k, f, g = -cost / 0.5, torch.zeros_like(a), torch.zeros_like(b)
        for _ in range(steps):
            f = a - torch.logsumexp(log_k + g[None], 1)
            g = b - torch.logsumexp(log_k + f[:, None], 0)
        return torch.exp(f[:, None] + log_k + g[None])

    def ours(cost, a, b):
        log_k, f, g = -cost / 0.5, tn.zeros_like(a), tn.zeros_like(b)
        for _ in range(steps):
            f = a - tn.logsumexp(log_k + g[None], axis=1)
            g = b - tn.logsumexp(log_k + f[:, None], axis=0)
        return tn.exp(f[:, None] + log_k + g[None])

    even = np.full(side, -np.log(side), np.float32)
    return [uniform(side, side), even, even.copy()], theirs, ours


@program
def kalman_filter() -> Program:
    tracks, steps = size(256), 12

    def run(eye, move, see, noise, turn, seen):
        x, p = seen[:, 0] @ see, eye
        for t in range(1, steps):
            x = x @ move.T
            p = move @ p @ move.T + 0.01 * eye
            s = see @ p @ see.T + noise
            # The inverse of 2 x 2: the adjugate over the determinant.
            determinant = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
            gain = p @ see.T @ (turn @ s.T @ turn.T) / determinant
            x = x + (seen[:, t] - x @ see.T) @ gain.T
            p = p - gain @ see @ p
        return x, p

    move = np.eye(4, dtype=np.float32) + 0.1 * np.eye(4, k=2, dtype=np.float32)
    see = np.eye(2, 4, dtype=np.float32)
    return ([np.eye(4, dtype=np.float32), move, see, 0.5 * np.eye(2, dtype=np.float32), np.array([[0, 1], [-1, 0]], np.float32),
             normal(tracks, steps, 2)], run, run)


@program
def game_of_life() -> Program:
    side, steps = size(256), 8

    def run(roll, integers, world):
        for _ in range(steps):
            near = sum(roll(world, (y, x)) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0))
            world = integers((near == 3) | ((near == 2) & (world == 1)))
        return world

    world = (uniform(side, side) < 0.3).astype(np.int32)
    return ([world], lambda w: run(lambda x, by: torch.roll(x, by, (0, 1)), lambda x: x.to(torch.int32), w),
            lambda w: run(lambda x, by: tn.roll(x, by, axis=(0, 1)), lambda x: tn.astype(x, tn.int32), w))


@program
def blur_by_shifts() -> Program:
    side, radius = size(400), 2

    def run(pad, x, kernel):
        padded = pad(x)
        total = 0
        for i in range(2 * radius + 1):
            for j in range(2 * radius + 1):
                total = total + kernel[i, j] * padded[i : i + side, j : j + side]
        return total

    return ([normal(side, side), uniform(2 * radius + 1, 2 * radius + 1)], lambda x, k: run(lambda a: F.pad(a, (radius,) * 4), x, k),
            lambda x, k: run(lambda a: tn.pad(a, radius), x, k))


@program
def lattice_energy() -> Program:
    side, atoms = size(12), 3

    def run(floor, sqrt, exp, total, cells, charges):
        d = cells[:, None] - cells[None]
        d = d - floor(d * 0.1 + 0.5) * 10.0  # the nearest image in a periodic box
        r = sqrt(total(d * d) + 1e-2)
        return (charges[:, None] * charges[None] * exp(-r) / r).sum()

    count = side * side * atoms
    return ([normal(count, 3) * 5, normal(count)], lambda *v: run(torch.floor, torch.sqrt, torch.exp, lambda x: x.sum(-1), *v),
            lambda *v: run(tn.floor, tn.sqrt, tn.exp, lambda x: x.sum(axis=-1), *v))


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
