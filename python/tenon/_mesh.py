"""One program on several devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Optional, ParamSpec, TypeVar, Union

from . import _core
from ._core import Array
from ._evaluation import _progress_callback
from ._jit import Jit, Program
from ._tree import unflatten

if TYPE_CHECKING:
    from ._devices import DeviceLike
    from ._evaluation import OnProgress

# "data,-", or ("data", None); an axis may be split over several: ("data", ("model", "pipe")).
Sharding = Union[str, Sequence[Union[str, Sequence[str], None]]]
Work = Union[str, Program, Callable[..., Any]]
P = ParamSpec("P")
Report = TypeVar("Report")


class MeshPlan(NamedTuple):
    """What a run on a mesh would do."""

    text: str
    collectives: list[dict[str, Any]]
    """Each exchange: kind, value, dtype, shape, from, to, axes, the bytes that all devices send, and what it goes through."""
    outputs: list[str]
    """The sharding of each output."""
    notes: list[str]
    """A requested split that is not possible, and why."""
    stages: int
    bytes: int

    def __str__(self) -> str:
        return self.text


class MeshReport(NamedTuple):
    """The result of a run on a mesh, and where the time went on each device."""

    result: Any
    devices: list[str]
    timelines: list[list[tuple[str, float]]]
    collectives: list[dict[str, Any]]


class _How(NamedTuple):
    """The options of a run."""

    shardings: Optional[Mapping[str, Sharding]]
    speeds: Union[str, Sequence[float], None]
    timeout: Optional[float]
    priority: int
    on_progress: OnProgress
    cancel: Any


def _only_result(run_reported: Callable[P, Any]) -> Callable[P, Any]:
    """run() of a run_reported(): with the same arguments, and only the result."""

    @functools.wraps(run_reported)
    def run(*args: P.args, **kwargs: P.kwargs) -> Any:
        return run_reported(*args, **kwargs).result

    run.__name__, run.__qualname__ = "run", run_reported.__qualname__.replace("run_reported", "run")
    run.__doc__ = """The value of an expression over named arrays, of a function, or of a Program, computed by all devices.

        shardings: by the name of the input; for a function, by that of the argument, for all arrays in it. speeds: the share of
        each device, or "measured" for shares by what was measured; equal without it. Over MPI they are in the order of ranks.
        """
    return run


class _Runs(Generic[Report]):
    """What meshes of one process and of several have in common."""

    def _report(self, work: _Work, how: _How) -> Report:
        raise NotImplementedError

    def run_reported(
        self,
        work: Work,
        /,
        *args: Any,
        shardings: Optional[Mapping[str, Sharding]] = None,
        speeds: Union[str, Sequence[float], None] = None,
        timeout: Optional[float] = None,
        priority: int = 0,
        on_progress: OnProgress = None,
        _cancel: Any = None,
        **kwargs: Any,
    ) -> Report:
        """run() with the devices, their timelines and the exchanges."""
        how = _How(shardings, speeds, timeout, priority, on_progress, _cancel)
        return self._report(_recorded(work, args, kwargs), how)

    run = _only_result(run_reported)


class Mesh(_Runs[MeshReport]):
    """Devices in a grid with named axes, on which one program runs.

    mesh = tenon.Mesh({"data": 2}, ["cuda:0", "cuda:1"])
    y = mesh.run("softmax(x @ w)", x=x, w=w, shardings={"x": "data,-"})
    z = mesh.run(step, weights, batch, shardings={"batch": ("data", None)})

    A sharding says for each axis of an input over which axis of the mesh it is split; inputs without one are replicated. The
    result is that of one device, as whole arrays.
    """

    def __init__(self, axes: Mapping[str, int], devices: Optional[Sequence[DeviceLike]] = None):
        """`devices`: one for each place, the last axis running fastest. Without it the first usable ones, accelerators first."""
        self._mesh = _core._Mesh(dict(axes), None if devices is None else [str(device) for device in devices])
        self.axes = dict(axes)

    @property
    def devices(self) -> list[str]:
        devices: list[str] = self._mesh.devices
        return devices

    def _report(self, work: _Work, how: _How) -> MeshReport:
        split = _by_input(work.program, how.shardings)
        shares = self._speeds(work.program, split, how.speeds)
        outputs, devices, timelines, collectives = self._mesh.run(
            work.program, work.inputs, split, shares, how.timeout, how.priority, _progress_callback(how.on_progress), how.cancel
        )
        return MeshReport(work.rebuild(outputs), devices, timelines, collectives)

    async def run_async(self, work: Work, /, *args: Any, **options: Any) -> Any:
        """run() without blocking the event loop."""
        from ._async import _in_thread

        cancel = _core._Cancel()
        return await _in_thread(lambda: self.run(work, *args, _cancel=cancel, **options), cancel.cancel)

    def explain(
        self,
        work: Work,
        /,
        *args: Any,
        shardings: Optional[Mapping[str, Sharding]] = None,
        speeds: Union[str, Sequence[float], None] = None,
        **kwargs: Any,
    ) -> MeshPlan:
        """The sharding of every value and every exchange with its bytes. Opens nothing; `tenon.spec` can stand for an array."""
        recorded = _recorded(work, args, kwargs)
        split = _by_input(recorded.program, shardings)
        return MeshPlan(*self._mesh.explain(recorded.program, split, self._speeds(recorded.program, split, speeds)))

    def _speeds(self, program: Any, split: dict[str, str], speeds: Union[str, Sequence[float], None]) -> list[float]:
        if speeds == "measured":
            measured: list[float] = self._mesh.measured_speeds(program, split)
            return measured
        if isinstance(speeds, str):
            raise ValueError(f"speeds must be a number for each device or 'measured', not {speeds!r}")
        return [] if speeds is None else list(speeds)

    def __repr__(self) -> str:
        return f"<tenon.Mesh {self._mesh.text} of {', '.join(self.devices)}>"


class MpiReport(NamedTuple):
    """The result of a run over MPI, as this process has it."""

    result: Any
    device: str
    timeline: list[tuple[str, float]]
    collectives: list[dict[str, Any]]
    rank: int
    places: list[str]
    """Host and device of each process."""


class MpiMesh(_Runs[MpiReport]):
    """The processes of an MPI job in a grid with named axes, one device each, on which one program runs.

    mesh = tenon.MpiMesh({"data": 4})              # mpirun -n 4 python this_file.py
    y = mesh.run("softmax(x @ w)", x=x, w=w, shardings={"x": "data,-"})
    tenon.finish_mpi()

    Every process makes the same calls with the same arrays, and gets the whole result. `deadline`: seconds for each exchange; then
    DeadlineExceeded names the processes that did not answer. After an error end the process with os._exit: MPI's own clean-up
    waits for processes that may be gone.
    """

    def __init__(self, axes: Mapping[str, int], device: DeviceLike = "auto", deadline: float = 30):
        """`device`: of this process; "auto" deals out the accelerators of a host to its processes."""
        self.axes = dict(axes)
        self._device = str(device)
        self._deadline = deadline

    def _report(self, work: _Work, how: _How) -> MpiReport:
        if isinstance(how.speeds, str) and how.speeds != "measured":
            raise ValueError(f"speeds must be a number for each device or 'measured', not {how.speeds!r}")
        is_measured = how.speeds == "measured"
        outputs, devices, timelines, collectives, rank, places = _core._run_over_mpi(
            self.axes,
            work.program,
            work.inputs,
            _by_input(work.program, how.shardings),
            [] if is_measured or how.speeds is None else list(how.speeds),
            is_measured,
            self._device,
            self._deadline,
            how.timeout,
            how.priority,
            _progress_callback(how.on_progress),
            how.cancel,
        )
        return MpiReport(work.rebuild(outputs), devices[0], timelines[0], collectives, rank, places)

    def __repr__(self) -> str:
        return f"<tenon.MpiMesh {','.join(f'{name}={size}' for name, size in self.axes.items())}>"


def started_by_mpi() -> bool:
    """Whether mpirun, or srun with an MPI, started this process."""
    result: bool = _core._started_by_mpi()
    return result


def finish_mpi(deadline: float = 30) -> None:
    """Ends MPI, when all runs are done; without it the launcher takes the end of the process for an error. If another process does
    not come to it within the deadline, this process ends with an error message and exit status 1. Not after an error."""
    _core._finish_mpi(deadline)


class _Work(NamedTuple):
    program: Any
    inputs: list[Any]
    rebuild: Callable[[list[Array]], Any]


def _recorded(work: Work, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Work:
    if isinstance(work, str):
        arrays = {name: _core._asarray(value, None, None) for name, value in kwargs.items()}
        if args:
            raise TypeError("an expression takes its arrays by name")
        program = _core._expression_program(work, arrays)
        return _Work(program, list(arrays.values()), lambda outputs: outputs[0] if len(outputs) == 1 else tuple(outputs))
    if isinstance(work, Program):
        if kwargs:
            raise TypeError("a Program takes its arrays in the order of its inputs")
        return _Work(work._program, list(args), lambda outputs: outputs)
    function: Jit[Any] = work if isinstance(work, Jit) else Jit(work, ())
    leaves, recorded = function._find(args, kwargs)

    def rebuild(outputs: list[Array]) -> Any:
        results = iter(outputs)
        return unflatten(
            recorded.outputs, [next(results) if constant is None else constant[0] for constant in recorded.constants]
        )

    return _Work(recorded.program, leaves, rebuild)


def _by_input(program: Any, shardings: Optional[Mapping[str, Sharding]]) -> dict[str, str]:
    """Shardings by the name of the input; one for "weights" is for "weights_w" and "weights_b", too."""
    result: dict[str, str] = {}
    names: list[str] = program.names
    for name, sharding in (shardings or {}).items():
        text = _sharding_text(sharding)
        within = [known for known in names if known.startswith(name + "_")]
        for known in [name] if name in names or not within else within:
            result[known] = text
    return result


def _sharding_text(sharding: Sharding) -> str:
    if isinstance(sharding, str):
        return sharding
    return ",".join("-" if not axis else axis if isinstance(axis, str) else "+".join(axis) for axis in sharding)
