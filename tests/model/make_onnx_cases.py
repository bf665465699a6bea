"""make_onnx_cases.py FOLDER: writes the node cases of the installed onnx package as files, as older packages had them, its older
cases as they are, and its light nets with the input that its own runner makes up for them."""

import glob
import os
import shutil
import sys
import warnings

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests


def proto(value, info):
    if hasattr(value, "SerializeToString"):
        return value
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name)
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name)
    return numpy_helper.from_array(numpy.asarray(value), info.name)


def write(path, message):
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


def light(folder, data):
    for file in glob.glob(os.path.join(data, "light", "*.onnx")):
        model = onnx.load(file)
        place = os.path.join(folder, "light", os.path.basename(file)[:-5])
        sets = os.path.join(place, "test_data_set_0")
        os.makedirs(sets, exist_ok=True)
        shutil.copy(file, os.path.join(place, "model.onnx"))
        shutil.copy(file[:-5] + "_output_0.pb", os.path.join(sets, "output_0.pb"))
        constants = {tensor.name for tensor in model.graph.initializer}
        for i, info in enumerate(model.graph.input):
            if info.name in constants:
                continue
            shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
            count = numpy.prod(shape)
            values = (numpy.arange(count).reshape(shape) / count).astype(numpy.float32)
            write(os.path.join(sets, f"input_{i}.pb"), numpy_helper.from_array(values, info.name))


def main(folder):
    warnings.simplefilter("ignore")
    data = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
    light(folder, data)
    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        shutil.copytree(os.path.join(data, kind), os.path.join(folder, kind), dirs_exist_ok=True)
    for case in load_model_tests(kind="node"):
        place = os.path.join(folder, "node", case.name)
        os.makedirs(place, exist_ok=True)
        write(os.path.join(place, "model.onnx"), case.model)
        for number, (inputs, outputs) in enumerate(case.data_sets):
            data = os.path.join(place, f"test_data_set_{number}")
            os.makedirs(data, exist_ok=True)
            for kind, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
                for i, value in enumerate(values):
                    write(os.path.join(data, f"{kind}_{i}.pb"), proto(value, infos[i]))


main(sys.argv[1])
