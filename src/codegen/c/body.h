// The text of single values: types, literals, loads and stores, casts, and the bodies of elementwise ops.
//
// A value in a kernel is a variable of its compute type; a bool is an i32 of 0 or 1. What lies in memory has its stored type: f16
// and bf16 as u16, a bool as u8.
#pragma once

#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "codegen/c/target.h"
#include "tenon/graph.h"

namespace tenon::emit {

std::string variable_type(DType dtype);  // of a value computed for a node of |dtype|
std::string stored_type(DType dtype);
std::string literal(DType dtype, double value);  // in the compute type; integers saturate

// An op that takes a few instructions on any processor.
bool is_arithmetic(ElementwiseOp op);

// A buffer of the caller's, by a number of its choosing.
struct Slot {
  int index = 0;
  friend bool operator==(const Slot&, const Slot&) = default;
};
using ArgumentValue = std::variant<Slot, std::int32_t, std::int64_t, float, double>;

// The parameters of a kernel in the order they were asked for, and the values of this launch.
class Parameters {
 public:
  explicit Parameters(bool wide_index) : index_type_(wide_index ? "i64" : "i32") {}

  // Each returns the parameter's name.
  std::string input(DType stored, int slot);
  std::string output(DType stored, int slot);
  std::string buffer(const std::string& type, int slot);  // read and written
  std::string index(std::int64_t value);                  // an extent, a stride, an offset
  std::string number(DType compute, double value);
  std::string whole_number(std::int64_t value);

  const std::string& index_type() const { return index_type_; }
  // |can_change|: what is read may be written by others until the kernel waits for the one in front of it. Loads from parameters
  // that are declared as never changing are moved across that wait.
  std::string declarations(const KernelTarget& target, bool can_change) const;
  std::vector<ArgumentValue> take_values() { return std::move(values_); }

 private:
  enum class Access { value, reads, writes, both };
  struct Declaration {
    std::string type;  // of a buffer: of its elements
    Access access;
    std::string name;
  };
  std::string add(std::string type, Access access, ArgumentValue value);

  std::string index_type_;
  std::vector<Declaration> declarations_;
  std::vector<ArgumentValue> values_;
};

class Body {
 public:
  Body(const KernelTarget& target, Parameters& parameters) : target_(target), parameters_(parameters) {}

  // A stored element as a value, a value as a stored element.
  std::string loaded(DType stored, const std::string& element);
  std::string to_store(DType stored, const std::string& value);
  // A value of |from| converted to a value of |to|, rounded to |to|.
  std::string cast(DType from, DType to, const std::string& value);
  // Statements that define the variable |name| from operands that are variables. |number| gives the op's parameters names and may
  // be asked once per op: a body written twice uses the same ones.
  std::string elementwise(const Node& node, DType operand_dtype, std::span<const std::string> operands, const std::string& name,
                          std::vector<std::string>& params);

  Parameters& parameters() { return parameters_; }
  const KernelTarget& target() const { return target_; }
  std::string call(const std::string& helper, const std::string& arguments);
  void need(const std::string& helper) { helpers_.insert(helper); }
  // Whether something calls a function of the platform's library, which no compiler vectorises.
  bool calls_library() const { return calls_library_; }
  std::set<std::string> take_helpers() { return std::move(helpers_); }

 private:
  std::string float_function(const std::string& name, bool wide, std::span<const std::string> x);

  const KernelTarget& target_;
  Parameters& parameters_;
  std::set<std::string> helpers_;
  bool calls_library_ = false;
};

}  // namespace tenon::emit
