"""The types of the package, which the build makes from the catalogue, and its reference page."""

from __future__ import annotations

import json
import os
import shutil
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
    settings = ["--config-file", os.path.join(ROOT, "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    mypy = [sys.executable, "-m", "mypy", "--strict", *settings]
    done = subprocess.run([*mypy, "-p", "tenon"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout
    done = subprocess.run([*mypy, str(tmp_path / "use.py")], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout
    done = subprocess.run([*mypy, str(tmp_path / "wrong.py")], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and '"axis"' in done.stdout


def test_pyright_is_content(tmp_path):
    pyright = os.path.join(ROOT, "build", "plugins", "pyright", "node_modules", "pyright", "index.js")
    if not os.path.exists(pyright) or shutil.which("node") is None:
        pytest.skip("pyright is not installed (tools/plugins)")
    (tmp_path / "use.py").write_text("# pyright: strict\n" + USE)
    (tmp_path / "wrong.py").write_text("import tenon as tn\n\ntn.softmax(tn.ones(2), axis='last')\n")
    package = os.path.dirname(tn.__file__)
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps(
            {
                "include": [package, str(tmp_path / "use.py"), str(tmp_path / "wrong.py")],
                "exclude": [package + "/_backend"],
                "extraPaths": [os.path.dirname(package), os.path.join(ROOT, "build", "plugins", "python")],
                "pythonVersion": "3.10",
            }
        )
    )
    done = subprocess.run(["node", pyright, "--outputjson", "-p", str(tmp_path)], capture_output=True, text=True)
    found = [(os.path.basename(each["file"]), each["message"]) for each in json.loads(done.stdout)["generalDiagnostics"]]
    assert [file for file, message in found] == ["wrong.py"] and '"axis"' in found[0][1], found
