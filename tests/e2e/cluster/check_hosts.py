#!/usr/bin/env python3
"""A mesh over four hosts (network namespaces) with Open MPI: right results, counted bytes, and clear errors.

usage: check_hosts.py TENON [--kills N] [--cuts N]      (root, Linux; by default a few of each)

A killed process ends the job with an error that names its host. A cut link ends every process with an error that names a host
it waited for. No device stays leased. Prints how long that took.
"""
import argparse
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from hosts import SKIPPED, Hosts, enter_own_network, run

COUNT = 4
DEADLINE = 3
MLP = ["gelu(x @ w) @ v", "x=randn([6, 16], seed=1)", "w=randn([16, 32], seed=2)", "v=randn([32, 4], seed=3)", "--shard", "w=-,m",
       "--shard", "v=m,-"]
# One all-reduce of 1 MiB: to gather the factors would be 16 MiB.
LARGE = ["x @ w", "x=randn([512, 4096], seed=1)", "w=randn([4096, 512], seed=2)", "--shard", "x=-,m", "--shard", "w=m,-"]
LARGE_BYTES = 512 * 512 * 4
# Seconds on a device that is slow on purpose, then a sum over all hosts.
SLOW = ["x @ w", "x=randn([64, 4096], seed=1)", "w=randn([4096, 64], seed=2)", "--shard", "x=-,m", "--shard", "w=m,-"]
COMPUTE = 8  # longer than it takes on a busy machine to see that all have leased their devices
FAST_DEVICE, SLOW_DEVICE = "gpu,exclusive", f"gpu,exclusive,compute={COMPUTE}s"
SLACK = 20  # seconds: all hosts share the cores of one busy machine


class Machine:
    """The hosts, each with one device, a queue and a state of its own."""

    def __init__(self, hosts, folder, tenon):
        self.hosts, self.folder, self.tenon = hosts, folder, tenon
        self.survivors = self.silent = 0  # of killed processes, in all runs; those that said nothing
        self.started_again = 0  # jobs that were over before anything was done to them
        for name in hosts.names:
            os.makedirs(f"{folder}/run.{name}", mode=0o700)
        path = f"{folder}/process"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""#!/bin/sh
