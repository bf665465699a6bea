"""Elementwise functions that are not in the catalogue, searching, sorting, sets, and repeating."""

from __future__ import annotations

import builtins

from .. import _core
from .._core import Array
from .._record import NamedTuple
from .arguments import as_array, boolean, float64, int64, ops
from .creation import arange, full, zeros, zeros_like
from .dtypes import finfo, finfo_object
from .shapes import broadcast_arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from .arguments import ArrayLike


def clip(x: Array, /, min: ArrayLike = None, max: ArrayLike = None) -> Array:
    """Elements below min become min, those above max become max; both broadcast with x."""
    result = x
    if min is not None:
        result = ops["maximum"](result, min)
    if max is not None:
        result = ops["minimum"](result, max)
    if result is x:
        return x._same()
    return result if result.dtype == x.dtype else ops["cast"](result, x.dtype)


def conj(x: Array, /) -> Array:
    """The complex conjugate: the array itself, as there are no complex dtypes."""
    return x._same()


def real(x: Array, /) -> Array:
    """The real part: the array itself."""
    return x._same()


def imag(x: Array, /) -> Array:
    """The imaginary part: zeros."""
    return zeros_like(x)


def nextafter(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The next number after x1 in the direction of x2."""
    x1, x2 = broadcast_arrays(as_array(x1), as_array(x2))
    dtype = _core.promote(x1.dtype, x2.dtype)
    info = finfo(dtype)
    # Floats narrower than float64 have all their neighbours among its numbers.
    up = ops["greater"](x2, x1)
    a, b = ops["cast"](x1, float64), ops["cast"](x2, float64)
    if dtype == float64:
        moved = _float64_neighbour(a, up)
    else:
        step = _narrow_step(a, up, info)
        moved = ops["where"](up, a + step, a - step)
    where, literal = ops["where"], full
    zero = a == 0
    tiny = info.smallest_normal * info.eps
    moved = where(zero, where(up, literal((), tiny, dtype=float64), literal((), -tiny, dtype=float64)), moved)
    limit = where(a > 0, literal((), info.max, dtype=float64), literal((), info.min, dtype=float64))
    moved = where(ops["isinf"](a), limit, moved)
    moved = where(a == b, b, moved)
    moved = where(ops["isnan"](a) | ops["isnan"](b), a + b, moved)
    return ops["cast"](moved, dtype)


def _narrow_step(a: Array, up: Array, info: finfo_object) -> Array:
    """The distance to the neighbour of |a|, of a dtype narrower than float64."""
    size = ops["abs"](a)
    normal = ops["where"](size < info.smallest_normal, info.smallest_normal, size)
    normal = ops["where"](ops["isfinite"](normal), normal, 1.0)
    power = ops["exp2"](ops["floor"](ops["log2"](normal)))
    # log2 may round up to the next integer.
    power = ops["where"](power > normal, power / 2, ops["where"](power * 2 <= normal, power * 2, power))
    inwards = (up == (a < 0)) & (normal == power) & (size > info.smallest_normal)
    return ops["where"](inwards, power / 2, power) * info.eps


def _float64_neighbour(a: Array, up: Array) -> Array:
    """a plus or minus a number that makes it round to its neighbour (Rump et al., Computing predecessor and successor, 2009)."""
    size = ops["abs"](a)
    scale = ops["where"](size < 2.0**-900, full((), 2.0**200, dtype=float64), full((), 1.0, dtype=float64))
    large, step = a * scale, size * scale * (2.0**-53 * (1 + 2.0**-52))
    moved = ops["where"](up, large + step, large - step) / scale
    smallest = full((), 5e-324, dtype=float64)
    return ops["where"](size < 2.0**-1021, ops["where"](up, a + smallest, a - smallest), moved)


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """The indices of the elements that are not 0, one array for each axis. Evaluates x."""
    return tuple(_core._nonzero(x))


def searchsorted(x1: Array, x2: ArrayLike, /, *, side: str = "left", sorter: Optional[Array] = None) -> Array:
    """Where elements of x2 would be inserted into the sorted x1 to keep it sorted."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be 'left' or 'right', not {side!r}")
    if x1.ndim != 1:
        raise ValueError(f"searchsorted: x1 must have one axis, not shape {x1.shape}")
    if sorter is not None:
        x1 = ops["take"](x1, sorter, 0)
    x2 = as_array(x2)
    size = x1.shape[0]
    low, high = zeros(x2.shape, dtype=int64), full(x2.shape, size, dtype=int64)
    for _ in range(size.bit_length()):
        middle = (low + high) // 2
        found = ops["take"](x1, ops["minimum"](middle, size - 1), 0)
        before = ops["less"](found, x2) if side == "left" else ops["less_equal"](found, x2)
        if x2.dtype.kind == "float":  # NaN comes last
            is_nan = ops["isnan"](x2)
            before = before | (is_nan & ~ops["isnan"](found)) if side == "left" else before | is_nan
        go_right = before & (low < high)
        low = ops["where"](go_right, middle + 1, low)
        high = ops["where"](go_right, high, middle)
    return low


