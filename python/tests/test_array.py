"""Arrays: creation, laziness, text, operators, indexing, protocols."""

from __future__ import annotations

import array as python_array
import copy
import pickle

import numpy as np
import pytest

import tenon as tn


def test_an_op_computes_nothing_until_a_value_is_needed():
    x = tn.array([1.0, 2.0]) * 2 + 1
    assert not x.is_evaluated
    assert x.tolist() == [3.0, 5.0]
    assert x.is_evaluated


def test_numbers_take_the_dtype_of_the_array():
    x = tn.array([1, 2], dtype=tn.int8)
    assert (x + 1).dtype == tn.int8
    assert (2 * tn.array([1.0], dtype=tn.float64)).dtype == tn.float64
    assert (1 - x).tolist() == [0, -1]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([1, 2], "int64"), ([True, False], "bool"), ([1, 2.5], "float32"), ([[2**63, 1]], "uint64"), ([], "float32"), (7, "int64")],
)
def test_lists_have_the_dtype_of_their_numbers(values, dtype):
    x = tn.array(values)
    assert x.dtype == dtype
    assert x.tolist() == values


def test_uneven_rows_are_refused():
    with pytest.raises(ValueError, match="differ in length"):
        tn.array([[1, 2], [3]])


def test_lists_of_arrays_are_stacked():
    rows = [tn.array([1.0, 2.0]), np.array([3.0, 4.0], dtype=np.float32)]
    assert tn.array(rows).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_wrong_shapes_raise_at_the_line_that_makes_them():
    a = tn.zeros((2, 3))
    with pytest.raises(ValueError, match=r"float32 \[2, 3\]") as error:
        a @ a
    assert isinstance(error.value, tn.Error)
    assert error.value.code == "invalid_argument"


def test_repr_is_like_numpys():
    assert repr(tn.array([[1, 2], [3, 4]])) == repr(np.array([[1, 2], [3, 4]]))
    assert repr(tn.array([True, False])) == repr(np.array([True, False]))
    assert repr(tn.array([1.5, 2.5])) == "array([1.5, 2.5], dtype=float32)"
    assert str(tn.array([[1, 2], [3, 4]])) == str(np.array([[1, 2], [3, 4]]))
    assert repr(tn.zeros((0,))) == "array([], dtype=float32)"


def test_operators_match_numpy():
    a, b = np.array([7, -7, 5], dtype=np.int32), np.array([2, 2, -3], dtype=np.int32)
    x, y = tn.asarray(a), tn.asarray(b)
    for op in ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<", "<=", ">", ">=", "==", "!="):
        wanted, got = eval(f"a {op} b"), np.asarray(eval(f"x {op} y"))
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    assert (x**2).tolist() == [49, 49, 25]
    assert (2 ** tn.array([1, 2])).tolist() == [2, 4]
    assert (~x).tolist() == [-8, 6, -6]
    assert abs(-x).tolist() == [7, 7, 5]
    assert (x << 1).tolist() == [14, -14, 10]


def test_numpy_arrays_join_in_from_both_sides():
    x, a = tn.array([1.0, 2.0]), np.array([10.0, 20.0], dtype=np.float32)
    assert isinstance(a + x, tn.Array)
    assert (a + x).tolist() == (x + a).tolist() == [11.0, 22.0]


def test_an_operand_may_change_after_it_was_used():
    a = np.array([1.0, 2.0], dtype=np.float32)
    y = tn.array([1.0, 1.0]) + a
    a[:] = 0
    assert y.tolist() == [2.0, 3.0]


def test_unknown_operands_are_left_to_python():
    x = tn.array([1.0])
    with pytest.raises(TypeError):
        x + "a"
    assert (x == None) is False  # noqa: E711


def test_arrays_are_not_hashable():
    with pytest.raises(TypeError):
        hash(tn.array([1]))


def test_in_place_operators_change_the_array_for_all_who_have_it():
    x = tn.array([1, 2])
    same = x
    x += 1
    assert same.tolist() == [2, 3]
    with pytest.raises(TypeError):
        x += 0.5
    with pytest.raises(ValueError):
        x += tn.zeros((2, 2), dtype=tn.int64)


def test_truth_needs_one_element():
    assert tn.array(3) and not tn.array([0.0])
    with pytest.raises(ValueError, match="one element"):
        bool(tn.array([1, 2]))


def test_python_numbers():
    assert float(tn.array(1.5)) == 1.5
    assert int(tn.array([7.9])) == 7
    assert [1, 2, 3][tn.array(1)] == 2
    assert tn.array(2**63 + 1).item() == 2**63 + 1
    assert complex(tn.array(2.0)) == 2 + 0j
    with pytest.raises(TypeError):
        range(tn.array(1.0))


