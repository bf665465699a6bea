"""The peers of bench/cpu/cpu: NumPy, numexpr and PyTorch, those that are installed.

Started by bench_cpu as `python3 peers.py THREADS`. Prints three lines (names, versions, what is missing), then answers each line
`PEER OP SIZE CALLS` with the seconds of the fastest of CALLS calls after one uncounted, or -1 when the peer has no such op.
Results are written into memory given, where the peer can; "eager" is PyTorch as people write it, each step into memory of its own.
gelu is exact, gelu_tanh by the tanh formula; NumPy and numexpr have no erf, so only the second. Ops that end in _f64 are of float64,
those of logarithms of positive numbers.
"""

import os
import sys
import time

THREADS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(THREADS)

versions, missing = [], []


def optional(name):
    try:
        module = __import__(name)
    except ImportError:
        missing.append(f"{name} (not installed)")
        return None
    versions.append(f"{name} {module.__version__}")
    return module


np = optional("numpy")
ne = optional("numexpr")
torch = optional("torch")
if ne:
    ne.set_num_threads(THREADS)
if torch:
    torch.set_num_threads(THREADS)

SCALE = 0.7978845608028654  # sqrt(2 / pi)


# Work on the rows and columns of square matrices.
SQUARE = ("softmax", "transpose", "sum_columns", "max_columns", "sum_products", "variance", "minus_max", "layer_norm", "log_softmax",
          "cumsum", "to_bfloat16")


class Memory:
    """The arrays of one size, made once: a and b normal, p positive, out and two temporaries touched."""

    def __init__(self, op, size, dtype):
        side = {1 << 20: 1024, 1 << 24: 4096}.get(size, size)
        shape = (side, side) if op in SQUARE or op == "matmul" else (size,)
        random = np.random.default_rng(1)
        self.a = random.standard_normal(shape, dtype=dtype)
        self.b = random.standard_normal(shape, dtype=dtype)
        self.p = abs(self.a) + dtype(0.1)
        self.out, self.t, self.u = (np.zeros(shape, dtype) for _ in range(3))
        if torch:
            self.ta, self.tb, self.tp, self.tout, self.tt = (torch.from_numpy(x) for x in (self.a, self.b, self.p, self.out, self.t))


