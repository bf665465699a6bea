// Ops without tensors to read: the dtype under test is a parameter.
#include "conformance/plan.h"

namespace tenon::conformance {
namespace {

using Parameters = std::vector<NamedValue>;

void make(Plan& p, std::string label, Parameters parameters) {
  parameters.emplace_back("dtype", std::string(name(p.dtype())));
  p.add(std::move(label), {}, std::move(parameters));
}

void filled_shape(Plan& p) {
  make(p, "matrix", {{"shape", integers({5, 33})}});
  make(p, "scalar", {{"shape", integers({})}});
  make(p, "empty", {{"shape", integers({0, 3})}});
  if (p.is_full()) make(p, "large", {{"shape", integers({100'003})}});
}
void full(Plan& p) {
  for (double value : {7.0, -1.5, 0.1}) make(p, "matrix", {{"shape", integers({5, 9})}, {"value", value}});
  make(p, "empty", {{"shape", integers({0})}, {"value", 1.0}});
}
void like(Plan& p) {
  p.add("matrix", {p.x({5, 9})});
  p.add("scalar", {p.x({})});
  p.add("another type", {p.x({5, 9})}, {{"dtype", std::string("int16")}});
}
void full_like(Plan& p) {
  p.add("matrix", {p.x({5, 9})}, {{"value", 3.0}});
  p.add("fraction", {p.x({5})}, {{"value", 0.1}});
  p.add("another type", {p.x({5, 9})}, {{"value", -2.0}, {"dtype", std::string("float64")}});
}
void arange(Plan& p) {
  make(p, "end alone", {{"start", 37.0}});
  make(p, "fractions", {{"start", 0.5}, {"stop", 3.0}, {"step", 0.25}});
  make(p, "downwards", {{"start", 9.0}, {"stop", -9.0}, {"step", -2.0}});
  make(p, "nothing", {{"start", 5.0}, {"stop", 5.0}});
}
void linspace(Plan& p) {
  make(p, "fifty", {{"start", 0.0}, {"stop", 1.0}});
  make(p, "odd", {{"start", -3.0}, {"stop", 7.5}, {"num", integer(33)}});
  make(p, "one", {{"start", 2.0}, {"stop", 7.0}, {"num", integer(1)}});
  make(p, "none", {{"start", 2.0}, {"stop", 7.0}, {"num", integer(0)}});
}
void logspace(Plan& p) {
  make(p, "tens", {{"start", 0.0}, {"stop", 2.0}, {"num", integer(9)}});
  make(p, "base 2", {{"start", -3.0}, {"stop", 6.0}, {"num", integer(10)}, {"base", 2.0}});
}
void eye(Plan& p) {
  make(p, "square", {{"n", integer(7)}});
  make(p, "above", {{"n", integer(5)}, {"m", integer(9)}, {"k", integer(2)}});
  make(p, "empty", {{"n", integer(0)}});
}
void random(Plan& p) {
  make(p, "matrix", {{"shape", integers({5, 33})}, {"seed", integer(1)}});
  make(p, "another seed", {{"shape", integers({67})}, {"seed", integer(5'000'000'000)}});
  make(p, "empty", {{"shape", integers({0})}});
  if (p.is_full()) make(p, "large", {{"shape", integers({100'003})}, {"seed", integer(3)}});
}
void uniform(Plan& p) {
  random(p);
  make(p, "range", {{"shape", integers({67})}, {"low", -3.0}, {"high", 5.0}});
}
void bernoulli(Plan& p) {
  random(p);
  make(p, "rare", {{"shape", integers({101})}, {"p", 0.1}});
}
void randint(Plan& p) {
  make(p, "small", {{"shape", integers({5, 33})}, {"high", integer(10)}});
  make(p, "both signs", {{"shape", integers({67})}, {"low", integer(-100)}, {"high", integer(100)}, {"seed", integer(2)}});
}
void randperm(Plan& p) {
  make(p, "odd", {{"n", integer(101)}, {"seed", integer(1)}});
  make(p, "empty", {{"n", integer(0)}});
}

}  // namespace

const PlanTable& creation_plans() {
  static const PlanTable table{
      {"zeros", filled_shape},  {"ones", filled_shape}, {"full", full},         {"zeros_like", like},     {"ones_like", like},
      {"full_like", full_like}, {"arange", arange},     {"linspace", linspace}, {"logspace", logspace},   {"eye", eye},
      {"rand", random},         {"randn", random},      {"uniform", uniform},   {"bernoulli", bernoulli}, {"randint", randint},
      {"randperm", randperm},
  };
  return table;
}

}  // namespace tenon::conformance
