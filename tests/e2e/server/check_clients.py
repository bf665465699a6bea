#!/usr/bin/env python3
"""Clients of others against the server: Prometheus scrapes it, Triton's client infers, OpenAI's and LangChain's embed and chat, Schemathesis reads its OpenAPI document.

    check_clients.py TENON [--all]

Each is skipped, with the reason, where it is not installed; exit status 77 when none is. Those from PyPI are looked for in the
interpreter $TENON_CLIENTS_PYTHON, else in this one. --all runs every phase of Schemathesis (minutes), not the examples only.
"""
import contextlib, json, os, shutil, signal, socket, subprocess, sys, tempfile, time, urllib.parse, urllib.request

LANGUAGE_MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../model/gguf")
MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../fixtures/models")
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

TRITON_MODELS = r'''
import sys, numpy as np, tritonclient.http as http
client = http.InferenceServerClient(url=sys.argv[1])
assert {m["name"]: m["state"] for m in client.get_model_repository_index()}["words"] == "READY"
metadata = client.get_model_metadata("words")
assert [(i["name"], i["datatype"], i["shape"]) for i in metadata["inputs"]] == [("input_ids", "INT64", [-1, -1]), ("attention_mask", "INT64", [-1, -1])]
assert client.get_model_config("words")["max_batch_size"] == 32
def tensor(name, array, binary):
    x = http.InferInput(name, list(array.shape), "INT64"); x.set_data_from_numpy(array, binary_data=binary)
    return x
ids = np.array([[1, 2, 3], [4, 5, 6]], np.int64)
mask = np.array([[1, 1, 1], [1, 0, 0]], np.int64)
table = np.array([(i * 7) % 11 - 5 for i in range(32)], np.float32).reshape(8, 4)
for binary in (True, False):
    inputs = [tensor("input_ids", ids, binary), tensor("attention_mask", mask, binary)]
    result = client.infer("words", inputs, outputs=[http.InferRequestedOutput("last_hidden_state", binary_data=binary)], priority=1, timeout=10**7)
    assert np.array_equal(result.as_numpy("last_hidden_state"), table[ids] * mask[..., None])
waiting = [client.async_infer("words", [tensor("input_ids", ids[:1, :n], True), tensor("attention_mask", mask[:1, :n], True)]) for n in (1, 2, 3) * 5]
assert [r.get_result().as_numpy("last_hidden_state").shape[1] for r in waiting] == [1, 2, 3] * 5
statistics = client.get_inference_statistics("words")["model_stats"][0]
assert statistics["inference_count"] == 4 + 15 and statistics["inference_stats"]["success"]["count"] == 17, statistics
client.unload_model("words")
assert not client.is_model_ready("words")
client.load_model("words")
assert client.is_model_ready("words")
'''

OPENAI = r'''
import sys, numpy as np, openai
client = openai.OpenAI(base_url="http://%s/v1" % sys.argv[1], api_key="none", max_retries=0)
assert [m.id for m in client.models.list()] == ["linear", "words"]
assert client.models.retrieve("words").id == "words"
both = client.embeddings.create(model="words", input=["a b", "c"])  # the client asks for base64 and decodes it
assert [d.index for d in both.data] == [0, 1] and both.usage.total_tokens == 3
floats = client.embeddings.create(model="words", input="a b", encoding_format="float")
assert np.array_equal(np.float32(floats.data[0].embedding), np.float32(both.data[0].embedding))
assert abs(np.linalg.norm(both.data[1].embedding) - 1) < 1e-6
for wrong, hint in (([1, 2, 3], "check_embedding_ctx_length"), ([], "list of texts")):
    try:
        client.embeddings.create(model="words", input=wrong)
        raise SystemExit("%r was taken" % (wrong,))
    except openai.BadRequestError as error:
        assert hint in str(error), error
try:
    client.embeddings.create(model="nothing", input="a")
    raise SystemExit("a model that is not there was found")
except openai.NotFoundError as error:
    assert "words" in str(error), error
'''

OPENAI_CHAT = r'''
import sys, openai
client = openai.OpenAI(base_url="http://%s/v1" % sys.argv[1], api_key="none", max_retries=0)
model = "llama_q4_1"
messages = [{"role": "system", "content": "the"}, {"role": "user", "content": "hello world"}]
whole = client.chat.completions.create(model=model, messages=messages, max_tokens=16, temperature=0)
assert whole.choices[0].message.role == "assistant" and whole.choices[0].finish_reason in ("length", "stop")
assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
text, usage = "", None
for chunk in client.chat.completions.create(model=model, messages=messages, max_tokens=16, temperature=0, stream=True, stream_options={"include_usage": True}):
    if chunk.choices: text += chunk.choices[0].delta.content or ""
    usage = chunk.usage or usage
assert text == whole.choices[0].message.content, (text, whole)
assert usage == whole.usage, (usage, whole.usage)
one = client.completions.create(model=model, prompt="hello", max_tokens=8, temperature=0.5, seed=3, stop=["zzz"])
assert one.choices[0].text == client.completions.create(model=model, prompt="hello", max_tokens=8, temperature=0.5, seed=3).choices[0].text
assert "".join(c.choices[0].text for c in client.completions.create(model=model, prompt="hello", max_tokens=8, temperature=0.5, seed=3, stream=True)) == one.choices[0].text
for wrong, kind, hint in ((dict(model=model, messages=[]), openai.BadRequestError, "messages"), (dict(model="nothing", messages=messages), openai.NotFoundError, model),
                          (dict(model=model, messages=messages, n=2), openai.BadRequestError, "'n'")):
    try:
        client.chat.completions.create(**wrong)
        raise SystemExit("%r was taken" % (wrong,))
    except kind as error:
        assert hint in str(error) and error.type == "invalid_request_error", error
'''


