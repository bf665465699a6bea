#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text/printable.h"
#include "model/generate/jinja/builtins.h"
#include "model/generate/jinja/template.h"
#include "model/generate/jinja/text_functions.h"
#include "tenon/error.h"

namespace tenon::jinja {
namespace {

constexpr std::uint64_t kBudget = 64 << 20, kBudgetPerByte = 64, kStep = 16;
constexpr int kDeepest = 1500;  // of statements, expressions and macros within each other
constexpr std::uint32_t kDeepestValue = 64;
constexpr std::int64_t kLargestPower = 64;

using Kind = Node::Kind;

class Interpreter {
 public:
  Interpreter(std::map<std::string, Value> globals, std::uint64_t budget) : work_(budget) {
    frames_.push_back(std::move(globals));
  }

  Text run(const Node& root) {
    execute(root);
    return std::move(out_);
  }

 private:
  enum class Flow : std::uint8_t { next, break_loop, continue_loop };
  using Frame = std::map<std::string, Value>;

  // Counts depth and steps, and keeps the line of what is being done for errors.
  class Step {
   public:
    Step(Interpreter& of, const Node& node) : of_(of), line_(of.work_.line) {
      of_.work_.line = node.line;
      of_.work_.charge(kStep);
      if (++of_.depth_ > kDeepest)
        throw Error(ErrorCode::resource_exhausted, fmt::format("the chat template, line {}: it is nested too deeply", node.line));
    }
    ~Step() {
      --of_.depth_;
      of_.work_.line = line_;
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    Interpreter& of_;
    const std::uint32_t line_;
  };

  [[noreturn]] void fail(const std::string& what) const { fail_at(work_.line, what); }

  // --- Names ---
  const Value* lookup(const std::string& name) const {
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame)
      if (const auto found = frame->find(name); found != frame->end()) return &found->second;
    return nullptr;
  }
  Value named(const std::string& name) const {
    if (const Value* found = lookup(name)) return *found;
    if (is_function(name)) return Function{name};
    return Undefined{name};
  }
  void assign(const std::vector<std::string>& names, Value value) {
    if (names.size() == 1) {
      frames_.back().insert_or_assign(names[0], std::move(value));
      return;
    }
    const List parts = elements_of(work_, value);
    if (parts.size() != names.size()) fail(fmt::format("{} names for {} values", names.size(), parts.size()));
    for (std::size_t i = 0; i < names.size(); ++i) frames_.back().insert_or_assign(names[i], parts[i]);
  }
  // What lists, maps and namespaces may hold: no namespace, so that nothing can hold itself.
  Value kept(Value value) const {
    if (const auto* map = value.get<MapValue>(); map && map->is_namespace) fail("a namespace cannot be kept in another value");
    if (value.extent().depth > kDeepestValue) fail("a value is nested too deeply");
    return value;
  }

  // --- Statements ---
  Flow execute(const Node& node) {
    const Step step(*this, node);
    switch (node.kind) {
      case Kind::block:
        for (const Node& child : node.children)
          if (const Flow flow = execute(child); flow != Flow::next) return flow;
        return Flow::next;
      case Kind::output: write(charged_text(work_, evaluate(node.children[0]))); return Flow::next;
      case Kind::loop: return loop(node);
      case Kind::choice:
        if (evaluate(node.children[0]).is_true()) return execute(node.children[1]);
        return execute(node.children[2]);
      case Kind::assignment: assign(node.names, evaluate(node.children[0])); return Flow::next;
      case Kind::member: set_member(node); return Flow::next;
      case Kind::captured: {
        Value value = captured(node.children[0]);
        if (node.children[1].kind != Kind::nothing) value = filtered(node.children[1], std::move(value));
        assign(node.names, std::move(value));
        return Flow::next;
      }
      case Kind::filtered: write(charged_text(work_, filtered(node.children[0], captured(node.children[1])))); return Flow::next;
      case Kind::macro: frames_.back().insert_or_assign(node.text, Macro{&node}); return Flow::next;
      case Kind::break_loop: return Flow::break_loop;
      case Kind::continue_loop: return Flow::continue_loop;
      default: return Flow::next;
    }
  }

