#!/usr/bin/env python3
"""exported.py TENON [NAME...]: exports models with random weights, compares their outputs with ONNX Runtime's, and times both with one
thread, one after the other: the median of calls on the same inputs.

    pip install torch torchvision onnx onnxruntime onnxscript scikit-learn skl2onnx
    chrt -r 10 taskset -c 1 python bench/models/exported.py build/release/tenon

bench/results/onnx.md has results."""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import onnxruntime
import torch
import torchvision.models as nets
from onnxruntime import quantization
from sklearn import datasets, ensemble, linear_model
from skl2onnx import to_onnx

warnings.filterwarnings("ignore")
torch.manual_seed(0)


class Detector(torch.nn.Module):
    def __init__(self, make, **sizes):
        super().__init__()
        self.net = make(weights=None, weights_backbone=None, **sizes)

    def forward(self, x):
        found = self.net([x[0]])[0]
        return found["boxes"], found["scores"], found["labels"]


def exported(net, path, batch=3, size=64):
    x = torch.rand(batch, 3, size, size)
    torch.onnx.export(net.eval(), (x,), path, input_names=["x"], opset_version=17, dynamo=False)
    return {"x": x.numpy()}


def learner(model, path):
    x, y = datasets.make_classification(300, 12, n_informative=8, n_classes=3, random_state=0)
    x = x.astype(np.float32)
    with open(path, "wb") as file:
        file.write(to_onnx(model.fit(x, y), x[:1], options={id(model): {"zipmap": False}}).SerializeToString())
    return {"X": x[:50]}


class Once(quantization.CalibrationDataReader):
    def __init__(self, inputs):
        self.left = [inputs]

    def get_next(self):
        return self.left.pop() if self.left else None


def static_int8(path):
    inputs = exported(nets.resnet18(), path + ".float")
    quantization.quantize_static(path + ".float", path, Once(inputs))
    return inputs


def dynamic_int8(path):
    inputs = exported(nets.resnet18(), path + ".float")
    quantization.quantize_dynamic(path + ".float", path)
    return inputs


boxes = nets.detection
MODELS = {
    "resnet18": lambda path: exported(nets.resnet18(), path),
    "mobilenet_v3": lambda path: exported(nets.mobilenet_v3_small(), path),
    "convnext": lambda path: exported(nets.convnext_tiny(), path),
    "resnet18_int8": static_int8,
    "resnet18_dynamic": dynamic_int8,
    "ssdlite": lambda path: exported(Detector(boxes.ssdlite320_mobilenet_v3_large), path, 1, 128),
    "retinanet": lambda path: exported(Detector(boxes.retinanet_resnet50_fpn, min_size=128, max_size=160), path, 1, 128),
    "faster_rcnn": lambda path: exported(Detector(boxes.fasterrcnn_mobilenet_v3_large_320_fpn, min_size=128, max_size=160), path, 1, 128),
    "random_forest": lambda path: learner(ensemble.RandomForestClassifier(100, random_state=0), path),
    "gradient_boosting": lambda path: learner(ensemble.GradientBoostingClassifier(n_estimators=50, random_state=0), path),
    "logistic_regression": lambda path: learner(linear_model.LogisticRegression(), path),
}


def runtime_seconds(session, inputs):
    times, start = [], time.time()
    while len(times) < 5 or time.time() - start < 0.5:
        begin = time.perf_counter()
        session.run(None, inputs)
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2]


def measure(tenon, name, folder):
    path = os.path.join(folder, name + ".onnx")
    inputs = MODELS[name](path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    reference = os.path.join(folder, name + ".npz")
    outputs = zip([each.name for each in session.get_outputs()], session.run(None, inputs))
    np.savez(reference, **{f"input.{k}": v for k, v in inputs.items()}, **{f"output.{k}": v for k, v in outputs})
    judged = subprocess.run([tenon, "model", "compare", path, "--reference", reference, "--device", "cpu"], capture_output=True, text=True)
    given = []
    for key, array in inputs.items():
        np.save(os.path.join(folder, key + ".npy"), array)
        given.append(f"{key}=@{os.path.join(folder, key + '.npy')}")
    before = runtime_seconds(session, inputs)
    run = subprocess.run([tenon, "model", "bench", path, *given, "--device", "cpu", "--seconds", "0.5", "--json"], capture_output=True, text=True,
                         check=True, env={**os.environ, "TENON_THREADS": "1"})
    theirs, ours = min(before, runtime_seconds(session, inputs)), json.loads(run.stdout)["median_seconds"]
    verdict = "agrees" if judged.returncode == 0 else (judged.stdout + judged.stderr).strip().splitlines()[-1]
    print(f"| {name} | {ours * 1e3:.3f} ms | {theirs * 1e3:.3f} ms | {ours / theirs:.2f} | {verdict} |", flush=True)


if __name__ == "__main__":
    print("| model | Tenon | ONNX Runtime | ratio | |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        for each in sys.argv[2:] or MODELS:
            measure(os.path.abspath(sys.argv[1]), each, place)
