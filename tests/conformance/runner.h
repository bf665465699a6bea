// Runner: runs conformance cases on one open device and judges the results.
//
// In addition to the values it checks that the inputs and the tensors allocated around the outputs are unchanged, that every
// element of an output is written (it has another value before), and that a second run gives the same bytes.
//
// Thread safety: one thread at a time. The device must outlive the runner.
//
//   Runner runner(*device, {.seed = 1});
//   Verdict v = runner.run(find_op("softmax"), DType::bf16);
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "conformance/cases/cases.h"
#include "conformance/judge/compare.h"
#include "tenon/backend.h"

namespace tenon::conformance {

enum class Status : std::uint8_t {
  pass,
  fail,
  unsupported,  // the backend says it never will; the reason is kept
  unavailable,  // the device cannot be used now
};
std::string_view name(Status status) noexcept;

// The outcome of one op in one dtype.
struct Verdict {
  Status status = Status::pass;
  std::string reason;                 // of unsupported and unavailable
  std::vector<std::string> failures;  // a paragraph each, the first few
  std::int64_t cases = 0, elements = 0, unchecked = 0;
  std::int64_t random_elements = 0, random_not_rounded = 0;
  double worst_ulp = 0;         // in the cases of the op alone, or in a chain that changes nothing
  double worst_share = 0;       // of the bound, in all cases
  std::set<std::string> tiers;  // in which a device with several of them computed
};

struct RunnerOptions {
  std::uint64_t seed = 1;
  Extent extent = Extent::full;
  std::optional<int> only_case;
  int every = 1;   // run only one of this many cases: a sample, for devices that compile slowly
  int sample = 0;  // at most this many cases of each op and dtype, spread over all of them; 0: all
  // Called with programs that will be compiled one by one, for devices that compile them faster together.
  std::function<void(std::span<const Graph>)> prepare = {};
  std::string command;  // how this program was called, up to the op: for the line that repeats a failure
};

class Runner {
 public:
  Runner(OpenDevice& device, RunnerOptions options);
  ~Runner();

  // Passes the programs of an op to RunnerOptions::prepare. Errors are left to run().
  void prepare(const OpInfo& op, std::span<const DType> dtypes);

  // Never throws because of the device; its errors become the verdict.
  Verdict run(const OpInfo& op, DType dtype);

 private:
  struct Guard;

  std::vector<Case> chosen_cases(const OpInfo& op, DType dtype) const;
  void run_case(const Case& c, Verdict& verdict);
  std::vector<HostArray> execute(const Case& c, const Program& program, Verdict& verdict);
  void poison(Buffer& buffer);
  void judge(const Case& c, const Program& program, const std::vector<HostArray>& results, Verdict& verdict);
  void report(const Case& c, Verdict& verdict, const std::string& what) const;

  OpenDevice& device_;
  RunnerOptions options_;
  std::int64_t seen_ = 0;  // cases so far, run or not
  struct Filler;
  std::map<std::string, std::unique_ptr<Filler>> fillers_;
};

}  // namespace tenon::conformance
