#include <fmt/format.h>

#include "model/onnx/converters/microsoft/fused.h"
#include "model/onnx/import/importer.h"

namespace tenon::onnx {
namespace {

using namespace build;

// RNN, GRU and LSTM, unrolled over time. The products of all inputs with their weights are one product before the first step.
struct Recurrent {
  const NodeContext& node;
  std::int64_t gates, hidden, time, batch;
  std::vector<std::string> activations;
  std::vector<float> alphas, betas;
  double clip;
  bool is_batch_first;
  std::optional<Expr> lengths;  // [batch, 1]

  Expr activate(std::size_t which, Expr x) const;
  Expr clipped(Expr x) const { return clip > 0 ? minimum(maximum(x, -clip), clip) : x; }
};

struct Direction {
  Expr x;                                      // [time, batch, gates * hidden], inputs times weights plus bias
  Expr r;                                      // [gates * hidden, hidden]
  std::optional<Expr> bias, r_bias, peephole;  // [gates * hidden] and [3 * hidden]
  Expr h, c;                                   // [batch, hidden]
  std::size_t first_activation;
  std::function<Expr(Expr)> times_r;  // of a quantised LSTM, instead of |r|
};

Expr Recurrent::activate(std::size_t which, Expr x) const {
  const std::string& name = activations[which];
  const auto alpha = [&](double fallback) { return which < alphas.size() ? static_cast<double>(alphas[which]) : fallback; };
  const auto beta = [&](double fallback) { return which < betas.size() ? static_cast<double>(betas[which]) : fallback; };
  if (name == "Sigmoid") return sigmoid(x);
  if (name == "Tanh") return node.apply("tanh", {x});
  if (name == "Relu") return maximum(x, 0.0);
  if (name == "Affine") return x * alpha(1) + beta(0);
  if (name == "LeakyRelu") return where(x <= 0.0, x * alpha(0.01), x);
  if (name == "ThresholdedRelu") return where(x <= alpha(1), 0.0, x);
  if (name == "ScaledTanh") return node.apply("tanh", {x * beta(1)}) * alpha(1);
  if (name == "HardSigmoid") return minimum(maximum(x * alpha(0.2) + beta(0.5), 0.0), 1.0);
  if (name == "Elu") return node.apply("elu", {x}, {{"alpha", alpha(1)}});
  if (name == "Softsign") return node.apply("softsign", {x});
  if (name == "Softplus") return node.apply("softplus", {x});
  node.refuse(fmt::format("the activation '{}'", name));
}

Expr gate(const Recurrent& r, Expr x, std::int64_t index) { return narrow(x, x.rank() - 1, index * r.hidden, r.hidden); }

struct State {
  Expr h, c;
};

State rnn_step(const Recurrent& r, const Direction& d, Expr x, State s) {
  return {r.activate(d.first_activation, r.clipped(x + matmul(s.h, d.r, {.transpose_b = true}))), s.c};
}

State gru_step(const Recurrent& r, const Direction& d, Expr x, State s) {
  const bool linear = r.node.integer("linear_before_reset", 0) != 0;
  const std::int64_t h = r.hidden;
  const Expr rows_zr = narrow(d.r, 0, 0, 2 * h), rows_h = narrow(d.r, 0, 2 * h, h);
  Expr zr = narrow(x, 1, 0, 2 * h) + matmul(s.h, rows_zr, {.transpose_b = true});
  if (d.r_bias) zr = zr + narrow(*d.r_bias, 0, 0, 2 * h);
  const Expr z = r.activate(d.first_activation, r.clipped(narrow(zr, 1, 0, h))),
             reset = r.activate(d.first_activation, r.clipped(narrow(zr, 1, h, h)));
  Expr hidden = linear ? matmul(s.h, rows_h, {.transpose_b = true}) : matmul(reset * s.h, rows_h, {.transpose_b = true});
  if (d.r_bias) hidden = hidden + narrow(*d.r_bias, 0, 2 * h, h);
  if (linear) hidden = reset * hidden;
  const Expr next = r.activate(d.first_activation + 1, r.clipped(narrow(x, 1, 2 * h, h) + hidden));
  return {(1.0 - z) * next + z * s.h, s.c};
}

State lstm_step(const Recurrent& r, const Direction& d, Expr x, State s) {
  const Expr all = x + (d.times_r ? d.times_r(s.h) : matmul(s.h, d.r, {.transpose_b = true}));
  const auto peep = [&](Expr value, std::int64_t which, Expr cell) {
    return d.peephole ? value + narrow(*d.peephole, 0, which * r.hidden, r.hidden) * cell : value;
  };
  const std::size_t f = d.first_activation;
  const Expr in = r.activate(f, r.clipped(peep(gate(r, all, 0), 0, s.c)));
  const Expr forget = r.node.integer("input_forget", 0) != 0 ? 1.0 - in : r.activate(f, r.clipped(peep(gate(r, all, 2), 2, s.c)));
  const Expr cell = forget * s.c + in * r.activate(f + 1, r.clipped(gate(r, all, 3)));
  const Expr out = r.activate(f, r.clipped(peep(gate(r, all, 1), 1, cell)));
  return {out * r.activate(f + 2, cell), cell};
}

using Step = State (*)(const Recurrent&, const Direction&, Expr, State);

// The elements of each row in reverse order; of rows that end early, up to their own end.
Expr reversed(const Recurrent& r, Expr x) {
  if (!r.lengths) return reverse(x, 0);
  const Expr place = build::iota(r.node.graph(), x.shape(), 0), length = reshape(*r.lengths, Shape{1, r.batch, 1});
  return gather(x, where(place < length, length - place - 1.0, place), 0);
}

struct Sequence {
  Expr rows;  // [time, batch, hidden]
  State last;
};

Sequence run(const Recurrent& r, const Direction& d, Step step) {
  State state{d.h, d.c};
  std::vector<Expr> rows;
  for (std::int64_t t = 0; t < r.time; ++t) {
    r.node.importer().count_step();
    const State next = step(r, d, squeeze(narrow(d.x, 0, t, 1), one_axis(0)), state);
    if (!r.lengths) {
      state = next;
      rows.push_back(unsqueeze(state.h, 0));
      continue;
    }
    const Expr is_within = *r.lengths > same(*r.lengths, static_cast<double>(t));
    state = {where(is_within, next.h, state.h), where(is_within, next.c, state.c)};
    rows.push_back(unsqueeze(where(is_within, next.h, 0.0), 0));
  }
  if (rows.empty()) r.node.fail("the sequence is empty");
  return {concat(rows, 0), state};
}

std::vector<std::string> default_activations(std::string_view op) {
  if (op == "LSTM") return {"Sigmoid", "Tanh", "Tanh"};
  if (op == "GRU") return {"Sigmoid", "Tanh"};
  return {"Tanh"};
}

// DynamicQuantizeLSTM has weights of 8 bits, [directions, width, gates * hidden], and their scales and zero points from input 8
// on; what they are multiplied with is rounded to 8 bits at every step.
Results recurrent(const NodeContext& node) {
  const bool is_quantized = node.op() == "DynamicQuantizeLSTM";
  const std::string_view op = is_quantized ? "LSTM" : node.op();
  const std::int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  const Step step = op == "LSTM" ? lstm_step : op == "GRU" ? gru_step : rnn_step;
  const bool batch_first = node.integer("layout", 0) != 0;
  Expr x = node.in(0);
  if (x.rank() != 3) node.fail(fmt::format("expected [time, batch, width], got {}", to_string(x.shape())));
  if (batch_first) x = swap_axes(x, 0, 1);
  const Expr w = node.in(1), r = node.in(2);
  if (w.rank() != 3 || r.rank() != 3) node.fail("expected weights of three axes");
  const int wide = is_quantized ? 2 : 1, narrow_axis = 3 - wide;
  const std::int64_t directions = w.extent(0), hidden = r.extent(narrow_axis);
  Recurrent all{node,
                gates,
                hidden,
                x.extent(0),
                x.extent(1),
                node.texts("activations"),
                node.numbers("activation_alpha"),
                node.numbers("activation_beta"),
                node.number("clip", 0),
                batch_first,
                {}};
  const std::vector<std::string> defaults = default_activations(op);
  while (all.activations.size() < defaults.size() * static_cast<std::size_t>(directions))
    all.activations.insert(all.activations.end(), defaults.begin(), defaults.end());
  if (w.extent(wide) != gates * hidden || r.extent(wide) != gates * hidden || w.extent(narrow_axis) != x.extent(2))
    node.fail("the weights do not fit the input");
  if (node.has(4)) all.lengths = reshape(cast(node.in(4), DType::i64), Shape{all.batch, 1});

  const std::string direction = node.text("direction", "forward");
  const Expr zero = node.constant(HostArray::zeros(compute_dtype(x.dtype()), {}));
  const auto initial = [&](std::size_t i, std::int64_t d) {
    if (!node.has(i)) return expand_to(cast(zero, x.dtype()), Shape{all.batch, hidden});
    const Expr given = batch_first ? swap_axes(node.in(i), 0, 1) : node.in(i);
    return squeeze(narrow(given, 0, d, 1), one_axis(0));
  };
  std::vector<Expr> rows, last_h, last_c;
  for (std::int64_t d = 0; d < directions; ++d) {
    const bool backwards = direction == "reverse" || d == 1;
    const auto of = [&](Expr weights) { return squeeze(narrow(weights, 0, d, 1), one_axis(0)); };
    const auto quantized = [&](Expr a, Expr weights, std::size_t scale) {
      return dynamic_product(node, a, computed(of(weights)), computed(of(node.in(scale))), computed(of(node.in(scale + 1))));
    };
    const Expr ordered = backwards ? reversed(all, x) : x;
    const Expr projected = is_quantized ? quantized(ordered, w, 8) : matmul(ordered, unsqueeze(of(w), 0), {.transpose_b = true});
    Direction one{projected,
                  of(r),
                  {},
                  {},
                  {},
                  initial(5, d),
                  op == "LSTM" ? initial(6, d) : initial(99, d),
                  static_cast<std::size_t>(d) * defaults.size(),
                  {}};
    if (is_quantized) one.times_r = [&](Expr h) { return quantized(h, r, 10); };
    if (node.has(3)) {
      const Expr bias = of(node.in(3));
      const Expr input_bias = narrow(bias, 0, 0, gates * hidden), state_bias = narrow(bias, 0, gates * hidden, gates * hidden);
      // The reset gate of a GRU stands between the two biases.
      if (op == "GRU") one.r_bias = state_bias;
      one.x = projected + (op == "GRU" ? input_bias : input_bias + state_bias);
    }
    if (node.has(7)) one.peephole = of(node.in(7));
    const Sequence sequence = run(all, one, step);
    rows.push_back(unsqueeze(backwards ? reversed(all, sequence.rows) : sequence.rows, 1));
    last_h.push_back(unsqueeze(sequence.last.h, 0));
    last_c.push_back(unsqueeze(sequence.last.c, 0));
  }
  const auto joined = [](const std::vector<Expr>& parts, int axis) { return parts.size() == 1 ? parts[0] : concat(parts, axis); };
  Expr y = joined(rows, 1), h = joined(last_h, 0), c = joined(last_c, 0);
  if (batch_first) {
    y = transpose(y, {2, 0, 1, 3});
    h = swap_axes(h, 0, 1);
    c = swap_axes(c, 0, 1);
  }
  return {cast(y, x.dtype()), cast(h, x.dtype()), cast(c, x.dtype())};
}

}  // namespace

void add_recurrent(ConverterTable& table) { table.add({"RNN", "GRU", "LSTM", "com.microsoft.DynamicQuantizeLSTM"}, recurrent); }

}  // namespace tenon::onnx
