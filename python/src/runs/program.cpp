// Programs for @tenon.jit: recorded once, run many times.
#include "tenon/tensor/program.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "arrays/convert.h"
#include "base/threads/fork_section.h"
#include "codegen/stablehlo/emit.h"
#include "errors.h"
#include "runs/evaluation.h"
#include "runs/program.h"
#include "runs/waiting.h"

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

std::vector<std::string> names_in(nb::sequence texts) {
  std::vector<std::string> names;
  for (nb::handle text : texts) names.push_back(nb::cast<std::string>(text));
  return names;
}

nb::object input_names(const Graph& graph) {
  nb::list names;
  for (const NodeId id : graph.inputs()) names.append(graph[id].as<InputAttr>().name);
  return names;
}

nb::object types_of(const Graph& graph, std::span<const NodeId> ids) {
  nb::list types;
  for (const NodeId id : ids) types.append(nb::make_tuple(dtype_object(graph[id].dtype), shape_tuple(graph[id].shape)));
  return types;
}

nb::object output_types(const Program& program) {
  const Graph graph = program.complete_graph();
  return types_of(graph, graph.outputs());
}

// The programs of a function for calls by position with arrays and numbers alone, found without Python code. Other calls take the
// way through tenon/_jit.py: the class Jit there is derived from this one, and does those in _call_any.
class QuickCalls {
 public:
  // What the program for these arguments returns; null without an exception if there is none.
  PyObject* call(PyObject* given) const {
    const Entry* const entry = find(given);
    if (!entry) return nullptr;
    const std::size_t count = entry->types.size();
    std::array<Tensor, kMostArguments> inputs;
    for (std::size_t i = 0; i < count; ++i) {
      PyObject* const one = PyTuple_GetItem(given, static_cast<Py_ssize_t>(i));
      inputs[i] = entry->types[i].kind == Kind::array ? tensor_in(one) : *operand(one);
    }
    const std::vector<Tensor> outputs = run(*entry, std::span(inputs).first(count));
    if (entry->is_one) return wrap(outputs[0]);
    const nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(outputs.size())));
    if (!tuple.is_valid()) throw nb::python_error();
    for (std::size_t i = 0; i < outputs.size(); ++i) PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), wrap(outputs[i]));
    return nb::object(tuple).release().ptr();
  }

  // Keeps |program| for calls like this one. Its outputs are one array, or a tuple of arrays.
  void add(nb::tuple given, const Program& program, bool is_one) {
    const auto count = static_cast<std::size_t>(PyTuple_Size(given.ptr()));
    if (count > kMostArguments) return;
    Entry entry{{}, program, is_one, is_small(program.graph())};
    for (std::size_t i = 0; i < count; ++i) {
      const std::optional<ArgumentType> type = type_of(PyTuple_GetItem(given.ptr(), static_cast<Py_ssize_t>(i)));
      if (!type) return;
      entry.types.push_back(*type);
    }
    const std::lock_guard lock(mutex_);
    if (entries_.size() == kMostPrograms) return;
    entries_.push_front(std::move(entry));
    newest_.store(&entries_.front(), std::memory_order_release);
  }

 private:
  static constexpr std::size_t kMostArguments = 8;
  // Beyond that Python's dict is faster than looking at one after the other.
  static constexpr std::size_t kMostPrograms = 16;
  enum class Kind : std::uint8_t { array, real, whole };
  struct ArgumentType {
    Kind kind{};
    DType dtype{};
    Shape shape;
  };
  struct Entry {
    std::vector<ArgumentType> types;
    Program program;
    bool is_one = false;
    bool is_small = false;
  };

  static constexpr std::int64_t kSmall = 1 << 14;  // elements of all its nodes: computed within some 10 us
  static bool is_small(const Graph& graph) {
    std::int64_t elements = 0;
    for (NodeId id = 0; id < graph.size() && elements <= kSmall; ++id) elements += graph[id].shape.elements();
    return elements <= kSmall;
  }

  static std::vector<Tensor> run(const Entry& entry, std::span<const Tensor> inputs) {
    const ContextDevice context;
    std::vector<Tensor> outputs;
    const auto now = [&] {
      // Giving up the GIL and getting it back takes longer than a small program.
      std::optional<WithoutGil> free;
      const auto has_value = [](const Tensor& input) { return input.is_evaluated(); };
      if (!entry.is_small || !std::ranges::all_of(inputs, has_value)) free.emplace();
      return AtOnce::try_run([&](const RunOptions& options) { outputs = entry.program.run(inputs, options); });
    };
    if (!now()) wait([&](Waiting& waiting) { outputs = entry.program.run(inputs, run_options(waiting)); });
    return outputs;
  }

  static std::optional<ArgumentType> type_of(PyObject* one) {
    if (Py_TYPE(one) == array_type) return ArgumentType{Kind::array, tensor_in(one).dtype(), tensor_in(one).shape()};
    if (PyFloat_CheckExact(one)) return ArgumentType{Kind::real, {}, {}};
    if (PyLong_CheckExact(one)) return ArgumentType{Kind::whole, {}, {}};
    return std::nullopt;
  }

  static bool fits(const Entry& entry, PyObject* given) {
    if (PyTuple_Size(given) != static_cast<Py_ssize_t>(entry.types.size())) return false;
    for (std::size_t i = 0; i < entry.types.size(); ++i) {
      PyObject* const one = PyTuple_GetItem(given, static_cast<Py_ssize_t>(i));
      const ArgumentType& type = entry.types[i];
      switch (type.kind) {
        case Kind::array:
          if (Py_TYPE(one) != array_type || tensor_in(one).dtype() != type.dtype || tensor_in(one).shape() != type.shape)
            return false;
          break;
        case Kind::real:
          if (!PyFloat_CheckExact(one)) return false;
          break;
        case Kind::whole:
          if (!PyLong_CheckExact(one)) return false;
          break;
      }
    }
    return true;
  }

  // Entries stay, so that their addresses are valid without the lock.
  const Entry* find(PyObject* given) const {
    const Entry* const newest = newest_.load(std::memory_order_acquire);
    if (!newest) return nullptr;
    if (fits(*newest, given)) return newest;
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
      if (fits(entry, given)) {
        newest_.store(&entry, std::memory_order_release);
        return &entry;
      }
    return nullptr;
  }

  mutable SectionMutex mutex_;
  std::list<Entry> entries_;
  mutable std::atomic<const Entry*> newest_ = nullptr;  // the one used last
};

