#include "server/compute/program/input_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "array/io/number_text.h"
#include "ops/names.h"
#include "server/http/body/json_reader.h"
#include "server/http/problem.h"
#include "tenon/expression.h"
#include "tenon/ops.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

void check_size(const std::string& where, DType dtype, const Shape& shape, const ProgramReader& reader) {
  if (shape.elements() > reader.limits.elements)
    throw Problem(413, "too_large",
                  fmt::format("{}: {} has {} elements, more than the limit of {}", where, to_string(shape), shape.elements(),
                              reader.limits.elements));
  if (storage_bytes(dtype, shape) > reader.limits.memory_bytes)
    throw Problem(413, "too_large",
                  fmt::format("{}: {} of {} exceeds the memory limit of a request", where, to_string(shape), name(dtype)));
}

HostArray compute(const Graph& graph, const ProgramReader& reader) {
  const Node& result = graph[graph.outputs()[0]];
  if (result.prim == Prim::constant) return result.as<ConstantAttr>().value;
  constexpr std::int64_t kSmall = 4096;
  if (!reader.computes_inputs && result.shape.elements() > kSmall) return HostArray::empty(result.dtype, result.shape);
  return reader.manager.run(graph, {}, {.device = "cpu", .limit = reader.limits.run_time}).outputs[0];
}

// Before an array is made. Every one counts, however small: a request may have very many.
void take_memory(MemoryTally& memory, DType dtype, const Shape& shape) {
  constexpr std::uint64_t kArrayBytes = 512;  // of an input without its elements
  memory.add(storage_bytes(dtype, shape) + kArrayBytes);
}

// |array| as |dtype|; what that takes is checked first.
HostArray cast_checked(const std::string& where, const HostArray& array, DType dtype, const ProgramReader& reader,
                       MemoryTally& memory) {
  if (array.dtype() == dtype) return array;
  check_size(where, dtype, array.shape(), reader);
  take_memory(memory, dtype, array.shape());
  return array.cast(dtype);
}

// --- Lists ---

struct ListShape {
  std::vector<std::int64_t> extents;
  bool is_complete = false;  // the depth is known
  bool all_bools = true;
};

void measure(const json::value& value, std::size_t axis, ListShape& shape, Members& members) {
  if (!value.is_array()) {
    if (axis != shape.extents.size()) members.fail("the lists in 'value' have different depths");
    shape.is_complete = true;
    shape.all_bools = shape.all_bools && value.is_bool();
    if (!as_number(value)) members.fail("'value' must contain numbers, \"NaN\", \"Infinity\" or \"-Infinity\"");
    return;
  }
  const json::array& list = value.get_array();
  const auto extent = static_cast<std::int64_t>(list.size());
  if (axis >= static_cast<std::size_t>(kMaxRank)) members.fail(fmt::format("'value' has more than {} axes", kMaxRank));
  if (axis == shape.extents.size()) {
    if (shape.is_complete) members.fail("the lists in 'value' have different depths");
    shape.extents.push_back(extent);
    shape.is_complete = extent == 0;
  } else if (shape.extents[axis] != extent) {
    members.fail(fmt::format("the lists in 'value' have different lengths: {} and {}", shape.extents[axis], extent));
  }
  for (const json::value& item : list) measure(item, axis + 1, shape, members);
}

template <class T, class Convert>
void flatten(const json::value& value, std::vector<T>& out, const Convert& convert) {
  if (value.is_array()) {
    for (const json::value& item : value.get_array()) flatten(item, out, convert);
  } else {
    out.push_back(convert(value));
  }
}

// A fraction as an integer would be another number than the one that was asked for, unless the request names the dtype itself.
void refuse_fractions(const json::value& value, DType dtype, Members& members) {
  if (!is_integer(dtype)) return;
  if (value.is_array()) {
    for (const json::value& item : value.get_array()) refuse_fractions(item, dtype, members);
    return;
  }
  const std::optional<double> number = as_number(value);
  if (!number || value.is_int64() || value.is_uint64() || value.is_bool()) return;
  if (*number != std::floor(*number) || std::isinf(*number))
    members.fail(fmt::format("{} takes integers; {} is not one", name(dtype), *number),
                 "give a whole number, or a float dtype if the operation takes floats");
}

std::int64_t exact_signed(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64()) return INT64_MAX;
  const double number = *as_number(value);
  if (std::isnan(number)) return 0;
  return number >= 0x1p63 ? INT64_MAX : number <= -0x1p63 ? INT64_MIN : static_cast<std::int64_t>(number);
}

std::uint64_t exact_unsigned(const json::value& value) {
  if (value.is_uint64()) return value.get_uint64();
  if (value.is_int64()) return value.get_int64() < 0 ? 0 : static_cast<std::uint64_t>(value.get_int64());
  const double number = *as_number(value);
  if (!(number > 0)) return 0;
  return number >= 0x1p64 ? UINT64_MAX : static_cast<std::uint64_t>(number);
}

