#include "manager/ledger/accounts.h"

#include <algorithm>
#include <utility>

namespace tenon {
namespace {

constexpr const char* kOk = "ok";
constexpr const char* kOthers = "(others)";

using Kind = DeviceEvent::Kind;

bool is_processor(const std::string& device) { return device.starts_with("cpu:"); }

SystemTime earlier(SystemTime time, double seconds) {
  return time - std::chrono::duration_cast<SystemTime::duration>(std::chrono::duration<double>(seconds));
}

struct StageSeconds {
  double computing = 0, queued = 0;
};

StageSeconds seconds_of(const Timeline& timeline) {
  StageSeconds seconds;
  for (const Span& span : timeline) {
    if (span.seconds == 0) continue;
    if (span.stage == "computing")
      seconds.computing += span.seconds;
    else if (span.stage == "queued")
      seconds.queued += span.seconds;
  }
  return seconds;
}

// Programs may be named after whole expressions; a row wants a word.
std::string shortened(const std::string& program) {
  constexpr std::size_t kLongest = 80;
  std::string made = program.substr(0, kLongest);
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  if (made.size() < program.size() && continues(program[made.size()])) {
    while (!made.empty() && continues(made.back())) made.pop_back();
    if (!made.empty()) made.pop_back();
  }
  for (char& c : made)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return made;
}

void merge(Use& into, const Use& from) {
  into.begin = std::min(into.begin, from.begin);
  into.runs += from.runs;
  into.leases += from.leases;
  into.opens += from.opens;
  into.failures += from.failures;
  into.open_seconds += from.open_seconds;
  into.held_seconds += from.held_seconds;
  into.compute_seconds += from.compute_seconds;
  into.queued_seconds += from.queued_seconds;
  into.bytes += from.bytes;
}

}  // namespace

Use& LedgerAccounts::row(const std::string& device, const std::string& program, const std::string& result, std::uint64_t epoch,
                         SystemTime begin) {
  if (!is_processor(device)) has_accelerator_ = true;
  Key key{device, program.empty() ? process_ : program, result, epoch};
  auto found = rows_.find(key);
  if (found == rows_.end() && rows_.size() >= kMostRows) {
    std::get<3>(key) = 0;
    found = rows_.find(key);
    if (found == rows_.end() && rows_.size() >= 2 * kMostRows) std::get<1>(key) = kOthers;
  }
  if (found == rows_.end()) found = rows_.try_emplace(key).first;
  Use& use = found->second;
  if (use.device.empty()) {
    use.begin = begin;
    use.device = device;
    use.program = std::get<1>(key);
    use.result = result;
    use.epoch = std::get<3>(key);
  }
  use.begin = std::min(use.begin, begin);
  return use;
}

const std::string& LedgerAccounts::program_on(const std::string& device) const {
  const auto found = last_program_.find(device);
  return found != last_program_.end() ? found->second : process_;
}

void LedgerAccounts::book(const std::string& device, Open& open, const std::string& program, SystemTime until) {
  if (open.opens > 0) row(device, program, kOk, open.epoch, open.booked_until).opens += std::exchange(open.opens, 0);
  // Runs of several threads overlap, and clocks are set back: time is booked once, and never less than none.
  if (until <= open.booked_until) return;
  row(device, program, kOk, open.epoch, open.booked_until).open_seconds +=
      std::chrono::duration<double>(until - open.booked_until).count();
  open.booked_until = until;
}

Use& LedgerAccounts::row_of(const DeviceEvent& run, const std::string& program, SystemTime begin) {
  if (!run.message.empty()) return row(run.device, program, "run_failed", run.epoch, begin);
  if (!last_ || last_->device != run.device || last_->program != program || last_->epoch != run.epoch)
    last_ = &row(run.device, program, kOk, run.epoch, begin);
  last_->begin = std::min(last_->begin, begin);
  return *last_;
}

void LedgerAccounts::add_run(const DeviceEvent& event) {
  std::string given;
  if (!event.program.empty()) given = shortened(event.program);
  const std::string& program = given.empty() ? process_ : given;
  const bool has_failed = !event.message.empty();
  const SystemTime begin = earlier(event.when, event.seconds);
  Use& use = row_of(event, program, begin);
  ++use.runs;
  use.failures += has_failed ? 1 : 0;
  const StageSeconds stages = seconds_of(event.timeline);
  use.compute_seconds += stages.computing;
  use.queued_seconds += stages.queued;
  use.bytes += event.bytes;
  if (is_processor(event.device)) {
    const double seconds = std::max(0.0, event.seconds - stages.queued);
    use.open_seconds += seconds;
    processor_seconds_ += seconds;
    return;
  }
  const auto found = open_.find(event.device);
  if (found == open_.end()) return;
  Open& open = found->second;
  if (!open.program.empty()) book(event.device, open, open.program, std::min(begin, event.when));
  open.program = last_program_[event.device] = program;
  open.epoch = event.epoch;
  book(event.device, open, program, event.when);
}

void LedgerAccounts::end_open(const DeviceEvent& event) {
  const auto found = open_.find(event.device);
  if (found == open_.end()) return;
  book(event.device, found->second, program_on(event.device), event.when);
  open_.erase(found);
}

void LedgerAccounts::add(const DeviceEvent& event) {
  if (event.kind == Kind::ran) return add_run(event);
  // Leases of the CPU come with every run and say nothing that the run does not.
  if (is_processor(event.device)) return;
  const auto failure = [&](const char* result) {
    ++row(event.device, program_on(event.device), result, event.epoch, earlier(event.when, event.seconds)).failures;
  };
  switch (event.kind) {
    case Kind::opened: {
      end_open(event);
      open_[event.device] = {.booked_until = earlier(event.when, event.seconds), .program = "", .epoch = event.epoch};
      last_program_.erase(event.device);
      has_accelerator_ = true;
      break;
    }
    case Kind::open_failed: failure("open_failed"); break;
    case Kind::closed: end_open(event); break;
    case Kind::close_failed:
      failure("close_failed");
      end_open(event);
      break;
    case Kind::lost:
      failure("lost");
      end_open(event);
      break;
    case Kind::released: {
      Use& use = row(event.device, program_on(event.device), kOk, event.epoch, earlier(event.when, event.seconds));
      ++use.leases;
      use.held_seconds += event.seconds;
      break;
    }
    case Kind::granted:
    case Kind::yielded:
    case Kind::ran: break;
  }
}

void LedgerAccounts::book_open_time(SystemTime now) {
  for (auto& [device, open] : open_) book(device, open, open.program.empty() ? process_ : open.program, now);
}

std::vector<Use> LedgerAccounts::take() {
  std::vector<Use> uses;
  uses.reserve(rows_.size());
  for (auto& [key, use] : rows_) uses.push_back(std::move(use));
  rows_.clear();
  last_ = nullptr;
  processor_seconds_ = 0;
  has_accelerator_ = false;
  return uses;
}

void LedgerAccounts::give_back(std::vector<Use> uses) {
  for (const Use& use : uses) {
    merge(row(use.device, use.program, use.result, use.epoch, use.begin), use);
    if (is_processor(use.device)) processor_seconds_ += use.open_seconds;
  }
}

}  // namespace tenon
