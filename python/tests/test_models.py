"""Models, encoders and tokenizers from files."""

from __future__ import annotations

import asyncio
import os

import numpy as np
import pytest

import tenon as tn

MODELS = os.path.join(
    os.environ.get("TENON_SOURCE") or os.path.join(os.path.dirname(__file__), "..", ".."), "tests/fixtures/models"
)
WEIGHTS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=np.float32)


@pytest.fixture
def linear():
    return tn.Model.load(os.path.join(MODELS, "linear.onnx"))


@pytest.fixture
def words():
    return tn.Encoder.load(os.path.join(MODELS, "words"))


def test_a_model_says_what_it_takes_and_gives(linear):
    assert linear.inputs == [("x", "float", tn.float32, ("batch", 3), False)]
    assert linear.outputs == [("y", "float", tn.float32, ("batch", 2), False)]
    assert linear.info["format"] == "ONNX" and linear.info["parameters"] >= 6 and linear.info["ops"]["Mul"] == 1
    assert repr(linear) == "<tenon.Model (x: float ['batch', 3]) -> (y: float ['batch', 2])>"


def test_a_model_is_called_by_name_in_order_or_with_a_dict(linear):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    wanted = (x @ WEIGHTS).tolist()
    for result in (linear(x=x), linear(x), linear({"x": tn.asarray(x)}), linear.run({"x": x.tolist()}, device="cpu", timeout=30)):
        assert list(result) == ["y"] and result["y"].tolist() == wanted
    assert linear.programs == 1
    assert linear(np.ones((5, 3), np.float32))["y"].shape == (5, 2) and linear.programs == 2


def product_model():
    """ONNX bytes of y = x @ WEIGHTS for one row, written field by field."""

    def field(number, value):
        if isinstance(value, int):
            return bytes([number << 3, value])
        data = value.encode() if isinstance(value, str) else value
        return bytes([number << 3 | 2, len(data)]) + data

    def typed(name, *shape):
        extents = b"".join(field(1, field(1, extent)) for extent in shape)
        return field(1, name) + field(2, field(1, field(1, 1) + field(2, extents)))

    node = field(1, "x") + field(1, "w") + field(2, "y") + field(4, "MatMul")
    weights = field(1, 3) + field(1, 2) + field(2, 1) + field(8, "w") + field(9, WEIGHTS.tobytes())
    graph = field(1, node) + field(2, "g") + field(5, weights) + field(11, typed("x", 1, 3)) + field(12, typed("y", 1, 2))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


def test_products_of_a_model_can_be_computed_in_sixteen_bits():
    x = np.full((1, 3), 1 + 2**-12, np.float32)  # bfloat16 rounds it to 1
    exact = tn.Model.parse(product_model())
    for dtype in (tn.bfloat16, "bfloat16"):
        half = tn.Model.parse(product_model(), dtype=dtype)
        assert half(x)["y"].tolist() == [[9.0, 12.0]] and half.outputs == exact.outputs
    assert exact(x)["y"].tolist() != [[9.0, 12.0]]
    with pytest.raises(ValueError, match="float64"):
        tn.Model.load(os.path.join(MODELS, "linear.onnx"), dtype=tn.float64)


def test_wrong_inputs_of_a_model_are_named(linear):
    with pytest.raises(ValueError, match="'x: float"):
        linear()
    with pytest.raises(ValueError, match="z"):
        linear(x=tn.ones((1, 3)), z=tn.ones(1))
    with pytest.raises(ValueError, match=r"expects x: float \[batch, 3\]"):
        linear(tn.ones((1, 4)))
    with pytest.raises(TypeError, match="1 inputs, got 2"):
        linear(tn.ones((1, 3)), tn.ones(1))
    with pytest.raises(TypeError, match="twice"):
        linear(tn.ones((1, 3)), x=tn.ones((1, 3)))


def test_a_model_explains_itself_without_opening_a_device(linear):
    x = tn.ones((4, 3))
    assert linear.explain(x)["device"] == "cpu:0" and linear.explain(x=x, device="cpu")["reason"]
    assert "float32 [4, 3]" in linear.text(x) or "x" in linear.text(x)
    with pytest.raises(ValueError, match="expects x: float"):
        linear.explain(tn.ones((1, 4)))


