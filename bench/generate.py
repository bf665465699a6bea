#!/usr/bin/env python3
"""Language models: Tenon and llama.cpp on one file. Greedy tokens compared one by one, then the speed of prompt and generation.

    bench/generate.py TENON MODEL.gguf [--threads 1] [--rounds 5] [--plain] [--prebuilt]

llama.cpp is PyPI's llama-cpp-python, built from source for this machine, in this interpreter; --plain turns off its special buffers (AMX,
repacking). --prebuilt takes PyPI's xllamacpp instead, whose wheel is compiled for AVX2; it gives texts and no tokens, so texts are compared. Its keys and values are float32 as Tenon's are, not its default of float16. Times are processor time, because other work on the machine would disturb the clock; with one thread they are the same on a quiet
one. With several threads, which --prebuilt measures, they are those by the clock that both programs report. The rounds of the two alternate, and the median counts. Prints a table in Markdown.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

PROMPTS = ["The capital of France is", "Once upon a time", "def fibonacci(n):\n", "Water boils at", "The three laws of thermodynamics are", "In 1969, ", "Dear Sir or Madam,", "Q: What is 12 * 12?\nA:"]
LONG = "The history of computing began long before the modern computer. " * 40
TOKENS = 128


def tenon(arguments, prompt, tokens, *more):
    """The answer and the processor time of the whole program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([arguments.tenon, "generate", prompt, "--model", arguments.model, "--max-tokens", str(tokens), "--json", "--device", "cpu", "--quiet", *more],
                          capture_output=True, text=True, check=True, env=dict(os.environ, TENON_THREADS=str(arguments.threads)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(done.stdout), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tenon_speed(arguments):
    one, start = tenon(arguments, PROMPTS[1], 1)
    long, prompt = tenon(arguments, LONG, 1)
    many, generation = tenon(arguments, PROMPTS[1], TOKENS)
    if arguments.threads > 1:
        return long["prompt_tokens_per_second"], many["tokens_per_second"], start
    return (long["prompt_tokens"] - one["prompt_tokens"]) / (prompt - start), (many["tokens"] - 1) / (generation - start), start


def load_peer(arguments):
    import llama_cpp
    import llama_cpp.llama_cpp as low
    if arguments.plain:
        original = low.llama_model_default_params

        def plain():
            parameters = original()
            parameters.use_extra_bufts = False
            return parameters
        low.llama_model_default_params = llama_cpp.llama_model_default_params = plain
    begin = time.process_time()
    peer = llama_cpp.Llama(arguments.model, n_ctx=2048, n_threads=arguments.threads, n_threads_batch=arguments.threads, verbose=False, n_batch=512,
                           type_k=low.GGML_TYPE_F32, type_v=low.GGML_TYPE_F32)
    return peer, time.process_time() - begin


def peer_greedy(peer, prompt, tokens):
    """The prompt's tokens, those after them, the time up to the first, and the time of the others."""
    ids = peer.tokenize(prompt.encode(), add_bos=False, special=True)
    peer.reset()
    out, begin, first = [], time.process_time(), None
    for token in peer.generate(ids, top_k=1, top_p=1.0, min_p=0.0, temp=0.0, repeat_penalty=1.0):
        first = first or time.process_time()
        if token == peer.token_eos():
            break
        out.append(token)
        if len(out) == tokens:
            break
    return ids, out, first - begin, time.process_time() - first


class Prebuilt:
    """llama.cpp as PyPI's xllamacpp has it."""

    def __init__(self, arguments):
        import xllamacpp
        parameters = xllamacpp.CommonParams()
        parameters.model.path = arguments.model
        parameters.n_ctx, parameters.n_parallel, parameters.n_batch = 2048, 1, 512
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = arguments.threads
        parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        parameters.warmup, parameters.no_extra_bufts = False, arguments.plain
        begin = time.process_time()
        self.server = xllamacpp.Server(parameters)
        self.load, self.threads = time.process_time() - begin, arguments.threads

    def greedy(self, prompt, tokens):
        """The text, the prompt's tokens, those after it, and the time of both."""
        begin = time.process_time()
        answer = self.server.handle_completions({"prompt": prompt, "n_predict": tokens, "temperature": 0, "cache_prompt": False})
        usage, self.timings = answer["usage"], answer["timings"]
        return answer["choices"][0]["text"], usage["prompt_tokens"], usage["completion_tokens"], time.process_time() - begin

    def speed(self):
        _, short, _, start = self.greedy(PROMPTS[1], 1)
        _, long, _, prompt = self.greedy(LONG, 1)
        prompt_rate = self.timings["prompt_per_second"]
        _, _, many, generation = self.greedy(PROMPTS[1], TOKENS)
        if self.threads > 1:
            return prompt_rate, self.timings["predicted_per_second"], self.load
        return (long - short) / (prompt - start), (many - 1) / (generation - start), self.load


def compare_texts(arguments, peer, *more):
    equal = 0
    for prompt in PROMPTS:
        theirs, ours = peer.greedy(prompt, 64)[0], tenon(arguments, prompt, 64, *more)[0]["text"]
        same = len(os.path.commonprefix([ours, theirs]))
        equal += ours == theirs
        print(f"{prompt!r}: equal {'' if ours == theirs else f'up to letter {same} '}of {len(theirs)} letters", file=sys.stderr)
    return equal


def compare(arguments, peer, *more):
    equal = 0
    for prompt in PROMPTS:
        theirs, ours = peer_greedy(peer, prompt, 64)[1], tenon(arguments, prompt, 64, *more)[0]["ids"]
        same = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        equal += ours == theirs
        print(f"{prompt!r}: equal {'' if ours == theirs else f'up to token {same} '}of {len(theirs)} tokens", file=sys.stderr)
    return equal


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon")
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--prebuilt", action="store_true")
    arguments = parser.parse_args()
    ours, theirs = [], []
    if arguments.prebuilt:
        peer = Prebuilt(arguments)
        equal, ids = compare_texts(arguments, peer), range(peer.greedy(LONG, 1)[1])
    else:
        peer, load_seconds = load_peer(arguments)
        equal = compare(arguments, peer)
    for _ in range(arguments.rounds):
        if arguments.prebuilt:
            theirs.append(peer.speed())
            ours.append(tenon_speed(arguments))
            continue
        ids, _, prompt, _ = peer_greedy(peer, LONG, 1)
        _, out, _, generation = peer_greedy(peer, PROMPTS[1], TOKENS)
        theirs.append((len(ids) / prompt, (len(out) - 1) / generation, load_seconds))
        ours.append(tenon_speed(arguments))
    print(f"| {arguments.threads} thread | prompt of {len(ids)} tokens, tokens/s | generation, tokens/s | load, s |\n| --- | --- | --- | --- |")
    for name, rounds in (("Tenon", ours), ("llama.cpp", theirs)):
        prompt, generation, load = (statistics.median(each) for each in zip(*rounds))
        print(f"| {name} | {prompt:.0f} | {generation:.1f} | {load:.2f} |")
    print(f"\n{equal} of {len(PROMPTS)} greedy texts of 64 tokens are equal.")


main()