HostArray from_list(const json::value& value, DType dtype, const Shape& shape) {
  if (dtype == DType::i64) {
    std::vector<std::int64_t> values;
    flatten(value, values, exact_signed);
    return HostArray::from<std::int64_t>(shape, values);
  }
  if (dtype == DType::u64) {
    std::vector<std::uint64_t> values;
    flatten(value, values, exact_unsigned);
    return HostArray::from<std::uint64_t>(shape, values);
  }
  std::vector<double> values;
  flatten(value, values, [](const json::value& item) { return *as_number(item); });
  return HostArray::from<double>(shape, values).cast(dtype);
}

// --- Generators ---

HostArray eye(DType dtype, const Shape& shape, Members& members) {
  if (shape.rank() < 2) members.fail("eye needs a shape with at least two axes");
  HostArray ones = HostArray::zeros(DType::u8, shape);
  const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  const std::int64_t matrix = rows * columns;
  std::byte* const bytes = ones.mutable_data();
  for (std::int64_t at = 0; matrix > 0 && at < shape.elements(); at += matrix)
    for (std::int64_t i = 0; i < std::min(rows, columns); ++i) bytes[at + i * columns + i] = std::byte{1};
  return ones.cast(dtype);
}

HostArray generate(const std::string& generator, DType dtype, const Shape& shape, Members& members, const ProgramReader& reader) {
  if (generator == "eye") return eye(dtype, shape, members);
  Graph graph;
  const DType working = dtype == DType::f64 || is_integer(dtype) ? DType::f64 : DType::f32;
  const auto scalar = [&](double value) { return graph.scalar(value, working); };
  const auto call = [&](const char* op, NodeId a, NodeId b) { return apply(graph, op, {a, b})[0]; };
  NodeId node = 0;
  if (generator == "uniform" || generator == "random" || generator == "normal") {
    const bool normal = generator == "normal";
    const double offset = members.number(normal ? "mean" : "low").value_or(0);
    const double extent = normal ? members.number("deviation").value_or(1) : members.number("high").value_or(1) - offset;
    node = graph.random(shape, working, normal, members.natural("seed").value_or(0));
    node = call("add", call("mul", node, scalar(extent)), scalar(offset));
  } else if (generator == "range" || generator == "linspace") {
    const double start = members.number("start").value_or(0);
    const std::int64_t count = shape.elements();
    double step = 1;
    if (generator == "range") {
      step = members.number("step").value_or(1);
    } else {
      step = count > 1 ? (members.number("stop").value_or(1) - start) / static_cast<double>(count - 1) : 0;
      members.has("stop");
    }
    node = graph.cast(graph.iota(Shape{count}, 0), DType::f64);
    node = apply(graph, "mul", {node, graph.scalar(step, DType::f64)})[0];
    node = apply(graph, "add", {node, graph.scalar(start, DType::f64)})[0];
    node = graph.reshape(node, shape);
  } else {
    static const std::vector<std::string> kGenerators{"constant", "uniform", "random", "normal", "range", "linspace", "eye"};
    const std::string near = nearest(generator, kGenerators);
    members.fail(fmt::format("unknown generator '{}'", generator), near.empty()
                                                                       ? "use constant, uniform, normal, range, linspace or eye"
                                                                       : fmt::format("did you mean '{}'?", near));
  }
  graph.set_outputs({graph.cast(node, dtype)});
  return compute(graph, reader);
}

// --- The forms ---

void read_constant(InputValue& input, const std::string& where, Members& members, const json::value& value, bool is_scalar,
                   std::optional<DType> dtype, DType fallback, std::optional<Shape> shape, const ProgramReader& reader,
                   MemoryTally& memory) {
  const std::optional<double> number = as_number(value);
  if (!number) members.fail("'value' must be a number, a list of numbers, \"NaN\", \"Infinity\" or \"-Infinity\"");
  const bool is_integer_value = value.is_int64() || value.is_uint64();
  input.given = *number;
  if (is_scalar && !dtype) {
    input.is_literal = true;
    input.is_integer_literal = is_integer_value;
    input.array = is_integer_value ? from_list(value, DType::i64, {}) : HostArray::full(DType::f64, {}, *number);
    return;
  }
  const DType wanted = dtype ? *dtype : value.is_bool() ? DType::boolean : fallback;
  if (!dtype) refuse_fractions(value, wanted, members);
  const Shape extents = is_scalar ? Shape{} : shape.value_or(Shape{});
  check_size(where, wanted, extents, reader);
  take_memory(memory, wanted, extents);
  if ((wanted == DType::i64 || wanted == DType::u64) && extents.elements() > 0) {
    // 64-bit integers are exact, also beyond 2^53.
    HostArray one = from_list(value, wanted, {});
    Graph graph;
    graph.set_outputs({graph.broadcast(graph.constant(std::move(one)), extents)});
    input.array = compute(graph, reader);
    return;
  }
  input.array = HostArray::full(wanted, extents, *number);
}

