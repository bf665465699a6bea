"""Tenon below Ray Serve: Ray spreads requests over processes on several machines, each process leases a device of its machine.

    pip install "ray[serve]", and Tenon's package (docs/python.md)
    python examples/ray_serve.py            computes two answers and ends
    serve run examples.ray_serve:app        serves on http://localhost:8000 until it is stopped
"""
import ray
import tenon as tn
from ray import serve


# A process for each replica. Replicas on one machine share its devices: their leases queue in order of arrival.
@serve.deployment(num_replicas=2, max_ongoing_requests=64, ray_actor_options={"num_cpus": 0.5})
class Classifier:
    def __init__(self, features=64, classes=4):
        self.weights = tn.array([[((f * 7 + c * 3) % 11 - 5) / 10 for c in range(classes)] for f in range(features)])

    # One program and one lease for all requests that are there.
    @serve.batch(max_batch_size=32, batch_wait_timeout_s=0.002)
    async def classify(self, rows):
        return tn.softmax(tn.array(rows, dtype=tn.float32) @ self.weights).tolist()

    async def __call__(self, request):
        return await self.classify(await request.json())


app = Classifier.bind()

if __name__ == "__main__":
    import json
    import urllib.request

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    serve.run(app)
    for scale in (1.0, -1.0):
        body = json.dumps([scale * (i % 3) for i in range(64)]).encode()
        with urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:8000/", body, {"Content-Type": "application/json"})) as answer:
            print([round(p, 3) for p in json.loads(answer.read())])
    serve.shutdown()
    ray.shutdown()
