#!/usr/bin/env python3
"""Computes the coefficients of src/math/coefficients.h (needs mpmath).

    src/math/polynomials.py > src/math/coefficients.h

Every approximation interpolates its function at Chebyshev nodes of a suitable variable, in 60 digits: within a small factor of
the minimax error, and without an iteration that could fail. The error of each, before the coefficients are rounded, is
written next to it. Coefficients are listed from the constant term upwards.
"""

from mpmath import (asin, atan, besseli, cos, erf, erfc, erfinv, exp, expm1, floor, inf, log, log1p, loggamma, lu_solve, matrix, mp, mpf, nint, nstr, pi,
                    sin, sqrt, tanh)

mp.dps = 60


def chebyshev(a, b, count):
    return [(a + b) / 2 + (b - a) / 2 * cos(pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def horner(coefficients, v):
    result = mpf(0)
    for c in reversed(coefficients):
        result = result * v + c
    return result


def rational(f, points, variable, n, m):
    """P of degree n, Q of degree m with Q(0) = 1 and P(v) / Q(v) = f at the points."""
    size = n + m + 1
    a, b = matrix(size, size), matrix(size, 1)
    for i, x in enumerate(points):
        v, y = variable(x), f(x)
        for j in range(n + 1):
            a[i, j] = v**j
        for j in range(1, m + 1):
            a[i, n + j] = -y * v**j
        b[i] = y
    s = lu_solve(a, b)
    return [s[j] for j in range(n + 1)], [mpf(1)] + [s[n + j] for j in range(1, m + 1)]


def worst(f, variable, p, q, a, b, weight):
    error = mpf(0)
    for i in range(501):
        x = a + (b - a) * (mpf(i) + mpf(1) / 1000) / mpf('500.01')
        y = f(x)
        error = max(error, abs((horner(p, variable(x)) / horner(q, variable(x)) - y) * weight(x, y)))
    return error


def emit(name, ctype, coefficients, note=''):
    suffix, digits = ('f', 9) if ctype == 'float' else ('', 17)
    values = ', '.join(nstr(c, digits, strip_zeros=False, min_fixed=1, max_fixed=0) + suffix for c in coefficients)
    if note:
        print(f'// {note}')
    print(f'constexpr {ctype} {name}[] = {{{values}}};')


def approximate(name, ctype, text, f, a, b, n, m=0, variable=lambda x: x, spread=None, weight=lambda x, y: 1 / y, fixed=None):
    """spread maps [0, 1] to [a, b]: the nodes are Chebyshev's in its argument."""
    a, b = mpf(a), mpf(b)
    count = n + m + 1
    points = [spread(u) for u in chebyshev(mpf(0), mpf(1), count)] if spread else chebyshev(a, b, count)
    p, q = rational(f, points, variable, n, m)
    if fixed is not None:  # the exact constant term the function has at 0
        p[0] = mpf(fixed)
    error = nstr(worst(f, variable, p, q, a, b, weight), 2)
    if m == 0:
        emit(name, ctype, p, f'{text}; error {error}.')
    else:
        emit(name + 'P', ctype, p, f'{text}, P / Q; error {error}.')
        emit(name + 'Q', ctype, q)


def square(x):
    return x * x


def erfcx(x):
    return exp(x * x) * erfc(x)


def exp_tail(r):
    return (exp(r) - 1 - r) / (r * r) if abs(r) > mpf(10)**-15 else mpf(1) / 2 + r / 6


def log_tail(f):
    return (log1p(f) - f + f * f / 2) / f**3


def float_part():
    ln2 = log(2)
    approximate('kExp', 'float', '(exp(r) - 1 - r) / r^2, |r| <= ln(2) / 2', exp_tail, -ln2 / 2, ln2 / 2, 4,
                weight=lambda r, y: r * r / exp(r))
    approximate('kLog', 'float', '(log(1 + f) - f + f^2 / 2) / f^3 between sqrt(1/2) and sqrt(2)', log_tail, sqrt(mpf('0.5')) - 1,
                sqrt(mpf(2)) - 1, 8, weight=lambda f, y: f**3 / log1p(f))
    approximate('kLog1p', 'float', 'log(1 + e) / e on [0, 1]', lambda e: log1p(e) / e, 0, 1, 9, fixed=1)
    approximate('kSin', 'float', '(sin(x) - x) / x^3 in x^2, |x| <= pi / 4', lambda x: (sin(x) - x) / x**3, 0, pi / 4, 3, 0, square,
                weight=lambda x, y: x**3 / sin(x))
    approximate('kCos', 'float', '(cos(x) - 1 + x^2 / 2) / x^4 in x^2, |x| <= pi / 4', lambda x: (cos(x) - 1 + x * x / 2) / x**4, 0,
                pi / 4, 2, 0, square, weight=lambda x, y: x**4 / cos(x))
    approximate('kExpThird', 'float', '(exp(r) - 1 - r - r^2 / 2) / r^3, |r| <= ln(2) / 2',
                lambda r: (exp(r) - 1 - r - r * r / 2) / r**3 if abs(r) > mpf(10)**-12 else mpf(1) / 6, -ln2 / 2, ln2 / 2, 4,
                weight=lambda r, y: r**3 / exp(r))
    quarter = pi / 4
    approximate('kQuarterSin', 'float', '(sin(pi / 4 x) / x - pi / 4) / x^2 in x^2, |x| <= 1', lambda x: (sin(quarter * x) / x - quarter) / x**2, 0, 1, 3,
                0, square, weight=lambda x, y: x**3 / sin(quarter * x))
    approximate('kQuarterCos', 'float', '((cos(pi / 4 x) - 1) / x^2 + pi^2 / 32) / x^2 in x^2, |x| <= 1',
                lambda x: ((cos(quarter * x) - 1) / x**2 + quarter**2 / 2) / x**2, 0, 1, 2, 0, square,
                weight=lambda x, y: x**4 / cos(quarter * x))
    approximate('kSinc', 'float', 'sin(pi x) / (pi x) in x^2, |x| <= 1/2', lambda x: sin(pi * x) / (pi * x), 0, '0.5', 5, 0, square, fixed=1)
    approximate('kFloatI0Small', 'float', '(I0(x) - 1) / (x / 2)^2 in (x / 2)^2 on [0, 4]', lambda x: (besseli(0, x) - 1) / (x / 2)**2, 0, 4, 6, 0,
                lambda x: (x / 2)**2, spread=lambda u: 4 * sqrt(u), weight=lambda x, y: (x / 2)**2 / besseli(0, x))
    approximate('kFloatI0Large', 'float', 'I0(x) exp(-x) sqrt(x) in 4 / x on [4, infinity)', lambda u: i0_tail(u * 2), 0, 1, 10, 0)
    approximate('kErfinvNear', 'float', 'erfinv(x) / x in w - 2.5, w = -log(1 - x^2) on [0, 5]', erfinv_central, 0, 5, 9, 0, lambda w: w - mpf('2.5'))
    approximate('kErfinvFar', 'float', 'erfinv(x) / x in sqrt(w) - 3 on w in [5, 17]', lambda s: erfinv_central(s * s), sqrt(mpf(5)), sqrt(mpf(17)), 10, 0,
                lambda s: s - 3)
    approximate('kLgammaUnit', 'float', 'lgamma(1 + d) / (d (d - 1)) in d - 5/8 on [-1/4, 3/2]', lambda d: loggamma(1 + d) / (d * (d - 1)), '-0.25', '1.5',
                14, 0, lambda d: d - mpf('0.625'))
    approximate('kAsin', 'float', '(asin(x) / x - 1) / x^2 in x^2 on [0, 1/2]', lambda x: (asin(x) / x - 1) / (x * x), 0, '0.5', 4, 0, square,
                spread=lambda u: sqrt(u) / 2, weight=lambda x, y: x**3 / asin(x))
    approximate('kAtan', 'float', '(atan(x) / x - 1) / x^2 in x^2 on [0, 1]', lambda x: (atan(x) / x - 1) / (x * x), 0, 1, 8, 0, square,
                spread=sqrt, weight=lambda x, y: x**3 / atan(x))
    # Where there is no look-up of pieces (table_part).
    approximate('kErf', 'float', 'erf(x) / x - 1 in x^2 on [0, 1]', lambda x: erf(x) / x - 1, 0, 1, 6, 0, square,
                spread=sqrt, weight=lambda x, y: x / erf(x))
    approximate('kErfcx', 'float', 'erfc(t) exp(t^2) (t + 3) in (t - 3) / (t + 3) on [0, 10.2]', lambda t: erfcx(t) * (t + 3), 0, '10.2', 9, 0,
                lambda t: (t - 3) / (t + 3), spread=lambda u: from_unit(u, 3, 0, '10.2'))
    scale = sqrt(mpf('0.5'))
    approximate('kMills', 'float', 'erfc(t / sqrt(2)) / 2 exp(t^2 / 2) (t + 4) in (t - 4) / (t + 4) on [0, 14.5]',
                lambda t: erfcx(t * scale) / 2 * (t + 4), 0, '14.5', 9, 0, lambda t: (t - 4) / (t + 4), spread=lambda u: from_unit(u, 4, 0, '14.5'))
    approximate('kMillsShort', 'float', 'erfc(t / sqrt(2)) / 2 exp(t^2 / 2) (t + 4) in (t - 4) / (t + 4) on [0, 14.5]',
                lambda t: erfcx(t * scale) / 2 * (t + 4), 0, '14.5', 7, 0, lambda t: (t - 4) / (t + 4), spread=lambda u: from_unit(u, 4, 0, '14.5'))


def table_part():
    scale = sqrt(mpf('0.5'))
    for count, tanh_degree, erf_degree, mills_degree in ((8, 7, 7, 7), (16, 6, 6, 6)):
        table('kTanh', count, 'tanh(t)', tanh, '0.75', '9.02', tanh_degree, odd=True)
        table('kErf', count, 'erf(t)', erf, '0.5' if count == 8 else '0.375', '3.95', erf_degree, odd=True)
        table('kMills', count, 'erfc(t / sqrt(2)) / 2 * exp(t^2 / 2)', lambda t: erfcx(t * scale) / 2, 1, '14.5', mills_degree)
        table('kErfcx', count, 'erfc(t) * exp(t^2)', erfcx, '0.75', '10.2', mills_degree)

    uniform_table('kNormalTail', 32, 'erfc(t / sqrt(2)) / 2', lambda t: erfc(t * scale) / 2, '0.25', 6)
    a = sqrt(8 / pi)
    uniform_table('kGeluTanhTail', 32, '1 / (1 + exp(sqrt(8 / pi) (t + 0.044715 t^3)))',
                  lambda t: 1 / (1 + exp(a * (t + mpf('0.044715') * t**3))), '0.25', 6)


def uniform_table(name, count, text, f, width, degree):
    """Polynomials on |count| pieces around the multiples of |width|. Rows are the coefficients; column i belongs to i * width."""
    width = mpf(width)
    rows = [[mpf(0)] * count for _ in range(degree + 1)]
    error = mpf(0)
    for i in range(count):
        centre = i * width
        a, b = centre - width / 2, centre + width / 2
        c, _ = rational(f, chebyshev(a, b, degree + 1), lambda t: t - centre, degree, 0)
        error = max(error, worst(f, lambda t: t - centre, c, [mpf(1)], a, b, lambda t, y: 1 / y))
        for k in range(degree + 1):
            rows[k][i] = c[k] if abs(c[k]) > mpf(10)**-30 else mpf(0)  # 0 up to the digits computed with
    print(f'// {text} around the multiples of {nstr(width, 4)}; error {nstr(error, 2)}.')
    print(f'constexpr float {name}{count}Width = {nstr(width, 5)}f;')
    print(f'alignas(64) constexpr float {name}{count}[{degree + 1}][{count}] = {{')
    for row in rows:
        print('    {' + ', '.join(nstr(c, 9, min_fixed=1, max_fixed=0) + 'f' for c in row) + '},')
    print('};')


def table(name, count, text, f, bias, top, degree, odd=False, ctype='float'):
    """Polynomials on |count| pieces of [0, top], chosen by the exponent and leading mantissa bits of t + bias.

    Rows: the pieces' centres, then the coefficients. Column i belongs to the piece whose code (t + bias's bits, shifted) ends in i.
    """
    bias, top = mpf(bias), mpf(top)
    steps = count // 8 * 2  # pieces per octave
    rows = [[mpf(0)] * count for _ in range(degree + 2)]
    error, low, pieces = mpf(0), bias, 0
    while low < top + bias:
        octave = floor(log(low) / log(2) + mpf(10)**-20)
        width = mpf(2)**octave / steps
        high = low + width
        a, b = low - bias, min(high - bias, top)
        code = int((octave + 127) * steps + (low / mpf(2)**octave - 1) * steps + mpf('0.5')) % count
        if a == 0 and odd:
            # From 0 on: t + t^2 q(t), which is exact for small t.
            slope = f(mpf(10)**-25) * mpf(10)**25
            centre = mpf(0)
            q, _ = rational(lambda t: (f(t) / t - slope) / t, chebyshev(a, b, degree - 1), lambda t: t, degree - 2, 0)
            c = [mpf(0), slope] + q
        else:
            centre = (a + b) / 2
            centre = mpf(float(nint(centre * 64))) / 64
            c, _ = rational(f, chebyshev(a, b, degree + 1), lambda t: t - centre, degree, 0)
        error = max(error, worst(f, lambda t: t - centre, c, [mpf(1)], a, b, lambda t, y: 1 / y))
        rows[0][code] = centre
        for i in range(degree + 1):
            rows[i + 1][code] = c[i]
        low, pieces = high, pieces + 1
    assert pieces <= count, (name, pieces)
    print(f'// {text} on [0, {nstr(top, 4)}] in {pieces} pieces; error {nstr(error, 2)}.')
    suffix, digits, size = ('f', 9, 4) if ctype == 'float' else ('', 17, 8)
    print(f'constexpr {ctype} {name}{count}Bias = {nstr(bias, 5)}{suffix};')
    print(f'alignas({count * size}) constexpr {ctype} {name}{count}[{degree + 2}][{count}] = {{')
    for row in rows:
        print('    {' + ', '.join(nstr(c, digits, min_fixed=1, max_fixed=0) + suffix for c in row) + '},')
    print('};')


def wide_part():
    ln2 = log(2)
    approximate('kWideExp', 'double', '(exp(r) - 1 - r) / r^2, |r| <= ln(2) / 2', exp_tail, -ln2 / 2, ln2 / 2,
                9, weight=lambda r, y: r * r / exp(r))
    # For logarithms of sums, about twelve bits more than f32 has.
    approximate('kSumExp', 'double', '(exp(r) - 1) / r, |r| <= ln(2) / 2', lambda r: expm1(r) / r, -ln2 / 2, ln2 / 2, 7,
                weight=lambda r, y: r / exp(r))
    approximate('kSumLog1p', 'double', 'log(1 + e) / e on [0, 1]', lambda e: log1p(e) / e, 0, 1, 12)
    smax = (sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)
    approximate('kWideLog', 'double', '(log((1 + s) / (1 - s)) / (2 s) - 1) / s^2 in s^2',
                lambda s: (log((1 + s) / (1 - s)) / (2 * s) - 1) / (s * s), 0, smax, 7, 0, square, weight=lambda s, y: s * s)
    approximate('kWideSin', 'double', '(sin(x) - x) / x^3 in x^2, |x| <= pi / 4', lambda x: (sin(x) - x) / x**3, 0, pi / 4, 5, 0, square,
                weight=lambda x, y: x**3 / sin(x))
    approximate('kWideCos', 'double', '(cos(x) - 1 + x^2 / 2) / x^4 in x^2, |x| <= pi / 4', lambda x: (cos(x) - 1 + x * x / 2) / x**4, 0,
                pi / 4, 5, 0, square, weight=lambda x, y: x**4 / cos(x))
    approximate('kWideAtan', 'double', '(atan(x) / x - 1) / x^2 in x^2 on [0, tan(pi / 8)]', lambda x: (atan(x) / x - 1) / (x * x), 0,
                sqrt(mpf(2)) - 1, 10, 0, square, weight=lambda x, y: x * x)
    approximate('kWideAsin', 'double', '(asin(x) / x - 1) / x^2 in x^2 on [0, 1/2]', lambda x: (asin(x) / x - 1) / (x * x), 0, '0.5', 12, 0,
                square, weight=lambda x, y: x * x)
    approximate('kWideErf', 'double', 'erf(x) / x in x^2 on [0, 1]', lambda x: erf(x) / x, 0, 1, 12, 0, square)
    # u = (x - 2) / (x + 2) runs over [-1/3, 0.87] for x from 1 to 28.
    approximate('kWideErfcx', 'double', 'erfc(x) * exp(x^2) * (1 + 2 x) in (x - 2) / (x + 2) on [1, 28]', lambda x: erfcx(x) * (1 + 2 * x),
                1, 28, 18, 0, lambda x: (x - 2) / (x + 2), spread=lambda u: from_unit(u, 2, 1, 28))
    # w = -log(1 - x^2).
    approximate('kWideErfinvCentral', 'double', 'erfinv(x) / x in w - 3, w = -log(1 - x^2) on [0, 6]', erfinv_central, 0, 6, 18, 0,
                lambda w: w - 3)
    approximate('kWideErfinvTail', 'double', 'erfinv(x) / x in sqrt(w) - 3.5 on w in [6, 20]', lambda s: erfinv_central(s * s), sqrt(mpf(6)),
                sqrt(mpf(20)), 14, 0, lambda s: s - 3.5)
    approximate('kWideLgamma', 'double', '(lgamma(x) - (x - 1/2) log(x) + x - log(2 pi) / 2) x in 1/x^2 on [8, infinity)', stirling_rest, 0,
                '0.125', 7, 0, square)
    approximate('kWideI0Small', 'double', 'I0(x) in (x / 8)^2 on [0, 8]',
                lambda x: besseli(0, x), 0, 8, 17, 0, lambda x: x * x / 64)
    approximate('kWideI0Large', 'double', 'I0(x) exp(-x) sqrt(x) in 8 / x on [8, infinity)', i0_tail, 0, 1, 14, 0)


def double_part():
    ln2 = log(2)
    approximate('kDoubleExp', 'double', '(exp(r) - 1 - r) / r^2, |r| <= ln(2) / 2', exp_tail, -ln2 / 2, ln2 / 2, 10,
                weight=lambda r, y: r * r / expm1(r))
    approximate('kDoubleAtan', 'double', '(atan(x) / x - 1) / x^2 in x^2 on [0, tan(pi / 8)]', lambda x: (atan(x) / x - 1) / (x * x), 0,
                sqrt(mpf(2)) - 1, 12, 0, square, weight=lambda x, y: x * x)
    approximate('kDoubleAsin', 'double', '(asin(x) / x - 1) / x^2 in x^2 on [0, 1/2]', lambda x: (asin(x) / x - 1) / (x * x), 0, '0.5', 14, 0,
                square, weight=lambda x, y: x * x)
    # Where Halley's method starts: 1e-9 is enough.
    approximate('kErfinvCentral', 'double', 'erfinv(x) / x in w - 3, w = -log(1 - x^2) on [0, 6]', erfinv_central, 0, 6, 13, 0, lambda w: w - 3)
    approximate('kErfinvTail', 'double', 'erfinv(x) in sqrt(w) - 4.25 on w in [6, 37]', lambda s: erfinv_central(s * s) * sqrt(-expm1(-s * s)),
                sqrt(mpf(6)), sqrt(mpf(37)), 11, 0, lambda s: s - 4.25)
    approximate('kI0Small', 'double', 'I0(x) in (x / 2)^2 on [0, 16]', lambda x: besseli(0, x), 0, 16, 23, 0, lambda x: x * x / 4, spread=lambda u: 16 * sqrt(u))
    approximate('kI0Large', 'double', 'I0(x) exp(-x) sqrt(x) in 16 / x - 1/2 on [16, infinity)', lambda u: i0_tail(u / 2), 0, 1, 16, 0,
                lambda u: u - 0.5)
    table('kDoubleErfcx', 8, 'erfc(t) * exp(t^2)', erfcx, 2, 28, 18, ctype='double')


def from_unit(u, c, a, b):
    a, b, c = mpf(a), mpf(b), mpf(c)
    low, high = (a - c) / (a + c), (b - c) / (b + c)
    v = low + (high - low) * u
    return c * (1 + v) / (1 - v)


def erfinv_central(w):
    """erfinv(x) / x where w = -log(1 - x^2), by Newton on erfc so that x near 1 keeps its digits."""
    if w == 0:
        return sqrt(pi) / 2
    x = sqrt(-expm1(-w))
    complement = exp(-w) / (1 + x)  # 1 - x
    y = sqrt(w) if w > 2 else x
    for _ in range(200):
        step = (erfc(y) - complement) * sqrt(pi) / 2 * exp(y * y)
        y += step / (1 - y * step) if abs(y * step) < mpf('0.5') else step / 2
        if abs(step) < mpf(10)**-50:
            break
    return y / x


def stirling_rest(inverse):
    x = 1 / inverse
    return (loggamma(x) - (x - mpf('0.5')) * log(x) + x - log(2 * pi) / 2) * x


def i0_tail(t):
    x = 8 / t if t > mpf(10)**-9 else inf
    if x == inf:
        return 1 / sqrt(2 * pi)
    if x > 200:  # the asymptotic series, far beyond the digits needed
        term = total = mpf(1)
        for k in range(1, 60):
            term *= mpf((2 * k - 1)**2) / (k * 8 * x)
            total += term
            if term < mpf(10)**-50:
                break
        return total / sqrt(2 * pi)
    return besseli(0, x) * exp(-x) * sqrt(x)


if __name__ == '__main__':
    print('''// Coefficients of elementary functions, for the CPU backend and for generated kernels. Written by src/math/polynomials.py: change
// that, not this.
#pragma once

namespace tenon::coefficients {

// clang-format off
''')
    float_part()
    print()
    table_part()
    print()
    wide_part()
    print()
    double_part()
    print('''
// clang-format on
}  // namespace tenon::coefficients''')
