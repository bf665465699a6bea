#include "mesh.h"

#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "convert.h"
#include "evaluation.h"
#include "tenon/expression.h"
#include "tenon/mesh.h"
#include "tenon/program.h"

namespace tenon::python {
namespace {

Mesh make_mesh(nb::dict axes, nb::handle devices) {
  std::vector<MeshAxis> all;
  for (const auto& [name, size] : axes) all.push_back({nb::cast<std::string>(name), nb::cast<int>(size)});
  if (!devices.is_none()) {
    std::vector<std::string> ids;
    for (nb::handle device : devices) ids.push_back(nb::cast<std::string>(nb::str(device)));
    return {all, ids};
  }
  std::string text;
  for (const MeshAxis& axis : all) text += (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  nb::gil_scoped_release free;
  return Mesh::parse(text, process_manager().devices());
}

// A program, and the values of all its inputs.
struct Work {
  Graph graph;
  std::vector<Tensor> inputs;
};

Work work_of(nb::handle program, nb::sequence arrays) {
  const auto& recorded = nb::cast<const Program&>(program);
  Work work{recorded.complete_graph(), {}};
  std::size_t i = 0;
  for (nb::handle item : arrays) {
    const Tensor given = operand_or_throw(nb::object(nb::borrow(item)).ptr(), "an argument");
    const DType wanted = work.graph[work.graph.inputs()[i++]].dtype;
    work.inputs.push_back(given.dtype() == wanted ? given : given.cast(wanted));  // a number
  }
  work.inputs.insert(work.inputs.end(), recorded.captured().begin(), recorded.captured().end());
  return work;
}

// The graph of an expression over named arrays, as _Program.
Program expression_program(const std::string& source, nb::dict named) {
  std::vector<NamedType> types;
  for (const auto& [name, value] : named) {
    const Tensor& array = tensor_in(nb::object(nb::borrow(value)).ptr());
    types.push_back({nb::cast<std::string>(name), array.dtype(), array.shape()});
  }
  return Program::of_graph(parse_expression(source, types));
}

MeshOptions options_of(nb::dict shardings, nb::sequence speeds) {
  MeshOptions options;
  for (const auto& [name, text] : shardings)
    options.inputs[nb::cast<std::string>(name)] = Sharding::parse(nb::cast<std::string>(text));
  for (nb::handle speed : speeds) options.speeds.push_back(nb::cast<double>(nb::object(nb::float_(nb::borrow(speed)))));
  return options;
}

nb::object collective_dicts(const std::vector<Collective>& collectives) {
  nb::list list;
  for (const Collective& one : collectives) {
    nb::dict facts;
    facts["kind"] = std::string(name(one.kind));
    facts["value"] = one.value;
    facts["dtype"] = dtype_object(one.dtype);
    facts["shape"] = shape_tuple(one.shape);
    facts["from"] = one.from;
    facts["to"] = one.to;
    nb::list axes;
    for (const std::string& axis : one.axes) axes.append(axis);
    facts["axes"] = axes;
    facts["bytes"] = one.bytes;
    list.append(facts);
  }
  return list;
}

nb::list text_list(const std::vector<std::string>& texts) {
  nb::list list;
  for (const std::string& text : texts) list.append(text);
  return list;
}

// (outputs, devices, [[(stage, seconds)]], collectives)
nb::object run_mesh(const Mesh& mesh, nb::handle program, nb::sequence arrays, nb::dict shardings, nb::sequence speeds,
                    nb::handle timeout, int priority, nb::handle on_progress, nb::handle cancel) {
  const Work work = work_of(program, arrays);
  MeshOptions options = options_of(shardings, speeds);
  const CallOptions call = CallOptions::from(nb::none(), timeout, priority, on_progress, cancel);
  MeshResult result;
  wait([&](Waiting& waiting) {
    const Forward forward(call.cancel, waiting);
    options.run = call.with(waiting);
    std::vector<HostArray> inputs;
    for (const Tensor& input : work.inputs) {
      input.eval();
      inputs.push_back(input.to_host());
    }
    result = run_on_mesh(process_manager(), work.graph, inputs, mesh, options);
  });
  nb::list outputs, devices, timelines;
  for (HostArray& output : result.outputs) outputs.append(wrapped(std::move(output)));
  for (const DeviceInfo& device : result.devices) devices.append(device.id);
  for (const Timeline& timeline : result.timelines) {
    nb::list spans;
    for (const Span& span : timeline) spans.append(nb::make_tuple(span.stage, span.seconds));
    timelines.append(spans);
  }
  return nb::make_tuple(outputs, devices, timelines, collective_dicts(result.collectives));
}

// (text, collectives, shardings of the outputs, notes, stages, bytes)
nb::object explain(const Mesh& mesh, nb::handle program, nb::dict shardings, nb::sequence speeds) {
  const MeshPlan plan = explain_mesh(nb::cast<const Program&>(program).complete_graph(), mesh, options_of(shardings, speeds));
  return nb::make_tuple(plan.text(), collective_dicts(plan.collectives), text_list(plan.outputs), text_list(plan.notes),
                        plan.stages, plan.bytes());
}

}  // namespace

void bind_mesh(nb::module_& module) {
  nb::class_<Mesh>(module, "_Mesh")
      .def(nb::new_(&make_mesh), nb::arg("axes"), nb::arg("devices").none())
      .def_prop_ro("devices", [](const Mesh& self) { return text_list(self.devices()); })
      .def_prop_ro("text", [](const Mesh& self) { return self.text(); })
      .def("run", &run_mesh, nb::arg("program"), nb::arg("arrays"), nb::arg("shardings"), nb::arg("speeds"),
           nb::arg("timeout").none(), nb::arg("priority"), nb::arg("on_progress").none(), nb::arg("cancel").none())
      .def("explain", &explain)
      .def("measured_speeds", [](const Mesh& self, nb::handle program) {
        nb::list speeds;
        for (const double speed : measured_speeds(process_manager(), nb::cast<const Program&>(program).graph(), self))
          speeds.append(speed);
        return speeds;
      });
  module.def("_expression_program", &expression_program);
}

}  // namespace tenon::python
