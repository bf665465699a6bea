"""One program on several devices."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import tenon as tn


@pytest.fixture
def devices():
    yield [tn.simulate("gpu", open="1ms", close="1ms", id=f"sim:mesh{i}") for i in range(4)]
    tn.close()
    tn._core._simulate_nothing()


X, W = np.arange(24, dtype=np.float32).reshape(6, 4) / 24, np.arange(12, dtype=np.float32).reshape(4, 3) / 12


def test_an_expression_runs_on_all_devices(devices):
    mesh = tn.Mesh({"data": 2}, devices[:2])
    assert mesh.devices == devices[:2] and repr(mesh) == "<tenon.Mesh data=2 of sim:mesh0, sim:mesh1>"
    y = mesh.run("softmax(x @ w)", x=X, w=W, shardings={"x": "data,-"})
    np.testing.assert_allclose(np.asarray(y), np.asarray(tn.softmax(tn.asarray(X) @ W)), rtol=1e-6)
    values, indices = mesh.run("top_k(x, 2)", x=X, shardings={"x": ("data", None)})
    assert values.tolist() == tn.top_k(tn.asarray(X), 2)[0].tolist() and indices.shape == (6, 2)


def test_a_function_keeps_its_structure(devices):
    mesh = tn.Mesh({"data": 2, "model": 2}, devices)

    def step(weights, x, scale):
        y = x @ weights["w"] * scale
        return {"y": y, "x": x, "sum": y.sum(), "note": "done"}

    shardings = {"x": ("data", None), "weights": (None, "model")}
    report = mesh.run_reported(step, {"w": W}, X, 0.5, shardings=shardings)
    np.testing.assert_allclose(np.asarray(report.result["y"]), X @ W * 0.5, rtol=1e-6)
    assert report.result["sum"].item() == pytest.approx((X @ W * 0.5).sum(), rel=1e-6)
    assert report.result["x"].tolist() == X.tolist() and report.result["note"] == "done"
    assert report.devices == devices and len(report.timelines) == 4 and report.collectives
    assert mesh.run(tn.jit(step), {"w": W}, X, 2.0, shardings=shardings)["y"].shape == (6, 3)


def test_a_program_runs_with_its_captured_arrays(devices):
    weight = tn.asarray(W)
    program = tn.jit(lambda x: tn.gelu(x @ weight)).lower(tn.spec((6, 4), tn.float32))
    (y,) = tn.Mesh({"m": 2}, devices[:2]).run(program, X, shardings={"x": "-,m"}, speeds=[1.0, 3.0])
    np.testing.assert_allclose(np.asarray(y), np.asarray(tn.gelu(tn.asarray(X) @ weight)), rtol=1e-6)


def test_the_plan_tells_what_is_exchanged(devices):
    mesh = tn.Mesh({"m": 2}, devices[:2])
    plan = mesh.explain("x @ w", x=X, w=W, shardings={"x": "-,m", "w": "m,-"})
    assert [one["kind"] for one in plan.collectives] == ["all-reduce"] and plan.bytes > 0 and "all-reduce" in str(plan)
    assert tn.status()[devices[0]]["state"] == "closed"
    rows = mesh.explain(lambda x: x * 2, tn.spec((6, 4), tn.float32), shardings={"x": ("m",)})
    assert rows.collectives == [] and "m" in rows.outputs[0] and rows.stages == 1
    assert mesh.explain("x * 2", x=X[:1], shardings={"x": "m,-"}).notes


def test_mistakes_are_named(devices):
    with pytest.raises(ValueError, match="2"):
        tn.Mesh({"data": 2}, devices)
    with pytest.raises(RuntimeError, match="devices"):
        tn.Mesh({"data": 64})
    mesh = tn.Mesh({"data": 2}, devices[:2])
    with pytest.raises(tn.Error, match="rows"):
        mesh.run("x * 2", x=X, shardings={"x": "rows,-"})
    with pytest.raises(tn.Error, match="y"):
        mesh.run("x * 2", x=X, shardings={"y": "data,-"})
    with pytest.raises(ValueError, match="measured"):
        mesh.run("x * 2", x=X, speeds="fast")
    with pytest.raises(TypeError, match="by name"):
        mesh.run("x * 2", X)


def test_shares_follow_measured_speeds_and_runs_can_be_awaited(devices):
    mesh = tn.Mesh({"data": 2}, devices[:2])
    assert mesh.run("x + 1", x=X, shardings={"x": "data"}, speeds="measured").tolist() == (X + 1).tolist()
    assert asyncio.run(mesh.run_async("x + 1", x=X, shardings={"x": "data"})).tolist() == (X + 1).tolist()
