#!/usr/bin/env python3
"""Dynamic batching under load: /v1/embeddings with 64 clients against the same texts encoded offline, in one run on loopback.

    bench/serving.py MODELS [--model minilm] [--program build/release/tenon] [--trace TRACE.csv] [--seconds 15] [--clients 64] [--offline 1000]

MODELS is a folder for `tenon serve --models`; a model without a tokenizer gets one of the words that are sent. Lengths are the GeneratedTokens of an Azure LLM trace
(the conversation trace of 2023), cut to 4 ... 128 tokens; without --trace they are log-normal with the same median. Prints Markdown:

- offline: `tenon encode` of the same texts, sorted by length, in batches of 32; and the server with all clients asking without a
  pause, in turns, three times each;
- Poisson arrivals at 0.5, 0.8 and 1.2 of that capacity: latencies count from the arrival, whether a client was free or not;
- three rules for forming batches replayed on times measured through the server: what Triton does (equal shapes only), what
  text-embeddings-inference does (first come, padded to the longest, up to 16384 padded tokens or 32 texts), and Tenon's.

Every vector is compared bit by bit with that of the same text asked for alone.
"""
import argparse, base64, bisect, collections, csv, http.client, json, os, random, re, shutil, signal, statistics, struct, subprocess, sys
import tempfile, threading, time

WORDS = "the cat sat on a red mat and then it went to see what was in old house by river with some good bread for its small friend".split()
ROWS = (1, 2, 4, 8, 16, 32)


def lengths_of(path, count, seed=1):
    generator = random.Random(seed)
    if path:
        with open(path, newline="") as file:
            all_lengths = [int(row["GeneratedTokens"]) for row in csv.DictReader(file)]
        lengths = [generator.choice(all_lengths) for _ in range(count)]
    else:
        lengths = [int(generator.lognormvariate(4.2, 0.8)) for _ in range(count)]
    return [min(max(length, 4), 128) for length in lengths]


def text_of(length, index):
    """A text of |length| tokens, the two that enclose it included; every word is one token."""
    generator = random.Random(index)
    return " ".join(generator.choice(WORDS) for _ in range(length - 2))


def with_tokenizer(models, model, folder):
    """The folder to serve: |models|, or |folder| with the model and a tokenizer of WORDS where it has none."""
    if os.path.exists(os.path.join(models, model, "tokenizer.json")):
        return models
    os.makedirs(os.path.join(folder, model))
    shutil.copy(os.path.join(models, model, "model.onnx"), os.path.join(folder, model))
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + sorted(set(WORDS)))}
    enclose = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    special = {name: {"id": name, "ids": [vocabulary[name]], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    with open(os.path.join(folder, model, "tokenizer.json"), "w") as file:
        json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "decoder": None,
                   "pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
                   "post_processor": {"type": "TemplateProcessing", "single": enclose, "pair": enclose, "special_tokens": special}}, file)
    return folder


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def post(self, path, body, headers):
        self.connection.request("POST", path, body, headers)
        response = self.connection.getresponse()
        data = response.read()
        if response.status != 200:
            raise RuntimeError("%d %s" % (response.status, data[:300]))
        return response, data

    def embed(self, model, text):
        body = json.dumps({"model": model, "input": text, "encoding_format": "base64"})
        _, data = self.post("/v1/embeddings", body, {"Content-Type": "application/json"})
        return json.loads(data)["data"][0]["embedding"]

    def infer(self, model, inputs, rows, length):
        tensors = {"input_ids": 1996, "attention_mask": 1, "token_type_ids": 0}
        size = rows * length * 8
        header = json.dumps({"inputs": [{"name": name, "shape": [rows, length], "datatype": "INT64", "parameters": {"binary_data_size": size}}
                                        for name in inputs], "parameters": {"binary_data_output": True}}).encode()
        body = header + b"".join(struct.pack("<q", tensors[name]) * (rows * length) for name in inputs)
        self.post("/v2/models/%s/infer" % model, body,
                  {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(header))})


