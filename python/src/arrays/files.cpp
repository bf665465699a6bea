#include <nanobind/stl/string.h>

#include <string>

#include "arrays/convert.h"
#include "arrays/files.h"
#include "runs/evaluation.h"
#include "tenon/array/io.h"

namespace tenon::python {
namespace {

nb::dict dict_of(ArrayFile file) {
  nb::dict arrays;
  for (auto& [name, array] : file.arrays) arrays[name.c_str()] = wrapped(std::move(array));
  return arrays;
}

ArrayFile file_of(nb::dict arrays, nb::dict metadata) {
  ArrayFile file;
  for (const auto& [name, array] : arrays)
    file.arrays[nb::cast<std::string>(name)] =
        value_of(make_array(nb::object(nb::borrow(array)).ptr(), std::nullopt, Copy::if_needed));
  for (const auto& [name, text] : metadata) file.metadata[nb::cast<std::string>(name)] = nb::cast<std::string>(text);
  return file;
}

}  // namespace

void bind_files(nb::module_& module) {
  // ({name: array}, {name: text}); an array without a name has the name "".
  module.def("_load_arrays", [](const std::string& path) {
    ArrayFile file;
    {
      WithoutGil free;
      file = load_arrays(path);
    }
    nb::dict metadata;
    for (const auto& [name, text] : file.metadata) metadata[name.c_str()] = text;
    return nb::make_tuple(dict_of(std::move(file)), metadata);
  });
  module.def("_save_arrays", [](const std::string& path, nb::dict arrays, nb::dict metadata) {
    const ArrayFile file = file_of(arrays, metadata);
    WithoutGil free;
    save_arrays(path, file);
  });
}

}  // namespace tenon::python
