"""make_exported_cases.py FOLDER: writes small models of the ops that exporters use beside ONNX's own (com.microsoft, ai.onnx.ml) as
cases in the layout of ONNX's test sets, with what ONNX Runtime computes for them. Needs onnx and onnxruntime."""

import os
import shutil
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F, I64, I32, U8, I8 = np.float32, np.int64, np.int32, np.uint8, np.int8
KINDS = {F: TensorProto.FLOAT, I64: TensorProto.INT64, I32: TensorProto.INT32, U8: TensorProto.UINT8, I8: TensorProto.INT8,
         np.bool_: TensorProto.BOOL, np.float64: TensorProto.DOUBLE}
random = np.random.RandomState(0)


def floats(*shape, scale=1.0):
    return (random.randn(*shape) * scale).astype(F)


def codes(*shape, low=0, high=256, dtype=U8):
    return random.randint(low, high, shape).astype(dtype)


class Case:
    """One node: inputs are arrays that a caller passes, constants those that are part of the model. None is an absent input."""

    def __init__(self, folder, name, op, inputs, domain="com.microsoft", constants=(), outputs=1, sets=(), types=None, **attributes):
        names = [f"i{i}" if array is not None else "" for i, array in enumerate(inputs)]
        fed = [i for i, array in enumerate(inputs) if array is not None and i not in constants]
        node = helper.make_node(op, names, [f"o{i}" for i in range(outputs)], domain=domain, **attributes)
        shapes = [[None] * inputs[i].ndim for i in fed]
        types = types or [TensorProto.FLOAT] * outputs
        graph = helper.make_graph(
            [node], name, [helper.make_tensor_value_info(names[i], KINDS[inputs[i].dtype.type], s) for i, s in zip(fed, shapes)],
            [helper.make_tensor_value_info(f"o{i}", t, None) for i, t in enumerate(types)],
            [numpy_helper.from_array(inputs[i], names[i]) for i in constants if inputs[i] is not None])
        opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(domain, 1 if domain == "com.microsoft" else 3)] if domain else [])
        if op == "TreeEnsemble":
            opsets[-1].version = 5
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        place = os.path.join(folder, name)
        shutil.rmtree(place, ignore_errors=True)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        for number, values in enumerate([[inputs[i] for i in fed], *sets]):
            data = os.path.join(place, f"test_data_set_{number}")
            os.makedirs(data)
            expected = session.run(None, dict(zip([names[i] for i in fed], values)))
            for kind, arrays in (("input", values), ("output", expected)):
                for i, array in enumerate(arrays):
                    with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as file:
                        file.write(numpy_helper.from_array(np.asarray(array), f"{kind}{i}").SerializeToString())
        with open(os.path.join(place, "model.onnx"), "wb") as file:
            file.write(model.SerializeToString())


