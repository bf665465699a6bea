"""The examples of the documents run, and print what they say."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil

import pytest

import tenon as tn

ROOT = os.environ.get("TENON_SOURCE") or os.path.join(os.path.dirname(__file__), "..", "..")


def blocks(document: str) -> list[str]:
    with open(os.path.join(ROOT, document), encoding="utf-8") as file:
        return re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", ["docs/python.md", "README.md"])
def test_examples_print_what_they_say(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    models = os.path.join(ROOT, "tests", "fixtures", "models")
    shutil.copy(os.path.join(models, "linear.onnx"), "net.onnx")
    shutil.copytree(os.path.join(models, "words"), "minilm")
    shutil.copy(os.path.join(ROOT, "tests", "model", "gguf", "llama_q4_1.gguf"), "smollm2.gguf")
    names: dict[str, object] = {}
    found = blocks(document)
    assert found
    for block in found:
        wanted = [line[3:] for line in block.splitlines() if line.startswith("#> ")]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block, names)  # noqa: S102
        assert printed.getvalue().splitlines() == wanted, block
    tn.close()
    tn._core._simulate_nothing()


@pytest.mark.parametrize("name", sorted({function.__name__ for function in tn.ops.values()}))
def test_the_example_of_every_op_runs(name):
    example = re.search(r">>> tenon\.run\((.*)\)$", tn.ops[name].__doc__, re.MULTILINE)
    assert example, name
    result = tn.run(eval(example[1]))
    for array in result if isinstance(result, tuple) else (result,):
        assert isinstance(array, tn.Array)
        array.eval()
