#!/usr/bin/env python3
"""PyTorch, JAX and CuPy on the card, beside what bench_cuda measured, as one table.
  bench/gpu/gpu_peers.py peers [--quick] > peers.jsonl        measures the peers that are installed, each in a process of its own
  bench/gpu/gpu_peers.py table ours.jsonl peers.jsonl > cuda.md
"""
import json
import os
import subprocess
import sys
import time

# Files of this folder must not stand in for modules of the peers.
sys.path = [folder for folder in sys.path if os.path.abspath(folder or ".") != os.path.dirname(os.path.abspath(__file__))]

N, SIDE = 1 << 28, 16384
BARS = {  # name: (what must hold, of our figure and the figures of all)
    "add": ("at least 4.2 TB/s", lambda us, all: rate(us) >= 4.2e12),
    "gelu": ("at least 4.2 TB/s", lambda us, all: rate(us) >= 4.2e12),
    "softmax": ("at least 3.9 TB/s", lambda us, all: rate(us) >= 3.9e12),
    "sum": ("at least 4.0 TB/s", lambda us, all: rate(us) >= 4.0e12),
    "transpose": ("at least 3.4 TB/s", lambda us, all: rate(us) >= 3.4e12),
    "layer_norm": ("1.1x PyTorch", lambda us, all: all["torch"]["seconds"] >= 1.1 * us["seconds"]),
    "matmul bf16 8192": ("0.98 of PyTorch", lambda us, all: all["torch"]["seconds"] >= 0.98 * us["seconds"]),
    "matmul f32 8192": ("0.98 of PyTorch", lambda us, all: all["torch"]["seconds"] >= 0.98 * us["seconds"]),
    "enqueue 1024": ("at most 5 us", lambda us, all: us["seconds"] <= 5e-6),
    "2 uploads + run + download 1024": ("at most 22 us", lambda us, all: us["seconds"] <= 22e-6),
    "allocate + free 1024": ("at most 0.2 us", lambda us, all: us["seconds"] <= 0.2e-6),
    "host to device 256 MiB": ("3x PyTorch", lambda us, all: all["torch"]["seconds"] >= 3 * us["seconds"]),
    "re-open": ("1.1x the driver's own time", lambda us, all: us["seconds"] <= 1.1 * all["driver"]["seconds"]),
}


def rate(line):
    return line["work"] / line["seconds"]


def report(peer, name, seconds, work=0.0, unit=""):
    print(json.dumps({"peer": peer, "name": name, "seconds": seconds, "work": work, "unit": unit}), flush=True)


def best(call, wait, count, rounds):
    call()
    wait()
    fastest = 1e300
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        fastest = min(fastest, (time.perf_counter() - begin) / count)
    return fastest


