"""The functions of the Python array API standard 2025.12 that the catalogue lacks, or has with other arguments.

A function here replaces the op of the same name in the main namespace and, if it takes an array first, Array's method.
"""

from __future__ import annotations

import builtins
import math

from . import _core
from ._core import Array, DType
from ._devices import _text
from ._record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Optional, Union

    from ._devices import DeviceLike

    Axis = Union[int, Sequence[int], None]
    ArrayLike = Any

_ops = _core.ops
_abs = builtins.abs
_all = builtins.all
_max = builtins.max
_min = builtins.min
_sum = builtins.sum
_types = {dtype.name: dtype for dtype in _core.dtypes}
_float64, _float32, _int64, _uint64, _bool = (_types[n] for n in ("float64", "float32", "int64", "uint64", "bool"))

e = math.e
inf = math.inf
nan = math.nan
pi = math.pi
newaxis = None


def _as_array(x: ArrayLike) -> Array:
    return x if isinstance(x, Array) else _core._asarray(x, None, True)


def _placed(x: Array, device: DeviceLike) -> Array:
    request = _text(device)
    return x if request is None or request == "host" else x.on(request)


# --- Creation ---


def asarray(obj: ArrayLike, /, *, dtype: Any = None, device: DeviceLike = None, copy: Optional[bool] = None) -> Array:
    """An array of an array-like: numbers, lists, or arrays of other libraries, whose memory is shared where that is possible."""
    return _placed(_core._asarray(obj, dtype, copy), device)


def array(obj: ArrayLike, dtype: Any = None, *, device: DeviceLike = None, copy: Optional[bool] = True) -> Array:
    """An array of an array-like, with memory of its own."""
    return _placed(_core._asarray(obj, dtype, copy), device)


def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: Optional[bool] = None) -> Array:
    """The array of another library, without a copy if its layout allows."""
    return _placed(_core._from_dlpack(x, copy), device)


def arange(
    start: float, /, stop: Optional[float] = None, step: float = 1, *, dtype: Any = None, device: DeviceLike = None
) -> Array:
    """Numbers from start (0 if only one number is given) to stop, without stop."""
    return _placed(_ops["arange"](start, stop, step, dtype), device)


