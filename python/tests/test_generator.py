"""Language models: text from the tiny GGUF files of tests/model/gguf, whose tokens NumPy computed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import tenon as tn

FILES = os.path.join(os.environ.get("TENON_SOURCE") or os.path.join(os.path.dirname(__file__), "..", ".."), "tests/model/gguf")
with open(os.path.join(FILES, "expected.json"), encoding="utf-8") as file:
    EXPECTED = json.load(file)
CHATTY = {"max_tokens": 24, "temperature": 3.0, "seed": 4}  # pieces of many kinds


@pytest.fixture(scope="module")
def llama():
    return tn.Generator.load(os.path.join(FILES, "llama_q4_1.gguf"), device="cpu")


@pytest.mark.parametrize("name", ["llama_f32.gguf", "qwen2_f16.gguf", "llama_q4_1.gguf"])
def test_a_model_generates_what_numpy_generates(name):
    generator = tn.Generator.load(os.path.join(FILES, name), device="cpu")
    wanted = EXPECTED[name]["greedy"]
    one = generator.generate(EXPECTED[name]["prompt"], max_tokens=len(wanted))
    assert one.ids == wanted and one.finish == "length" and one.prompt_tokens == len(EXPECTED[name]["prompt"])
    assert one.tokens_per_second > 0


def test_a_folder_of_safetensors_generates_what_transformers_generates():
    folders = os.path.join(FILES, "..", "decoders")
    with open(os.path.join(folders, "expected.json"), encoding="utf-8") as recorded:
        expected = json.load(recorded)["phi3"]
    generator = tn.Generator.load(os.path.join(folders, "phi3"), device="cpu", weights="float32")
    one = generator.generate(expected["prompt"][:9], max_tokens=12)
    wanted = expected["greedy"][:12]
    assert one.ids == (wanted[: wanted.index(1)] if 1 in wanted else wanted)
    assert generator.info["format"] == "safetensors" and generator.chat_format == "ChatML"


def test_a_model_describes_itself(llama):
    assert llama.info["format"] == "GGUF 3" and llama.info["metadata"]["general.architecture"] == "llama"
    assert llama.context == 1024 and llama.device == "cpu:0" and llama.chat_format == "ChatML"
    assert llama.weight_bytes > 0 and llama.sequence_bytes(512) > llama.sequence_bytes(16) > 0
    assert len(llama.tokenizer) == 288 and "1024 tokens" in repr(llama)
    floats = tn.Generator.load(os.path.join(FILES, "llama_q4_1.gguf"), device="cpu", weights="float32")
    assert floats.weight_bytes > 3 * llama.weight_bytes


def test_the_pieces_of_a_stream_are_the_text(llama):
    stream = llama.stream([5, 6], **CHATTY)
    assert stream.result is None
    pieces = list(stream)
    whole = llama.generate([5, 6], **CHATTY)
    assert len(pieces) > 1 and "".join(pieces) == whole.text == stream.result.text
    assert stream.result.ids == whole.ids and next(stream, "none") == "none"


def test_a_stream_that_is_left_keeps_what_there_was(llama):
    with llama.stream([5, 6], **CHATTY) as stream:
        first = next(stream)
    assert stream.result.finish == "cancelled" and stream.result.text.startswith(first)
    assert len(stream.result.ids) < 24
    with pytest.raises(StopIteration):
        next(stream)


def test_equal_seeds_give_equal_texts_and_options_count(llama):
    def ids(**options):
        return llama.generate([5, 6], **{**CHATTY, **options}).ids

    assert ids() == ids() and ids() != ids(seed=5)
    assert ids(top_k=1) == ids(temperature=0.0) == ids(top_p=1e-9)
    assert ids(temperature=0.0, repeat_penalty=5.0) != ids(temperature=0.0)
    assert len(ids(max_tokens=3)) == 3


def test_a_stop_text_ends_the_text_and_is_no_part_of_it(llama):
    whole = llama.generate([5, 6], **CHATTY).text
    middle = whole[len(whole) // 2 :][:3]
    for stop in (middle, [middle, "never"]):
        cut = llama.generate([5, 6], **CHATTY, stop=stop)
        assert cut.finish == "stop" and cut.text == whole[: whole.index(middle)]


def test_prompts_are_texts_tokens_or_conversations(llama):
    assert llama.generate("hello", max_tokens=4).ids == llama.generate(llama.tokens("hello"), max_tokens=4).ids
    chat = [{"role": "system", "content": "the"}, {"role": "user", "content": "hello world"}]
    text = llama.tokenizer.decode(llama.tokens(chat), skip_special=False)
    assert text == (
        "<|im_start|>system\nthe<|im_end|>\n<|im_start|>user\nhello world<|im_end|>\n<|im_start|>assistant\n"
    )
    assert llama.tokens([("system", "the"), ("user", "hello world")]) == llama.tokens(chat)
    answer = llama.chat(chat, max_tokens=4)
    assert answer.ids == llama.generate(chat, max_tokens=4).ids and answer.prompt_tokens == len(llama.tokens(chat))
    assert llama.generate(tn.array([5, 6]), max_tokens=4).ids == llama.generate([5, 6], max_tokens=4).ids


def test_a_batch_gives_what_each_prompt_gives_alone(llama):
    prompts = [[5, 6], "hello", [("user", "x")]]
    together = llama.generate_all(prompts, max_tokens=6, temperature=0.9, seed=11)
    assert [one.ids for one in together] == [
        llama.generate(prompt, max_tokens=6, temperature=0.9, seed=11).ids for prompt in prompts
    ]


def test_what_cannot_be_generated_is_refused_with_a_reason(llama, tmp_path):
    with pytest.raises(ValueError, match="empty"):
        llama.generate([])
    with pytest.raises(ValueError, match="token 288"):
        llama.stream([288])  # before the first piece
    with pytest.raises(ValueError, match="1024 tokens"):
        llama.generate([5] * 1024)
    with pytest.raises(ValueError, match="temperature"):
        llama.generate([5], temperature=-1)
    with pytest.raises(TypeError, match="list of messages"):
        llama.chat("hello")
    with pytest.raises(ValueError, match="robot"):
        llama.chat([{"role": "robot", "content": "x"}])
    with pytest.raises(NotImplementedError):
        tn.Generator.load(os.path.join(FILES, "qwen2_f16.gguf")).chat([("user", "x")])
    with pytest.raises(LookupError):
        tn.Generator.load(tmp_path / "none.gguf")
    with pytest.raises(ValueError, match="weights"):
        tn.Generator.load(os.path.join(FILES, "llama_f32.gguf"), weights="int3")


def test_a_model_is_loaded_for_the_device_of_the_context(card):
    stages = []
    with tn.device(card):
        generator = tn.Generator.load(os.path.join(FILES, "llama_q4_1.gguf"))
    assert generator.device == card
    one = generator.generate(EXPECTED["llama_q4_1.gguf"]["prompt"], max_tokens=8, on_progress=stages.append)
    assert one.ids == EXPECTED["llama_q4_1.gguf"]["greedy"][:8]
    assert {"computing"} <= {progress.stage for progress in stages} and {progress.device for progress in stages} == {card}


def test_others_have_the_device_between_two_pieces(card):
    generator = tn.Generator.load(os.path.join(FILES, "llama_q4_1.gguf"), device=card)
    stream = generator.stream([5, 6], **CHATTY)
    text = next(stream)
    for piece in stream:
        text += piece
        done = []
        other = threading.Thread(target=lambda: done.append(tn.eval(tn.ones(2) + 1, device=card, timeout=30).device))
        other.start()
        other.join()
        assert done == [card]
    assert text == stream.result.text


def test_the_interpreter_runs_while_a_text_waits_for_the_device(card):
    generator = tn.Generator.load(os.path.join(FILES, "llama_q4_1.gguf"), device=card)
    held, waits = threading.Event(), threading.Event()

    def hold():
        with tn.lease(card):
            held.set()
            assert waits.wait(60)  # Python runs here while the main thread is in generate()

    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(60)
    one = generator.generate(
        [5, 6], max_tokens=2, timeout=60, on_progress=lambda progress: waits.set() if progress.stage == "queued" else None
    )
    other.join()
    assert len(one.ids) == 2


def test_ctrl_c_ends_a_text_that_waits_or_computes():
    program = textwrap.dedent(f"""
        import threading
        import tenon as tn
        card = tn.simulate("wormhole", open="1ms")
        generator = tn.Generator.load({os.path.join(FILES, "llama_q4_1.gguf")!r}, device=card)
        for what in ("compute", "wait"):
            if what == "wait":
                held, never = threading.Event(), threading.Event()
                def hold():
                    with tn.lease(card):
                        held.set()
                        never.wait()
                threading.Thread(target=hold, daemon=True).start()
                held.wait()
            def say(progress, said=[]):
                if not said and (what == "compute" or progress.stage == "queued"):
                    said.append(True)
                    print("begun", flush=True)
            try:
                while True:
                    with generator.stream([5, 6], max_tokens=1000, on_progress=say) as stream:
                        for piece in stream:
                            pass
            except KeyboardInterrupt:
                print("interrupted", flush=True)
        import os
        os._exit(0)
        """)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    for _ in range(2):
        assert process.stdout.readline().strip() == "begun"
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.readline().strip() == "interrupted"
    assert process.wait(60) == 0


def test_a_signal_that_raises_nothing_leaves_the_text_as_it_is(llama, card):
    """A handler of the program's own may interrupt a wait for the device: the token is computed again, and the text is the same."""
    generator = tn.Generator.load(os.path.join(FILES, "llama_q4_1.gguf"), device=card)
    calls = []

    def interrupt(progress):
        if progress.stage == "computing" and len(calls) < 5:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, lambda *_: calls.append(True))
    try:
        text = "".join(generator.stream([5, 6], **CHATTY, on_progress=interrupt))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(calls) == 5 and text == llama.generate([5, 6], **CHATTY).text


