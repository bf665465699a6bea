#!/usr/bin/env python3
"""What a call costs from Python: Tenon beside NumPy and, where they are installed, JAX and MLX. Writes a table in Markdown.

    PYTHONPATH=build/release/python python3 bench/python.py [bench/results/python.md]

The libraries take turns within each round, so that the load of the machine is the same for all; the fastest round counts.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from typing import Any

ROUNDS, CALLS = 60, 100


def tenon_cases() -> dict[str, Callable[[], Any]]:
    import tenon as tn

    a, b = tn.arange(16, dtype=tn.float32).eval(), tn.ones(16).eval()
    add = tn.jit(lambda x, y: x + y)
    large = tn.jit(lambda x, y: chain(x, y))
    scale = tn.jit(lambda x, s: x * s)
    number = [0.0]

    def chain(x, y):
        for _ in range(50):
            x = x + y
        return x

    def new_number():
        number[0] += 1.0
        return scale(a, number[0])

    def new_factor():
        number[0] += 1.0
        return (a * number[0]).eval()

    big = (tn.arange(1000000, dtype=tn.float32) / 1e6).eval()
    return {
        "record a + b": lambda: a + b,
        "a + b": lambda: (a + b).eval(),
        "50 additions": lambda: chain(a, b).eval(),
        "jit a + b": lambda: add(a, b),
        "jit 50 additions": lambda: large(a, b),
        "jit, the same number each call": lambda: scale(a, 2.0),
        "jit, a new number each call": new_number,
        "a * number, the same each time": lambda: (a * 2.0).eval(),
        "a * number, a new one each time": new_factor,
        "exp(x) * 2 + 1 of 1M": lambda: (big.exp() * 2 + 1).eval(),
    }


def numpy_cases() -> dict[str, Callable[[], Any]]:
    import numpy as np

    a, b = np.arange(16, dtype=np.float32), np.ones(16, np.float32)
    big = np.arange(1000000, dtype=np.float32) / 1e6

    def chain():
        x = a
        for _ in range(50):
            x = x + b
        return x

    return {
        "record a + b": lambda: a + b,
        "a + b": lambda: a + b,
        "50 additions": chain,
        "exp(x) * 2 + 1 of 1M": lambda: np.exp(big) * 2 + 1,
    }


def jax_cases() -> dict[str, Callable[[], Any]]:
    import jax
    import jax.numpy as jnp

    a, b = jnp.arange(16, dtype=jnp.float32), jnp.ones(16)
    add, scale = jax.jit(lambda x, y: x + y), jax.jit(lambda x, s: x * s)
    number = [0.0]

    def chain(x, y):
        for _ in range(50):
            x = x + y
        return x

    large = jax.jit(chain)

    def new_number():
        number[0] += 1.0
        return scale(a, number[0]).block_until_ready()

    def new_factor():
        number[0] += 1.0
        return (a * number[0]).block_until_ready()

    big = jnp.arange(1000000, dtype=jnp.float32) / 1e6
    whole = jax.jit(lambda x: jnp.exp(x) * 2 + 1)
    return {
        "record a + b": lambda: a + b,
        "a + b": lambda: (a + b).block_until_ready(),
        "50 additions": lambda: chain(a, b).block_until_ready(),
        "jit a + b": lambda: add(a, b).block_until_ready(),
        "jit 50 additions": lambda: large(a, b).block_until_ready(),
        "jit, the same number each call": lambda: scale(a, 2.0).block_until_ready(),
        "jit, a new number each call": new_number,
        "a * number, the same each time": lambda: (a * 2.0).block_until_ready(),
        "a * number, a new one each time": new_factor,
        "exp(x) * 2 + 1 of 1M": lambda: whole(big).block_until_ready(),
    }


def mlx_cases() -> dict[str, Callable[[], Any]]:
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    a, b = mx.arange(16, dtype=mx.float32), mx.ones(16)
    mx.eval(a, b)
    number = [0.0]

    def chain(x, y):
        for _ in range(50):
            x = x + y
        return x

    add, large, scale = mx.compile(lambda x, y: x + y), mx.compile(chain), mx.compile(lambda x, s: x * s)

    def new_number():
        number[0] += 1.0
        mx.eval(scale(a, mx.array(number[0])))

    def new_factor():
        number[0] += 1.0
        mx.eval(a * number[0])

    big = mx.arange(1000000, dtype=mx.float32) / 1e6
    mx.eval(big)
    return {
        "record a + b": lambda: a + b,
        "a + b": lambda: mx.eval(a + b),
        "50 additions": lambda: mx.eval(chain(a, b)),
        "jit a + b": lambda: mx.eval(add(a, b)),
        "jit 50 additions": lambda: mx.eval(large(a, b)),
        "jit, the same number each call": lambda: mx.eval(scale(a, mx.array(2.0))),
        "jit, a new number each call": new_number,
        "a * number, the same each time": lambda: mx.eval(a * 2.0),
        "a * number, a new one each time": new_factor,
        "exp(x) * 2 + 1 of 1M": lambda: mx.eval(mx.exp(big) * 2 + 1),
    }


LIBRARIES = {
    "Tenon": ("tenon", tenon_cases),
    "NumPy": ("numpy", numpy_cases),
    "JAX": ("jax", jax_cases),
    "MLX": ("mlx.core", mlx_cases),
}


def measure(cases: dict[str, dict[str, Callable[[], Any]]]) -> dict[str, dict[str, float]]:
    best: dict[str, dict[str, float]] = {}
    for name in cases["Tenon"]:
        calls = 2 if "1M" in name else CALLS
        best[name] = {}
        for _ in range(ROUNDS):
            for library, own in cases.items():
                if name not in own:
                    continue
                call = own[name]
                start = time.perf_counter()
                for _ in range(calls):
                    call()
                seconds = (time.perf_counter() - start) / calls
                best[name][library] = min(best[name].get(library, seconds), seconds)
    return best


def import_cost(module: str) -> tuple[float, float]:
    """CPU seconds, and the largest resident memory of the process in MiB; with compiled Python files, as installed ones are."""
    program = (
        "import resource as r; a = r.getrusage(0); import "
        + module
        + "; b = r.getrusage(0); print(b.ru_utime + b.ru_stime - a.ru_utime - a.ru_stime,"
        + " [int(line.split()[1]) / 1024 for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    )
    with tempfile.TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
        command = [sys.executable, "-c", program]
        runs = [subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout for _ in range(6)]
    costs = [tuple(map(float, run.split())) for run in runs]
    return min(seconds for seconds, _ in costs), min(memory for _, memory in costs)


def text(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main() -> None:
    cases, versions = {}, {}
    for library, (module, make) in LIBRARIES.items():
        try:
            versions[library] = getattr(importlib.import_module(module), "__version__", "")
            cases[library] = make()
        except ImportError:
            continue
    best = measure(cases)
    costs = {library: import_cost(LIBRARIES[library][0]) for library in cases}
    best["import (CPU time)"] = {library: seconds for library, (seconds, _) in costs.items()}
    lines = [
        "# Calls from Python",
        "",
        f"{date.today()}, "
        + ", ".join(f"{library} {version}" for library, version in versions.items())
        + f", Python {sys.version.split()[0]}.",
        "Arrays of 16 float32 unless a row says otherwise. The libraries take turns in each of 60 rounds; the fastest round counts. The columns",
        "after Tenon have the time and how many times as long as Tenon's it is. NumPy computes at once; there is nothing to record or compile.",
        "Written by `bench/python.py`.",
        "",
        "| what | " + " | ".join(cases) + " |",
        "| --- |" + " --- |" * len(cases),
    ]
    for name, times in best.items():
        cells = [text(times["Tenon"])]
        for library in list(cases)[1:]:
            cells.append(f"{text(times[library])} ({times[library] / times['Tenon']:.2f})" if library in times else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    memory = [f"{mib:.1f} MiB" for _, mib in costs.values()]
    lines.append("| resident after the import, with Python | " + " | ".join(memory) + " |")
    table = "\n".join(lines) + "\n"
    print(table)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            file.write(table)


if __name__ == "__main__":
    main()
