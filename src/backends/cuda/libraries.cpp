#include "backends/cuda/libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <span>
#include <vector>

#include "base/system/dynamic_library.h"

namespace tenon::cuda {
namespace {

std::vector<std::string> everywhere(std::span<const std::string> names) {
  std::vector<std::string> all(names.begin(), names.end());
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = std::getenv(variable); folder && *folder == '/') folders.emplace_back(folder);
  folders.emplace_back("/usr/local/cuda");
  for (const std::string& folder : folders)
    for (const std::string& name : names) all.push_back(fmt::format("{}/lib64/{}", folder, name));
  return all;
}

constexpr const char* kInstallNccl = "install NVIDIA's libnccl2, or put the folder of libnccl.so.2 into LD_LIBRARY_PATH";

struct Symbol {
  const char* name;
  void** address;
};

// The name of the first symbol the library lacks; null if it has all.
const char* fill(const DynamicLibrary& library, std::span<const Symbol> symbols) {
  for (const Symbol& symbol : symbols) {
    *symbol.address = reinterpret_cast<void*>(library.function<void()>(symbol.name));
    if (!*symbol.address) return symbol.name;
  }
  return nullptr;
}

template <class Table>
struct Loaded {
  Table table;
  std::string problem;
};

template <class Table>
Loaded<Table> load(Table& table, std::vector<std::string> names, std::span<const Symbol> symbols,
                   std::span<const Symbol> optional = {}) {
  Loaded<Table> loaded;
  const DynamicLibrary library = DynamicLibrary::load(names);
  if (!library)
    loaded.problem = library.error();
  else if (const char* missing = fill(library, symbols))
    loaded.problem = fmt::format("{} has no function {}", library.name(), missing);
  for (const Symbol& symbol : optional)
    if (loaded.problem.empty()) fill(library, std::span(&symbol, 1));
  loaded.table = table;
  return loaded;
}

#define TENON_CUDA_SYMBOL(member, symbol, ...) {symbol, reinterpret_cast<void**>(&table.member)},

Loaded<Driver> load_driver() {
  Driver table;
  const Symbol symbols[] = {TENON_CUDA_DRIVER(TENON_CUDA_SYMBOL)}, optional[] = {TENON_CUDA_DRIVER_OPTIONAL(TENON_CUDA_SYMBOL)};
  return load(table, {"libcuda.so.1"}, symbols, optional);
}

Loaded<Nvrtc> load_nvrtc() {
  Nvrtc table;
  const Symbol symbols[] = {TENON_CUDA_NVRTC(TENON_CUDA_SYMBOL)};
  const std::string names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  return load(table, everywhere(names), symbols);
}

Loaded<BlasLibrary> load_blas() {
  BlasLibrary table;
  const Symbol symbols[] = {TENON_CUDA_BLAS(TENON_CUDA_SYMBOL)};
  const std::string names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
  return load(table, everywhere(names), symbols);
}

std::string nccl_version(const nccl::Library& table) {
  int code = 0;
  if (table.version(&code) != nccl::kSuccess) code = 0;
  // Before 2.9 the major number counted thousands.
  const int major = code >= 10000 ? code / 10000 : code / 1000;
  const int rest = code >= 10000 ? code % 10000 : code % 1000;
  std::string version = fmt::format("{}.{}.{}", major, rest / 100, rest % 100);
  if (major != 2 || code < nccl::kOldest)
    throw Error(ErrorCode::unavailable, fmt::format("NCCL {} cannot be used: Tenon needs 2.14 or a later 2.x", version),
                kInstallNccl);
  return version;
}

NcclLibrary load_nccl_from(std::vector<std::string> names) {
  nccl::Library table;
  const Symbol symbols[] = {TENON_NCCL(TENON_CUDA_SYMBOL)};
  const Loaded<nccl::Library> loaded = load(table, std::move(names), symbols);
  if (!loaded.problem.empty()) throw Error(ErrorCode::unavailable, "NCCL cannot be used: " + loaded.problem, kInstallNccl);
  return {loaded.table, nccl_version(loaded.table)};
}
#undef TENON_CUDA_SYMBOL

}  // namespace

