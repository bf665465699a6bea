#include "manager/routing/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>

#include "base/siphash.h"
#include "graph/work.h"
#include "tenon/array.h"

namespace tenon {
namespace {

namespace json = boost::json;

constexpr double kMostSeconds = 1e6;  // a file that claims more is wrong

bool is_sane(double seconds) { return std::isfinite(seconds) && seconds >= 0 && seconds <= kMostSeconds; }

// What a device of a kind is taken for until it has been measured.
struct Guess {
  TimeRates compute;   // fixed, for a byte, for an operation
  TimeRates transfer;  // fixed, for a byte
  double open_seconds, compile_seconds;
};

Guess guess_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu: return {{5e-6, 1e-10, 5e-11}, {1e-6, 1e-11, 0}, 0, 1e-4};
    case DeviceKind::gpu: return {{2e-5, 1e-12, 1e-13}, {2e-5, 8e-11, 0}, 0.3, 0.05};
    case DeviceKind::tpu: return {{1e-4, 1e-12, 2e-14}, {1e-4, 2e-10, 0}, 5, 0.5};
    case DeviceKind::tenstorrent: return {{1e-4, 4e-12, 5e-14}, {1e-4, 2e-10, 0}, 1, 0.5};
    case DeviceKind::other: break;
  }
  return {{1e-4, 1e-11, 1e-12}, {1e-4, 2e-10, 0}, 0.5, 0.1};
}

DeviceProfile fresh(DeviceKind kind) {
  const Guess guess = guess_of(kind);
  DeviceProfile profile;
  profile.compute = TimeModel(guess.compute);
  profile.upload = profile.download = TimeModel(guess.transfer);
  return profile;
}

// A key begins with the kind: see DeviceKey.
DeviceKind kind_of_key(std::string_view key) {
  const std::string_view word = key.substr(0, key.find('|'));
  return parse_device_kind(word).value_or(DeviceKind::other);
}

// Those used least recently go, but not the one under |kept|.
template <class Map>
void drop_oldest(Map& map, std::size_t limit, const typename Map::key_type* kept = nullptr) {
  while (map.size() > limit) {
    auto oldest = map.end();
    for (auto entry = map.begin(); entry != map.end(); ++entry)
      if ((kept == nullptr || entry->first != *kept) && (oldest == map.end() || entry->second.used < oldest->second.used))
        oldest = entry;
    map.erase(oldest);
  }
}

// --- JSON ---
json::array numbers(std::span<const double> values) { return json::array(values.begin(), values.end()); }

json::object to_json(const DeviceProfile& device) {
  json::object programs;
  for (const auto& [program, known] : device.programs) {
    const std::size_t count = std::min<std::size_t>(known.runs, ProgramProfile::kRuns);
    programs[fmt::format("{:016x}{:016x}", program.high, program.low)] = {
        {"seconds", numbers(std::span(known.last_seconds).first(count))},
        {"runs", known.runs},
        {"compile", known.compile_seconds},
        {"used", known.used}};
  }
  const auto mean = [](const RecentMean& value) { return json::array{value.mean(), value.count()}; };
  return {{"open", mean(device.open)},
          {"close", mean(device.close)},
          {"compile", mean(device.compile)},
          {"hold", mean(device.hold)},
          {"upload", numbers(device.upload.numbers())},
          {"download", numbers(device.download.numbers())},
          {"compute", numbers(device.compute.numbers())},
          {"used", device.used},
          {"programs", std::move(programs)}};
}

std::vector<double> read_numbers(const json::object& object, std::string_view key) {
  std::vector<double> values;
  const json::value* found = object.if_contains(key);
  if (found == nullptr || !found->is_array()) return values;
  for (const json::value& value : found->get_array()) {
    boost::system::error_code error;
    const double number = value.to_number<double>(error);
    if (error || !std::isfinite(number)) return {};
    values.push_back(number);
  }
  return values;
}

std::int64_t read_integer(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  if (found == nullptr) return 0;
  boost::system::error_code error;
  const auto number = found->to_number<std::int64_t>(error);
  return error ? 0 : number;
}

RecentMean read_mean(const json::object& object, std::string_view key) {
  const std::vector<double> pair = read_numbers(object, key);
  const bool is_mean = pair.size() == 2 && is_sane(pair[0]) && pair[1] >= 0 && pair[1] <= 8;
  return is_mean ? RecentMean(pair[0], pair[1]) : RecentMean();
}