  void write(const Text& text) {
    work_.charge(text.size());
    out_ += text;
  }
  Value captured(const Node& body) {
    Text before = std::exchange(out_, {});
    frames_.emplace_back();
    execute(body);
    frames_.pop_back();
    return std::exchange(out_, std::move(before));
  }
  void set_member(const Node& node) {
    const Value* found = lookup(node.text);
    const auto* map = found ? found->get<MapValue>() : nullptr;
    if (!map || !map->is_namespace) fail(fmt::format("'{}' is not a namespace", printable(node.text)));
    const std::shared_ptr<Map> entries = map->entries;
    work_.charge(entries->size());
    Value value = kept(evaluate(node.children[0]));
    for (auto& [key, old] : *entries)
      if (key.bytes() == node.names[0]) {
        old = std::move(value);
        return;
      }
    entries->emplace_back(Text(node.names[0]), std::move(value));
  }

  Flow loop(const Node& node) {
    const List all = elements_of(work_, evaluate(node.children[0]));
    frames_.emplace_back();
    List chosen;
    for (const Value& each : all) {
      work_.charge(kStep);
      if (node.children[1].kind != Kind::nothing) {
        assign(node.names, each);
        if (!evaluate(node.children[1]).is_true()) continue;
      }
      chosen.push_back(each);
    }
    const auto n = static_cast<std::int64_t>(chosen.size());
    for (std::int64_t i = 0; i < n; ++i) {
      frames_.back().clear();
      assign(node.names, chosen[static_cast<std::size_t>(i)]);
      frames_.back().insert_or_assign("loop", loop_value(chosen, i));
      if (execute(node.children[2]) == Flow::break_loop) break;
    }
    frames_.pop_back();
    return n == 0 ? execute(node.children[3]) : Flow::next;
  }
  static Value loop_value(const List& all, std::int64_t i) {
    const auto n = static_cast<std::int64_t>(all.size());
    Map map;
    const auto add = [&](const char* name, Value value) { map.emplace_back(Text(name), std::move(value)); };
    add("index", i + 1);
    add("index0", i);
    add("revindex", n - i);
    add("revindex0", n - i - 1);
    add("first", i == 0);
    add("last", i == n - 1);
    add("length", n);
    if (i > 0) add("previtem", all[static_cast<std::size_t>(i - 1)]);
    if (i + 1 < n) add("nextitem", all[static_cast<std::size_t>(i + 1)]);
    return map;
  }

  // --- Expressions ---
  Value evaluate(const Node& node) {
    const Step step(*this, node);
    switch (node.kind) {
      case Kind::literal: return node.value;
      case Kind::name: return named(node.text);
      case Kind::list: {
        List list;
        for (const Node& child : node.children) list.push_back(kept(evaluate(child)));
        return kept(std::move(list));
      }
      case Kind::map: return map_of(node);
      case Kind::attribute: return attribute(evaluate(node.children[0]), node.text);
      case Kind::item: return item_of(work_, evaluate(node.children[0]), evaluate(node.children[1]));
      case Kind::slice: return slice_of(work_, evaluate(node.children[0]), part(node, 1), part(node, 2), part(node, 3));
      case Kind::call: return call(node);
      case Kind::filter: return filtered(node, evaluate(node.children[0]));
      case Kind::test: return apply_test(work_, node.text, evaluate(node.children[0]), arguments_of(node));
      case Kind::negation: return !evaluate(node.children[0]).is_true();
      case Kind::minus:
      case Kind::plus: return sign(evaluate(node.children[0]), node.kind == Kind::minus);
      case Kind::binary: return binary(node);
      case Kind::comparison: return comparison(node);
      case Kind::conditional:
        if (evaluate(node.children[1]).is_true()) return evaluate(node.children[0]);
        return node.children[2].kind == Kind::nothing ? Value() : evaluate(node.children[2]);
      default: return {};
    }
  }
  // Charges for what is about to go through a value.
  Value charged(Value value) {
    work_.charge(value.extent().bytes);
    return value;
  }
  Value part(const Node& node, std::size_t i) {
    return node.children[i].kind == Kind::nothing ? Value(None{}) : evaluate(node.children[i]);
  }
  Value map_of(const Node& node) {
    Map map;
    for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
      const Value key = evaluate(node.children[i]);
      if (!key.text()) fail(fmt::format("{} is the key of a map", key.kind()));
      map.emplace_back(*key.text(), kept(evaluate(node.children[i + 1])));
    }
    return kept(std::move(map));
  }
  Value attribute(const Value& object, const std::string& name) {
    if (const auto* missing = object.get<Undefined>())
      fail(fmt::format("'{}' is undefined and has no '{}'", printable(missing->name), printable(name)));
    if (const Map* map = object.map())
      if (const Value* found = find(work_, *map, name)) return *found;
    return Undefined{name};
  }

