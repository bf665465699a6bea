// Random and changed expressions: each is either a program, which then runs if it is small, or refused with a tenon::Error.
#include <fmt/format.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzzer.h"
#include "graph/work.h"
#include "reference/reference.h"
#include "tenon/expression.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

constexpr std::int64_t kMaxElements = 2048;                       // of a tensor in a program that is run
constexpr std::size_t kMaxWork = 200'000;                         // elements computed by one
constexpr std::uint64_t kMaxCaseBytes = std::uint64_t{64} << 20;  // asked for by one case, freed or not

class Generator {
  std::size_t below(std::size_t n) { return static_cast<std::size_t>((*random_)() % n); }
  template <class List>
  const auto& pick(const List& list) {
    return list[below(std::size(list))];
  }

 public:
  Generator() {
    for (const OpInfo& op : all_ops()) ops_.push_back(&op);
  }

  std::string next(std::mt19937_64& random) {
    random_ = &random;
    switch (below(3)) {
      case 0: return program();
      case 1: return mutate(program());
      default: return call(2);
    }
  }

 private:
  std::string number() {
    static constexpr std::string_view numbers[] = {"0",
                                                   "1",
                                                   "2",
                                                   "3",
                                                   "-1",
                                                   "7",
                                                   "32",
                                                   "0.5",
                                                   "-2.5",
                                                   "1e-3",
                                                   "1e30",
                                                   "1e308",
                                                   "inf",
                                                   "nan",
                                                   "true",
                                                   "pi",
                                                   "false",
                                                   "-0.0",
                                                   "1e-320",
                                                   "4095",
                                                   "65536",
                                                   "1000000000000",
                                                   "9223372036854775807",
                                                   "-9223372036854775808",
                                                   "0x7fffffffffffffff",
                                                   "99999999999999999999",
                                                   "2147483648"};
    // Small numbers are the ones that fit; the others only need to be met now and then.
    return std::string(below(4) != 0 ? numbers[below(8)] : pick(numbers));
  }

  std::string name() {
    static constexpr std::string_view names[] = {"a", "b", "c", "m", "i", "t", "e", "zz", "float16", "None", "bfloat8_b", "h"};
    return std::string(below(3) != 0 ? names[below(5)] : pick(names));
  }

  std::string list(int depth) {
    std::string out = "[";
    const std::size_t count = below(4);
    for (std::size_t i = 0; i < count; ++i)
      out += (i > 0 ? ", " : "") + (depth > 0 && below(4) == 0 ? list(depth - 1) : number());
    return out + "]";
  }

  std::string argument(const Parameter& p) {
    if (below(12) == 0) return expression(1);
    switch (p.type) {
      case ParameterType::boolean: return below(2) ? "true" : "false";
      case ParameterType::integers: return below(3) ? list(0) : number();
      case ParameterType::dtype: return below(8) ? std::string(tenon::name(pick(all_dtypes()))) : name();
      case ParameterType::text:
        if (!p.choices.empty()) return "\"" + pick(p.choices) + "\"";
        return below(2) ? "'ij,jk->ik'" : "\"ii->i\"";
      default: return number();
    }
  }

  std::string call(int depth) {
    const OpInfo& op = *pick(ops_);
    std::size_t inputs = static_cast<std::size_t>(op.min_inputs);
    if (op.max_inputs > op.min_inputs) inputs += below(static_cast<std::size_t>(op.max_inputs - op.min_inputs) + 1);
    if (op.max_inputs < 0) inputs += below(3);
    if (below(20) == 0) inputs += below(3);
    std::string out = op.name + "(";
    const auto add = [&](const std::string& text) { out += (out.back() == '(' ? "" : ", ") + text; };
    for (std::size_t i = 0; i < inputs; ++i) add(below(3) ? name() : expression(depth - 1));
    bool named = false;
    for (const Parameter& p : op.parameters) {
      if (!p.required && below(2)) {
        named = true;
        continue;
      }
      add((named || below(2) ? p.name + "=" : "") + argument(p));
      named = named || out.find('=') != std::string::npos;
    }
    return out + ")";
  }

  std::string index() {
    const std::size_t items = 1 + below(3);
    std::string out = "[";
    const auto bound = [&] { return below(2) ? number() : std::string(); };
    for (std::size_t i = 0; i < items; ++i) {
      if (i > 0) out += ", ";
      switch (below(6)) {
        case 0: out += "..."; break;
        case 1: out += "None"; break;
        case 2: out += below(2) ? "i" : list(0); break;
        case 3: out += number(); break;
        default: out += bound() + ":" + bound() + (below(2) ? ":" + bound() : ""); break;
      }
    }
    return out + "]";
  }

