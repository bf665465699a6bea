#!/usr/bin/env python3
"""Writes elementwise.txt: what the elementwise ops are worth, from sources that share no code with Tenon.

Finite arguments are evaluated from each op's definition with mpmath at 60 digits, on the exact doubles, and rounded once; edges
(infinities, NaN, signed zeros, domain ends) come from NumPy and SciPy, or are written out where those differ from the limit we
promise; integers are Python's, wrapped to the type. One line a case: TYPE BODY inputs : parameters = result.

Usage: make_elementwise.py [OUTPUT]      (needs mpmath, numpy, scipy)
"""
import math
import sys
from pathlib import Path

import mpmath as mp
import numpy as np
import scipy.special as sp

mp.mp.dps = 60
INF, NAN = math.inf, math.nan
lines = []


def show(x):
    if isinstance(x, bool) or (isinstance(x, (int, np.integer)) and not isinstance(x, float)):
        return str(int(x))
    x = float(x)
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    return repr(x)


def case(kind, body, inputs, params, result):
    words = [kind, body, *map(show, inputs), ":", *map(show, params), "=", show(result)]
    lines.append(" ".join(words))


# --- Finite arguments, from the definitions -------------------------------------------------------------------------
def erfinv(x):
    return mp.erfinv(x)


def gelu(x):
    return x / 2 * mp.erfc(-x / mp.sqrt(2))


def gelu_tanh(x):
    return x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf(0.044715) * x**3)))


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def round_decimals(x, up, down):
    scaled = x * up / down
    nearest = mp.nint(scaled)  # half to even
    return nearest * down / up


def floor_div(x, y):
    return mp.floor(x / y)


def trunc(x):
    return mp.floor(x) if x >= 0 else mp.ceil(x)


def softplus(x, beta, threshold):
    return x if x * beta > threshold else mp.log1p(mp.exp(x * beta)) / beta


def celu(x, alpha):
    return x if x > 0 else alpha * mp.expm1(x / alpha)


SELU_SCALE, SELU_ALPHA = mp.mpf("1.0507009873554804934193349852946"), mp.mpf("1.6732632423543772848170429916717")

REAL = [-30.25, -7.5, -3.0, -1.0, -0.3, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.25, 0.5, 1.0, 2.0, 3.1, 12.0, 40.0]
SMALL = [-1e-5, -0.01, -0.29, -0.31, 0.01, 0.1, 0.299, 0.301, 0.7]
POSITIVE = [1e-300, 1e-9, 0.01, 0.25, 0.5, 0.999999, 1.0, 1.0000001, 2.0, 3.1, 10.0, 12345.678, 1e10, 1e300]
UNIT = [-1.0, -0.999999, -0.75, -0.5, -0.1, -1e-8, 0.0, 1e-8, 0.1, 0.4999, 0.5001, 0.75, 0.99, 0.99999999]
INNER = UNIT[1:]
PROBABILITY = [1e-300, 1e-8, 0.01, 0.2, 0.24, 0.26, 0.4999999999, 0.5, 0.5000000001, 0.51, 0.74, 0.76, 0.99, 0.9999999]
WIDE = REAL + [-700.0, -100.0, 100.0, 700.0]
TAIL = [-37.0, -20.0, -12.5, -10.0, -5.0, -2.0]
ANGLES = REAL + [1e5, 12345.678, 1e15, 3.141592653589793, 1.5707963267948966]
ROUNDING = [-2.5, -1.5, -0.5, -0.2, 0.2, 0.5, 1.5, 2.5, 2.4999999999999996, 1e15 + 0.5, 4503599627370497.5, -7.9, 7.9]

