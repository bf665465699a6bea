#include "graph/growth.h"

#include <utility>

namespace tenon {
namespace {

thread_local GraphWatch* innermost = nullptr;

}  // namespace

GraphWatch::GraphWatch(OnGrowth on_growth) : on_growth_(std::move(on_growth)), outer_(std::exchange(innermost, this)) {}

GraphWatch::~GraphWatch() { innermost = outer_; }

void GraphWatch::grows(NodeId nodes) {
  for (GraphWatch* watch = innermost; watch != nullptr; watch = watch->outer_) watch->on_growth_(nodes);
}

}  // namespace tenon
