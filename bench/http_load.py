#!/usr/bin/env python3
"""The server under load, next to the same endpoint in Flask + gunicorn + NumPy, in one run on loopback.

    bench/http_load.py [--program build/release/tenon] [--seconds 3] [--python PYTHON]

Needs wrk. Flask, gunicorn and NumPy are taken from --python (an environment that has them); without them only Tenon is measured.
Prints a table in Markdown: requests a second, p50 and p99 latency, and CPU time of the server for each request, medians of five
rounds of --seconds each, hello and add in turns. The client shares the machine's cores, so CPU per request is the fairer figure.
"""
import argparse, json, os, re, signal, socket, statistics, subprocess, sys, tempfile, threading, time
import http.client

BODY = json.dumps({"operation": "add", "inputs": [{"value": 1, "dtype": "float32", "shape": [32, 32]},
                                                  {"value": 2, "dtype": "float32", "shape": [32, 32]}],
                   "compare": False, "details": False})

FLASK = '''
import numpy as np
from flask import Flask, jsonify, request
app = Flask(__name__)
OPS = {"add": np.add, "mul": np.multiply}
@app.post("/api/execute")
def execute():
    body = request.get_json()
    inputs = [np.full(tuple(i["shape"]), i["value"], i["dtype"]) for i in body["inputs"]]
    result = OPS[body["operation"]](*inputs)
    flat = result.reshape(-1)
    return jsonify(success=True, operation=body["operation"], value=float(flat[0]), shape=list(result.shape),
                   dtype=str(result.dtype), sample_values=[float(v) for v in flat[:10]], full_output=None, status_log=["computed"])
'''


ROUNDS = 5


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, limit=30):
    end = time.time() + limit
    while time.time() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("the server on port %d did not start" % port)


def cpu_seconds(pids):
    ticks = 0
    for pid in pids:
        try:
            fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


def family(pid):
    found = [pid]
    try:
        for child in open("/proc/%d/task/%d/children" % (pid, pid)).read().split():
            found += family(int(child))
    except OSError:
        pass
    return found


def wrk(port, path, seconds, body=None, connections=64):
    with tempfile.NamedTemporaryFile("w", suffix=".lua", delete=False) as script:
        if body:
            script.write("wrk.method='POST'\nwrk.body=%s\nwrk.headers['Content-Type']='application/json'\n" % json.dumps(body))
    out = subprocess.run(["wrk", "-t1", "-c%d" % connections, "-d%ds" % seconds, "--latency", "-s", script.name,
                          "http://127.0.0.1:%d%s" % (port, path)], capture_output=True, text=True).stdout
    os.unlink(script.name)
    unit = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
    latency = {m[0]: float(m[1]) * unit[m[2]] for m in re.findall(r"(50|99)%\s+([\d.]+)(us|ms|s)", out)}
    errors = re.search(r"Non-2xx[^:]*: (\d+)", out)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", out)
    if not rate:
        sys.exit(out)
    return {"rate": float(rate[1]), "p50": latency["50"], "p99": latency["99"], "errors": int(errors[1]) if errors else 0}


def measure(pid, port, seconds, rows, *cases):
    """Each of (name, path, body) in turns, ROUNDS times; the medians. What disturbs the machine then disturbs them all."""
    rounds = [[] for _ in cases]
    for _, path, body in cases:
        wrk(port, path, 1, body)
    for _ in range(ROUNDS):
        for (_, path, body), results in zip(cases, rounds):
            before = cpu_seconds(family(pid))
            results.append(wrk(port, path, seconds, body))
            results[-1]["cpu"] = (cpu_seconds(family(pid)) - before) / (results[-1]["rate"] * seconds)
    for (name, _, _), results in zip(cases, rounds):
        rows.append({key: statistics.median(r[key] for r in results) for key in ("rate", "p50", "p99", "cpu")})
        rows[-1].update(name=name, errors=sum(r["errors"] for r in results))
    return rows[-len(cases):]


class IdleClients:
    """Open connections: idle ones, and ones that send a header a byte a second."""

    def __init__(self, port, idle, slow):
        self.sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(idle + slow)]
        self.slow = self.sockets[idle:]
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.drip)
        self.thread.start()

    def drip(self):
        for s in self.slow:
            s.sendall(b"GET / HTTP/1.1\r\nX: ")
        while not self.ended.wait(1):
            for s in self.slow:
                try:
                    s.sendall(b"a")
                except OSError:
                    pass

    def close(self):
        self.ended.set()
        self.thread.join()
        for s in self.sockets:
            s.close()


