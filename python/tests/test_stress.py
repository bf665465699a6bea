"""Threads and processes share a card while they are interrupted, cancelled, forked and killed. bench/python_stress.py runs it for longer."""

from __future__ import annotations

import os
import subprocess
import sys

ROOT = os.environ.get("TENON_SOURCE") or os.path.join(os.path.dirname(__file__), "..", "..")


def test_nothing_hangs_and_no_lease_is_stuck():
    program = os.path.join(ROOT, "bench", "python_stress.py")
    done = subprocess.run([sys.executable, program, "4", "2", "4"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    for act in ("leased", "cancelled", "forked", "interrupted", "recorded"):
        assert act in done.stdout, done.stdout