host=$(hostname)
echo $$ >{folder}/pid.$host
export TENON_RUN_DIR={folder}/run.$host TENON_STATE_DIR={folder}/run.$host TENON_THREADS=1
exec {tenon} run "$@" 2>{folder}/errors.$host
""")
        os.chmod(path, 0o755)

    def command(self, arguments, deadline=60):
        return [*self.hosts.mpirun(self.folder), "-x", "TENON_SIM", f"{self.folder}/process", *arguments, "--mesh", f"m={COUNT}",
                "--deadline", str(deadline)]

    def environment(self, device):
        return dict(os.environ, TENON_SIM=device)

    def start(self, arguments, device):
        for name in self.hosts.names:
            for kind in ("pid", "errors"):
                if os.path.exists(f"{self.folder}/{kind}.{name}"):
                    os.remove(f"{self.folder}/{kind}.{name}")
        return subprocess.Popen(self.command(arguments, DEADLINE), env=self.environment(device), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, start_new_session=True)

    def process_of(self, name):
        try:
            with open(f"{self.folder}/pid.{name}", encoding="utf-8") as file:
                return int(file.read() or 0)
        except FileNotFoundError:
            return 0

    def is_running(self, name):
        pid = self.process_of(name)
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def errors(self, name):
        with open(f"{self.folder}/errors.{name}", encoding="utf-8") as file:
            return file.read()

    def is_leased(self, name):
        """By a process that lives: leases of others end with them."""
        environment = dict(os.environ, TENON_SIM=SLOW_DEVICE, TENON_RUN_DIR=f"{self.folder}/run.{name}")
        told = json.loads(run(self.tenon, "queue", "--json", env=environment).stdout)
        return any(device["holders"] for device in told["devices"])


def check_results(machine):
    done = run(*machine.command([*MLP, "--compare"]), env=machine.environment(FAST_DEVICE))
    assert "match" in done.stdout and all(name in done.stdout for name in machine.hosts.names), done.stdout + done.stderr
    before = [machine.hosts.sent_bytes(name) for name in machine.hosts.names]
    done = run(*machine.command([*LARGE, "-o", f"{machine.folder}/large.npy"]), env=machine.environment(FAST_DEVICE))
    # MPI's algorithm for this size may let some hosts send more than others; the sum is the same.
    sent = sum(machine.hosts.sent_bytes(name) - b for name, b in zip(machine.hosts.names, before))
    formula = 2 * LARGE_BYTES * (COUNT - 1)
    assert formula <= sent < 1.2 * formula, f"{sent} bytes were sent by the hosts, expected {formula} and a little more"
    print(f"results: right; an all-reduce of 1 MiB: {sent} bytes sent by all hosts, by the formula {formula}")


def begin_slow_run(machine):
    """A job in which every process has its device and computes."""
    for _ in range(5):
        job = machine.start(SLOW, SLOW_DEVICE)
        limit = time.monotonic() + 120
        waiting = list(machine.hosts.names)
        while waiting and job.poll() is None and time.monotonic() < limit:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                leased = list(pool.map(machine.is_leased, waiting))
            waiting = [name for name, is_leased in zip(waiting, leased) if not is_leased]
        if not waiting and all(machine.is_running(name) for name in machine.hosts.names):
            return job
        # On a very busy machine it is over before it was seen to compute, or a process needs more than the deadline to start.
        said = end_job(machine, job)
        machine.started_again += 1
    raise AssertionError(f"the processes did not start to compute, five times: {said}")


def wait_for_end(machine, names):
    """Seconds until the processes of |names| have ended. Far more than the deadline means that they hang."""
    begin = time.monotonic()
    while any(machine.is_running(name) for name in names):
        assert time.monotonic() - begin < DEADLINE + 60, "processes hang: " + ", ".join(n for n in names if machine.is_running(n))
        time.sleep(0.01)
    return time.monotonic() - begin


def end_job(machine, job):
    for name in machine.hosts.names:
        if machine.is_running(name):
            os.kill(machine.process_of(name), signal.SIGKILL)
    try:
        return job.communicate(timeout=15)
    except subprocess.TimeoutExpired:
        # mpirun itself waits for a host that it cannot reach.
        os.killpg(job.pid, signal.SIGKILL)
        return job.communicate()


def check_killed(machine, victim):
    """Kills the process of one host. The launcher notices, names the host, and ends the others."""
    job = begin_slow_run(machine)
    os.kill(machine.process_of(victim), signal.SIGKILL)
    seconds = wait_for_end(machine, machine.hosts.names)
    _, said = end_job(machine, job)
    assert job.returncode != 0
    assert victim in said or machine.hosts.addresses[machine.hosts.names.index(victim)] in said, said
    for name in machine.hosts.names:
        # The launcher sends SIGTERM, and SIGKILL a second later.
        machine.survivors += name != victim
        machine.silent += name != victim and "tenon: " not in machine.errors(name)
        assert not machine.is_leased(name), f"{name}: a lease is left"
    assert seconds < DEADLINE + SLACK, f"the processes ended only after {seconds:.1f} s"
    return seconds


def check_cut(machine, victim):
    """Cuts the link of one host. MPI does not notice; the deadline ends the run on both sides."""
    job = begin_slow_run(machine)
    machine.hosts.cut(victim)
    try:
        seconds = wait_for_end(machine, machine.hosts.names)
        for name in machine.hosts.names:
            said = machine.errors(name)
            others = [other for other in machine.hosts.names if other != name]
            named = others if name == victim else [victim]
            assert any(f"on {other}" in said for other in named), f"{victim} was cut off; " + "; ".join(
                f"{each} said {machine.errors(each)!r}" for each in machine.hosts.names)
            assert not machine.is_leased(name), f"{name}: a lease is left"
        assert seconds < COMPUTE + DEADLINE + SLACK, f"the processes ended only after {seconds:.1f} s"
    finally:
        machine.hosts.mend(victim)
        end_job(machine, job)
    return seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--cuts", type=int, default=2)
    arguments = parser.parse_args()
    missing = [program for program in ("mpirun.openmpi", "ip", "nsenter", "unshare") if not shutil.which(program)]
    if missing:
        print(f"not installed here: {', '.join(missing)}")
        return SKIPPED
    enter_own_network()
    with tempfile.TemporaryDirectory() as folder, Hosts(COUNT) as hosts:
        machine = Machine(hosts, folder, os.path.abspath(arguments.tenon))
        check_results(machine)
        for check, what, times in ((check_killed, "process killed", arguments.kills), (check_cut, "link cut", arguments.cuts)):
            took = []
            for i in range(times):
                took.append(check(machine, hosts.names[i % COUNT]))
                if (i + 1) % 10 == 0 or i + 1 == times:
                    print(f"{what}, {i + 1} times: all processes ended with an error after at most {max(took):.2f} s "
                          f"(median {sorted(took)[len(took) // 2]:.2f} s), no lease left; the deadline is {DEADLINE} s", flush=True)
        if machine.started_again:
            print(f"{machine.started_again} jobs were over before they were seen to compute, and were started again")
        said = machine.survivors - machine.silent
        print(f"{said} of the {machine.survivors} processes that survived a killed one said why they ended")
        assert machine.silent == 0, f"{machine.silent} processes ended without saying why"
    return 0


if __name__ == "__main__":
    sys.exit(main())
