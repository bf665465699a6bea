"""What the functions of the standard share: the ops of the catalogue, element types, and how arguments are read."""

from __future__ import annotations

from .. import _core
from .._core import Array
from .._devices import _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Union

    from .._devices import DeviceLike

    Axis = Union[int, Sequence[int], None]
    ArrayLike = Any

ops = _core.ops
types = {dtype.name: dtype for dtype in _core.dtypes}
float64, float32, int64, uint64, boolean = (types[name] for name in ("float64", "float32", "int64", "uint64", "bool"))


def as_array(x: ArrayLike) -> Array:
    return x if isinstance(x, Array) else _core._asarray(x, None, True)


def placed(x: Array, device: DeviceLike) -> Array:
    request = _text(device)
    return x if request is None or request == "host" else x.on(request)


def axis_of(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} is out of range for {rank} axes")
    return axis % rank