def tensor_rate(port, mebibytes=64, times=8):
    """A binary tensor in and one out, bytes of one direction a second; the best of some."""
    count = mebibytes << 18
    header = json.dumps({"inputs": [{"name": "x", "shape": [count], "datatype": "FP32",
                                     "parameters": {"binary_data_size": count * 4}}],
                         "parameters": {"binary_data_output": True}}).encode()
    body = header + bytes(count * 4)
    buffer = bytearray(1 << 20)
    best = 0.0
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(times):
        begin = time.perf_counter()
        connection.request("POST", "/v2/models/op.neg/infer", body,
                           {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(header))})
        answer = connection.getresponse()
        got = 0
        while True:
            n = answer.readinto(buffer)
            if not n:
                break
            got += n
        if answer.status != 200 or got < count * 4:
            sys.exit("the tensor did not come back: status %d, %d bytes" % (answer.status, got))
        best = max(best, count * 4 / (time.perf_counter() - begin))
    return best


def burst(port, count=1000):
    """Requests for an on-demand device, 64 at a time; how often it was opened."""
    body = json.dumps({"operation": "neg", "device": "sim:0", "inputs": [{"value": 1, "shape": [32, 32]}], "compare": False,
                       "details": False})
    left = iter(range(count))
    lock = threading.Lock()
    failures = []

    def work():
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while True:
            with lock:
                if next(left, None) is None:
                    return
            connection.request("POST", "/api/execute", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                failures.append(answer.status)

    begin = time.perf_counter()
    threads = [threading.Thread(target=work) for _ in range(64)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    seconds = time.perf_counter() - begin
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/api/device/status?device=sim:0")
    counters = json.load(connection.getresponse())["device"]["status"]["counters"]
    return seconds, counters["opens"], len(failures)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/tenon")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        run = os.path.join(directory, "run")
        os.mkdir(run, 0o700)
        environment = dict(os.environ, TENON_RUN_DIR=run, XDG_STATE_HOME=directory)
        port = free_port()
        tenon = subprocess.Popen([options.program, "serve", "--port", str(port), "--sim",
                                  "wormhole,id=sim:0,open=100ms,close=100ms"], env=environment, stdout=subprocess.DEVNULL)
        try:
            wait_for(port)
            hello, ours = measure(tenon.pid, port, options.seconds, rows, ("Tenon, hello (GET /livez)", "/livez", None),
                                  ("Tenon, add 32x32", "/api/execute", BODY))
            crowd = IdleClients(port, 1000, 200)
            [crowded] = measure(tenon.pid, port, options.seconds, rows,
                                ("Tenon, add, 1,000 idle and 200 slow clients", "/api/execute", BODY))
            crowd.close()
            bytes_a_second = tensor_rate(port)
            burst_seconds, opens, failures = burst(port)
        finally:
            tenon.send_signal(signal.SIGTERM)
            tenon.wait(60)
        theirs = None
        if subprocess.run([options.python, "-c", "import flask, gunicorn, numpy"], capture_output=True).returncode == 0:
            open(os.path.join(directory, "flask_app.py"), "w").write(FLASK)
            port = free_port()
            flask = subprocess.Popen([options.python, "-m", "gunicorn", "-w", "2", "-b", "127.0.0.1:%d" % port, "--log-level", "error",
                                      "flask_app:app"], cwd=directory, stderr=subprocess.DEVNULL)
            try:
                wait_for(port)
                time.sleep(1)
                [theirs] = measure(flask.pid, port, options.seconds, rows,
                                   ("Flask + gunicorn + NumPy, 2 workers, add 32x32", "/api/execute", BODY))
            finally:
                flask.terminate()
                flask.wait(60)
        else:
            print("Flask, gunicorn or NumPy are not there: measured without them (--python)", file=sys.stderr)

    print("| server | requests/s | p50 | p99 | CPU per request | errors |\n| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print("| %s | %d | %.2f ms | %.2f ms | %.1f us | %d |" % (row["name"], row["rate"], row["p50"] * 1e3, row["p99"] * 1e3,
                                                                 row["cpu"] * 1e6, row["errors"]))
    print("\n| ratio | measured | bar |\n| --- | --- | --- |")
    print("| add over hello, requests/s | %.2f | 0.6 or more |" % (ours["rate"] / hello["rate"]))
    print("| p99 with 1,200 idle and slow clients over without | %.2f | below 2 |" % (crowded["p99"] / ours["p99"]))
    print("| 64 MiB tensor, there and back | %.2f GB/s | 1 or more |" % (bytes_a_second / 1e9))
    print("| opens in a burst of 1,000 on an on-demand device (%.1f s, %d failed) | %d | 3 at most |" % (burst_seconds, failures, opens))
    if theirs:
        print("| requests/s over Flask's | %.1f | 8 or more |" % (ours["rate"] / theirs["rate"]))
        print("| CPU per request over Flask's | %.3f | 0.1 at most |" % (ours["cpu"] / theirs["cpu"]))
        print("| p99 over Flask's | %.2f | 0.33 at most |" % (ours["p99"] / theirs["p99"]))


if __name__ == "__main__":
    main()