def zeros(shape: Any, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """An array of zeros."""
    return _placed(_ops["zeros"](shape, dtype or _float32), device)


def ones(shape: Any, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """An array of ones."""
    return _placed(_ops["ones"](shape, dtype or _float32), device)


def full(shape: Any, fill_value: ArrayLike, *, dtype: Any = None, device: DeviceLike = None) -> Array:
    """An array in which every element is fill_value."""
    return _placed(_ops["expand"](_core._asarray(fill_value, dtype, None), shape), device)


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
    k = _max(-n_rows - 1, _min(columns + 1, k))
    return _placed(_ops["eye"](n_rows, columns, k, dtype or _float32), device)


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
        return _placed(_ops["linspace"](start, stop, num, dtype or _float32), device)
    return _placed(_ops["linspace"](start, stop, num + 1, dtype or _float32)[:num], device)


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
        grid = _ops["expand"](_ops["reshape"](x, extents), shape)
        grids.append(_ops["swapaxes"](grid, 0, 1) if swap else grid)
    return grids


def tril(x: Array, /, k: int = 0) -> Array:
    """The lower triangle of the last two axes; other elements are 0."""
    return _ops["tril"](x, k)


def triu(x: Array, /, k: int = 0) -> Array:
    """The upper triangle of the last two axes; other elements are 0."""
    return _ops["triu"](x, k)


# --- Dtypes ---


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: DeviceLike = None) -> Array:
    """The array converted to another dtype."""
    return _placed(_ops["cast"](x, dtype), device)


_KINDS: dict[str, Callable[[DType], bool]] = {
    "bool": lambda d: d.kind == "bool",
    "signed integer": lambda d: d.kind == "int",
    "unsigned integer": lambda d: d.kind == "uint",
    "integral": lambda d: d.kind in ("int", "uint"),
    "real floating": lambda d: d.kind == "float",
    "complex floating": lambda _: False,
    "numeric": lambda d: d.kind != "bool",
}


def isdtype(dtype: DType, kind: Any) -> bool:
    """Whether dtype is of a kind: a dtype, "bool", "integral", "real floating", "numeric" ..., or a tuple of these."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, DType):
        return dtype == kind
    if kind not in _KINDS:
        raise ValueError(f"unknown kind of dtype {kind!r}; known are {', '.join(_KINDS)}")
    return _KINDS[kind](dtype)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of the result of an operation on arrays, dtypes and Python numbers, which adapt to the others."""
    strong = [x.dtype if isinstance(x, Array) else _core.dtype(x) for x in arrays_and_dtypes if not _is_number(x)]
    numbers = [x for x in arrays_and_dtypes if _is_number(x)]
    if not strong:
        strong = [_core._asarray(x, None, None).dtype for x in numbers]
    result = strong[0]
    for dtype in strong[1:]:
        result = _core.promote(result, dtype)
    for number in numbers:
        if isinstance(number, float) and result.kind != "float":
            result = _float32
        elif not isinstance(number, bool) and result.kind == "bool":
            result = _int64
    return result


def _is_number(x: object) -> bool:
    return isinstance(x, (bool, int, float)) and not isinstance(x, Array)


def can_cast(from_: Any, to: DType, /) -> bool:
    """Whether every value of a dtype, or of an array's dtype, is one of another dtype by the rules of promotion."""
    return result_type(from_, to) == to


class finfo_object(NamedTuple):
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class iinfo_object(NamedTuple):
    bits: int
    max: int
    min: int
    dtype: DType


_FLOATS = {  # bits, digits of the mantissa, largest exponent
    "float64": (64, 52, 1023),
    "float32": (32, 23, 127),
    "float16": (16, 10, 15),
    "bfloat16": (16, 7, 127),
}


def _dtype_of(type: Any) -> DType:
    return type.dtype if isinstance(type, Array) else _core.dtype(type)


def finfo(type: Any, /) -> finfo_object:
    """The limits of a floating-point dtype."""
    dtype = _dtype_of(type)
    if dtype.name not in _FLOATS:
        raise ValueError(f"finfo: {dtype} is not one of {', '.join(_FLOATS)}")
    bits, digits, exponent = _FLOATS[dtype.name]
    largest = (2.0 - 2.0**-digits) * 2.0**exponent
    return finfo_object(bits, 2.0**-digits, largest, -largest, 2.0 ** (1 - exponent), dtype)


def iinfo(type: Any, /) -> iinfo_object:
    """The limits of an integer dtype."""
    dtype = _dtype_of(type)
    if dtype.kind not in ("int", "uint"):
        raise ValueError(f"iinfo: {dtype} is not an integer dtype")
    bits = 8 * dtype.itemsize
    if dtype.kind == "uint":
        return iinfo_object(bits, 2**bits - 1, 0, dtype)
    return iinfo_object(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), dtype)


# --- Elementwise ---


def clip(x: Array, /, min: ArrayLike = None, max: ArrayLike = None) -> Array:
    """Elements below min become min, those above max become max; both broadcast with x."""
    result = x
    if min is not None:
        result = _ops["maximum"](result, min)
    if max is not None:
        result = _ops["minimum"](result, max)
    if result is x:
        return x._same()
    return result if result.dtype == x.dtype else _ops["cast"](result, x.dtype)


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
    x1, x2 = broadcast_arrays(_as_array(x1), _as_array(x2))
    dtype = _core.promote(x1.dtype, x2.dtype)
    info = finfo(dtype)
    # Floats narrower than float64 have all their neighbours among its numbers.
    up = _ops["greater"](x2, x1)
    a, b = _ops["cast"](x1, _float64), _ops["cast"](x2, _float64)
    if dtype == _float64:
        moved = _float64_neighbour(a, up)
    else:
        step = _narrow_step(a, up, info)
        moved = _ops["where"](up, a + step, a - step)
    where, literal = _ops["where"], full
    zero = a == 0
    tiny = info.smallest_normal * info.eps
    moved = where(zero, where(up, literal((), tiny, dtype=_float64), literal((), -tiny, dtype=_float64)), moved)
    limit = where(a > 0, literal((), info.max, dtype=_float64), literal((), info.min, dtype=_float64))
    moved = where(_ops["isinf"](a), limit, moved)
    moved = where(a == b, b, moved)
    moved = where(_ops["isnan"](a) | _ops["isnan"](b), a + b, moved)
    return _ops["cast"](moved, dtype)