const Driver& driver() {
  static const Loaded<Driver>* const loaded = new Loaded<Driver>(load_driver());
  if (!loaded->problem.empty()) throw Error(ErrorCode::unavailable, "CUDA: " + loaded->problem, "install the NVIDIA driver");
  return loaded->table;
}

bool is_driver_loaded() noexcept {
  void* const handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (handle) dlclose(handle);  // only the count of this call
  return handle != nullptr;
}

const Nvrtc& nvrtc() {
  static const Loaded<Nvrtc>* const loaded = new Loaded<Nvrtc>(load_nvrtc());
  if (!loaded->problem.empty())
    throw Error(ErrorCode::unavailable, "CUDA: the compiler NVRTC cannot be used: " + loaded->problem,
                "install libnvrtc (part of the CUDA toolkit), or set CUDA_HOME to the toolkit's folder");
  return loaded->table;
}

const BlasLibrary* blas_library() {
  static const Loaded<BlasLibrary>* const loaded = new Loaded<BlasLibrary>(load_blas());
  return loaded->problem.empty() ? &loaded->table : nullptr;
}

NcclLibrary load_nccl(std::span<const std::string> names) { return load_nccl_from({names.begin(), names.end()}); }

const NcclLibrary& nccl_library() {
  const std::string names[] = {"libnccl.so.2"};
  static const NcclLibrary* const loaded = new NcclLibrary(load_nccl_from(everywhere(names)));
  return *loaded;
}

bool is_fatal(Result result) noexcept {
  switch (result) {
    case 4:    // deinitialised
    case 46:   // device unavailable
    case 201:  // invalid context
    case 214:  // uncorrectable memory error
    case 220:  // uncorrectable link error
    case 226:  // contained memory error
    case 304:  // operating system
    case 700:  // illegal address
    case 702:  // launch timeout
    case 709:  // context destroyed
    case 710:  // assertion
    case 714:  // hardware stack
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
    case 806:  // the multi-process server does not answer
    case 810:  // the multi-process server's client was ended
    case 911:  // external device
    case 999:  // unknown
      return true;
    default: return false;
  }
}

namespace {

ErrorCode code_of(Result result) {
  switch (result) {
    case 2:    // out of memory
    case 701:  // launch out of resources
    case 808:  // too many clients of the multi-process server
      return ErrorCode::resource_exhausted;
    case 800: return ErrorCode::permission_denied;
    case 34:   // the library is the one the toolkit has for linking only
    case 100:  // no device
    case 101:  // invalid device
    case 802:  // system not ready
    case 803:  // library and kernel module do not match
    case 804:
    case 805:
    case 807: return ErrorCode::unavailable;
    case 209:  // no binary for this card
    case 218:
    case 222: return ErrorCode::unimplemented;
    default: return is_fatal(result) ? ErrorCode::unavailable : ErrorCode::internal;
  }
}

std::string hint_of(Result result) {
  switch (result) {
    case 2: return "free some of the card's memory; nvidia-smi shows other users of the card";
    case 46: return "another process holds the card exclusively, or the card needs a reset";
    case 34: return "the toolkit's stub libcuda.so.1, which is for linking only, was found first; remove it from LD_LIBRARY_PATH";
    case 100:
    case 101: return "CUDA_VISIBLE_DEVICES may hide the card";
    case 803: return "the driver was updated; restart the machine";
    default: return is_fatal(result) ? "run the program again; tensors that were only on the card are lost" : "";
  }
}

}  // namespace

Error error_of(const Driver& driver, Result result, std::string_view device, std::string_view what) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.error_name) driver.error_name(result, &name);
  if (driver.error_string) driver.error_string(result, &text);
  return Error(
      code_of(result),
      fmt::format("{}: {} failed: {}, {}", device, what, name ? name : fmt::format("error {}", result), text ? text : ""),
      hint_of(result));
}

}  // namespace tenon::cuda
