#!/usr/bin/env python3
"""Replays traces against the keep-open policies and writes the table of costs over the optimum.

    bench/leases/policy.py --program build/release/tenon --output bench/results/policy.md TRACE.csv...
"""
import argparse
import datetime
import json
import pathlib
import subprocess

BREAK_EVENS = (0.2, 2, 10, 30, 120)


def replay(program, trace, break_even):
    command = [program, "policy", "replay", str(trace), "--break-even", str(break_even), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/tenon")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("traces", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()

    results = {(trace, b): replay(arguments.program, trace, b) for trace in arguments.traces for b in BREAK_EVENS}
    policies = [entry["policy"] for entry in next(iter(results.values()))["policies"]]
    cost = {(name, key): next(p for p in result["policies"] if p["policy"] == name)["cost_ratio"]
            for name in policies for key, result in results.items()}

    evens = " / ".join(str(b) for b in BREAK_EVENS)
    lines = [
        "# Keep-open policies on real arrivals", "",
        f"- {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        f"- command: `bench/leases/policy.py --output {arguments.output} {' '.join(t.name for t in arguments.traces)}`",
        "- one line of it: `tenon policy replay TRACE.csv --break-even SECONDS --json`", "",
        f"Cost over the offline optimum at break-evens of {evens} seconds (docs/leases.md says what that is).", "",
        "| policy | " + " | ".join(t.stem for t in arguments.traces) + " | mean | largest |",
        "|---|" + "---|" * (len(arguments.traces) + 2),
    ]
    for name in policies:
        cells = [" / ".join(f"{cost[name, (t, b)]:.3g}" for b in BREAK_EVENS) for t in arguments.traces]
        values = [cost[name, key] for key in results]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {sum(values) / len(values):.3f} | {max(values):.3f} |")

    lines += ["", "## Adaptive in full", "",
              "| trace | break-even | cost / optimum | cold | optimum's cold | held | opens | waiter p50 | p99 | p99 without yield |",
              "|---|---|---|---|---|---|---|---|---|---|"]
    for (trace, b), result in results.items():
        entry = next(p for p in result["policies"] if p["policy"] == "adaptive")
        lines.append(
            f"| {trace.stem} | {b} s | {entry['cost_ratio']:.3f} | {100 * entry['cold_fraction']:.2f} % "
            f"| {100 * result['optimum']['cold_fraction']:.2f} % | {entry['held_seconds']:.0f} s | {entry['opens']} "
            f"| {entry['waiter_p50_seconds']:.3f} s | {entry['waiter_p99_seconds']:.3f} s "
            f"| {entry['waiter_without_yield_p99_seconds']:.0f} s |")
    arguments.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
