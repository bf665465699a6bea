// Programs for @tenon.jit: recorded once, run many times.
#include "tenon/program.h"

#include <nanobind/stl/string.h>

#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/stablehlo/emit.h"
#include "convert.h"
#include "evaluation.h"
#include "graph/serialize.h"
#include "program.h"

namespace tenon::python {
namespace {

std::vector<Tensor> tensors_in(nb::sequence arrays) {
  std::vector<Tensor> tensors;
  for (nb::handle item : arrays) {
    const nb::object array = nb::borrow(item);
    tensors.push_back(is_array(array.ptr()) ? tensor_in(array.ptr()) : operand_or_throw(array.ptr(), "an argument"));
  }
  return tensors;
}

nb::object list_of(std::vector<Tensor> tensors) {
  nb::list list;
  for (Tensor& tensor : tensors) list.append(wrapped(std::move(tensor)));
  return list;
}

nb::object run_program(const Program& program, nb::sequence arrays) {
  const std::vector<Tensor> inputs = tensors_in(arrays);
  const ContextDevice context;
  std::vector<Tensor> outputs;
  wait([&](Waiting& waiting) { outputs = program.run(inputs, run_options(waiting)); });
  return list_of(std::move(outputs));
}

nb::object types_of(const Graph& graph, std::span<const NodeId> ids) {
  nb::list types;
  for (const NodeId id : ids) types.append(nb::make_tuple(dtype_object(graph[id].dtype), shape_tuple(graph[id].shape)));
  return types;
}

// The programs of a function for calls by position with arrays and numbers alone, found without Python code. Other calls take the
// way through tenon/_jit.py.
class ProgramCache {
 public:
  // What the program for these arguments returns; None if there is none.
  nb::object call(nb::args given) const {
    std::string key;
    std::vector<Tensor> inputs;
    const Entry* const entry = read(given, key, inputs) ? find(key) : nullptr;
    if (!entry) return nb::none();
    const ContextDevice context;
    std::vector<Tensor> outputs;
    wait([&](Waiting& waiting) { outputs = entry->program.run(inputs, run_options(waiting)); });
    if (entry->is_one) return wrapped(std::move(outputs[0]));
    PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(outputs.size()));
    if (!tuple) throw nb::python_error();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), wrap(std::move(outputs[i])));
    return nb::steal(tuple);
  }

  // Keeps |program| for calls like this one. Its outputs are one array, or a tuple of arrays.
  void add(nb::tuple given, const Program& program, bool is_one) {
    std::string key;
    std::vector<Tensor> inputs;
    if (!read(given, key, inputs)) return;
    const std::lock_guard lock(mutex_);
    entries_.try_emplace(key, Entry{program, is_one});
  }

 private:
  struct Entry {
    Program program;
    bool is_one = false;
  };

  const Entry* find(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(key);
    return entry == entries_.end() ? nullptr : &entry->second;
  }

  // False if an argument is neither an array nor a number.
  static bool read(const nb::tuple& given, std::string& key, std::vector<Tensor>& inputs) {
    const Py_ssize_t size = PyTuple_Size(given.ptr());
    inputs.reserve(static_cast<std::size_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* const one = PyTuple_GetItem(given.ptr(), i);
      if (Py_TYPE(one) == array_type) {
        const Tensor& tensor = tensor_in(one);
        key += static_cast<char>('A' + static_cast<int>(tensor.dtype()));
        const std::span<const std::int64_t> dims = tensor.shape().dims();
        key += static_cast<char>(dims.size());
        key.append(reinterpret_cast<const char*>(dims.data()), dims.size_bytes());
        inputs.push_back(tensor);
      } else if (PyFloat_CheckExact(one)) {
        key += 'f';
        inputs.emplace_back(PyFloat_AsDouble(one));
      } else if (PyLong_CheckExact(one)) {
        key += 'i';
        inputs.push_back(*operand(one));
      } else {
        return false;
      }
    }
    return true;
  }

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;  // entries stay: their addresses are valid without the lock
};

}  // namespace

void bind_program(nb::module_& module) {
  nb::class_<Program>(module, "_Program")
      .def(nb::new_(
          [](nb::sequence inputs, nb::sequence outputs) { return Program::record(tensors_in(inputs), tensors_in(outputs)); }))
      .def_static(
          "load",
          [](nb::bytes bytes) { return Program::of_graph(deserialize(std::as_bytes(std::span(bytes.c_str(), bytes.size())))); })
      .def("run", &run_program)
      .def_prop_ro("text", [](const Program& self) { return self.graph().text(); })
      .def_prop_ro("nodes", [](const Program& self) { return self.graph().size(); })
      .def_prop_ro("inputs", [](const Program& self) { return types_of(self.graph(), self.graph().inputs()); })
      .def_prop_ro("outputs", [](const Program& self) { return types_of(self.graph(), self.graph().outputs()); })
      .def_prop_ro("captured", [](const Program& self) { return list_of({self.captured().begin(), self.captured().end()}); })
      .def("stablehlo", [](const Program& self) { return stablehlo::emit(self.graph()).text; })
      .def("serialize",
           [](const Program& self) {
             const std::vector<std::byte> bytes = serialize(self.graph());
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("explain", [](const Program& self, const std::string& device) { return explain_json(self.graph(), device); });
  nb::class_<ProgramCache>(module, "_ProgramCache")
      .def(nb::init<>())
      .def("__call__", &ProgramCache::call)
      .def("add", &ProgramCache::add);
  module.def("_program_input", [](nb::handle dtype, nb::handle shape) {
    return wrapped(program_input(dtype_from(dtype.ptr()).value(), shape_from(shape.ptr())));
  });
  module.def("_program_number", [](bool is_real) { return wrapped(program_number(is_real ? DType::f64 : DType::i64)); });
}

}  // namespace tenon::python