  std::string expression(int depth) {
    static constexpr std::string_view operators[] = {"+",  "-", "*",  "/", "//", "%", "**", "@",  "==",  "!=", "<",
                                                     "<=", ">", ">=", "&", "|",  "^", "<<", ">>", "and", "or"};
    if (depth <= 0) return below(2) ? name() : number();
    switch (below(8)) {
      case 0:
      case 1: return call(depth);
      case 2:
      case 3: return fmt::format("{} {} {}", expression(depth - 1), pick(operators), expression(depth - 1));
      case 4: return fmt::format("({})", expression(depth - 1));
      case 5: return name() + index();
      case 6: return (below(2) ? "-" : below(2) ? "~" : "not ") + expression(depth - 1);
      default: return below(3) ? list(2) : name() + ".T";
    }
  }

  std::string program() {
    std::string out;
    for (std::size_t i = below(3); i > 0; --i)
      out += (below(4) ? name() : "t, v") + " = " + expression(2) + (below(2) ? "; " : "\n");
    out += expression(3);
    return below(6) ? out : out + ", " + expression(2);
  }

  std::string mutate(std::string text) {
    static constexpr std::string_view pieces[] = {"(",    ")",        "[",    "]",     ",",  ":",     "=", "**",   "...",
                                                  "\"",   "'",        "#",    ";",     "\n", "1e",    ".", "None", "not",
                                                  "\xC3", "\xC3\xA9", "\x01", "axis=", "-",  "e9999", "@", "((((", "[[[["};
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
      const std::size_t at = below(text.size() + 1), length = below(std::min<std::size_t>(8, text.size() - at) + 1);
      switch (below(5)) {
        case 0: text.erase(at, length); break;
        case 1: text.insert(at, pick(pieces)); break;
        case 2: text.insert(at, text.substr(below(text.size() + 1), 20)); break;
        case 3: text.replace(at, length, number()); break;
        default:
          if (at < text.size()) text[at] = static_cast<char>(below(256));
          break;
      }
    }
    return text;
  }

  std::mt19937_64* random_ = nullptr;
  std::vector<const OpInfo*> ops_;
};

struct Inputs {
  std::vector<NamedType> types;
  std::vector<HostArray> arrays;

  Inputs() {
    add("a", HostArray::from<float>({2, 3}, {1, -2, 3, 0.5F, -0.25F, 8}));
    add("b", HostArray::from<float>({3}, {-1, 0, 2}));
    add("c", HostArray::from<float>({1, 2, 4, 4}, std::span<const float>(std::vector<float>(32, 1.5F))));
    add("m", HostArray::from<float>({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
    add("i", HostArray::from<std::int64_t>({2}, {1, 0}));
    add("h", HostArray::full(DType::bf16, {2, 2}, 0.1));
  }
  void add(const char* name, const HostArray& array) {
    types.push_back({name, array.dtype(), array.shape()});
    arrays.push_back(array);
  }
};

bool is_small(const Graph& graph) {
  std::size_t work = 0;
  for (NodeId id = 0; id < graph.size(); ++id) work += static_cast<std::size_t>(graph[id].shape.elements());
  return work < kMaxWork && cost(graph).flops < static_cast<double>(kMaxWork);
}

void parse_and_run(std::string_view source, const Inputs& inputs) {
  try {
    free_names(source);
  } catch (const Error&) {
    // parse_expression() says what is wrong
  }
  const Graph graph = parse_expression(source, inputs.types, {.max_elements = kMaxElements});
  if (is_small(graph)) reference_run(graph, inputs.arrays);
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "expression"};
  for (const OpInfo& op : all_ops())
    if (!op.example.empty()) target.seeds.push_back(op.example);
  for (const OpInfo& op : all_ops()) target.words.push_back(op.name + "(");
  for (const char* word : {"(", ")", "[", "]", ", ", ":", " = ", "axis=", "None", "...", "1e9", "0.5", "-1", "a", "b", "i", "; "})
    target.words.emplace_back(word);
  target.make = [generator = Generator()](std::mt19937_64& random) mutable { return generator.next(random); };
  target.parse = [inputs = Inputs()](fuzz::Bytes bytes) { parse_and_run(fuzz::text_of(bytes), inputs); };
  target.bound = [](std::size_t) { return kMaxCaseBytes; };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