unary = {
    "neg": (lambda x: -x, REAL), "abs": (abs, REAL), "sign": (mp.sign, REAL), "square": (lambda x: x * x, REAL),
    "reciprocal": (lambda x: 1 / x, [v for v in REAL if v]), "identity": (lambda x: x, REAL),
    "floor": (mp.floor, ROUNDING), "ceil": (mp.ceil, ROUNDING), "trunc": (trunc, ROUNDING), "round": (mp.nint, ROUNDING),
    "frac": (lambda x: x - trunc(x), ROUNDING),
    "sqrt": (mp.sqrt, POSITIVE), "rsqrt": (lambda x: 1 / mp.sqrt(x), POSITIVE),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), REAL + POSITIVE),
    "exp": (mp.exp, WIDE), "exp2": (lambda x: mp.power(2, x), WIDE), "exp10": (lambda x: mp.power(10, x), REAL + [300.0]),
    "expm1": (mp.expm1, WIDE), "log": (mp.log, POSITIVE), "log2": (lambda x: mp.log(x, 2), POSITIVE),
    "log10": (mp.log10, POSITIVE), "log1p": (mp.log1p, POSITIVE + [-0.999, -0.5, -1e-12]),
    "entr": (lambda x: -x * mp.log(x), POSITIVE),
    "sin": (mp.sin, ANGLES), "cos": (mp.cos, ANGLES), "tan": (mp.tan, ANGLES),
    "asin": (mp.asin, UNIT), "acos": (mp.acos, UNIT), "atan": (mp.atan, REAL), "sinh": (mp.sinh, WIDE), "cosh": (mp.cosh, WIDE),
    "tanh": (mp.tanh, REAL), "asinh": (mp.asinh, REAL), "acosh": (mp.acosh, [1.0, 1.0000001, 1.5, 3.0, 1e5, 1e300]),
    "atanh": (mp.atanh, INNER), "sinc": (lambda x: mp.sincpi(x), REAL + [1e6 + 0.25, 0.9999999, 5.0]),
    "deg2rad": (mp.radians, REAL), "rad2deg": (mp.degrees, REAL),
    "erf": (mp.erf, REAL), "erfc": (mp.erfc, [v for v in REAL if v < 20] + [5.5, 26.0]), "erfinv": (erfinv, INNER + [1 - 2**-53]),
    "lgamma": (lambda x: mp.log(abs(mp.gamma(x))), [1e-9, 0.25, 0.5, 0.999, 1.5, 2.25, 5.0, 33.3, 1e5, -0.5, -1.7, -4.25, -10.9]),
    "i0": (lambda x: mp.besseli(0, x), [0.0, 1e-9, 0.5, -1.0, 3.0, 10.0, 24.9, 25.1, -60.0, 300.0, 700.0, 712.0]),
    "digamma": (mp.digamma, [1e-9, 0.25, 0.49, 0.51, 1.0, 1.25, 2.0, 5.5, 9.99, 10.01, 1e5, -0.5, -1.25, -7.9, -100.3]),
    "ndtr": (lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, TAIL + [-1.0, 0.0, 0.5, 2.0, 9.0]),
    "relu": (lambda x: max(x, mp.mpf(0)), REAL), "relu6": (lambda x: min(max(x, mp.mpf(0)), mp.mpf(6)), REAL),
    "relu_squared": (lambda x: max(x, mp.mpf(0))**2, REAL),
    "hardsigmoid": (lambda x: min(max(x + 3, mp.mpf(0)), mp.mpf(6)) / 6, REAL + [-2.9999, 2.9999]),
    "hardswish": (lambda x: x * min(max(x + 3, mp.mpf(0)), mp.mpf(6)) / 6, REAL + [-2.9999, 2.9999]),
    "sigmoid": (sigmoid, WIDE), "log_sigmoid": (lambda x: -mp.log1p(mp.exp(-x)), WIDE), "silu": (lambda x: x * sigmoid(x), WIDE),
    "mish": (lambda x: x * mp.tanh(mp.log1p(mp.exp(x))), WIDE), "gelu": (gelu, REAL[2:] + TAIL),
    "gelu_tanh": (gelu_tanh, REAL[1:] + [-10.0, -5.0, -2.0]), "quick_gelu": (lambda x: x * sigmoid(mp.mpf(1.702) * x), REAL),
    "selu": (lambda x: SELU_SCALE * (x if x > 0 else SELU_ALPHA * mp.expm1(x)), REAL),
    "softsign": (lambda x: x / (1 + abs(x)), REAL), "tanhshrink": (lambda x: x - mp.tanh(x), REAL + SMALL),
}
PAIRS = [(1.0, 2.0), (-3.5, 2.0), (7.25, -2.5), (-7.0, -3.0), (0.1, 0.3), (1e-9, 5.0), (100.0, 0.01), (2.0, 2.0), (6.0, 0.1)]
POSITIVE_PAIRS = [(1.0, 2.0), (0.5, 3.5), (2.0, -1.5), (10.0, 0.25), (1e-3, 40.0), (1.0000001, 1e6), (3.0, 3.0)]


def remainder(x, y):
    return x - y * mp.floor(x / y)


