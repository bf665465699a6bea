// tenon._core: the C++ half of the package. The Python half in python/tenon gives it its interface.
#include <nanobind/nanobind.h>

#include "arrays/array.h"
#include "arrays/convert.h"
#include "arrays/files.h"
#include "arrays/operations.h"
#include "devices.h"
#include "errors.h"
#include "gil.h"
#include "mesh.h"
#include "models/generator.h"
#include "models/model.h"
#include "runs/evaluation.h"
#include "runs/program.h"

NB_MODULE(_core, module) {
  using namespace tenon::python;
  module.doc() = "The C++ half of tenon.";
  // Arrays may live in the variables of a module until the interpreter ends; that is no leak worth a message.
  nanobind::set_leak_warnings(false);
  bind_gil(module);
  bind_errors(module);
  bind_dtypes(module);
  bind_operations(module);
  bind_array(module);
  bind_evaluation(module);
  bind_devices(module);
  bind_lease(module);
  bind_config(module);
  bind_placement(module);
  bind_device_library(module);
  bind_program(module);
  bind_files(module);
  bind_model(module);
  bind_generator(module);
  bind_mesh(module);
}
