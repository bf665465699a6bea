"""The programs that bench/programs.py runs, and the values they start from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

# The inputs, the program in PyTorch's words, and in ours.
Program = tuple[list[np.ndarray], Callable[..., Any], Callable[..., Any]]
programs: dict[str, Callable[[], Program]] = {}
scale = 1.0  # multiplies the sizes
random = np.random.default_rng(1)


def program(make: Callable[[], Program]) -> Callable[[], Program]:
    programs[make.__name__] = make
    return make


def size(n: int) -> int:
    return max(2, round(n * scale))


def normal(*shape: int) -> np.ndarray:
    return random.standard_normal(shape, dtype=np.float32)


def weight(*shape: int) -> np.ndarray:
    return normal(*shape) / np.float32(math.sqrt(shape[-1]))


def uniform(*shape: int) -> np.ndarray:
    return random.random(shape, dtype=np.float32)
