#include "arrays/operations.h"

#include <fmt/format.h>

#include <nanobind/stl/string.h>

#include <array>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "arrays/convert.h"
#include "base/text/json_writer.h"
#include "errors.h"
#include "present/operation.h"
#include "tenon/error.h"
#include "tenon/ops.h"
#include "tenon/tensor/apply.h"

namespace tenon::python {
namespace {

// One argument of a function: an input (or the list of all inputs), or a parameter.
struct Argument {
  PyObject* name = nullptr;  // interned, never released
  bool is_input = false, is_list = false, is_required = false;
  std::size_t position = 0;  // among the inputs, or the parameters
};

struct Function {
  const OpInfo* op = nullptr;
  std::vector<Argument> arguments;
  bool has_several_results = false;
  std::string name, doc;
  PyMethodDef method{};
};

bool is_keyword(std::string_view name) { return name == "lambda"; }

Argument argument(std::string_view name, bool is_input, bool is_required, std::size_t position, bool is_list = false) {
  const std::string word = is_keyword(name) ? std::string(name) + "_" : std::string(name);
  return {PyUnicode_InternFromString(word.c_str()), is_input, is_list, is_required, position};
}

// As in functions.h: required inputs, the parameters up to the last one without a default, optional inputs, other parameters.
std::vector<Argument> arguments_of(const OpInfo& op) {
  std::vector<Argument> all;
  const bool is_list = op.max_inputs < 0;
  const auto input = [&](int i) {
    all.push_back(argument(op.input_names.at(static_cast<std::size_t>(i)), true, i < op.min_inputs, static_cast<std::size_t>(i)));
  };
  std::size_t required = 0;
  for (std::size_t i = 0; i < op.parameters.size(); ++i)
    if (op.parameters[i].required) required = i + 1;
  for (int i = 0; !is_list && i < op.min_inputs; ++i) input(i);
  for (std::size_t i = 0; i < required; ++i) all.push_back(argument(op.parameters[i].name, false, true, i));
  if (is_list) all.push_back(argument(op.input_names.at(0), true, true, 0, true));
  for (int i = op.min_inputs; !is_list && i < op.max_inputs; ++i) input(i);
  for (std::size_t i = required; i < op.parameters.size(); ++i) all.push_back(argument(op.parameters[i].name, false, false, i));
  return all;
}

struct FallbackText {
  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return fmt::format("'{}'", value); }
  std::string operator()(const std::vector<std::int64_t>& value) const {
    return value.size() == 1 ? fmt::format("{}", value[0]) : fmt::format("({})", fmt::join(value, ", "));
  }
};

std::string text_of(PyObject* name) { return nb::cast<std::string>(nb::str(nb::handle(name))); }

// In the form from which Python reads __text_signature__.
std::string documentation(const Function& function, std::string_view name, bool is_method) {
  const OpInfo& op = *function.op;
  std::string signature;
  for (std::size_t i = 0; i < function.arguments.size(); ++i) {
    const Argument& a = function.arguments[i];
    std::string text = is_method && i == 0 ? "$self" : text_of(a.name);
    if (a.is_input && !a.is_required) text += "=None";
    if (!a.is_input && !a.is_required) text += "=" + std::visit(FallbackText{}, op.parameters[a.position].fallback);
    signature += (i ? ", " : "") + text + (is_method && i == 0 ? ", /" : "");
  }
  std::string doc = fmt::format("{}({})\n--\n\n{}\n", name, signature, op.doc);
  if (!op.formula.empty()) doc += fmt::format("\n    {}\n", op.formula);
  if (!op.parameters.empty()) {
    doc += "\nParameters\n----------\n";
    for (const Parameter& p : op.parameters)
      doc += fmt::format("{}\n    {}\n", is_keyword(p.name) ? p.name + "_" : p.name, p.doc);
  }
  doc += fmt::format("\nExamples\n--------\n>>> tenon.run({})\n",
                     fmt::format("{}", nb::cast<std::string>(nb::repr(nb::str(op.example.c_str())))));
  return doc;
}

ParameterValue number_from(PyObject* object, const Parameter& parameter) {
  if (PyBool_Check(object) || PyLong_Check(object) || PyIndex_Check(object)) {
    const nb::object whole = nb::steal(PyNumber_Index(object));
    if (!whole.is_valid()) throw nb::python_error();
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
    if (overflow == 0) return static_cast<std::int64_t>(value);
  }
  if (parameter.type == ParameterType::integer) {
    PyErr_Format(PyExc_TypeError, "%s must be an integer, not %R", parameter.name.c_str(), object);
    throw nb::python_error();
  }
  const double value = PyFloat_AsDouble(object);
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

ParameterValue parameter_from(PyObject* object, const Parameter& parameter) {
  if (object == Py_None) return std::monostate{};
  switch (parameter.type) {
    case ParameterType::number:
    case ParameterType::integer: return number_from(object, parameter);
    case ParameterType::boolean: {
      const int truth = PyObject_IsTrue(object);
      if (truth < 0) throw nb::python_error();
      return truth != 0;
    }
    case ParameterType::integers: return integers_from(object);
    case ParameterType::dtype: return std::string(name(dtype_from(object).value()));
    case ParameterType::text: {
      if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s must be a string, not %R", parameter.name.c_str(), object);
        throw nb::python_error();
      }
      return nb::cast<std::string>(nb::handle(object));
    }
  }
  throw Error(ErrorCode::internal, "a parameter without a type");
}

std::vector<Tensor> tensors_from(PyObject* object, const char* name) {
  if (!PyList_Check(object) && !PyTuple_Check(object) && is_array(object)) return {tensor_in(object)};
  const nb::object items = nb::steal(PySequence_List(object));
  if (!items.is_valid()) throw nb::python_error();
  std::vector<Tensor> tensors;
  for (nb::handle item : nb::borrow<nb::list>(items)) tensors.push_back(operand_or_throw(item.ptr(), name));
  return tensors;
}

[[noreturn]] void throw_call_error(const Function& function, const std::string& message) {
  PyErr_SetString(PyExc_TypeError, fmt::format("{}() {}", function.name, message).c_str());
  throw nb::python_error();
}

// The arguments of a call, matched to those of the function.
class Call {
 public:
  Call(const Function& function, PyObject* self, PyObject* const* given, std::size_t count, PyObject* names)
      : function_(function) {
    values_.fill(nullptr);
    std::size_t next = 0;
    if (self) values_[next++] = self;
    for (std::size_t i = 0; i < count; ++i) {
      if (next < function.arguments.size() && function.arguments[next].is_list && is_array(given[i])) {
        loose_.push_back(given[i]);  // concat(a, b) and einsum("ij,jk", a, b)
        continue;
      }
      if (!loose_.empty() && function.arguments[next].is_list) ++next;
      if (next >= function.arguments.size())
        throw_call_error(function,
                         fmt::format("takes at most {} arguments, got {}", function.arguments.size(), count + (self ? 1 : 0)));
      values_[next++] = given[i];
    }
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < named; ++i) add_named(PyTuple_GetItem(names, i), given[count + static_cast<std::size_t>(i)]);
  }

