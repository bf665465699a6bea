#include "conformance/runner.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "conformance/judge/limits.h"
#include "hal/worker/hosted.h"
#include "ops/elementwise/elementwise.h"
#include "tenon/error.h"

namespace tenon::conformance {
namespace {

constexpr std::size_t kFailuresKept = 3;
// Outputs are overwritten before the run, and computed a second time, up to this size.
constexpr std::int64_t kSmall = 1 << 16;

bool same_bytes(const HostArray& a, const HostArray& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

std::string shapes_text(const Case& c) {
  std::string text;
  for (const CaseInput& input : c.inputs)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", name(input.dtype), to_string(input.shape),
                        input.transposed ? " transposed" : "");
  return text.empty() ? "none" : text;
}

std::string number_text(double value, DType dtype) {
  if (!is_float(dtype)) return fmt::format("{}", value);
  return fmt::format("{} ({:a})", value, value);
}

std::vector<std::int64_t> place_of(std::int64_t index, const Shape& shape) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    place[static_cast<std::size_t>(axis)] = index % shape[axis];
    index /= shape[axis];
  }
  return place;
}

// What an elementwise op read to make the element at |place|.
std::string operands_text(const Case& c, const Program& program, const std::vector<std::int64_t>& place) {
  if (!c.op->elementwise || (c.around != Around::nothing && c.around != Around::chain)) return {};
  std::string text;
  std::size_t at = 0;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const Shape& shape = c.inputs[i].shape;
    const Strides strides = contiguous_strides(program.inputs[at].shape());
    std::int64_t offset = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const std::int64_t p = place[place.size() - static_cast<std::size_t>(shape.rank() - axis)];
      const int stored = c.inputs[i].transposed ? shape.rank() - 1 - axis : axis;
      if (shape[axis] != 1) offset += p * strides[static_cast<std::size_t>(stored)];
    }
    text += fmt::format("{}{}", i == 0 ? "" : ", ", number_text(program.inputs[at].value(offset), c.inputs[i].dtype));
    // In a chain a float input is followed by the one it is multiplied with.
    at += c.around == Around::chain && is_float(c.inputs[i].dtype) ? 2 : 1;
  }
  return text;
}

bool checks_sign_of_zero(const Case& c) {
  return c.op->elementwise && c.around == Around::nothing && keeps_sign_of_zero(*c.op->elementwise);
}

// Whether the error of a result is that of the op, in the type under test.
bool shows_own_error(const Case& c, DType result) {
  if (c.around != Around::nothing && c.around != Around::chain) return false;
  return !is_float(c.dtype) || c.dtype == result;
}

// |count| of them at equal distances; where they begin differs from op to op and dtype to dtype.
std::vector<Case> sampled(std::vector<Case> cases, int count, std::uint64_t seed) {
  const auto wanted = static_cast<std::size_t>(count);
  if (count <= 0 || cases.size() <= wanted) return cases;
  std::uint64_t first = seed * 7919 + static_cast<std::uint64_t>(cases[0].dtype) * 104729;
  for (const char c : cases[0].op->name) first = first * 31 + static_cast<unsigned char>(c);
  std::vector<Case> chosen;
  for (std::size_t k = 0; k < wanted; ++k) chosen.push_back(cases[(first + k * cases.size() / wanted) % cases.size()]);
  return chosen;
}

}  // namespace

std::string_view name(Status status) noexcept {
  switch (status) {
    case Status::pass: return "pass";
    case Status::fail: return "fail";
    case Status::unsupported: return "unsupported";
    case Status::unavailable: return "unavailable";
  }
  return "";
}

// A program that copies something that is not a result over a tensor of one type.
struct Runner::Filler {
  std::unique_ptr<Executable> program;
  std::unique_ptr<Buffer> pattern;
};

// A tensor beside the outputs that nobody may touch.
struct Runner::Guard {
  Guard(OpenDevice& device) : array(HostArray::full(DType::u8, Shape{256}, 0xA5)), buffer(device.upload(array)) {}
  HostArray array;
  std::unique_ptr<Buffer> buffer;
};

Runner::Runner(OpenDevice& device, RunnerOptions options) : device_(device), options_(std::move(options)) {}
Runner::~Runner() = default;

std::vector<Case> Runner::chosen_cases(const OpInfo& op, DType dtype) const {
  std::vector<Case> cases = sampled(cases_for(op, dtype, options_.extent), options_.sample, options_.seed);
  if (options_.only_case) std::erase_if(cases, [&](const Case& c) { return c.number != *options_.only_case; });
  return cases;
}

