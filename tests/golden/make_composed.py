#!/usr/bin/env python3
"""Writes tests/golden/composed.txt: values of the composed ops by NumPy and SciPy, an independent source.

    python3 tests/golden/make_composed.py

A case is an expression, the tensors it names, and the results expected; numbers are written so that they read back exactly.
"""
import itertools
import pathlib

import numpy as np
from scipy import special
from scipy.spatial import distance

rng = np.random.default_rng(20240229)
lines = []


def number(value):
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if np.isnan(value):
        return "nan"
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(float(value))


def tensor(array):
    array = np.asarray(array)
    shape = ",".join(str(n) for n in array.shape)
    values = " ".join(number(v) for v in array.ravel())
    return f"{array.dtype.name} [{shape}] {values}".rstrip()


def case(expression, expected, **inputs):
    lines.append(f"= {expression}")
    for name, array in inputs.items():
        lines.append(f"{name}: {tensor(array)}")
    for result in expected if isinstance(expected, tuple) else (expected,):
        lines.append(f"-> {tensor(result)}")


def floats(*shape):
    return np.round(rng.normal(size=shape) * 2, 3)


def ints(low, high, *shape):
    return rng.integers(low, high, size=shape)


# --- reductions -------------------------------------------------------------------------------------------------------
x = floats(3, 4, 2)
for axis, text in ((None, ""), (0, ", axis=0"), ((0, 2), ", axis=[0, 2]"), (-1, ", axis=-1, keepdims=true")):
    keep = "keepdims" in text
    case(f"sum(x{text})", x.sum(axis, keepdims=keep), x=x)
    case(f"mean(x{text})", x.mean(axis, keepdims=keep), x=x)
    case(f"prod(x{text})", x.prod(axis, keepdims=keep), x=x)
    case(f"max(x{text})", x.max(axis, keepdims=keep), x=x)
    case(f"min(x{text})", x.min(axis, keepdims=keep), x=x)
    case(f"var(x{text})", x.var(axis, ddof=1, keepdims=keep), x=x)
    case(f"std(x{text})", x.std(axis, ddof=1, keepdims=keep), x=x)
    case(f"logsumexp(x{text})", special.logsumexp(x, axis=axis, keepdims=keep), x=x)
    case(f"any(x > 1{text})", (x > 1).any(axis, keepdims=keep), x=x)
    case(f"all(x > -4{text})", (x > -4).all(axis, keepdims=keep), x=x)
    case(f"count_nonzero(x > 0{text})", np.sum(x > 0, axis, keepdims=keep), x=x)
    case(f"norm(x{text})", np.sqrt((x * x).sum(axis, keepdims=keep)), x=x)
case("var(x, axis=1, correction=0)", x.var(1), x=x)
case("std(x, correction=2)", x.std(ddof=2), x=x)
case("norm(x, 1, axis=1)", np.abs(x).sum(1), x=x)
case("norm(x, inf, axis=1)", np.abs(x).max(1), x=x)
case("norm(x, 3, axis=1)", (np.abs(x) ** 3).sum(1) ** (1 / 3), x=x)
case("norm(x, 0)", np.float64(np.count_nonzero(x)), x=x)
case("norm(x)", np.array(5e200), x=np.array([3e200, 4e200]))
case("norm(x)", np.array(5e-200), x=np.array([3e-200, -4e-200]))
case("norm(x)", np.array(0.0), x=np.zeros(3))
case("norm(x)", np.array(np.inf), x=np.array([1.0, -np.inf]))
case("argmax(x)", x.argmax(), x=x)
case("argmin(x, axis=1)", x.argmin(1), x=x)
case("argmax(x, axis=-1, keepdims=true)", x.argmax(-1)[..., None], x=x)
case("argmax(x)", np.int64(1), x=np.array([1.0, np.nan, 3.0, np.nan]))
case("max(x)", np.nan, x=np.array([1.0, np.nan, 3.0]))
case("min(x)", np.nan, x=np.array([np.nan, 1.0]))
case("logsumexp(x, axis=1)", special.logsumexp([[1000, 1001], [-1000, -1002.5], [-np.inf, -np.inf], [np.inf, 0]], axis=1),
     x=np.array([[1000, 1001], [-1000, -1002.5], [-np.inf, -np.inf], [np.inf, 0]]))
