#!/usr/bin/env python3
"""A real server with eight simulated devices, four of speed 4 and four of speed 1: how requests are spread, and what a death costs.

usage: check_balancing.py TENON                                   devices are pulled out under load; nothing may be lost; and the
                                                                  times of requests are near those that `tenon simulate` tells
       check_balancing.py TENON --compare [--loads 0.5,0.7,0.9] [--seconds S] [--job J] [--rounds N]
                                                                  policies beside each other, with jobs of J seconds on a slow
                                                                  device: long ones where the machine is busy with other things

The server routes by itself (policy "tenon": routing fastest); for the others this program names the device of each request.
Requests arrive at random at the given share of what all devices can do.
"""
import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

FAST, SLOW = 4, 4
SPEED = {"fast": 4, "slow": 1}
SIMULATION_FACTOR = 3  # the clients, the server and its devices share the cores of a busy machine
CLIENTS = 8  # addresses: a server gives one client a quarter of its threads
REQUEST = {"expression": "sum(x @ x) + y", "compare": False, "details": False, "timeout_seconds": 120}


def post(port, body, source):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300, source_address=(source, 0))
    try:
        connection.request("POST", "/api/execute", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


class Server:
    def __init__(self, tenon, folder, seconds):
        self.folder = folder
        devices = [f"gpu,exclusive,open=20ms,close=10ms,compute={seconds / SPEED[kind]},unplug={self.file(number)}"
                   for number, kind in enumerate(["fast"] * FAST + ["slow"] * SLOW)]
        environment = dict(os.environ, TENON_RUN_DIR=folder, TENON_STATE_DIR=folder, TENON_SIM=";".join(devices), TENON_THREADS="1",
                           TENON_ALLOW_SIMULATED="true", TENON_ROUTING="fastest", TENON_KEEP_OPEN="always", TENON_LEDGER="false", TENON_PREFER="gpu")
        with open(f"{folder}/log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([tenon, "serve", "--port", "0", "--rate-limit", "0", "--threads", "256"], env=environment,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        self.ids = [f"sim:{i}" for i in range(FAST + SLOW)]

    def unplug(self, number, seconds):
        """Pulls out a device for a while."""
        with open(self.file(number), "w", encoding="utf-8"):
            pass
        time.sleep(seconds)
        os.remove(self.file(number))

    def file(self, number):
        return f"{self.folder}/unplugged{number}"

    def log(self):
        with open(f"{self.folder}/log", encoding="utf-8") as file:
            return file.read()

    def end(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def body_of(value, device):
    return {**REQUEST, "inputs": {"x": {"value": 0, "shape": [32, 32]}, "y": {"value": value}}, "device": device}


class Balancer:
    """Names a device for each request; knows which requests it gave out and which were answered."""

    def __init__(self, policy, ids, seconds):
        self.policy, self.ids, self.seconds = policy, ids, seconds
        self.given = {one: 0 for one in ids}
        self.turn = 0
        self.lock = threading.Lock()

    def expected(self, device):
        return (self.given[device] + 1) * self.seconds[device]

    def take(self, random_source):
        with self.lock:
            if self.policy == "tenon":
                return "auto"
            if self.policy == "round_robin":
                device = self.ids[self.turn % len(self.ids)]
                self.turn += 1
            elif self.policy == "random":
                device = random_source.choice(self.ids)
            elif self.policy == "least_loaded":
                device = min(self.ids, key=lambda one: (self.given[one], self.seconds[one]))
            elif self.policy == "two_choices":
                weights = [1 / self.seconds[one] for one in self.ids]
                device = min(random_source.choices(self.ids, weights, k=2), key=self.expected)
            else:  # expected
                device = min(self.ids, key=self.expected)
            self.given[device] += 1
            return device

    def give_back(self, device):
        if device != "auto":
            with self.lock:
                self.given[device] -= 1


def measure_seconds(server):
    """Of one request alone on each device, the second time; the server learns them, too."""
    seconds = {}
    for device in server.ids:
        best = []
        for _ in range(4):
            begin = time.monotonic()
            status, answer = post(server.port, body_of(1, device), "127.0.0.1")
            assert status == 200 and answer["value"] == 1, answer
            best.append(time.monotonic() - begin)
        seconds[device] = min(best[1:])
    return seconds


def run_load(server, policy, seconds, load, duration, seed):
    """Times of the requests from arrival to answer, and the failures."""
    balancer = Balancer(policy, server.ids, seconds)
    rate = load * sum(1 / each for each in seconds.values())
    source = random.Random(seed)
    times, failures, threads, lock = [], [], [], threading.Lock()

    def one(number, begin, device):
        try:
            status, answer = post(server.port, body_of(number, device), f"127.0.0.{1 + number % CLIENTS}")
            is_right = status == 200 and answer["value"] == number
        except (OSError, http.client.HTTPException, ValueError) as error:
            is_right, status, answer = False, 0, repr(error)
        balancer.give_back(device)
        with lock:
            if is_right:
                times.append(time.monotonic() - begin)
            else:
                failures.append((status, answer))

    begin = time.monotonic()
    at, number = 0.0, 0
    while at < duration:
        at += source.expovariate(rate)
        number += 1
        delay = begin + at - time.monotonic()
        if delay > 0:
            time.sleep(delay)
        # From when it should have arrived: a client that is late must not hide it.
        thread = threading.Thread(target=one, args=(number, begin + at, balancer.take(source)))
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    return sorted(times), failures


def check_deaths(tenon, duration):
    """Every second a device is pulled out for half a second; every request is answered rightly."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(tenon, folder, 0.2)
        try:
            seconds = measure_seconds(server)
            stop, deaths = threading.Event(), []

            def kill():
                source = random.Random(1)
                while not stop.wait(0.5):
                    server.unplug(source.randrange(FAST + SLOW), 0.5)
                    deaths.append(1)

            killer = threading.Thread(target=kill)
            killer.start()
            try:
                times, failures = run_load(server, "tenon", seconds, 0.5, duration, seed=1)
            finally:
                stop.set()
                killer.join()
            repeated = server.log().count("repeated on")
            assert not failures, f"{len(failures)} of {len(failures) + len(times)} requests were lost: {failures[:3]}"
            assert deaths and repeated, (deaths, repeated)
            print(f"{len(deaths)} devices pulled out, {len(times)} requests answered, {repeated} of them repeated on another device, none lost")
        finally:
            server.end()


def simulated(tenon, seconds, load, jobs):
    """The mean time of a request as the simulation has it, for devices that take these seconds."""
    devices = ",".join(f"1x{1 / each:.6f}" for each in seconds.values())
    done = subprocess.run([tenon, "simulate", "--devices", devices, "--load", str(load), "--jobs", str(jobs), "--equal-jobs", "--policy", "fastest",
                           "--json"], capture_output=True, text=True, timeout=100, check=True)
    return json.loads(done.stdout)["policies"][0]["mean_seconds"]


def check_simulation(tenon, duration):
    """The server and the simulation with the same devices, load and policy: the means are within a factor of SIMULATION_FACTOR."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(tenon, folder, 0.8)
        try:
            seconds = measure_seconds(server)
            for load in (0.4, 0.7):
                times, failures = run_load(server, "tenon", seconds, load, duration, seed=3)
                assert not failures, failures[:3]
                real, expected = sum(times) / len(times), simulated(tenon, seconds, load, 20000)
                assert expected / SIMULATION_FACTOR < real < expected * SIMULATION_FACTOR, (load, real, expected)
                print(f"load {load}: {len(times)} requests took {1e3 * real:.0f} ms on average, in the simulation {1e3 * expected:.0f} ms")
        finally:
            server.end()


def compare(tenon, loads, duration, policies, job, rounds):
    print("| load | policy | requests | mean ms | median ms | p99 ms |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        server = Server(tenon, folder, job)
        try:
            seconds = measure_seconds(server)
            for load in loads:
                for number, policy in [(number, policy) for number in range(rounds) for policy in policies]:
                    times, failures = run_load(server, policy, seconds, load, duration, seed=7 + number)
                    assert not failures, failures[:3]
                    print(f"| {load} | {policy} | {len(times)} | {1e3 * sum(times) / len(times):.0f} | {1e3 * times[len(times) // 2]:.0f} | "
                          f"{1e3 * times[int(len(times) * 0.99)]:.0f} |", flush=True)
        finally:
            server.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--loads", default="0.5,0.7,0.9")
    parser.add_argument("--policies", default="tenon,expected,least_loaded,two_choices,round_robin,random")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--job", type=float, default=0.4)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    tenon = os.path.abspath(arguments.tenon)
    if arguments.compare:
        compare(tenon, [float(load) for load in arguments.loads.split(",")], arguments.seconds, arguments.policies.split(","),
                arguments.job, arguments.rounds)
    else:
        check_deaths(tenon, arguments.seconds)
        check_simulation(tenon, arguments.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
