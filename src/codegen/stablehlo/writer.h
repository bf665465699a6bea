// Writer: writes the operations of a StableHLO function, one per line, and names their results.
//
// A Term is a result: a name, an element type and a shape. Terms have the operators of their type, so that code reads like a
// formula; a number combined with a term is a constant of its type and shape. Equal operations are written once.
//
// Lifetime: a Writer outlives its Terms. Thread safety: none.
//
//   Writer writer;
//   Term x = writer.argument(DType::f32, {4});
//   Term y = select(x > 0, x * 2.0, -x);
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tenon/array.h"

namespace tenon::stablehlo {

class Writer;

// Properties of the device and its compiler.
struct Target {
  bool wide = true;               // supports f64, which functions of f32 may use
  bool rounds_quotients = true;   // division and square root of f32 are correctly rounded
  bool scatters_in_order = true;  // the last of several updates of one element wins
};

class Term {
 public:
  Term() = default;
  DType dtype() const;
  const Shape& shape() const;
  Writer& writer() const { return *writer_; }
  int id() const { return id_; }
  // A constant of this term's type and shape.
  Term like(double value) const;

 private:
  friend class Writer;
  Term(Writer* writer, int id) : writer_(writer), id_(id) {}
  Writer* writer_ = nullptr;
  int id_ = -1;
};

// "tensor<2x3xf32>"
std::string type_text(DType dtype, const Shape& shape);
std::string type_text(const Term& x);
// "1, 2, 3"
std::string list_text(std::span<const std::int64_t> numbers);

class Writer {
 public:
  explicit Writer(const Target& target = {}) : target_(target) {}
  const Target& target() const { return target_; }

  Term argument(DType dtype, const Shape& shape);
  // |text| is everything after "%name = ", with or without a type at its end.
  Term add(const std::string& text, DType dtype, const Shape& shape);
  // An operation with several results.
  std::vector<Term> add(const std::string& text, std::span<const std::pair<DType, Shape>> results);

  // Every element is |value|, converted like HostArray::full.
  Term splat(double value, DType dtype, const Shape& shape);
  // A 64-bit integer, which a double may not represent.
  Term splat_bits(std::uint64_t bits, DType dtype, const Shape& shape);
  Term constant(const HostArray& value);

  std::string name(const Term& x) const;
  // The declared arguments of the function, and its lines.
  const std::string& arguments() const { return arguments_; }
  const std::string& lines() const { return lines_; }

 private:
  friend class Term;
  struct Result {
    std::string name;
    DType dtype;
    Shape shape;
  };
  Term place(std::string name, DType dtype, const Shape& shape);

  std::vector<Result> results_;
  std::unordered_map<std::string, int> known_;
  std::string arguments_, lines_;
  int argument_count_ = 0;
  Target target_;
};

// --- Operations of one line ---
Term unary(std::string_view op, const Term& x);
Term binary(std::string_view op, const Term& x, const Term& y);
// |direction|: LT, LE, GT, GE, EQ, NE.
Term compare(std::string_view direction, const Term& x, const Term& y);
Term select(const Term& condition, const Term& x, const Term& y);
// StableHLO's own conversion: wraps, and is undefined out of range. conversion.h has the casts of the graph.
Term convert(const Term& x, DType to);
Term bitcast(const Term& x, DType to);
Term reshape(const Term& x, const Shape& to);
// The axes of |x| become the axes |axes| of |to|.
Term broadcast(const Term& x, const Shape& to, std::span<const std::int64_t> axes);
Term broadcast_scalar(const Term& x, const Shape& to);
Term slice(const Term& x, std::span<const std::int64_t> start, std::span<const std::int64_t> step, const Shape& to);
Term pad(const Term& x, const Term& value, std::span<const std::int64_t> low, const Shape& to);
Term iota(Writer& writer, DType dtype, const Shape& shape, int axis);
// Reduces over |axes| and removes them. |op| is add, multiply, maximum, minimum, and, or.
Term reduce(std::string_view op, const Term& x, double start, std::span<const std::int64_t> axes);
// An optimization barrier.
Term barrier(const Term& x);

// --- Operators: both sides have the same type and shape ---
Term operator+(const Term& x, const Term& y);
Term operator-(const Term& x, const Term& y);
Term operator*(const Term& x, const Term& y);
Term operator/(const Term& x, const Term& y);
Term operator-(const Term& x);
Term operator&(const Term& x, const Term& y);
Term operator|(const Term& x, const Term& y);
Term operator^(const Term& x, const Term& y);
Term operator!(const Term& x);
Term operator<<(const Term& x, int amount);
Term operator>>(const Term& x, int amount);  // of the sign for signed types
Term operator<(const Term& x, const Term& y);
Term operator<=(const Term& x, const Term& y);
Term operator>(const Term& x, const Term& y);
Term operator>=(const Term& x, const Term& y);
Term operator==(const Term& x, const Term& y);
Term operator!=(const Term& x, const Term& y);

#define TENON_TERM_NUMBER(op)                                                           \
  inline Term operator op(const Term& x, double number) { return x op x.like(number); } \
  inline Term operator op(double number, const Term& x) { return x.like(number) op x; }
TENON_TERM_NUMBER(+)
TENON_TERM_NUMBER(-)
TENON_TERM_NUMBER(*)
TENON_TERM_NUMBER(/)
TENON_TERM_NUMBER(<)
TENON_TERM_NUMBER(<=)
TENON_TERM_NUMBER(>)
TENON_TERM_NUMBER(>=)
TENON_TERM_NUMBER(==)
TENON_TERM_NUMBER(!=)
#undef TENON_TERM_NUMBER
inline Term select(const Term& condition, const Term& x, double y) { return select(condition, x, x.like(y)); }
inline Term select(const Term& condition, double x, const Term& y) { return select(condition, y.like(x), y); }

}  // namespace tenon::stablehlo