i = ints(-100, 100, 3, 5).astype(np.int32)
case("sum(x, axis=0)", i.sum(0, dtype=np.int64), x=i)
case("mean(cast(x, int8))", i.mean(), x=i)
case("prod(x, axis=1)", i.prod(1, dtype=np.int64), x=i)
case("sum(x)", np.array(0.0), x=np.zeros((0, 3)))
case("prod(x, axis=0)", np.ones(3), x=np.zeros((0, 3)))
case("mean(x)", np.nan, x=np.zeros((0,)))
case("sum(x)", np.array(2.0), x=np.array([1.0, 1e100, 1.0, -1e100]))
x = floats(4, 5)
case("median(x)", np.median(x), x=x)
case("median(x, axis=0)", np.median(x, 0), x=x)
case("median(x, axis=1, keepdims=true)", np.median(x, 1, keepdims=True), x=x)
case("median(x)", np.nan, x=np.array([1.0, np.nan, 2.0]))
case("quantile(x, 0.3, axis=1)", np.quantile(x, 0.3, axis=1), x=x)
case("quantile(x, 1.0)", np.quantile(x, 1.0), x=x)

# --- order and scans --------------------------------------------------------------------------------------------------
case("sort(x, axis=0)", np.sort(x, 0), x=x)
case("sort(x, descending=true)", -np.sort(-x, -1), x=x)
case("sort(x)", np.array([-np.inf, 1.0, 2.0, np.nan]), x=np.array([np.nan, 2.0, -np.inf, 1.0]))
d = ints(0, 3, 12)
case("argsort(x)", np.argsort(d, kind="stable"), x=d)
case("argsort(x, descending=true)", np.argsort(-d, kind="stable"), x=d)
order = np.argsort(-x, axis=1, kind="stable")[:, :3]
case("top_k(x, 3)", (np.take_along_axis(x, order, 1), order), x=x)
order = np.argsort(x, axis=0, kind="stable")[:2]
case("top_k(x, 2, axis=0, largest=false)", (np.take_along_axis(x, order, 0), order), x=x)
case("cumsum(x, axis=0)", x.cumsum(0), x=x)
case("cumsum(x)", x.cumsum(1), x=x)
case("cumprod(x, axis=0)", x.cumprod(0), x=x)

# --- normalization ----------------------------------------------------------------------------------------------------
x = floats(2, 3, 5)
for axis in (-1, 0, 1):
    case(f"softmax(x, axis={axis})", special.softmax(x, axis), x=x)
    case(f"softmin(x, axis={axis})", special.softmax(-x, axis), x=x)
    case(f"log_softmax(x, axis={axis})", special.log_softmax(x, axis), x=x)
big = np.array([[1000.0, 999.0, -1000.0], [-800.0, -801.0, -799.0]])
case("softmax(x)", special.softmax(big, -1), x=big)
case("log_softmax(x)", special.log_softmax(big, -1), x=big)


def standard(a, axes, eps):
    return (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + eps)


w, b = floats(5), floats(5)
case("layer_norm(x)", standard(x, -1, 1e-5), x=x)
case("layer_norm(x, w, b, eps=0.01)", standard(x, -1, 0.01) * w + b, x=x, w=w, b=b)
w2 = floats(3, 5)
case("layer_norm(x, w, axis=[1, 2])", standard(x, (1, 2), 1e-5) * w2, x=x, w=w2)
case("rms_norm(x)", x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6), x=x)
case("rms_norm(x, w, eps=0.1)", x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.1) * w, x=x, w=w)
m, v, w, b = floats(3), np.abs(floats(3)) + 0.1, floats(3), floats(3)
c = lambda a: a[None, :, None]
case("batch_norm(x, m, v)", (x - c(m)) / np.sqrt(c(v) + 1e-5), x=x, m=m, v=v)
case("batch_norm(x, m, v, w, b, eps=0.1)", (x - c(m)) / np.sqrt(c(v) + 0.1) * c(w) + c(b), x=x, m=m, v=v, w=w, b=b)
g = floats(2, 4, 3)
w, b = floats(4), floats(4)
grouped = standard(g.reshape(2, 2, 6), -1, 1e-5).reshape(g.shape)
case("group_norm(x, groups=2)", grouped, x=g)
case("group_norm(x, w, b, groups=2)", grouped * c(w) + c(b), x=g, w=w, b=b)
case("instance_norm(x, w, b)", standard(g, -1, 1e-5) * c(w) + c(b), x=g, w=w, b=b)
case("normalize(x)", x / np.linalg.norm(x, axis=-1, keepdims=True), x=x)
case("normalize(x, p=1, axis=1)", x / np.abs(x).sum(1, keepdims=True), x=x)
case("normalize(x)", np.zeros(3), x=np.zeros(3))

# --- linear algebra ---------------------------------------------------------------------------------------------------
for sa, sb in (((3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)), ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 2)), ((2, 0), (0, 3))):
    a, b = floats(*sa), floats(*sb)
    case("matmul(a, b)", a @ b, a=a, b=b)
