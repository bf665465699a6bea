#include "mesh/plan/overlap.h"

#include <algorithm>

#include "graph/work.h"

namespace tenon::mesh {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// What one device has to compute during an exchange at least: less is over before the exchange has begun.
constexpr double kWorthwhileFlops = 1 << 20;

class Overlap {
 public:
  Overlap(const Graph& graph, const Mesh& mesh, Partition& partition) : graph_(graph), mesh_(mesh), partition_(partition) {
    exchanges_.resize(index(partition.stages));
    for (int v = 0; v < static_cast<int>(partition.values.size()); ++v)
      if (value(v).is_exchange()) exchanges_[index(value(v).stage)].push_back(v);
  }

  void cut() {
    const std::vector<int> steps = steps_of_values();
    std::vector<std::vector<double>> work(exchanges_.size());
    for (std::size_t stage = 0; stage < work.size(); ++stage) work[stage].resize(exchanges_[stage].size() + 1);
    for (int v = 0; v < static_cast<int>(steps.size()); ++v)
      if (value(v).kind == Value::Kind::node)
        work[index(value(v).stage)][index(steps[index(v)])] += flops(graph_, graph_[value(v).origin]) / mesh_.size();
    int stages = 0;
    std::vector<std::vector<int>> numbers;  // of each step of each stage
    for (const std::vector<double>& each : work) numbers.push_back(numbered(each, stages));
    for (int v = 0; v < static_cast<int>(steps.size()); ++v)
      value(v).stage = numbers[index(value(v).stage)][index(steps[index(v)])];
    partition_.stages = stages;
  }

 private:
  Value& value(int v) { return partition_.values[index(v)]; }

  // The first exchange of its stage that needs a value; the number of exchanges if none does.
  std::vector<int> steps_of_values() {
    std::vector<int> steps;
    for (const Value& value : partition_.values) steps.push_back(static_cast<int>(exchanges_[index(value.stage)].size()));
    for (const std::vector<int>& list : exchanges_)
      for (std::size_t i = 0; i < list.size(); ++i) {
        const int stage = value(list[i]).stage;
        std::vector<int> open{list[i]};
        while (!open.empty()) {
          const int v = open.back();
          open.pop_back();
          if (value(v).stage != stage || steps[index(v)] <= static_cast<int>(i)) continue;
          steps[index(v)] = static_cast<int>(i);
          open.insert(open.end(), value(v).inputs.begin(), value(v).inputs.end());
        }
      }
    return steps;
  }

  // Numbers the steps of one stage, whose |work| is given, from |next| on: steps without enough work after them share a number.
  static std::vector<int> numbered(const std::vector<double>& work, int& next) {
    std::vector<bool> begins(work.size());  // a new program
    double gathered = 0;
    for (std::size_t step = work.size() - 1; step > 0; --step) {
      gathered += work[step];
      if (gathered < kWorthwhileFlops) continue;
      begins[step] = true;
      gathered = 0;
    }
    std::vector<int> numbers;
    for (std::size_t step = 0; step < work.size(); ++step) numbers.push_back(begins[step] ? ++next : next);
    ++next;
    return numbers;
  }

  const Graph& graph_;
  const Mesh& mesh_;
  Partition& partition_;
  std::vector<std::vector<int>> exchanges_;  // of each stage, in order
};

}  // namespace

void overlap_exchanges(const Graph& graph, const Mesh& mesh, Partition& partition) { Overlap(graph, mesh, partition).cut(); }

}  // namespace tenon::mesh