  Arguments arguments_of(const Node& node) {
    Arguments out;
    for (std::size_t i = 1; i < node.children.size(); ++i) out.values.push_back(evaluate(node.children[i]));
    for (std::size_t i = 0; i < node.keywords.size(); ++i)
      out.keywords.emplace_back(node.keywords[i], evaluate(node.keyword_values[i]));
    return out;
  }
  Value filtered(const Node& node, Value value) {
    // {% filter a | b %}: the first filter has nothing before it, and gets the body.
    if (node.children[0].kind == Kind::filter && node.children[0].children[0].kind == Kind::nothing)
      value = filtered(node.children[0], std::move(value));
    return kept(apply_filter(work_, node.text, charged(std::move(value)), arguments_of(node)));
  }
  Value call(const Node& node) {
    const Node& callee = node.children[0];
    if (callee.kind == Kind::attribute) {
      const Value object = evaluate(callee.children[0]);
      const Value member = object.map() || object.is_undefined() ? attribute(object, callee.text) : Value();
      if (member.is_undefined()) return kept(call_method(work_, object, callee.text, arguments_of(node)));
      return call_value(member, node);
    }
    return call_value(evaluate(callee), node);
  }
  Value call_value(const Value& callee, const Node& node) {
    if (const auto* function = callee.get<Function>()) {
      Value made = call_function(work_, function->name, arguments_of(node));
      if (const Map* map = made.map())
        for (const auto& [key, value] : *map) kept(value);
      return function->name == "namespace" ? made : kept(std::move(made));
    }
    if (const auto* macro = callee.get<Macro>()) return call_macro(*macro->node, arguments_of(node));
    const auto* missing = callee.get<Undefined>();
    fail(missing ? fmt::format("'{}' is undefined", printable(missing->name))
                 : fmt::format("{} cannot be called", callee.kind()));
  }
  Value call_macro(const Node& macro, const Arguments& arguments) {
    if (arguments.values.size() > macro.names.size())
      fail(fmt::format("the macro '{}' takes {} arguments", printable(macro.text), macro.names.size()));
    Frame frame;
    for (std::size_t i = 0; i < macro.names.size(); ++i) {
      Value value = arguments.get(i, macro.names[i]);
      const bool is_given = i < arguments.values.size() || !value.is_undefined();
      if (!is_given && macro.children[i + 1].kind != Kind::nothing) value = evaluate(macro.children[i + 1]);
      if (value.is_undefined()) value = Undefined{macro.names[i]};
      frame.insert_or_assign(macro.names[i], std::move(value));
    }
    // A macro sees the template's own names, not those of who calls it.
    std::vector<Frame> callers(std::make_move_iterator(frames_.begin() + 1), std::make_move_iterator(frames_.end()));
    frames_.resize(1);
    frames_.push_back(std::move(frame));
    Text before = std::exchange(out_, {});
    execute(macro.children[0]);
    frames_.resize(1);
    std::move(callers.begin(), callers.end(), std::back_inserter(frames_));
    return std::exchange(out_, std::move(before));
  }

