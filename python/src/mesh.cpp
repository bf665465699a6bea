#include "mesh.h"

#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "arrays/convert.h"
#include "runs/evaluation.h"
#include "tenon/expression.h"
#include "tenon/mesh.h"
#include "tenon/tensor/program.h"

namespace tenon::python {
namespace {

std::vector<MeshAxis> axes_of(nb::dict axes) {
  std::vector<MeshAxis> all;
  for (const auto& [name, size] : axes) all.push_back({nb::cast<std::string>(name), nb::cast<int>(size)});
  return all;
}

Mesh make_mesh(nb::dict axes, nb::handle devices) {
  const std::vector<MeshAxis> all = axes_of(axes);
  if (!devices.is_none()) {
    std::vector<std::string> ids;
    for (nb::handle device : devices) ids.push_back(nb::cast<std::string>(nb::str(device)));
    return {all, ids};
  }
  std::string text;
  for (const MeshAxis& axis : all) text += (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  WithoutGil free;
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

MeshOptions split_by(nb::dict shardings) {
  MeshOptions options;
  for (const auto& [name, text] : shardings)
    options.inputs[nb::cast<std::string>(name)] = Sharding::parse(nb::cast<std::string>(text));
  return options;
}

MeshOptions options_of(nb::dict shardings, nb::sequence speeds) {
  MeshOptions options = split_by(shardings);
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
    facts["through"] = one.through;
    list.append(facts);
  }
  return list;
}

nb::list text_list(const std::vector<std::string>& texts) {
  nb::list list;
  for (const std::string& text : texts) list.append(text);
  return list;
}

// Without the interpreter's lock.
std::vector<HostArray> host_arrays(const Work& work) {
  std::vector<HostArray> inputs;
  for (const Tensor& input : work.inputs) {
    input.eval();
    inputs.push_back(input.to_host());
  }
  return inputs;
}

// (outputs, devices, [[(stage, seconds)]], collectives)
nb::object report(MeshResult& result) {
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

nb::object run_mesh(const Mesh& mesh, nb::handle program, nb::sequence arrays, nb::dict shardings, nb::sequence speeds,
                    nb::handle timeout, int priority, nb::handle on_progress, nb::handle cancel) {
  const Work work = work_of(program, arrays);
  MeshOptions options = options_of(shardings, speeds);
  const CallOptions call = CallOptions::from(nb::none(), timeout, priority, on_progress, cancel);
  MeshResult result;
  wait([&](Waiting& waiting) {
    const Forward forward(call.cancel, waiting);
    options.run = call.with(waiting);
    result = run_on_mesh(process_manager(), work.graph, host_arrays(work), mesh, options);
  });
  return report(result);
}

// A process has one device: (outputs, [device], [[(stage, seconds)]], collectives, rank, places)
nb::object run_mpi(nb::dict axes, nb::handle program, nb::sequence arrays, nb::dict shardings, nb::sequence speeds,
                   bool has_measured_speeds, const std::string& device, double deadline, nb::handle timeout, int priority,
                   nb::handle on_progress, nb::handle cancel) {
  const Work work = work_of(program, arrays);
  const std::vector<MeshAxis> all = axes_of(axes);
  MpiOptions options{.mesh = options_of(shardings, speeds),
                     .has_measured_speeds = has_measured_speeds,
                     .device = device,
                     .deadline_seconds = deadline};
  const CallOptions call = CallOptions::from(nb::none(), timeout, priority, on_progress, cancel);
  MpiResult result;
  wait([&](Waiting& waiting) {
    const Forward forward(call.cancel, waiting);
    options.mesh.run = call.with(waiting);
    result = run_over_mpi(process_manager(), work.graph, host_arrays(work), all, options);
  });
  nb::tuple reported = nb::cast<nb::tuple>(report(result.result));
  return nb::make_tuple(reported[0], reported[1], reported[2], reported[3], result.rank, text_list(result.places));
}

// (text, collectives, shardings of the outputs, notes, stages, bytes)
nb::object explain(const Mesh& mesh, nb::handle program, nb::dict shardings, nb::sequence speeds) {
  const MeshPlan plan =
      explain_mesh(process_manager(), nb::cast<const Program&>(program).complete_graph(), mesh, options_of(shardings, speeds));
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
      .def("measured_speeds", [](const Mesh& self, nb::handle program, nb::dict shardings) {
        nb::list speeds;
        for (const double speed :
             measured_speeds(process_manager(), nb::cast<const Program&>(program).complete_graph(), self, split_by(shardings)))
          speeds.append(speed);
        return speeds;
      });
  module.def("_expression_program", &expression_program);
  module.def("_started_by_mpi", &started_by_mpi);
  module.def("_run_over_mpi", &run_mpi, nb::arg("axes"), nb::arg("program"), nb::arg("arrays"), nb::arg("shardings"),
             nb::arg("speeds"), nb::arg("has_measured_speeds"), nb::arg("device"), nb::arg("deadline"), nb::arg("timeout").none(),
             nb::arg("priority"), nb::arg("on_progress").none(), nb::arg("cancel").none());
  module.def("_finish_mpi", [](double deadline) {
    WithoutGil free;
    finish_mpi(deadline);
  });
}

}  // namespace tenon::python
