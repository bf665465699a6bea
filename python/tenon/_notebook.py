"""HTML for notebooks: arrays, devices and queues as small tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._core import Array
    from ._devices import Device
    from ._evaluation import Progress


class WaitingLine:
    """A line below a notebook's cell that says who is ahead in the queue. It is there only while somebody waits."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        shown = import_module("IPython.display")
        line = shown.HTML(f"<div>{escape(text)}</div>")
        if self._handle is None:
            self._handle = shown.display(line, display_id=True)
        elif self._handle is not False:
            self._handle.update(line)

    def waiting(self, device: str, ahead: int, holder: str) -> None:
        """How many are ahead, who holds the device and since when."""
        self.show(f"{device}: {ahead} before you" + (f", held by {_with_time(holder)}" if holder else ""))

    def at_stage(self, progress: Progress) -> None:
        """For on_progress: what comes before the computation."""
        if progress.stage in ("queued", "opening"):
            ahead = progress.ahead_here + progress.ahead_elsewhere
            if ahead:
                self.waiting(progress.device, ahead, progress.holder)
            else:
                self.show(f"opening {progress.device}")
        else:
            self.clear()

    def clear(self) -> None:
        if self._handle:
            self._handle.update(import_module("IPython.display").HTML(""))
            self._handle = False


def _with_time(holder: str) -> str:
    """A holder ("pid 4242 (ada, train.py)", "this process"), with the time since when it holds its device."""
    import os
    import time

    from ._devices import queue

    for one in (user for each in queue() for user in each.get("holders", []) if "pid" in user):
        if holder.startswith(f"pid {one['pid']} ") or (holder == "this process" and one["pid"] == os.getpid()):
            return f"{holder} since {time.strftime('%H:%M:%S', time.localtime(time.time() - one['seconds']))}"
    return holder


def is_notebook() -> bool:
    """Whether the interpreter serves a notebook, which can show such a line."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None and hasattr(shell, "get_ipython") else None
    return running is not None and hasattr(running, "kernel")


_EDGE = 6  # rows and columns shown at each end of a large array


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = "".join(f"<th style='text-align:left'>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _picked(size: int) -> list[int]:
    """The indices that are shown; -1 stands for those left out."""
    return list(range(size)) if size <= 2 * _EDGE else [*range(_EDGE), -1, *range(size - _EDGE, size)]


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def array_html(x: Array) -> str:
    """Up to two axes as a table, more as text; below it dtype, shape, device and where the time went."""
    from ._evaluation import eval

    evaluation = eval(x)
    where = f" on {escape(x.device)}"
    stages = ", ".join(f"{stage} {seconds * 1e6:.0f} us" for stage, seconds in evaluation.timeline if seconds > 0)
    caption = f"<div><code>{escape(x.dtype.name)} {x.shape}</code>{where}{': ' + escape(stages) if stages else ''}</div>"
    if x.ndim == 0:
        return f"<div>{_number(x.item())}</div>{caption}"
    if x.ndim > 2 or x.size == 0:
        return f"<pre>{escape(str(x))}</pre>{caption}"
    table = x if x.ndim == 2 else x[None, :]
    rows, columns = (_picked(extent) for extent in table.shape)
    values = {i: table[i].tolist() for i in rows if i >= 0}
    cells = [["…" if i < 0 or j < 0 else _number(values[i][j]) for j in columns] for i in rows]
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells)
    return f"<table><tbody>{body}</tbody></table>{caption}"


def devices_html(devices: Iterable[Device]) -> str:
    rows = []
    for device in devices:
        state = "available" if device.available else f"{escape(device.reason)} <em>{escape(device.remedy)}</em>"
        memory = "" if device.memory_total_bytes is None else f"{device.memory_total_bytes / 2**30:.1f} GiB"
        rows.append([f"<code>{escape(device.id)}</code>", escape(device.kind), escape(device.name), memory, state])
    return _table(["device", "kind", "name", "memory", "state"], rows)


def queue_html(queues: Iterable[dict[str, Any]]) -> str:
    rows = []
    for queue in queues:
        holders = ", ".join(_since(one) for one in queue.get("holders", [])) or "free"
        waiters = ", ".join(_since(one) for one in queue.get("waiters", []))
        rows.append([f"<code>{escape(queue['device'])}</code>", holders, waiters])
    return _table(["device", "held by", "waiting"], rows)


def _since(user: dict[str, Any]) -> str:
    seconds = user.get("seconds")
    return escape(str(user["who"])) + ("" if seconds is None else f" for {seconds:.1f} s")