LANGCHAIN = r'''
import asyncio, math, sys
from langchain_openai import OpenAIEmbeddings
# Without this the client would send the ids of OpenAI's own tokenizer, which the server refuses with a hint.
embeddings = OpenAIEmbeddings(model="words", base_url="http://%s/v1" % sys.argv[1], api_key="none", check_embedding_ctx_length=False, max_retries=0)
documents = embeddings.embed_documents(["a b", "c"])
assert len(documents) == 2 and abs(math.hypot(*documents[0]) - 1) < 1e-6, documents
assert embeddings.embed_query("a b") == documents[0]
assert asyncio.run(embeddings.aembed_query("c")) == documents[1]
'''

LANGCHAIN_CHAT = r'''
import asyncio, sys
from langchain_openai import ChatOpenAI, OpenAI
address = dict(base_url="http://%s/v1" % sys.argv[1], api_key="none", max_retries=0)
chat = ChatOpenAI(model="llama_q4_1", temperature=0, max_tokens=16, **address)
messages = [("system", "the"), ("human", "hello world")]
whole = chat.invoke(messages)
assert whole.content and whole.usage_metadata["output_tokens"] > 0, whole
assert "".join(chunk.content for chunk in chat.stream(messages)) == whole.content
async def streamed():
    return "".join([chunk.content async for chunk in chat.astream(messages)])
assert asyncio.run(streamed()) == whole.content
assert [m.content for m in chat.batch([messages] * 3)] == [whole.content] * 3
text = OpenAI(model="llama_q4_1", temperature=0, max_tokens=8, **address)
assert "".join(text.stream("hello")) == text.invoke("hello") != ""
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
    subprocess.run([PYTHON, "-c", TRITON_MODELS, address], check=True)


def check_openai(address, _):
    # Its packages are apart from the other clients': both bring their own versions of some.
    folder = os.environ.get("TENON_OPENAI", "")
    environment = dict(os.environ, PYTHONPATH=folder + os.pathsep + os.environ.get("PYTHONPATH", ""))
    if subprocess.run([PYTHON, "-c", "import openai, numpy"], capture_output=True, env=environment).returncode != 0:
        return "openai is not installed for " + PYTHON
    subprocess.run([PYTHON, "-c", OPENAI, address], check=True, env=environment)
    with serving(LANGUAGE_MODELS) as other:
        subprocess.run([PYTHON, "-c", OPENAI_CHAT, other], check=True, env=environment)


def check_langchain(address, _):
    # Its own version of OpenAI's client, and what else it brings, is in a folder of its own.
    environment = dict(os.environ, PYTHONPATH=os.environ.get("TENON_LANGCHAIN", ""), LANGCHAIN_TRACING_V2="false")
    if subprocess.run([PYTHON, "-c", "import langchain_openai"], capture_output=True, env=environment).returncode != 0:
        return "langchain-openai is not installed for " + PYTHON
    subprocess.run([PYTHON, "-c", LANGCHAIN, address], check=True, env=environment)
    with serving(LANGUAGE_MODELS) as other:
        subprocess.run([PYTHON, "-c", LANGCHAIN_CHAT, other], check=True, env=environment)


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


@contextlib.contextmanager
def serving(models):
    """The address of a server of this folder of models."""
    with tempfile.TemporaryDirectory() as directory:
        run = os.path.join(directory, "run")
        os.mkdir(run, 0o700)
        environment = dict(os.environ, TENON_RUN_DIR=run, TENON_STATE_DIR=os.path.join(directory, "state"))
        server = subprocess.Popen([sys.argv[1], "serve", "--port", "0", "--models", models], stdout=subprocess.PIPE, text=True, env=environment)
        try:
            yield server.stdout.readline().strip().rsplit("/", 1)[1]
        finally:
            server.send_signal(signal.SIGTERM)
            status = server.wait(60)
    if status != 0:
        raise SystemExit("the server ended with status %d" % status)


def main():
    with tempfile.TemporaryDirectory() as directory, serving(MODELS) as address:
        skipped = 0
        checks = [check_prometheus, check_triton, check_openai, check_langchain, check_schemathesis]
        for check in checks:
            why = check(address, directory)
            print("%s: %s" % (check.__name__[6:], "skipped: " + why if why else "ok"), flush=True)
            skipped += why is not None
        assert urllib.request.urlopen("http://%s/livez" % address, timeout=10).status == 200
    sys.exit(77 if skipped == len(checks) else 0)


if __name__ == "__main__":
    main()
