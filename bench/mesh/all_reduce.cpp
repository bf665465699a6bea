// A mesh's all-reduce over MPI beside MPI_Allreduce itself, alternately in one run, started by mpirun (Open MPI).
//
//   mpirun -n 4 bench_all_reduce [SECONDS_PER_SIZE]
//
// Prints for each size the median seconds of both and the median of their ratios, as JSON lines, from rank 0.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "base/system/dynamic_library.h"
#include "mesh/exchange/mpi_exchange.h"
#include "mesh/exchange/mpi_library.h"
#include "mesh/plan/layout.h"
#include "tenon/error.h"
#include "tenon/mesh.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// The blocking call that a program written for MPI would use.
class RawMpi {
 public:
  RawMpi() : library_(DynamicLibrary::load(std::vector<std::string>{"libmpi.so.40", "libmpi.so.80"})) {
    all_reduce_ = library_.function<int(const void*, void*, int, void*, void*, void*)>("MPI_Allreduce");
    barrier_ = library_.function<int(void*)>("MPI_Barrier");
    world_ = library_.function<char>("ompi_mpi_comm_world");
    if (all_reduce_ == nullptr || world_ == nullptr) throw Error(ErrorCode::unavailable, "this needs Open MPI");
  }
  void sum(const float* from, float* to, std::int64_t count) const {
    all_reduce_(from, to, static_cast<int>(count), library_.function<char>("ompi_mpi_float"),
                library_.function<char>("ompi_mpi_op_sum"), world_);
  }
  void barrier() const { barrier_(world_); }

 private:
  DynamicLibrary library_;
  int (*all_reduce_)(const void*, void*, int, void*, void*, void*) = nullptr;
  int (*barrier_)(void*) = nullptr;
  void* world_ = nullptr;
};

void compare(mesh::MpiLibrary& mpi, mesh::MpiExchange& exchange, const RawMpi& raw, const Mesh& mesh, std::int64_t bytes,
             double seconds) {
  const Shape shape{bytes / 4};
  const HostArray mine = HostArray::full(DType::f32, shape, 1 + mpi.rank());
  HostArray received = HostArray::empty(DType::f32, shape);
  float* const to = reinterpret_cast<float*>(received.mutable_data());
  mesh::Layout partial = mesh::Layout::replicated(1, mesh);
  partial.partials[0] = ReduceKind::sum;
  const mesh::Layout whole = mesh::Layout::replicated(1, mesh);
  std::vector<double> theirs, ours, ratios;
  // All ranks do the same number of rounds: as many as rank 0's first ones suggest, which the sum tells everybody.
  int rounds = 5;
  for (int round = 0; round < rounds; ++round) {
    const auto measure_theirs = [&] {
      raw.barrier();
      const Clock::time_point begin = Clock::now();
      raw.sum(reinterpret_cast<const float*>(mine.data()), to, mine.elements());
      return seconds_since(begin);
    };
    const auto measure_ours = [&] {
      raw.barrier();
      const Clock::time_point begin = Clock::now();
      const HostArray sum = exchange.reduce(mine, partial, whole, shape);
      const double took = seconds_since(begin);
      if (sum.value(0) != received.value(0)) throw Error(ErrorCode::internal, "the sums differ");
      return took;
    };
    double first = 0, second = 0;
    if (round % 2 == 0) {
      first = measure_theirs();
      second = measure_ours();
    } else {
      second = measure_ours();
      first = measure_theirs();
    }
    if (round == 4) {
      float wanted = 0, all = 0;
      if (mpi.rank() == 0) wanted = static_cast<float>(std::clamp(seconds / (first + second), 20.0, 2000.0));
      raw.sum(&wanted, &all, 1);
      rounds = 5 + static_cast<int>(all);
    }
    if (round < 5) continue;
    theirs.push_back(first);
    ours.push_back(second);
    ratios.push_back(first / second);
  }
  if (mpi.rank() != 0) return;
  fmt::print(
      "{{\"bytes\": {}, \"rounds\": {}, \"raw_seconds\": {:.7f}, \"tenon_seconds\": {:.7f}, \"median_of_ratios\": {:.3f}}}\n",
      bytes, ours.size(), median(theirs), median(ours), median(ratios));
  std::fflush(stdout);
}

int run(double seconds) {
  const std::unique_ptr<mesh::MpiLibrary> mpi = mesh::MpiLibrary::load(std::chrono::seconds(60));
  std::vector<std::string> ranks;
  for (int rank = 0; rank < mpi->size(); ++rank) ranks.push_back(fmt::format("rank {}", rank));
  const Mesh mesh({{"m", mpi->size()}}, ranks);
  mesh::MpiExchange exchange(*mpi, mesh, std::chrono::seconds(60), std::chrono::seconds(60), {},
                             fmt::format("rank {}", mpi->rank()));
  const RawMpi raw;
  for (const std::int64_t bytes :
       {std::int64_t{65536}, std::int64_t{1} << 20, std::int64_t{1} << 22, std::int64_t{1} << 24, std::int64_t{1} << 26})
    compare(*mpi, exchange, raw, mesh, bytes, seconds);
  mpi->finish();
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  try {
    return tenon::run(argc > 1 ? std::atof(argv[1]) : 5);
  } catch (const tenon::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    std::quick_exit(1);
  }
}
