"""The array API standard: what it demands is there, and gives the values of its reference implementation."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tenon as tn

xp = pytest.importorskip("array_api_strict")

LATER = {  # needs complex numbers, or comes later
    "complex64", "complex128", "linalg", "fft",
}  # fmt: skip

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float32, np.float64]


@st.composite
def arrays(draw, dtypes=tuple(FLOATS + INTEGERS), shapes=SHAPES, **elements):
    dtype = draw(st.sampled_from(dtypes))
    if np.dtype(dtype).kind == "f":
        width = np.dtype(dtype).itemsize * 8
        values = st.floats(-100, 100, width=width) if not elements.get("special") else st.floats(width=width)
    else:
        values = st.integers(0, 9)
    return draw(hnp.arrays(dtype, draw(shapes), elements=values))


def same(ours, theirs, rtol=1e-5):
    theirs = np.asarray(theirs)
    assert tuple(ours.shape) == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=rtol, atol=1e-5)


def test_every_demanded_name_is_there():
    missing = [name for name in dir(xp) if not name.startswith("_") and not hasattr(tn, name)]
    known = LATER | {"ArrayAPIStrictFlagsWarning", "get_array_api_strict_flags", "set_array_api_strict_flags", "reset_array_api_strict_flags",
                     "ArrayAPIStrictFlags", "Device", "ModuleType", "flags", "rdtypes"}  # fmt: skip
    assert set(missing) <= known | {name for name in missing if inspect.ismodule(getattr(xp, name))}


def test_keywords_are_accepted_by_name():
    for name in dir(xp):
        function, ours = getattr(xp, name), getattr(tn, name, None)
        if name.startswith("_") or not inspect.isfunction(function) or not callable(ours) or "flags" in name:
            continue
        wanted = {p.name for p in inspect.signature(function).parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY}
        got = inspect.signature(ours).parameters
        assert wanted - {"device", "dtype"} <= set(got), name


def test_the_namespace_of_an_array():
    assert tn.array([1]).__array_namespace__() is tn
    assert tn.array([1]).__array_namespace__(api_version="2025.12") is tn
    with pytest.raises(ValueError):
        tn.array([1]).__array_namespace__(api_version="1999.01")
    info = tn.__array_namespace_info__()
    assert info.capabilities()["data-dependent shapes"] and info.default_device() in info.devices()
    assert info.dtypes(kind="unsigned integer").keys() == {"uint8", "uint16", "uint32", "uint64"}
    assert info.default_dtypes()["real floating"] == tn.float32


@given(arrays(FLOATS), st.sampled_from(["sum", "prod", "mean", "max", "min", "std", "var"]), st.booleans())
def test_reductions(a, name, keepdims):
    if a.size == 0 and name in ("mean", "max", "min", "std", "var"):
        return
    axes = [None, *range(a.ndim), tuple(range(a.ndim))]
    for axis in axes:
        with np.errstate(all="ignore"):
            theirs = getattr(np, name)(a, axis=axis, keepdims=keepdims)
        same(getattr(tn, name)(tn.asarray(a), axis=axis, keepdims=keepdims), theirs, rtol=1e-3)


@given(arrays(INTEGERS))
def test_sums_of_integers_are_64_bits_wide(a):
    same(tn.sum(tn.asarray(a)), np.sum(a))
    same(tn.prod(tn.asarray(a) % 3), np.prod(a % 3))
    assert tn.sum(tn.asarray(a), dtype=tn.float64).dtype == tn.float64


@given(arrays(), st.booleans())
def test_cumulative(a, initial):
    if a.ndim == 0:
        return
    for axis in range(-a.ndim, a.ndim):
        ours = tn.cumulative_sum(tn.asarray(a), axis=axis, include_initial=initial)
        theirs = np.cumulative_sum(a, axis=axis, include_initial=initial)
        same(ours, theirs, rtol=1e-3)
        same(tn.diff(tn.asarray(a), axis=axis), np.diff(a, axis=axis), rtol=1e-3)


@given(arrays(shapes=hnp.array_shapes(min_dims=1, max_dims=2, max_side=6)), st.booleans())
def test_sorting(a, descending):
    x = tn.asarray(a)
    theirs = np.sort(a, axis=-1)
    same(tn.sort(x, descending=descending), theirs[..., ::-1] if descending else theirs)
    same(tn.take_along_axis(x, tn.argsort(x), axis=-1), theirs)


@given(arrays())
def test_unique(a):
    x = tn.asarray(a)
    values, indices, inverse, counts = tn.unique_all(x)
    theirs = np.unique_all(a)
    same(values, theirs.values)
    same(counts, theirs.counts)
    same(inverse, theirs.inverse_indices)
    np.testing.assert_array_equal(a.reshape(-1)[np.asarray(indices)], theirs.values)
    same(tn.unique_values(x), theirs.values)


@given(arrays(shapes=hnp.array_shapes(min_dims=1, max_dims=3)))
def test_nonzero(a):
    ours = tn.nonzero(tn.asarray(a))
    for mine, theirs in zip(ours, np.nonzero(a)):
        same(mine, theirs)


@given(arrays(FLOATS, shapes=st.tuples(st.integers(1, 200))), arrays(FLOATS), st.sampled_from(["left", "right"]))
def test_searchsorted(a, v, side):
    a = np.sort(a.astype(v.dtype))
    same(tn.searchsorted(tn.asarray(a), tn.asarray(v), side=side), np.searchsorted(a, v, side=side))


def test_searchsorted_puts_nan_last():
    a = np.array([1.0, 2.0, np.nan])
    for side in ("left", "right"):
        same(
            tn.searchsorted(tn.asarray(a), tn.asarray(np.array([np.nan, 1.5])), side=side),
            np.searchsorted(a, [np.nan, 1.5], side=side),
        )


@given(arrays(INTEGERS), arrays(INTEGERS, shapes=hnp.array_shapes(min_dims=1, max_dims=2, max_side=12)), st.booleans())
def test_isin(a, b, invert):
    same(tn.isin(tn.asarray(a), tn.asarray(b), invert=invert), np.isin(a, b, invert=invert))


@given(st.data())
def test_nextafter(data):
    for dtype in FLOATS:
        values = st.floats(width=np.dtype(dtype).itemsize * 8)
        a, b = (data.draw(hnp.arrays(dtype, (4,), elements=values)) for _ in range(2))
        theirs = np.nextafter(a, b)
        np.testing.assert_array_equal(np.asarray(tn.nextafter(tn.asarray(a), tn.asarray(b))), theirs)


@pytest.mark.parametrize("dtype", FLOATS)
def test_nextafter_at_the_edges(dtype):
    info = np.finfo(dtype)
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        info.max,
        -info.max,
        info.tiny,
        info.smallest_subnormal,
        np.inf,
        -np.inf,
        np.nan,
        info.tiny * 2,
        0.5,
    ]
    a = np.array(edges, dtype=dtype)
    for direction in (np.inf, -np.inf, 0.0):
        b = np.full_like(a, direction)
        np.testing.assert_array_equal(np.asarray(tn.nextafter(tn.asarray(a), tn.asarray(b))), np.nextafter(a, b))


@given(arrays(shapes=hnp.array_shapes(min_dims=1, max_dims=3)), st.data())
def test_repeat(a, data):
    axis = data.draw(st.sampled_from(range(a.ndim)))
    counts = np.array(data.draw(st.lists(st.integers(0, 3), min_size=a.shape[axis], max_size=a.shape[axis])))
    same(tn.repeat(tn.asarray(a), tn.asarray(counts), axis=axis), np.repeat(a, counts, axis=axis))
    same(tn.repeat(tn.asarray(a), 2), np.repeat(a, 2))


@given(arrays(FLOATS, shapes=hnp.array_shapes(min_dims=2, max_dims=3)), st.data())
def test_masks_and_assignment(a, data):
    mask = data.draw(hnp.arrays(bool, a.shape))
    x = tn.array(a)
    same(x[tn.asarray(mask)], a[mask])
    a[mask] = 7
    x[tn.asarray(mask)] = 7
    same(x, a)


@given(arrays())
def test_shapes(a):
    x = tn.asarray(a)
    same(tn.permute_dims(x, tuple(reversed(range(a.ndim)))), a.transpose())
    same(tn.expand_dims(x, axis=0), a[None])
    same(tn.concat([x, x], axis=None), np.concatenate([a, a], axis=None))
    if a.ndim:
        same(tn.moveaxis(x, 0, -1), np.moveaxis(a, 0, -1))
        same(tn.flip(x, axis=0), np.flip(a, axis=0))
        same(tn.roll(x, 2, axis=0), np.roll(a, 2, axis=0))
        for mine, theirs in zip(tn.unstack(x), np.unstack(a)):
            same(mine, theirs)
    if a.ndim >= 2:
        same(tn.matrix_transpose(x), np.matrix_transpose(a))
        same(tn.tril(x, k=1), np.tril(a, k=1))


def test_creation():
    same(tn.arange(2, 9, 3), np.arange(2, 9, 3))
    same(tn.arange(3, dtype=tn.float64), np.arange(3, dtype=np.float64))
    same(tn.linspace(0, 1, 5, dtype=tn.float64), np.linspace(0, 1, 5))
    same(tn.linspace(0, 1, 5, endpoint=False, dtype=tn.float64), np.linspace(0, 1, 5, endpoint=False))
    same(tn.eye(3, 4, k=1, dtype=tn.int64), np.eye(3, 4, k=1, dtype=np.int64))
    same(tn.full((2,), 2**62 + 1), np.full((2,), 2**62 + 1))
    assert tn.full((), True).dtype == tn.bool and tn.full((), 1.0).dtype == tn.float32 and tn.empty((2, 0)).shape == (2, 0)
    for ours, theirs in zip(tn.meshgrid(tn.arange(2), tn.arange(3)), np.meshgrid(np.arange(2), np.arange(3))):
        same(ours, theirs)
    for indexing in ("xy", "ij"):
        for ours, theirs in zip(
            tn.meshgrid(*map(tn.arange, (2, 3, 4)), indexing=indexing), np.meshgrid(*map(np.arange, (2, 3, 4)), indexing=indexing)
        ):
            same(ours, theirs)


def test_products():
    a, b = np.arange(24.0).reshape(2, 3, 4), np.arange(24.0).reshape(4, 3, 2)
    same(tn.tensordot(tn.asarray(a), tn.asarray(b), axes=([1, 2], [1, 0])), np.tensordot(a, b, axes=([1, 2], [1, 0])))
    same(tn.vecdot(tn.asarray(a), tn.asarray(a), axis=1), np.vecdot(a, a, axis=1))
    assert tn.vecdot(tn.array([200], dtype=tn.uint8), tn.array([2], dtype=tn.uint8)).dtype == tn.uint8
    with pytest.raises(ValueError):
        tn.vecdot(tn.zeros((2,)), tn.zeros((3,)))


def test_dtype_functions():
    assert tn.result_type(tn.int8, tn.uint8) == tn.int16 and tn.result_type(tn.array([1.0]), 2) == tn.float32
    assert tn.can_cast(tn.int8, tn.int16) and not tn.can_cast(tn.int16, tn.int8)
    assert tn.isdtype(tn.int8, ("bool", "signed integer")) and not tn.isdtype(tn.int8, "real floating")
    assert tn.finfo(tn.float32).eps == np.finfo(np.float32).eps and tn.finfo(tn.float64).max == np.finfo(np.float64).max
    assert tn.iinfo(tn.uint64).max == 2**64 - 1 and tn.iinfo(tn.int8).min == -128


def test_clip():
    a = np.array([1.0, 5.0, np.nan], dtype=np.float32)
    x = tn.asarray(a)
    same(tn.clip(x, 2, 4), np.clip(a, np.float32(2), np.float32(4)))
    same(tn.clip(x, max=tn.array([0.5, 9.0, 1.0])), np.minimum(a, np.array([0.5, 9, 1], dtype=np.float32)))
    assert tn.clip(tn.array([1, 9], dtype=tn.int8), 2, 5).tolist() == [2, 5]


def test_constants():
    assert tn.pi == math.pi and math.isnan(tn.nan) and tn.newaxis is None and tn.inf == math.inf and tn.e == math.e


def test_array_api_compat_knows_our_arrays():
    compat = pytest.importorskip("array_api_compat")
    x = tn.array([1.0])
    assert compat.is_array_api_obj(x) and compat.array_namespace(x) is tn
    assert compat.device(x) == "host" and compat.size(x) == 1
