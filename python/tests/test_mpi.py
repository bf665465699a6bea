"""One program on the devices of the processes of an MPI job."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

import tenon as tn

LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"], "mpich": ["mpirun.mpich"]}

JOB = """
import os, sys
import numpy as np
import tenon as tn

assert tn.started_by_mpi()
x = np.arange(24, dtype=np.float32).reshape(6, 4) / 24
w = np.arange(12, dtype=np.float32).reshape(4, 3) / 12
mesh = tn.MpiMesh({"m": 2}, deadline=60)
try:
    report = mesh.run_reported("tanh(x @ w)", x=x, w=w, shardings={"x": "-,m", "w": "m,-"})
    np.testing.assert_allclose(np.asarray(report.result), np.tanh(x @ w), rtol=1e-5)
    assert [one["kind"] for one in report.collectives] == ["all-reduce"] and len(report.places) == 2
    for speeds in ([1, 3], "measured", None):
        y = mesh.run(lambda x, scale: {"y": x * scale}, x, 2.0, shardings={"x": ("m",)}, speeds=speeds)["y"]
        assert y.tolist() == (x * 2).tolist()
    print(f"rank {report.rank} is right", flush=True)
    tn.finish_mpi(60)
except BaseException as error:
    print(error, file=sys.stderr, flush=True)
    os._exit(1)
"""

UNEQUAL = """
import os
import tenon as tn
try:
    tn.MpiMesh({"m": 3}, deadline=60).run("x + 1", x=tn.ones((6,)), shardings={"x": "m"})
except tn.InvalidArgument as error:
    # A launcher that ends a job may lose what its processes said last.
    with open(os.path.join(os.environ["TENON_RUN_DIR"], "said"), "a") as file:
        file.write(str(error))
    os._exit(3)
"""


def start(launcher, job, folder):
    environment = dict(os.environ, TENON_RUN_DIR=str(folder), TENON_STATE_DIR=str(folder), TENON_THREADS="1", TENON_SIM="gpu;gpu")
    words = [*LAUNCHERS[launcher], "-n", "2", sys.executable, "-c", job]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_processes_compute_one_result(launcher, tmp_path):
    if not shutil.which(LAUNCHERS[launcher][0]):
        pytest.skip(f"{launcher} is not installed")
    tmp_path.chmod(0o700)
    done = start(launcher, JOB, tmp_path)
    assert done.returncode == 0, done.stderr
    # Launchers may put what two processes write on one line.
    assert sorted(re.findall(r"rank \d is right", done.stdout)) == ["rank 0 is right", "rank 1 is right"], done.stdout
    done = start(launcher, UNEQUAL, tmp_path)
    assert done.returncode != 0, done.stderr
    assert "3 places, but MPI started 2" in (tmp_path / "said").read_text()


def test_without_a_launcher_the_error_names_one():
    assert not tn.started_by_mpi()
    with pytest.raises(tn.FailedPrecondition, match="not started by MPI"):
        tn.MpiMesh({"m": 2}).run("x + 1", x=tn.ones((2,)))
    with pytest.raises(ValueError, match="measured"):
        tn.MpiMesh({"m": 2}).run("x + 1", x=tn.ones((2,)), speeds="fast")
    tn.finish_mpi()
    assert repr(tn.MpiMesh({"a": 2, "b": 2})) == "<tenon.MpiMesh a=2,b=2>"