def fmod(x, y):
    return x - y * trunc(x / y)


binary = {
    "add": (lambda x, y: x + y, PAIRS), "sub": (lambda x, y: x - y, PAIRS), "mul": (lambda x, y: x * y, PAIRS),
    "div": (lambda x, y: x / y, PAIRS), "div_no_nan": (lambda x, y: x / y if y else mp.mpf(0), PAIRS + [(1.0, 0.0), (0.0, 0.0)]),
    "floor_div": (floor_div, PAIRS), "trunc_div": (lambda x, y: trunc(x / y), PAIRS), "remainder": (remainder, PAIRS),
    "fmod": (fmod, PAIRS), "pow": (mp.power, POSITIVE_PAIRS + [(-2.0, 3.0), (-8.0, 2.0), (0.0, 0.0)]),
    "squared_difference": (lambda x, y: (x - y)**2, PAIRS), "maximum": (max, PAIRS), "minimum": (min, PAIRS),
    "fmax": (max, PAIRS), "fmin": (min, PAIRS), "copysign": (lambda x, y: abs(x) * mp.sign(y), PAIRS),
    "ldexp": (lambda x, y: x * mp.power(2, y), [(1.5, 10.0), (-3.0, -4.0), (1e-300, 1020.0), (1.0, 1023.0), (1e300, -1100.0)]),
    "logaddexp": (lambda x, y: mp.log(mp.exp(x) + mp.exp(y)), PAIRS + [(1000.0, 1000.5), (-2000.0, -2001.0), (0.0, -40.0)]),
    "logaddexp2": (lambda x, y: mp.log(mp.power(2, x) + mp.power(2, y), 2), PAIRS + [(1000.0, 1000.5), (0.0, -40.0)]),
    "xlogy": (lambda x, y: x * mp.log(y) if x else mp.mpf(0), [(2.0, 3.0), (-1.5, 0.2), (0.0, 5.0), (0.0, 0.0), (3.0, 1.0000001)]),
    "xlog1py": (lambda x, y: x * mp.log1p(y) if x else mp.mpf(0), [(2.0, 3.0), (-1.5, -0.2), (0.0, -1.0), (3.0, 1e-12)]),
    "hypot": (mp.hypot, PAIRS + [(3.0, 4.0), (0.0, 0.0), (1e200, 1e200), (1e-200, 1e-200), (1e300, 1.0)]),
    "atan2": (mp.atan2, PAIRS + [(1.0, 0.0), (0.0, -1.0), (-1.0, -1.0)]),
    "eq": (lambda x, y: x == y, PAIRS), "ne": (lambda x, y: x != y, PAIRS), "lt": (lambda x, y: x < y, PAIRS),
    "le": (lambda x, y: x <= y, PAIRS), "gt": (lambda x, y: x > y, PAIRS), "ge": (lambda x, y: x >= y, PAIRS),
    "logical_and": (lambda x, y: bool(x) and bool(y), [(0.0, 1.0), (2.0, 3.0), (0.0, 0.0), (-1.0, 0.0)]),
    "logical_or": (lambda x, y: bool(x) or bool(y), [(0.0, 1.0), (2.0, 3.0), (0.0, 0.0), (-1.0, 0.0)]),
    "logical_xor": (lambda x, y: bool(x) != bool(y), [(0.0, 1.0), (2.0, 3.0), (0.0, 0.0), (-1.0, 0.0)]),
    "prelu_weights": (lambda x, w: x if x > 0 else w * x, PAIRS), "heaviside_values": (
        lambda x, v: v if x == 0 else mp.mpf(x > 0), [(0.0, 0.5), (-2.0, 0.5), (3.0, 0.5), (0.0, -7.0)]),
}
tests = {"eqz": lambda x: x == 0, "nez": lambda x: x != 0, "ltz": lambda x: x < 0, "lez": lambda x: x <= 0,
         "gtz": lambda x: x > 0, "gez": lambda x: x >= 0, "logical_not": lambda x: x == 0, "isnan": lambda x: False,
         "isinf": lambda x: False, "isfinite": lambda x: True, "isposinf": lambda x: False, "isneginf": lambda x: False,
         "signbit": lambda x: x < 0}