def fused(folder):
    x = floats(2, 3, 8)
    Case(folder, "fused_matmul", "FusedMatMul", [floats(2, 4, 3), floats(2, 5, 4)], transA=1, transB=1, alpha=0.5)
    Case(folder, "fused_matmul_batch", "FusedMatMul", [floats(3, 2, 4), floats(2, 4, 5)], transBatchA=1)
    Case(folder, "fused_conv", "FusedConv", [floats(1, 2, 5, 5), floats(3, 2, 3, 3), floats(3)], constants=(1, 2), activation="LeakyRelu",
         activation_params=[0.1], pads=[1, 1, 1, 1])
    Case(folder, "fused_gemm", "FusedGemm", [floats(3, 4), floats(5, 4), floats(5)], transB=1, activation="Relu")
    for op in ("Gelu", "QuickGelu"):
        Case(folder, op.lower(), op, [x])
    for op in ("BiasGelu", "FastGelu"):
        Case(folder, op.lower(), op, [x, floats(8)])
    Case(folder, "skip_layer_norm", "SkipLayerNormalization", [x, floats(2, 3, 8), floats(8), floats(8), floats(8)], constants=(2, 3, 4))
    Case(folder, "skip_simplified", "SkipSimplifiedLayerNormalization", [x, floats(2, 3, 8), floats(8)], constants=(2,))
    Case(folder, "simplified_norm", "SimplifiedLayerNormalization", [x, floats(8)], domain="", constants=(1,), epsilon=1e-5)
    ids = codes(2, 4, high=9, dtype=I32)
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], I32)
    Case(folder, "embed_layer_norm", "EmbedLayerNormalization",
         [ids, codes(2, 4, high=2, dtype=I32), floats(9, 8), floats(6, 8), floats(2, 8), floats(8), floats(8), mask],
         constants=(2, 3, 4, 5, 6), outputs=2, types=[TensorProto.FLOAT, TensorProto.INT32])
    tables = [floats(10, 4), floats(10, 4)]
    places = np.array([[2, 3, 4], [5, 6, 7]], I64)
    for interleaved in (0, 1):
        Case(folder, f"rotary_{interleaved}", "RotaryEmbedding", [floats(2, 3, 16), places, *tables], constants=(2, 3),
             interleaved=interleaved)
    Case(folder, "rotary_heads_offset", "RotaryEmbedding", [floats(2, 2, 3, 8), np.array([4], I64), *tables], constants=(2, 3))


def attention(folder):
    x, w, b = floats(2, 3, 8), floats(8, 24, scale=0.5), floats(24)
    raw = np.array([[1, 1, 1], [1, 1, 0]], I32)
    Case(folder, "attention", "Attention", [x, w, b], constants=(1, 2), num_heads=2)
    Case(folder, "attention_mask", "Attention", [x, w, b, raw], constants=(1, 2), num_heads=2)
    Case(folder, "attention_ends", "Attention", [x, w, b, np.array([3, 2], I32)], constants=(1, 2), num_heads=2)
    past = floats(2, 2, 2, 2, 4)
    Case(folder, "attention_past", "Attention", [x, w, b, None, past], constants=(1, 2), num_heads=2, unidirectional=1, outputs=2)
    Case(folder, "attention_bias", "Attention", [x, w, b, None, None, floats(2, 2, 3, 3)], constants=(1, 2), num_heads=2, scale=0.3)
    q, k, v = floats(2, 3, 8), floats(2, 4, 8), floats(2, 4, 8)
    Case(folder, "mha", "MultiHeadAttention", [q, k, v], num_heads=2)
    Case(folder, "mha_bias", "MultiHeadAttention", [q, k, v, floats(24), np.array([[1, 1, 1, 0], [1, 1, 0, 0]], I32)], constants=(3,),
         num_heads=2)
    Case(folder, "mha_past", "MultiHeadAttention",
         [q, floats(2, 3, 8), floats(2, 3, 8), None, None, floats(2, 2, 3, 5), floats(2, 2, 2, 4), floats(2, 2, 2, 4)], num_heads=2,
         outputs=3, unidirectional=1)
    Case(folder, "qattention", "QAttention",
         [codes(2, 3, 8), codes(8, 24, low=-90, high=90, dtype=I8), floats(24), F(0.02), F(0.01), raw, U8(120), I8(0)],
         constants=(1, 2, 3, 4, 6, 7), num_heads=2)
    # Four query heads share two of keys; a prompt, one more token after it, and rows of different lengths in a longer cache.
    tables = [floats(12, 8), floats(12, 8)]

    def gqa(batch, new, past, cache, lengths, packed=False, **more):
        width = 16
        first = floats(batch, new, (4 + 4) * width) if packed else floats(batch, new, 4 * width)
        pair = [None, None] if packed else [floats(batch, new, 2 * width), floats(batch, new, 2 * width)]
        kept = [floats(batch, 2, cache, width), floats(batch, 2, cache, width)]
        return [first, *pair, *kept, np.array(lengths, I32) - 1, np.array(past + new, I32), *(tables if more.get("do_rotary") else [])]

    for name, sizes, more in (("prompt", (2, 3, 0, 0, [3, 3]), {}), ("next", (1, 1, 5, 5, [6]), {}), ("rotary", (1, 2, 4, 4, [6]), {"do_rotary": 1}),
                              ("ragged", (2, 1, 5, 8, [6, 4]), {"do_rotary": 1}), ("packed", (1, 1, 3, 3, [4]), {"packed": True}),
                              ("window", (1, 4, 0, 0, [4]), {"local_window_size": 2}), ("softcap", (1, 1, 3, 3, [4]), {"softcap": 2.0})):
        inputs = gqa(*sizes, **more)
        more.pop("packed", None)
        Case(folder, f"gqa_{name}", "GroupQueryAttention", inputs, constants=(7, 8) if len(inputs) > 7 else (), outputs=3, num_heads=4,
             kv_num_heads=2, **more)


