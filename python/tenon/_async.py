"""asyncio: `await x`, run_async, `async with tenon.lease(...)` and progress. Nothing blocks the event loop."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Optional, TypeVar

from . import _core
from ._core import Array
from ._devices import Lease
from ._evaluation import Progress, eval, run

T = TypeVar("T")

# A lease belongs to the thread that took it. What is awaited within `async with tenon.lease()` runs on that lease's thread.
_lease_thread: contextvars.ContextVar[Optional[ThreadPoolExecutor]] = contextvars.ContextVar("tenon lease thread", default=None)


async def _in_thread(work: Callable[[], T], on_cancel: Optional[Callable[[], object]] = None) -> T:
    """Runs work on the lease's thread, or one of the loop's, in the context of the task. Cancelling waits until it ended."""
    loop = asyncio.get_running_loop()
    context = contextvars.copy_context()
    future = loop.run_in_executor(_lease_thread.get(), lambda: context.run(work))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if on_cancel is not None:
            on_cancel()
        try:
            await asyncio.wait_for(asyncio.shield(future), None)
        except BaseException:  # what the work says about being cancelled
            pass
        raise


async def eval_async(*arrays: Array, **options: Any) -> Any:
    """Evaluates arrays without blocking the event loop; returns the array, or a tuple of several."""
    cancel = _core._Cancel()
    await _in_thread(lambda: eval(*arrays, _cancel=cancel, **options), cancel.cancel)
    return arrays[0] if len(arrays) == 1 else arrays


async def run_async(source: str, named: Optional[Mapping[str, Any]] = None, /, **options: Any) -> Any:
    """tenon.run without blocking the event loop."""
    cancel = _core._Cancel()
    return await _in_thread(lambda: run(source, named, _cancel=cancel, **options), cancel.cancel)


async def watch(*arrays: Array, **options: Any) -> AsyncIterator[Progress]:
    """Evaluates arrays and yields each stage as it begins."""
    loop = asyncio.get_running_loop()
    stages: asyncio.Queue[Optional[Progress]] = asyncio.Queue()

    def tell(progress: Progress) -> None:
        loop.call_soon_threadsafe(stages.put_nowait, progress)

    task = asyncio.ensure_future(eval_async(*arrays, on_progress=tell, **options))
    task.add_done_callback(lambda _: stages.put_nowait(None))
    try:
        while (stage := await stages.get()) is not None:
            yield stage
    finally:
        if not task.done():
            task.cancel()
        await task


async def enter_lease(lease: Lease) -> None:
    thread = ThreadPoolExecutor(1, thread_name_prefix="tenon-lease")
    lease._thread = (thread, None)
    token = _lease_thread.set(thread)
    lease._thread = (thread, token)
    try:
        await _in_thread(lease._lease.acquire, lease._lease.cancel)
    except BaseException:
        _lease_thread.reset(token)
        # Granted in the moment of cancelling: give it back on its own thread.
        if lease._lease.held:
            thread.submit(lease._lease.release).result()
        thread.shutdown(wait=False)
        raise
    finally:
        if lease._line is not None:
            lease._line.clear()


async def exit_lease(lease: Lease) -> None:
    thread, token = lease._thread
    try:
        await _in_thread(lease._lease.release)
    finally:
        _lease_thread.reset(token)
        thread.shutdown(wait=False)
