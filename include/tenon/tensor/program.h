// Program: a function of tensors recorded once and run many times.
//
// Its inputs are tensors without a value. What is computed from them can be recorded as a Program; asking for its value throws
// failed_precondition. Running a Program builds no graph: its cost does not depend on the number of its nodes.
//
//   Tensor x = program_input(DType::f32, {8, 16});
//   Program program = Program::record(std::array{x}, std::array{softmax(x * 2)});
//   Tensor y = program.run(std::array{batch})[0];
//   program.save("softmax.tenon");                    // Program::load, Python and `tenon run @softmax.tenon` read it
//
// Tensors with a value that the outputs use, such as weights, are captured: the program keeps them alive.
// Lifetime: a value; copies share the recording. Thread safety: all const calls may run concurrently.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/graph.h"
#include "tenon/tensor.h"

namespace tenon {

// An argument of a program.
Tensor program_input(DType dtype, const Shape& shape);
// The same for a number that takes the dtype of the tensor it meets; |dtype| is i64 or f64.
Tensor program_number(DType dtype);
// False if it is computed from inputs of a program.
bool has_value(const Tensor& tensor);

class Program {
 public:
  // |names| are those of the inputs, "x0", "x1", ... without them. Throws failed_precondition if |outputs| use an input that is
  // not among |inputs|, resource_exhausted beyond Graph::kMaxNodes.
  static Program record(std::span<const Tensor> inputs, std::span<const Tensor> outputs, std::span<const std::string> names = {});

  // The program of |graph|, e.g. of an expression: its inputs and outputs are the graph's.
  static Program of_graph(Graph graph);

  // A file with the program and the values that it captured, for the same version of Tenon on any machine: a safetensors file
  // whose array "graph" has the nodes. Throws what save_safetensors() and load_safetensors() throw, and invalid_argument for a
  // file that save() did not write.
  void save(const std::filesystem::path& file) const;
  static Program load(const std::filesystem::path& file);

  // Its inputs are those of record() in order, then the captured tensors. An output may be an input itself.
  const Graph& graph() const noexcept;
  // The same graph with one output for each of record(), also where an output is an input or occurs twice.
  Graph complete_graph() const;
  std::span<const Tensor> captured() const noexcept;
  // The device request made within the recording, "auto" if there is none.
  const std::string& device() const noexcept;

  // Evaluates the outputs and returns them. |inputs| have the recorded dtypes and shapes. Throws invalid_argument
  // otherwise, and the errors of the device. |report| may be null.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const RunOptions& options = {}, Evaluation* report = nullptr) const;

 private:
  struct Recording;
  std::shared_ptr<const Recording> recording_;
};

}  // namespace tenon