def _narrow_step(a: Array, up: Array, info: finfo_object) -> Array:
    """The distance to the neighbour of |a|, of a dtype narrower than float64."""
    size = _ops["abs"](a)
    normal = _ops["where"](size < info.smallest_normal, info.smallest_normal, size)
    normal = _ops["where"](_ops["isfinite"](normal), normal, 1.0)
    power = _ops["exp2"](_ops["floor"](_ops["log2"](normal)))
    # log2 may round up to the next integer.
    power = _ops["where"](power > normal, power / 2, _ops["where"](power * 2 <= normal, power * 2, power))
    inwards = (up == (a < 0)) & (normal == power) & (size > info.smallest_normal)
    return _ops["where"](inwards, power / 2, power) * info.eps


def _float64_neighbour(a: Array, up: Array) -> Array:
    """a plus or minus a number that makes it round to its neighbour (Rump et al., Computing predecessor and successor, 2009)."""
    size = _ops["abs"](a)
    scale = _ops["where"](size < 2.0**-900, full((), 2.0**200, dtype=_float64), full((), 1.0, dtype=_float64))
    large, step = a * scale, size * scale * (2.0**-53 * (1 + 2.0**-52))
    moved = _ops["where"](up, large + step, large - step) / scale
    smallest = full((), 5e-324, dtype=_float64)
    return _ops["where"](size < 2.0**-1021, _ops["where"](up, a + smallest, a - smallest), moved)


# --- Indexing and searching ---


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
        x1 = _ops["take"](x1, sorter, 0)
    x2 = _as_array(x2)
    size = x1.shape[0]
    low, high = zeros(x2.shape, dtype=_int64), full(x2.shape, size, dtype=_int64)
    for _ in range(size.bit_length()):
        middle = (low + high) // 2
        found = _ops["take"](x1, _ops["minimum"](middle, size - 1), 0)
        before = _ops["less"](found, x2) if side == "left" else _ops["less_equal"](found, x2)
        if x2.dtype.kind == "float":  # NaN comes last
            is_nan = _ops["isnan"](x2)
            before = before | (is_nan & ~_ops["isnan"](found)) if side == "left" else before | is_nan
        go_right = before & (low < high)
        low = _ops["where"](go_right, middle + 1, low)
        high = _ops["where"](go_right, high, middle)
    return low