def test_texts_come_through_the_event_loop(llama):
    async def main():
        stream = llama.stream([5, 6], **CHATTY)
        pieces = [piece async for piece in stream]
        one, answer = await asyncio.gather(
            llama.generate_async([5, 6], **CHATTY), llama.chat_async([("user", "x")], max_tokens=2)
        )
        return pieces, stream.result, one, answer

    pieces, result, one, answer = asyncio.run(main())
    assert "".join(pieces) == result.text == one.text and len(answer.ids) == 2


def test_cancelling_a_task_ends_its_text(card):
    generator = tn.Generator.load(os.path.join(FILES, "llama_q4_1.gguf"), device=card)

    async def main():
        async with tn.lease(card):
            pass
        waits = asyncio.Event()
        loop = asyncio.get_running_loop()
        held, release = threading.Event(), threading.Event()

        def hold():
            with tn.lease(card):
                held.set()
                release.wait(60)

        other = threading.Thread(target=hold)
        other.start()
        assert held.wait(60)
        stream = generator.stream([5, 6], on_progress=lambda _: loop.call_soon_threadsafe(waits.set))

        async def read():
            async for _ in stream:
                pass

        task = asyncio.ensure_future(read())
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        other.join()
        return stream

    stream = asyncio.run(main())
    assert next(stream, "none") == "none"
    assert generator.generate([5, 6], max_tokens=2, timeout=60).finish == "length"  # the device is free again


def test_a_stream_is_read_by_one_thread_at_a_time(card):
    generator = tn.Generator.load(os.path.join(FILES, "llama_q4_1.gguf"), device=card)
    errors = []

    def read_within(progress):
        try:
            next(stream)
        except tn.FailedPrecondition as error:
            errors.append(error)

    stream = generator.stream([5, 6], max_tokens=2, on_progress=read_within)
    list(stream)
    assert errors and "another thread" in str(errors[0])
