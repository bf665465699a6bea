#!/usr/bin/env python3
"""What comparing with the double-precision reference costs, for programs that somebody tries on the page.

  bench/comparing.py build/release/tenon [--repeats 9]     prints a table; `> bench/results/comparing.md` keeps it

Each program is sent to a server of its own, with "compare" on and off by turns; the median of the CPU time that the server's threads took
counts, which other work on the machine changes little. The ratio is the time that comparing adds over the time of the request without it: 2
is the bar. The page does not wait for a comparison that takes long (a job shows its result first), so a ratio above the bar delays a
judgement, not a result: the last columns have the time until a job as the page sends it shows its result, the fastest of as many.
"""
import argparse
import datetime
import http.client
import json
import os
import platform
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time


def tensor(*shape, dtype="float32", generator="uniform"):
    return {"generator": generator, "shape": list(shape), "dtype": dtype}


# Name, expression, inputs: the examples of the page, its default sizes, and the largest that people paste or upload.
PROGRAMS = [
    ("add of 4", "a + b", {"a": tensor(4), "b": tensor(4)}),
    ("softmax of 32 x 32", "softmax(x)", {"x": tensor(1, 1, 32, 32)}),
    ("matmul of 32 x 32", "matmul(a, b)", {"a": tensor(32, 32), "b": tensor(32, 32)}),
    ("matmul of 256 x 256", "matmul(a, b)", {"a": tensor(256, 256), "b": tensor(256, 256)}),
    ("matmul of 512 x 512", "matmul(a, b)", {"a": tensor(512, 512), "b": tensor(512, 512)}),
    ("gelu(a * b + 0.5) of 64 Ki", "gelu(a * b + 0.5)", {"a": tensor(256, 256), "b": tensor(256, 256)}),
    ("add of 1 Mi", "a + b", {"a": tensor(1024, 1024), "b": tensor(1024, 1024)}),
    ("add of 1 Mi bfloat16", "a + b", {"a": tensor(1024, 1024, dtype="bfloat16"), "b": tensor(1024, 1024, dtype="bfloat16")}),
    ("exp of 1 Mi", "exp(x)", {"x": tensor(1024, 1024)}),
    ("sum of 1 Mi", "sum(x)", {"x": tensor(1024, 1024)}),
    ("softmax of 1024 x 1024", "softmax(x)", {"x": tensor(1024, 1024)}),
    ("layer_norm of 1024 x 1024", "layer_norm(x)", {"x": tensor(1024, 1024)}),
    ("sort of 64 Ki", "sort(x)", {"x": tensor(65536)}),
    ("conv2d of 3 x 64 x 64, 16 filters", "conv2d(x, w)", {"x": tensor(1, 3, 64, 64), "w": tensor(16, 3, 3, 3)}),
    ("attention of 4 heads, 64 x 32", "attention(q, k, v)", {name: tensor(1, 4, 64, 32) for name in "qkv"}),
]


class Server:
    def __init__(self, program, folder):
        environment = {**os.environ, "TENON_RUN_DIR": os.path.join(folder, "run"), "TENON_STATE_DIR": os.path.join(folder, "state")}
        os.makedirs(environment["TENON_RUN_DIR"], mode=0o700)
        self.process = subprocess.Popen([program, "serve", "--port", "0"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for line in self.process.stdout:
            if address := re.search(r"http://([\d.]+):(\d+)", line):
                self.connection = http.client.HTTPConnection(address[1], int(address[2]), timeout=120)
                return
        raise RuntimeError("the server did not start")

    def cpu_seconds(self):
        # The clock of the process's CPU time (clock_getcpuclockid), with threads that have ended.
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def seconds(self, body):
        begin = self.cpu_seconds()
        self.connection.request("POST", "/api/execute", body, {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        answer = response.read()
        # The thread that answered may still be tidying up.
        time.sleep(0.002)
        taken = self.cpu_seconds() - begin
        if response.status != 200:
            raise RuntimeError(answer.decode()[:300])
        return taken


    def seconds_to_result(self, body):
        """From sending a job to its first event with values, as the page waits."""
        begin = time.perf_counter()
        self.connection.request("POST", "/api/jobs", body, {"Content-Type": "application/json"})
        job = json.loads(self.connection.getresponse().read())
        with socket.create_connection((self.connection.host, self.connection.port), timeout=120) as stream:
            stream.sendall(f"GET {job['events']} HTTP/1.1\r\nHost: {self.connection.host}:{self.connection.port}\r\n\r\n".encode())
            seen, taken = b"", None
            while not re.search(rb"event: (done|failed|cancelled)", seen):
                seen += stream.recv(1 << 20)
                if taken is None and re.search(rb"event: (result|done)", seen):
                    taken = time.perf_counter() - begin
        if taken is None:
            raise RuntimeError(seen.decode()[:300])
        return taken


def text(seconds):
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    print("# What comparing with the reference costs\n")
    print(f"`bench/comparing.py`, {datetime.date.today()}, {platform.machine()}, {os.cpu_count()} CPUs, median CPU time of {options.repeats} "
          "requests over HTTP on cpu:0. Bar: comparing adds at most twice the time of the request without it.\n")
    print("| program | without | with | added / without | | result on the page, without | with | added / without |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    over = late = 0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.program, folder)
        try:
            for name, expression, inputs in PROGRAMS:
                times, waits = {True: [], False: []}, {True: [], False: []}
                for _ in range(options.repeats):
                    for compare in (False, True):
                        body = {"expression": expression, "inputs": inputs, "device": "cpu", "compare": compare, "details": False}
                        times[compare].append(server.seconds(json.dumps(body)))
                        waits[compare].append(server.seconds_to_result(json.dumps(body)))
                without, compared = (statistics.median(times[compare][1:]) for compare in (False, True))
                ratio = max(0.0, compared - without) / without
                over += ratio > 2
                first, second = (min(waits[compare]) for compare in (False, True))
                added = max(0.0, second - first) / first
                late += added > 2
                print(f"| {name} | {text(without)} | {text(compared)} | {ratio:.2f} | {'over the bar' if ratio > 2 else ''} | {text(first)} | {text(second)} | {added:.2f} |", flush=True)
        finally:
            server.process.terminate()
            server.process.wait()
    print(f"\n{len(PROGRAMS) - over} of {len(PROGRAMS)} programs are within the bar; results on the page: {len(PROGRAMS) - late}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
