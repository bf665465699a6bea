"""@tenon.jit, asyncio and notebooks."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
import subprocess
import sys
import threading
import types
from typing import NamedTuple

import numpy as np
import pytest

import tenon as tn


def test_a_function_is_recorded_once_for_each_combination_of_types():
    calls = []

    @tn.jit
    def double(x):
        calls.append(x.shape)
        return x * 2

    assert double(tn.array([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert double(tn.array([3.0, 4.0])).tolist() == [6.0, 8.0]
    assert double(tn.array([1, 2, 3])).tolist() == [2, 4, 6]
    assert double(np.array([1.0, 2.0], dtype=np.float32)).tolist() == [2.0, 4.0]
    assert calls == [(2,), (3,)] and double.programs == 2


def test_numbers_are_inputs_and_take_the_dtype_of_arrays():
    @tn.jit
    def scaled(x, factor):
        return x * factor

    x = tn.array([1.0, 2.0], dtype=tn.float64)
    assert [scaled(x, f).tolist() for f in (0.5, 0.1)] == [[0.5, 1.0], [0.1, 0.2]]
    assert scaled(x, 0.1).dtype == tn.float64
    assert scaled(tn.array([1.0], dtype=tn.bfloat16), 2.0).dtype == tn.bfloat16
    assert scaled(tn.array([3], dtype=tn.int8), 2).dtype == tn.int8
    assert scaled.programs == 3


def test_static_arguments_are_values():
    @tn.jit(static="causal")
    def f(x, *, causal=True, scale=2.0):
        return x * scale if causal else x - scale

    assert f(tn.array([3.0])).tolist() == [6.0]
    assert f(tn.array([3.0]), causal=False).tolist() == [1.0]
    assert f(tn.array([3.0]), scale=3.0).tolist() == [9.0]
    assert f.programs == 2
    with pytest.raises(TypeError, match="no argument"):
        tn.jit(static="missing")(lambda x: x)


@dataclasses.dataclass
class Layer:
    weight: tn.Array
    bias: tn.Array


class Pair(NamedTuple):
    first: tn.Array
    second: tn.Array


def test_arguments_and_results_may_be_nested():
    @tn.jit
    def step(model, batch):
        y = batch["x"] @ model.weight + model.bias
        return {
            "y": y,
            "pair": Pair(y.sum(), y.max()),
            "list": [y, None, "text", 3],
            "layer": Layer(model.weight * 2, model.bias),
        }

    model = Layer(tn.array([[1.0], [2.0]]), tn.array([0.5]))
    result = step(model, {"x": tn.array([[1.0, 1.0]])})
    assert result["y"].tolist() == [[3.5]] and result["pair"].second.item() == 3.5
    assert result["list"][1:] == [None, "text", 3] and result["layer"].weight.tolist() == [[2.0], [4.0]]


def test_arrays_from_outside_are_captured():
    weight = tn.array([2.0])
    f = tn.jit(lambda x: x * weight)
    assert f(tn.array([3.0])).tolist() == [6.0]
    assert f.lower(tn.array([3.0])).captured[0].tolist() == [2.0]


def test_an_argument_may_be_a_result():
    f = tn.jit(lambda x, y: (x, y + 1, x))
    x, y, z = f(tn.array([1.0]), tn.array([2.0]))
    assert (x.tolist(), y.tolist(), z.tolist()) == ([1.0], [3.0], [1.0])


def test_values_are_not_known_while_a_function_is_recorded():
    with pytest.raises(RuntimeError, match="has no value"):
        tn.jit(lambda x: x if x.sum() > 0 else -x)(tn.array([1.0]))
    with pytest.raises(RuntimeError, match="has no value"):
        tn.jit(lambda x: x[x > 0])(tn.array([1.0]))
    seen = []
    tn.jit(lambda x: (seen.append(repr(x)), x + 1)[1])(tn.array([1.0]))
    assert "traced function" in seen[0]


def test_assignment_works_within_a_recorded_function():
    @tn.jit
    def f(x):
        x[0] = 7
        x[x < 2] = 0
        return x

    x = tn.array([1.0, 1.0, 5.0])
    assert f(x).tolist() == [7.0, 0.0, 5.0]
    assert x.tolist() == [1.0, 1.0, 5.0]


def test_a_value_must_not_leave_its_function():
    kept = []
    tn.jit(lambda x: (kept.append(x), x + 1)[1])(tn.array([1.0]))
    with pytest.raises(RuntimeError, match="input of another program"):
        tn.jit(lambda y: y + kept[0])(tn.array([1.0]))


def test_lower_gives_a_program_without_a_device():
    @tn.jit
    def f(x, w):
        return tn.softmax(x @ w)

    program = f.lower(tn.spec((2, 3), tn.float32), tn.spec((3, 4), tn.float32))
    assert program.inputs == [((2, 3), tn.float32), ((3, 4), tn.float32)] and program.outputs == [((2, 4), tn.float32)]
    assert "matmul" in program.text and "stablehlo.dot_general" in program.stablehlo()
    assert program.explain()["reason"]
    with pytest.raises(ValueError, match="recorded for"):
        program.run(tn.ones((2, 3)), tn.ones((4, 4)))


def test_the_inputs_of_a_program_have_the_names_of_the_arguments():
    @tn.jit(static="flag")
    def f(weights, *rest, scale=1.0, flag=True):
        return weights["w"] * scale + rest[0][1]

    x = tn.ones(2)
    assert f.lower({"w": x, "b c": x, "text": "none"}, [x, x], scale=2.0).names == [
        "weights_w",
        "weights_b_c",
        "rest_0_0",
        "rest_0_1",
        "scale",
    ]
    assert tn.jit(lambda a, a_0: a[0] + a_0).lower([x], x).names == ["a_0", "a_0_2"]
    assert tn.jit(lambda *all: all[0] + all[1]).lower(x, x).names == ["all_0", "all_1"]


def test_a_saved_program_runs_in_python_and_by_the_command(tmp_path):
    weight = tn.array([[1.0], [2.0], [3.0]])

    @tn.jit
    def step(x, scale):
        y = x @ weight * scale
        return y, x, y.sum()

    x = tn.arange(6, dtype=tn.float32).reshape(2, 3)
    file = tmp_path / "step.tenon"
    step.lower(x, 0.5).save(file)
    wanted = [array.tolist() for array in step(x, 0.1)]
    loaded = tn.load_program(file)
    assert [array.tolist() for array in loaded.run(x, 0.1)] == wanted
    assert loaded.names == ["x", "scale", "c0"] and loaded.captured[0].tolist() == weight.tolist()
    assert "stablehlo.dot_general" in loaded.stablehlo()
    with pytest.raises(ValueError, match="step.tenon"):
        file.write_bytes(file.read_bytes()[:-9])
        tn.load_program(file)
    step.lower(x, 0.5).save(file)
    tn.save(tmp_path / "x.npy", x)
    program = os.environ.get("TENON_PROGRAM")
    if not program:
        pytest.skip("TENON_PROGRAM is not set")
    done = subprocess.run(
        [program, "run", f"@{file}", f"x=@{tmp_path}/x.npy", "scale=0.1", "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for result, values in zip(json.loads(done.stdout)["results"], wanted):
        np.testing.assert_allclose(np.asarray(result["values"]), np.asarray(values), rtol=1e-6)


def test_a_recorded_function_runs_where_the_context_says(card):
    f = tn.jit(lambda x: x + 1)
    with tn.device(card):
        assert f(tn.array([1.0])).device == card


def test_await_does_not_block_the_loop(card):
    slow = tn.simulate("wormhole", open="200ms", id="sim:slow2")

    async def main():
        ticks = 0
        task = asyncio.ensure_future(tn.eval_async(tn.array([1.0]) + 1, device=slow))
        while not task.done():
            await asyncio.sleep(0)
            ticks += 1
        x = tn.array([2.0]) * 3
        assert await x is x and x.is_evaluated
        assert (await tn.run_async("x + 1", x=[1.0])).tolist() == [2.0]
        assert (await task).tolist() == [2.0]
        return ticks

    assert asyncio.run(main()) > 10


def test_progress_is_an_async_iterator():
    async def main():
        return [progress.stage async for progress in tn.watch(tn.array([1.0]) + 40)]

    assert asyncio.run(main())[-1] == "downloading"


def test_an_async_lease_covers_what_is_awaited_in_it(card):
    async def main():
        async with tn.lease(card) as lease:
            x = (tn.array([1.0]) + 1).on(card)
            await x
            assert lease.is_held and x.device == card
        assert not lease.is_held

    asyncio.run(main())


def test_cancelling_gives_the_lease_back(card):
    holding, done = threading.Event(), threading.Event()

    def hold():
        with tn.lease(card):
            holding.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(30)

    async def wait_for_it():
        async with tn.lease(card):
            pass

    async def main():
        for work in (wait_for_it(), tn.eval_async(tn.array([1.0]) + 5, device=card)):
            task = asyncio.ensure_future(work)
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    done.set()
    thread.join()
    with tn.lease(card, timeout=5):
        pass


@pytest.fixture
def notebook(monkeypatch):
    """What a notebook shows below its cell, one text after the other."""
    shown = []

    class Handle:
        def update(self, html):
            shown.append(html)

    def display(html, display_id):
        shown.append(html)
        return Handle()

    shell = types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(HTML=str, display=display))
    return shown


def test_a_notebook_shows_the_place_in_the_queue(card, notebook):
    held, done = threading.Event(), threading.Event()

    def hold():
        with tn.lease(card, on_wait=lambda place: None):
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    threading.Timer(0.1, done.set).start()
    with tn.lease(card):
        pass
    thread.join()
    assert notebook[0].startswith(f"<div>{card}: 1 before you")
    assert notebook[-1] == ""
    slow = tn.simulate("wormhole", open="500ms", close="1ms", id="sim:slow")
    notebook.clear()
    tn.eval(tn.array([1.0]) + 1, device=slow)
    assert notebook[0] == f"<div>opening {slow}</div>" and notebook[-1] == ""
    tn.eval(tn.array([1.0]) + 2, device="cpu")  # opens it
    notebook.clear()
    tn.eval(tn.array([1.0]) + 3, device="cpu")
    assert notebook == []


def test_a_notebook_says_who_holds_the_device_and_since_when(notebook):
    card = tn.simulate("wormhole", open="1ms", close="1ms", id="sim:shared")
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, tenon as tn\n"
            "card = tn.simulate('wormhole', open='1ms', close='1ms', id='sim:shared')\n"
            "with tn.lease(card):\n    print('held', flush=True)\n    sys.stdin.readline()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TENON_QUANTUM_SECONDS": "3600"},  # it yields to nobody
        text=True,
    )
    try:
        assert holder.stdout.readline() == "held\n"
        line = re.compile(rf"<div>{card}: 1 before you, held by pid {holder.pid} .* since \d\d:\d\d:\d\d</div>")
        for wait in (lambda: tn.lease(card, timeout=0.2).__enter__(), lambda: tn.eval(tn.ones(1) + 1, device=card, timeout=0.2)):
            notebook.clear()
            with pytest.raises(TimeoutError):
                wait()
            assert any(line.fullmatch(text) for text in notebook), notebook
        holder.communicate("done\n", timeout=60)
    finally:
        holder.kill()
        tn.close()
        tn._core._simulate_nothing()


def test_notebooks_show_values_type_and_time():
    html = (tn.arange(6).reshape(2, 3) + 1)._repr_html_()
    assert "<td>6</td>" in html and "int64 (2, 3)" in html and "computing" in html
    assert "<td>…</td>" in tn.arange(100)._repr_html_()
    assert "<pre>" in tn.zeros((2, 2, 2))._repr_html_() and "<div>3</div>" in tn.array(3)._repr_html_()
