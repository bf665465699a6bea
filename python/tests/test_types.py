"""The types of the package, which the build makes from the catalogue, and its reference page."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import tenon as tn

ROOT = os.environ.get("TENON_SOURCE") or os.path.join(os.path.dirname(__file__), "..", "..")

USE = """
import tenon as tn

a = tn.array([[1.0, 2.0]], dtype=tn.bfloat16)
y: tn.Array = tn.softmax(a @ a.mT + 0.5, axis=-1).sum(axis=0)
parts: list[tn.Array] = tn.split(a, 1)
shape: tuple[int, ...] = y.shape


@tn.jit
def step(x: tn.Array, scale: float) -> tn.Array:
    return tn.gelu(x * scale)


with tn.lease("cpu", timeout=1.0) as lease:
    z: tn.Array = step(a, 2.0)
    name: str = lease.device
n: int = len(tn.devices())
"""


def test_the_reference_is_current():
    done = subprocess.run(
        [sys.executable, os.path.join(ROOT, "tools", "python_types"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_is_content(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "wrong.py").write_text("import tenon as tn\n\ntn.softmax(tn.ones(2), axis='last')\n")
    environment = {**os.environ, "MYPYPATH": os.path.dirname(os.path.dirname(tn.__file__))}
    mypy = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run([*mypy, "-p", "tenon"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout
    done = subprocess.run([*mypy, str(tmp_path / "use.py")], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout
    done = subprocess.run([*mypy, str(tmp_path / "wrong.py")], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and '"axis"' in done.stdout
