#include "models/model.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "arrays/convert.h"
#include "base/text/json_writer.h"
#include "present/route.h"
#include "runs/evaluation.h"
#include "tenon/model.h"
#include "tenon/model/encoder.h"
#include "tenon/model/tokenizer.h"

namespace tenon::python {
namespace {

std::vector<std::string> texts_in(nb::sequence texts) {
  std::vector<std::string> result;
  for (nb::handle text : texts) {
    const nb::object one = nb::borrow(text);
    if (!PyUnicode_Check(one.ptr())) {
      PyErr_Format(PyExc_TypeError, "a text must be a string, not %R", one.ptr());
      throw nb::python_error();
    }
    result.push_back(nb::cast<std::string>(one));
  }
  return result;
}

Model::Tensors tensors_in(nb::dict named) {
  Model::Tensors tensors;
  for (const auto& [name, value] : named)
    tensors.emplace(nb::cast<std::string>(name), make_array(nb::object(nb::borrow(value)).ptr(), std::nullopt, Copy::if_needed));
  return tensors;
}

// (name, type, dtype or None, shape or None, is optional); an extent is a number, a name, or None.
nb::object value_tuples(const std::vector<ModelValue>& values) {
  nb::list list;
  for (const ModelValue& value : values) {
    nb::list shape;
    for (const ModelValue::Extent& extent : value.shape) {
      if (extent.extent)
        shape.append(*extent.extent);
      else if (extent.name.empty())
        shape.append(nb::none());
      else
        shape.append(extent.name);
    }
    const nb::object dtype = value.dtype ? dtype_object(*value.dtype) : nb::none();
    const nb::object whole_shape = value.has_shape ? nb::object(nb::tuple(shape)) : nb::none();
    list.append(nb::make_tuple(value.name, value.type, dtype, whole_shape, value.is_optional));
  }
  return list;
}

nb::object run_model(const Model& model, nb::dict named, nb::handle device, nb::handle timeout, int priority,
                     nb::handle on_progress, nb::handle cancel, nb::handle routing, nb::handle prefer) {
  const Model::Tensors inputs = tensors_in(named);
  const CallOptions options = CallOptions::from(device, timeout, priority, on_progress, cancel).choose(routing, prefer);
  const ContextDevice context(options);
  Model::Tensors outputs;
  wait([&](Waiting& waiting) {
    const Forward forward(options.cancel, waiting);
    outputs = model(inputs, options.with(waiting));
  });
  nb::dict results;
  for (const ModelValue& output : model.info().outputs)  // in the model's order
    if (const auto found = outputs.find(output.name); found != outputs.end())
      results[output.name.c_str()] = wrapped(std::move(found->second));
  return results;
}

std::string explain_model(const Model& model, nb::dict named, const std::string& device) {
  const Model::Tensors inputs = tensors_in(named);
  WithoutGil free;
  std::string text;
  JsonWriter json(text);
  present::write_route(json, device, model.explain(model.fitted(inputs), device));
  return text;
}

nb::object encode(const Encoder& encoder, nb::sequence given, nb::handle device, nb::handle timeout, int priority,
                  nb::handle on_progress, nb::handle done, nb::handle cancel, nb::handle routing, nb::handle prefer) {
  const std::vector<std::string> texts = texts_in(given);
  const CallOptions options = CallOptions::from(device, timeout, priority, on_progress, cancel).choose(routing, prefer);
  const ContextDevice context(options);
  HostArray vectors;
  wait([&](Waiting& waiting) {
    const Forward forward(options.cancel, waiting);
    vectors = encoder.encode(texts, options.with(waiting), [&](std::size_t count) {
      if (done.is_none()) return;
      const WithGil held;
      if (!held) return;
      try {
        done(count);
      } catch (nb::python_error& error) {
        waiting.fail(std::move(error));
      }
    });
  });
  return wrapped(std::move(vectors));
}

ModelOptions options_of(nb::handle dtype) {
  ModelOptions options;
  if (!dtype.is_none()) options.products = dtype_from(dtype.ptr());
  return options;
}

Encoder load_encoder(const std::string& path, const std::optional<std::string>& pooling, bool normalize,
                     std::optional<std::int64_t> max_tokens, std::int64_t batch, nb::handle dtype) {
  EncoderOptions options;
  options.model = options_of(dtype);
  if (max_tokens.value_or(1) < 1 || batch < 1)
    throw Error(ErrorCode::invalid_argument, "max_tokens and batch must be at least 1");
  if (pooling) options.pooling = parse_pooling(*pooling);
  options.normalize = normalize;
  options.max_tokens = max_tokens.value_or(0);
  options.batch = batch;
  WithoutGil free;
  return Encoder::load(path, options);
}

nb::object find_similar(nb::handle vectors, nb::handle query, std::int64_t count) {
  const HostArray rows = value_of(tensor_in(vectors.ptr())), wanted = value_of(tensor_in(query.ptr()));
  std::vector<Match> matches;
  const ContextDevice context;
  wait([&](Waiting& waiting) { matches = most_similar(rows, wanted, count, run_options(waiting)); });
  nb::list list;
  for (const Match& match : matches) list.append(nb::make_tuple(match.row, static_cast<double>(match.score)));
  return list;
}

nb::list ids_list(const std::vector<std::int32_t>& ids) {
  nb::list list;
  for (const std::int32_t id : ids) list.append(id);
  return list;
}

void bind_tokenizer(nb::module_& module) {
  nb::class_<Tokenizer>(module, "_Tokenizer")
      .def_static("load",
                  [](const std::string& path) {
                    WithoutGil free;
                    return Tokenizer::load(path);
                  })
      .def(
          "encode",
          [](const Tokenizer& self, const std::string& text, nb::handle pair, bool special) {
            const Tokens tokens =
                pair.is_none() ? self.encode(text, special) : self.encode_pair(text, nb::cast<std::string>(pair), special);
            return nb::make_tuple(ids_list(tokens.ids), ids_list(tokens.types));
          },
          nb::arg("text"), nb::arg("pair").none(), nb::arg("special"))
      .def("decode",
           [](const Tokenizer& self, nb::sequence ids, bool skip_special) {
             std::vector<std::int32_t> numbers;
             for (nb::handle id : ids) numbers.push_back(nb::cast<std::int32_t>(id));
             return self.decode(numbers, skip_special);
           })
      .def("id_of",
           [](const Tokenizer& self, const std::string& token) -> nb::object {
             const std::optional<std::int32_t> id = self.id_of(token);
             return id ? nb::object(nb::int_(*id)) : nb::none();
           })
      .def("token_of",
           [](const Tokenizer& self, std::int32_t id) -> nb::object {
             const std::optional<std::string> token = self.token_of(id);
             return token ? nb::object(nb::str(token->c_str(), token->size())) : nb::none();
           })
      .def_prop_ro("size", [](const Tokenizer& self) { return self.size(); })
      .def_prop_ro("model", [](const Tokenizer& self) { return self.model(); });
}

}  // namespace

nb::dict model_info_dict(const ModelInfo& info) {
  nb::dict all, ops, metadata;
  for (const auto& [op, count] : info.ops) ops[op.c_str()] = count;
  for (const auto& [name, text] : info.metadata) metadata[name.c_str()] = text;
  all["format"] = info.format;
  all["producer"] = info.producer;
  all["opset"] = info.opset;
  all["nodes"] = info.nodes;
  all["ops"] = ops;
  all["parameters"] = info.parameters;
  all["weight_bytes"] = info.weight_bytes;
  all["metadata"] = metadata;
  return all;
}

void bind_model(nb::module_& module) {
  nb::class_<Model>(module, "_Model")
      .def_static(
          "load",
          [](const std::string& path, nb::handle dtype) {
            const ModelOptions options = options_of(dtype);
            WithoutGil free;
            return Model::load(path, options);
          },
          nb::arg("path"), nb::arg("dtype").none())
      .def_static(
          "parse",
          [](nb::bytes bytes, nb::handle dtype) {
            return Model::parse(std::as_bytes(std::span(bytes.c_str(), bytes.size())), options_of(dtype));
          },
          nb::arg("bytes"), nb::arg("dtype").none())
      .def_prop_ro("inputs", [](const Model& self) { return value_tuples(self.info().inputs); })
      .def_prop_ro("outputs", [](const Model& self) { return value_tuples(self.info().outputs); })
      .def_prop_ro("info", [](const Model& self) { return model_info_dict(self.info()); })
      .def_prop_ro("programs", [](const Model& self) { return self.programs(); })
      .def("run", &run_model, nb::arg("inputs"), nb::arg("device").none(), nb::arg("timeout").none(), nb::arg("priority"),
           nb::arg("on_progress").none(), nb::arg("cancel").none(), nb::arg("routing").none(), nb::arg("prefer").none())
      .def("explain", &explain_model)
      .def("text", [](const Model& self, nb::dict named) { return self.program(self.fitted(tensors_in(named))); });
  bind_tokenizer(module);
  nb::class_<Encoder>(module, "_Encoder")
      .def_static("load", &load_encoder, nb::arg("path"), nb::arg("pooling"), nb::arg("normalize"), nb::arg("max_tokens"),
                  nb::arg("batch"), nb::arg("dtype").none())
      .def("encode", &encode, nb::arg("texts"), nb::arg("device").none(), nb::arg("timeout").none(), nb::arg("priority"),
           nb::arg("on_progress").none(), nb::arg("done").none(), nb::arg("cancel").none(), nb::arg("routing").none(),
           nb::arg("prefer").none())
      .def_prop_ro("model", [](const Encoder& self) { return self.model(); })
      .def_prop_ro("tokenizer", [](const Encoder& self) { return self.tokenizer(); });
  module.def("_most_similar", &find_similar);
}

}  // namespace tenon::python