ia, ib = ints(-9, 9, 3, 4), ints(-9, 9, 4, 2)
case("matmul(a, b)", ia @ ib, a=ia, b=ib)
a, b = floats(3, 4), floats(3, 4)
case("vecdot(a, b)", (a * b).sum(-1), a=a, b=b)
case("vecdot(a, b, axis=0)", (a * b).sum(0), a=a, b=b)
case("inner(a, b)", np.inner(a, b), a=a, b=b)
case("outer(a, b)", np.outer(a[0], b[1]), a=a[0], b=b[1])
case("kron(a, b)", np.kron(a[:2, :2], b[:2]), a=a[:2, :2], b=b[:2])
u, v3 = floats(4, 3), floats(4, 3)
case("cross(a, b)", np.cross(u, v3), a=u, b=v3)
case("cross(a, b, axis=0)", np.cross(u.T, v3.T, axis=0), a=u.T, b=v3.T)
s = floats(4, 4)
case("trace(x)", np.trace(s), x=s)
case("trace(x, offset=-1)", np.trace(s, -1), x=s)
case("trace(x, 2)", np.trace(s, 2), x=s)
case("matrix_power(x, 5)", np.linalg.matrix_power(s, 5), x=s)
case("matrix_power(x, 0)", np.eye(4), x=s)
p, q, r = floats(3, 2), floats(3, 4), floats(4, 2)
case("addmm(c, a, b, beta=0.5, alpha=2)", 0.5 * p + 2 * q @ r, c=p, a=q, b=r)
case("addmm(c, a, b, beta=0)", q @ r, c=np.full((3, 2), np.nan), a=q, b=r)
xs, w, bias = floats(2, 3, 4), floats(5, 4), floats(5)
case("linear(x, w)", xs @ w.T, x=xs, w=w)
case("linear(x, w, b)", xs @ w.T + bias, x=xs, w=w, b=bias)
case("linear(x, w, b)", xs[0, 0] @ w.T + bias, x=xs[0, 0], w=w, b=bias)
t1, t2 = floats(2, 3, 4), floats(3, 4, 5)
case("tensordot(a, b)", np.tensordot(t1, t2), a=t1, b=t2)
case("tensordot(a, b, axes=0)", np.tensordot(t1[0, 0], t2[0, 0], 0), a=t1[0, 0], b=t2[0, 0])
case("bmm(a, b)", t1 @ floats(2, 4, 0), a=t1, b=np.zeros((2, 4, 0)))

for equation, *shapes in (
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ba", (2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)),
    ("ij->", (2, 3)), ("i,j->ij", (2,), (3,)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
    ("i...->...", (2, 3, 4)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)), ("ij,ij->ij", (2, 3), (2, 3)), ("ij,ij->", (2, 3), (2, 3)),
    ("iij,jk->ik", (2, 2, 3), (3, 2)), ("ab,cd->dbca", (2, 3), (4, 2)), ("a,ab,abc->abc", (2,), (2, 3), (2, 3, 4)),
    ("bhld,bhsd->bhls", (2, 2, 3, 4), (2, 2, 5, 4)), ("...i,...i->...", (2, 1, 3), (4, 3)), ("ijk,k->ij", (2, 3, 4), (1,)),
    ("ab,bc,cd,da->", (2, 3), (3, 4), (4, 2), (2, 2)), ("...", (2, 3)), ("abc,cb->a", (2, 3, 4), (4, 3)),
):
    arrays = [floats(*shape) for shape in shapes]
    expected = np.einsum(equation, *arrays) if shapes[-1] != (1,) else np.einsum(equation, arrays[0], np.repeat(arrays[1], 4))
    names = dict(zip("pqrs", arrays))
    case(f'einsum("{equation}", {", ".join(names)})', expected, **names)

a, b = floats(3, 4), floats(5, 4)
case("cdist(a, b)", distance.cdist(a, b), a=a, b=b)
case("cdist(a, b, p=1)", distance.cdist(a, b, "cityblock"), a=a, b=b)
case("cdist(a, b, p=inf)", distance.cdist(a, b, "chebyshev"), a=a, b=b)
case("cdist(a, b, p=3)", distance.cdist(a, b, "minkowski", p=3), a=a, b=b)
case("cosine_similarity(a, b)", 1 - np.array([distance.cosine(i, j) for i, j in zip(a, b[:3])]), a=a, b=b[:3])
case("cosine_similarity(a, b, axis=0)", 1 - np.array([distance.cosine(i, j) for i, j in zip(a.T, b[:3].T)]), a=a, b=b[:3])
case("cosine_similarity(a, b)", np.array([1.0]), a=np.array([[1e200, 1e200]]), b=np.array([[2e200, 2e200]]))
case("pairwise_distance(a, b, eps=0)", np.linalg.norm(a - b[:3], axis=1), a=a, b=b[:3])
case("pairwise_distance(a, b, p=1, keepdims=true)", np.abs(a - b[:3] + 1e-6).sum(1, keepdims=True), a=a, b=b[:3])