def numpy_call(op, m):
    a, b, out, t, u = m.a, m.b, m.out, m.t, m.u

    def sigmoid():
        np.negative(a, out=out)
        np.exp(out, out=out)
        np.add(out, 1, out=out)
        np.reciprocal(out, out=out)

    def softmax():
        np.subtract(a, a.max(axis=-1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.divide(out, out.sum(axis=-1, keepdims=True), out=out)

    def gelu():
        np.multiply(a, b, out=t)
        np.add(t, 0.5, out=t)
        np.multiply(t, t, out=u)
        np.multiply(u, 0.044715 * SCALE, out=u)
        np.add(u, SCALE, out=u)
        np.multiply(u, t, out=u)
        np.tanh(u, out=u)
        np.add(u, 1, out=u)
        np.multiply(u, t, out=u)
        np.multiply(u, 0.5, out=out)

    return {
        "add": lambda: np.add(a, b, out=out),
        "exp": lambda: np.exp(a, out=out),
        "tanh": lambda: np.tanh(a, out=out),
        "sigmoid": sigmoid,
        "sum": lambda: a.sum(),
        "softmax": softmax,
        "transpose": lambda: np.copyto(out, a.T),
        "gelu_tanh": gelu,
        "matmul": lambda: np.matmul(a, b, out=out),
        "sum_columns": lambda: a.sum(axis=0),
        "max_columns": lambda: a.max(axis=0),
        "sum_products": lambda: np.einsum("ij,ij->i", a, b),
        "variance": lambda: a.var(axis=-1),
        "minus_max": lambda: np.subtract(a, a.max(axis=-1, keepdims=True), out=out),
        "cumsum": lambda: np.cumsum(a, axis=-1, out=out),
        "log": lambda: np.log(m.p, out=out),
        "log1p": lambda: np.log1p(m.p, out=out),
        "sin": lambda: np.sin(a, out=out),
        "cos": lambda: np.cos(a, out=out),
        "atan": lambda: np.arctan(a, out=out),
        "expm1": lambda: np.expm1(a, out=out),
    }.get(op)


def numexpr_call(op, m):
    a, b, out = m.a, m.b, m.out
    half, one, cube, scale = (a.dtype.type(x) for x in (0.5, 1, 0.044715 * SCALE, SCALE))
    names = {"a": a, "b": b, "p": m.p, "h": half, "one": one, "c": cube, "s": scale}
    text = {
        "add": "a + b",
        "exp": "exp(a)",
        "log": "log(p)",
        "log1p": "log1p(p)",
        "sin": "sin(a)",
        "cos": "cos(a)",
        "atan": "arctan(a)",
        "expm1": "expm1(a)",
        "tanh": "tanh(a)",
        "sigmoid": "one / (one + exp(-a))",
        "gelu_tanh": "h * (a * b + h) * (one + tanh((a * b + h) * (s + c * (a * b + h) * (a * b + h))))",
    }.get(op)
    if text:
        return lambda: ne.evaluate(text, local_dict=names, out=out)
    if op == "sum":
        return lambda: ne.evaluate("sum(a)", local_dict=names)
    return None


def torch_call(op, m):
    a, b, out, t = m.ta, m.tb, m.tout, m.tt

    def gelu(form):
        torch.mul(a, b, out=t)
        torch.add(t, 0.5, out=t)
        torch._C._nn.gelu(t, approximate=form, out=out)

    return {
        "add": lambda: torch.add(a, b, out=out),
        "exp": lambda: torch.exp(a, out=out),
        "tanh": lambda: torch.tanh(a, out=out),
        "sigmoid": lambda: torch.sigmoid(a, out=out),
        "sum": lambda: a.sum(),
        "softmax": lambda: torch._C._nn.softmax(a, -1, out=out) if hasattr(torch._C._nn, "softmax") else torch.softmax(a, -1),
        "transpose": lambda: out.copy_(a.t()),
        "gelu": lambda: gelu("none"),
        "gelu_tanh": lambda: gelu("tanh"),
        "matmul": lambda: torch.mm(a, b, out=out),
        "sum_columns": lambda: a.sum(0),
        "max_columns": lambda: a.amax(0),
        "sum_products": lambda: torch.mul(a, b, out=t).sum(-1),
        "variance": lambda: a.var(-1, unbiased=False),
        "minus_max": lambda: torch.sub(a, a.amax(-1, keepdim=True), out=out),
        "cumsum": lambda: torch.cumsum(a, -1, out=out),
        "log": lambda: torch.log(m.tp, out=out),
        "log1p": lambda: torch.log1p(m.tp, out=out),
        "sin": lambda: torch.sin(a, out=out),
        "cos": lambda: torch.cos(a, out=out),
        "atan": lambda: torch.atan(a, out=out),
        "expm1": lambda: torch.expm1(a, out=out),
        "erf": lambda: torch.erf(a, out=out),
    }.get(op)


def eager_call(op, m):
    a, b = m.ta, m.tb
    gelu = torch.nn.functional.gelu
    return {
        "add": lambda: a + b,
        "exp": lambda: torch.exp(a),
        "tanh": lambda: torch.tanh(a),
        "sigmoid": lambda: torch.sigmoid(a),
        "sum": lambda: a.sum(),
        "softmax": lambda: torch.softmax(a, -1),
        "transpose": lambda: a.t().contiguous(),
        "sum_columns": lambda: a.sum(0),
        "max_columns": lambda: a.amax(0),
        "sum_products": lambda: (a * b).sum(-1),
        "variance": lambda: a.var(-1, unbiased=False),
        "minus_max": lambda: a - a.amax(-1, keepdim=True),
        "layer_norm": lambda: torch.nn.functional.layer_norm(a, a.shape[-1:]),
        "log_softmax": lambda: torch.log_softmax(a, -1),
        "cumsum": lambda: a.cumsum(-1),
        "to_bfloat16": lambda: a.bfloat16(),
        **{name: (lambda f=getattr(torch, name): f(a)) for name in ("sin", "cos", "atan", "expm1", "erf")},
        **{name: (lambda f=getattr(torch, name): f(m.tp)) for name in ("log", "log1p")},
        "gelu": lambda: gelu(a * b + 0.5),
        "gelu_tanh": lambda: gelu(a * b + 0.5, approximate="tanh"),
    }.get(op)


def fastest(call, calls, size):
    # Tiny work is timed in batches: one call is shorter than the clock is sharp.
    batch = 1000 if size <= 1024 and calls > 100 else 1
    calls = max(1, calls // batch)
    call()
    best = float("inf")
    for _ in range(calls):
        begin = time.perf_counter()
        for _ in range(batch):
            call()
        best = min(best, (time.perf_counter() - begin) / batch)
    return best


def main():
    makers = {"numpy": numpy_call if np else None, "numexpr": numexpr_call if np and ne else None, "torch": torch_call if np and torch else None,
              "eager": eager_call if np and torch else None}
    print(" ".join(name for name, maker in makers.items() if maker))
    print(", ".join(versions))
    print(", ".join(missing), flush=True)
    memory = {}
    with torch.no_grad() if torch else open(os.devnull):
        for line in sys.stdin:
            peer, op, size, calls = line.split()
            dtype = np.float64 if op.endswith("_f64") else np.float32
            op = op.removesuffix("_f64")
            key = (op in SQUARE, op == "matmul", int(size), dtype)
            if key not in memory:
                memory[key] = Memory(op, int(size), dtype)
            maker = makers.get(peer)
            call = maker(op, memory[key]) if maker else None
            print(fastest(call, int(calls), int(size)) if call else -1, flush=True)


if __name__ == "__main__":
    main()