  PyObject* run() {
    std::vector<Tensor> inputs;
    std::vector<NamedValue> parameters;
    const OpInfo& op = *function_.op;
    if (op.max_inputs > 0) inputs.resize(static_cast<std::size_t>(op.max_inputs));
    for (std::size_t i = 0; i < function_.arguments.size(); ++i) {
      const Argument& a = function_.arguments[i];
      PyObject* const value = values_[i];
      if (a.is_list && !loose_.empty()) {
        for (PyObject* one : loose_) inputs.push_back(tensor_in(one));
        continue;
      }
      if (!value || (value == Py_None && !a.is_required)) {
        if (a.is_required) throw_call_error(function_, fmt::format("needs an argument '{}'", text_of(a.name)));
        // None where None is not the default has a meaning of its own only to the op.
        continue;
      }
      if (a.is_list)
        inputs = tensors_from(value, op.name.c_str());
      else if (a.is_input)
        inputs[a.position] = operand_or_throw(value, op.input_names[a.position].c_str());
      else
        parameters.emplace_back(op.parameters[a.position].name, parameter_from(value, op.parameters[a.position]));
    }
    std::vector<Tensor> results = tenon::apply(op, inputs, std::move(parameters));
    if (!function_.has_several_results) return wrap(std::move(results.at(0)));
    nb::list list;
    for (Tensor& result : results) list.append(wrapped(std::move(result)));
    return list.release().ptr();
  }

