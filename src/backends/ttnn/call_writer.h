// CallWriter: writes calls of TTNN functions into a plan, and what mends their results.
//
// Each call returns the slot of its result. With Trust::limits the functions whose NaN, infinities or zeros differ from Tenon's
// are followed by calls that put them right.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/ttnn/fast.h"
#include "backends/ttnn/functions.h"

namespace tenon::ttnn {

// The form of a tensor of |dtype|; "" if it has none. And TTNN's name of the type of a form.
const char* form_of(DType dtype);
const char* type_of(std::string_view form);

class CallWriter {
 public:
  explicit CallWriter(FastPlan& plan) : plan_(plan) {}

  int new_slot() { return next_slot_++; }
  int call(std::string_view function, std::vector<CallArgument> arguments,
           std::vector<std::pair<std::string, CallArgument>> named = {});
  int typecast(int slot, std::string_view to);
  int full(const Integers& shape, double value, const std::string& in_form);
  int where(int condition, CallArgument yes, CallArgument no);
  int is_nan(const CallArgument& x) { return call("isnan", {x}); }
  // TTNN refuses padding in front of a tile: a tensor is put there instead.
  int padded(int x, Integers shape, const Integers& low, const Integers& high, double value, const std::string& in_form);

  // |y|, the result of a function of |x| that needs |guard|, mended.
  int guarded(Guard guard, const std::vector<CallArgument>& x, int y);
  // Functions of TTNN that were found different, or never measured, made of calls that were measured.
  int formula(std::string_view op, const ElementwiseAttr& attr, const std::vector<CallArgument>& operands);

  // Lets each step drop the slots that it is the last to use.
  void finish();

 private:
  int multiplied(int a, double by) { return call("multiply", {TensorArgument{a}, by}); }
  int with_nan_of(const CallArgument& x, int y);
  int clamped(int x, double low, double high);
  int gelu(int x);

  FastPlan& plan_;
  int next_slot_ = 0;
};

}  // namespace tenon::ttnn
