"""Arrays exchanged with PyTorch and CuPy on a CUDA card. Skipped where there is none; bench/python_cuda.py is the whole of it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import tenon as tn

ROOT = os.environ.get("TENON_SOURCE") or os.path.join(os.path.dirname(__file__), "..", "..")


def test_memory_of_a_card_is_shared_both_ways_in_the_order_of_streams():
    if not any(device.id.startswith("cuda:") and device.available for device in tn.devices()):
        pytest.skip("there is no CUDA card")
    program = os.path.join(ROOT, "bench", "python_cuda.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=600)
    if done.returncode == 2:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