class Server:
    def __init__(self, program, models):
        self.folder = tempfile.TemporaryDirectory()
        run = os.path.join(self.folder.name, "run")
        os.mkdir(run, 0o700)
        environment = dict(os.environ, TENON_RUN_DIR=run, TENON_STATE_DIR=os.path.join(self.folder.name, "state"))
        self.process = subprocess.Popen([program, "serve", "--port", "0", "--models", models], stdout=subprocess.PIPE, text=True, env=environment)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


class Load:
    """Clients in threads; each takes the next arrival and asks for its text."""

    def __init__(self, port, model, texts, clients, alone):
        self.port, self.model, self.texts, self.clients, self.alone = port, model, texts, clients, alone
        self.different = self.failed = 0

    def run(self, arrivals, seconds):
        """|arrivals|: times after the start, or None: each client asks without a pause for |seconds|. Latencies of the answers."""
        lock, latencies, at = threading.Lock(), [], [0]
        start = time.perf_counter() + 0.2

        def work():
            client = Client(self.port)
            time.sleep(max(0, start - time.perf_counter()))
            while True:
                with lock:
                    index = at[0]
                    at[0] += 1
                due = start + arrivals[index] if arrivals is not None and index < len(arrivals) else time.perf_counter()
                if (arrivals is not None and index >= len(arrivals)) or (arrivals is None and due > start + seconds):
                    return
                time.sleep(max(0, due - time.perf_counter()))
                text = self.texts[index % len(self.texts)]
                try:
                    vector = client.embed(self.model, text)
                except (RuntimeError, OSError):
                    with lock:
                        self.failed += 1
                    client = Client(self.port)
                    continue
                end = time.perf_counter()
                with lock:
                    latencies.append(end - due)
                    self.different += text in self.alone and self.alone[text] != vector

        threads = [threading.Thread(target=work) for _ in range(self.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return latencies, time.perf_counter() - start


def offline(program, models, model, texts):
    with tempfile.TemporaryDirectory() as folder:
        lines = os.path.join(folder, "lines.txt")
        with open(lines, "w") as file:
            file.write("\n".join(texts) + "\n")
        begin = time.perf_counter()
        done = subprocess.run([program, "encode", "--file", lines, "--model", os.path.join(models, model), "-o", os.path.join(folder, "v.npy")],
                              capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - begin
        rate = re.search(r"([\d.]+)(k?) texts/s", done.stdout + done.stderr)
        return float(rate.group(1)) * (1000 if rate.group(2) else 1) if rate else len(texts) / seconds


def quantile(values, share):
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] if values else float("nan")


# --- Rules for forming batches, replayed ---

def length_class(length):
    step = 8 if length <= 64 else 16 if length <= 128 else 32 if length <= 256 else 64
    return (length + step - 1) // step * step


class Times:
    """Seconds of a batch by rows and length, between measured shapes by interpolation."""

    def __init__(self, port, model, inputs, lengths):
        client, self.lengths, self.seconds = Client(port), lengths, {}
        for rows in ROWS:
            for length in lengths:
                client.infer(model, inputs, rows, length)
                timed = []
                for _ in range(3):
                    begin = time.perf_counter()
                    client.infer(model, inputs, rows, length)
                    timed.append(time.perf_counter() - begin)
                self.seconds[rows, length] = min(timed)

    def of(self, rows, length):
        def between(points, x, value):
            i = min(max(bisect.bisect_left(points, x), 1), len(points) - 1)
            a, b = points[i - 1], points[i]
            return value(a) + (value(b) - value(a)) * (x - a) / (b - a)
        return between(ROWS, rows, lambda r: between(self.lengths, length, lambda l: self.seconds[r, l]))


def triton(waiting, _):
    first = waiting[0]
    batch = [item for item in waiting if item == first][:32]
    return batch, first


def tei(waiting, _):
    batch, longest = [], 0
    for item in waiting:
        if len(batch) == 32 or max(longest, item) * (len(batch) + 1) > 16384:
            break
        batch.append(item)
        longest = max(longest, item)
    return batch, longest


def tenon(waiting, times):
    padded = length_class(waiting[0])
    batch = [item for item in waiting if length_class(item) == padded][:32]
    sizes = [rows for rows in ROWS if rows <= len(batch)]
    return batch[:max(sizes, key=lambda rows: rows / times.of(rows, padded))], padded


def replay(rule, lengths, times, clients):
    """Texts a second of |clients| who always wait for one answer."""
    waiting, rest, now, done = list(lengths[:clients]), collections.deque(lengths[clients:]), 0.0, 0
    while waiting:
        batch, padded = rule(waiting, times)
        now += times.of(len(batch), padded)
        done += len(batch)
        for item in batch:
            waiting.remove(item)
        for _ in batch:
            if rest:
                waiting.append(rest.popleft())
        if not rest:
            break
    return done / now


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--program", default="build/release/tenon")
    parser.add_argument("--trace")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--offline", type=int, default=1000, help="texts that are encoded offline")
    options = parser.parse_args()
    lengths = lengths_of(options.trace, 4000)
    texts = [text_of(length, i % 500) for i, length in enumerate(lengths)]
    made = tempfile.TemporaryDirectory()
    options.models = with_tokenizer(options.models, options.model, made.name)
    server = Server(options.program, options.models)
    try:
        inputs = [value["name"] for value in server.get("/v2/models/" + options.model)["inputs"]]
        alone = {}
        client = Client(server.port)
        for text in texts[:60]:
            alone[text] = client.embed(options.model, text)
        load = Load(server.port, options.model, texts, options.clients, alone)
        load.run(None, options.seconds)  # compiles the shapes
        rounds = []
        for _ in range(3):
            batch = offline(options.program, options.models, options.model, texts[:options.offline])
            latencies, seconds = load.run(None, options.seconds)
            rounds.append((batch, len(latencies) / seconds, quantile(latencies, 0.5), quantile(latencies, 0.99)))
        capacity = statistics.median(r[1] for r in rounds)
        print("Median length %d tokens, mean %.0f; %d clients.\n" % (statistics.median(lengths), statistics.mean(lengths), options.clients))
        print("| offline, texts/s | served without pauses, texts/s | ratio | p50 ms | p99 ms |\n| --- | --- | --- | --- | --- |")
        for r in rounds:
            print("| %.0f | %.0f | %.2f | %.0f | %.0f |" % (r[0], r[1], r[1] / r[0], r[2] * 1e3, r[3] * 1e3))
        print("\n| Poisson, of capacity | offered/s | answered/s | p50 ms | p99 ms |\n| --- | --- | --- | --- | --- |")
        for share in (0.5, 0.8, 1.2):
            rate, generator = capacity * share, random.Random(7)
            arrivals, at = [], 0.0
            while at < options.seconds:
                at += generator.expovariate(rate)
                arrivals.append(at)
            latencies, seconds = load.run(arrivals, options.seconds)
            print("| %.1f | %.0f | %.0f | %.0f | %.0f |" % (share, rate, len(latencies) / seconds, quantile(latencies, 0.5) * 1e3,
                                                          quantile(latencies, 0.99) * 1e3))
        statistics_ = server.get("/v2/models/%s/stats" % options.model)["model_stats"][0]
        own = statistics_["tenon"]
        print("\n%d texts in %d batches (%.1f each), %.1f %% padding, %d vectors compared differ, %d failed." % (
            statistics_["inference_count"], statistics_["execution_count"], statistics_["inference_count"] / statistics_["execution_count"],
            100 * (1 - own["tokens"] / own["padded_tokens"]), load.different, load.failed))
        print("Batches: " + ", ".join("%d x %d" % (b["compute_infer"]["count"], b["batch_size"]) for b in statistics_["batch_stats"]))
        times = Times(server.port, options.model, inputs, (8, 16, 24, 32, 48, 64, 96, 128))
        print("\n| rule, replayed on measured times | texts/s | Tenon's over it |\n| --- | --- | --- |")
        ours = replay(tenon, lengths, times, options.clients)
        for name, rule in (("equal shapes only (Triton)", triton), ("first come, padded to the longest (TEI)", tei), ("length classes (Tenon)", tenon)):
            rate = replay(rule, lengths, times, options.clients)
            print("| %s | %.0f | %.2f |" % (name, rate, ours / rate))
    finally:
        server.end()


if __name__ == "__main__":
    main()
