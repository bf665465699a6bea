#include <fmt/format.h>

#include <cmath>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"
#include "ops/whole_number.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

Shape shape_of(const OpCall& call) { return Shape(call.integers("shape")); }

// The shape by value: adding the scalar may move the node a caller took it from.
Expr filled(Graph& graph, Shape shape, double value, DType dtype) {
  return build::broadcast(Expr(graph, graph.scalar(value, dtype)), shape);
}

// The parameter "value", with all bits of a 64-bit integer.
Expr filled_with_value(const OpCall& call, Shape shape, DType dtype) {
  const std::optional<std::int64_t> whole = whole_number(call, "value");
  if (!whole || is_float(dtype)) return filled(call.graph(), shape, call.number("value"), dtype);
  const HostArray one = HostArray::from<std::int64_t>({}, {*whole}).cast(dtype);
  return build::broadcast(Expr(call.graph(), call.graph().constant(one)), shape);
}

template <int value>
Results constant_fill(const OpCall& call) {
  return {filled(call.graph(), shape_of(call), value, call.dtype("dtype")).id()};
}

Results full(const OpCall& call) { return {filled_with_value(call, shape_of(call), call.dtype("dtype")).id()}; }

DType like_dtype(const OpCall& call) { return call.given("dtype") ? call.dtype("dtype") : input(call, 0).dtype(); }
template <int value>
Results constant_like(const OpCall& call) {
  const DType dtype = like_dtype(call);
  return {filled(call.graph(), call.node(0).shape, value, dtype).id()};
}
Results full_like(const OpCall& call) {
  const DType dtype = like_dtype(call);
  return {filled_with_value(call, call.node(0).shape, dtype).id()};
}

// start, start + step, ... in 64-bit integers.
Results whole_arange(const OpCall& call, std::int64_t start, std::int64_t stop, std::int64_t step) {
  const auto bits = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  const bool is_empty = step > 0 ? stop <= start : stop >= start;
  const std::uint64_t distance = step > 0 ? bits(stop) - bits(start) : bits(start) - bits(stop);
  const std::uint64_t size = step > 0 ? bits(step) : -bits(step);
  const std::uint64_t count = is_empty ? 0 : (distance - 1) / size + 1;
  if (count > bits(kMaxElements)) call.fail(fmt::format("the result would have {} elements, which is too many", count));
  Graph& graph = call.graph();
  Expr values = iota(graph, Shape{static_cast<std::int64_t>(count)}, 0);
  if (step != 1) values = values * Expr(graph, graph.literal(step));
  if (start != 0) values = values + Expr(graph, graph.literal(start));
  return {build::cast(values, call.given("dtype") ? call.dtype("dtype") : DType::i64).id()};
}

// Steps are formed in double, or in 64-bit integers, and converted once.
Results arange(const OpCall& call) {
  double start = call.number("start"), stop = start;
  const double step = call.number("step");
  if (call.given("stop"))
    stop = call.number("stop");
  else
    start = 0;
  if (step == 0 || !std::isfinite(start) || !std::isfinite(stop) || !std::isfinite(step))
    call.fail("start, stop and step must be finite, and step must not be 0");
  const auto whole_start = whole_number(call, "start"), whole_step = whole_number(call, "step");
  const auto whole_stop = call.given("stop") ? whole_number(call, "stop") : whole_start;
  if (whole_start && whole_stop && whole_step)
    return whole_arange(call, call.given("stop") ? *whole_start : 0, *whole_stop, *whole_step);
  const double count = std::max(0.0, std::ceil((stop - start) / step));
  if (!(count <= static_cast<double>(kMaxElements)))
    call.fail(fmt::format("the result would have {} elements, which is too many", count));
  const Expr i = build::cast(iota(call.graph(), Shape{static_cast<std::int64_t>(count)}, 0), DType::f64);
  return {build::cast(i * step + start, call.given("dtype") ? call.dtype("dtype") : DType::f32).id()};
}

// Both ends are exact: each is one of the products.
Expr evenly(const OpCall& call, double start, double stop, std::int64_t n) {
  if (!std::isfinite(start) || !std::isfinite(stop)) call.fail("start and stop must be finite");
  const Expr i = build::cast(iota(call.graph(), Shape{n}, 0), DType::f64);
  if (n < 2) return i + start;
  const double last = static_cast<double>(n - 1);
  return ((last - i) * start + i * stop) / last;
}

Results linspace(const OpCall& call) {
  return {build::cast(evenly(call, call.number("start"), call.number("stop"), call.integer("num")), call.dtype("dtype")).id()};
}

Results logspace(const OpCall& call) {
  const double base = call.number("base");
  if (!(base > 0)) call.fail("base must be positive");
  const Expr exponents = evenly(call, call.number("start"), call.number("stop"), call.integer("num"));
  return {build::cast(build::pow(number(call.graph(), base), exponents), call.dtype("dtype")).id()};
}