with_params = {
    "addalpha": (lambda x, y, a: x + a * y, 2, PAIRS, [(3.0,), (-0.1,)]),
    "subalpha": (lambda x, y, a: x - a * y, 2, PAIRS, [(3.0,), (-0.1,)]),
    "rsub": (lambda x, y, a: y - a * x, 2, PAIRS, [(1.0,), (2.5,)]),
    "clamp": (lambda x, lo, hi: min(max(x, lo), hi), 1, REAL, [(-1.0, 2.5), (3.0, 1.0), (-INF, 0.5)]),
    "hardtanh": (lambda x, lo, hi: min(max(x, lo), hi), 1, REAL, [(-1.0, 1.0), (-0.25, 4.0)]),
    "nan_to_num": (lambda x, n, p, q: x, 1, REAL, [(0.0, 1.0, 2.0)]),
    "round_decimals": (round_decimals, 1, [2.567, -1.005, 12345.678, 0.5, 1.25, 1e300], [(100.0, 1.0), (1.0, 100.0)]),
    "addcmul": (lambda x, y, z, v: x + v * y * z, 3, [(1.0, 2.0, 3.0), (0.5, -2.0, 1e-3)], [(5.0,), (-0.5,)]),
    "addcdiv": (lambda x, y, z, v: x + v * y / z, 3, [(10.0, 6.0, 2.0), (0.5, -2.0, 1e-3)], [(2.0,), (-0.5,)]),
    "isclose": (lambda x, y, r, a, n: abs(x - y) <= a + r * abs(y), 2, PAIRS + [(1.0, 1.000005), (1.0, 1.00002), (0.0, 5e-9)],
                [(1e-5, 1e-8, 0.0), (0.5, 0.0, 0.0)]),
    "leaky_relu": (lambda x, s: x if x > 0 else s * x, 1, REAL, [(0.01,), (-2.0,)]),
    "prelu": (lambda x, s: x if x > 0 else s * x, 1, REAL + [-2.0], [(0.25,), (0.5,)]),
    "threshold": (lambda x, t, v: x if x > t else v, 1, REAL, [(0.0, 0.0), (1.0, 99.0)]),
    "hardshrink": (lambda x, l: mp.mpf(0) if abs(x) <= l else x, 1, REAL, [(0.5,), (0.0,)]),
    "softshrink": (lambda x, l: x - l if x > l else x + l if x < -l else mp.mpf(0), 1, REAL, [(0.5,), (0.1,)]),
    "heaviside": (lambda x, v: v if x == 0 else mp.mpf(x > 0), 1, REAL, [(0.5,), (0.0,)]),
    "softplus": (lambda x, t: softplus(x, 1, t), 1, WIDE, [(20.0,), (1000.0,)]),
    "softplus_beta": (softplus, 1, REAL, [(2.0, 20.0), (0.3, 20.0)]),
    "elu": (lambda x, a: x if x > 0 else a * mp.expm1(x), 1, REAL, [(1.0,), (2.0,)]),
    "celu": (celu, 1, REAL, [(1.0,), (2.0,), (0.1,)]),
    "logit": (lambda x, e: mp.log(x / (1 - x)), 1, PROBABILITY, [(-1.0,)]),
}
ternary = {
    "mac": (lambda x, y, z: x * y + z, [(1.0, 2.0, 3.0), (0.1, 0.2, -0.3)]),
    "lerp": (lambda x, y, w: x + w * (y - x), [(0.0, 10.0, 0.25), (-1.0, 3.0, 0.75), (5.0, 7.0, 0.0), (5.0, 7.0, 1.0), (1.0, 2.0, -3.0)]),
    "where": (lambda c, x, y: x if c else y, [(1.0, 2.0, 3.0), (0.0, 2.0, 3.0)]),
}


def finite(body, function, inputs, params=()):
    result = function(*map(mp.mpf, inputs), *map(mp.mpf, params))
    if isinstance(result, bool):
        case("f64", body, inputs, params, result)
        return
    value = float(result)
    if value != 0 and abs(value) < 2.3e-308:  # subnormal results have fewer bits than the limit assumes
        return
    case("f64", body, inputs, params, value)


for body, (function, points) in unary.items():
    for x in dict.fromkeys(points):
        finite(body, function, (x,))
for body, function in tests.items():
    for x in (-2.5, -1e-300, 0.0, 3.0):
        case("f64", body, (x,), (), function(x))
for table in (binary, ternary):
    for body, (function, points) in table.items():
        for inputs in points:
            finite(body, function, inputs)
