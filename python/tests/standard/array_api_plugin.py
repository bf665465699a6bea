"""A plugin of pytest for tools/array_api_suite.

The suite asks for the default complex dtype when it is imported, which a library without complex numbers cannot answer. Stand-ins
answer until its tests are collected; they are no dtype of any array, and the suite is told to leave complex dtypes out.
"""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import Any

import tenon


class StandIn:
    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"<no {self.name}>"


_NAMES = [name for name in ("complex64", "complex128") if not hasattr(tenon, name)]
_asarray = tenon.asarray
_outcomes: dict[str, str] = {}


def _asarray_or_stand_in(obj: Any, /, **options: Any) -> Any:
    if isinstance(obj, complex):
        return SimpleNamespace(dtype=tenon.complex64)
    return _asarray(obj, **options)


if _NAMES:
    for _name in _NAMES:
        setattr(tenon, _name, StandIn(_name))
    tenon.asarray = _asarray_or_stand_in


def pytest_collection_finish() -> None:
    for name in _NAMES:
        delattr(tenon, name)
    tenon.asarray = _asarray


def pytest_runtest_logreport(report: Any) -> None:
    if report.when != "call" and not (report.failed or report.skipped):
        return
    is_expected = hasattr(report, "wasxfail")
    if report.passed:
        outcome = "passed although it is listed" if is_expected else "passed"
    elif report.skipped:
        outcome = "failed as expected" if is_expected else "skipped"
    else:
        outcome = "failed"
    if _outcomes.get(report.nodeid) != "failed":
        _outcomes[report.nodeid] = outcome


def pytest_sessionfinish() -> None:
    with open(os.environ["TENON_SUITE_REPORT"], "w", encoding="utf-8") as file:
        json.dump(_outcomes, file)