void read_list(InputValue& input, const std::string& where, Members& members, const json::value& value,
               std::optional<DType> dtype, DType fallback, std::optional<Shape> shape, const ProgramReader& reader,
               MemoryTally& memory) {
  ListShape measured;
  measure(value, 0, measured, members);
  const Shape natural{std::span<const std::int64_t>(measured.extents)};
  const DType wanted = dtype ? *dtype : measured.all_bools && natural.elements() > 0 ? DType::boolean : fallback;
  if (!dtype) refuse_fractions(value, wanted, members);
  const Shape extents = shape.value_or(natural);
  if (extents.elements() != natural.elements())
    members.fail(fmt::format("{} values do not match the shape {}", natural.elements(), to_string(extents)));
  check_size(where, wanted, extents, reader);
  take_memory(memory, wanted, extents);
  input.array = from_list(value, wanted, extents);
}

void read_expression(InputValue& input, const std::string& where, const std::string& source, std::optional<DType> dtype,
                     DType fallback, const ProgramReader& reader, MemoryTally& memory) {
  ExpressionOptions options;
  options.max_elements = reader.limits.elements;
  const DType wanted = dtype.value_or(fallback);
  if (is_float(wanted)) options.default_float = wanted;
  // What another program printed is data, not an expression.
  {
    // A number of two characters is 24 bytes while it is read.
    const MemoryGate::Share reading = reader.memory.take(12 * source.size());
    if (const std::optional<HostArray> pasted = parse_pasted(source, options.default_float)) {
      check_size(where, dtype.value_or(pasted->dtype()), pasted->shape(), reader);
      take_memory(memory, pasted->dtype(), pasted->shape());
      input.array = dtype ? cast_checked(where, *pasted, *dtype, reader, memory) : *pasted;
      return;
    }
  }
  Graph graph;
  try {
    graph = parse_expression(source, {}, options);
  } catch (const ExpressionError& error) {
    throw ExpressionError(error.code(), where + ": " + error.message(), error.hint(), error.place());
  }
  if (graph.outputs().size() != 1) throw Error(ErrorCode::invalid_argument, where + ": the expression has more than one result");
  const std::uint64_t bytes = check_limits(graph, reader.limits);
  const Node& result = graph[graph.outputs()[0]];
  take_memory(memory, result.dtype, result.shape);
  // What lies between is gone when the result is there.
  const MemoryGate::Share running = reader.memory.take(bytes - std::min(bytes, storage_bytes(result.dtype, result.shape)));
  input.array = compute(graph, reader);
  if (dtype) input.array = cast_checked(where, input.array, *dtype, reader, memory);
}

}  // namespace

InputValue read_input(const json::value& value, const std::string& where, DType fallback, const ProgramReader& reader,
                      MemoryTally& memory) {
  InputValue input;
  if (!value.is_object()) {
    // A bare number or list is short for {"value": ...}.
    const json::object wrapped{{"value", value}};
    return read_input(wrapped, where, fallback, reader, memory);
  }
  Members members(value.get_object(), where);
  const std::string type = members.text("type").value_or("tensor");
  if (type != "tensor" && type != "scalar") members.fail("'type' must be \"tensor\" or \"scalar\"");
  const bool is_scalar = type == "scalar";
  std::optional<DType> dtype;
  const std::optional<std::string> dtype_name = members.text("dtype");
  // The calculator's page offered "float" and "int" for scalars: numbers that take the type of what they meet.
  if (dtype_name && !(is_scalar && (*dtype_name == "float" || *dtype_name == "int"))) dtype = members.dtype("dtype");
  try {
    std::optional<Shape> shape = members.shape("shape");
    if (const std::optional<std::string> upload = members.text("upload")) {
      UploadStore::Loaded loaded = reader.uploads.load(*upload, members.text("tensor").value_or(""));
      check_size(where, loaded.array.dtype(), loaded.array.shape(), reader);
      input.array = dtype ? cast_checked(where, loaded.array, *dtype, reader, memory) : loaded.array;
      if (shape) input.array = input.array.reshape(*shape);
      input.upload_memory = std::move(loaded.memory);
      input.is_repeatable = false;
    } else if (const std::optional<std::string> source = members.text("expression")) {
      read_expression(input, where, *source, dtype, fallback, reader, memory);
    } else if (const std::optional<std::string> generator = members.text("generator"); generator && *generator != "constant") {
      if (!shape) members.fail("a generator needs a 'shape'");
      const DType wanted = dtype.value_or(fallback);
      check_size(where, wanted, *shape, reader);
      take_memory(memory, wanted, *shape);
      input.array = generate(*generator, wanted, *shape, members, reader);
    } else if (const json::value* given = members.find("value")) {
      if (given->is_array()) {
        if (is_scalar) members.fail("the value of a scalar must be one number, not a list");
        read_list(input, where, members, *given, dtype, fallback, shape, reader, memory);
      } else {
        read_constant(input, where, members, *given, is_scalar, dtype, fallback, shape, reader, memory);
      }
    } else {
      members.fail("'value', 'generator', 'upload' or 'expression' is required");
    }
  } catch (const ExpressionError&) {
    throw;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::resource_exhausted) throw Problem(413, "too_large", error.what(), error.hint());
    throw;
  }
  members.done();
  return input;
}

}  // namespace tenon::server