def isin(x1: ArrayLike, x2: ArrayLike, /, *, invert: bool = False) -> Array:
    """Whether each element of x1 is among those of x2."""
    x1, x2 = _as_array(x1), _ops["flatten"](_as_array(x2))
    if x2.size == 0:
        return full(x1.shape, invert, dtype=_bool)
    if x2.size <= 64:
        flat = _ops["reshape"](x1, (x1.size, 1))
        found = _ops["reshape"](_ops["any"](flat == x2, 1), x1.shape)
    else:
        ordered = _ops["sort"](_ops["cast"](x2, _core.promote(x1.dtype, x2.dtype)))
        place = _ops["minimum"](searchsorted(ordered, x1), x2.size - 1)
        found = _ops["take"](ordered, place, 0) == x1
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
    flat = _ops["flatten"](x)
    order = _ops["argsort"](flat)
    ordered = _ops["take"](flat, order, 0)
    is_first = _ops["concat"]([full((_min(1, x.size),), True, dtype=_bool), ordered[1:] != ordered[:-1]], 0)
    _core._eval([order, ordered, is_first], None, None, 0, None)
    places = nonzero(is_first)[0]
    number = _ops["cumsum"](_ops["cast"](is_first, _int64), 0) - 1
    inverse = _ops["scatter"](zeros((x.size,), dtype=_int64), order, number, 0) if x.size else zeros((0,), dtype=_int64)
    ends = _ops["concat"]([places[1:], full((1,), x.size, dtype=_int64)], 0) if x.size else places
    return unique_all_result(
        _ops["take"](ordered, places, 0),
        _ops["take"](order, places, 0),
        _ops["reshape"](inverse, x.shape),
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
    return _ops["argsort"](x, axis, descending)


def sort(x: Array, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """The elements of an axis in order; NaN comes last."""
    return _ops["sort"](x, axis, descending)


def take(x: Array, indices: ArrayLike, /, axis: Optional[int] = None) -> Array:
    """Elements of x along an axis, by their indices."""
    if axis is None and x.ndim != 1:
        raise ValueError("take: an array with several axes needs axis=")
    return _ops["take"](x, indices, 0 if axis is None else axis)


# --- Shapes ---


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
    return [_ops["expand"](x, shape) for x in arrays]


def concat(arrays: Sequence[Array], /, axis: Optional[int] = 0) -> Array:
    """Arrays joined along an axis; flattened first if axis is None."""
    arrays = [_as_array(x) for x in arrays]
    if axis is None:
        return _ops["concat"]([_ops["flatten"](x) for x in arrays], 0)
    return _ops["concat"](arrays, axis)


def expand_dims(x: Array, /, axis: Any = 0) -> Array:
    """Adds axes of extent 1."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    rank = x.ndim + len(axes)
    places = sorted(_axis(a, rank) for a in axes)
    if len(set(places)) != len(places):
        raise ValueError(f"expand_dims: axis {axis} names an axis twice")
    for place in places:
        x = _ops["unsqueeze"](x, place)
    return x


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} is out of range for {rank} axes")
    return axis % rank


def moveaxis(x: Array, source: Any, destination: Any, /) -> Array:
    """Moves axes to other places; the others keep their order."""
    sources = [_axis(a, x.ndim) for a in ((source,) if isinstance(source, int) else source)]
    destinations = [_axis(a, x.ndim) for a in ((destination,) if isinstance(destination, int) else destination)]
    if len(sources) != len(destinations) or len(set(sources)) != len(sources) or len(set(destinations)) != len(sources):
        raise ValueError("moveaxis: source and destination must name the same number of different axes")
    order = [a for a in range(x.ndim) if a not in sources]
    for place, axis in sorted(zip(destinations, sources)):
        order.insert(place, axis)
    return permute_dims(x, tuple(order))


def permute_dims(x: Array, /, axes: Sequence[int]) -> Array:
    """The axes in another order."""
    return _ops["permute"](x, tuple(axes)) if x.ndim else x._same()


def reshape(x: Array, /, shape: Any, *, copy: Optional[bool] = None) -> Array:
    """The same elements with another shape; one extent may be -1."""
    return _ops["reshape"](x, shape)


def roll(x: Array, /, shift: Any, axis: Axis = None) -> Array:
    """Elements shifted along axes; what leaves at one end comes back at the other."""
    return _ops["roll"](x, shift, axis)


def repeat(x: Array, repeats: Any, /, axis: Optional[int] = None) -> Array:
    """Every element several times; with an array of counts, which is evaluated, each as often as it says."""
    if isinstance(repeats, int):
        return _ops["repeat"](x, repeats, axis)
    counts = _as_array(repeats)
    if axis is None:
        x, axis = _ops["flatten"](x), 0
    size = x.shape[axis]
    counts = _ops["expand"](_ops["reshape"](counts, (counts.size,)), (size,))
    ends = _ops["cumsum"](_ops["cast"](counts, _int64), 0)
    total = int(ends[-1]) if size else 0
    return _ops["take"](x, searchsorted(ends, arange(total), side="right"), axis)


def squeeze(x: Array, /, axis: Axis = None) -> Array:
    """Removes axes of extent 1."""
    return _ops["squeeze"](x, axis) if axis != () else x._same()


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an axis, which they lose."""
    axis = _axis(axis, x.ndim)
    return tuple(x[(slice(None),) * axis + (i,)] for i in range(x.shape[axis]))


def matrix_transpose(x: Array, /) -> Array:
    """The last two axes swapped."""
    return x.mT


# --- Products ---


def tensordot(x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
    """The sum of products over axes of both: the last and first so many, or two lists of axes."""
    if isinstance(axes, int):
        return _ops["tensordot"](x1, x2, axes)
    first, second = (
        [_axis(a, x.ndim) for a in ((given,) if isinstance(given, int) else given)] for x, given in zip((x1, x2), axes)
    )
    if len(first) != len(second) or builtins.any(x1.shape[a] != x2.shape[b] for a, b in zip(first, second)):
        raise ValueError(f"tensordot: the axes {axes} of shapes {x1.shape} and {x2.shape} do not match")
    left = permute_dims(x1, (*(a for a in range(x1.ndim) if a not in first), *first))
    right = permute_dims(x2, (*second, *(b for b in range(x2.ndim) if b not in second)))
    return _ops["tensordot"](left, right, len(first))


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """The sum of products along an axis; the other axes are broadcast."""
    size = _min(x1.ndim, x2.ndim)
    if not -size <= axis < size:
        raise ValueError(f"vecdot: axis {axis} is out of range for shapes {x1.shape} and {x2.shape}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: axis {axis} differs in {x1.shape} and {x2.shape}")
    if x1.ndim != x2.ndim and axis >= 0:
        x1, x2 = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
        axis = -1
    dtype = _core.promote(x1.dtype, x2.dtype)
    return _ops["cast"](_ops["sum"](_ops["multiply"](x1, x2), axis), dtype)


# --- Reductions ---


def _reduced(name: str, x: Array, axis: Axis, keepdims: bool) -> Array:
    if axis is None or isinstance(axis, int) or len(axis) > 0:
        return _ops[name](x, axis, keepdims)
    # No axes at all: every element on its own.
    return _ops["squeeze"](_ops[name](_ops["unsqueeze"](x, 0), 0, True), 0)


def _widened(x: Array, dtype: Any) -> Array:
    """Sums and products of small integers are 64 bits wide unless a dtype is given."""
    if dtype is not None:
        return _ops["cast"](x, dtype)
    if x.dtype.kind in ("int", "uint"):
        return _ops["cast"](x, _int64 if x.dtype.kind == "int" else _uint64)
    return x


def _typed(x: Array, dtype: Any) -> Array:
    return x if dtype is None else _ops["cast"](x, dtype)


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
    return _ops["var"](x, axis, keepdims, correction)


def std(x: Array, /, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The standard deviation over axes; the square root of var()."""
    if axis == ():
        return zeros_like(x)
    return _ops["std"](x, axis, keepdims, correction)


def _cumulative(name: str, x: Array, axis: Optional[int], dtype: Any, initial: Optional[int]) -> Array:
    if axis is None:
        if x.ndim != 1:
            raise ValueError("an array with several axes needs axis=")
        axis = 0
    result = _typed(_ops[name](_widened(x, dtype), axis), dtype)
    if initial is None:
        return result
    shape = list(x.shape)
    shape[axis] = 1
    return _ops["concat"]([full(shape, initial, dtype=result.dtype), result], axis)


def cumulative_sum(x: Array, /, *, axis: Optional[int] = None, dtype: Any = None, include_initial: bool = False) -> Array:
    """The running sum along an axis, from 0 on if include_initial."""
    return _cumulative("cumsum", x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(x: Array, /, *, axis: Optional[int] = None, dtype: Any = None, include_initial: bool = False) -> Array:
    """The running product along an axis, from 1 on if include_initial."""
    return _cumulative("cumprod", x, axis, dtype, 1 if include_initial else None)


def diff(x: Array, /, *, axis: int = -1, n: int = 1, prepend: Optional[Array] = None, append: Optional[Array] = None) -> Array:
    """Differences of neighbours along an axis, n times."""
    axis = _axis(axis, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    x = _ops["concat"](parts, axis) if len(parts) > 1 else x
    before = (slice(None),) * axis
    for _ in range(n):
        later, earlier = x[before + (slice(1, None),)], x[before + (slice(None, -1),)]
        x = _ops["not_equal"](later, earlier) if x.dtype == _bool else later - earlier
    return x


# --- What there is ---


class _Info:
    """What __array_namespace_info__() answers."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> str:
        return "host"

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        return {"real floating": _float32, "integral": _int64, "indexing": _int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        standard = [d for d in _core.dtypes if d.name in ("float32", "float64") or d.kind != "float"]
        return {d.name: d for d in standard if kind is None or isdtype(d, kind)}

    def devices(self) -> list[str]:
        from ._devices import devices

        return ["host", *(device.id for device in devices() if device.available)]


def __array_namespace_info__() -> _Info:
    """What this namespace of the array API standard offers."""
    return _Info()


__array_api_version__ = "2025.12"

_PRIVATE = {"Array", "DType", "NamedTuple", "TYPE_CHECKING", "annotations", "builtins", "math"}
__all__ = [name for name in dir() if name not in _PRIVATE and (not name.startswith("_") or name.startswith("__array_"))]

# As methods, x.sum() and sum(x) are the same.
for _name in __all__:
    _function = globals()[_name]
    _names = getattr(getattr(_function, "__code__", None), "co_varnames", ("",))
    if callable(_function) and _names[:1] == ("x",) and _name not in ("reshape", "astype", "array"):
        setattr(Array, _name, _function)