def torch_peer(quick):
    import torch
    import torch.nn.functional as F
    wait = torch.cuda.synchronize
    n, side = (1 << 22, 2048) if quick else (N, SIDE)
    bytes_ = 4.0 * n
    torch.backends.cuda.matmul.allow_tf32 = False

    def stream(name, call, work, unit="B/s", count=20, rounds=5):
        report("torch", name, best(call, wait, count, rounds), work, unit)

    a, b = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    out = torch.empty_like(a)
    stream("add", lambda: torch.add(a, b, out=out), 3 * bytes_)
    stream("gelu", lambda: F.gelu(a * b + 0.5), 3 * bytes_)
    stream("exp", lambda: torch.exp(a, out=out), 2 * bytes_)
    half_a, half_b = a.bfloat16(), b.bfloat16()
    stream("add bf16", lambda: half_a + half_b, 1.5 * bytes_)
    stream("sum", lambda: a.sum(), bytes_)
    stream("max", lambda: a.max(), bytes_)
    m = a.view(-1)[: side * side].view(side, side)
    row = torch.randn(side, device="cuda")
    stream("broadcast add", lambda: m + row, 2 * bytes_)
    stream("softmax", lambda: torch.softmax(m, -1), 2 * bytes_)
    rows = a.view(-1, 4096)
    stream("softmax 4096", lambda: torch.softmax(rows, -1), 2 * bytes_)
    thousand = torch.randn(n // 1024, 1000, device="cuda")
    stream("softmax 1000", lambda: torch.softmax(thousand, -1), 2 * bytes_ * 1000 / 1024)
    gain, shift = torch.randn(4096, device="cuda"), torch.randn(4096, device="cuda")
    stream("layer_norm", lambda: F.layer_norm(rows, (4096,), gain, shift), 2 * bytes_)
    narrow = a.view(-1, 1024)
    stream("layer_norm 1024", lambda: F.layer_norm(narrow, (1024,), gain[:1024], shift[:1024]), 2 * bytes_)
    stream("sum rows", lambda: m.sum(1), bytes_)
    stream("sum columns", lambda: m.sum(0), bytes_)
    stream("transpose", lambda: m.t().contiguous(), 2 * bytes_)
    stream("cumsum", lambda: m.cumsum(1), 2 * bytes_)
    stream("argmax", lambda: m.argmax(1), bytes_)
    stream("cumsum of one line", lambda: a.cumsum(0), 2 * bytes_)
    stream("argmax of one line", lambda: a.argmax(), bytes_)
    small, updates = a[: n // 16].clone(), b[: n // 16].clone()
    places = torch.randint(0, n // 16, (n // 16,), device="cuda")
    stream("scatter", lambda: torch.scatter(small, 0, places, updates), 6 * bytes_ / 16)
    del a, b, out, half_a, half_b, m, rows, narrow, thousand, small, updates, places
    torch.cuda.empty_cache()

    for size in [1024] if quick else [1024, 8192]:
        for dtype, name in [(torch.bfloat16, "bf16"), (torch.float32, "f32")]:
            x, y = torch.randn(size, size, device="cuda").to(dtype), torch.randn(size, size, device="cuda").to(dtype)
            stream(f"matmul {name} {size}", lambda: x @ y, 2.0 * size**3, "FLOP/s", 10 if size > 4096 else 50, 3)
    x = torch.randn(2048, 2048, device="cuda", dtype=torch.float64)
    stream("matmul f64 2048", lambda: x @ x, 2.0 * 2048**3, "FLOP/s", 50, 3)
    x, w = (torch.randn(4096, 4096, device="cuda").bfloat16() for _ in range(2))
    c = torch.randn(4096, device="cuda").bfloat16()
    stream("linear gelu bf16 4096", lambda: F.gelu(x @ w + c), 2.0 * 4096**3, "FLOP/s", 50, 3)
    stream("linear relu bf16 4096", lambda: F.relu(x @ w + c), 2.0 * 4096**3, "FLOP/s", 50, 3)
    torch.backends.cudnn.allow_tf32 = False
    for dtype, name in [(torch.float32, ""), (torch.bfloat16, " bf16")]:
        x, w = torch.randn(32, 64, 56, 56, device="cuda").to(dtype), torch.randn(64, 64, 3, 3, device="cuda").to(dtype)
        stream(f"conv2d 3x3 64{name}", lambda: F.conv2d(x, w, padding=1), 2.0 * 32 * 64 * 64 * 9 * 56 * 56, "FLOP/s", 20, 3)
    x, w = torch.randn(32, 256, 28, 28, device="cuda").bfloat16(), torch.randn(256, 256, 3, 3, device="cuda").bfloat16()
    stream("conv2d 3x3 256 bf16", lambda: F.conv2d(x, w, padding=1), 2.0 * 32 * 256 * 256 * 9 * 28 * 28, "FLOP/s", 20, 3)
    x, w = torch.randn(32, 512, 7, 7, device="cuda").bfloat16(), torch.randn(512, 512, 3, 3, device="cuda").bfloat16()
    stream("conv2d 3x3 512 bf16", lambda: F.conv2d(x, w, padding=1), 2.0 * 32 * 512 * 512 * 9 * 7 * 7, "FLOP/s", 20, 3)
    x, w = torch.randn(32, 128, 56, 56, device="cuda").bfloat16(), torch.randn(128, 128, 3, 3, device="cuda").bfloat16()
    stream("conv2d 3x3 128 bf16, stride 2", lambda: F.conv2d(x, w, padding=1, stride=2), 2.0 * 32 * 128 * 128 * 9 * 28 * 28, "FLOP/s", 20, 3)
    x, w = torch.randn(32, 256, 56, 56, device="cuda"), torch.randn(256, 256, 1, 1, device="cuda")
    stream("conv2d 1x1 256", lambda: F.conv2d(x, w), 2.0 * 32 * 256 * 256 * 56 * 56, "FLOP/s", 20, 3)

    a, b = torch.randn(1024, device="cuda"), torch.randn(1024, device="cuda")
    out = torch.empty_like(a)
    report("torch", "enqueue 1024", best(lambda: torch.add(a, b, out=out), wait, 200, 20))

    def run():
        torch.add(a, b, out=out)
        wait()

    report("torch", "run 1024", best(run, wait, 100, 20))
    report("torch", "run + download 1024", best(lambda: torch.add(a, b, out=out).cpu(), wait, 100, 20))
    host_a, host_b = torch.randn(1024), torch.randn(1024)
    report("torch", "2 uploads + run + download 1024", best(lambda: (host_a.cuda() + host_b.cuda()).cpu(), wait, 100, 20))
    for elements in (1024, 1 << 24):
        report("torch", f"allocate + free {elements}", best(lambda: torch.empty(elements, device="cuda"), wait, 1000, 10))
    for mebibytes in [16] if quick else [1, 16, 256, 1024]:
        host = torch.randn(mebibytes << 18)
        work = host.numel() * 4.0
        report("torch", f"host to device {mebibytes} MiB", best(lambda: host.cuda(), wait, 1, 6), work, "B/s")
        card = host.cuda()
        report("torch", f"device to host {mebibytes} MiB", best(lambda: card.cpu(), wait, 1, 6), work, "B/s")
    if not quick:
        a, b = torch.randn(N, device="cuda"), torch.randn(N, device="cuda")
        compiled = torch.compile(lambda x, y: F.gelu(x * y + 0.5))
        try:
            report("torch.compile", "gelu", best(lambda: compiled(a, b), wait, 20, 5), 3 * bytes_, "B/s")
        except Exception as error:  # its own compiler may be missing
            print(f"torch.compile: {str(error).splitlines()[0]}", file=sys.stderr)


def jax_peer(quick):
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    import jax.numpy as jnp
    n, side = (1 << 22, 2048) if quick else (N, SIDE)
    bytes_ = 4.0 * n
    last = [None]

    def stream(name, f, arguments, work, count=20, rounds=3, unit="B/s"):
        compiled = jax.jit(f)

        def call():
            last[0] = compiled(*arguments)

        report("jax", name, best(call, lambda: jax.block_until_ready(last[0]), count, rounds), work, unit)

    a = jax.random.normal(jax.random.PRNGKey(0), (n,))
    stream("add", lambda x, y: x + y, (a, a + 1), 3 * bytes_)
    stream("gelu", lambda x, y: jax.nn.gelu(x * y + 0.5, approximate=False), (a, a + 1), 3 * bytes_)
    stream("sum", jnp.sum, (a,), bytes_)
    m = a.reshape(side, side)
    stream("softmax", lambda x: jax.nn.softmax(x, -1), (m,), 2 * bytes_)
    stream("transpose", lambda x: jnp.transpose(x).copy(), (m,), 2 * bytes_)
    small = jnp.ones(1024)
    stream("enqueue 1024", lambda x, y: x + y, (small, small), 0, 200, 10, "")


def cupy_peer(quick):
    import cupy
    n, side = (1 << 22, 2048) if quick else (N, SIDE)
    bytes_ = 4.0 * n
    wait = cupy.cuda.Stream.null.synchronize
    a = cupy.random.standard_normal(n, dtype=cupy.float32)
    b = a + 1
    out = cupy.empty_like(a)
    report("cupy", "add", best(lambda: cupy.add(a, b, out), wait, 20, 3), 3 * bytes_, "B/s")
    gelu = cupy.ElementwiseKernel("T x, T y", "T z", "T v = x * y + (T)0.5; z = v * (T)0.5 * ((T)1 + erf(v * (T)0.70710678118654752))",
                                  "gelu")
    report("cupy", "gelu", best(lambda: gelu(a, b, out), wait, 20, 3), 3 * bytes_, "B/s")
    report("cupy", "sum", best(lambda: a.sum(), wait, 20, 3), bytes_, "B/s")
    m, transposed = a.reshape(side, side), cupy.empty((side, side), cupy.float32)
    report("cupy", "transpose", best(lambda: cupy.copyto(transposed, m.T), wait, 10, 3), 2 * bytes_, "B/s")
    small = cupy.ones(1024, cupy.float32)
    small_out = cupy.empty_like(small)
    report("cupy", "enqueue 1024", best(lambda: cupy.add(small, small, small_out), wait, 200, 10))


PEERS = {"torch": torch_peer, "jax": jax_peer, "cupy": cupy_peer}


def cold_starts():
    for peer, code in {
        "torch": "import torch; print((torch.ones(4, device='cuda') + 1).cpu())",
        "jax": "import jax.numpy as jnp; print(jnp.ones(4) + 1)",
        "cupy": "import cupy; print(cupy.ones(4) + 1)",
    }.items():
        begin = time.perf_counter()
        if subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0:
            report(peer, "cold start", time.perf_counter() - begin)


def peers(quick):
    for name in PEERS:
        command = [sys.executable, __file__, "peer", name] + (["--quick"] if quick else [])
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=150)
            sys.stdout.write(done.stdout)
            if done.returncode != 0:
                print(f"{name}: {done.stderr.strip()[-1500:]}", file=sys.stderr)
        except subprocess.TimeoutExpired as late:
            sys.stdout.write((late.stdout or b"").decode())
            print(f"{name}: out of time", file=sys.stderr)
        sys.stdout.flush()
    cold_starts()


def shown(line):
    seconds = line["seconds"]
    text = f"{seconds * 1e6:.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:.3f} ms"
    if line["unit"] == "B/s":
        text += f", {rate(line) / 1e9:.0f} GB/s"
    elif line["unit"] == "FLOP/s":
        text += f", {rate(line) / 1e12:.1f} TFLOP/s"
    return text


def table(ours, theirs):
    lines = [json.loads(line) for line in open(ours) if line.startswith("{")]
    card = next((line["card"] for line in lines if "card" in line), "")
    mine = {line["name"]: line for line in lines if "name" in line}
    others = {}
    names = []
    for line in (json.loads(text) for text in open(theirs) if text.startswith("{")):
        others.setdefault(line["name"], {})[line["peer"]] = line
        if line["peer"] not in names:
            names.append(line["peer"])
    if "driver: context retain" in mine:
        others.setdefault("re-open", {})["driver"] = mine["driver: context retain"]
    print(f"# On one {card}\n\nThe fastest of several rounds, one run after the other on the same machine.\n")
    print("| work | Tenon | " + " | ".join(names) + " | bar |\n| --- | --- | " + "--- | " * len(names) + "--- |")
    for name, line in mine.items():
        cells = [shown(others[name][peer]) if peer in others.get(name, {}) else "" for peer in names]
        bar = ""
        if name in BARS:
            text, holds = BARS[name]
            try:
                bar = f"{text}: {'yes' if holds(line, others.get(name, {})) else '**no**'}"
            except KeyError:
                bar = f"{text}: not measured beside it"
        print(f"| {name} | {shown(line)} | " + " | ".join(cells) + f" | {bar} |")


def main():
    arguments = [a for a in sys.argv[1:] if a != "--quick"]
    quick = "--quick" in sys.argv
    if arguments[:1] == ["peers"]:
        peers(quick)
    elif arguments[:1] == ["peer"] and len(arguments) == 2:
        PEERS[arguments[1]](quick)
    elif arguments[:1] == ["table"] and len(arguments) == 3:
        table(*arguments[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
