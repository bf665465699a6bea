// Model: a trained network from a file, as a function from named tensors to named tensors.
//
//   Model model = Model::load("minilm.onnx");
//   for (const ModelValue& input : model.info().inputs) std::cout << input.name << '\n';
//   Model::Tensors out = model({{"input_ids", ids}, {"attention_mask", mask}, {"token_type_ids", types}});
//   std::cout << out.at("last_hidden_state").shape() << '\n';
//
// Loading reads and checks the file and opens no device; what the model needs and Tenon lacks is refused with the names of the
// nodes. Calling it takes a lease, runs one program and gives the device back, like the evaluation of a tensor. Inputs may have
// any shape that the model allows. There is one program per combination of input shapes, kept for later calls; the weights are
// resident and shared by all of them, and move to host memory before their device closes.
// If the shape of a result depends on data (NonZero, a Loop whose end depends on values), a call runs several programs.
//
// Formats: ONNX (opsets 6 and newer), and checkpoints of encoders (model.safetensors beside its config.json). Weights that a
// model keeps in other files are read from its own folder only. Lifetime: a value; copies share the model. Thread safety: all
// calls may run concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/graph.h"
#include "tenon/tensor.h"

namespace tenon {

// An input or output of a model.
struct ModelValue {
  struct Extent {
    std::optional<std::int64_t> extent;  // none: any
    std::string name;                    // "batch"; equal names are equal extents; may be empty
  };
  std::string name;
  std::string type;            // "float", "int64", "string", ... as the format calls it
  std::optional<DType> dtype;  // of the tensor; none for strings, sequences and optionals
  bool has_shape = false;      // false: any rank
  std::vector<Extent> shape;
  bool is_optional = false;  // an input with a default in the file
};
std::string to_string(const ModelValue& value);  // "input_ids: int64 [batch, sequence]"

struct ModelInfo {
  std::string format;    // "ONNX"
  std::string producer;  // "pytorch 2.1"; may be empty
  std::int64_t opset = 0;
  std::vector<ModelValue> inputs, outputs;
  std::int64_t nodes = 0;          // graphs within nodes included
  std::map<std::string, int> ops;  // how many nodes of each op
  std::int64_t parameters = 0;     // elements of all weights
  std::size_t weight_bytes = 0;
  std::map<std::string, std::string> metadata;
};

// One step of the model's graph, as the file has it.
struct ModelNode {
  std::string name;  // may be empty
  std::string op;    // "Conv", "com.microsoft.FusedMatMul"
  // Names of the values it reads and makes; the weights among those it reads are in a list of their own.
  std::vector<std::string> inputs, weights, outputs;
};

struct ModelOptions {
  // Mixed precision: float16 or bfloat16 for what enters products (MatMul, Gemm, Einsum, Conv, ConvTranspose, Attention), weights
  // included. Sums of products, norms, softmax and everything else stay in float32, and inputs and outputs keep their types.
  // Recurrent nodes and integer products are not affected. float16 ends at 65504: prefer bfloat16 for nets that were not trained
  // with it. Empty or float32: as the file says.
  std::optional<DType> products;
  // What the programs that are kept may take, at most; one larger than this is not kept.
  std::size_t program_bytes = std::size_t{256} << 20;
};

struct ModelState;  // src/model/

class Model {
 public:
  using Tensors = std::map<std::string, Tensor, std::less<>>;

  // |path|: a file, or a folder with one (file_in). Throws not_found, permission_denied, invalid_argument for a file that is
  // damaged, unimplemented for ops and formats that are not supported.
  static Model load(const std::filesystem::path& path, const ModelOptions& options = {});
  // The file that load() reads for |path|: of a folder model.onnx, model.safetensors or onnx/model.onnx, whichever is there
  // first. Throws not_found for a folder without any.
  static std::filesystem::path file_in(const std::filesystem::path& path);
  // The bytes of an ONNX file; weights in other files are refused.
  static Model parse(std::span<const std::byte> onnx, const ModelOptions& options = {});

  const ModelInfo& info() const noexcept;
  // The nodes of the main graph from place |first| on, in the order of the file, at most |count|. Graphs within nodes and the
  // insides of functions are left out.
  std::vector<ModelNode> nodes(std::size_t first, std::size_t count) const;
  const ModelOptions& options() const noexcept;

  // |inputs| as a call takes them: of the model's types, where no value can change. Throws invalid_argument for missing, unknown
  // or wrongly shaped inputs. Computes nothing.
  Tensors fitted(const Tensors& inputs) const;

  // Every output by its name. Inputs of another numeric type are converted if no value can change (int32 to int64). Throws
  // invalid_argument for missing, unknown or wrongly shaped inputs, unimplemented naming the node, and what devices throw.
  Tensors operator()(const Tensors& inputs, const RunOptions& options = {}) const;

  // The device that a call with these inputs would use now, and why. Opens nothing.
  Decision explain(const Tensors& inputs, std::string_view device = "auto") const;
  // The batch, a power of two up to |most|, that is worth collecting on the device of |request|: the smallest with nearly the
  // best throughput by the times that this machine's profile predicts (tenon profile; tenon model bench --sweep measures).
  // |inputs| gives inputs for a batch; only their shapes and types count. Opens and computes nothing.
  std::int64_t recommended_batch(const std::function<Tensors(std::int64_t)>& inputs, std::string_view request = "auto",
                                 std::int64_t most = 64) const;
  // The program for these inputs. Its shapes tell what a call takes; values that only a run can tell are missing.
  std::shared_ptr<const Graph> graph(const Tensors& inputs) const;
  // The same as text, one line per node.
  std::string program(const Tensors& inputs) const;
  // How many programs are kept.
  std::size_t programs() const;

 private:
  static Model load_checkpoint(const std::filesystem::path& file, const ModelOptions& options);
  explicit Model(std::shared_ptr<ModelState> state) : state_(std::move(state)) {}
  std::shared_ptr<ModelState> state_;
};

}  // namespace tenon
