"""Evaluating, the expression language, and files."""

from __future__ import annotations

import os

from . import _core
from ._core import Array
from ._devices import _text, _waiting_line
from ._record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Optional, Union

    from ._devices import DeviceLike, Routing

    Path = Union[str, os.PathLike[str]]


class Progress(NamedTuple):
    """A stage of a run: queued, opening, compiling, uploading, computing, downloading."""

    stage: str
    device: str
    ahead_here: int
    ahead_elsewhere: int
    holder: str


class Evaluation(NamedTuple):
    """Where arrays were computed, and where the time went."""

    device: str
    timeline: list[tuple[str, float]]
    programs: int

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.timeline)


if TYPE_CHECKING:
    OnProgress = Optional[Callable[[Progress], object]]


def _progress_callback(on_progress: OnProgress) -> Optional[Callable[..., object]]:
    """What the C++ half calls with the parts of a Progress. In a notebook a line shows the place in the queue meanwhile."""
    if on_progress is None:
        line = _waiting_line()
        if line is None:
            return None
        on_progress = line.at_stage
    tell = on_progress
    return lambda *parts: tell(Progress(*parts))


def eval(  # noqa: A001 (the name of the operation in this library and its peers)
    *arrays: Array,
    device: DeviceLike = None,
    routing: Optional[Routing] = None,
    prefer: DeviceLike = None,
    timeout: Optional[float] = None,
    priority: int = 0,
    on_progress: OnProgress = None,
    _cancel: Any = None,
) -> Evaluation:
    """Evaluates arrays together as one program in one lease. A device given here goes before the arrays' own requests.

    Without a device, `routing` ("prefer", "fastest", "cheapest", "pinned") and `prefer` (a kind or an id) choose one for this
    call, instead of the settings of the same names.
    """
    tell = _progress_callback(on_progress)
    return Evaluation(*_core._eval(arrays, _text(device), timeout, priority, tell, _cancel, routing, _text(prefer)))


def run(
    source: str,
    named: Optional[Mapping[str, Any]] = None,
    /,
    *,
    device: DeviceLike = None,
    routing: Optional[Routing] = None,
    prefer: DeviceLike = None,
    timeout: Optional[float] = None,
    priority: int = 0,
    on_progress: OnProgress = None,
    _cancel: Any = None,
    **arrays: Any,
) -> Any:
    """The value of an expression over named arrays: run("softmax(x @ w)", x=x, w=w), or run(.., {"x": x}) for any names.

    Several results come as a tuple. The other options are those of eval().
    """
    arrays = arrays if named is None else {**named, **arrays}
    tell = _progress_callback(on_progress)
    return _core._run(source, arrays, _text(device), timeout, priority, tell, _cancel, routing, _text(prefer))


def load(path: Path) -> Any:
    """The array of a .npy or .csv file, or the arrays of a .safetensors or .npz file as a dict."""
    arrays, _ = _core._load_arrays(os.fspath(path))
    return arrays[""] if list(arrays) == [""] else arrays


def load_metadata(path: Path) -> dict[str, str]:
    """The metadata of a .safetensors file."""
    return _core._load_arrays(os.fspath(path))[1]


def save(path: Path, array: Any = None, /, *, metadata: Optional[dict[str, str]] = None, **arrays: Any) -> None:
    """save("x.npy", x), or save("all.safetensors", w=w, b=b), or with a dict of arrays; also .npz and .csv.

    The file is replaced at once or not at all.
    """
    name = os.fspath(path)
    has_names = name.endswith((".safetensors", ".npz"))
    if not has_names and (array is None or arrays):
        raise TypeError("a file of this kind has exactly one array: save('x.npy', x)")
    if metadata and not name.endswith(".safetensors"):
        raise ValueError("only a .safetensors file has metadata")
    if not has_names:
        arrays = {"": array}
    elif array is not None:
        arrays = {**array, **arrays}
    _core._save_arrays(name, arrays, metadata or {})