void Runner::prepare(const OpInfo& op, std::span<const DType> dtypes) {
  if (!options_.prepare || options_.every > 1) return;
  try {
    std::vector<Graph> graphs;
    for (const DType dtype : dtypes)
      for (const Case& c : chosen_cases(op, dtype)) graphs.push_back(program_of(c, options_.seed).graph);
    options_.prepare(graphs);
  } catch (const Error&) {
  }
}

Verdict Runner::run(const OpInfo& op, DType dtype) {
  Verdict verdict;
  std::vector<Case> cases;
  try {
    cases = chosen_cases(op, dtype);
  } catch (const Error& e) {
    verdict.status = Status::fail;
    verdict.failures.push_back(fmt::format("{}\n  {}", e.what(), e.hint()));
    return verdict;
  }
  for (const Case& c : cases) {
    if (seen_++ % options_.every != 0) continue;
    run_case(c, verdict);
    if (verdict.status == Status::unsupported || verdict.status == Status::unavailable) return verdict;
  }
  // One of a few hundred says nothing about a share of a thousandth.
  const double allowed = std::max(1.0, (1 - kRoundedShare) * static_cast<double>(verdict.random_elements));
  if (static_cast<double>(verdict.random_not_rounded) > allowed && verdict.status == Status::pass) {
    verdict.status = Status::fail;
    verdict.failures.push_back(fmt::format("{} {}: {} of {} random results are not the correctly rounded ones, {:.1f} % may be",
                                           op.name, name(dtype), verdict.random_not_rounded, verdict.random_elements,
                                           100 * (1 - kRoundedShare)));
  }
  return verdict;
}

void Runner::report(const Case& c, Verdict& verdict, const std::string& what) const {
  verdict.status = Status::fail;
  if (verdict.failures.size() >= kFailuresKept) return;
  const std::string parameters = parameters_text(c.parameters);
  verdict.failures.push_back(fmt::format("{} {}, case {} ({})\n  inputs: {}{}{}\n{}\n  repeat: {} --op {} --dtype {} --case {}{}",
                                         c.op->name, name(c.dtype), c.number, c.label, shapes_text(c),
                                         parameters.empty() ? "" : "\n  parameters: ", parameters, what, options_.command,
                                         c.op->name, name(c.dtype), c.number,
                                         options_.seed == RunnerOptions{}.seed ? "" : fmt::format(" --seed {}", options_.seed)));
}

void Runner::run_case(const Case& c, Verdict& verdict) {
  try {
    const Program program = program_of(c, options_.seed);
    const std::vector<HostArray> results = execute(c, program, verdict);
    if (!results.empty()) judge(c, program, results, verdict);
    ++verdict.cases;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::unimplemented || e.code() == ErrorCode::unavailable) {
      verdict.status = e.code() == ErrorCode::unimplemented ? Status::unsupported : Status::unavailable;
      verdict.reason = e.what();
      return;
    }
    report(c, verdict, fmt::format("  error: {}: {}", to_string(e.code()), e.what()));
  }
}

void Runner::poison(Buffer& buffer) {
  const TensorType& type = buffer.type();
  if (type.shape.elements() == 0 || type.shape.elements() > kSmall) return;
  std::unique_ptr<Filler>& filler = fillers_[fmt::format("{} {}", name(type.dtype), to_string(type.shape))];
  if (!filler) {
    Graph graph;
    const NodeId x[] = {graph.input("x", type.dtype, type.shape)};
    // A negation, so that no backend may answer by sharing the input.
    const ElementwiseOp op = type.dtype == DType::boolean ? ElementwiseOp::LogicalNot
                             : is_float(type.dtype)       ? ElementwiseOp::Neg
                                                          : ElementwiseOp::BitwiseNot;
    graph.set_outputs({graph.elementwise(op, x)});
    filler = std::make_unique<Filler>();
    filler->program = device_.compile(graph);
    filler->pattern = device_.upload(HostArray::full(type.dtype, type.shape, type.dtype == DType::boolean ? 0 : 77));
  }
  filler->program->run({filler->pattern.get()}, {&buffer});
}