def quantized(folder):
    u8, i8 = [TensorProto.UINT8], [TensorProto.INT8]
    a, b = codes(2, 3, 4), codes(2, 3, 4)
    for op in ("QLinearAdd", "QLinearMul"):
        Case(folder, op.lower(), op, [a, F(0.0517), U8(120), b, F(0.0431), U8(130), F(0.2913), U8(100)], constants=(1, 2, 4, 5, 6, 7), types=u8)
    for op in ("QLinearSigmoid", "QLinearLeakyRelu"):
        Case(folder, op.lower(), op, [a, F(0.05), U8(120), F(0.01), U8(3)], constants=(1, 2, 3, 4), types=u8)
    image = codes(1, 2, 4, 4)
    Case(folder, "qlinear_global_average", "QLinearGlobalAveragePool", [image, F(0.05), U8(120), F(0.03), U8(110)], constants=(1, 2, 3, 4),
         types=u8)
    Case(folder, "qlinear_concat", "QLinearConcat", [F(0.1), U8(128), a, F(0.05), U8(120), b, F(0.04), U8(130)],
         constants=(0, 1, 3, 4, 6, 7), types=u8, axis=1)
    w = codes(4, 5, low=-100, high=100, dtype=I8)
    Case(folder, "matmul_integer_to_float", "MatMulIntegerToFloat", [codes(2, 3, 4), w, F(0.02), floats(5, scale=0.01), U8(128), np.zeros(5, I8), floats(5)],
         constants=(1, 2, 3, 4, 5, 6))
    Case(folder, "dynamic_quantize_matmul", "DynamicQuantizeMatMul", [floats(2, 3, 4), w, F(0.01), I8(0), floats(5)], constants=(1, 2, 3, 4))
    Case(folder, "qgemm", "QGemm", [codes(3, 4), F(0.02), U8(128), w, F(0.01), I8(0), codes(5, low=-50, high=50, dtype=I32), F(0.1), U8(100)],
         constants=(1, 2, 3, 4, 5, 6, 7, 8), types=u8)
    Case(folder, "qlinear_conv", "QLinearConv",
         [codes(1, 70, 5, 5), F(0.02), U8(128), codes(3, 70, 3, 3, low=-128, high=128, dtype=I8), np.array([0.01, 0.02, 0.03], F), np.zeros(3, I8), F(1.0), U8(100)],
         domain="", constants=(1, 2, 3, 4, 5, 6, 7), types=u8)
    for bits, block in ((4, 16), (8, 16), (4, 32)):
        size = block * bits // 8
        Case(folder, f"matmul_{bits}bits_{block}", "MatMulNBits", [floats(3, 48), codes(5, -(-48 // block), size), floats(5 * -(-48 // block))],
             constants=(1, 2), N=5, K=48, bits=bits, block_size=block)
    Case(folder, "matmul_4bits_zeros", "MatMulNBits", [floats(3, 48), codes(5, 3, 8), floats(15), codes(5 * 2)], constants=(1, 2, 3), N=5, K=48,
         bits=4, block_size=16)
    Case(folder, "gather_blocks", "GatherBlockQuantized", [codes(6, 16), np.array([[1, 5, 0]], I64), floats(6, 2), codes(6, 1)],
         constants=(0, 2, 3), block_size=16, gather_axis=0, quantize_axis=1, bits=4)
    lstm = [floats(5, 1, 3), codes(1, 3, 16), codes(1, 4, 16), floats(1, 32), None, None, None, None, np.array([0.0031], F), np.array([120], U8),
            np.array([0.0029], F), np.array([130], U8)]
    Case(folder, "dynamic_quantize_lstm", "DynamicQuantizeLSTM", lstm, constants=(1, 2, 3, 8, 9, 10, 11), outputs=3, hidden_size=4)
    # Weights of more elements than are folded into a program: converted when the model is read.
    Case(folder, "dequantize_weight", "DequantizeLinear", [codes(96, 1, low=-128, high=128, dtype=I8), floats(96), np.zeros(96, I8)], domain="",
         constants=(0, 1, 2), axis=0)


def tree(features, depth, number):
    """Nodes of a random tree by their numbers: (feature, value, yes, no), or None for a leaf."""
    nodes, queue = {}, [(0, depth)]
    following = 1
    while queue:
        id, left = queue.pop()
        if left == 0 or (left < depth and random.rand() < 0.2):
            nodes[id] = None
            continue
        nodes[id] = (random.randint(features), F(random.randn()), following, following + 1)
        queue += [(following, left - 1), (following + 1, left - 1)]
        following += 2
    return [(number, id, nodes[id]) for id in sorted(nodes)]


def forest(trees, modes=("BRANCH_LEQ",), missing=False, **sizes):
    nodes = [each for number in range(trees) for each in tree(5, random.randint(1, 5), number)]
    out = dict(nodes_treeids=[n[0] for n in nodes], nodes_nodeids=[n[1] for n in nodes],
               nodes_featureids=[n[2][0] if n[2] else 0 for n in nodes], nodes_values=[float(n[2][1]) if n[2] else 0.0 for n in nodes],
               nodes_modes=[modes[random.randint(len(modes))] if n[2] else "LEAF" for n in nodes],
               nodes_truenodeids=[n[2][2] if n[2] else 0 for n in nodes], nodes_falsenodeids=[n[2][3] if n[2] else 0 for n in nodes])
    if missing:
        out["nodes_missing_value_tracks_true"] = [int(random.randint(2)) if n[2] else 0 for n in nodes]
    return out, [(n[0], n[1]) for n in nodes if not n[2]]


def weights(prefix, leaves, targets, each_tree_one=False, positive=False):
    rows = [(t, n, t % targets if each_tree_one else k) for t, n in leaves for k in range(1 if each_tree_one else targets)]
    values = [abs(float(v)) if positive else float(v) for v in random.randn(len(rows)) / 10]
    return {f"{prefix}_treeids": [r[0] for r in rows], f"{prefix}_nodeids": [r[1] for r in rows], f"{prefix}_ids": [r[2] for r in rows],
            f"{prefix}_weights": values}


def learners(folder):
    ml = "ai.onnx.ml"
    x = floats(7, 5)
    gaps = x.copy()
    gaps[random.rand(7, 5) < 0.3] = np.nan
    label = [TensorProto.INT64, TensorProto.FLOAT]
    more = [[floats(1, 5)]]

    def regressor(name, how, inputs=x, **keywords):
        nodes, leaves = forest(9, **how)
        targets = keywords.setdefault("n_targets", 1)
        Case(folder, f"trees_{name}", "TreeEnsembleRegressor", [inputs], domain=ml, sets=more, **nodes, **weights("target", leaves, targets), **keywords)

    regressor("sum", {})
    regressor("average", {}, n_targets=3, aggregate_function="AVERAGE", base_values=[0.5, 1.0, 2.0])
    regressor("max", {}, n_targets=2, aggregate_function="MAX")
    for mode in ("LT", "GTE", "GT", "NEQ"):
        regressor(f"mode_{mode.lower()}", {"modes": (f"BRANCH_{mode}",)})
    regressor("modes", {"modes": ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_EQ")})
    regressor("missing", {"missing": True}, gaps)

    def classifier(name, classes, **how):
        nodes, leaves = forest(9)
        keywords = dict(classlabels_int64s=[3 * i + 1 for i in range(classes)], post_transform=how.pop("transform", "NONE"))
        used = how.pop("used", classes)
        Case(folder, f"trees_{name}", "TreeEnsembleClassifier", [x], domain=ml, outputs=2, types=label, sets=more, **nodes,
             **weights("class", leaves, used, **how), **keywords)

    classifier("classes", 3, positive=True)
    classifier("boosted", 3, each_tree_one=True, transform="SOFTMAX")
    classifier("binary", 2, used=1, transform="LOGISTIC")
    classifier("binary_share", 2, used=1, positive=True)
    for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
        Case(folder, f"linear_{transform.lower()}", "LinearClassifier", [x], domain=ml, outputs=2, types=label, sets=more,
             coefficients=[float(v) for v in floats(15)], intercepts=[0.1, 0.2, -0.3], classlabels_ints=[4, 5, 6], post_transform=transform)
    Case(folder, "linear_regressor", "LinearRegressor", [x], domain=ml, coefficients=[float(v) for v in floats(10)], intercepts=[0.5, -1.0], targets=2)
    Case(folder, "scaler", "Scaler", [x], domain=ml, offset=[0.1, 0.2, 0.3, 0.4, 0.5], scale=[1.0, 2.0, 3.0, 4.0, 5.0])
    for norm in ("MAX", "L1", "L2"):
        Case(folder, f"normalizer_{norm.lower()}", "Normalizer", [x], domain=ml, norm=norm)
    Case(folder, "imputer", "Imputer", [gaps], domain=ml, imputed_value_floats=[1.0, 2.0, 3.0, 4.0, 5.0], replaced_value_float=float("nan"))
    Case(folder, "binarizer", "Binarizer", [x], domain=ml, threshold=0.3)
    Case(folder, "feature_vectorizer", "FeatureVectorizer", [x, floats(7, 2)], domain=ml, inputdimensions=[5, 2])
    Case(folder, "array_feature_extractor", "ArrayFeatureExtractor", [x, np.array([[4, 0, 2]], I64)], domain=ml)
    Case(folder, "one_hot", "OneHotEncoder", [codes(7, 2, high=5, dtype=I64)], domain=ml, cats_int64s=[0, 3, 4], zeros=1)
    Case(folder, "label_encoder", "LabelEncoder", [codes(7, high=5, dtype=I64)], domain=ml, keys_int64s=[0, 1, 4], values_floats=[0.5, 1.5, 2.5],
         default_float=-1.0)
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        shared = dict(kernel_type=kernel, kernel_params=[0.3, 0.1, 3.0], support_vectors=[float(v) for v in floats(30)])
        Case(folder, f"svm_regressor_{kernel.lower()}", "SVMRegressor", [x], domain=ml, sets=more, coefficients=[float(v) for v in floats(6)],
             n_supports=6, rho=[0.2], **shared)
        Case(folder, f"svm_classifier_{kernel.lower()}", "SVMClassifier", [x], domain=ml, outputs=2, types=label, sets=more,
             coefficients=[float(v) for v in floats(12)], vectors_per_class=[2, 3, 1], rho=[0.1, -0.2, 0.3], classlabels_ints=[2, 4, 8],
             prob_a=[-1.0, -0.8, -1.2], prob_b=[0.1, 0.0, -0.1], **shared)


if __name__ == "__main__":
    for make in (fused, attention, quantized, learners):
        make(sys.argv[1])
