// ModelWatch: hears of the memory that a model takes in this thread before it is taken, and of its programs before they run.
//
// A short file can describe much: a node of a few bytes becomes a struct, a packed integer of one byte a number of eight, a
// folded constant an array. Who reads files of strangers counts with a watch, and refuses by throwing from its calls: what they
// throw leaves the call of the model. Lifetime: until destroyed, in the thread that made it; watches nest. Thread safety: each
// thread has its own.
//
//   struct Counter : onnx::ModelWatch {
//     void keeps(std::uint64_t bytes) override { share.grow_to(share.bytes() + bytes); }
//     ...
//   } watch;
//   Model::parse(bytes);
#pragma once

#include <cstdint>

#include "tenon/graph.h"

namespace tenon::onnx {

class ModelWatch {
 public:
  ModelWatch();
  virtual ~ModelWatch();
  ModelWatch(const ModelWatch&) = delete;
  ModelWatch& operator=(const ModelWatch&) = delete;

  // Memory that lives as long as the model: its file, what is parsed of it, its weights.
  virtual void keeps(std::uint64_t bytes) = 0;
  // An import begins; what earlier ones used is free.
  virtual void imports() = 0;
  // Memory until the end of the import.
  virtual void uses(std::uint64_t bytes) = 0;
  // A program of the model is about to run.
  virtual void runs(const Graph& program) = 0;

  // For the model. Small amounts add up before they are told.
  static void tell_keeps(std::uint64_t bytes);
  static void tell_imports();
  static void tell_uses(std::uint64_t bytes);
  static void tell_runs(const Graph& program);

 private:
  static constexpr std::uint64_t kStep = 32 << 10;
  ModelWatch* const outer_;
  std::uint64_t kept_ = 0, used_ = 0;  // not told yet
};

}  // namespace tenon::onnx
