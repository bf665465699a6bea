// Programs for @tenon.jit: recorded once, run many times.
#include "tenon/program.h"

#include <nanobind/stl/string.h>

#include <string>
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
  module.def("_placeholder", [](nb::handle dtype, nb::handle shape) {
    return wrapped(placeholder(dtype_from(dtype.ptr()).value(), shape_from(shape.ptr())));
  });
  module.def("_number_placeholder", [](bool is_real) { return wrapped(number_placeholder(is_real ? DType::f64 : DType::i64)); });
}

}  // namespace tenon::python
