// Importer: turns an ONNX graph, for inputs of given shapes, into a program of Tenon.
//
// Shape arithmetic is folded on the host: a node whose inputs are all known and small is computed at once by the reference. If a
// value must be known that depends on the data, the import ends early with a program that computes that value; the caller runs
// it, adds the result to the answers and imports again (Import::is_complete). Functions are inlined, If takes the branch whose
// condition is known, Loop and Scan are unrolled.
//
// Errors: unimplemented for what is not supported and invalid_argument for what is wrong, both naming the node.
// Lifetime: an Import does not refer to the importer; its checkpoint refers to the names of the model.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/onnx/import/node_context.h"
#include "model/onnx/import/value.h"
#include "model/onnx/import/weights.h"
#include "model/onnx/proto/model_proto.h"

namespace tenon::onnx {

struct LoadedModel {
  ModelFile file;
  ModelProto proto;
  Weights weights;
  std::optional<DType> products;  // f16 or bf16: what f32 values become where they enter a product

  // The nodes that the outputs need, in their order, and for each name the last of them that reads it; outputs are read at the
  // end.
  std::vector<const NodeProto*> nodes;
  std::unordered_map<std::string_view, std::size_t> last_reads;

  explicit LoadedModel(const std::filesystem::path& path);
  explicit LoadedModel(Bytes bytes);

 private:
  void order_nodes();
};

// A program of at most this many elements is computed on the host at once: shape arithmetic on inputs, a condition.
inline constexpr std::int64_t kSmallProgram = 1 << 14;

// One input of the program: a weight of the model, a tensor that the caller passes, or what the weights make (FixedProgram).
struct Feed {
  enum class Kind : std::uint8_t { given, weight, fixed };
  Kind kind = Kind::given;
  int place = 0;  // among the leaves of the caller's values, the weights, or the outputs of the fixed program
};

// A program of weights alone: it runs once.
struct FixedProgram {
  Graph graph;
  std::vector<Feed> feeds;
};

// An output of the model, in terms of the outputs of the program.
struct OutputValue {
  Value::Kind kind = Value::Kind::tensor;
  ElementType type = ElementType::undefined;
  int place = -1;  // among the outputs of the program; -1: |known| or |strings|
  std::optional<HostArray> known;
  std::shared_ptr<const std::vector<std::string>> strings;
  Shape shape;
  std::vector<OutputValue> items;
};

// Where an import has stopped: the nodes from |node| on are left, and |values| is all that they read of the others. A value is
// known, or an input of whoever goes on from here: |sources| says where each of those comes from, in their order.
struct Checkpoint {
  struct Source {
    bool is_output = false;  // of the program that ends here; else a leaf of its import
    int place = 0;
  };
  std::size_t node = 0;
  std::map<std::string_view, ValuePtr> values;  // views of the model's names
  std::vector<Source> sources;
};

struct Import {
  Graph graph;
  std::vector<Feed> feeds;  // one per input of the graph
  std::optional<FixedProgram> fixed;
  std::vector<OutputValue> outputs;
  bool is_complete = false;  // else the first output of the graph is the next answer
  // Of an import that is not complete: where to go on, with that answer as the first, so that what led here is not computed
  // again. Null: from where this import began, with that answer after those it was given.
  std::shared_ptr<const Checkpoint> checkpoint;
};

// A value that the import needs and that only the inputs decide.
struct NeedsValue {
  ValuePtr value;
};

struct Scope {
  const Scope* parent = nullptr;
  std::unordered_map<std::string_view, ValuePtr> values;
  const OpsetImports* opsets = nullptr;
  std::map<std::string_view, const AttributeProto*> arguments;  // attributes given to the function
  bool is_function = false;

  ValuePtr find(std::string_view name) const;
};

class Importer {
 public:
  // |inputs| by the names of the model's inputs: tensors with type and shape (and |host| if they are to be constants),
  // containers of such. |answers| are the values that earlier imports asked for since |from|, the checkpoint of one of them or
  // null. The leaves are those of the inputs, in the order of the model, and then those of the checkpoint.
  Importer(LoadedModel& model, const std::map<std::string, ValuePtr, std::less<>>& inputs, std::span<const HostArray> answers,
           const Checkpoint* from = nullptr);

  Import run();

  // --- For converters ---
  Graph& graph() noexcept { return *graph_; }
  Expr expr(const ValuePtr& value);
  // |value| where it enters a product: f32 in the type of the model's products; weights are converted once.
  Expr operand(const ValuePtr& value);
  Expr operand(Expr x);
  HostArray host(const ValuePtr& value);
  // A weight that is worked out once from what the file has at |sources|; |part| numbers those of the same sources.
  ValuePtr made_weight(const std::vector<const void*>& sources, int part, const std::function<HostArray()>& make);
  // The outputs of a graph within |outer|, with its inputs bound to |arguments|.
  std::vector<ValuePtr> call(const GraphProto& graph, const Scope& outer, std::vector<ValuePtr> arguments);
  ValuePtr value_of(const TensorProto& tensor);
  void count_step();  // of a loop; throws resource_exhausted beyond the limit

 private:
  void run_nodes(const std::vector<NodeProto>& nodes, Scope& scope);
  void run_node(const NodeProto& node, Scope& scope);
  Results convert(Converter converter, const NodeProto& node, const Scope& scope, const std::vector<ValuePtr>& inputs,
                  std::int64_t version);
  std::optional<Results> fold(Converter converter, const NodeProto& node, const Scope& scope, const std::vector<ValuePtr>& inputs,
                              std::int64_t version);
  // Weights that a model stores in 16 bits and casts: converted once, and weights themselves.
  std::optional<Results> cast_weight(const NodeProto& node, const std::vector<ValuePtr>& inputs);
  Results call_function(const FunctionProto& function, const NodeProto& node, const Scope& scope,
                        const std::vector<ValuePtr>& inputs);
  void bind_inputs(Scope& scope);
  void bind_checkpoint(Scope& scope);
  // What the nodes from |node| on need of |scope|; adds to |outputs| what the program has to compute for it.
  std::shared_ptr<const Checkpoint> checkpoint(std::size_t node, const Scope& scope, std::vector<NodeId>& outputs);
  OutputValue output(const ValuePtr& value, std::vector<NodeId>& outputs);
  void number_leaves(const ValuePtr& value);

  LoadedModel& model_;
  const std::map<std::string, ValuePtr, std::less<>>& inputs_;
  std::span<const HostArray> answers_;
  const Checkpoint* const from_;
  std::size_t next_answer_ = 0;
  Graph main_, *graph_ = &main_;
  std::vector<Feed> feeds_;
  std::unordered_map<const Value*, int> leaves_;
  std::unordered_map<int, NodeId> operands_;                  // weights in the type of products, by the place of the f32 weight
  std::unordered_map<const TensorProto*, ValuePtr> tensors_;  // one value each, also in every step of a loop
  int depth_ = 0;
  std::int64_t steps_ = 0;
};

// Throws unimplemented, naming every op of the model that has no converter and the first node that uses it.
void check_supported(const ModelProto& model);

}  // namespace tenon::onnx
