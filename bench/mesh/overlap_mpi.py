#!/usr/bin/env python3
"""How much of an exchange over MPI is hidden behind work that does not need it.

usage: overlap_mpi.py TENON [--rounds N]      (root, Linux, Open MPI)

Two hosts (network namespaces), a simulated device each whose programs take half a second. In the first program an all-reduce of
4 MiB crosses the link while the device computes something else; in the second, the same work needs the sum and comes after it.
Prints the seconds of exchanging, and those of them during which the same device computed, as medians of alternating rounds.
"""
import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/e2e"))
from hosts import SKIPPED, Hosts, enter_own_network, run  # noqa: E402

INPUTS = ["x=randn([1024, 2048], seed=1)", "w=randn([2048, 1024], seed=2)", "z=randn([512, 512], seed=3)", "u=randn([512, 512], seed=4)"]
PROGRAMS = {"independent work": "a = gelu(x @ w); b = tanh(z @ u); sum(a) + sum(b)",
            "dependent work": "a = gelu(x @ w); b = tanh(z @ (u + mean(a))); sum(a) + sum(b)"}


def seconds_of(timeline):
    """Of exchanging, and of those the ones during which it computed."""
    spans = {stage: [(s["start_seconds"], s["start_seconds"] + s["seconds"]) for s in timeline if s["stage"] == stage]
             for stage in ("exchanging", "computing")}
    exchanging = sum(end - begin for begin, end in spans["exchanging"])
    hidden = sum(max(0, min(a[1], b[1]) - max(a[0], b[0])) for a in spans["exchanging"] for b in spans["computing"])
    return exchanging, hidden


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if not shutil.which("mpirun.openmpi"):
        print("mpirun.openmpi is not installed here")
        return SKIPPED
    enter_own_network()
    measured = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder, Hosts(2) as hosts:
        path = f"{folder}/process"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexport TENON_RUN_DIR={folder}/run.$(hostname) TENON_STATE_DIR={folder}/run.$(hostname) TENON_THREADS=1\n"
                       f"exec {os.path.abspath(arguments.tenon)} run \"$@\"\n")
        os.chmod(path, 0o755)
        for name in hosts.names:
            os.makedirs(f"{folder}/run.{name}", mode=0o700)
        environment = dict(os.environ, TENON_SIM="gpu,compute=500ms")
        for _ in range(arguments.rounds):
            for name, program in PROGRAMS.items():
                done = run(*hosts.mpirun(folder), "-x", "TENON_SIM", path, program, *INPUTS, "--mesh", "m=2", "--shard", "x=-,m", "--shard",
                           "w=m,-", "--json", env=environment)
                measured[name].append(seconds_of(json.loads(done.stdout)["timeline"]))
    print("| program | exchanging | of it while computing |\n| --- | --- | --- |")
    for name, all_seconds in measured.items():
        exchanging, hidden = (statistics.median(column) for column in zip(*all_seconds))
        print(f"| {name} | {1e3 * exchanging:.1f} ms | {1e3 * hidden:.1f} ms |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
