"""@tenon.jit: a function recorded once for the dtypes and shapes of its arguments, and run as one program."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Optional, TypeVar, Union, overload

from . import _core
from ._core import Array, DType
from ._devices import Decision, _text
from ._tree import LEAF_TYPES, Structure, flatten, leaf_paths, unflatten

if TYPE_CHECKING:
    from ._devices import DeviceLike, Routing

R = TypeVar("R")


class spec(NamedTuple):
    """The type of an argument, instead of an array: spec((8, 16), tenon.float32)."""

    shape: tuple[int, ...]
    dtype: DType


LEAF_TYPES.add(spec)


class Program:
    """A recorded program. It needs no device; `run` computes it on arrays, in the order of `inputs`."""

    def __init__(self, program: Any):
        self._program = program

    @property
    def text(self) -> str:
        """One line for each node: shapes, dtypes, attributes."""
        return str(self._program.text)

    @property
    def inputs(self) -> list[spec]:
        """The types of the inputs; captured arrays are the last ones."""
        return [spec(shape, dtype) for dtype, shape in self._program.inputs]

    @property
    def names(self) -> list[str]:
        """The names of the inputs: "x", and "weights_w" for weights["w"]."""
        names: list[str] = self._program.names
        return names

    @property
    def outputs(self) -> list[spec]:
        return [spec(shape, dtype) for dtype, shape in self._program.outputs]

    @property
    def captured(self) -> list[Array]:
        """The arrays that the function used without taking them as arguments; they are the last inputs."""
        captured: list[Array] = self._program.captured
        return captured

    def stablehlo(self) -> str:
        """The program as StableHLO."""
        return str(self._program.stablehlo())

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        """Writes a file with the program and its captured arrays, for the same version of Tenon.

        tenon.load_program(), Program::load() of the C++ library and `tenon run @FILE name=VALUE ...` read it.
        """
        self._program.save(os.fspath(path))

    def run(self, *arrays: Any) -> list[Array]:
        """The outputs for these values of the inputs, without those that are captured."""
        results: list[Array] = self._program.run(arrays)
        return results

    def explain(
        self, device: DeviceLike = "auto", *, routing: Optional[Routing] = None, prefer: DeviceLike = None
    ) -> Decision:
        """The device that would be chosen now, why, and the predicted time on each."""
        import json

        return Decision(json.loads(self._program.explain(_text(device) or "auto", routing, _text(prefer))))

    def __repr__(self) -> str:
        return f"<tenon.Program of {self._program.nodes} nodes, {len(self.inputs)} inputs, {len(self.outputs)} outputs>"


def load_program(path: Union[str, os.PathLike[str]]) -> Program:
    """A program that Program.save() wrote."""
    return Program(_core._Program.load(os.fspath(path)))


class _Recorded(NamedTuple):
    program: Any
    outputs: Structure
    constants: list[Any]  # what the function returned that is no array; None in the place of an array


if TYPE_CHECKING:

    class _Calls(_core._QuickCalls, Generic[R]):
        def __call__(self, *args: Any, **kwargs: Any) -> R: ...

else:
    # Calls begin in C++; a class from there can have no second base, such as Generic.
    _Calls = {R: _core._QuickCalls}


class Jit(_Calls[R]):
    """A function that records itself at the first call with arguments of new types."""

    def __init__(self, function: Callable[..., R], static: Iterable[str]):
        super().__init__()
        functools.update_wrapper(self, function)
        self._function = function
        self._static = frozenset(static)
        self._recorded: dict[Any, _Recorded] = {}
        self._signature: Optional[inspect.Signature] = inspect.signature(function) if self._static else None
        unknown = self._static - set(self._signature.parameters) if self._signature else set()
        if unknown:
            raise TypeError(f"jit: {function.__name__} has no argument {', '.join(sorted(unknown))}")

    def _call_any(self, *args: Any, **kwargs: Any) -> R:
        """A call that is not one of arrays and numbers by position for which there is a program."""
        leaves, recorded = self._find(args, kwargs)
        self._keep_for_quick_calls(args, kwargs, recorded)
        results = iter(recorded.program.run(leaves))
        outputs = [next(results) if constant is None else constant[0] for constant in recorded.constants]
        tree: R = unflatten(recorded.outputs, outputs)
        return tree

    def _keep_for_quick_calls(self, args: tuple[Any, ...], kwargs: dict[str, Any], recorded: _Recorded) -> None:
        if kwargs or self._static or not recorded.constants or any(constant is not None for constant in recorded.constants):
            return
        kind = recorded.outputs[0]
        if kind == "leaf" or (kind is tuple and all(child == ("leaf",) for child in recorded.outputs[2])):
            self._add(args, recorded.program, kind == "leaf")

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def lower(self, *args: Any, **kwargs: Any) -> Program:
        """The program for arguments of these types; `spec` can stand for an array. Needs no device."""
        return Program(self._find(args, kwargs)[1].program)

    def explain(self, *args: Any, **kwargs: Any) -> Decision:
        """Which device the call would run on, and why."""
        return self.lower(*args, **kwargs).explain()

    @property
    def programs(self) -> int:
        """How many programs were recorded, one for each combination of types and static arguments."""
        return len(self._recorded)

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], _Recorded]:
        static: tuple[Any, ...] = ()
        if self._signature is not None:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            static = tuple((name, bound.arguments.pop(name)) for name in list(bound.arguments) if name in self._static)
            args, kwargs = bound.args, bound.kwargs
            if static:  # arguments after a removed one can only be given by name
                args, kwargs = (), dict(bound.arguments)
        leaves, structure = flatten((args, kwargs))
        arrays = [_argument(leaf) for leaf in leaves]
        key = (structure, static, tuple([_type_key(leaf) for leaf in arrays]))
        recorded = self._recorded.get(key)
        if recorded is None:
            recorded = self._recorded[key] = self._record(structure, static, arrays)
        return [leaf for leaf in arrays if not isinstance(leaf, _Constant)], recorded

    def _names(self, structure: Structure, arrays: list[Any]) -> list[str]:
        """A name for each input: that of its argument, and its place within it."""
        args, kwargs = structure[2]
        parameters: list[str] = []
        several = "x"
        try:
            signature = self._signature or inspect.signature(self._function)
            for p in signature.parameters.values():
                if p.kind is p.VAR_POSITIONAL:
                    several = p.name
                elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                    parameters.append(p.name)
        except (TypeError, ValueError):  # a function that does not tell
            pass
        paths: list[str] = []
        for i, child in enumerate(args[2]):
            paths += leaf_paths(child, parameters[i] if i < len(parameters) else f"{several}_{i - len(parameters)}")
        for name, child in zip(kwargs[1], kwargs[2]):
            paths += leaf_paths(child, name)
        return _identifiers([path for path, leaf in zip(paths, arrays) if not isinstance(leaf, _Constant)])

    def _record(self, structure: Structure, static: tuple[Any, ...], arrays: list[Any]) -> _Recorded:
        stand_ins = [_stand_in(leaf) for leaf in arrays]
        # The function may assign to elements of its arguments, which makes them other arrays.
        inputs = [x._same() for leaf, x in zip(arrays, stand_ins) if not isinstance(leaf, _Constant)]
        args, kwargs = unflatten(structure, stand_ins)
        if self._signature is not None and static:
            call = self._signature.bind_partial()
            values = {**kwargs, **dict(static)}
            for name in self._signature.parameters:
                if name in values:
                    call.arguments[name] = values[name]
            result = self._function(*call.args, **call.kwargs)
        else:
            result = self._function(*args, **kwargs)
        outputs, output_structure = flatten(result)
        paths = self._names(structure, arrays)
        program = _core._Program(inputs, [output for output in outputs if isinstance(output, Array)], paths)
        constants = [None if isinstance(output, Array) else (output,) for output in outputs]
        return _Recorded(program, output_structure, constants)


def _identifiers(paths: list[str]) -> list[str]:
    """The same paths as names that are different and that the command accepts."""
    names: list[str] = []
    for path in paths:
        name = stem = re.sub(r"\W", "_", path, flags=re.ASCII).lstrip("_0123456789")[:56] or "x"
        number = 1
        while name in names:
            number += 1
            name = f"{stem}_{number}"
        names.append(name)
    return names


class _Constant(NamedTuple):
    """An argument that is neither an array nor a number: part of the key, and given to the function as it is."""

    value: Any


def _argument(leaf: Any) -> Any:
    kind = type(leaf)
    if kind is Array or kind is float or kind is int or kind is spec:
        return leaf
    if kind is bool or kind is str or leaf is None or isinstance(leaf, (bytes, DType)) or callable(leaf):
        return _Constant(leaf)
    if hasattr(leaf, "shape") or hasattr(leaf, "__dlpack__"):
        return _core._asarray(leaf, None, None)
    return _Constant(leaf)


def _type_key(leaf: Any) -> Any:
    kind = type(leaf)
    if kind is Array or kind is spec:
        return (leaf.dtype, tuple(leaf.shape))
    return leaf if kind is _Constant else kind


def _stand_in(leaf: Any) -> Any:
    kind = type(leaf)
    if kind is Array or kind is spec:
        return _core._program_input(leaf.dtype, leaf.shape)
    return leaf.value if kind is _Constant else _core._program_number(kind is float)


@overload
def jit(function: Callable[..., R], /) -> Jit[R]: ...
@overload
def jit(*, static: Union[str, Iterable[str]] = ()) -> Callable[[Callable[..., R]], Jit[R]]: ...
def jit(function: Optional[Callable[..., R]] = None, /, *, static: Union[str, Iterable[str]] = ()) -> Any:
    """Records a function once for each combination of dtypes, shapes and static arguments, and runs it as one program.

    Arrays and Python numbers are inputs of the program: another number needs no new program. Arguments and results may be
    nested in dicts, lists, tuples and dataclasses. The function must not depend on values: `if x > 0` raises an error.
    """
    names = (static,) if isinstance(static, str) else tuple(static)
    if function is not None:
        return Jit(function, names)
    return lambda given: Jit(given, names)
