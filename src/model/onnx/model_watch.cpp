#include "model/onnx/model_watch.h"

#include <utility>

namespace tenon::onnx {
namespace {

thread_local ModelWatch* innermost = nullptr;

}  // namespace

ModelWatch::ModelWatch() : outer_(std::exchange(innermost, this)) {}
ModelWatch::~ModelWatch() { innermost = outer_; }

void ModelWatch::tell_keeps(std::uint64_t bytes) {
  for (ModelWatch* watch = innermost; watch != nullptr; watch = watch->outer_) {
    watch->kept_ += bytes;
    if (watch->kept_ >= kStep) watch->keeps(std::exchange(watch->kept_, 0));
  }
}

void ModelWatch::tell_imports() {
  for (ModelWatch* watch = innermost; watch != nullptr; watch = watch->outer_) {
    watch->used_ = 0;
    watch->imports();
  }
}

void ModelWatch::tell_uses(std::uint64_t bytes) {
  for (ModelWatch* watch = innermost; watch != nullptr; watch = watch->outer_) {
    watch->used_ += bytes;
    if (watch->used_ >= kStep) watch->uses(std::exchange(watch->used_, 0));
  }
}

void ModelWatch::tell_runs(const Graph& program) {
  for (ModelWatch* watch = innermost; watch != nullptr; watch = watch->outer_) watch->runs(program);
}

}  // namespace tenon::onnx