std::vector<HostArray> Runner::execute(const Case& c, const Program& program, Verdict& verdict) {
  const std::unique_ptr<Executable> executable = device_.compile(program.graph);
  if (const auto* const tiered = dynamic_cast<const Tiered*>(executable.get()); tiered && !tiered->tier().empty())
    verdict.tiers.insert(tiered->tier());
  std::vector<std::unique_ptr<Buffer>> inputs, outputs;
  std::vector<const Buffer*> input_pointers;
  std::vector<Buffer*> output_pointers;
  std::vector<Guard> guards;
  std::vector<HostArray> originals;
  for (const HostArray& x : program.inputs) {
    // A copy of its own: the device may share the bytes uploaded, and then must not write to them.
    originals.push_back(HostArray::from_bytes(x.dtype(), x.shape(), {x.data(), x.bytes()}));
    inputs.push_back(device_.upload(x));
    input_pointers.push_back(inputs.back().get());
  }
  guards.emplace_back(device_);
  for (const TensorType& type : executable->output_types()) {
    outputs.push_back(device_.allocate(type));
    guards.emplace_back(device_);
    poison(*outputs.back());
    output_pointers.push_back(outputs.back().get());
  }
  executable->run(input_pointers, output_pointers);

  std::vector<HostArray> results;
  for (const auto& output : outputs) results.push_back(device_.download(*output));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!same_bytes(device_.download(*inputs[i]), originals[i])) report(c, verdict, fmt::format("  input {} was changed", i));
  for (const Guard& guard : guards) {
    const HostArray now = device_.download(*guard.buffer);
    if (!same_bytes(now, HostArray::full(DType::u8, Shape{256}, 0xA5)))
      report(c, verdict, "  a tensor beside the outputs was changed");
  }
  bool again = true;
  for (const HostArray& result : results) again = again && result.elements() <= kSmall;
  if (again) {
    // Results are kept apart before the buffers are written once more.
    for (HostArray& result : results)
      result = HostArray::from_bytes(result.dtype(), result.shape(), {result.data(), result.bytes()});
    executable->run(input_pointers, output_pointers);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!same_bytes(device_.download(*outputs[i]), results[i])) report(c, verdict, "  a second run gave another result");
  }
  return results;
}

void Runner::judge(const Case& c, const Program& program, const std::vector<HostArray>& results, Verdict& verdict) {
  const std::vector<Bounded> expected =
      bounded_run(program.graph, program.inputs, {.flushes_subnormals = device_.info().details.contains("flushes subnormals")});
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Node& node = program.graph[program.graph.outputs()[i]];
    const HostArray& got = results[i];
    if (got.dtype() != node.dtype || !(got.shape() == node.shape)) {
      report(c, verdict,
             fmt::format("  result is {} {}, expected {} {}", name(got.dtype()), to_string(got.shape()), name(node.dtype),
                         to_string(node.shape)));
      continue;
    }
    const Comparison comparison = compare(got, expected[i], checks_sign_of_zero(c));
    verdict.elements += comparison.elements;
    verdict.unchecked += comparison.unchecked;
    verdict.worst_share = std::max(verdict.worst_share, comparison.worst_share);
    if (shows_own_error(c, got.dtype())) verdict.worst_ulp = std::max(verdict.worst_ulp, comparison.worst_ulp);
    if (c.random && (got.dtype() == DType::f16 || got.dtype() == DType::bf16)) {
      verdict.random_elements += comparison.elements;
      verdict.random_not_rounded += comparison.not_rounded;
    }
    // One element may be a subnormal number, which may count as zero.
    const bool is_telling = comparison.elements > 8 || !device_.info().details.contains("flushes subnormals");
    if (2 * comparison.unchecked > comparison.elements && is_telling)
      report(c, verdict,
             fmt::format("  the case proves nothing: {} of {} elements cannot be judged", comparison.unchecked,
                         comparison.elements));
    if (!comparison.worst) continue;
    const Mismatch& m = *comparison.worst;
    const std::vector<std::int64_t> place = place_of(m.index, node.shape);
    const std::string operands = operands_text(c, program, place);
    report(c, verdict,
           fmt::format("  {} of {} elements fail; the worst at {}{}{}\n  got {}, expected {}, error {:.4g} ULP, limit {:.4g}",
                       comparison.failures, comparison.elements, to_string(Shape(place)), operands.empty() ? "" : ", inputs ",
                       operands, number_text(m.got, node.dtype), number_text(m.expected, node.dtype), m.error_ulp, m.limit_ulp));
  }
}

}  // namespace tenon::conformance
