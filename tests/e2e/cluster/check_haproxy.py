#!/usr/bin/env python3
"""Replicas of `tenon serve` behind HAProxy with the shipped configuration: a replica that is killed loses no request that can be repeated.

usage: check_haproxy.py TENON CONFIGURATION [--kills N]

Clients compute without pause while replicas are killed and started again, one after the other. Every request must be answered,
and answered rightly.
"""
import argparse
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77
REPLICAS = 3
CLIENTS = 6
# Slow enough that a kill meets requests at work.
DEVICE = "gpu,shared,compute=50ms"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json", **(headers or {})})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or "null"), response.headers
    finally:
        connection.close()


def eventually(seconds, condition, what):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, what
        time.sleep(0.05)


class Replica:
    def __init__(self, tenon, folder, number):
        self.tenon, self.folder, self.port = tenon, f"{folder}/replica{number}", free_port()
        os.makedirs(f"{self.folder}/run", mode=0o700)
        self.process = None

    def start(self):
        environment = dict(os.environ, TENON_RUN_DIR=f"{self.folder}/run", TENON_STATE_DIR=self.folder, TENON_SIM=DEVICE, TENON_THREADS="1")
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen([self.tenon, "serve", "--port", str(self.port), "--trusted-proxy", "127.0.0.1"], env=environment,
                                            stdout=log, stderr=log)
        eventually(60, self.is_ready, "a replica did not start")

    def readiness(self):
        return request(self.port, "GET", "/readyz")[1]

    def is_ready(self):
        try:
            return request(self.port, "GET", "/readyz")[0] == 200
        except OSError:
            return False

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait(60)


def start_haproxy(configuration, folder, replicas):
    """The shipped file with the addresses of this test."""
    with open(configuration, encoding="utf-8") as file:
        text = file.read()
    port = free_port()
    text, count = re.subn(r"bind :8080", f"bind 127.0.0.1:{port}", text)
    assert count == 1
    text = re.sub(r"\n    server .*", "", text).rstrip()
    for number, replica in enumerate(replicas, 1):
        text += f"\n    server replica{number} 127.0.0.1:{replica.port} cookie replica{number}"
    path = f"{folder}/haproxy.cfg"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    with open(f"{folder}/haproxy.log", "ab") as log:
        process = subprocess.Popen(["haproxy", "-db", "-f", path], stdout=log, stderr=log)

    def answers():
        try:
            return request(port, "GET", "/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False
    eventually(30, answers, "HAProxy did not start")
    return process, port


class Client(threading.Thread):
    """Computes until it is told to stop, and checks every answer."""

    def __init__(self, port, number, stop):
        super().__init__()
        self.port, self.number, self.stop = port, number, stop
        self.answered, self.failures = 0, []

    def run(self):
        while not self.stop.is_set():
            value = self.number * 10000 + self.answered
            body = {"expression": "sum(x @ x) + y", "inputs": {"x": {"value": 0, "shape": [64, 64]}, "y": {"value": value}},
                    "device": "gpu", "compare": False, "details": False}
            try:
                status, answer, _ = request(self.port, "POST", "/api/execute", body)
            except (OSError, http.client.HTTPException, ValueError) as error:
                status, answer = 0, repr(error)
            if status == 200 and answer["value"] == value:
                self.answered += 1
            else:
                self.failures.append((status, answer))
                time.sleep(0.1)


def check_kills(replicas, port, kills):
    stop = threading.Event()
    clients = [Client(port, number, stop) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    met = 0
    try:
        for number in range(kills):
            replica = replicas[number % len(replicas)]
            eventually(60, lambda r=replica: r.readiness()["running"] > 0, "no request came to a replica")
            met += 1
            # Every third is asked to end, which must lose nothing either; the others are not asked.
            replica.end(signal.SIGTERM if number % 3 == 2 else signal.SIGKILL)
            replica.start()
    finally:
        stop.set()
        for client in clients:
            client.join()
    failures = [failure for client in clients for failure in client.failures]
    answered = sum(client.answered for client in clients)
    assert not failures, f"{len(failures)} of {len(failures) + answered} requests failed: {failures[:5]}"
    print(f"{kills} replicas ended at work, {answered} requests answered, none lost")


def check_state(port):
    """A client that keeps the cookie finds its job, which lives on one replica."""
    status, job, headers = request(port, "POST", "/api/jobs", {"expression": "1 + 1"})
    assert status == 202, job
    cookie = headers["Set-Cookie"].split(";")[0]
    assert cookie.startswith("tenon_replica="), headers
    for _ in range(2 * REPLICAS):
        status, _, _ = request(port, "GET", job["location"], headers={"Cookie": cookie})
        assert status == 200, status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon")
    parser.add_argument("configuration")
    parser.add_argument("--kills", type=int, default=4)
    arguments = parser.parse_args()
    if not shutil.which("haproxy"):
        print("haproxy is not installed here")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        replicas = [Replica(os.path.abspath(arguments.tenon), folder, number) for number in range(REPLICAS)]
        balancer = None
        try:
            for replica in replicas:
                replica.start()
            balancer, port = start_haproxy(arguments.configuration, folder, replicas)
            check_state(port)
            check_kills(replicas, port, arguments.kills)
            told = replicas[0].readiness()
            assert told["status"] == "ready" and told["waiting"] >= 0 and told["open_devices"] >= 0, told
        except AssertionError:
            with open(f"{folder}/haproxy.log", encoding="utf-8", errors="replace") as log:
                print("".join([line for line in log if " 200 " not in line and " 202 " not in line][-40:]))
            raise
        finally:
            if balancer:
                balancer.kill()
                balancer.wait()
            for replica in replicas:
                if replica.process:
                    replica.process.kill()
                    replica.process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