def isin(x1: ArrayLike, x2: ArrayLike, /, *, invert: bool = False) -> Array:
    """Whether each element of x1 is among those of x2."""
    x1, x2 = as_array(x1), ops["flatten"](as_array(x2))
    if x2.size == 0:
        return full(x1.shape, invert, dtype=boolean)
    if x2.size <= 64:
        flat = ops["reshape"](x1, (x1.size, 1))
        found = ops["reshape"](ops["any"](flat == x2, 1), x1.shape)
    else:
        ordered = ops["sort"](ops["cast"](x2, _core.promote(x1.dtype, x2.dtype)))
        place = ops["minimum"](searchsorted(ordered, x1), x2.size - 1)
        found = ops["take"](ordered, place, 0) == x1
    return ~found if invert else found


class unique_all_result(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class unique_counts_result(NamedTuple):
    values: Array
    counts: Array


class unique_inverse_result(NamedTuple):
    values: Array
    inverse_indices: Array


def unique_all(x: Array, /) -> unique_all_result:
    """The distinct elements in order, where each is first, which one each element is, and how often each occurs. Evaluates x."""
    flat = ops["flatten"](x)
    order = ops["argsort"](flat)
    ordered = ops["take"](flat, order, 0)
    is_first = ops["concat"]([full((builtins.min(1, x.size),), True, dtype=boolean), ordered[1:] != ordered[:-1]], 0)
    _core._eval([order, ordered, is_first], None, None, 0, None)
    places = nonzero(is_first)[0]
    number = ops["cumsum"](ops["cast"](is_first, int64), 0) - 1
    inverse = ops["scatter"](zeros((x.size,), dtype=int64), order, number, 0) if x.size else zeros((0,), dtype=int64)
    ends = ops["concat"]([places[1:], full((1,), x.size, dtype=int64)], 0) if x.size else places
    return unique_all_result(
        ops["take"](ordered, places, 0),
        ops["take"](order, places, 0),
        ops["reshape"](inverse, x.shape),
        ends - places,
    )


def unique_counts(x: Array, /) -> unique_counts_result:
    """The distinct elements in order, and how often each occurs. Evaluates x."""
    found = unique_all(x)
    return unique_counts_result(found.values, found.counts)


def unique_inverse(x: Array, /) -> unique_inverse_result:
    """The distinct elements in order, and which one each element of x is. Evaluates x."""
    found = unique_all(x)
    return unique_inverse_result(found.values, found.inverse_indices)


def unique_values(x: Array, /) -> Array:
    """The distinct elements in order. Evaluates x."""
    return unique_all(x).values


def argsort(x: Array, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """The indices that sort an axis; equal elements keep their order."""
    return ops["argsort"](x, axis, descending)


def sort(x: Array, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """The elements of an axis in order; NaN comes last."""
    return ops["sort"](x, axis, descending)


def take(x: Array, indices: ArrayLike, /, axis: Optional[int] = None) -> Array:
    """Elements of x along an axis, by their indices."""
    if axis is None and x.ndim != 1:
        raise ValueError("take: an array with several axes needs axis=")
    return ops["take"](x, indices, 0 if axis is None else axis)


def repeat(x: Array, repeats: Any, /, axis: Optional[int] = None) -> Array:
    """Every element several times; with an array of counts, which is evaluated, each as often as it says."""
    if isinstance(repeats, int):
        return ops["repeat"](x, repeats, axis)
    counts = as_array(repeats)
    if axis is None:
        x, axis = ops["flatten"](x), 0
    size = x.shape[axis]
    counts = ops["expand"](ops["reshape"](counts, (counts.size,)), (size,))
    ends = ops["cumsum"](ops["cast"](counts, int64), 0)
    total = int(ends[-1]) if size else 0
    return ops["take"](x, searchsorted(ends, arange(total), side="right"), axis)
