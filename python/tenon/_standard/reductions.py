"""Reductions, cumulative sums and differences."""

from __future__ import annotations

from .._core import Array
from .arguments import axis_of, boolean, int64, ops, uint64
from .creation import full, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from .arguments import Axis


def _reduced(name: str, x: Array, axis: Axis, keepdims: bool) -> Array:
    if axis is None or isinstance(axis, int) or len(axis) > 0:
        return ops[name](x, axis, keepdims)
    # No axes at all: every element on its own.
    return ops["squeeze"](ops[name](ops["unsqueeze"](x, 0), 0, True), 0)


def _widened(x: Array, dtype: Any) -> Array:
    """Sums and products of small integers are 64 bits wide unless a dtype is given."""
    if dtype is not None:
        return ops["cast"](x, dtype)
    if x.dtype.kind in ("int", "uint"):
        return ops["cast"](x, int64 if x.dtype.kind == "int" else uint64)
    return x


def _typed(x: Array, dtype: Any) -> Array:
    return x if dtype is None else ops["cast"](x, dtype)


def sum(x: Array, /, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:  # noqa: A001
    """The sum over axes; integers are added in 64 bits."""
    return _typed(_reduced("sum", _widened(x, dtype), axis, keepdims), dtype)


def prod(x: Array, /, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """The product over axes; integers are multiplied in 64 bits."""
    return _typed(_reduced("prod", _widened(x, dtype), axis, keepdims), dtype)


def max(x: Array, /, axis: Axis = None, keepdims: bool = False) -> Array:  # noqa: A001
    """The largest element over axes; NaN if there is one."""
    return _reduced("max", x, axis, keepdims)


def min(x: Array, /, axis: Axis = None, keepdims: bool = False) -> Array:  # noqa: A001
    """The smallest element over axes; NaN if there is one."""
    return _reduced("min", x, axis, keepdims)


def mean(x: Array, /, axis: Axis = None, keepdims: bool = False) -> Array:
    """The mean over axes."""
    return _reduced("mean", x, axis, keepdims)


def all(x: Array, /, axis: Axis = None, keepdims: bool = False) -> Array:  # noqa: A001
    """Whether all elements over axes are not 0."""
    return _reduced("all", x, axis, keepdims)


def any(x: Array, /, axis: Axis = None, keepdims: bool = False) -> Array:  # noqa: A001
    """Whether an element over axes is not 0."""
    return _reduced("any", x, axis, keepdims)


def var(x: Array, /, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The variance over axes; divides by the number of elements less the correction."""
    if axis == ():
        return zeros_like(x)
    return ops["var"](x, axis, keepdims, correction)


def std(x: Array, /, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The standard deviation over axes; the square root of var()."""
    if axis == ():
        return zeros_like(x)
    return ops["std"](x, axis, keepdims, correction)


def _cumulative(name: str, x: Array, axis: Optional[int], dtype: Any, initial: Optional[int]) -> Array:
    if axis is None:
        if x.ndim != 1:
            raise ValueError("an array with several axes needs axis=")
        axis = 0
    result = _typed(ops[name](_widened(x, dtype), axis), dtype)
    if initial is None:
        return result
    shape = list(x.shape)
    shape[axis] = 1
    return ops["concat"]([full(shape, initial, dtype=result.dtype), result], axis)


def cumulative_sum(x: Array, /, *, axis: Optional[int] = None, dtype: Any = None, include_initial: bool = False) -> Array:
    """The running sum along an axis, from 0 on if include_initial."""
    return _cumulative("cumsum", x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(x: Array, /, *, axis: Optional[int] = None, dtype: Any = None, include_initial: bool = False) -> Array:
    """The running product along an axis, from 1 on if include_initial."""
    return _cumulative("cumprod", x, axis, dtype, 1 if include_initial else None)


def diff(x: Array, /, *, axis: int = -1, n: int = 1, prepend: Optional[Array] = None, append: Optional[Array] = None) -> Array:
    """Differences of neighbours along an axis, n times."""
    axis = axis_of(axis, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    x = ops["concat"](parts, axis) if len(parts) > 1 else x
    before = (slice(None),) * axis
    for _ in range(n):
        later, earlier = x[before + (slice(1, None),)], x[before + (slice(None, -1),)]
        x = ops["not_equal"](later, earlier) if x.dtype == boolean else later - earlier
    return x
