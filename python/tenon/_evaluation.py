"""Evaluating, the expression language, and files."""

from __future__ import annotations

import os

from . import _core
from ._core import Array
from ._devices import _text
from ._record import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Optional, Union

    from ._devices import DeviceLike

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
    return None if on_progress is None else lambda *parts: on_progress(Progress(*parts))


def eval(  # noqa: A001 (the name of the operation in this library and its peers)
    *arrays: Array,
    device: DeviceLike = None,
    timeout: Optional[float] = None,
    priority: int = 0,
    on_progress: OnProgress = None,
    _cancel: Any = None,
) -> Evaluation:
    """Evaluates arrays together as one program in one lease. A device given here goes before the arrays' own requests."""
    return Evaluation(*_core._eval(arrays, _text(device), timeout, priority, _progress_callback(on_progress), _cancel))


def run(
    source: str,
    /,
    *,
    device: DeviceLike = None,
    timeout: Optional[float] = None,
    priority: int = 0,
    on_progress: OnProgress = None,
    _cancel: Any = None,
    **arrays: Any,
) -> Any:
    """The value of an expression over named arrays: run("softmax(x @ w)", x=x, w=w). Several results come as a tuple."""
    return _core._run(source, arrays, _text(device), timeout, priority, _progress_callback(on_progress), _cancel)


def load(path: Path) -> Any:
    """The array of a .npy file, or the arrays of a .safetensors file as a dict."""
    name = os.fspath(path)
    return _core._load_npy(name) if name.endswith(".npy") else _core._load_safetensors(name)[0]


def load_metadata(path: Path) -> dict[str, str]:
    """The metadata of a .safetensors file."""
    metadata: dict[str, str] = _core._load_safetensors(os.fspath(path))[1]
    return metadata


def save(path: Path, array: Any = None, /, *, metadata: Optional[dict[str, str]] = None, **arrays: Any) -> None:
    """save("x.npy", x), or save("all.safetensors", w=w, b=b). The file is replaced at once or not at all."""
    name = os.fspath(path)
    if name.endswith(".npy"):
        if array is None or arrays:
            raise TypeError("a .npy file has exactly one array: save('x.npy', x)")
        _core._save_npy(name, _core._asarray(array, None, None))
        return
    if not name.endswith(".safetensors"):
        raise ValueError(f"{name}: the name of the file must end in .npy or .safetensors")
    if array is not None:
        arrays = {**array, **arrays}
    _core._save_safetensors(name, arrays, metadata or {})
