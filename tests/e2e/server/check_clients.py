#!/usr/bin/env python3
"""Clients of others against the server: Prometheus scrapes it, a Triton client infers, Schemathesis reads its OpenAPI document.

    check_clients.py TENON [--all]

Each is skipped, with the reason, where it is not installed; exit status 77 when none is. Those from PyPI are looked for in the
interpreter $TENON_CLIENTS_PYTHON, else in this one. --all runs every phase of Schemathesis (minutes), not the examples only.
"""
import json, os, shutil, signal, socket, subprocess, sys, tempfile, time, urllib.parse, urllib.request

PYTHON = os.environ.get("TENON_CLIENTS_PYTHON", sys.executable)

TRITON = r'''
import sys, numpy as np, tritonclient.http as http
client = http.InferenceServerClient(url=sys.argv[1])
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("op.add")
assert client.get_server_metadata()["name"] == "tenon"
assert [i["name"] for i in client.get_model_metadata("op.add")["inputs"]] == ["x", "y"]
a = np.arange(6, dtype=np.float32).reshape(2, 3)
for binary in (True, False):
    x = http.InferInput("x", [2, 3], "FP32"); x.set_data_from_numpy(a, binary_data=binary)
    y = http.InferInput("y", [2, 3], "FP32"); y.set_data_from_numpy(a + 1, binary_data=binary)
    result = client.infer("op.add", [x, y], outputs=[http.InferRequestedOutput("output", binary_data=binary)])
    assert np.array_equal(result.as_numpy("output"), a + a + 1)
half = a.astype(np.float16)
x = http.InferInput("x", [2, 3], "FP16"); x.set_data_from_numpy(half)
assert np.array_equal(client.infer("op.neg", [x]).as_numpy("output"), -half)
try:
    client.infer("op.nothing", [x])
    raise SystemExit("a model that is not there was found")
except http.InferenceServerException as error:
    assert "nothing" in str(error), error
'''


def has_module(name):
    return subprocess.run([PYTHON, "-c", "import " + name], capture_output=True).returncode == 0


def get(url):
    return json.load(urllib.request.urlopen(url, timeout=10))


def check_prometheus(address, directory):
    if not shutil.which("prometheus"):
        return "prometheus is not installed"
    config = os.path.join(directory, "prometheus.yml")
    with open(config, "w") as file:
        file.write("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- job_name: tenon\n"
                   "  static_configs: [{targets: ['%s']}]\n" % address)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = "127.0.0.1:%d" % unused.getsockname()[1]
    prometheus = subprocess.Popen(["prometheus", "--config.file=" + config, "--storage.tsdb.path=" + os.path.join(directory, "data"),
                                   "--web.listen-address=" + port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        query = "http://%s/api/v1/query?query=" % port + urllib.parse.quote('up{job="tenon"} + on() group_left() (tenon_build_info * 0)')
        deadline, problem = time.time() + 60, "no answer of its own"
        while time.time() < deadline:
            try:
                result = get(query)["data"]["result"]
                if result and result[0]["value"][1] == "1":
                    targets = get("http://%s/api/v1/targets" % port)["data"]["activeTargets"]
                    problem = targets[0]["lastError"]
                    if problem == "":
                        return None
            except OSError:
                pass
            time.sleep(0.2)
        raise SystemExit("Prometheus did not scrape the server: " + problem)
    finally:
        prometheus.terminate()
        prometheus.wait()


def check_triton(address, _):
    if not has_module("tritonclient.http"):
        return "tritonclient[http] is not installed for " + PYTHON
    subprocess.run([PYTHON, "-c", TRITON, address], check=True)


def check_schemathesis(address, directory):
    if not has_module("schemathesis"):
        return "schemathesis is not installed for " + PYTHON
    # What is made up for an example is the same at every run of the suite.
    phases = ["examples", "coverage", "fuzzing"] if "--all" in sys.argv else ["examples"]
    seed = [] if "--all" in sys.argv else ["--seed", "1"]
    # What is a right expression or a right file cannot be said in a schema, so valid requests may be refused.
    done = subprocess.run([PYTHON, "-m", "schemathesis.cli", "run", "http://%s/openapi.json" % address, "--phases", ",".join(phases),
                           "--exclude-path-regex", "/events$", "--exclude-checks", "positive_data_acceptance",
                           "--max-examples", "30", "--request-timeout", "30"] + seed, capture_output=True, text=True, cwd=directory)
    if done.returncode != 0:
        raise SystemExit(done.stdout[-6000:] + done.stderr[-2000:])


def main():
    with tempfile.TemporaryDirectory() as directory:
        run = os.path.join(directory, "run")
        os.mkdir(run, 0o700)
        environment = dict(os.environ, TENON_RUN_DIR=run, TENON_STATE_DIR=os.path.join(directory, "state"))
        server = subprocess.Popen([sys.argv[1], "serve", "--port", "0"], stdout=subprocess.PIPE, text=True, env=environment)
        try:
            address = server.stdout.readline().strip().rsplit("/", 1)[1]
            skipped = 0
            checks = [check_prometheus, check_triton, check_schemathesis]
            for check in checks:
                why = check(address, directory)
                print("%s: %s" % (check.__name__[6:], "skipped: " + why if why else "ok"), flush=True)
                skipped += why is not None
            assert urllib.request.urlopen("http://%s/livez" % address, timeout=10).status == 200
        finally:
            server.send_signal(signal.SIGTERM)
            status = server.wait(60)
    if status != 0:
        raise SystemExit("the server ended with status %d" % status)
    sys.exit(77 if skipped == len(checks) else 0)


if __name__ == "__main__":
    main()
