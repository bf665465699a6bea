#!/usr/bin/env python3
"""Meshes over the processes of an MPI job: right results with Open MPI and MPICH, and clear errors when a process is gone.

usage: check_mpi.py TENON
"""
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
# Long enough to be interrupted: each process multiplies its rows for seconds before the sum is exchanged.
LONG = ["s = x @ x; " + "s = s @ x / 1000; " * 30 + "sum(s)", "x=randn([1500, 1500], seed=1)"]


def environment(folder):
    return dict(os.environ, TENON_RUN_DIR=folder, TENON_STATE_DIR=folder, TENON_THREADS="1")


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


def computing(pid):
    """Whether a process has computed for a while: MPI is started, and the exchange is still to come."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK") > 0.7


def check_gone(launcher, tenon, folder, how):
    command = launcher + ["-n", "3", tenon, "run", *LONG, "--mesh", "m=3", "--shard", "x=m,-", "--deadline", "4"]
    job = subprocess.Popen(command, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        limit = time.monotonic() + 60
        ranks = []
        while len(ranks) < 3 or not all(computing(pid) for pid in ranks):
            assert time.monotonic() < limit and job.poll() is None, "the processes did not start to compute"
            time.sleep(0.05)
            ranks = processes_of(job.pid, os.path.basename(tenon))
        os.kill(ranks[1], how)
        out, err = job.communicate(timeout=90)
        assert job.returncode != 0, (out, err)
        if how == signal.SIGSTOP:
            assert "did not answer within 4 s" in err and " on " in err, err
    finally:
        for pid in processes_of(job.pid, os.path.basename(tenon)):
            os.kill(pid, signal.SIGKILL)
        job.kill()
        job.wait()
    # No lease is left behind.
    alone = subprocess.run([tenon, "run", "1 + 1", "--timeout", "0"], env=environment(folder), capture_output=True, text=True, timeout=60)
    assert alone.returncode == 0, alone


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
                check_gone(present["openmpi"], tenon, folder, how)
                print(f"openmpi: a process that got {how.name} ends the job with an error")
    return 0


if __name__ == "__main__":
    sys.exit(main())
