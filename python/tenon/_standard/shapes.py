"""Shapes, order of axes, and products along axes."""

from __future__ import annotations

import builtins

from .. import _core
from .._core import Array
from .arguments import as_array, axis_of, ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Optional

    from .arguments import Axis


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of arrays of these shapes broadcast together."""
    result: list[int] = []
    for shape in shapes:
        longer, shorter = sorted((result, list(shape)), key=len, reverse=True)
        shorter = [1] * (len(longer) - len(shorter)) + shorter
        if builtins.any(a != b and 1 not in (a, b) for a, b in zip(longer, shorter)):
            raise ValueError(f"shapes {', '.join(map(str, shapes))} cannot be broadcast together")
        result = [b if a == 1 else a for a, b in zip(longer, shorter)]
    return tuple(result)


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """The arrays broadcast to one shape."""
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return [ops["expand"](x, shape) for x in arrays]


def concat(arrays: Sequence[Array], /, axis: Optional[int] = 0) -> Array:
    """Arrays joined along an axis; flattened first if axis is None."""
    arrays = [as_array(x) for x in arrays]
    if axis is None:
        return ops["concat"]([ops["flatten"](x) for x in arrays], 0)
    return ops["concat"](arrays, axis)


def expand_dims(x: Array, /, axis: Any = 0) -> Array:
    """Adds axes of extent 1."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    rank = x.ndim + len(axes)
    places = sorted(axis_of(a, rank) for a in axes)
    if len(set(places)) != len(places):
        raise ValueError(f"expand_dims: axis {axis} names an axis twice")
    for place in places:
        x = ops["unsqueeze"](x, place)
    return x


def moveaxis(x: Array, source: Any, destination: Any, /) -> Array:
    """Moves axes to other places; the others keep their order."""
    sources = [axis_of(a, x.ndim) for a in ((source,) if isinstance(source, int) else source)]
    destinations = [axis_of(a, x.ndim) for a in ((destination,) if isinstance(destination, int) else destination)]
    if len(sources) != len(destinations) or len(set(sources)) != len(sources) or len(set(destinations)) != len(sources):
        raise ValueError("moveaxis: source and destination must name the same number of different axes")
    order = [a for a in range(x.ndim) if a not in sources]
    for place, axis in sorted(zip(destinations, sources)):
        order.insert(place, axis)
    return permute_dims(x, tuple(order))


def permute_dims(x: Array, /, axes: Sequence[int]) -> Array:
    """The axes in another order."""
    return ops["permute"](x, tuple(axes)) if x.ndim else x._same()


def reshape(x: Array, /, shape: Any, *, copy: Optional[bool] = None) -> Array:
    """The same elements with another shape; one extent may be -1."""
    return ops["reshape"](x, shape)


def roll(x: Array, /, shift: Any, axis: Axis = None) -> Array:
    """Elements shifted along axes; what leaves at one end comes back at the other."""
    return ops["roll"](x, shift, axis)


def squeeze(x: Array, /, axis: Axis = None) -> Array:
    """Removes axes of extent 1."""
    return ops["squeeze"](x, axis) if axis != () else x._same()


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an axis, which they lose."""
    axis = axis_of(axis, x.ndim)
    return tuple(x[(slice(None),) * axis + (i,)] for i in range(x.shape[axis]))


def matrix_transpose(x: Array, /) -> Array:
    """The last two axes swapped."""
    return x.mT


def tensordot(x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
    """The sum of products over axes of both: the last ones of `x1` with the first ones of `x2`, or two lists of axes."""
    if isinstance(axes, int):
        return ops["tensordot"](x1, x2, axes)
    first, second = (
        [axis_of(a, x.ndim) for a in ((given,) if isinstance(given, int) else given)] for x, given in zip((x1, x2), axes)
    )
    if len(first) != len(second) or builtins.any(x1.shape[a] != x2.shape[b] for a, b in zip(first, second)):
        raise ValueError(f"tensordot: the axes {axes} of shapes {x1.shape} and {x2.shape} do not match")
    left = permute_dims(x1, (*(a for a in range(x1.ndim) if a not in first), *first))
    right = permute_dims(x2, (*second, *(b for b in range(x2.ndim) if b not in second)))
    return ops["tensordot"](left, right, len(first))


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The sum of products along an axis; the other axes are broadcast."""
    size = builtins.min(x1.ndim, x2.ndim)
    if not -size <= axis < size:
        raise ValueError(f"vecdot: axis {axis} is out of range for shapes {x1.shape} and {x2.shape}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: axis {axis} differs in {x1.shape} and {x2.shape}")
    if x1.ndim != x2.ndim and axis >= 0:
        x1, x2 = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
        axis = -1
    dtype = _core.promote(x1.dtype, x2.dtype)
    return ops["cast"](ops["sum"](ops["multiply"](x1, x2), axis), dtype)