Results eye(const OpCall& call) {
  const std::int64_t rows = call.integer("n"), cols = call.given("m") ? call.integer("m") : rows;
  const DType type = counting_dtype(std::max(rows, cols));
  const Expr column = counted(call.graph(), Shape{1, cols}, 1, 0, type);
  const Expr diagonal = counted(call.graph(), Shape{rows, 1}, 0, call.integer("k"), type);
  return {build::cast(column == diagonal, call.dtype("dtype")).id()};
}

std::uint64_t seed(const OpCall& call) { return static_cast<std::uint64_t>(call.integer("seed")); }

Expr uniform_of(const OpCall& call, const Shape& shape, DType dtype) {
  if (!is_float(dtype))
    call.fail(fmt::format("the dtype must be a float type, not {}", name(dtype)), "use randint for random integers");
  return {call.graph(), call.graph().random(shape, dtype, false, seed(call))};
}

Results rand(const OpCall& call) { return {uniform_of(call, shape_of(call), call.dtype("dtype")).id()}; }

Results randn(const OpCall& call) {
  const DType dtype = call.dtype("dtype");
  if (!is_float(dtype))
    call.fail(fmt::format("the dtype must be a float type, not {}", name(dtype)), "use randint for random integers");
  return {call.graph().random(shape_of(call), dtype, true, seed(call))};
}

Results uniform(const OpCall& call) {
  const double low = call.number("low"), high = call.number("high");
  if (!(low <= high)) call.fail("low must not be greater than high");
  return {(uniform_of(call, shape_of(call), call.dtype("dtype")) * (high - low) + low).id()};
}

Results bernoulli(const OpCall& call) {
  const Expr u = uniform_of(call, shape_of(call), DType::f64);
  return {build::cast(u < number(call.graph(), call.number("p")), call.dtype("dtype")).id()};
}

Results randint(const OpCall& call) {
  const std::int64_t low = call.integer("low"), high = call.integer("high");
  if (low >= high) call.fail(fmt::format("low ({}) must be less than high ({})", low, high));
  const Expr u = uniform_of(call, shape_of(call), DType::f64);
  const Expr offset = build::cast(floor(u * static_cast<double>(high - low)), DType::i64);
  return {build::cast(offset + static_cast<double>(low), call.dtype("dtype")).id()};
}

Results randperm(const OpCall& call) {
  const Expr u = uniform_of(call, Shape{call.integer("n")}, DType::f64);
  return {build::cast(Expr(call.graph(), call.graph().arg_sort(u.id(), 0, false)), call.dtype("dtype")).id()};
}

Family creation_family() { return {.category = "creation", .inputs = {}}; }
Family creation_like_family() { return {.category = "creation"}; }

Parameter required_number(std::string name, std::string doc) {
  return {.name = std::move(name), .type = ParameterType::number, .required = true, .doc = std::move(doc)};
}

Parameter seed_parameter() {
  Parameter p = integer_parameter("seed", 0, "the same seed gives the same numbers on every device");
  p.min = 0.0;
  return p;
}

Parameter same_dtype_parameter() {
  return {.name = "dtype", .type = ParameterType::dtype, .doc = "element type of the result; default: that of x"};
}

Parameter bounded_integer(std::string name, double min, double max, std::string doc) {
  return {
      .name = std::move(name), .type = ParameterType::integer, .required = true, .min = min, .max = max, .doc = std::move(doc)};
}

constexpr double kLargest = static_cast<double>(kMaxElements);
constexpr double kExact = 0x1p52;

void register_random_ops(OpList& ops) {
  const Parameter dtype = dtype_parameter("float32");
  Entry(ops, creation_family(), "rand", rand)
      .dtypes(float_dtypes())
      .parameters({shape_parameter(), dtype, seed_parameter()})
      .formula("x ~ U[0, 1)")
      .doc("Uniform random numbers in [0, 1).")
      .example("rand(shape=[2, 3], seed=1)");
  Entry(ops, creation_family(), "randn", randn)
      .dtypes(float_dtypes())
      .parameters({shape_parameter(), dtype, seed_parameter()})
      .formula("x ~ N(0, 1)")
      .doc("Normal random numbers with mean 0 and variance 1.")
      .example("randn(shape=[2, 3], seed=1)");
  Entry(ops, creation_family(), "uniform", uniform)
      .dtypes(float_dtypes())
      .parameters({shape_parameter(), number_parameter("low", 0, "smallest"), number_parameter("high", 1, "end"), dtype,
                   seed_parameter()})
      .formula("x ~ U[low, high)")
      .doc("Uniform random numbers in [low, high).")
      .example("uniform(shape=[3], low=-1, high=1, seed=1)");
  Entry(ops, creation_family(), "bernoulli", bernoulli)
      .parameters(
          {shape_parameter(),
           {.name = "p", .type = ParameterType::number, .fallback = 0.5, .min = 0.0, .max = 1.0, .doc = "probability of a one"},
           dtype_parameter("bool"),
           seed_parameter()})
      .formula("P(x = 1) = p")
      .doc("Random zeros and ones.")
      .example("bernoulli(shape=[4], p=0.5, seed=1)");
  Parameter low = integer_parameter("low", 0, "smallest"), high = bounded_integer("high", -kExact, kExact, "end (exclusive)");
  low.min = -kExact;
  low.max = kExact;
  Entry(ops, creation_family(), "randint", randint)
      .parameters({shape_parameter(), low, high, dtype_parameter("int64"), seed_parameter()})
      .formula("x ~ U{low, ..., high - 1}")
      .doc("Random integers in [low, high).")
      .example("randint(shape=[4], low=0, high=10, seed=1)");
  Entry(ops, creation_family(), "randperm", randperm)
      .parameters({bounded_integer("n", 0, kLargest, "how many"), dtype_parameter("int64"), seed_parameter()})
      .formula("a permutation of 0 .. n - 1")
      .doc("The numbers 0 to n - 1 in random order.")
      .example("randperm(n=5, seed=1)");
}

}  // namespace