PyObject* call_slot(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (!kwargs || PyDict_Size(kwargs) == 0)
      if (PyObject* const result = nb::inst_ptr<QuickCalls>(nb::handle(self))->call(args)) return result;
    static PyObject* const name = PyUnicode_InternFromString("_call_any");
    const nb::object other = nb::steal(PyObject_GetAttr(self, name));
    if (!other.is_valid()) throw nb::python_error();
    return PyObject_Call(other.ptr(), args, kwargs);
  });
}

PyType_Slot quick_slots[] = {{Py_tp_call, reinterpret_cast<void*>(&call_slot)}, {0, nullptr}};

}  // namespace

void bind_program(nb::module_& module) {
  nb::class_<Program>(module, "_Program")
      .def(nb::new_([](nb::sequence inputs, nb::sequence outputs, nb::sequence names) {
        return Program::record(tensors_in(inputs), tensors_in(outputs), names_in(names));
      }))
      .def_static("load",
                  [](const std::string& path) {
                    WithoutGil free;
                    return Program::load(path);
                  })
      .def("save", [](const Program& self, const std::string& path) { wait([&](Waiting&) { self.save(path); }); })
      .def_prop_ro("names", [](const Program& self) { return input_names(self.graph()); })
      .def("run", &run_program)
      .def_prop_ro("text", [](const Program& self) { return self.graph().text(); })
      .def_prop_ro("nodes", [](const Program& self) { return self.graph().size(); })
      .def_prop_ro("inputs", [](const Program& self) { return types_of(self.graph(), self.graph().inputs()); })
      .def_prop_ro("outputs", [](const Program& self) { return output_types(self); })
      .def_prop_ro("captured", [](const Program& self) { return list_of({self.captured().begin(), self.captured().end()}); })
      .def("stablehlo", [](const Program& self) { return stablehlo::emit(self.complete_graph()).text; })
      .def(
          "explain",
          [](const Program& self, nb::handle device, nb::handle routing, nb::handle prefer) {
            CallOptions options;
            options.device = nb::cast<std::string>(device);
            return explain_json(self.graph(), options.choose(routing, prefer));
          },
          nb::arg("device"), nb::arg("routing").none(), nb::arg("prefer").none());
  nb::class_<QuickCalls>(module, "_QuickCalls", nb::type_slots(quick_slots), nb::is_weak_referenceable())
      .def(nb::init<>())
      .def("_add", &QuickCalls::add);
  module.def("_program_input", [](nb::handle dtype, nb::handle shape) {
    return wrapped(program_input(dtype_from(dtype.ptr()).value(), shape_from(shape.ptr())));
  });
  module.def("_program_number", [](bool is_real) { return wrapped(program_number(is_real ? DType::f64 : DType::i64)); });
}

}  // namespace tenon::python
