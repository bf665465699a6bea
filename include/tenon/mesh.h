// Mesh: one program on several devices.
//
// A mesh arranges devices in a grid with named axes. Each axis of an input tensor may be split over axes of the mesh; a tensor
// that is not split is replicated. From the shardings of the inputs follows the sharding of every value in the program, one rule
// per primitive, and with it which values have to be exchanged between devices: the cheapest exchange by bytes is chosen.
// The result is the same as on one device: integers and values that are only moved bitwise, computed floats within the limits of
// docs/conformance.md, as parts of another shape may be added up in another order. Every run on one mesh of
// this machine gives the same bits, unless its devices exchange by a library of their vendor, which adds in its own order.
//
// Parts need not be equal: an axis of 10 over 4 devices is split into 2, 3, 2, 3. An axis with fewer elements than parts is not
// split.
//
//   const Mesh mesh = Mesh::parse("data=2,model=2", manager.devices());
//   MeshOptions options;
//   options.inputs["x"] = Sharding::parse("data,-");        // rows over data, columns whole
//   options.inputs["w"] = Sharding::parse("-,model");
//   print(explain_mesh(graph, mesh, options).text());            // opens nothing
//   const MeshResult result = run_on_mesh(manager, graph, inputs, mesh, options);
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/manager.h"

namespace tenon {

struct MeshAxis {
  std::string name;
  int size = 1;
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

// The axes of the mesh over which each axis of a tensor is split, outermost first.
struct Sharding {
  std::vector<std::vector<std::string>> axes;  // fewer entries than the tensor has axes: the rest are whole

  // "data,-": axis 0 over the mesh axis data, axis 1 whole; "data+model": over both; "": replicated.
  static Sharding parse(std::string_view text);
  std::string text() const;
  friend bool operator==(const Sharding&, const Sharding&) = default;
};

class Mesh {
 public:
  // |devices| are ids, one per place, the last axis running fastest. Throws invalid_argument if their number is not the product
  // of the axes, or if a name is empty, a device or a name occurs twice, or a size is less than 1.
  Mesh(std::vector<MeshAxis> axes, std::vector<std::string> devices);
  // "data=2,model=2" over the first usable devices: accelerators before the CPU, in the order of |devices|, each once whatever
  // the number of its drivers. Throws failed_precondition if there are too few.
  static Mesh parse(std::string_view text, std::span<const DeviceInfo> devices);
  // The same over these devices.
  static Mesh parse(std::string_view text, std::vector<std::string> ids);
  static std::vector<MeshAxis> parse_axes(std::string_view text);

  const std::vector<MeshAxis>& axes() const noexcept { return axes_; }
  const std::vector<std::string>& devices() const noexcept { return devices_; }
  int size() const noexcept { return static_cast<int>(devices_.size()); }
  // The index of an axis. Throws not_found listing the axes.
  int axis(std::string_view name) const;
  // The place of a device along one axis.
  int coordinate(int rank, int axis) const;
  std::string text() const;  // "data=2,model=2"

 private:
  std::vector<MeshAxis> axes_;
  std::vector<std::string> devices_;
};

// A mesh over the devices that were asked for: "auto", the first usable ones as Mesh::parse() takes them, or device requests
// separated by commas, one per place: "cuda:0,cuda:1". Throws what Mesh::parse() and DeviceManager::find() throw.
Mesh mesh_over(const DeviceManager& manager, std::string_view axes, std::string_view devices = "auto");

struct MeshOptions {
  std::map<std::string, Sharding, std::less<>> inputs;  // by name; inputs that are not named are replicated
  // The relative speed of each device, in the mesh's order: it gets that share of every split axis. Empty: equal shares.
  std::vector<double> speeds;
  RunOptions run;  // timeout, limit, priority, cancel, on_progress, program; repeat and device are ignored
};

// An exchange of one value between devices.
struct Collective {
  enum class Kind : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, move };
  Kind kind{};
  std::string value;  // the node, as in the program's text: "%7"
  DType dtype = DType::f32;
  Shape shape;                    // of the whole value
  std::string from, to;           // shardings: "[data, -]", "[-, -] sum over model"
  std::vector<std::string> axes;  // of the mesh
  std::uint64_t bytes = 0;        // sent from one device to another, over all devices
  std::string through;            // "host memory", "NCCL", "MPI"; "" if it is not known
};
std::string_view name(Collective::Kind kind) noexcept;

// What run_on_mesh() would do.
struct MeshPlan {
  struct Value {
    NodeId node = 0;
    std::string description;  // the node's text
    std::string sharding;
  };
  std::vector<Value> values;
  std::vector<Collective> collectives;
  std::vector<std::string> outputs;  // the sharding of each
  std::vector<std::string> notes;    // a requested split that was not possible, and why
  std::vector<double> shares;        // of each device in an axis that is split over all; empty if they are equal
  int stages = 1;                    // programs that each device runs, with collectives between them

