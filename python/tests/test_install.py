"""`pip install .` as a user does it: from the files of the repository alone, with an isolated build, in an empty environment.

It compiles the whole library, which takes as long as the first ./test, so it runs only where TENON_TEST_INSTALL is set; tools/wheel
(python.wheel) tries a wheel of what is compiled already in every ./test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

ROOT = os.environ.get("TENON_SOURCE") or os.path.join(os.path.dirname(__file__), "..", "..")


@pytest.mark.skipif(not os.environ.get("TENON_TEST_INSTALL"), reason="compiles everything: set TENON_TEST_INSTALL=1")
def test_a_clone_is_installed_in_an_empty_environment(tmp_path):
    clone, place = tmp_path / "clone", tmp_path / "environment"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if not os.path.exists(os.path.join(ROOT, name)):
            continue
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.join(ROOT, name), clone / name, follow_symlinks=False)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TENON_", "CCACHE"))}
    environment["CCACHE_DISABLE"] = "1"
    subprocess.run([sys.executable, "-m", "venv", place], check=True, env=environment)
    python = str(place / "bin" / "python")
    install = subprocess.run([python, "-m", "pip", "install", "-q", str(clone)], capture_output=True, text=True, env=environment)
    assert install.returncode == 0, install.stderr[-4000:]
    state = {"TENON_STATE_DIR": str(tmp_path / "state"), "TENON_RUN_DIR": str(tmp_path / "run")}
    tried = subprocess.run(
        [python, str(clone / "tools" / "try_wheel")], cwd=tmp_path, capture_output=True, text=True, env={**environment, **state}
    )
    assert tried.returncode == 0 and "computes" in tried.stdout, tried.stdout + tried.stderr