# --- convolution and pooling ------------------------------------------------------------------------------------------
def padded(a, pads, value=0.0):
    return np.pad(a, [(0, 0), (0, 0)] + pads, constant_values=value)


def conv(a, k, stride, dilation, pads, groups=1):
    a = padded(a, pads)
    spatial = k.shape[2:]
    out = [(n - (s - 1) * d - 1) // t + 1 for n, s, d, t in zip(a.shape[2:], spatial, dilation, stride)]
    y = np.zeros((a.shape[0], k.shape[0], *out))
    per_in, per_out = k.shape[1], k.shape[0] // groups
    for n, o in itertools.product(range(a.shape[0]), range(k.shape[0])):
        base = o // per_out * per_in
        for place in itertools.product(*map(range, out)):
            for tap in itertools.product(*map(range, spatial)):
                at = tuple(p * t + i * d for p, t, i, d in zip(place, stride, tap, dilation))
                for ch in range(per_in):
                    y[(n, o) + place] += k[(o, ch) + tap] * a[(n, base + ch) + at]
    return y


def conv_transpose(a, k, stride, dilation, pad, extra, groups=1):
    spatial = k.shape[2:]
    full = [(n - 1) * t + (s - 1) * d + 1 + e for n, t, s, d, e in zip(a.shape[2:], stride, spatial, dilation, extra)]
    y = np.zeros((a.shape[0], k.shape[1] * groups, *full))
    per_in = a.shape[1] // groups
    for n, ch in itertools.product(range(a.shape[0]), range(a.shape[1])):
        base = ch // per_in * k.shape[1]
        for place in itertools.product(*map(range, a.shape[2:])):
            for tap in itertools.product(*map(range, spatial)):
                at = tuple(p * t + i * d for p, t, i, d in zip(place, stride, tap, dilation))
                for o in range(k.shape[1]):
                    y[(n, base + o) + at] += k[(ch, o) + tap] * a[(n, ch) + place]
    cut = tuple(slice(p, n - p) for p, n in zip(pad, full))
    return y[(slice(None), slice(None)) + cut]


a, k, bias = floats(2, 3, 7), floats(4, 3, 3), floats(4)
case("conv1d(x, w)", conv(a, k, [1], [1], [(0, 0)]), x=a, w=k)
case("conv1d(x, w, b, stride=2, padding=2, dilation=2)", conv(a, k, [2], [2], [(2, 2)]) + bias[None, :, None], x=a, w=k, b=bias)
case("conv1d(x, w, padding=[2, 0])", conv(a, k, [1], [1], [(2, 0)]), x=a, w=k)
case("conv1d(x, w)", conv(a[:1], k, [1], [1], [(0, 0)])[0], x=a[0], w=k)
a, k, bias = floats(1, 4, 5, 4), floats(4, 2, 3, 2), floats(4)
case("conv2d(x, w, groups=2)", conv(a, k, [1, 1], [1, 1], [(0, 0)] * 2, 2), x=a, w=k)
case("conv2d(x, w, b, stride=[2, 1], padding=[1, 2], dilation=[1, 2], groups=2)",
     conv(a, k, [2, 1], [1, 2], [(1, 1), (2, 2)], 2) + bias[None, :, None, None], x=a, w=k, b=bias)
case("conv2d(x, w, padding=[1, 0, 0, 2], groups=2)", conv(a, k, [1, 1], [1, 1], [(1, 0), (0, 2)], 2), x=a, w=k)
depthwise = floats(8, 1, 2, 2)
case("conv2d(x, w, groups=4)", conv(a, depthwise, [1, 1], [1, 1], [(0, 0)] * 2, 4), x=a, w=depthwise)
a, k = floats(1, 2, 3, 4, 3), floats(2, 2, 2, 2, 2)
case("conv3d(x, w, stride=[1, 2, 1], padding=1)", conv(a, k, [1, 2, 1], [1, 1, 1], [(1, 1)] * 3), x=a, w=k)
a, k, bias = floats(2, 4, 5), floats(4, 3, 3), floats(6)
case("conv_transpose1d(x, w)", conv_transpose(a, k, [1], [1], [0], [0]), x=a, w=k)
case("conv_transpose1d(x, w, b, stride=3, padding=1, output_padding=2, groups=2, dilation=2)",
     conv_transpose(a, k, [3], [2], [1], [2], 2) + bias[None, :, None], x=a, w=k, b=bias)
case("conv_transpose1d(x, w, padding=3, stride=2)", conv_transpose(a, k, [2], [1], [3], [0]), x=a, w=k)
a, k = floats(1, 2, 3, 2), floats(2, 3, 2, 3)
case("conv_transpose2d(x, w, stride=2, padding=[0, 1])", conv_transpose(a, k, [2, 2], [1, 1], [0, 1], [0, 0]), x=a, w=k)
a, k = floats(1, 1, 2, 2, 2), floats(1, 2, 2, 2, 2)
case("conv_transpose3d(x, w, stride=2)", conv_transpose(a, k, [2] * 3, [1] * 3, [0] * 3, [0] * 3), x=a, w=k)


def pool(a, size, stride, dilation, pad, reduce, value):
    a = padded(a, [(p, p) for p in pad], value)
    out = [(n - (s - 1) * d - 1) // t + 1 for n, s, d, t in zip(a.shape[2:], size, dilation, stride)]
    y = np.zeros((*a.shape[:2], *out))
    for place in itertools.product(*map(range, out)):
        window = tuple(slice(p * t, p * t + (s - 1) * d + 1, d) for p, t, s, d in zip(place, stride, size, dilation))
        y[(slice(None), slice(None)) + place] = reduce(a[(slice(None), slice(None)) + window].reshape(*a.shape[:2], -1))
    return y


largest = lambda window: window.max(-1)
mean = lambda window: window.mean(-1)
mean_inside = lambda window: np.nanmean(window, -1)
a = floats(2, 2, 7)
case("max_pool1d(x, 3)", pool(a, [3], [3], [1], [0], largest, -np.inf), x=a)
case("max_pool1d(x, kernel=3, stride=2, padding=1, dilation=2)", pool(a, [3], [2], [2], [1], largest, -np.inf), x=a)
case("avg_pool1d(x, kernel=3, stride=2, padding=1)", pool(a, [3], [2], [1], [1], mean, 0), x=a)
case("avg_pool1d(x, kernel=3, stride=2, padding=1, count_include_pad=false)", pool(a, [3], [2], [1], [1], mean_inside, np.nan), x=a)
case("avg_pool1d(x, kernel=3, padding=2, dilation=2, stride=1, count_include_pad=false)",
     pool(a, [3], [1], [2], [2], mean_inside, np.nan), x=a)
a = floats(1, 2, 5, 6)
case("max_pool2d(x, kernel=[2, 3])", pool(a, [2, 3], [2, 3], [1, 1], [0, 0], largest, -np.inf), x=a)
case("max_pool2d(x, kernel=3, stride=[2, 1], padding=1)", pool(a, [3, 3], [2, 1], [1, 1], [1, 1], largest, -np.inf), x=a)
case("avg_pool2d(x, kernel=[3, 2], stride=1, padding=[1, 0])", pool(a, [3, 2], [1, 1], [1, 1], [1, 0], mean, 0), x=a)
case("avg_pool2d(x, kernel=3, stride=2, padding=1, count_include_pad=false)",
     pool(a, [3, 3], [2, 2], [1, 1], [1, 1], mean_inside, np.nan), x=a)
case("max_pool2d(x, kernel=2)", np.array([[[np.nan, 4.0]]]), x=np.array([[[1.0, np.nan, 3.0, 4.0], [5.0, 6.0, 1.0, 2.0]]]))
a3 = floats(1, 1, 3, 4, 2)
case("max_pool3d(x, kernel=2, stride=1)", pool(a3, [2] * 3, [1] * 3, [1] * 3, [0] * 3, largest, -np.inf), x=a3)
case("avg_pool3d(x, kernel=[3, 2, 1])", pool(a3, [3, 2, 1], [3, 2, 1], [1] * 3, [0] * 3, mean, 0), x=a3)


def adaptive(a, sizes, reduce):
    y = np.zeros((*a.shape[:2], *sizes))
    for place in itertools.product(*map(range, sizes)):
        window = tuple(slice(p * n // m, -(-(p + 1) * n // m)) for p, n, m in zip(place, a.shape[2:], sizes))
        y[(slice(None), slice(None)) + place] = reduce(a[(slice(None), slice(None)) + window].reshape(*a.shape[:2], -1))
    return y


a1 = floats(2, 1, 10)
for n in (1, 3, 4, 5, 10):
    case(f"adaptive_avg_pool1d(x, {n})", adaptive(a1, [n], mean), x=a1)
    case(f"adaptive_max_pool1d(x, {n})", adaptive(a1, [n], largest), x=a1)
case("adaptive_avg_pool1d(x, 7)", adaptive(a1[:, :, :5], [7], mean), x=a1[:, :, :5])
case("adaptive_avg_pool2d(x, output_size=[2, 4])", adaptive(a, [2, 4], mean), x=a)
case("adaptive_max_pool2d(x, output_size=[3, 4])", adaptive(a, [3, 4], largest), x=a)
case("adaptive_avg_pool3d(x, output_size=2)", adaptive(a3, [2] * 3, mean), x=a3)
case("adaptive_max_pool3d(x, output_size=2)", adaptive(a3, [2] * 3, largest), x=a3)
case("global_avg_pool(x)", a.mean((2, 3), keepdims=True), x=a)
case("global_max_pool(x)", a.max((2, 3), keepdims=True), x=a)
ps = ints(0, 99, 1, 8, 2, 3)
shuffled = ps.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6)
case("pixel_shuffle(x, 2)", shuffled, x=ps)
case("pixel_unshuffle(x, 2)", ps, x=shuffled)
case("upsample_nearest(x, 2)", ps.repeat(2, 2).repeat(2, 3), x=ps)

# --- shapes -----------------------------------------------------------------------------------------------------------
x = ints(0, 99, 2, 3, 4)
case("transpose(x)", x.T, x=x)
case("transpose(x, [1, 0, 2])", x.transpose(1, 0, 2), x=x)
case("permute(x, axes=[2, 0, 1])", x.transpose(2, 0, 1), x=x)
case("swapaxes(x, 0, -1)", x.swapaxes(0, -1), x=x)
case("movedim(x, 0, 2)", np.moveaxis(x, 0, 2), x=x)
case("movedim(x, -1, 0)", np.moveaxis(x, -1, 0), x=x)
case("reshape(x, [4, -1])", x.reshape(4, -1), x=x)
case("flatten(x)", x.ravel(), x=x)
case("flatten(x, 1)", x.reshape(2, 12), x=x)
case("flatten(x, 0, 1)", x.reshape(6, 4), x=x)
case("unsqueeze(x, -1)", x[..., None], x=x)
case("unsqueeze(x, 1)", x[:, None], x=x)
case("squeeze(x)", x[0, 0], x=x[:1, :1])
case("squeeze(x, axis=0)", x[0, :1], x=x[:1, :1])
case("expand(x, [5, 3, -1])", np.broadcast_to(x[0, :, :1], (5, 3, 1)), x=x[0, :, :1])
case("tile(x, [2, 1, 2])", np.tile(x, (2, 1, 2)), x=x)
case("tile(x, 2)", np.tile(x[0], 2), x=x[0])
case("tile(x, [2, 1, 1])", np.tile(x[0], (2, 1, 1)), x=x[0])
case("repeat(x, 2)", np.repeat(x, 2), x=x)
case("repeat(x, 3, axis=1)", np.repeat(x, 3, 1), x=x)
case("flip(x)", np.flip(x), x=x)
case("flip(x, axis=[0, 2])", np.flip(x, (0, 2)), x=x)
case("roll(x, 5)", np.roll(x, 5), x=x)
case("roll(x, -1, axis=2)", np.roll(x, -1, 2), x=x)
case("roll(x, [1, 2], axis=[0, 2])", np.roll(x, (1, 2), (0, 2)), x=x)
case("concat(x, y, axis=1)", np.concatenate([x, x[:, :1]], 1), x=x, y=x[:, :1])
case("stack(x, y, axis=2)", np.stack([x, x + 1], 2), x=x, y=x + 1)
case("stack(x, y, axis=-1)", np.stack([x, x + 1], -1), x=x, y=x + 1)
case("split(x, 2, axis=2)", tuple(np.split(x, 2, 2)), x=x)
case("split(x, [1, 0, 3], axis=2)", (x[:, :, :1], x[:, :, :0], x[:, :, 1:]), x=x)
case("chunk(x, 3, axis=2)", (x[:, :, :2], x[:, :, 2:]), x=x)
case("slice(x, start=[0, -2], stop=[2, 100], step=[1, 1], axis=[0, 2])", x[0:2, :, -2:100], x=x)
case("slice(x, start=-1, step=-2, axis=2)", x[:, :, -1::-2], x=x)
case("slice(x, start=[1, 1])", x[1:, 1:], x=x)
case("slice(x, start=3, stop=1)", x[3:1], x=x)
m = ints(0, 99, 3, 4)
case("pad(x, 1)", np.pad(m, 1), x=m)
case("pad(x, [0, 1, 2, 0], value=7)", np.pad(m, ((0, 1), (2, 0)), constant_values=7), x=m)
case('pad(x, [2, 5, 1, 0], mode="edge")', np.pad(m, ((2, 5), (1, 0)), "edge"), x=m)
case('pad(x, [2, 1, 3, 2], mode="reflect")', np.pad(m, ((2, 1), (3, 2)), "reflect"), x=m)
case('pad(x, [2, 1, 3, 2], mode="wrap")', np.pad(m, ((2, 1), (3, 2)), "wrap"), x=m)
case('pad(x, [9, 7], mode="reflect")', np.pad(m[0], (9, 7), "reflect"), x=m[0])

# --- indexing ---------------------------------------------------------------------------------------------------------
f = floats(3, 4)
idx = ints(-3, 3, 2, 4)
case("gather(x, i)", np.take_along_axis(f, idx % 3, 0), x=f, i=idx)
idx1 = ints(0, 4, 3, 6)
case("gather(x, i, axis=1)", np.take_along_axis(f, idx1, 1), x=f, i=idx1)
case("gather(x, i, axis=1)", np.take_along_axis(f[:2], idx1[:2], 1), x=f, i=idx1[:2])
case("take_along_axis(x, i, axis=1)", np.take_along_axis(f, idx1[:1], 1), x=f, i=idx1[:1])
case("take(x, i)", f.ravel()[idx1], x=f, i=idx1)
case("take(x, i, axis=1)", np.take(f, idx1[:2, :2], 1), x=f, i=idx1[:2, :2])
case("index_select(x, i, axis=1)", f[:, [3, 0, -1]], x=f, i=np.array([3, 0, -1]))
case("select(x, axis=1, index=-1)", f[:, -1], x=f)
updates = floats(2, 4)
unique = np.array([[0, 2, 1, 0], [1, 0, 2, 2]])
scattered = f.copy()
np.put_along_axis(scattered, unique, updates, 0)
case("scatter(x, i, u)", scattered, x=f, i=unique, u=updates)
added = f.copy()
for r, col in itertools.product(range(2), range(4)):
    added[idx[r, col], col] += updates[r, col]
case("scatter_add(x, i, u)", added, x=f, i=idx, u=updates)
case("scatter(x, i, u, axis=1)", np.array([[1.0, 9.0, 7.0]]), x=np.array([[1.0, 2.0, 3.0]]), i=np.array([[2, 1, 1]]),
     u=np.array([[7.0, 8.0, 9.0]]))
case("masked_fill(x, x > 0, -1)", np.where(f > 0, -1, f), x=f)
t = floats(2, 3, 4)
for k in (0, 1, -2):
    case(f"tril(x, {k})", np.tril(t, k), x=t)
    case(f"triu(x, diagonal={k})", np.triu(t, k), x=t)
    case(f"diagonal(x, offset={k})", np.diagonal(t, k, -2, -1), x=t)
    case(f"diag(x, {k})", np.diag(f, k), x=f)
    case(f"diag(x, {k})", np.diag(f[0], k), x=f[0])
case("diagonal(x, 1, axis1=2, axis2=0)", np.diagonal(t, 1, 2, 0), x=t)
case("diagonal(x, offset=9)", np.diagonal(f, 9), x=f)
case("tril(x)", np.tril(m), x=m)
case("one_hot(x, 4, dtype=int64)", np.eye(4, dtype=np.int64)[[[0, 3], [2, 2]]], x=np.array([[0, 3], [2, 2]]))
case("one_hot(x, 2, dtype=int64)", np.array([[0, 0], [0, 1], [0, 0]]), x=np.array([-1, 1, 2]))
table = floats(5, 3)
case("embedding(i, w)", table[[[4, 0], [1, 1]]], i=np.array([[4, 0], [1, 1]]), w=table)

# --- creation ---------------------------------------------------------------------------------------------------------
case("arange(5)", np.arange(5))
case("arange(2, 9, 3)", np.arange(2, 9, 3))
case("arange(5, 0, -2)", np.arange(5, 0, -2))
case("arange(3, 3)", np.arange(3, 3))
case("arange(0, 1, 0.1, dtype=float64)", np.arange(10) * 0.1)
case("linspace(-1, 2, 7, dtype=float64)", np.linspace(-1, 2, 7))
case("linspace(3, 4, 1, dtype=float64)", np.linspace(3, 4, 1))
case("logspace(-2, 3, 6, dtype=float64)", np.logspace(-2, 3, 6))
case("logspace(0, 8, 9, base=2, dtype=float64)", 2.0 ** np.arange(9))
case("eye(3, dtype=int64)", np.eye(3, dtype=np.int64))
case("eye(2, 4, 1, dtype=int64)", np.eye(2, 4, 1, dtype=np.int64))
case("full([2, 2], 7, dtype=int64)", np.full((2, 2), 7))
case("zeros_like(x)", np.zeros_like(m), x=m)
case("ones_like(x, dtype=float64)", np.ones((3, 4)), x=m)

# --- attention and the rest -------------------------------------------------------------------------------------------
q, k, v = floats(2, 2, 3, 4), floats(2, 2, 5, 4), floats(2, 2, 5, 3)


def attention(scores):
    return special.softmax(scores, -1) @ v


scores = q @ k.swapaxes(-1, -2)
case("scaled_dot_product_attention(q, k, v)", attention(scores / 2), q=q, k=k, v=v)
case("sdpa(q, k, v, scale=0.3)", attention(scores * 0.3), q=q, k=k, v=v)
case("sdpa(q, k, v, causal=true)", attention(np.where(np.tril(np.ones((3, 5))) > 0, scores / 2, -np.inf)), q=q, k=k, v=v)
mask = floats(3, 5)
case("sdpa(q, k, v, m)", attention(scores / 2 + mask), q=q, k=k, v=v, m=mask)
keep = rng.random((2, 1, 3, 5)) < 0.6
keep[0, 0, 1] = False
expected = special.softmax(np.where(keep, scores / 2, -np.inf), -1)
expected = np.where(keep.any(-1, keepdims=True), expected, 0) @ v
case("sdpa(q, k, v, m)", expected, q=q, k=k, v=v, m=keep)


def rope(a, positions, interleaved=False, base=10000.0):
    half = a.shape[-1] // 2
    angle = positions[..., None] * base ** (-np.arange(half) / half)
    z = a[..., 0::2] + 1j * a[..., 1::2] if interleaved else a[..., :half] + 1j * a[..., half:]
    z = z * np.exp(1j * angle)
    y = np.empty_like(a)
    if interleaved:
        y[..., 0::2], y[..., 1::2] = z.real, z.imag
    else:
        y[..., :half], y[..., half:] = z.real, z.imag
    return y


a = floats(2, 3, 6)
case("rope(x)", rope(a, np.arange(3)), x=a)
case("rope(x, interleaved=true)", rope(a, np.arange(3), True), x=a)
case("rope(x, offset=100, base=500)", rope(a, np.arange(3) + 100, base=500.0), x=a)
pos = np.array([[7, 0, 3], [1, 2, 900]])
case("rope(x, p)", rope(a, pos), x=a, p=pos)
x = floats(3, 4)
sig = special.expit
case("glu(x)", x[:, :2] * sig(x[:, 2:]), x=x)
case("swiglu(x)", x[:, :2] * sig(x[:, :2]) * x[:, 2:], x=x)
case("geglu(x)", x[:, :2] * special.ndtr(x[:, :2]) * x[:, 2:], x=x)
case("quantize(x, 0.25)", np.clip(np.rint(x / 0.25), -128, 127).astype(np.int8), x=x)
case('quantize(x, 0.02, 30, dtype="uint8")', np.clip(np.rint(x / 0.02) + 30, 0, 255).astype(np.uint8), x=x)
case("quantize(x, 1)", np.array([0, 2, 2, -128, 0], np.int8), x=np.array([0.5, 1.5, 2.5, -1e30, np.nan]))
case("fake_quantize(x, 0.5)", np.clip(np.rint(x / 0.5), -128, 127) * 0.5, x=x)

# --- losses -----------------------------------------------------------------------------------------------------------
t = floats(3, 4)
e = np.abs(x - t)
case("mse_loss(x, t)", (e * e).mean(), x=x, t=t)
case('mse_loss(x, t, reduction="none")', e * e, x=x, t=t)
case('l1_loss(x, t, reduction="sum")', e.sum(), x=x, t=t)
case("huber_loss(x, t, delta=1.5)", special.huber(1.5, e).mean(), x=x, t=t)
case("smooth_l1_loss(x, t, beta=0.5)", (special.huber(0.5, e) / 0.5).mean(), x=x, t=t)
probability, label = sig(x), (t > 0).astype(float)
case("binary_cross_entropy(x, t)", -(special.xlogy(label, probability) + special.xlog1py(1 - label, -probability)).mean(),
     x=probability, t=label)
case("binary_cross_entropy(x, t)", np.array(50.0), x=np.array([1.0, 0.0]), t=np.array([1.0, 1.0]))
case("binary_cross_entropy_with_logits(x, t)", -(label * special.log_expit(x) + (1 - label) * special.log_expit(-x)).mean(), x=x, t=label)
case("binary_cross_entropy_with_logits(x, t)", np.array(500.0), x=np.array([1000.0, -1000.0]), t=np.array([0.0, 0.0]))
prob = special.softmax(t, -1)
case('kl_div(x, t, reduction="sum")', special.rel_entr(prob, special.softmax(x, -1)).sum(), x=special.log_softmax(x, -1), t=prob)
classes = np.array([3, 0, 2])
case("cross_entropy(x, t)", -special.log_softmax(x, -1)[np.arange(3), classes].mean(), x=x, t=classes)
case('nll_loss(x, t, reduction="none")', -x[np.arange(3), classes], x=x, t=classes)
image, labels = floats(2, 3, 2), np.array([[0, 2], [1, 1]])
picked = np.take_along_axis(special.log_softmax(image, 1), labels[:, None], 1)
case('cross_entropy(x, t, reduction="sum")', -picked.sum(), x=image, t=labels)

path = pathlib.Path(__file__).with_name("composed.txt")
header = "# Made by make_composed.py with NumPy and SciPy. '=' an expression, 'name:' its inputs, '->' its results.\n"
path.write_text(header + "\n".join(lines) + "\n")
print(f"{sum(line.startswith('= ') for line in lines)} cases, {path.stat().st_size} bytes")
