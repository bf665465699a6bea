"""Arrays from other objects, from shapes and from ranges."""

from __future__ import annotations

import builtins

from .. import _core
from .._core import Array
from .arguments import float32, ops, placed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from .._devices import DeviceLike
    from .arguments import ArrayLike


def asarray(obj: ArrayLike, /, *, dtype: Any = None, device: DeviceLike = None, copy: Optional[bool] = None) -> Array:
    """An array of an array-like: numbers, lists, or arrays of other libraries, whose memory is shared where that is possible."""
    return placed(_core._asarray(obj, dtype, copy), device)


def array(obj: ArrayLike, dtype: Any = None, *, device: DeviceLike = None, copy: Optional[bool] = True) -> Array:
    """An array of an array-like, with memory of its own."""
    return placed(_core._asarray(obj, dtype, copy), device)


def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: Optional[bool] = None) -> Array:
    """The array of another library, without a copy if its layout allows."""
    return placed(_core._from_dlpack(x, copy), device)


def arange(
    start: float, /, stop: Optional[float] = None, step: float = 1, *, dtype: Any = None, device: DeviceLike = None
) -> Array:
    """Numbers from start (0 if only one number is given) to stop, without stop."""
    return placed(ops["arange"](start, stop, step, dtype), device)


def zeros(shape: Any, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """An array of zeros."""
    return placed(ops["zeros"](shape, dtype or float32), device)


def ones(shape: Any, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """An array of ones."""
    return placed(ops["ones"](shape, dtype or float32), device)


def full(shape: Any, fill_value: ArrayLike, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """An array in which every element is fill_value."""
    return placed(ops["expand"](_core._asarray(fill_value, dtype, None), shape), device)


def empty(shape: Any, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """An array whose elements have no particular value (they are zeros)."""
    return zeros(shape, dtype=dtype, device=device)


def zeros_like(x: Array, /, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """Zeros of the shape and dtype of x."""
    return zeros(x.shape, dtype=dtype or x.dtype, device=device)


def ones_like(x: Array, /, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """Ones of the shape and dtype of x."""
    return ones(x.shape, dtype=dtype or x.dtype, device=device)


def full_like(x: Array, /, fill_value: ArrayLike, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """fill_value in the shape and dtype of x."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device)


def empty_like(x: Array, /, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """An array of the shape and dtype of x whose elements have no particular value."""
    return zeros_like(x, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: Optional[int] = None, /, *, k: int = 0, dtype: Any = None, device: DeviceLike = None) -> Array:
    """Ones on a diagonal, zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    k = builtins.max(-n_rows - 1, builtins.min(columns + 1, k))
    return placed(ops["eye"](n_rows, columns, k, dtype or float32), device)


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: DeviceLike = None,
    endpoint: bool = True,
) -> Array:
    """num numbers at equal distances from start to stop."""
    if endpoint:
        return placed(ops["linspace"](start, stop, num, dtype or float32), device)
    return placed(ops["linspace"](start, stop, num + 1, dtype or float32)[:num], device)


def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """Coordinates of the points of a grid, one array for each axis."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be 'xy' or 'ij', not {indexing!r}")
    swap = indexing == "xy" and len(arrays) > 1
    shape = [x.size for x in arrays]
    grids = []
    for axis, x in enumerate(arrays):
        extents = [1] * len(arrays)
        extents[axis] = x.size
        grid = ops["expand"](ops["reshape"](x, extents), shape)
        grids.append(ops["swapaxes"](grid, 0, 1) if swap else grid)
    return grids


def tril(x: Array, /, k: int = 0) -> Array:
    """The lower triangle of the last two axes; other elements are 0."""
    return ops["tril"](x, k)


def triu(x: Array, /, k: int = 0) -> Array:
    """The upper triangle of the last two axes; other elements are 0."""
    return ops["triu"](x, k)
