// ComputeRequest: a request to compute something, read, checked and ready to run.
//
// Reading takes the JSON body of POST /api/execute to a Graph and its input arrays. Every limit is checked before the memory it
// is about is taken. Lifetime: a value that never changes once read; shared by the cache and those who run it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/compute/memory/memory_gate.h"
#include "server/compute/uploads.h"
#include "tenon/graph.h"
#include "tenon/manager.h"
#include "tenon/mesh.h"

namespace tenon::server {

struct ProgramLimits {
  std::int64_t elements = std::int64_t{1} << 26;  // of any tensor
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  double operations = 4e12;
  std::chrono::nanoseconds run_time = std::chrono::seconds(300);
  static constexpr std::int64_t kFullOutput = 1 << 20;  // elements
  static constexpr std::int64_t kCompare = 1 << 22;     // elements, of all nodes
  static constexpr std::size_t kExpression = 1 << 16;   // characters
};

enum class OutputForm : std::uint8_t { sample, full, npy, npz, safetensors, csv };
// "npy", "npz", "safetensors", "csv"; "" for an answer in JSON.
std::string_view file_format(OutputForm form) noexcept;

struct ProgramInput {
  std::string name;
  HostArray array;
  std::optional<double> given;  // the constant that was asked for, before rounding
};

struct ComputeRequest {
  std::string operation, expression;  // one of them is ""
  Graph graph;
  std::vector<ProgramInput> inputs;  // as given, literals included
  std::vector<HostArray> arrays;     // of the graph's inputs
  std::vector<std::string> names;    // of the results
  std::string device = "auto", prefer;
  std::optional<RoutingMode> routing;
  std::string mesh;  // axes: "data=2,model=2"; "": one device
  std::map<std::string, Sharding, std::less<>> shard;
  std::vector<double> speeds;  // of the mesh's devices; empty: equal
  bool has_measured_speeds = false;
  OutputForm output = OutputForm::sample;
  bool compare = true, details = true, keep = false;
  int repeat = 1, priority = 0;
  double timeout_seconds = 60;
  std::uint64_t memory_bytes = 0;         // of inputs, results and what lies between, estimated
  std::uint64_t held_bytes = 0;           // of the program itself: the graph and the inputs
  std::uint64_t run_bytes = 0;            // of a run and its answer, besides: each run takes its own share
  bool is_repeatable = true;              // the same text is always the same program
  std::vector<MemoryGate::Share> memory;  // for |held_bytes|
  std::vector<std::shared_ptr<const MemoryGate::Share>> upload_memory;  // of uploads it uses where they are
  // Ran before, in microseconds and without waiting: may run in the I/O thread.
  mutable std::atomic<bool> is_quick{false};

  std::string title() const;  // what the ledger calls it
  // Device, routing and preference, for DeviceManager::explain().
  RunOptions run_options() const;
  MeshOptions mesh_options(const DeviceManager& manager, const Mesh& over) const;  // the shardings and the speeds
};

struct ProgramReader {
  ProgramLimits limits;
  ClientMemory memory;
  UploadStore& uploads;
  DeviceManager& manager;       // computes generated inputs
  bool computes_inputs = true;  // else large generated inputs have no values, for who asks only for types

  // What parsing a JSON text of this size may take at worst ("[[],[],...").
  MemoryGate::Share parsing(std::size_t bytes) const;
  // Throws Error and Problem.
  std::shared_ptr<ComputeRequest> read(std::string_view json) const;

  struct Check {
    std::shared_ptr<ComputeRequest> program;  // nullptr when inputs are missing
    std::vector<std::string> free_names, missing;
    std::exception_ptr failure;  // what read() would throw, when inputs are missing
  };
  // As read(), but an expression whose inputs are not all given is no error.
  Check check(std::string_view json) const;
};

// Throws too_large (413) for tensors of too many elements, or more arithmetic than a program may have.
void check_size(const Graph& graph, const ProgramLimits& limits, int repeat = 1);
// The same, and for too much memory; returns the memory that its tensors will take.
std::uint64_t check_limits(const Graph& graph, const ProgramLimits& limits, int repeat = 1);
// Throws too_large (413) for more than a request may have.
void check_memory(std::uint64_t bytes, const ProgramLimits& limits);

}  // namespace tenon::server
