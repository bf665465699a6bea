// Numbers as people and programs write them in files and pasted text: 3, -1.5e3, 1., nan, inf, True.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tenon/array.h"

namespace tenon {

struct NumberText {
  double value = 0;
  std::int64_t integer = 0;
  bool is_integer = false;
  bool is_boolean = false;
};

// nullopt for text that is no number.
std::optional<NumberText> parse_number_text(std::string_view text) noexcept;

// Collects numbers into an array: bool if all are, int64 if all are integers, else |floats|.
class NumberList {
 public:
  void add(const NumberText& number);
  std::size_t size() const noexcept { return numbers_.size(); }
  HostArray to_array(const Shape& shape, DType floats) const;

 private:
  struct Number {
    double value;
    std::int64_t integer;
  };
  std::vector<Number> numbers_;
  bool all_integers_ = true, all_booleans_ = true;
};

// A tensor as other programs print it: tensor([[1., 2.]], dtype=torch.float64), array([1, 2]), np.array(..), [[1. 2.] [3. 4.]],
// or rows of numbers ("1 2; 3 4"). nullopt for text in none of these forms; it may be an expression. Throws invalid_argument for
// such text that is incomplete ("...") or ragged.
std::optional<HostArray> parse_pasted(std::string_view text, DType floats = DType::f32);

}  // namespace tenon
