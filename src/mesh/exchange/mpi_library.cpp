#include "mesh/exchange/mpi_library.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <vector>

#include "base/system/dynamic_library.h"
#include "mesh/exchange/watchdog.h"
#include "tenon/error.h"

namespace tenon::mesh {
namespace {

// What differs between the two binary interfaces.
struct OpenMpi {
  using Handle = void*;
  static constexpr const char* kName = "Open MPI";
  static std::vector<std::string> files() { return {"libmpi.so.40", "libmpi.so.80", "libmpi.so"}; }
  static void* ignored_status() { return nullptr; }
  static Handle world(const DynamicLibrary& library) { return library.function<char>("ompi_mpi_comm_world"); }
  static Handle bytes(const DynamicLibrary& library) { return library.function<char>("ompi_mpi_byte"); }
  static Handle type(const DynamicLibrary& library, DType dtype) {
    switch (dtype) {
      case DType::f32: return library.function<char>("ompi_mpi_float");
      case DType::f64: return library.function<char>("ompi_mpi_double");
      case DType::i32: return library.function<char>("ompi_mpi_int32_t");
      case DType::i64: return library.function<char>("ompi_mpi_int64_t");
      default: return nullptr;
    }
  }
  static Handle operation(const DynamicLibrary& library, ReduceKind kind) {
    switch (kind) {
      case ReduceKind::sum: return library.function<char>("ompi_mpi_op_sum");
      case ReduceKind::prod: return library.function<char>("ompi_mpi_op_prod");
      default: return nullptr;  // MPI does not say what its maximum does with NaN
    }
  }
};

struct Mpich {
  using Handle = int;
  static constexpr const char* kName = "MPICH";
  static std::vector<std::string> files() { return {"libmpich.so.12", "libmpi.so.12", "libmpich.so"}; }
  static void* ignored_status() { return reinterpret_cast<void*>(1); }
  static Handle world(const DynamicLibrary&) { return 0x44000000; }
  static Handle bytes(const DynamicLibrary&) { return 0x4c00010d; }
  static Handle type(const DynamicLibrary&, DType dtype) {
    switch (dtype) {
      case DType::f32: return 0x4c00040a;
      case DType::f64: return 0x4c00080b;
      case DType::i32: return 0x4c000405;  // int
      case DType::i64: return 0x4c000807;  // long
      default: return 0;
    }
  }
  static Handle operation(const DynamicLibrary&, ReduceKind kind) {
    switch (kind) {
      case ReduceKind::sum: return 0x58000003;
      case ReduceKind::prod: return 0x58000004;
      default: return 0;
    }
  }
};

template <class Abi>
class Bound final : public MpiLibrary {
  using Handle = typename Abi::Handle;

 public:
  Bound(const DynamicLibrary& library, std::chrono::nanoseconds deadline) : library_(library) {
    bind(init_thread_, "MPI_Init_thread");
    bind(comm_rank_, "MPI_Comm_rank");
    bind(comm_size_, "MPI_Comm_size");
    bind(comm_split_, "MPI_Comm_split");
    bind(isend_, "MPI_Isend");
    bind(irecv_, "MPI_Irecv");
    bind(iallreduce_, "MPI_Iallreduce");
    bind(test_, "MPI_Test");
    bind(finalize_, "MPI_Finalize");
    bind(version_, "MPI_Get_library_version");
    int provided = 0;
    constexpr int wanted = 2;  // MPI_THREAD_SERIALIZED, in both interfaces
    {
      const Watchdog watchdog("MPI did not start", deadline);
      check(init_thread_(nullptr, nullptr, wanted, &provided), "MPI_Init_thread");
    }
    if (provided < wanted)
      throw Error(ErrorCode::unavailable, fmt::format("{} ({}) was built for one thread", library_.name(), Abi::kName),
                  "an MPI library that offers MPI_THREAD_SERIALIZED is needed");
    groups_.push_back(Abi::world(library_));
    check(comm_rank_(groups_[0], &rank_), "MPI_Comm_rank");
    check(comm_size_(groups_[0], &size_), "MPI_Comm_size");
  }

