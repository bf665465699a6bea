#!/usr/bin/env python3
"""CPU-bound work on one process and, its rows split, on two processes of one thread each: how much sooner two are done.

usage: bench/mesh/data_parallel.py TENON [--rounds 9]      (Open MPI; two idle cores)

Alternates both; takes the time that the devices computed, as the command reports it.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

PROGRAM = ["y = x; " + "y = tanh(y @ w); " * 30 + "sum(y)", "x=randn([2048, 512], seed=1)", "w=randn([512, 512], seed=2) / 22"]


def computing(command, environment):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    timelines = report["mesh"]["timelines"] if "mesh" in report else [report["timeline"]]
    return max(sum(span["seconds"] for span in timeline if span["stage"] in ("computing", "exchanging")) for timeline in timelines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    tenon = os.path.abspath(arguments.tenon)
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, TENON_RUN_DIR=folder, TENON_STATE_DIR=folder, TENON_THREADS="1", TENON_LEDGER="false")
        one = [tenon, "run", *PROGRAM, "--device", "cpu", "--json"]
        two = ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "core", "-n", "2", tenon, "run", *PROGRAM, "--mesh", "d=2", "--shard", "x=d,-",
               "--json"]
        ratios = []
        for _ in range(arguments.rounds):
            alone, split = computing(one, environment), computing(two, environment)
            ratios.append(alone / split)
            print(f"one process {alone:.3f} s, two processes {split:.3f} s: {alone / split:.2f} times", flush=True)
        print(f"median {statistics.median(ratios):.2f}, best {max(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
