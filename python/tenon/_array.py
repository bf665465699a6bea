"""Methods of Array that are easier in Python: conversion, pickling, protocols."""

from __future__ import annotations

from . import _core
from ._core import Array, DType
from ._devices import _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from ._devices import DeviceLike


def _to_device(self: Array, device: DeviceLike, /, *, stream: object = None) -> Array:
    """The value moved to a device now; "host" is host memory, without a request for a device."""
    return self._to_device(_text(device) or "host")


def _array(self: Array, dtype: Any = None, copy: Optional[bool] = None) -> Any:
    import numpy

    value = self if self.dtype.itemsize and self.dtype.name != "bfloat16" else self.astype(_core.dtype("float32"))
    # A view of the array's memory, which nobody may write to; copy=True gives an array of one's own.
    view = numpy.frombuffer(memoryview(value).cast("B") if value.size else b"", dtype=value.dtype.name).reshape(value.shape)
    return numpy.array(view, dtype=dtype, copy=copy)


def _restore(data: bytes, dtype: str, shape: tuple[int, ...]) -> Array:
    return _core._from_bytes(data, dtype, shape)


def _restore_dtype(name: str) -> DType:
    return _core.dtype(name)


def _reduce_dtype(self: DType) -> Any:
    return _restore_dtype, (self.name,)


def _reduce(self: Array) -> Any:
    return _restore, (_core._to_bytes(self), self.dtype.name, self.shape)


def _copy(self: Array) -> Array:
    return self._same()


def _deepcopy(self: Array, memo: object) -> Array:
    return self._same()


def _array_namespace(self: Array, /, *, api_version: Optional[str] = None) -> Any:
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ValueError(f"the array API standard {api_version} is not supported; 2025.12 is the newest that is")
    import tenon

    return tenon


def _iterate(self: Array) -> Any:
    if self.ndim == 0:
        raise TypeError("an array without axes cannot be iterated over")
    return (self[i] for i in range(self.shape[0]))


def _contains(self: Array, value: Any) -> bool:
    return bool((self == value).any())


def _complex(self: Array) -> complex:
    return complex(float(self))


def _astype(self: Array, dtype: Any, /, *, copy: bool = True) -> Array:
    """The array converted to another dtype."""
    return self.cast(dtype)


def _explain(self: Array, device: DeviceLike = "auto", **choice: Any) -> Any:
    """The device on which the array would be evaluated now, and why; options are those of tenon.explain()."""
    from ._devices import explain

    return explain(self, device, **choice)


def _repr_html(self: Array) -> str:
    from ._notebook import array_html

    return array_html(self)


def _await(self: Array) -> Any:
    from ._async import eval_async

    return eval_async(self).__await__()


def _reshape(self: Array, *shape: Any) -> Array:
    """The same elements with another shape; one extent may be -1."""
    return _core.ops["reshape"](self, shape[0] if len(shape) == 1 else shape)


def _transpose(self: Array, *axes: Any) -> Array:
    """The array with its axes in another order, reversed by default."""
    if len(axes) == 1 and (axes[0] is None or not isinstance(axes[0], int)):
        axes = axes[0] or ()
    return _core.ops["permute"](self, axes) if axes else self.T


for _name, _method in {
    "to_device": _to_device,
    "to": _to_device,
    "__array__": _array,
    "__reduce__": _reduce,
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
    "__array_namespace__": _array_namespace,
    "__iter__": _iterate,
    "__contains__": _contains,
    "__complex__": _complex,
    "__await__": _await,
    "astype": _astype,
    "copy": _copy,
    "explain": _explain,
    "reshape": _reshape,
    "transpose": _transpose,
    "_repr_html_": _repr_html,
}.items():
    _method.__name__ = _name
    _method.__qualname__ = f"Array.{_name}"
    setattr(Array, _name, _method)
# NumPy's operators leave the work to ours: np_array + tenon_array is a Tenon array.
Array.__array_priority__ = 1000
Array.__module__ = DType.__module__ = "tenon"
DType.__reduce__ = _reduce_dtype  # type: ignore[method-assign, assignment]