  std::string version() const override {
    std::vector<char> text(8192);
    int length = 0;
    version_(text.data(), &length);
    const std::string all(text.data(), static_cast<std::size_t>(length));
    return all.substr(0, all.find_first_of(",\n"));
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Group split(int color) override {
    Handle group{};
    check(comm_split_(groups_[0], color, rank_, &group), "MPI_Comm_split");
    groups_.push_back(group);
    return static_cast<Group>(groups_.size()) - 1;
  }

  Request send(const void* data, std::size_t bytes, int to, int tag) override {
    Handle request{};
    check(isend_(data, count_of(bytes), Abi::bytes(library_), to, tag, groups_[0], &request), "MPI_Isend");
    return keep(request);
  }
  Request receive(void* data, std::size_t bytes, int from, int tag) override {
    Handle request{};
    check(irecv_(data, count_of(bytes), Abi::bytes(library_), from, tag, groups_[0], &request), "MPI_Irecv");
    return keep(request);
  }
  bool can_reduce(DType dtype, ReduceKind kind) const override {
    return Abi::type(library_, dtype) != Handle{} && Abi::operation(library_, kind) != Handle{};
  }
  Request all_reduce(const void* from, void* to, std::int64_t elements, DType dtype, ReduceKind kind, Group group) override {
    Handle request{};
    check(iallreduce_(from, to, count_of(static_cast<std::size_t>(elements)), Abi::type(library_, dtype),
                      Abi::operation(library_, kind), groups_[static_cast<std::size_t>(group)], &request),
          "MPI_Iallreduce");
    return keep(request);
  }
  bool test(Request request) override {
    int done = 0;
    check(test_(&requests_[static_cast<std::size_t>(request)], &done, Abi::ignored_status()), "MPI_Test");
    if (done != 0) free_.push_back(request);
    return done != 0;
  }
  void finish() override { check(finalize_(), "MPI_Finalize"); }

 private:
  template <class Function>
  void bind(Function*& function, const char* symbol) {
    function = library_.function<Function>(symbol);
    if (!function)
      throw Error(ErrorCode::unavailable, fmt::format("{} ({}) has no {}", library_.name(), Abi::kName, symbol),
                  "Open MPI 4 or 5, or MPICH 4, is needed");
  }
  static void check(int error, const char* call) {
    if (error != 0) throw Error(ErrorCode::unavailable, fmt::format("{} failed with error {} of {}", call, error, Abi::kName));
  }
  static int count_of(std::size_t count) {
    if (count > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      throw Error(ErrorCode::internal, fmt::format("a message of {} elements is too large for one call of MPI", count));
    return static_cast<int>(count);
  }
  Request keep(Handle request) {
    if (free_.empty()) {
      requests_.push_back(request);
      return static_cast<Request>(requests_.size()) - 1;
    }
    const Request id = free_.back();
    free_.pop_back();
    requests_[static_cast<std::size_t>(id)] = request;
    return id;
  }

  DynamicLibrary library_;
  int rank_ = 0, size_ = 1;
  std::vector<Handle> groups_;
  std::vector<Handle> requests_;
  std::vector<Request> free_;
  int (*init_thread_)(int*, char***, int, int*) = nullptr;
  int (*comm_rank_)(Handle, int*) = nullptr;
  int (*comm_size_)(Handle, int*) = nullptr;
  int (*comm_split_)(Handle, int, int, Handle*) = nullptr;
  int (*isend_)(const void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*irecv_)(void*, int, Handle, int, int, Handle, Handle*) = nullptr;
  int (*iallreduce_)(const void*, void*, int, Handle, Handle, Handle, Handle*) = nullptr;
  int (*test_)(Handle*, int*, void*) = nullptr;
  int (*finalize_)() = nullptr;
  int (*version_)(char*, int*) = nullptr;
};

template <class Abi>
std::unique_ptr<MpiLibrary> load_as(std::chrono::nanoseconds deadline) {
  const DynamicLibrary library = DynamicLibrary::load(Abi::files());
  if (!library)
    throw Error(ErrorCode::unavailable,
                fmt::format("this process was started by {}, but its library cannot be loaded: {}", Abi::kName, library.error()),
                fmt::format("install it (Debian: {})", std::string_view(Abi::kName) == "MPICH" ? "libmpich12" : "libopenmpi3"));
  return std::make_unique<Bound<Abi>>(library, deadline);
}

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

}  // namespace

bool MpiLibrary::started_this_process() { return is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMI_SIZE"); }

std::unique_ptr<MpiLibrary> MpiLibrary::load(std::chrono::nanoseconds deadline) {
  if (is_set("OMPI_COMM_WORLD_SIZE")) return load_as<OpenMpi>(deadline);
  if (is_set("PMI_SIZE")) return load_as<Mpich>(deadline);
  throw Error(ErrorCode::failed_precondition, "this process was not started by MPI",
              "start it with mpirun -n N, or srun --mpi=pmi2 for MPICH");
}

}  // namespace tenon::mesh
