#include "codegen/c/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "codegen/c/math_library.h"
#include "math/activations.h"
#include "math/float_ops.h"
#include "ops/elementwise/symbolic.h"
#include "tenon/error.h"

namespace tenon::emit {
namespace {

int bits_of(DType dtype) { return static_cast<int>(element_bytes(dtype)) * 8; }

// The unsigned type in which sums and products of |dtype| wrap.
const char* wrapping_type(DType dtype) { return bits_of(dtype) == 64 ? "u64" : "u32"; }

double lowest(DType dtype) { return is_signed_integer(dtype) ? -std::ldexp(1.0, bits_of(dtype) - 1) : 0.0; }
double beyond(DType dtype) { return std::ldexp(1.0, is_signed_integer(dtype) ? bits_of(dtype) - 1 : bits_of(dtype)); }

std::string lowest_text(DType dtype) {
  if (dtype == DType::i64) return "(-9223372036854775807l - 1)";
  return fmt::format("{:.0f}{}", lowest(dtype), bits_of(dtype) == 64 ? "l" : "");
}
std::string highest_text(DType dtype) {
  if (dtype == DType::i64) return "9223372036854775807l";
  if (dtype == DType::u64) return "18446744073709551615ul";
  return fmt::format("{:.0f}{}", beyond(dtype) - 1, dtype == DType::u32 ? "u" : "");
}

std::string integer_to_integer(DType from, DType to, const std::string& x) {
  std::string text = fmt::format("({}){}", variable_type(to), x);
  const std::string type = variable_type(from);
  if (beyond(to) < beyond(from)) text = fmt::format("({} > ({}){} ? {} : {})", x, type, highest_text(to), highest_text(to), text);
  if (lowest(to) > lowest(from)) text = fmt::format("({} < ({}){} ? {} : {})", x, type, lowest_text(to), lowest_text(to), text);
  return fmt::format("({})({})", variable_type(to), text);
}

const char* cuda_helper(ElementwiseOp op) {
  switch (op) {
#define TENON_X(Op, name) \
  case ElementwiseOp::Op: return #name "_f32";
    TENON_CUDA_OPS_OF_ONE(TENON_X)
    TENON_CUDA_OPS_OF_TWO(TENON_X)
#undef TENON_X
    default: return nullptr;
  }
}

const char* short_helper(ElementwiseOp op) {
  switch (op) {
#define TENON_X(Op, name) \
  case ElementwiseOp::Op: return #name "_f32";
    TENON_SHORT_FLOAT_ACTIVATIONS(TENON_X)
    TENON_SHORT_FLOAT_OPS(TENON_X)
#undef TENON_X
    default: return nullptr;
  }
}

// The ops that f32 computes by a formula or a function of its own; |dtype| is that of the node.
const char* native_helper(ElementwiseOp op, DType dtype, const KernelTarget& target) {
  if (target.dialect == Dialect::cuda) {
    if (const char* helper = dtype == DType::bf16 ? short_helper(op) : nullptr) return helper;
    if (const char* helper = cuda_helper(op)) return helper;
    if (op == ElementwiseOp::LogAddExp) return "wide_logaddexp_f32";
    if (op == ElementwiseOp::LogAddExp2) return "wide_logaddexp2_f32";
  }
  if (op == ElementwiseOp::Lgamma && !target.has_f64) return nullptr;  // some elements need it
  switch (op) {
#define TENON_X(Op, name) \
  case ElementwiseOp::Op: return #name "_f32";
    TENON_FLOAT_ACTIVATIONS(TENON_X)
    TENON_FUSED_FLOAT_ACTIVATIONS(TENON_X)
    TENON_FLOAT_OPS(TENON_X)
#undef TENON_X
    case ElementwiseOp::Erfc: return "erfc_f32";
    default: return nullptr;
  }
}

// The native ops that leave some elements to functions of WIDE.
bool calls_wide_functions(ElementwiseOp op) {
  return op == ElementwiseOp::LogAddExp || op == ElementwiseOp::LogAddExp2 || op == ElementwiseOp::Lgamma;
}

bool has_f32_helper(ScalarPrim prim) {
  switch (prim) {
#define TENON_X(name) case ScalarPrim::name:
    TENON_FLOAT_FUNCTIONS(TENON_X)
#undef TENON_X
    return true;
    default: return false;
  }
}

std::string join(std::span<const std::string> parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

}  // namespace

std::string variable_type(DType dtype) {
  switch (compute_dtype(dtype)) {
    case DType::boolean: return "i32";
    case DType::u8: return "u8";
    case DType::u16: return "u16";
    case DType::u32: return "u32";
    case DType::u64: return "u64";
    case DType::i8: return "i8";
    case DType::i16: return "i16";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::f64: return "f64";
    default: return "f32";
  }
}

std::string stored_type(DType dtype) {
  if (dtype == DType::boolean) return "u8";
  if (dtype == DType::f16 || dtype == DType::bf16) return "u16";
  return variable_type(dtype);
}

std::string literal(DType dtype, double value) {
  const DType compute = compute_dtype(dtype);
  if (compute == DType::f32) {
    const auto x = static_cast<float>(value);
    if (!std::isfinite(x)) return fmt::format("AS_F32(0x{:08x}u)", std::bit_cast<std::uint32_t>(x));
    const std::string text = fmt::format("{:.9g}", x);
    return fmt::format("{}{}f", text, text.find_first_of(".e") == std::string::npos ? ".0" : "");
  }
  if (compute == DType::f64) {
    if (!std::isfinite(value)) return fmt::format("AS_F64(0x{:016x}ul)", std::bit_cast<std::uint64_t>(value));
    const std::string text = fmt::format("{:.17g}", value);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  if (compute == DType::boolean) return value != 0 ? "1" : "0";
  if (std::isnan(value)) return fmt::format("({})0", variable_type(compute));
  if (value <= lowest(compute)) return fmt::format("({}){}", variable_type(compute), lowest_text(compute));
  if (value >= beyond(compute)) return fmt::format("({}){}", variable_type(compute), highest_text(compute));
  return fmt::format("({}){:.0f}{}", variable_type(compute), std::trunc(value), bits_of(compute) == 64 ? "l" : "");
}

bool is_arithmetic(ElementwiseOp op) {
  switch (op) {
    case ElementwiseOp::Add:
    case ElementwiseOp::Sub:
    case ElementwiseOp::Mul:
    case ElementwiseOp::Square:
    case ElementwiseOp::Maximum:
    case ElementwiseOp::Minimum:
    case ElementwiseOp::Where:
    case ElementwiseOp::Relu:
    case ElementwiseOp::Neg:
    case ElementwiseOp::Abs: return true;
    default: return false;
  }
}

// --- Parameters ---

std::string Parameters::add(std::string type, Access access, ArgumentValue value) {
  std::string name = fmt::format("arg{}", values_.size());
  declarations_.push_back({std::move(type), access, name});
  values_.push_back(value);
  return name;
}
std::string Parameters::input(DType stored, int slot) { return add(stored_type(stored), Access::reads, Slot{slot}); }
std::string Parameters::output(DType stored, int slot) { return add(stored_type(stored), Access::writes, Slot{slot}); }
std::string Parameters::buffer(const std::string& type, int slot) { return add(type, Access::both, Slot{slot}); }
std::string Parameters::index(std::int64_t value) {
  if (index_type_ == "i64") return add("i64", Access::value, value);
  return add("i32", Access::value, static_cast<std::int32_t>(value));
}
std::string Parameters::number(DType compute, double value) {
  switch (compute_dtype(compute)) {
    case DType::f32: return add("f32", Access::value, static_cast<float>(value));
    case DType::f64: return add("f64", Access::value, value);
    default: {
      const HostArray one = HostArray::full(DType::f64, {}, value).cast(compute == DType::u64 ? DType::u64 : DType::i64);
      std::int64_t bits = 0;
      std::copy_n(one.data(), sizeof bits, reinterpret_cast<std::byte*>(&bits));
      // Saturated to the type itself first.
      if (compute != DType::u64 && compute != DType::i64) {
        const double limited =
            std::clamp(std::isnan(value) ? 0.0 : std::trunc(value), compute == DType::boolean ? 0 : lowest(compute),
                       compute == DType::boolean ? 1 : beyond(compute) - 1);
        bits = static_cast<std::int64_t>(limited);
      }
      return fmt::format("({}){}", variable_type(compute), whole_number(bits));
    }
  }
}
std::string Parameters::whole_number(std::int64_t value) { return add("i64", Access::value, value); }

std::string Parameters::declarations(const KernelTarget& target, bool can_change) const {
  std::vector<std::string> all;
  for (const Declaration& d : declarations_) {
    const char* const constant = d.access == Access::reads ? "const " : "";
    std::string type = d.type;
    if (d.access != Access::value)
      type = target.dialect == Dialect::tensix
                 ? fmt::format("Global<{}{}>", constant, d.type)
                 : fmt::format("GLOBAL {}{}*{}", constant, d.type, d.access == Access::both || can_change ? "" : " RESTRICT");
    all.push_back(type + " " + d.name);
  }
  return join(all);
}

// --- Loads, stores, casts ---

std::string Body::call(const std::string& helper, const std::string& arguments) {
  helpers_.insert(helper);
  return fmt::format("{}({})", helper, arguments);
}

std::string Body::loaded(DType stored, const std::string& element) {
  if (stored == DType::f16) return call("half_to_f32", element);
  if (stored == DType::bf16) return call("bfloat_to_f32", element);
  if (stored == DType::boolean) return fmt::format("(i32){}", element);
  return element;
}

std::string Body::to_store(DType stored, const std::string& value) {
  if (stored == DType::f16) return call("f32_to_half", value);
  if (stored == DType::bf16) return call("f32_to_bfloat", value);
  if (stored == DType::boolean) return fmt::format("(u8){}", value);
  return value;
}

std::string Body::cast(DType from, DType to, const std::string& x) {
  if (to == DType::boolean) return from == DType::boolean ? x : fmt::format("({} != 0)", x);
  const DType source = compute_dtype(from);
  if (to == DType::f32) return source == DType::f32 ? x : fmt::format("(f32){}", x);
  if (to == DType::f64) return source == DType::f64 ? x : fmt::format("(f64){}", x);
  if (to == DType::f16 || to == DType::bf16) {
    std::string narrow = x;
    if (source == DType::f64)
      narrow = call("f64_to_f32_odd", x);
    else if (source == DType::u64 || source == DType::u32)
      narrow = call("u64_to_f32_odd", x);
    else if (source == DType::i64 || source == DType::i32)
      narrow = call("i64_to_f32_odd", x);
    else if (source != DType::f32)
      narrow = "(f32)" + x;
    return loaded(to, to_store(to, narrow));
  }
  if (source == DType::f32 || source == DType::f64)
    return call(fmt::format("from_{}_{}", variable_type(source), variable_type(to)), x);
  if (source == DType::boolean) return fmt::format("({}){}", variable_type(to), x);
  return integer_to_integer(source, to, x);
}

// --- Elementwise bodies ---

std::string Body::float_function(const std::string& name, bool wide, std::span<const std::string> x) {
  calls_library_ = true;
  if (wide) {
    const bool has_helper = name == "erfinv" || name == "i0" || name == "log1p" || (name == "exp" && !target_.is_cpu) ||
                            (name == "lgamma" && (!target_.is_cpu || target_.dialect == Dialect::tensix));
    const std::string platforms = has_helper ? name + "_f64" : name;
    if (has_helper) need(platforms);
    return fmt::format("{}({})", platforms, join(x));
  }
  std::string arguments;
  for (const std::string& part : x) arguments += fmt::format("{}(WIDE){}", arguments.empty() ? "" : ", ", part);
  if (name == "erfinv" || name == "i0") {
    if (!target_.has_f64)
      throw Error(ErrorCode::unimplemented, fmt::format("{} needs double precision, which this device does not have", name));
    return "(f32)" + call(name + "_f64", arguments);
  }
  return fmt::format("(f32){}({})", name, arguments);
}

std::string Body::elementwise(const Node& node, DType operand_dtype, std::span<const std::string> operands,
                              const std::string& name, std::vector<std::string>& params) {
  const ElementwiseAttr& attr = node.as<ElementwiseAttr>();
  const ElementwiseTraits& t = traits(attr.op);
  const DType dtype = compute_dtype(operand_dtype);
  const bool floats = is_float(dtype), narrow = dtype == DType::f32;
  const std::string result_type = variable_type(node.dtype);
  if (narrow && attr.op == ElementwiseOp::Mac) return fmt::format("f32 {} = fma({});\n", name, join(operands));
  const char* native = narrow ? native_helper(attr.op, node.dtype, target_) : nullptr;
  const bool widened = narrow && t.wide && !native && target_.has_f64;
  const DType body_dtype = widened ? DType::f64 : dtype;
  if (params.empty())
    for (int p = 0; p < t.params; ++p) params.push_back(parameters_.number(body_dtype, attr.params[static_cast<std::size_t>(p)]));
  if (native) {
    calls_library_ = calls_library_ || calls_wide_functions(attr.op);
    std::vector<std::string> arguments(operands.begin(), operands.end());
    arguments.insert(arguments.end(), params.begin(), params.end());
    return fmt::format("f32 {} = {};\n", name, call(native, join(arguments)));
  }

  const std::string type = variable_type(body_dtype),
                    wrap = floats ? "" : wrapping_type(dtype == DType::boolean ? DType::u8 : dtype);
  const SymbolicBody body = expand(attr.op, !floats);
  std::string out;
  std::vector<std::string> values;
  for (std::size_t i = 0; i < body.nodes.size(); ++i) {
    const SymbolicNode& n = body.nodes[i];
    std::string x[3];
    const int count = operand_count(n.prim);
    for (int k = 0; k < count; ++k) x[k] = values[static_cast<std::size_t>(n.operands[static_cast<std::size_t>(k)])];
    const auto wrapped = [&](const char* op) {
      return floats ? fmt::format("{} {} {}", x[0], op, x[1])
                    : fmt::format("({})(({}){} {} ({}){})", type, wrap, x[0], op, wrap, x[1]);
    };
    const auto compare = [&](const char* op) { return fmt::format("({} {} {})", x[0], op, x[1]); };
    const auto bitwise = [&](const char* op) { return fmt::format("({})({} {} {})", type, x[0], op, x[1]); };
    const auto integer_call = [&](const char* helper) {
      const std::string suffix = dtype == DType::boolean ? "i32" : type;
      return call(fmt::format("{}_{}", helper, suffix), fmt::format("{}, {}", x[0], x[1]));
    };
    const auto rounding = [&](const char* function) { return floats ? fmt::format("{}({})", function, x[0]) : x[0]; };
    std::string e;
    switch (n.prim) {
      case ScalarPrim::input: {
        const std::string& operand = operands[static_cast<std::size_t>(n.index)];
        values.push_back(widened ? "(f64)" + operand : operand);
        if (widened) break;
        continue;
      }
      case ScalarPrim::condition: values.push_back(operands[0]); continue;
      case ScalarPrim::parameter: values.push_back(params[static_cast<std::size_t>(n.index)]); continue;
      case ScalarPrim::constant: values.push_back(literal(body_dtype, n.constant)); continue;
      case ScalarPrim::neg:
        e = floats ? fmt::format("-({})", x[0]) : fmt::format("({})(({})0 - ({}){})", type, wrap, wrap, x[0]);
        break;
      case ScalarPrim::abs:
        e = floats ? fmt::format("fabs({})", x[0])
            : is_signed_integer(dtype)
                ? fmt::format("({})({} < 0 ? ({})0 - ({}){} : ({}){})", type, x[0], wrap, wrap, x[0], wrap, x[0])
                : x[0];
        break;
      case ScalarPrim::signbit:
        e = !floats ? fmt::format("({} < 0)", x[0])
                    : fmt::format("({}({}) < 0)", body_dtype == DType::f64 ? "AS_I64" : "AS_I32", x[0]);
        break;
      case ScalarPrim::floor: e = rounding("floor"); break;
      case ScalarPrim::ceil: e = rounding("ceil"); break;
      case ScalarPrim::trunc: e = rounding("trunc"); break;
      case ScalarPrim::rint: e = rounding("rint"); break;
      case ScalarPrim::sqrt: e = fmt::format("sqrt({})", x[0]); break;
      case ScalarPrim::copysign: e = fmt::format("copysign({}, {})", x[0], x[1]); break;
      case ScalarPrim::is_nan: e = floats ? fmt::format("({} != {})", x[0], x[0]) : "0"; break;
      case ScalarPrim::is_inf: e = floats ? fmt::format("(fabs({}) == {})", x[0], literal(body_dtype, INFINITY)) : "0"; break;
      case ScalarPrim::mask_not: e = "!" + x[0]; break;
      case ScalarPrim::bit_not: e = fmt::format("({})~{}", type, x[0]); break;
      case ScalarPrim::add: e = wrapped("+"); break;
      case ScalarPrim::sub: e = wrapped("-"); break;
      case ScalarPrim::mul: e = wrapped("*"); break;
      case ScalarPrim::div: e = floats ? fmt::format("{} / {}", x[0], x[1]) : integer_call("div"); break;
      case ScalarPrim::fmod:
        e = !floats                    ? integer_call("fmod")
            : body_dtype == DType::f64 ? float_function("fmod", true, std::span(x, 2))
                                       : fmt::format("fmod({}, {})", x[0], x[1]);
        break;
      case ScalarPrim::pow:
        e = floats ? float_function("pow", body_dtype == DType::f64, std::span(x, 2)) : integer_call("pow");
        break;
      case ScalarPrim::gcd: e = integer_call("gcd"); break;
      case ScalarPrim::shift_left: e = integer_call("shift_left"); break;
      case ScalarPrim::shift_right: e = integer_call("shift_right"); break;
      case ScalarPrim::lt: e = compare("<"); break;
      case ScalarPrim::le: e = compare("<="); break;
      case ScalarPrim::gt: e = compare(">"); break;
      case ScalarPrim::ge: e = compare(">="); break;
      case ScalarPrim::eq: e = compare("=="); break;
      case ScalarPrim::ne: e = compare("!="); break;
      case ScalarPrim::min: e = fmt::format("({} < {} || {} != {} ? {} : {})", x[0], x[1], x[0], x[0], x[0], x[1]); break;
      case ScalarPrim::max: e = fmt::format("({} > {} || {} != {} ? {} : {})", x[0], x[1], x[0], x[0], x[0], x[1]); break;
      case ScalarPrim::mask_and: e = fmt::format("({} & {})", x[0], x[1]); break;
      case ScalarPrim::mask_or: e = fmt::format("({} | {})", x[0], x[1]); break;
      case ScalarPrim::mask_xor: e = fmt::format("({} ^ {})", x[0], x[1]); break;
      case ScalarPrim::bit_and: e = bitwise("&"); break;
      case ScalarPrim::bit_or: e = bitwise("|"); break;
      case ScalarPrim::bit_xor: e = bitwise("^"); break;
      case ScalarPrim::select: e = fmt::format("({} ? {} : {})", x[0], x[1], x[2]); break;
      default: {
        const bool wide = body_dtype == DType::f64;
        const std::string function(tenon::name(n.prim));
        calls_library_ = calls_library_ || n.prim == ScalarPrim::sin || n.prim == ScalarPrim::cos;
        e = !wide && has_f32_helper(n.prim) ? call(function + "_f32", x[0])
                                            : float_function(function, wide, std::span(x, static_cast<std::size_t>(count)));
      }
    }
    const std::string variable = fmt::format("{}_{}", name, i);
    if (n.prim == ScalarPrim::input) {
      out += fmt::format("{} {} = {};\n", type, variable, values.back());
      values.back() = variable;
      continue;
    }
    out += fmt::format("{} {} = {};\n", returns_mask(n.prim) ? "i32" : type, variable, e);
    values.push_back(variable);
  }
  const std::string& result = values.back();
  out += fmt::format("{} {} = {}{};\n", result_type, name, widened && !t.returns_bool ? "(f32)" : "", result);
  return out;
}

}  // namespace tenon::emit