for body, (function, arity, points, params) in with_params.items():
    for given in params:
        for point in points:
            finite(body, function, point if arity > 1 else (point,), given)
for x, e in ((-0.5, 0.01), (0.0, 0.25), (0.6, 0.01), (1.5, 0.01)):
    finite("logit", lambda v, eps: mp.log(min(max(v, eps), 1 - eps) / (1 - min(max(v, eps), 1 - eps))), (x,), (e,))

# --- Edges: NumPy and SciPy ------------------------------------------------------------------------------------------
np.seterr(all="ignore")
EDGES = [INF, -INF, NAN, 0.0, -0.0]
by_library = {
    "abs": np.abs, "square": np.square, "sqrt": np.sqrt, "cbrt": np.cbrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": np.rint, "sign": np.sign, "reciprocal": np.reciprocal, "isnan": np.isnan, "isinf": np.isinf,
    "isfinite": np.isfinite, "isposinf": np.isposinf, "isneginf": np.isneginf, "signbit": np.signbit, "erf": sp.erf, "erfc": sp.erfc,
    "erfinv": sp.erfinv, "entr": sp.entr, "sigmoid": sp.expit, "log_sigmoid": sp.log_expit, "ndtr": sp.ndtr,
    "neg": np.negative, "logical_not": np.logical_not,
}
for body, function in by_library.items():
    for x in EDGES:
        case("f64", body, (x,), (), function(np.float64(x)).item())
for body, function in {"sqrt": np.sqrt, "log": np.log, "acosh": np.arccosh, "log1p": np.log1p}.items():
    case("f64", body, (-4.0,), (), function(np.float64(-4.0)).item())
for body, function in {"asin": np.arcsin, "acos": np.arccos, "atanh": np.arctanh, "erfinv": sp.erfinv}.items():
    for x in (1.0, -1.0, 1.5):
        case("f64", body, (x,), (), function(np.float64(x)).item())
pairs_by_library = {
    "add": np.add, "mul": np.multiply, "div": np.divide, "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax,
    "fmin": np.fmin, "pow": np.power, "fmod": np.fmod, "hypot": np.hypot, "atan2": np.arctan2, "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2, "xlogy": sp.xlogy, "xlog1py": sp.xlog1py, "copysign": np.copysign, "eq": np.equal, "ne": np.not_equal,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "remainder": np.remainder,
    "floor_div": np.floor_divide,
}
for body, function in pairs_by_library.items():
    for x, y in ((INF, INF), (-INF, -INF), (INF, -INF), (NAN, 1.0), (1.0, NAN), (0.0, 0.0), (-0.0, 0.0), (0.0, NAN)):
        if body == "logaddexp2" and x == y == -INF or body == "xlog1py" and abs(x) == INF:
            continue
        case("f64", body, (x, y), (), function(np.float64(x), np.float64(y)).item())
for x, y, nan_too in ((INF, INF, 0), (INF, -INF, 0), (1.0, INF, 0), (NAN, NAN, 0), (NAN, NAN, 1), (NAN, 1.0, 1)):
    case("f64", "isclose", (x, y), (1e-5, 1e-8, nan_too), bool(np.isclose(x, y, equal_nan=bool(nan_too))))
case("f64", "nan_to_num", (NAN,), (7.0, 1.0, 2.0), 7.0)
case("f64", "nan_to_num", (INF,), (7.0, 1.0, 2.0), 1.0)
case("f64", "nan_to_num", (-INF,), (7.0, 1.0, 2.0), 2.0)

# --- Edges: the limits our activations promise ------------------------------------------------------------------------
limits = {
    "silu": (0.0, INF), "mish": (0.0, INF), "gelu": (0.0, INF), "gelu_tanh": (0.0, INF), "quick_gelu": (0.0, INF),
    "hardswish": (0.0, INF), "hardsigmoid": (0.0, 1.0), "softsign": (-1.0, 1.0), "relu": (0.0, INF), "relu6": (0.0, 6.0),
    "tanhshrink": (-INF, INF), "sinc": (0.0, 0.0), "rsqrt": (NAN, 0.0), "lgamma": (INF, INF), "digamma": (NAN, INF),
    "exp10": (0.0, INF), "i0": (INF, INF), "frac": (NAN, NAN), "identity": (-INF, INF),
}
for body, (left, right) in limits.items():
    case("f64", body, (-INF,), (), left)
    case("f64", body, (INF,), (), right)
    case("f64", body, (NAN,), (), NAN)
