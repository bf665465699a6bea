#!/usr/bin/env python3
"""Networks of torchvision and transformers with random weights: exported to ONNX here, run by Tenon, beside PyTorch itself.

    PYTHONPATH=build/release/python python3 bench/models/nets_torch.py [NET...] [--batch 1 32] [--device cuda:0] [--dtype bfloat16]
                                                                       [--modes eager,default,reduce-overhead]

Nobody chose these models for Tenon. Values are compared first, with PyTorch's in float32; then all are called with inputs on the device, many calls in a
row, in turn; a time is the least of several rounds. Ratio: PyTorch's time over ours, above 1 we are ahead."""

import argparse
import os
import tempfile
import time
import warnings

import numpy as np
import torch

import tenon as tn

warnings.filterwarnings("ignore")
NETS = ["resnet50", "mobilenet_v3_large", "vit_b_16", "convnext_tiny", "bert", "gpt2"]
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("nets", nargs="*", default=NETS)
parser.add_argument("--batch", type=int, nargs="+", default=[1, 32])
parser.add_argument("--tokens", type=int, default=128)
parser.add_argument("--device", default="cuda:0")
parser.add_argument("--dtype", default="bfloat16", choices=("float32", "float16", "bfloat16"))
parser.add_argument("--modes", default="eager,default,reduce-overhead", help="of PyTorch: eager, or a mode of torch.compile")
parser.add_argument("--rounds", type=int, default=5)
options = parser.parse_args()
on = "cuda" if options.device.startswith("cuda") else "cpu"
torch.manual_seed(1)
torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.benchmark = True


class LastHidden(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(input_ids=ids, use_cache=False).last_hidden_state if "use_cache" in self.model.forward.__code__.co_varnames \
            else self.model(input_ids=ids).last_hidden_state


def made(name):
    """The network in float32, and its input for a batch."""
    if name in ("bert", "gpt2"):
        import transformers
        model = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False) if name == "bert" else \
            transformers.GPT2Model(transformers.GPT2Config())
        return LastHidden(model).eval(), lambda batch: torch.randint(1000, 20000, (batch, options.tokens))
    import torchvision
    net = getattr(torchvision.models, name)().eval()
    for parameter in net.parameters():  # some begin with a last layer of zeros, which would hide everything before it
        if parameter.dim() > 1 and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    return net, lambda batch: torch.rand(batch, 3, 224, 224)


def wait():
    if on == "cuda":
        torch.cuda.synchronize()


def seconds(call, count):
    begin = time.perf_counter()
    for _ in range(count):
        call()
    wait()
    return (time.perf_counter() - begin) / count


def compare_and_time(name, folder):
    net, inputs_of = made(name)
    for batch in options.batch:
        x = inputs_of(batch)
        file = os.path.join(folder, f"{name}-{batch}.onnx")
        with torch.no_grad():
            torch.onnx.export(net, (x,), file, input_names=["x"], output_names=["y"], opset_version=18, dynamo=True, verbose=False)
            begin = time.perf_counter()
            model = tn.Model.load(file, dtype=None if options.dtype == "float32" else options.dtype)
            peer = net.to(on)
            expected = peer(x.to(on)).float().cpu()
            given = {"x": tn.from_dlpack(x.to(on)) if on == "cuda" else tn.asarray(x.numpy())}
            result = torch.from_numpy(np.asarray(model.run(given, device=options.device)["y"])).float()
            first = time.perf_counter() - begin
        error = ((result - expected).abs().max() / expected.abs().max()).item()
        in_type = x.to(on).to(getattr(torch, options.dtype)) if x.is_floating_point() else x.to(on)
        peer = peer.to(getattr(torch, options.dtype))
        contenders = {"tenon": lambda count: seconds(lambda: model.run(given, device=options.device), count)}
        for mode in options.modes.split(","):
            call = peer if mode == "eager" else torch.compile(peer, mode=mode, dynamic=False)
            contenders[mode] = lambda count, call=call: timed(call, in_type, count)
        best = {}
        for each, call in contenders.items():
            call(3)
            best[each] = call(3)
        count = max(3, min(50, int(0.1 / best["tenon"])))
        for _ in range(options.rounds):
            for each, call in contenders.items():
                best[each] = min(best[each], call(count))
        print(f"| {name} | {batch} | {options.dtype} | {error:.1e} | {first:.2f} s | {best['tenon'] * 1e6:.0f} | " +
              " | ".join(f"{best[m] * 1e6:.0f} ({best[m] / best['tenon']:.2f})" for m in contenders if m != "tenon") + " |", flush=True)
        net = peer.float().cpu()
        del contenders, model
        os.remove(file)


def timed(call, x, count):
    with torch.inference_mode():
        return seconds(lambda: call(x), count)


print("| net | batch | dtype | difference | load and first run | Tenon us | " + " | ".join(f"PyTorch {m} us (ratio)" for m in options.modes.split(",")) + " |")
print("| --- " * (6 + len(options.modes.split(","))) + "|", flush=True)
with tempfile.TemporaryDirectory() as scratch:
    for each in options.nets:
        try:
            compare_and_time(each, scratch)
        except Exception as problem:
            print(f"| {each} | | | {type(problem).__name__}: {str(problem).splitlines()[0][:200]} |", flush=True)