def test_methods_are_those_of_the_catalogue():
    x = tn.array([[1.0, 4.0], [9.0, 16.0]])
    assert x.sqrt().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert x.sum(axis=0).tolist() == x.sum(0).tolist() == [10.0, 20.0]
    assert x.reshape(4).shape == x.reshape((4,)).shape == x.reshape(2, -1).reshape(-1).shape == (4,)
    assert x.T.tolist() == x.transpose(1, 0).tolist() == [[1.0, 9.0], [4.0, 16.0]]
    assert x.astype(tn.int32).dtype == tn.int32
    assert x.std().item() == pytest.approx(np.std([1, 4, 9, 16]))


def test_functions_take_arguments_by_position_and_name():
    x = tn.array([[1.0, 2.0]])
    assert tn.softmax(x, 1).tolist() == tn.softmax(x, axis=1).tolist() == tn.softmax(x=x, axis=-1).tolist()
    assert tn.layer_norm(x, weight=[2.0, 2.0], eps=1e-6).shape == (1, 2)
    assert tn.concat([x, x]).shape == (2, 2)
    assert tn.einsum("ij,kj->ik", x, x).tolist() == [[5.0]]
    assert [part.tolist() for part in tn.split(tn.arange(4), 2)] == [[0, 1], [2, 3]]
    with pytest.raises(TypeError, match="no argument 'axes'"):
        tn.softmax(x, axes=1)
    with pytest.raises(TypeError, match="needs an argument"):
        tn.softmax()
    with pytest.raises(TypeError, match="at most 2"):
        tn.softmax(x, 1, 2)


def test_functions_have_signatures_and_documentation():
    import inspect

    assert list(inspect.signature(tn.layer_norm).parameters) == ["x", "weight", "bias", "axis", "eps"]
    assert "Square root" in tn.sqrt.__doc__
    assert tn.sqrt.__name__ == "sqrt"


def test_every_op_of_the_catalogue_is_a_function():
    assert len(tn.ops) > 300
    assert all(callable(getattr(tn, name)) for name in tn.ops)


def test_indexing_matches_numpy():
    a = np.arange(60).reshape(3, 4, 5)
    x = tn.asarray(a)
    i, j, mask = np.array([0, 2]), np.array([[1], [3]]), a % 7 == 0
    keys = [
        (1,), (-1, 2), (slice(None, None, -1),), (..., 0), (None, 1), (slice(1, 3), 2), (i,), (slice(None), i), (i, j), (i, slice(None), i),
        (0, slice(None), i), (slice(None), i, j), (i, 1), (1, i), (mask,), (a[:, :, 0] > 20,), (slice(None), a[0] > 7), (True,),
        ([],), (i, ..., None, j),
    ]  # fmt: skip
    for key in keys:
        ours = tuple(tn.asarray(k) if isinstance(k, np.ndarray) else k for k in key)
        np.testing.assert_array_equal(np.asarray(x[ours]), a[key], err_msg=str(key))


def test_indices_outside_are_refused():
    x = tn.arange(3)
    with pytest.raises(IndexError):
        x[3]
    with pytest.raises(IndexError):
        x[0, 0]
    with pytest.raises(IndexError):
        x[tn.array([5])].tolist()
    with pytest.raises(IndexError):
        tn.zeros((2, 2))[tn.array([0]), tn.array([2])].tolist()
    with pytest.raises(IndexError):
        x[tn.array([True, False])]


def test_assignment_matches_numpy():
    keys_and_values = [
        ((1,), 7), ((slice(None, None, 2),), 9), ((..., 0), [1, 2, 3]), ((slice(0, 2), slice(1, 3)), [[1, 2], [3, 4]]),
        ((np.array([2, 0]),), [[1] * 4, [2] * 4]), ((np.array([0, 1]), np.array([1, 2])), 5), ((..., None), np.ones((3, 4, 1), int)),
        ((slice(None),), 3), ((np.arange(12).reshape(3, 4) > 5,), 0), ((np.arange(12).reshape(3, 4) > 8,), [7, 8, 9]),
        ((np.array([True, False, True]),), 4),
    ]  # fmt: skip
    for key, value in keys_and_values:
        a = np.arange(12).reshape(3, 4)
        x = tn.array(a)
        a[key] = value
        x[tuple(tn.asarray(k) if isinstance(k, np.ndarray) else k for k in key)] = value
        np.testing.assert_array_equal(np.asarray(x), a, err_msg=str(key))
        assert x.dtype == tn.int64


