#!/usr/bin/env python3
"""Judges real models by ONNX Runtime: agreement, time, loading and memory, both with one thread (or --threads N).

    tools/models
    python3 -m venv /tmp/judge && /tmp/judge/bin/pip install onnxruntime
    /tmp/judge/bin/python bench/models/compare.py build/release/tenon build/models/real [MODEL...] [--batch 1 8 32]

Inputs are the recorded ones of a model, repeated to the batch with small changes. Times are processor time of one call: the least of
all calls, which neighbours on the machine disturb least; with several threads they are the tenth percentile of the time by the clock, for
which the machine should be quiet. The difference is that of our outputs, in the dtype of the products that is measured. The two runtimes take turns, three rounds each. Memory is the largest resident
set of a process that loads the model and calls it for a while."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy

TYPES = {"F32": numpy.float32, "F64": numpy.float64, "I64": numpy.int64, "I32": numpy.int32, "U8": numpy.uint8, "I8": numpy.int8, "BOOL": numpy.bool_}
NAMES = {numpy.dtype(value).name: key for key, value in TYPES.items()}


def load(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    return {
        name: numpy.frombuffer(data[slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def save(path, arrays):
    header, place = {}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": NAMES[array.dtype.name], "shape": list(array.shape), "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(numpy.ascontiguousarray(array).tobytes())


def batched(array, batch):
    """The first row, |batch| times, none exactly like another."""
    if array.ndim == 0:
        return array
    axis = 1 if array.ndim == 3 and array.shape[0] == 2 and array.shape[2] == 128 else 0  # the state of a recurrent net
    rows = [numpy.take(array, [0], axis) for _ in range(batch)]
    if array.dtype == numpy.float32:
        rows = [row * numpy.float32(1 - 0.01 * i) for i, row in enumerate(rows)]
    return numpy.ascontiguousarray(numpy.concatenate(rows, axis))


def judge(model, inputs_file, seconds, threads):
    """In a process of its own: load, call, measure; the outputs and the figures."""
    code = f"""
import sys, time, json
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import compare, onnxruntime
onnxruntime.set_default_logger_severity(3)
inputs = {{k[6:]: v for k, v in compare.load({inputs_file!r}).items() if k.startswith("input.")}}
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = {threads}
options.inter_op_num_threads = 1
start = time.process_time()
session = onnxruntime.InferenceSession({model!r}, options, providers=["CPUExecutionProvider"])
load = time.process_time() - start
outputs = session.run(None, inputs)
compare.save({inputs_file!r}, {{**{{"input." + k: v for k, v in inputs.items()}},
    **{{"output." + o.name: v for o, v in zip(session.get_outputs(), outputs)}}}})
times, end = [], time.monotonic() + {seconds}
clock = time.process_time if {threads} == 1 else time.perf_counter
while len(times) < 3 or time.monotonic() < end:
    start = clock()
    session.run(None, inputs)
    times.append(clock() - start)
best = min(times) if {threads} == 1 else sorted(times)[len(times) // 10]
rss = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({{"load": load, "rss": rss * 1024, "call": best}}))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(result.stderr.strip().splitlines()[-1])
    return json.loads(result.stdout)


def ours(tenon, model, inputs_file, names, seconds, threads, dtype):
    arguments = [f"{name}=@{inputs_file}:input.{name}" for name in names]
    result = subprocess.run(
        [tenon, "model", "bench", model, *arguments, "--device", "cpu", "--dtype", dtype, "--seconds", str(seconds), "--json"],
        capture_output=True, text=True, env={**os.environ, "TENON_THREADS": str(threads)},
    )
    if result.returncode:
        raise RuntimeError(result.stderr.strip())
    figures = json.loads(result.stdout)
    return {"load": figures["load_cpu_seconds"], "rss": figures["memory_bytes"], "call": figures["least_cpu_seconds" if threads == 1 else "p10_seconds"], "first": figures["first_seconds"]}


def difference(tenon, model, inputs_file, names, device, dtype):
    """The largest difference of our outputs to the recorded ones, of the largest element."""
    recorded = {key[7:]: value for key, value in load(inputs_file).items() if key.startswith("output.")}
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "outputs.safetensors")
        arguments = [f"{name}=@{inputs_file}:input.{name}" for name in names]
        result = subprocess.run([tenon, "model", "run", model, *arguments, "--device", device, "--dtype", dtype, "-o", file], capture_output=True, text=True)
        if result.returncode:
            return result.stderr.strip().splitlines()[0]
        outputs = load(file)
    ratios = [numpy.abs(outputs[name].astype(float) - value).max() / max(numpy.abs(value).max(), 1e-30) for name, value in recorded.items() if value.size]
    return f"{max(ratios):.0e}"


def agreement(tenon, model, inputs_file, device):
    result = subprocess.run(
        [tenon, "model", "compare", model, "--reference", inputs_file, "--device", device, "--json"], capture_output=True, text=True)
    if result.returncode not in (0, 5):
        return result.stderr.strip().splitlines()[0]
    outputs = json.loads(result.stdout)["outputs"]
    return f"{max(o['relative_difference'] for o in outputs):.0e}" + ("" if result.returncode == 0 else " (differs)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tenon")
    parser.add_argument("folder")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--batch", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu", help="of the agreement")
    parser.add_argument("--dtype", default="float32", help="of our products")
    arguments = parser.parse_args()
    print("| model | batch | ours ms | ONNX Runtime ms | ratio | difference | load ms | ONNX Runtime | memory MB | ONNX Runtime |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.models or sorted(os.listdir(arguments.folder)):
        place = os.path.join(arguments.folder, name)
        model = os.path.join(place, "model.onnx")
        recorded = load(os.path.join(place, sorted(f for f in os.listdir(place) if f.endswith(".safetensors"))[-1]))
        inputs = {key[6:]: value for key, value in recorded.items() if key.startswith("input.")}
        for batch in arguments.batch:
            with tempfile.TemporaryDirectory() as folder:
                file = os.path.join(folder, "case.safetensors")
                save(file, {"input." + key: batched(value, batch) for key, value in inputs.items()})
                try:
                    theirs, mine = [], []
                    for _ in range(arguments.rounds):
                        theirs.append(judge(model, file, arguments.seconds, arguments.threads))
                        mine.append(ours(arguments.tenon, model, file, inputs, arguments.seconds, arguments.threads, arguments.dtype))
                    least = lambda figures, key: min(figure[key] for figure in figures)
                    a, b = least(mine, "call") * 1e3, least(theirs, "call") * 1e3
                    if arguments.dtype == "float32":
                        agrees = agreement(arguments.tenon, model, file, arguments.device)
                    else:
                        agrees = difference(arguments.tenon, model, file, inputs, arguments.device, arguments.dtype)
                    print(
                        f"| {name} | {batch} | {a:.2f} | {b:.2f} | {a / b:.2f} | {agrees} "
                        f"| {least(mine, 'load') * 1e3:.0f} | {least(theirs, 'load') * 1e3:.0f} "
                        f"| {least(mine, 'rss') / 1e6:.0f} | {least(theirs, 'rss') / 1e6:.0f} |", flush=True)
                except RuntimeError as error:
                    print(f"| {name} | {batch} | {str(error)[:160]} |", flush=True)


if __name__ == "__main__":
    main()
