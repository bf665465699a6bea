#!/usr/bin/env python3
"""Language models: Tenon and llama.cpp on one file. Greedy tokens compared one by one, then the speed of prompt and generation.

    bench/generate.py TENON MODEL.gguf [--threads 1] [--rounds 5] [--plain]

llama.cpp is PyPI's llama-cpp-python, built from source for this machine, in this interpreter; --plain turns off its special buffers (AMX,
repacking). Its keys and values are float32 as Tenon's are, not its default of float16. Times are processor time, because other work on the machine would disturb the clock; with one thread they are the same on a quiet
one. The rounds of the two alternate, and the median counts. Prints a table in Markdown.
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
    arguments = parser.parse_args()
    peer, load_seconds = load_peer(arguments)
    equal = compare(arguments, peer)
    ours, theirs = [], []
    for _ in range(arguments.rounds):
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
