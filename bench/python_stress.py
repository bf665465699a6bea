#!/usr/bin/env python3
"""Threads and processes that share a card from Python, with forks, cancels, Ctrl-C and kills at random.

    PYTHONPATH=build/release/python python3 bench/python_stress.py [SECONDS] [PROCESSES] [THREADS]

Every process has threads that take leases, evaluate, call recorded functions and cancel tasks, and a main thread that waits for
the card, forks children that compute, and is interrupted. Some processes are killed while they work and replaced. At the end it
fails if a process hangs, a result was wrong, a lease is stuck, or memory grew. 10 minutes are the bar; the test suite runs a few
seconds.

A wait for the card that takes longer than its limit is judged by what happened meanwhile, so that a busy machine is no failure: it was
stuck if nobody got a lease, and it was passed over if others got very many.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

CARD = "sim:stress"
GRACE = 60.0  # for a process to end after it was told to


def resident_mib(pid: int) -> float:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Grants:
    """Leases granted in all processes, in memory that they share. A count lost to a race does not matter."""

    def __init__(self, path: str):
        with open(path, "a+b") as file:
            file.truncate(mmap.PAGESIZE)
            self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def __int__(self) -> int:
        return int.from_bytes(self.memory[:8], "little")

    def add(self) -> None:
        self.memory[:8] = (int(self) + 1).to_bytes(8, "little")


# --- A process under stress ---


class Worker:
    def __init__(self, seed: int, threads: int):
        import tenon as tn

        self.tn = tn
        self.seed = seed
        self.stop = threading.Event()
        self.is_interruptible = False
        self.wrong: list[str] = []
        self.counts: dict[str, int] = {}
        self.lock = threading.Lock()
        self.grants = Grants(os.environ["STRESS_GRANTS"])
        self.passed_over_at = 500 * threads  # grants of others during one wait; a turn of a process has several
        self.step = tn.jit(lambda x, s: (x * s).sum())
        tn.simulate("wormhole", open="2ms", close="1ms", id=CARD)
        self.threads = [threading.Thread(target=self.work, args=(i,), daemon=True) for i in range(threads)]

    def count(self, name: str) -> None:
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + 1

    def expect(self, name: str, got: Any, wanted: Any) -> None:
        self.count(name)
        if got != wanted:
            self.wrong.append(f"{name}: {got} instead of {wanted}")

    def work(self, i: int) -> None:
        choose = random.Random(self.seed * 1000 + i)
        acts = [self.leased, self.on_the_cpu, self.recorded, self.cancelled, self.timed_out]
        try:
            while not self.stop.is_set():
                choose.choice(acts)(choose)
        except BaseException as error:
            self.wrong.append(f"thread {i}: {type(error).__name__}: {error}")

    def leased(self, choose: random.Random) -> None:
        tn, n = self.tn, choose.randrange(1, 50)
        before = int(self.grants)
        try:
            with tn.lease(CARD, timeout=GRACE):
                self.grants.add()
                for _ in range(choose.randrange(1, 4)):
                    self.expect("leased", (tn.ones(n) * 2).on(CARD).sum().item(), 2.0 * n)
        except TimeoutError:
            others = int(self.grants) - before
            self.count("slow wait")
            if others == 0:
                self.wrong.append(f"nobody got a lease for {GRACE:.0f} s")
            elif others > self.passed_over_at:
                self.wrong.append(f"a wait was passed over by {others} leases")

    def on_the_cpu(self, choose: random.Random) -> None:
        n = choose.randrange(1, 2000)
        self.expect("on the CPU", (self.tn.arange(n, dtype="int64") + 1).sum().item(), n * (n + 1) // 2)

    def recorded(self, choose: random.Random) -> None:
        s = choose.randrange(100)
        self.expect("recorded", self.step(self.tn.ones(8), float(s)).item(), 8.0 * s)

    def cancelled(self, choose: random.Random) -> None:
        async def main() -> None:
            async def task() -> None:
                async with self.tn.lease(CARD):
                    await (self.tn.ones(4) + 1).on(CARD)

            tasks = [asyncio.ensure_future(task()) for _ in range(2)]
            await asyncio.sleep(choose.random() * 0.01)
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run(main())
        self.count("cancelled")

    def timed_out(self, choose: random.Random) -> None:
        try:
            with self.tn.lease(CARD, timeout=choose.random() * 0.005):
                pass
        except TimeoutError:
            pass
        self.count("timed out")

    def fork(self) -> None:
        # An interrupt within Python's own hooks around a fork would leave the lock of its logging in disorder.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        child = os.fork()
        signal.signal(signal.SIGINT, before)
        if child == 0:
            os._exit(0 if (self.tn.arange(9) * 2).sum().item() == 72 else 1)
        deadline = time.monotonic() + GRACE
        while (done := os.waitpid(child, os.WNOHANG))[0] == 0:
            if time.monotonic() > deadline:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                self.wrong.append("a forked child hung")
                return
            time.sleep(0.002)
        self.expect("forked", done[1], 0)

    def interrupt(self, *_: object) -> None:
        """Ctrl-C. One that comes while another is handled counts as the same."""
        if self.is_interruptible:
            self.is_interruptible = False
            raise KeyboardInterrupt

    def act(self, choose: random.Random) -> None:
        self.is_interruptible = True
        try:
            if choose.random() < 0.2:
                self.fork()
            else:
                self.leased(choose)
        except ChildProcessError:  # the interrupt came between the fork and the wait
            pass
        self.is_interruptible = False

    def main(self) -> int:
        for thread in self.threads:
            thread.start()
        signal.signal(signal.SIGTERM, lambda *_: self.stop.set())
        signal.signal(signal.SIGINT, self.interrupt)
        print("ready", flush=True)
        choose = random.Random(self.seed)
        while not self.stop.is_set():
            try:
                self.act(choose)
            except KeyboardInterrupt:
                self.count("interrupted")
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for thread in self.threads:
            thread.join(GRACE)
            if thread.is_alive():
                self.wrong.append("a thread hung")
        print(" ".join(f"{name.replace(' ', '_')}={n}" for name, n in sorted(self.counts.items())), flush=True)
        for line in self.wrong[:20]:
            print("WRONG", line, flush=True)
        sys.stdout.flush()
        os._exit(1 if self.wrong else 0)


# --- The one that starts, disturbs and watches them ---


class Watch:
    def __init__(self, seconds: float, processes: int, threads: int):
        self.seconds, self.threads = seconds, threads
        self.folder = tempfile.TemporaryDirectory(prefix="tenon-stress-")
        self.environment = {
            **os.environ,
            "TENON_RUN_DIR": self.folder.name + "/run",
            "TENON_STATE_DIR": self.folder.name + "/state",
            "STRESS_GRANTS": self.folder.name + "/grants",
        }
        self.choose = random.Random(7)
        self.started = 0
        self.killed = 0
        self.failures: list[str] = []
        self.totals: dict[str, int] = {}
        self.memory: dict[int, list[float]] = {}
        self.running = [self.start() for _ in range(processes)]

    def start(self) -> subprocess.Popen[str]:
        self.started += 1
        command = [sys.executable, __file__, "--worker", str(self.started), str(self.threads)]
        process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise SystemExit("a process did not start")
        return process

    def disturb(self) -> None:
        end = time.monotonic() + self.seconds
        next_kill = time.monotonic() + self.seconds / 4
        while time.monotonic() < end:
            time.sleep(0.05 + self.choose.random() * 0.1)
            one = self.choose.randrange(len(self.running))
            for process in self.running:
                if process.poll() is not None:
                    self.failures.append(f"process {process.pid} ended with {process.returncode}")
                    return
                self.memory.setdefault(process.pid, []).append(resident_mib(process.pid))
            if time.monotonic() > next_kill and len(self.running) > 1:
                next_kill += max(self.seconds / 4, 2.0)
                self.running[one].kill()
                self.running[one].wait()
                self.running[one] = self.start()
                self.killed += 1
            else:
                self.running[one].send_signal(signal.SIGINT)

    def finish(self) -> None:
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            try:
                text, _ = process.communicate(timeout=2 * GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                self.failures.append(f"process {process.pid} hung")
                continue
            for line in text.splitlines():
                if line.startswith("WRONG"):
                    self.failures.append(line)
                    continue
                for part in line.split():
                    name, _, number = part.partition("=")
                    self.totals[name] = self.totals.get(name, 0) + int(number or 0)
            if process.returncode != 0:
                self.failures.append(f"process {process.pid} ended with {process.returncode}")

    def check_the_lease(self) -> None:
        program = (
            f"import tenon as tn; tn.simulate('wormhole', open='1ms', id='{CARD}')\n"
            f"with tn.lease('{CARD}', timeout=10): print((tn.ones(2) + 1).on('{CARD}').tolist())"
        )
        done = subprocess.run([sys.executable, "-c", program], env=self.environment, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            self.failures.append("the lease is stuck: " + done.stderr.strip().splitlines()[-1])

    def growth_mib(self) -> float:
        """The largest growth from the first third of a process's life to its last. Short lives say nothing."""
        growths = []
        for values in self.memory.values():
            third = len(values) // 3
            if third >= 20:
                growths.append(sorted(values[-third:])[third // 2] - sorted(values[third : 2 * third])[third // 2])
        return max(growths, default=0.0)

    def report(self) -> int:
        growth = self.growth_mib()
        if growth > 16:
            self.failures.append(f"memory grew by {growth:.1f} MiB")
        done = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in sorted(self.totals.items()))
        print(f"{self.seconds:.0f} s, {len(self.running)} processes of {self.threads} threads, {self.killed} killed: {done}")
        print(f"memory grew by {growth:.1f} MiB")
        for failure in self.failures:
            print(failure)
        return 1 if self.failures else 0


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--worker"]:
        return Worker(int(arguments[1]), int(arguments[2])).main()
    seconds, processes, threads = (
        float(arguments[0]) if arguments else 600.0,
        *(int(n) for n in (arguments[1:3] + ["4", "8"][len(arguments[1:3]) :])),
    )
    watch = Watch(seconds, processes, threads)
    watch.disturb()
    watch.finish()
    watch.check_the_lease()
    return watch.report()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
