#!/usr/bin/env python3
"""Runs bench_all_reduce on hosts that are network namespaces, and prints a table with the bytes that crossed their links.

usage: bench/mesh/all_reduce.py PROGRAM [--hosts 4] [--seconds 5]      (root; Open MPI)
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "e2e" / "cluster"))
from hosts import Hosts, enter_own_network, run  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5)
    arguments = parser.parse_args()
    enter_own_network()
    with tempfile.TemporaryDirectory() as folder, Hosts(arguments.hosts) as hosts:
        before = sum(hosts.sent_bytes(name) for name in hosts.names)
        done = run(*hosts.mpirun(folder), os.path.abspath(arguments.program), arguments.seconds, timeout=1800)
        sent = sum(hosts.sent_bytes(name) for name in hosts.names) - before
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    count = arguments.hosts
    # Both contenders in every round, and five rounds that are not counted.
    formula = sum(2 * row["bytes"] * (count - 1) * 2 * (row["rounds"] + 5) for row in rows)
    print("| bytes | rounds | MPI_Allreduce | Tenon | ratio of medians | median of ratios |\n| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(f"| {row['bytes']} | {row['rounds']} | {1e3 * row['raw_seconds']:.3f} ms | {1e3 * row['tenon_seconds']:.3f} ms | "
              f"{row['raw_seconds'] / row['tenon_seconds']:.2f} | {row['median_of_ratios']:.2f} |")
    print(f"\n{sent} bytes were sent over the links of {count} hosts, by the formula {formula}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