  Value sign(const Value& value, bool is_minus) const {
    if (!value.is_number()) fail(fmt::format("{} has no sign", value.kind()));
    if (const double* real = value.get<double>()) return is_minus ? -*real : *real;
    const std::int64_t integer = integer_or(work_, value, 0);
    if (integer == std::numeric_limits<std::int64_t>::min()) fail("a number is too large");
    return is_minus ? -integer : integer;
  }

  Value binary(const Node& node) {
    const std::string& op = node.text;
    Value left = evaluate(node.children[0]);
    if (op == "and") return left.is_true() ? evaluate(node.children[1]) : left;
    if (op == "or") return left.is_true() ? left : evaluate(node.children[1]);
    const Value right = evaluate(node.children[1]);
    if (op == "~" || (op == "+" && left.text() && right.text())) {
      Text text = charged_text(work_, left);
      text += charged_text(work_, right);
      return text;
    }
    if (op == "+" && left.list() && right.list()) {
      work_.charge(kStep * (left.list()->size() + right.list()->size()));
      List list = *left.list();
      list.insert(list.end(), right.list()->begin(), right.list()->end());
      return kept(std::move(list));
    }
    if (op == "*" && left.text() && right.get<std::int64_t>()) {
      Text text;
      for (std::int64_t i = 0; i < *right.get<std::int64_t>(); ++i) {
        work_.charge(left.text()->size() + 1);
        text += *left.text();
      }
      return text;
    }
    return arithmetic(op, left, right);
  }
  Value arithmetic(const std::string& op, const Value& left, const Value& right) const {
    for (const Value* each : {&left, &right})
      if (const auto* missing = each->get<Undefined>()) fail(fmt::format("'{}' is undefined", printable(missing->name)));
    if (!left.is_number() || !right.is_number()) fail(fmt::format("'{}' of {} and {}", op, left.kind(), right.kind()));
    const double a = left.number(), b = right.number();
    if ((op == "/" || op == "//" || op == "%") && b == 0) fail("a division by zero");
    if (op == "/") return a / b;
    double result = 0;
    if (op == "+") result = a + b;
    if (op == "-") result = a - b;
    if (op == "*") result = a * b;
    if (op == "//") result = std::floor(a / b);
    if (op == "%") result = a - b * std::floor(a / b);
    if (op == "**") result = std::pow(a, std::min(b, static_cast<double>(kLargestPower)));
    if (left.get<double>() || right.get<double>() || (op == "**" && b < 0)) return result;
    // Counts of messages and characters: far from where doubles are not exact.
    if (!(std::abs(result) <= 9e15)) fail("a number is too large");
    return static_cast<std::int64_t>(result);
  }

  Value comparison(const Node& node) {
    Value left = evaluate(node.children[0]);
    for (std::size_t i = 0; i < node.names.size(); ++i) {
      Value right = evaluate(node.children[i + 1]);
      work_.charge(left.extent().bytes);
      work_.charge(right.extent().bytes);
      if (!holds(node.names[i], left, right)) return false;
      left = std::move(right);
    }
    return true;
  }
  bool holds(const std::string& op, const Value& left, const Value& right) {
    if (op == "==") return equal(left, right);
    if (op == "!=") return !equal(left, right);
    if (op == "in") return contains(work_, right, left);
    if (op == "not in") return !contains(work_, right, left);
    const int order = compare(work_, left, right);
    if (op == "<") return order < 0;
    if (op == ">") return order > 0;
    return op == "<=" ? order <= 0 : order >= 0;
  }

  Work work_;
  std::vector<Frame> frames_;
  Text out_;
  int depth_ = 0;
};

}  // namespace

Template Template::parse(std::string_view source) { return Template(std::make_shared<const Node>(jinja::parse(source))); }

Text Template::render(std::map<std::string, Value> globals) const {
  std::uint64_t bytes = 0;
  for (const auto& [name, value] : globals) bytes += value.extent().bytes;
  return Interpreter(std::move(globals), kBudget + kBudgetPerByte * bytes).run(*root_);
}

}  // namespace tenon::jinja
