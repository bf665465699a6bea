#!/usr/bin/env python3
"""Arrays exchanged with PyTorch and CuPy on a CUDA card without a copy: pointers, values, order of streams, lifetimes, time.

    PYTHONPATH=build/release/python python3 bench/python_cuda.py [--device cuda:0]

Needs a card and PyTorch or CuPy with CUDA; what is missing is skipped. The exit status is 0 if every check holds.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time

import tenon as tn

CUDA = 2
results: list[tuple[str, bool, str]] = []


def check(name: str, holds: bool, seen: object = "") -> None:
    results.append((name, bool(holds), str(seen)))
    print(f"{'ok  ' if holds else 'FAIL'} {name}" + (f" ({seen})" if seen != "" else ""), flush=True)


def microseconds(call, seconds: float = 0.3) -> float:
    call()
    best, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def try_torch(device: str, index: int) -> None:
    import torch

    torch.cuda.set_device(index)
    t = torch.arange(1 << 20, dtype=torch.float32, device="cuda")
    x = tn.from_dlpack(t)
    check("torch -> tenon: the array is on the card", x.device == device, x.device)
    check("torch -> tenon: __dlpack_device__ says so", x.__dlpack_device__() == (CUDA, index), x.__dlpack_device__())
    back = torch.from_dlpack(x)
    check("torch -> tenon -> torch: the pointer is the same", back.data_ptr() == t.data_ptr())
    check("copy=False shares", torch.from_dlpack(tn.from_dlpack(t, copy=False)).data_ptr() == t.data_ptr())
    check("copy=True does not", torch.from_dlpack(tn.from_dlpack(t, copy=True)).data_ptr() != t.data_ptr())
    y = (x * 2 + 1).eval()
    check("what is computed from it stays on the card", y.device == device, y.device)
    z = torch.from_dlpack(y)
    check("tenon -> torch: values", torch.equal(z, t * 2 + 1))
    again = torch.from_dlpack(y)
    check("tenon -> torch: the pointer is the same each time", again.data_ptr() == z.data_ptr())
    check("tenon -> torch: it is on the card", z.is_cuda and z.device.index == index)
    for dtype in (torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.int64, torch.uint8):
        one = torch.ones(512, dtype=dtype, device="cuda")
        same = torch.from_dlpack(tn.from_dlpack(one))
        check(f"{dtype} is shared", same.data_ptr() == one.data_ptr() and same.dtype == dtype)
    for name, one in (("bool", t > 5), ("transposed", t.reshape(1024, 1024).T), ("a misaligned view", t[1:])):
        check(f"{name}: right values by a copy", tn.from_dlpack(one).tolist() == one.tolist())

    # The order of streams: the producer's work is late, on a stream of its own.
    side = torch.cuda.Stream()
    late = torch.zeros(1 << 20, dtype=torch.float32, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        late.fill_(7)
        seen = (tn.from_dlpack(late) + 0).eval()
    check("torch's late write on a side stream is seen", torch.from_dlpack(seen).min().item() == 7)

    # The receiver reads late, and drops the array before: its memory must not be reused meanwhile.
    for name, stream in (("the default stream", torch.cuda.default_stream()), ("a side stream", side)):
        source = (tn.from_dlpack(t) + 3).eval()
        with torch.cuda.stream(stream):
            view = torch.from_dlpack(source)
            torch.cuda._sleep(200_000_000)
            kept = view.clone()
        del view, source
        gc.collect()
        others = [(tn.from_dlpack(t) * 0 - 1).eval() for _ in range(8)]
        torch.cuda.synchronize()
        check(f"memory that torch reads late on {name} is not reused before", torch.equal(kept, t + 3))
        del others

    # Lifetimes: closing the card, and dropping in either order.
    source = (tn.from_dlpack(t) + 4).eval()
    view = torch.from_dlpack(source)
    tn.close(device)
    check("a lent array outlives the closing of the card", torch.equal(view, t + 4))
    check("and so does Tenon's own value", source.tolist()[:2] == [4.0, 5.0])
    del view
    gc.collect()
    borrowed = tn.from_dlpack(torch.full((1 << 20,), 9.0, device="cuda"))  # only Tenon has it
    gc.collect()
    torch.full((1 << 20,), 1.0, device="cuda")
    check("Tenon keeps what it borrowed", (borrowed + 0).sum().item() == 9.0 * (1 << 20))
    before = torch.cuda.memory_allocated()
    for _ in range(50):
        tn.from_dlpack(torch.zeros(1 << 20, device="cuda"))
    gc.collect()
    check("what Tenon dropped goes back to torch", torch.cuda.memory_allocated() <= before + (8 << 20))

    small = torch.zeros(16, device="cuda")
    with tn.lease(device):
        print(f"     tn.from_dlpack(torch): {microseconds(lambda: tn.from_dlpack(small)):.1f} us")
        own = tn.from_dlpack(small)
        print(f"     torch.from_dlpack(tenon): {microseconds(lambda: torch.from_dlpack(own)):.1f} us")


def try_cupy(device: str, index: int) -> None:
    import cupy

    with tn.lease(device), cupy.cuda.Device(index):  # compiling takes CuPy seconds, and an idle card is closed
        a = cupy.arange(1 << 20, dtype=cupy.float32)
        x = tn.from_dlpack(a)
        back = cupy.from_dlpack(x)
        check("cupy -> tenon -> cupy: the pointer is the same", back.data.ptr == a.data.ptr)
        y = (x * 2 + 1).eval()
        z = cupy.from_dlpack(y)
        check("tenon -> cupy: values", bool((z == a * 2 + 1).all()))
        check("tenon -> cupy: the pointer is the same each time", cupy.from_dlpack(y).data.ptr == z.data.ptr)
        check("tenon -> cupy: it stays on the card", y.device == device, y.device)
        with cupy.cuda.Stream(non_blocking=True):
            b = a * 5
            c = (tn.from_dlpack(b) + 0).eval()
            check("cupy's work on a stream of its own is seen", bool((cupy.from_dlpack(c) == b).all()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    arguments = parser.parse_args()
    index = int(arguments.device.split(":")[1])
    done = 0
    for name, attempt in (("torch", try_torch), ("cupy", try_cupy)):
        try:
            __import__(name)
        except ImportError:
            print(f"     {name} is not installed: skipped")
            continue
        attempt(arguments.device, index)
        done += 1
    if not done:
        print("neither PyTorch nor CuPy is installed")
        return 2
    wrong = [name for name, holds, _ in results if not holds]
    print(f"{len(results) - len(wrong)} of {len(results)} checks hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