std::optional<GraphKey> read_key(std::string_view text) {
  constexpr std::size_t kDigits = 16;  // of each half
  GraphKey key;
  if (text.size() != 2 * kDigits) return std::nullopt;
  for (std::uint64_t* half : {&key.high, &key.low}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + kDigits, *half, 16);
    if (error != std::errc() || end != text.data() + kDigits) return std::nullopt;
    text.remove_prefix(kDigits);
  }
  return key;
}

void read_programs(const json::object& object, DeviceProfile& device) {
  for (const auto& entry : object) {
    const std::string_view name = entry.key();
    const std::optional<GraphKey> program = read_key(name);
    if (!program || !entry.value().is_object()) continue;
    const json::object& fields = entry.value().get_object();
    const std::vector<double> seconds = read_numbers(fields, "seconds");
    if (seconds.empty() || seconds.size() > ProgramProfile::kRuns || !std::all_of(seconds.begin(), seconds.end(), is_sane))
      continue;
    ProgramProfile known;
    std::copy(seconds.begin(), seconds.end(), known.last_seconds.begin());
    known.runs = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(read_integer(fields, "runs"), static_cast<std::int64_t>(seconds.size()), 1 << 30));
    const json::value* compile = fields.if_contains("compile");
    boost::system::error_code error;
    const double compile_seconds = compile == nullptr ? 0 : compile->to_number<double>(error);
    known.compile_seconds = !error && is_sane(compile_seconds) ? compile_seconds : 0;
    known.used = read_integer(fields, "used");
    device.programs[*program] = known;
  }
  drop_oldest(device.programs, Profile::kMaxPrograms);
}

DeviceProfile read_device(std::string_view key, const json::object& object) {
  DeviceProfile device = fresh(kind_of_key(key));
  device.open = read_mean(object, "open");
  device.close = read_mean(object, "close");
  device.compile = read_mean(object, "compile");
  device.hold = read_mean(object, "hold");
  device.upload.restore(read_numbers(object, "upload"));
  device.download.restore(read_numbers(object, "download"));
  device.compute.restore(read_numbers(object, "compute"));
  device.used = read_integer(object, "used");
  const json::value* programs = object.if_contains("programs");
  if (programs != nullptr && programs->is_object()) read_programs(programs->get_object(), device);
  return device;
}

}  // namespace

Work work_of(const Graph& graph) {
  const Cost least = cost(graph);
  Work work;
  work.program = graph.fingerprint();
  work.bytes = static_cast<double>(least.bytes_read + least.bytes_written);
  work.flops = least.flops;
  for (const NodeId id : graph.inputs()) work.upload_bytes += storage_bytes(graph[id].dtype, graph[id].shape);
  for (const NodeId id : graph.outputs()) work.download_bytes += storage_bytes(graph[id].dtype, graph[id].shape);
  return work;
}

void RecentMean::add(double value) {
  count_ = std::min(count_ + 1, 8.0);
  mean_ += (value - mean_) / count_;
}

void ProgramProfile::add(double seconds, std::int64_t now) {
  std::move_backward(last_seconds.begin(), last_seconds.end() - 1, last_seconds.end());
  last_seconds[0] = seconds;
  ++runs;
  used = now;
}

double ProgramProfile::best() const {
  const auto end = last_seconds.begin() + std::min<std::ptrdiff_t>(runs, kRuns);
  return runs == 0 ? 0 : *std::min_element(last_seconds.begin(), end);
}

DeviceKey::DeviceKey(const DeviceInfo& device)
    : text(fmt::format("{}|{}|{}", name(device.kind), device.id, device.name)),
      kind(device.kind) {
  if (!is_simulated(device)) return;
  // A simulated device is what it is said to be; told otherwise it is another one.
  std::string description;
  for (const auto& [name, value] : device.details) description += fmt::format("{}={};", name, value);
  text += fmt::format("|{:016x}", SipHash::of({}, description).low);
}

RunTimes RunTimes::of(const Timeline& timeline, bool was_compiled) {
  RunTimes times;
  for (const Span& span : timeline) {
    if (!is_sane(span.seconds)) continue;
    if (span.stage == "compiling" && !was_compiled) times.compile = span.seconds;
    if (span.stage == "uploading") times.upload = span.seconds;
    if (span.stage == "computing") times.compute = span.seconds;
    if (span.stage == "downloading") times.download = span.seconds;
  }
  return times;
}