case("f64", "selu", (-INF,), (), float(-SELU_SCALE * SELU_ALPHA))
case("f64", "softplus", (-INF,), (20.0,), 0.0)
case("f64", "softplus", (INF,), (20.0,), INF)
case("f64", "elu", (-INF,), (2.0,), -2.0)
case("f64", "celu", (-INF,), (2.0,), -2.0)
case("f64", "clamp", (NAN,), (0.0, 1.0), NAN)
case("f64", "threshold", (NAN,), (0.0, 1.0), NAN)
case("f64", "heaviside", (NAN,), (0.5,), NAN)
case("f64", "hardshrink", (NAN,), (0.5,), NAN)
case("f64", "softshrink", (NAN,), (0.5,), NAN)
case("f64", "logit", (0.0,), (-1.0,), -INF)
case("f64", "logit", (1.0,), (-1.0,), INF)
case("f64", "logit", (1.5,), (-1.0,), NAN)
case("f64", "digamma", (-3.0,), (), NAN)
case("f64", "lgamma", (-3.0,), (), INF)
case("f64", "lgamma", (0.0,), (), INF)

# --- Integers ---------------------------------------------------------------------------------------------------------
TYPES = {"i8": (-128, 127), "u8": (0, 255), "i32": (-2**31, 2**31 - 1), "i64": (-2**63, 2**63 - 1)}


def wrap(value, kind):
    low, high = TYPES[kind]
    return (value - low) % (high - low + 1) + low


def trunc_quotient(x, y):
    return 0 if y == 0 else (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)


def integer_power(x, y):
    if y < 0:
        return {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)
    return pow(x, y, 2**64)


def shift_left(x, y):
    return lambda bits: x << y if 0 <= y < bits else 0


def shift_right(x, y):
    return lambda bits: x >> y if 0 <= y < bits else (-1 if x < 0 else 0)


integer_binary = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "floor_div": lambda x, y: x // y if y else 0, "trunc_div": trunc_quotient, "remainder": lambda x, y: x % y if y else 0,
    "fmod": lambda x, y: x - y * trunc_quotient(x, y) if y else 0, "pow": integer_power, "gcd": math.gcd, "lcm": math.lcm,
    "squared_difference": lambda x, y: (x - y)**2, "maximum": max, "minimum": min, "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y, "bitwise_xor": lambda x, y: x ^ y, "left_shift": shift_left, "right_shift": shift_right,
    "lt": lambda x, y: x < y, "ge": lambda x, y: x >= y, "eq": lambda x, y: x == y,
}
integer_unary = {"neg": lambda x: -x, "abs": abs, "sign": lambda x: (x > 0) - (x < 0), "square": lambda x: x * x,
                 "bitwise_not": lambda x: ~x, "floor": lambda x: x, "round": lambda x: x, "relu": lambda x: max(x, 0),
                 "logical_not": lambda x: x == 0, "signbit": lambda x: x < 0}
for kind, (low, high) in TYPES.items():
    bits = (high - low + 1).bit_length() - 1
    points = [(7, 3), (7, 0), (low, 1), (high, high), (100, 7), (12, 18), (3, 5), (high, 2), (1, 9)]
    if low < 0:
        points += [(-7, 3), (7, -3), (-7, -3), (low, -1), (-1, -5), (2, -1), (0, -1), (-12, 18)]
    for body, function in integer_binary.items():
        for x, y in points:
            result = function(x, y)
            result = result(bits) if callable(result) else result
            case(kind, body, (x, y), (), result if isinstance(result, bool) else wrap(result, kind))
    for body, function in integer_unary.items():
        for x in (0, 1, 5, high, low):
            result = function(x)
            case(kind, body, (x,), (), result if isinstance(result, bool) else wrap(result, kind))
    case(kind, "clamp", (100,), (5, 50), 50)
    case(kind, "clamp", (100,), (-INF, INF), 100)
    case(kind, "mac", (7, 9, 3), (), 66)
    case(kind, "addcmul", (1, 2, 3), (5,), 31)
    case(kind, "where", (0, 2, 3), (), 3)

target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("elementwise.txt")
unique = sorted(dict.fromkeys(lines), key=lambda line: line.split()[:2])
target.write_text("# Made by make_elementwise.py.\n" + "\n".join(unique) + "\n")
print(f"{len(unique)} cases, {target.stat().st_size} bytes")
