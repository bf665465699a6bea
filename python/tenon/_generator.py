"""Language models: text from a GGUF file or a folder of safetensors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from . import _core
from ._devices import _requested, _text
from ._evaluation import _progress_callback
from ._model import Path, Tokenizer

if TYPE_CHECKING:
    from ._devices import DeviceLike
    from ._evaluation import OnProgress

Message = Union[Mapping[str, str], tuple[str, str]]
Prompt = Union[str, Iterable[int], Sequence[Message]]


class Generation(NamedTuple):
    """A generated text."""

    text: str
    ids: list[int]
    finish: str
    """"stop": the model or a stop text ended it; "length": max_tokens or the context; "cancelled": the caller."""
    prompt_tokens: int
    prompt_seconds: float
    seconds: float
    """For the tokens after the first."""

    @property
    def tokens_per_second(self) -> float:
        return (len(self.ids) - 1) / self.seconds if len(self.ids) > 1 and self.seconds > 0 else 0.0


class _Call(NamedTuple):
    """The options of stream(), in the order of its parameters and with their defaults."""

    max_tokens: int = 256
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    repeat_penalty: float = 1.0
    seed: int = 0
    stop: Union[str, Sequence[str]] = ()
    timeout: Optional[float] = None
    priority: int = 0
    on_progress: Any = None
    cancel: Any = None

    def sampling(self) -> tuple[Any, ...]:
        texts = [self.stop] if isinstance(self.stop, str) else list(self.stop)
        numbers = (float(self.temperature), self.top_k, float(self.top_p), float(self.repeat_penalty))
        return (self.max_tokens, *numbers, self.seed, texts)

    def rest(self) -> tuple[Any, ...]:
        return (self.timeout, self.priority, _progress_callback(self.on_progress), self.cancel)


class TextStream:
    """The pieces of a text while it is generated: `for piece in generator.stream(...)`, or `async for`.

    Tokens are computed when the next piece is asked for; in between no device is held. close(), the end of a `with`, an error and
    Ctrl-C end the text. `result` is the whole of it.
    """

    def __init__(self, stream: Any, cancel: Any):
        self._stream = stream
        self._cancel = cancel

    @property
    def result(self) -> Optional[Generation]:
        """What was generated, as soon as the text has ended; None before."""
        result = self._stream.result
        return None if result is None else Generation(*result)

    def close(self) -> None:
        """Ends the text here and frees its memory on the device."""
        self._stream.close()

    def __iter__(self) -> TextStream:
        return self

    def __next__(self) -> str:
        piece: Optional[str] = self._stream.next()
        if piece is None:
            raise StopIteration
        return piece

    def __enter__(self) -> TextStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> TextStream:
        return self

    async def __anext__(self) -> str:
        from ._async import _in_thread

        piece: Optional[str] = await _in_thread(self._stream.next, self._cancel.cancel)
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def __aenter__(self) -> TextStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class Generator:
    """A language model: prompts or conversations to text.

    generator = tenon.Generator.load("smollm2.gguf")
    generator.generate("The capital of France is", max_tokens=16).text
    for piece in generator.stream([{"role": "user", "content": "What is a lease?"}], temperature=0.7, seed=1):
        print(piece, end="", flush=True)

    Loading opens no device. Keys and values stay on the device between tokens, and every token is a lease of its own. A prompt is
    a text, a list of tokens, or a conversation: a list of messages with the members "role" ("system", "user", "assistant") and
    "content".
    """

    def __init__(self, generator: Any):
        self._generator = generator

    @staticmethod
    def load(path: Path, *, device: DeviceLike = None, weights: str = "auto") -> Generator:
        """The model in a GGUF file or in a folder of Hugging Face, for a device.

        weights: "auto" keeps small integers on CPUs and GPUs and makes 16-bit floats elsewhere; "float16" and "float32" make floats.
        """
        request = _text(device) or _requested.get() or "auto"
        return Generator(_core._Generator.load(os.fspath(path), request, weights))

    @property
    def info(self) -> dict[str, Any]:
        """Format, parameters, weight_bytes (of the file) and metadata."""
        info: dict[str, Any] = self._generator.info
        return info

    @property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer(self._generator.tokenizer)

    @property
    def context(self) -> int:
        """How many tokens a prompt and its answer may have together."""
        return int(self._generator.context)

    @property
    def device(self) -> str:
        """The id of the device it was loaded for."""
        return str(self._generator.device)

    @property
    def weight_bytes(self) -> int:
        """Of the weights as they are kept for that device."""
        return int(self._generator.weight_bytes)

    @property
    def chat_format(self) -> str:
        """The format of conversations: "ChatML", "Llama 3" ...; "" if the model has none that is known."""
        return str(self._generator.chat_format)

    def sequence_bytes(self, tokens: int) -> int:
        """At most, for the keys and values of a sequence of so many tokens."""
        return int(self._generator.sequence_bytes(tokens))

    def tokens(self, prompt: Prompt) -> list[int]:
        """The tokens of a prompt, with the one that begins a text if the model has it, or of a conversation."""
        if isinstance(prompt, str):
            return list(self._generator.tokens(prompt))
        given: list[Any] = list(prompt)
        if given and (isinstance(given[0], Mapping) or (isinstance(given[0], tuple) and len(given[0]) == 2)):
            messages = [(one["role"], one["content"]) if isinstance(one, Mapping) else tuple(one) for one in given]
            return list(self._generator.chat_tokens(messages))
        return [int(id) for id in given]

    def stream(
        self,
        prompt: Prompt,
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        repeat_penalty: float = 1.0,
        seed: int = 0,
        stop: Union[str, Sequence[str]] = (),
        timeout: Optional[float] = None,
        priority: int = 0,
        on_progress: OnProgress = None,
        _cancel: Any = None,
    ) -> TextStream:
        """The text in pieces, each as soon as it is certain: for `for` or `async for`.

        temperature 0 takes the most likely token each time; otherwise one is drawn with the seed from the top_k most likely
        (0: all) that together have the probability top_p. repeat_penalty above 1 makes the last 64 tokens less likely. `stop`:
        texts that end the generation and are no part of it. timeout: for each wait for the device.
        """
        cancel = _core._Cancel() if _cancel is None else _cancel
        call = _Call(
            max_tokens, temperature, top_k, top_p, repeat_penalty, seed, stop, timeout, priority, on_progress, cancel
        )
        return TextStream(self._generator.stream(self.tokens(prompt), call.sampling(), *call.rest()), cancel)

    def generate(self, prompt: Prompt, **options: Any) -> Generation:
        """The whole text. Options are those of stream(). Ctrl-C ends it."""
        with self.stream(prompt, **options) as stream:
            for _ in stream:
                pass
            result = stream.result
        assert result is not None
        return result

    def chat(self, messages: Sequence[Message], **options: Any) -> Generation:
        """The assistant's answer to a conversation. Options are those of stream()."""
        if isinstance(messages, str):
            raise TypeError("chat() takes a list of messages; for a text use generate()")
        return self.generate(messages, **options)

    def generate_all(self, prompts: Iterable[Prompt], **options: Any) -> list[Generation]:
        """The texts of several prompts in one batch, each as if it were alone. Options are those of stream()."""
        call = _Call(**options)
        results = self._generator.generate_all([self.tokens(prompt) for prompt in prompts], call.sampling(), *call.rest())
        return [Generation(*one) for one in results]

    async def generate_async(self, prompt: Prompt, **options: Any) -> Generation:
        """generate() without blocking the event loop. Cancelling the task ends the text."""
        from ._async import _in_thread

        cancel = _core._Cancel()
        return await _in_thread(lambda: self.generate(prompt, _cancel=cancel, **options), cancel.cancel)

    async def chat_async(self, messages: Sequence[Message], **options: Any) -> Generation:
        """chat() without blocking the event loop."""
        from ._async import _in_thread

        cancel = _core._Cancel()
        return await _in_thread(lambda: self.chat(messages, _cancel=cancel, **options), cancel.cancel)

    def __repr__(self) -> str:
        name = self.info["metadata"].get("general.name") or self.info["metadata"].get("general.architecture", "")
        return f"<tenon.Generator {name!r}, {self.context} tokens, on {self.device}>"