DeviceProfile& Profile::of(const DeviceKey& device, std::int64_t now) {
  const auto [entry, is_new] = devices_.try_emplace(device.text);
  if (is_new) {
    entry->second = fresh(device.kind);
    drop_oldest(devices_, kMaxDevices, &device.text);
  }
  entry->second.used = now;
  return entry->second;
}

void Profile::add_open(const DeviceKey& device, double seconds, std::int64_t now) {
  if (is_sane(seconds)) of(device, now).open.add(seconds);
}

void Profile::add_close(const DeviceKey& device, double seconds, std::int64_t now) {
  if (is_sane(seconds)) of(device, now).close.add(seconds);
}

void Profile::add_hold(const DeviceKey& device, double seconds, std::int64_t now) {
  if (is_sane(seconds)) of(device, now).hold.add(seconds);
}

void Profile::add_run(const DeviceKey& device, const Work& work, const RunTimes& times, std::int64_t now) {
  if (!times.compute) return;
  DeviceProfile& profile = of(device, now);
  ProgramProfile& program = profile.programs[work.program];
  program.add(*times.compute, now);
  if (times.compile) {
    program.compile_seconds = *times.compile;
    profile.compile.add(*times.compile);
  }
  drop_oldest(profile.programs, kMaxPrograms, &work.program);
  // One program that runs all the time must not drown what the others showed, nor cost time.
  if (program.runs > 8 && program.runs % 16 != 0) return;
  profile.compute.add(work.bytes, work.flops, *times.compute);
  if (times.upload && work.upload_bytes > 0) profile.upload.add(static_cast<double>(work.upload_bytes), 0, *times.upload);
  if (times.download && work.download_bytes > 0)
    profile.download.add(static_cast<double>(work.download_bytes), 0, *times.download);
}

Stages Profile::predict(const Candidate& candidate, const Work& work) const {
  const DeviceInfo& device = candidate.device;
  const auto found = devices_.find(DeviceKey(device).text);
  const DeviceProfile unknown = found == devices_.end() ? fresh(device.kind) : DeviceProfile();
  const DeviceProfile& known = found == devices_.end() ? unknown : found->second;
  const Guess guess = guess_of(device.kind);

  Stages stages;
  if (candidate.ahead > 0 || candidate.queue_seconds)
    stages.queue_seconds = candidate.queue_seconds.value_or(candidate.ahead * known.hold.or_else(1));
  if (!candidate.is_open)
    stages.open_seconds = known.open.or_else(candidate.latency ? candidate.latency->open_seconds : guess.open_seconds);
  const auto program = known.programs.find(work.program);
  const bool has_run = program != known.programs.end() && program->second.runs > 0;
  if (!candidate.is_compiled)
    stages.compile_seconds = has_run ? program->second.compile_seconds : known.compile.or_else(guess.compile_seconds);
  const auto upload = static_cast<double>(candidate.upload_bytes.value_or(work.upload_bytes));
  if (upload > 0) stages.transfer_seconds += known.upload.predict(upload, 0);
  if (work.download_bytes > 0) stages.transfer_seconds += known.download.predict(static_cast<double>(work.download_bytes), 0);
  const double modelled = known.compute.predict(work.bytes, work.flops);
  // A first run touches fresh memory and cold caches, and may take a hundred times as long as the next one.
  stages.compute_seconds = !has_run                    ? modelled
                           : program->second.runs == 1 ? std::min(program->second.best(), modelled)
                                                       : program->second.best();
  stages.is_measured = has_run;
  return stages;
}

Latency Profile::latency(const DeviceKey& device, const Latency& declared) const {
  const auto found = devices_.find(device.text);
  if (found == devices_.end()) return declared;
  return {found->second.open.or_else(declared.open_seconds), found->second.close.or_else(declared.close_seconds)};
}

std::string Profile::to_text() const {
  json::object devices;
  for (const auto& [key, device] : devices_) devices[key] = to_json(device);
  return json::serialize(json::object{{"schema", 1}, {"devices", std::move(devices)}});
}

Profile Profile::from_text(std::string_view text) {
  Profile profile;
  boost::system::error_code error;
  const json::value document = json::parse(text, error);
  if (error || !document.is_object() || read_integer(document.get_object(), "schema") != 1) return profile;
  const json::value* devices = document.get_object().if_contains("devices");
  if (devices == nullptr || !devices->is_object()) return profile;
  for (const auto& entry : devices->get_object())
    if (entry.value().is_object())
      profile.devices_[std::string(entry.key())] = read_device(entry.key(), entry.value().get_object());
  drop_oldest(profile.devices_, kMaxDevices);
  return profile;
}

}  // namespace tenon