 private:
  void add_named(PyObject* name, PyObject* value) {
    for (std::size_t i = 0; i < function_.arguments.size(); ++i) {
      if (function_.arguments[i].name != name && PyUnicode_Compare(function_.arguments[i].name, name) != 0) continue;
      if (values_[i]) throw_call_error(function_, fmt::format("got '{}' twice", text_of(name)));
      values_[i] = value;
      return;
    }
    throw_call_error(function_, fmt::format("has no argument '{}'; see help(tenon.{})", text_of(name), function_.name));
  }

  static constexpr std::size_t kMaxArguments = 16;
  const Function& function_;
  std::array<PyObject*, kMaxArguments> values_;
  std::vector<PyObject*> loose_;
};

// Never destroyed: Python keeps pointers to the definitions.
std::list<Function>& functions() {
  static auto* const all = new std::list<Function>;
  return *all;
}
std::vector<const Function*>& methods() {
  static auto* const all = new std::vector<const Function*>;
  return *all;
}

PyObject* call_function(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    const auto& function = *static_cast<const Function*>(PyCapsule_GetPointer(self, nullptr));
    return Call(function, nullptr, given, static_cast<std::size_t>(count), names).run();
  });
}

// Python gives a method nothing but the object, so that each needs a C function of its own.
constexpr std::size_t kMaxMethods = 400;
template <std::size_t I>
PyObject* call_method(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  return guarded([&] { return Call(*methods()[I], self, given, static_cast<std::size_t>(count), names).run(); });
}
using FastCall = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
template <std::size_t... I>
constexpr std::array<FastCall, sizeof...(I)> method_calls(std::index_sequence<I...>) {
  return {&call_method<I>...};
}
constexpr std::array<FastCall, kMaxMethods> kMethodCalls = method_calls(std::make_index_sequence<kMaxMethods>());

Function& make_function(const OpInfo& op, const std::string& name, FastCall call, bool is_method) {
  Function& function = functions().emplace_back();
  function.op = &op;
  function.arguments = arguments_of(op);
  function.has_several_results = has_several_results(op);
  function.name = name;
  function.doc = documentation(function, name, is_method);
  function.method = {function.name.c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)),
                     METH_FASTCALL | METH_KEYWORDS, function.doc.c_str()};
  return function;
}

template <class Visit>
void for_each_name(const Visit& visit) {
  for (const OpInfo& op : all_ops()) {
    visit(op, op.name);
    for (const std::string& alias : op.aliases) visit(op, alias);
  }
}

}  // namespace

void bind_operations(nb::module_& module) {
  nb::dict all;
  const nb::str owner("tenon");
  for_each_name([&](const OpInfo& op, const std::string& name) {
    Function& function = make_function(op, name, &call_function, false);
    const nb::object self = nb::steal(PyCapsule_New(&function, nullptr, nullptr));
    PyObject* callable = PyCFunction_NewEx(&function.method, self.ptr(), owner.ptr());
    if (!callable) throw nb::python_error();
    all[name.c_str()] = nb::steal(callable);
  });
  module.attr("ops") = all;
  // What the catalogue says of every op, as JSON; the types of the package are made from it (tools/python_types).
  module.def("_catalogue", [] {
    std::string text;
    JsonWriter json(text);
    json.begin_array();
    for (const OpInfo& op : all_ops()) present::write_operation(json, op);
    json.end_array();
    return text;
  });
}

void bind_methods(nb::handle array_class) {
  auto* const type = reinterpret_cast<PyTypeObject*>(array_class.ptr());
  for_each_name([&](const OpInfo& op, const std::string& name) {
    if (op.min_inputs < 1 || op.max_inputs < 0 || nb::hasattr(array_class, name.c_str())) return;
    if (methods().size() == kMaxMethods) throw Error(ErrorCode::internal, "more ops than methods; raise kMaxMethods");
    Function& function = make_function(op, name, kMethodCalls[methods().size()], true);
    methods().push_back(&function);
    PyObject* descriptor = PyDescr_NewMethod(type, &function.method);
    if (!descriptor) throw nb::python_error();
    array_class.attr(name.c_str()) = nb::steal(descriptor);
  });
}

}  // namespace tenon::python