void register_creation_ops(OpList& ops) {
  const Parameter dtype = dtype_parameter("float32");
  Entry(ops, creation_family(), "zeros", constant_fill<0>)
      .parameters({shape_parameter(), dtype})
      .formula("0")
      .doc("A tensor of zeros.")
      .example("zeros(shape=[2, 3])");
  Entry(ops, creation_family(), "ones", constant_fill<1>)
      .parameters({shape_parameter(), dtype})
      .formula("1")
      .doc("A tensor of ones.")
      .example("ones(shape=[2, 3])");
  Entry(ops, creation_family(), "full", full)
      .parameters({shape_parameter(), required_number("value", "value of every element"), dtype})
      .formula("value")
      .doc("A tensor filled with one value.")
      .example("full(shape=[2, 3], value=7)");
  Entry(ops, creation_like_family(), "zeros_like", constant_like<0>)
      .parameters({same_dtype_parameter()})
      .formula("0")
      .doc("Zeros with the shape of x.")
      .example("zeros_like([[1, 2], [3, 4]])");
  Entry(ops, creation_like_family(), "ones_like", constant_like<1>)
      .parameters({same_dtype_parameter()})
      .formula("1")
      .doc("Ones with the shape of x.")
      .example("ones_like([[1, 2], [3, 4]])");
  Entry(ops, creation_like_family(), "full_like", full_like)
      .parameters({required_number("value", "value of every element"), same_dtype_parameter()})
      .formula("value")
      .doc("One value with the shape of x.")
      .example("full_like([[1, 2], [3, 4]], value=7)");
  Entry(ops, creation_family(), "arange", arange)
      .parameters({required_number("start", "first element; if it is the only argument, the end, and the first element is 0"),
                   {.name = "stop", .type = ParameterType::number, .doc = "end (exclusive)"},
                   number_parameter("step", 1, "distance"),
                   {.name = "dtype",
                    .type = ParameterType::dtype,
                    .doc = "element type of the result; default: int64 if all three are integers, else float32"}})
      .formula("start + i step")
      .doc("Evenly spaced numbers from start to stop (exclusive).")
      .example("arange(start=0, stop=10, step=2)");
  const Parameter num{.name = "num",
                      .type = ParameterType::integer,
                      .fallback = std::int64_t{50},
                      .min = 0.0,
                      .max = kLargest,
                      .doc = "how many"};
  Entry(ops, creation_family(), "linspace", linspace)
      .parameters({required_number("start", "first element"), required_number("stop", "last element"), num, dtype})
      .formula("start + i (stop - start) / (num - 1)")
      .doc("Evenly spaced numbers from start to stop (inclusive).")
      .example("linspace(start=0, stop=1, num=5)");
  Entry(ops, creation_family(), "logspace", logspace)
      .parameters({required_number("start", "first exponent"), required_number("stop", "last exponent"), num,
                   number_parameter("base", 10, "base of the powers"), dtype})
      .formula("base^linspace(start, stop)")
      .doc("Numbers spaced evenly on a logarithmic scale.")
      .example("logspace(start=0, stop=2, num=3)");
  Entry(ops, creation_family(), "eye", eye)
      .parameters({bounded_integer("n", 0, 1e9, "rows"),
                   {.name = "m",
                    .type = ParameterType::integer,
                    .min = 0.0,
                    .max = 1e9,
                    .doc = "number of columns; default: the number of rows"},
                   {.name = "k",
                    .type = ParameterType::integer,
                    .fallback = std::int64_t{0},
                    .min = -1e9,
                    .max = 1e9,
                    .doc = "diagonal above (positive) or below the main diagonal"},
                   dtype})
      .formula("1 where j = i + k, else 0")
      .doc("Ones on a diagonal.")
      .example("eye(n=3)");
  register_random_ops(ops);
}

}  // namespace tenon
