"""What the tests of the package share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import pytest

# Before the library reads it: devices of other tests and of the user are not ours.
_folder = tempfile.mkdtemp(prefix="tenon-python-")
os.environ["TENON_STATE_DIR"] = os.path.join(_folder, "state")
os.environ["TENON_RUN_DIR"] = os.path.join(_folder, "run")
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.path.join(_folder, "hypothesis"))

from hypothesis import HealthCheck, settings  # noqa: E402

examples = int(os.environ.get("TENON_EXAMPLES", "30"))  # of each property
settings.register_profile(
    "tenon", deadline=None, max_examples=examples, derandomize=True, suppress_health_check=list(HealthCheck)
)
settings.load_profile("tenon")


def pytest_sessionfinish() -> None:
    import shutil

    shutil.rmtree(_folder, ignore_errors=True)


@pytest.fixture
def python():
    """Runs a program in a Python of its own and returns what it printed."""

    def run(source: str, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", source], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture
def card():
    """A simulated card of one user at a time, quick to open."""
    import tenon as tn

    yield tn.simulate("wormhole", open="5ms", close="1ms")
    tn.close()
    tn._core._simulate_nothing()