  std::uint64_t bytes() const noexcept;
  std::string text() const;
};

struct MeshResult {
  std::vector<HostArray> outputs;  // whole
  std::vector<DeviceInfo> devices;
  std::vector<Timeline> timelines;  // of each device, in the mesh's order
  // With the bytes counted as they were exchanged; those that devices exchanged by themselves with the bytes of the formula.
  std::vector<Collective> collectives;
};

// Opens nothing. Throws invalid_argument if a sharding does not fit its tensor or names an unknown input or axis.
MeshPlan explain_mesh(const Graph& graph, const Mesh& mesh, const MeshOptions& options = {});
// The same, with what values would go through. May load a library of the devices' vendor.
MeshPlan explain_mesh(DeviceManager& manager, const Graph& graph, const Mesh& mesh, const MeshOptions& options = {});

// Leases all devices of the mesh, in one order for all processes, so that programs with overlapping meshes cannot block each
// other; all or none. Throws what explain_mesh() and DeviceManager::run() throw; the message names the device. If one device
// fails, the others stop at the next exchange and all leases end.
MeshResult run_on_mesh(DeviceManager& manager, const Graph& graph, std::span<const HostArray> inputs, const Mesh& mesh,
                       const MeshOptions& options = {});

// The same on |targets| (placement::distribution_targets()), each with a share of the rows of the inputs in |batched| and with
// all of the others: a model replicated over devices, its batch distributed. Throws failed_precondition without targets.
MeshResult run_data_parallel(DeviceManager& manager, const Graph& graph, std::span<const HostArray> inputs,
                             std::span<const DeviceInfo> targets, std::span<const std::string> batched, MeshOptions options = {});

// --- Several machines ---

// Whether mpirun, or srun with an MPI, started this process.
bool started_by_mpi();

struct MpiOptions {
  MeshOptions mesh;                  // speeds in the order of ranks
  bool has_measured_speeds = false;  // instead of those: each process tells what measured_speeds() knows of its device
  std::string device = "auto";       // of this process: a request, or "auto": the one that its place on its host gives it
  double deadline_seconds = 30;      // for each exchange; then deadline_exceeded names the processes that did not answer
};

struct MpiResult {
  int rank = 0;  // of this process
  // Outputs and collectives as seen by this process, which has all outputs. The bytes of an all-reduce that MPI does are those of
  // the formula in docs/mesh.md; MPI does not tell what it sends, nor in which order it adds.
  MeshResult result;
  std::vector<std::string> places;  // host and device of each process
  std::vector<double> speeds;       // that the shares were made by; empty: equal
};

// The same over the processes of an MPI job, one device each: every process calls it with the same program and inputs. MPI is
// loaded at run time: Open MPI or MPICH, whichever started the process. Devices are leased one process after the other, in the
// order of hosts and ids. After an error other processes may wait until their deadline; end the process without MPI's own
// clean-up (close the devices, then std::_Exit), which would wait for them, too. MPI gets 20 s to start, or the deadline if that
// is longer: if not all processes have come by then, this process ends with an error message and exit status 1, as MPI's start
// cannot be called off.
MpiResult run_over_mpi(DeviceManager& manager, const Graph& graph, std::span<const HostArray> inputs,
                       const std::vector<MeshAxis>& axes, const MpiOptions& options = {});

// Ends MPI when all processes have done their part. Without it the launcher takes the end of a process for an error. If another
// process does not come to it within the deadline, this process ends with an error message and exit status 1.
void finish_mpi(double deadline_seconds = 30);

// --- Shares ---

// Relative speeds of the devices of |mesh|, for MeshOptions::speeds, from earlier runs: of |graph| on each of the devices alone,
// or on this mesh with these shardings and equal shares. Equal if a device has run neither.
std::vector<double> measured_speeds(const DeviceManager& manager, const Graph& graph, const Mesh& mesh,
                                    const MeshOptions& options = {});
// "4,1": one positive number for each device. Throws invalid_argument.
std::vector<double> parse_speeds(std::string_view text);

}  // namespace tenon
