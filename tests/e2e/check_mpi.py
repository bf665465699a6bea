#!/usr/bin/env python3
"""Meshes over the processes of an MPI job: right results with Open MPI and MPICH, and clear errors when a process is gone.

usage: check_mpi.py TENON
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"], "mpich": ["mpirun.mpich"]}
MLP = ["gelu(x @ w) @ v", "x=randn([6, 16], seed=1)", "w=randn([16, 32], seed=2)", "v=randn([32, 4], seed=3)"]
# Long enough to be interrupted: each process multiplies its rows on its own slow device before the sum is exchanged.
LONG = ["s = x @ x; " + "s = s @ x / 1000; " * 4 + "sum(s)", "x=randn([1500, 1500], seed=1)"]
SLOW_DEVICES = ";".join(["gpu,factor=20"] * 3)


def environment(folder, devices=""):
    return dict(os.environ, TENON_RUN_DIR=folder, TENON_STATE_DIR=folder, TENON_THREADS="1", TENON_SIM=devices)


def run(launcher, ranks, tenon, arguments, folder):
    command = launcher + ["-n", str(ranks), tenon, "run", *arguments]
    return subprocess.run(command, env=environment(folder), capture_output=True, text=True, timeout=120)


def check_results(launcher, tenon, folder):
    for mesh, shards in (("model=4", ["w=-,model", "v=model,-"]), ("data=2,model=2", ["x=data,-", "w=-,model", "v=model,-"])):
        split = [option for shard in shards for option in ("--shard", shard)]
        done = run(launcher, 4, tenon, [*MLP, "--mesh", mesh, *split, "--compare"], folder)
        assert done.returncode == 0, done
        assert done.stdout.count("[6, 4] float32") == 1, "one process prints: " + done.stdout
        assert "1 exchange" in done.stdout and "match" in done.stdout, done.stdout
    done = run(launcher, 2, tenon, [*MLP, "--mesh", "model=4"], folder)
    assert done.returncode != 0 and "4 places" in done.stderr, done


def processes_of(launcher_pid, name):
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as stat:
                fields = stat.read().rsplit(")", 1)
            command, parent = fields[0].split("(", 1)[1], int(fields[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if command == name and (parent == launcher_pid or ancestor(parent, launcher_pid)):
            found.append(int(entry))
    return sorted(found)


def ancestor(pid, wanted):
    while pid > 1:
        if pid == wanted:
            return True
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                pid = int(stat.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


def holders(tenon, folder):
    """The processes that have leased a device: MPI is started, and the exchange is still to come."""
    told = subprocess.run([tenon, "queue", "--json"], env=environment(folder, SLOW_DEVICES), capture_output=True, text=True, timeout=60)
    return sorted(holder["pid"] for device in json.loads(told.stdout)["devices"] for holder in device["holders"])


def check_gone(launcher, tenon, folder, how, devices, leased):
    """A process is gone when |leased| of the three have a device: the job ends with an error, and no lease is left behind."""
    command = launcher + ["-n", "3", tenon, "run", *LONG, "--mesh", "m=3", "--shard", "x=m,-", "--deadline", "4"]
    job = subprocess.Popen(command, env=environment(folder, devices), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        limit = time.monotonic() + 60
        ranks = []
        while len(ranks) < leased:
            assert time.monotonic() < limit and job.poll() is None, "the processes did not start to compute"
            ranks = holders(tenon, folder)
        os.kill(ranks[leased // 2], how)
        out, err = job.communicate(timeout=300)
        assert job.returncode != 0, (out, err)
        if how == signal.SIGSTOP:
            assert "did not answer within 4 s" in err and " on " in err, err
    finally:
        for pid in processes_of(job.pid, os.path.basename(tenon)):
            os.kill(pid, signal.SIGKILL)
        job.kill()
        job.wait()
    assert not holders(tenon, folder), "a lease is left"


def check_slow_opening(launcher, tenon, folder):
    """Processes wait for one that opens its device for longer than the deadline, as long as it lives."""
    arguments = [*MLP, "--mesh", "model=2", "--shard", "w=-,model", "--shard", "v=model,-", "--deadline", "1"]
    command = launcher + ["-n", "2", tenon, "run", *arguments]
    for devices in ("gpu,open=3;gpu", "gpu;gpu,open=3"):
        done = subprocess.run(command, env=environment(folder, devices), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done


def main():
    tenon = os.path.abspath(sys.argv[1])
    present = {name: words for name, words in LAUNCHERS.items() if shutil.which(words[0])}
    if not present:
        print("neither Open MPI nor MPICH is installed here")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        for name, launcher in present.items():
            check_results(launcher, tenon, folder)
            print(f"{name}: results are right")
        if "openmpi" in present:
            for how in (signal.SIGSTOP, signal.SIGKILL):
                check_gone(present["openmpi"], tenon, folder, how, SLOW_DEVICES, leased=3)
                print(f"openmpi: a process that got {how.name} ends the job with an error")
            check_gone(present["openmpi"], tenon, folder, signal.SIGSTOP, "gpu,open=60;gpu;gpu", leased=1)
            print("openmpi: a process that hangs in its turn ends the job with an error")
            check_slow_opening(present["openmpi"], tenon, folder)
            print("openmpi: a device that opens slowly is waited for")
    return 0


if __name__ == "__main__":
    sys.exit(main())