def test_iteration_and_length():
    x = tn.array([[1, 2], [3, 4]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert 3 in x and 7 not in x
    with pytest.raises(TypeError):
        len(tn.array(1))


@pytest.mark.parametrize("dtype", [d.name for d in tn._core.dtypes if d.itemsize])
def test_every_dtype_goes_to_numpy_and_back(dtype):
    x = tn.array([[1, 0, 3]], dtype=dtype)
    a = np.asarray(x)
    assert a.dtype == ("float32" if dtype == "bfloat16" else dtype)
    assert tn.asarray(a, dtype=dtype).tolist() == x.tolist()


def test_numpy_shares_the_memory_both_ways():
    a = np.arange(4.0)
    x = tn.asarray(a)
    assert np.asarray(x).__array_interface__["data"][0] == a.__array_interface__["data"][0]
    assert not np.asarray(x).flags.writeable
    assert np.from_dlpack(x).__array_interface__["data"][0] == a.__array_interface__["data"][0]
    y = tn.from_dlpack(a)
    a[0] = 7
    assert y.tolist()[0] == 7.0


def test_array_copies():
    a = np.arange(4.0)
    x = tn.array(a)
    a[0] = 7
    assert x.tolist()[0] == 0.0
    with pytest.raises(ValueError):
        tn.asarray(a[::2], copy=False)


def test_strided_and_foreign_buffers():
    a = np.arange(12).reshape(3, 4)
    assert tn.asarray(a.T).tolist() == a.T.tolist()
    assert tn.asarray(a[::-1, ::2]).tolist() == a[::-1, ::2].tolist()
    assert tn.asarray(python_array.array("f", [1.5, 2.5])).tolist() == [1.5, 2.5]
    assert memoryview(tn.array([[1, 2]], dtype=tn.int16)).tolist() == [[1, 2]]
    assert tn.asarray(np.float32(2.5)).dtype == tn.float32 and tn.asarray(np.float64(2.5)).dtype == tn.float64
    with pytest.raises(TypeError):
        tn.asarray(np.array(["a"]))


def test_memory_outlives_its_owner():
    x = tn.asarray(np.arange(1000.0))
    view = memoryview(x)
    del x
    assert view[999] == 999.0


def test_pickle_and_copy():
    x = tn.array([[1.0, 2.0]], dtype=tn.bfloat16)
    for other in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x), x.copy()):
        assert other.dtype == x.dtype and other.tolist() == x.tolist()
    other = x.copy()
    other[0, 0] = 9
    assert x.tolist() == [[1.0, 2.0]]
    assert pickle.loads(pickle.dumps(tn.float32)) is tn.float32


def test_dtypes():
    assert tn.float32 == "float32" == tn.float32
    assert tn.float32 == np.dtype("float32") and tn.int8 == np.int8
    assert tn.zeros(1, dtype=float).dtype == tn.float32 and tn.zeros(1, dtype="bf16").dtype == tn.bfloat16
    assert repr(tn.bool) == "tenon.bool" and {tn.int8: 1}[tn.int8] == 1
    with pytest.raises(TypeError, match="not a dtype"):
        tn.zeros(1, dtype="complex64")


def test_files(tmp_path):
    x, w = tn.array([[1, 2]], dtype=tn.int16), tn.array([0.5], dtype=tn.bfloat16)
    tn.save(tmp_path / "x.npy", x)
    assert np.load(tmp_path / "x.npy").tolist() == tn.load(tmp_path / "x.npy").tolist() == [[1, 2]]
    tn.save(tmp_path / "all.safetensors", x=x, w=w, metadata={"origin": "a test"})
    loaded = tn.load(tmp_path / "all.safetensors")
    assert loaded["w"].dtype == tn.bfloat16 and loaded["x"].tolist() == [[1, 2]]
    assert tn.load_metadata(tmp_path / "all.safetensors") == {"origin": "a test"}
    with pytest.raises(tn.NotFound):
        tn.load(tmp_path / "none.npy")
    with pytest.raises(ValueError):
        tn.save(tmp_path / "x.txt", x)


def test_run_evaluates_an_expression():
    assert (
        tn.run("softmax(x @ w)", x=[[1.0, 2.0]], w=np.eye(2, dtype=np.float32)).tolist()
        == tn.softmax(tn.array([[1.0, 2.0]])).tolist()
    )
    values, indices = tn.run("top_k(x, 2)", x=[1.0, 3.0, 2.0])
    assert values.tolist() == [3.0, 2.0] and indices.tolist() == [1, 2]
    with pytest.raises(tn.NotFound) as error:
        tn.run("sofmax([1.0])")
    assert error.value.place[:2] == (1, 1) and "softmax" in error.value.hint and "^" in str(error.value)


def test_the_errors_are_those_of_python_too():
    assert issubclass(tn.InvalidArgument, ValueError) and issubclass(tn.DeadlineExceeded, TimeoutError)
    assert issubclass(tn.ResourceExhausted, MemoryError) and issubclass(tn.OutOfRange, IndexError)
    with pytest.raises(MemoryError):
        tn.zeros((2**39,)).tolist()