def test_a_model_runs_where_the_context_says(linear, card):
    stages = []
    with tn.device(card):
        assert linear(tn.ones((1, 3)))["y"].device == card
    assert linear.run({"x": tn.ones((1, 3))}, device=card, on_progress=stages.append)["y"].tolist() == [[9.0, 12.0]]
    assert "computing" in {progress.stage for progress in stages}


def test_models_are_refused_with_a_reason(tmp_path):
    with pytest.raises(LookupError):
        tn.Model.load(tmp_path / "none.onnx")
    (tmp_path / "bad.onnx").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="bad.onnx"):
        tn.Model.load(tmp_path / "bad.onnx")
    with open(os.path.join(MODELS, "linear.onnx"), "rb") as file:
        assert tn.Model.parse(file.read())(tn.ones((1, 3)))["y"].tolist() == [[9.0, 12.0]]


def test_texts_become_vectors(words):
    vectors = words.encode(["a b", "b a", "c", ""])
    assert vectors.shape == (4, 4) and vectors.dtype == tn.float32
    assert vectors[0].tolist() == pytest.approx(vectors[1].tolist())
    assert np.linalg.norm(np.asarray(vectors)[:3], axis=1) == pytest.approx(1.0)
    assert words.encode("c").tolist() == pytest.approx(vectors[2].tolist())
    raw = tn.Encoder.load(os.path.join(MODELS, "words"), normalize=False, pooling="first")
    assert raw.encode(["a b"])[0].tolist() == raw.encode("a").tolist()
    done = []
    tn.Encoder.load(os.path.join(MODELS, "words"), batch=1).encode(["a", "b"], on_batch=done.append)
    assert done == [1, 2]
    with pytest.raises(ValueError, match="pooling"):
        tn.Encoder.load(os.path.join(MODELS, "words"), pooling="middle")
    with pytest.raises(TypeError):
        words.encode([1])


def test_similar_texts(words):
    texts = ["a", "b", "a b", "c"]
    cosines = np.asarray(words.similarity(texts, texts))
    assert np.diag(cosines) == pytest.approx(1.0, abs=1e-6) and cosines == pytest.approx(cosines.T)
    best = words.most_similar("a", texts, count=2)
    assert best[0].row == 0 and best[0].score == pytest.approx(1.0, abs=1e-6)
    assert best[1].score == pytest.approx(sorted(cosines[0])[-2], abs=1e-6)
    assert [match.row for match in tn.most_similar(words.encode("c"), words.encode(texts), 1)] == [3]
    assert tn.similarity([1.0, 0.0], [[0.0, 2.0], [3.0, 0.0]]).tolist() == [0.0, 1.0]
    assert tn.similarity([1, 0], [1, 0]).item() == 1.0
    with pytest.raises(ValueError, match="rows of vectors"):
        tn.similarity(tn.ones((1, 1, 1)), [1.0])


def test_tokens(words):
    tokenizer = tn.Tokenizer.load(os.path.join(MODELS, "words", "tokenizer.json"))
    assert tokenizer.encode("a c zebra") == ([1, 3, 7], [0, 0, 0])
    assert tokenizer.decode([1, 3]) == "a c" and tokenizer.decode(tn.array([2])) == "b"
    assert tokenizer.id_of("f") == 6 and tokenizer.id_of("zebra") is None and tokenizer.token_of(6) == "f"
    assert len(tokenizer) == 8 and "WordLevel" in repr(tokenizer) and len(words.tokenizer) == 8
    assert [value.name for value in words.model.inputs] == ["input_ids", "attention_mask"]


def test_models_and_encoders_can_be_awaited(linear, words):
    async def main():
        y, vectors = await asyncio.gather(linear.run_async({"x": tn.ones((1, 3))}), words.encode_async(["a"]))
        return y["y"].tolist(), vectors.shape

    assert asyncio.run(main()) == ([[9.0, 12.0]], (1, 4))
