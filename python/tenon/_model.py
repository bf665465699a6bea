"""Models, encoders and tokenizers from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from . import _core
from ._core import Array, DType
from ._devices import Decision, _text
from ._evaluation import _progress_callback

if TYPE_CHECKING:
    from ._devices import DeviceLike, Routing
    from ._evaluation import OnProgress

Path = Union[str, os.PathLike[str]]


class ModelValue(NamedTuple):
    """An input or output of a model."""

    name: str
    type: str
    dtype: Optional[DType]
    """None for what no array holds, such as strings."""
    shape: Optional[tuple[Union[int, str, None], ...]]
    """An extent that is free has a name or is None; equal names are equal extents. None: any number of axes."""
    is_optional: bool


class Model:
    """A trained network from a file: a function from named arrays to named arrays.

    model = tenon.Model.load("minilm.onnx")
    result = model(input_ids=ids, attention_mask=mask)["last_hidden_state"]

    Loading opens no device. A call takes a lease, runs one program and gives the device back. There is one program for each
    combination of input shapes, and the weights are shared by all of them.
    """

    def __init__(self, model: Any):
        self._model = model

    @staticmethod
    def load(path: Path, *, dtype: Union[DType, str, None] = None) -> Model:
        """A model in an ONNX file. What it needs and Tenon lacks is refused with the names of the nodes.

        dtype: float16 or bfloat16 computes products in 16 bits (mixed precision); inputs and outputs keep their types.
        """
        return Model(_core._Model.load(os.fspath(path), dtype))

    @staticmethod
    def parse(data: bytes, *, dtype: Union[DType, str, None] = None) -> Model:
        """The model in the bytes of an ONNX file."""
        return Model(_core._Model.parse(bytes(data), dtype))

    @property
    def inputs(self) -> list[ModelValue]:
        return [ModelValue(*value) for value in self._model.inputs]

    @property
    def outputs(self) -> list[ModelValue]:
        return [ModelValue(*value) for value in self._model.outputs]

    @property
    def info(self) -> dict[str, Any]:
        """Format, producer, opset, nodes, ops, parameters, weight_bytes and metadata."""
        info: dict[str, Any] = self._model.info
        return info

    @property
    def programs(self) -> int:
        """How many programs are kept, one for each combination of input shapes."""
        return int(self._model.programs)

    def __call__(self, *arrays: Any, **named: Any) -> dict[str, Array]:
        """Every output by its name. Inputs are given by name, in the model's order, or as one dict."""
        return self.run(self._named(arrays, named))

    def run(
        self,
        inputs: Mapping[str, Any],
        *,
        device: DeviceLike = None,
        routing: Optional[Routing] = None,
        prefer: DeviceLike = None,
        timeout: Optional[float] = None,
        priority: int = 0,
        on_progress: OnProgress = None,
        _cancel: Any = None,
    ) -> dict[str, Array]:
        """The same with a choice of device, a time limit and progress."""
        tell = _progress_callback(on_progress)
        results: dict[str, Array] = self._model.run(
            dict(inputs), _text(device), timeout, priority, tell, _cancel, routing, _text(prefer)
        )
        return results

    async def run_async(self, inputs: Mapping[str, Any], **options: Any) -> dict[str, Array]:
        """run() without blocking the event loop."""
        from ._async import _in_thread

        cancel = _core._Cancel()
        return await _in_thread(lambda: self.run(inputs, _cancel=cancel, **options), cancel.cancel)

    def explain(self, *arrays: Any, device: DeviceLike = "auto", **named: Any) -> Decision:
        """The device that a call with these inputs would use now, and why. Opens nothing."""
        import json

        return Decision(json.loads(self._model.explain(self._named(arrays, named), _text(device) or "auto")))

    def text(self, *arrays: Any, **named: Any) -> str:
        """The program for these inputs, one line for each node."""
        return str(self._model.text(self._named(arrays, named)))

    def _named(self, arrays: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            return {**arrays[0], **named}
        inputs = self.inputs
        if len(arrays) > len(inputs):
            raise TypeError(f"the model has {len(inputs)} inputs, got {len(arrays)}")
        both = {value.name: array for value, array in zip(inputs, arrays)}
        for name in named:
            if name in both:
                raise TypeError(f"the model got its input '{name}' twice")
        return {**both, **named}

    def __repr__(self) -> str:
        def text(values: list[ModelValue]) -> str:
            return ", ".join(f"{v.name}: {v.type} {'' if v.shape is None else list(v.shape)}".strip() for v in values)

        return f"<tenon.Model ({text(self.inputs)}) -> ({text(self.outputs)})>"


class Tokens(NamedTuple):
    """The ids of a text, and for each the text it is of: 0, or 1 for the second of a pair."""

    ids: list[int]
    types: list[int]


class Tokenizer:
    """Text to ids and back, from a tokenizer.json."""

    def __init__(self, tokenizer: Any):
        self._tokenizer = tokenizer

    @staticmethod
    def load(path: Path) -> Tokenizer:
        """The tokenizer in a tokenizer.json."""
        return Tokenizer(_core._Tokenizer.load(os.fspath(path)))

    def encode(self, text: str, pair: Optional[str] = None, *, special: bool = True) -> Tokens:
        """The ids of a text, or of two. `special`: with the tokens that the file puts around a text."""
        return Tokens(*self._tokenizer.encode(text, pair, special))

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """The text of ids."""
        return str(self._tokenizer.decode([int(id) for id in ids], skip_special))

    def id_of(self, token: str) -> Optional[int]:
        found: Optional[int] = self._tokenizer.id_of(token)
        return found

    def token_of(self, id: int) -> Optional[str]:
        found: Optional[str] = self._tokenizer.token_of(id)
        return found

    def __len__(self) -> int:
        return int(self._tokenizer.size)

    def __repr__(self) -> str:
        return f"<tenon.Tokenizer, {self._tokenizer.model}, {len(self)} tokens>"


class Match(NamedTuple):
    """A row of vectors and the cosine of its angle to the query."""

    row: int
    score: float


class Encoder:
    """Texts to vectors, with a model and its tokenizer.

    encoder = tenon.Encoder.load("minilm")         # a folder with model.onnx and tokenizer.json
    vectors = encoder.encode(["a text", "another"])
    encoder.similarity("a question", vectors)
    """

    def __init__(self, encoder: Any):
        self._encoder = encoder

    @staticmethod
    def load(
        path: Path,
        *,
        pooling: Optional[str] = None,
        normalize: bool = True,
        max_tokens: Optional[int] = None,
        batch: int = 32,
        dtype: Union[DType, str, None] = None,
    ) -> Encoder:
        """The encoder in a folder with model.onnx and tokenizer.json, or of a model file beside its tokenizer.json.

        pooling: "mean" of the vectors of all tokens, the "first" or "last", "max", "mean_sqrt_len" or "weighted_mean". Texts are
        cut to max_tokens and run in batches. None: what the model's files say, else "mean" and 512.
        dtype: as for Model.load.
        """
        return Encoder(_core._Encoder.load(os.fspath(path), pooling, normalize, max_tokens, batch, dtype))

    @property
    def model(self) -> Model:
        return Model(self._encoder.model)

    @property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(self._encoder.tokenizer)

    def encode(
        self,
        texts: Union[str, Sequence[str]],
        *,
        device: DeviceLike = None,
        routing: Optional[Routing] = None,
        prefer: DeviceLike = None,
        timeout: Optional[float] = None,
        priority: int = 0,
        on_progress: OnProgress = None,
        on_batch: Optional[Callable[[int], object]] = None,
        _cancel: Any = None,
    ) -> Array:
        """A float32 array with a row for each text, or the vector of one. `on_batch` is told how many texts are done."""
        given = [texts] if isinstance(texts, str) else list(texts)
        tell = _progress_callback(on_progress)
        vectors: Array = self._encoder.encode(
            given, _text(device), timeout, priority, tell, on_batch, _cancel, routing, _text(prefer)
        )
        return vectors[0] if isinstance(texts, str) else vectors

    async def encode_async(self, texts: Union[str, Sequence[str]], **options: Any) -> Array:
        """encode() without blocking the event loop."""
        from ._async import _in_thread

        cancel = _core._Cancel()
        return await _in_thread(lambda: self.encode(texts, _cancel=cancel, **options), cancel.cancel)

    def similarity(self, a: Any, b: Any) -> Array:
        """The cosines of each of a with each of b, which are texts or vectors."""
        return similarity(self._vectors(a), self._vectors(b))

    def most_similar(self, query: Any, among: Any, count: int = 5) -> list[Match]:
        """The best matches of a text or vector among texts or vectors, best first."""
        return most_similar(self._vectors(query), self._vectors(among), count)

    def _vectors(self, given: Any) -> Array:
        if isinstance(given, str) or (isinstance(given, (list, tuple)) and given and isinstance(given[0], str)):
            return self.encode(given)
        return _core._asarray(given, None, None)

    def __repr__(self) -> str:
        return f"<tenon.Encoder of {self.model!r}>"


def similarity(a: Any, b: Any) -> Array:
    """The cosines of the angles between the rows of a and those of b. A vector is one row, without an axis in the result."""
    unit = []
    for given in (a, b):
        x = _core._asarray(given, None, None)
        x = x if x.dtype.kind == "float" else x.cast(_core.dtype("float32"))
        if x.ndim not in (1, 2):
            raise ValueError(f"similarity needs vectors or rows of vectors; this array has shape {x.shape}")
        unit.append(x / (x * x).sum(axis=-1, keepdims=True).sqrt().maximum(1e-12))
    return unit[0] @ unit[1].T


def most_similar(query: Any, among: Any, count: int = 5) -> list[Match]:
    """The rows of `among` with the largest cosine to the vector `query`, best first."""
    rows, wanted = _core._asarray(among, None, None), _core._asarray(query, None, None)
    return [Match(*match) for match in _core._most_similar(rows, wanted, count)]
