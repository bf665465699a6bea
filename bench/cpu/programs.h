// What is compared: the inputs, Tenon's prepared programs and the hand-written loops for the same work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpu/hand/hand.h"
#include "cpu/hand/pool.h"
#include "tenon/backend.h"

namespace bench {

inline constexpr const char* kOps[] = {"add", "exp", "tanh", "sigmoid", "sum", "softmax", "transpose", "gelu", "gelu_tanh"};

// The shape an op is measured in: a vector of |size| elements, or a square matrix for softmax, transpose and what works on rows
// and columns.
tenon::Shape shape_for(const std::string& op, std::int64_t size);
// The op over inputs a (and b) of that shape; "gelu" is gelu(a * b + 0.5), "gelu_tanh" the same by the tanh
// formula.
tenon::Graph graph_for(const std::string& op, const tenon::Shape& shape, tenon::DType dtype = tenon::DType::f32);

// A program of ours, compiled, with its inputs on the device and memory for its result.
class Prepared {
 public:
  Prepared(tenon::OpenDevice& device, const tenon::Graph& graph, const std::vector<tenon::HostArray>& inputs);
  void run();        // into the memory given
  void run_fresh();  // into memory asked for in the call and given up after it
  tenon::HostArray result() const;

 private:
  tenon::OpenDevice& device_;
  std::unique_ptr<tenon::Executable> program_;
  std::vector<std::unique_ptr<tenon::Buffer>> inputs_;
  std::vector<const tenon::Buffer*> arguments_;
  std::unique_ptr<tenon::Buffer> output_;
};

// The same op by hand, over the pool. Result in |out|; a sum in out[0].
class ByHand {
 public:
  ByHand(const HandLoops& loops, SpinPool& pool, std::string op, const tenon::HostArray& a, const tenon::HostArray& b);
  void run();
  const float* result() const { return out_.get(); }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  const HandLoops& loops_;
  SpinPool& pool_;
  std::string op_;
  std::int64_t elements_, side_;
  bool stream_;
  std::unique_ptr<float, Free> a_, b_, out_;
};

// Numbers in [-4, 4], the same every time.
tenon::HostArray random_array(const tenon::Shape& shape, std::uint32_t seed);

}  // namespace bench
