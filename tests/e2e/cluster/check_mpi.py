#!/usr/bin/env python3
"""Meshes over the processes of an MPI job: right results with Open MPI and MPICH, and clear errors when a process is gone.

usage: check_mpi.py TENON [--seconds N]      (the limit of all of it: less than ctest's, so that a hang is described)
"""
import argparse
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
# Long enough to be interrupted: each process multiplies its part on its own slow device before the sum is exchanged.
LONG = ["sum(tanh(x @ w))", "x=randn([64, 64], seed=1)", "w=randn([64, 64], seed=2)"]
SLOW_DEVICE = "gpu,compute=4s"
GONE = {"openmpi": [("line", signal.SIGSTOP), ("2 x 2", signal.SIGKILL)], "mpich": [("line", signal.SIGKILL), ("2 x 2", signal.SIGSTOP)]}
# Mesh, sharding of x, number of processes.
MESHES = {"line": ("m=3", "x=m,-", 3), "2 x 2": ("a=2,b=2", "x=a,b", 4)}


class Limit:
    """What is left of the time that the whole check may take."""
    end = 0

    @classmethod
    def seconds(cls, most):
        return max(1, min(most, cls.end - time.monotonic()))


def environment(folder, devices=""):
    return dict(os.environ, TENON_RUN_DIR=folder, TENON_STATE_DIR=folder, TENON_THREADS="1", TENON_SIM=devices)


def fields_of(pid):
    """Name, state, parent and session of a process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        before, after = stat.read().rsplit(")", 1)
    words = after.split()
    return before.split("(", 1)[1], words[0], int(words[1]), int(words[3])


class Job:
    """A launcher and all that it starts, in a session of their own. Output goes to files: a process that is left over keeps no
    pipe open."""

    def __init__(self, words, folder, devices=""):
        self.words = words
        self.out, self.err = tempfile.TemporaryFile("w+", dir=folder), tempfile.TemporaryFile("w+", dir=folder)
        self.process = subprocess.Popen(words, env=environment(folder, devices), stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
                                        start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.members():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def members(self):
        found = []
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and fields_of(entry)[3] == self.process.pid:
                    found.append(int(entry))
            except (OSError, ValueError, IndexError):
                continue
        return sorted(found)

    def text(self, file):
        file.seek(0)
        return file.read()

    def describe(self):
        lines = [" ".join(self.words)]
        for pid in self.members():
            try:
                name, state, parent, _ = fields_of(pid)
                with open(f"/proc/{pid}/wchan", encoding="utf-8") as wchan:
                    lines.append(f"process {pid} ({name}), parent {parent}: state {state}, waits in {wchan.read() or '-'}")
            except OSError:
                continue
        return "\n".join([*lines, "stdout:", self.text(self.out), "stderr:", self.text(self.err)])

    def end(self, most):
        """Waits for the launcher; returns the exit status and what was said."""
        seconds = Limit.seconds(most)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the job did not end within {seconds:.0f} s\n{self.describe()}") from None
        return self.process.returncode, self.text(self.out), self.text(self.err)


def run(launcher, ranks, tenon, arguments, folder, devices=""):
    with Job(launcher + ["-n", str(ranks), tenon, "run", *arguments], folder, devices) as job:
        return job.end(90)


def check_results(launcher, tenon, folder):
    for mesh, shards in (("model=4", ["w=-,model", "v=model,-"]), ("data=2,model=2", ["x=data,-", "w=-,model", "v=model,-"])):
        split = [option for shard in shards for option in ("--shard", shard)]
        status, out, err = run(launcher, 4, tenon, [*MLP, "--mesh", mesh, *split, "--compare"], folder)
        assert status == 0, (out, err)
        assert out.count("[6, 4] float32") == 1, "one process prints: " + out
        assert "1 exchange" in out and "match" in out, out
    status, out, err = run(launcher, 2, tenon, [*MLP, "--mesh", "model=4"], folder)
    assert status != 0 and "4 places" in err, (out, err)


def holders(tenon, folder, devices):
    """The processes that have leased a device: MPI is started, and the exchange is still to come."""
    told = subprocess.run([tenon, "queue", "--json"], env=environment(folder, devices), capture_output=True, text=True,
                          timeout=Limit.seconds(60))
    return sorted(holder["pid"] for device in json.loads(told.stdout)["devices"] for holder in device["holders"])


def check_gone(launcher, tenon, folder, how, devices, shape, leased):
    """A process is gone when |leased| of them have a device: the job ends with an error, and no lease is left behind."""
    mesh, shard, ranks = MESHES[shape]
    words = launcher + ["-n", str(ranks), tenon, "run", *LONG, "--mesh", mesh, "--shard", shard, "--deadline", "4"]
    with Job(words, folder, devices) as job:
        begin, leasing = time.monotonic(), []
        while len(leasing) < leased:
            assert time.monotonic() - begin < Limit.seconds(90) and job.process.poll() is None, \
                f"the processes did not start to compute\n{job.describe()}"
            leasing = holders(tenon, folder, devices)
            time.sleep(0.05)
        os.kill(leasing[leased // 2], how)
        status, out, err = job.end(60)
        assert status != 0, (out, err)
        if how == signal.SIGSTOP:
            assert "did not answer within 4 s" in err and " on " in err, err
    assert not holders(tenon, folder, devices), "a lease is left"


def check_absent(launcher, tenon, folder):
    """A process that never comes to MPI ends the start of the others with an error."""
    words = launcher + ["-n", "1", tenon, "run", *MLP, "--mesh", "model=2", "--deadline", "1", ":", "-n", "1", "sleep", "600"]
    with Job(words, folder) as job:
        status, out, err = job.end(90)
        assert status != 0 and "MPI did not start within 20 s" in err, (status, out, err)


def check_slow_opening(launcher, tenon, folder):
    """Processes wait for one that opens its device for longer than the deadline, as long as it lives."""
    arguments = [*MLP, "--mesh", "model=2", "--shard", "w=-,model", "--shard", "v=model,-", "--deadline", "3"]
    for devices in ("gpu,open=7;gpu", "gpu;gpu,open=7"):
        status, out, err = run(launcher, 2, tenon, arguments, folder, devices)
        assert status == 0, (out, err)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon")
    parser.add_argument("--seconds", type=float, default=270)
    arguments = parser.parse_args()
    Limit.end = time.monotonic() + arguments.seconds
    tenon = os.path.abspath(arguments.tenon)
    present = {name: words for name, words in LAUNCHERS.items() if shutil.which(words[0])}
    if not present:
        print("neither Open MPI nor MPICH is installed here")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        for name, launcher in present.items():
            check_results(launcher, tenon, folder)
            print(f"{name}: results are right", flush=True)
            for shape, how in GONE[name]:
                ranks = MESHES[shape][2]
                check_gone(launcher, tenon, folder, how, ";".join([SLOW_DEVICE] * ranks), shape, leased=ranks)
                print(f"{name}: a process of a mesh ({shape}) that got {how.name} ends the job with an error", flush=True)
        launcher = next(iter(present.values()))
        check_gone(launcher, tenon, folder, signal.SIGSTOP, "gpu,open=60;gpu;gpu", "line", leased=1)
        print("a process that hangs in its turn ends the job with an error", flush=True)
        check_slow_opening(launcher, tenon, folder)
        print("a device that opens slowly is waited for", flush=True)
        check_absent(launcher, tenon, folder)
        print("a process that does not start MPI ends the job with an error", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
