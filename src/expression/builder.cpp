#include "expression/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numbers>
#include <utility>

#include "ops/names.h"

namespace tenon::expression {
namespace {

constexpr std::pair<std::string_view, std::string_view> kOperators[] = {
    {"+", "add"},          {"-", "sub"},         {"*", "mul"},        {"/", "div"},         {"//", "floor_div"},
    {"%", "remainder"},    {"**", "pow"},        {"@", "matmul"},     {"==", "eq"},         {"!=", "ne"},
    {"<", "lt"},           {"<=", "le"},         {">", "gt"},         {">=", "ge"},         {"and", "logical_and"},
    {"or", "logical_or"},  {"&", "bitwise_and"}, {"|", "bitwise_or"}, {"^", "bitwise_xor"}, {"<<", "left_shift"},
    {">>", "right_shift"},
};
constexpr std::pair<std::string_view, std::string_view> kBooleanOperators[] = {
    {"&", "logical_and"}, {"|", "logical_or"}, {"^", "logical_xor"}};

template <std::size_t N>
std::string_view find(const std::pair<std::string_view, std::string_view> (&table)[N], std::string_view key) {
  for (const auto& [k, v] : table)
    if (k == key) return v;
  return {};
}

constexpr std::string_view kConstants[] = {"pi", "e", "inf", "nan", "true", "false", "None"};

}  // namespace

std::optional<double> constant_named(std::string_view name) {
  if (name == "pi") return std::numbers::pi;
  if (name == "e") return std::numbers::e;
  if (name == "inf") return std::numeric_limits<double>::infinity();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

Builder::Builder(std::string_view source, std::span<const NamedType> inputs, const ExpressionOptions& options)
    : source_(source),
      options_(options),
      ast_(parse(source)),
      values_(ast_.size()) {
  for (const NamedType& input : inputs) {
    const NodeId id = graph_.input(input.name, input.dtype, input.shape);
    if (!variables_.emplace(input.name, Tensors{{id}}).second)
      throw Error(ErrorCode::invalid_argument, fmt::format("input '{}' is given twice", input.name));
  }
}

Graph Builder::run() {
  // Every node follows its children, so one pass is enough; see parser.h.
  for (std::size_t i = 0; i < ast_.size(); ++i) {
    values_[i] = evaluate(ast_[i]);
    check_sizes(ast_[i]);
  }
  graph_.set_outputs(outputs());
  return std::move(graph_);
}

Value Builder::evaluate(const Ast& ast) {
  switch (ast.kind) {
    case AstKind::integer: return ast.integer;
    case AstKind::number: return ast.number;
    case AstKind::boolean: return ast.integer != 0;
    case AstKind::text: return std::string(ast.text);
    case AstKind::name: return name(ast);
    case AstKind::list:
    case AstKind::tuple: return list(ast);
    case AstKind::unary: return unary(ast);
    case AstKind::binary: return binary(ast);
    case AstKind::compare: return compare(ast);
    case AstKind::call: return call(ast);
    case AstKind::transpose: return apply_op(ast, "transpose", {tensor(ast.children[0])});
    case AstKind::subscript: return subscript(ast);
    case AstKind::assign: assign(ast); return value(ast.children[0]);
    case AstKind::statement: return value(ast.children[0]);
    case AstKind::none:
    case AstKind::slice:
    case AstKind::ellipsis: return {};
  }
  return {};
}

Value Builder::name(const Ast& ast) const {
  if (const auto variable = variables_.find(ast.text); variable != variables_.end()) return variable->second;
  if (const auto constant = constant_named(ast.text)) return *constant;
  if (const auto dtype = parse_dtype(ast.text)) return *dtype;
  const std::string text(ast.text);
  if (lookup_op(ast.text) != nullptr)
    fail(ast.extent, fmt::format("'{}' is an op and needs inputs", text), fmt::format("write {}(...)", text));
  fail(ast.extent, fmt::format("unknown name '{}'", text), suggest_name(text));
}

std::string Builder::suggest_name(std::string_view wanted) const {
  std::vector<std::string> known(std::begin(kConstants), std::end(kConstants));
  for (const auto& variable : variables_) known.insert(known.begin(), variable.first);
  const std::string near = nearest(wanted, known);
  return near.empty() ? fmt::format("give it a value, e.g. {}=...", wanted) : fmt::format("did you mean '{}'?", near);
}

Value Builder::list(const Ast& ast) {
  auto result = std::make_shared<List>();
  result->is_tuple = ast.kind == AstKind::tuple;
  const std::vector<std::int64_t>* first_dims = nullptr;
  std::vector<std::int64_t> scalar;
  for (std::size_t i = 0; i < ast.children.size(); ++i) {
    const AstId child = ast.children[i];
    const Value& item = value(child);
    const List* inner = as_list(item);
    if (std::holds_alternative<Tensors>(item) || (inner != nullptr && inner->has_tensor)) {
      result->has_tensor = true;
    } else if (!is_number(item) && inner == nullptr) {
      fail(part(child).extent, fmt::format("a list can contain numbers or tensors, not {}", describe(item)));
    }
    const DType kind = inner != nullptr                       ? inner->kind
                       : std::holds_alternative<double>(item) ? DType::f64
                       : std::holds_alternative<bool>(item)   ? DType::boolean
                                                              : DType::i64;
    result->kind = std::max(result->kind, kind);
    if (inner != nullptr) result->depth = std::max(result->depth, inner->depth + 1);
    result->elements += inner != nullptr ? inner->elements : 1;
    if (result->elements > ExpressionOptions::kMaxLiteralElements)
      fail(ast.extent, fmt::format("a literal can contain at most {} numbers", ExpressionOptions::kMaxLiteralElements),
           "pass large data as an input instead", ErrorCode::resource_exhausted);
    const std::vector<std::int64_t>* dims = inner != nullptr ? &inner->dims : &scalar;
    if (first_dims == nullptr) first_dims = dims;
    // A tuple of results may contain anything; whether it forms one tensor is checked when a tensor is needed.
    if (!result->has_tensor && !result->is_tuple && *dims != *first_dims)
      fail(part(child).extent,
           fmt::format("this row has shape {}, but the first has {}", to_string(Shape(*dims)), to_string(Shape(*first_dims))),
           "all rows of a literal must have the same length");
    result->items.push_back(item);
  }
  result->dims = {static_cast<std::int64_t>(ast.children.size())};
  if (first_dims != nullptr) result->dims.insert(result->dims.end(), first_dims->begin(), first_dims->end());
  if (result->depth > kMaxRank) fail(ast.extent, fmt::format("lists can be nested at most {} deep", kMaxRank));
  return result;
}

NodeId Builder::tensor(const Value& value, Extent at) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return graph_.literal(*integer);
  if (const auto* number = std::get_if<double>(&value)) return graph_.literal(*number);
  if (const auto* boolean = std::get_if<bool>(&value)) return graph_.scalar(*boolean ? 1 : 0, DType::boolean);
  if (const auto* shared = std::get_if<std::shared_ptr<List>>(&value)) return list_tensor(**shared, at);
  if (const auto* tensors = std::get_if<Tensors>(&value)) {
    if (tensors->ids.size() == 1) return tensors->ids[0];
    fail(at, fmt::format("expected one tensor, but this has {} results", tensors->ids.size()),
         "select one by its index, f(x)[0], or name them: a, b = f(x)");
  }
  if (std::holds_alternative<DType>(value))
    fail(at, fmt::format("{} is not a tensor", describe(value)), "dtypes are parameters: cast(x, float32)");
  fail(at, fmt::format("expected a tensor or a number, not {}", describe(value)));
}

NodeId Builder::list_tensor(List& list, Extent at) {
  if (list.node >= 0) return list.node;
  if (!list.has_tensor) {
    for (const Value& item : list.items) {
      const List* inner = as_list(item);
      const std::size_t rank = inner != nullptr ? inner->dims.size() : 0;
      if (rank + 1 != list.dims.size() ||
          (inner != nullptr && !std::equal(inner->dims.begin(), inner->dims.end(), list.dims.begin() + 1)))
        fail(at, "the parts of this tuple differ in shape");
    }
    return list.node = located(at, [&] { return graph_.constant(to_array(list, options_.default_float)); });
  }
  std::vector<NodeId> parts;
  for (const Value& item : list.items) parts.push_back(tensor(item, at));
  return list.node = located(at, [&] { return apply(graph_, find_op("stack"), parts)[0]; });
}

bool Builder::is_boolean(const Value& value) const {
  if (std::holds_alternative<bool>(value)) return true;
  const auto* tensors = std::get_if<Tensors>(&value);
  return tensors != nullptr && tensors->ids.size() == 1 && graph_[tensors->ids[0]].dtype == DType::boolean;
}

Value Builder::apply_op(const Ast& ast, std::string_view op, std::vector<NodeId> inputs) {
  return located(ast.extent, [&]() -> Value { return Tensors{apply(graph_, find_op(op), inputs)}; });
}

Value Builder::apply_operator(const Ast& ast, std::string_view op, const Value& x, const Value& y) {
  if (auto folded = fold(op, x, y)) return *folded;
  const NodeId left = tensor(x, part(ast.children.front()).extent), right = tensor(y, part(ast.children.back()).extent);
  std::string_view target = find(kOperators, op);
  if (is_boolean(x) && is_boolean(y))
    if (const std::string_view logical = find(kBooleanOperators, op); !logical.empty()) target = logical;
  const auto* exponent = std::get_if<std::int64_t>(&y);
  if (op == "**" && exponent != nullptr && *exponent == 2) return apply_op(ast, "mul", {left, left});
  return apply_op(ast, target, {left, right});
}

Value Builder::unary(const Ast& ast) {
  const Value& x = value(ast.children[0]);
  if (auto folded = fold(ast.text, x)) return *folded;
  const NodeId operand = tensor(ast.children[0]);
  if (ast.text == "+") return Tensors{{operand}};
  if (ast.text == "-") return apply_op(ast, "neg", {operand});
  if (ast.text == "not" || is_boolean(x)) return apply_op(ast, "logical_not", {operand});
  return apply_op(ast, "bitwise_not", {operand});
}

Value Builder::binary(const Ast& ast) { return apply_operator(ast, ast.text, value(ast.children[0]), value(ast.children[1])); }

Value Builder::compare(const Ast& ast) {
  // A list or an op's result that is compared twice is one tensor used twice; numbers stay numbers.
  std::vector<Value> operands;
  for (const AstId child : ast.children)
    operands.push_back(is_number(value(child)) ? value(child) : Value(Tensors{{tensor(child)}}));
  Value result = apply_operator(ast, ast.words[0], operands[0], operands[1]);
  for (std::size_t i = 1; i < ast.words.size(); ++i)
    result = apply_operator(ast, "and", result, apply_operator(ast, ast.words[i], operands[i], operands[i + 1]));
  return result;
}

void Builder::assign(const Ast& ast) {
  const Value& right = value(ast.children[0]);
  if (ast.words.size() == 1) {
    variables_.insert_or_assign(std::string(ast.words[0]), right);
    return;
  }
  std::vector<Value> parts;
  if (const auto* tensors = std::get_if<Tensors>(&right)) {
    for (const NodeId id : tensors->ids) parts.push_back(Tensors{{id}});
  } else if (const List* items = as_list(right)) {
    parts = items->items;
  }
  if (parts.size() != ast.words.size())
    fail(ast.extent, fmt::format("{} names for {} value{}", ast.words.size(), std::max<std::size_t>(1, parts.size()),
                                 parts.size() > 1 ? "s" : ""));
  for (std::size_t i = 0; i < parts.size(); ++i) variables_.insert_or_assign(std::string(ast.words[i]), parts[i]);
}

std::vector<NodeId> Builder::outputs() {
  const Ast& last = ast_.back();
  const Extent at = part(last.children[0]).extent;
  std::vector<NodeId> ids;
  const Value& result = values_.back();
  if (const auto* tensors = std::get_if<Tensors>(&result)) {
    ids = tensors->ids;
  } else if (const List* items = as_list(result); items != nullptr && items->is_tuple) {
    for (const Value& item : items->items) ids.push_back(tensor(item, at));
    if (ids.empty()) fail(at, "the result is an empty tuple");
  } else {
    ids.push_back(tensor(result, at));
  }
  for (NodeId& id : ids)
    if (graph_[id].weak && is_float(graph_[id].dtype)) id = graph_.cast(id, options_.default_float);
  return ids;
}

void Builder::check_sizes(const Ast& ast) {
  for (; checked_ < graph_.size(); ++checked_) {
    const Node& node = graph_[checked_];
    if (node.prim == Prim::input || node.shape.elements() <= options_.max_elements) continue;
    fail(ast.extent,
         fmt::format("a tensor of shape {} has {} elements, more than the limit of {}", to_string(node.shape),
                     node.shape.elements(), options_.max_elements),
         "use a smaller shape", ErrorCode::resource_exhausted);
  }
}

}  // namespace tenon::expression
