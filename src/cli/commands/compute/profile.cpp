#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "base/system/state_directory.h"
#include "base/text/units.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "manager/routing/profile_store.h"
#include "present/text.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

constexpr const char* kNotes =
    R"(What earlier runs took on each device: routing = fastest and cheapest, and run --explain, predict from
it. OPEN, CLOSE and COMPILE are recent means; the rates are fitted to all runs. A device that was never used is
not listed. --clear forgets everything, for example after a change of hardware.

Examples:
  tenon profile
  tenon profile --programs
  tenon profile --json)";

struct ProfileArguments {
  bool programs = false, clear = false;
};

// "gpu|cuda:0|NVIDIA H200" as it is kept.
struct Key {
  std::string kind, id, name;
  explicit Key(const std::string& text) {
    const std::size_t first = text.find('|'), second = text.find('|', first + 1), third = text.find('|', second + 1);
    kind = text.substr(0, first);
    id = text.substr(first + 1, second - first - 1);
    name = text.substr(second + 1, third == std::string::npos ? third : third - second - 1);
  }
};

std::string mean_text(const RecentMean& mean) { return mean.count() > 0 ? format_seconds(mean.mean()) : present::kNothing; }

// A transfer that shares memory takes no time that could be measured.
constexpr double kNoTime = 1e-13;

std::string rate_text(double seconds_each, const char* unit) {
  return seconds_each > kNoTime ? format_rate(1 / seconds_each, unit) : present::kNothing;
}

std::string ago(std::int64_t when, std::int64_t now) {
  return present::duration_text(static_cast<double>(std::max<std::int64_t>(0, now - when))) + " ago";
}

void write_mean(JsonWriter& json, std::string_view name, const RecentMean& mean) {
  json.key(name);
  if (mean.count() > 0)
    json.value(mean.mean());
  else
    json.null();
}

void write_rate(JsonWriter& json, std::string_view name, double seconds_each) {
  json.key(name);
  if (seconds_each > kNoTime)
    json.value(1 / seconds_each);
  else
    json.null();
}

void write(JsonWriter& json, const std::string& file, const Profile& profile) {
  json.member("file", file);
  json.key("devices").begin_array();
  for (const auto& [text, device] : profile.devices()) {
    const Key key(text);
    json.begin_object();
    json.member("id", key.id);
    json.member("kind", key.kind);
    json.member("name", key.name);
    write_mean(json, "open_seconds", device.open);
    write_mean(json, "close_seconds", device.close);
    write_mean(json, "compile_seconds", device.compile);
    write_mean(json, "hold_seconds", device.hold);
    write_rate(json, "upload_bytes_per_second", device.upload.rates().per_x);
    write_rate(json, "download_bytes_per_second", device.download.rates().per_x);
    write_rate(json, "memory_bytes_per_second", device.compute.rates().per_x);
    write_rate(json, "flops_per_second", device.compute.rates().per_y);
    json.seconds("start_seconds", device.compute.rates().fixed);
    json.member("used", device.used);
    json.key("programs").begin_array();
    for (const auto& [program, times] : device.programs) {
      json.begin_object();
      json.member("program", fmt::format("{:016x}{:016x}", program.high, program.low));
      json.seconds("best_seconds", times.best());
      json.seconds("compile_seconds", times.compile_seconds);
      json.member("runs", times.runs);
      json.member("used", times.used);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

void print_programs(const DeviceProfile& device, std::int64_t now, std::ostream& out) {
  for (const auto& [program, times] : device.programs)
    out << fmt::format("    {:016x}  best {}, compiled in {}, {} runs, {}\n", program.high, format_seconds(times.best()),
                       format_seconds(times.compile_seconds), times.runs, ago(times.used, now));
}

void print(const Profile& profile, bool with_programs, const Console& console) {
  if (profile.devices().empty()) {
    console.out << "nothing was measured yet\n";
    return;
  }
  const std::int64_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  present::Rows rows{
      {"DEVICE", "OPEN", "CLOSE", "COMPILE", "UPLOAD", "DOWNLOAD", "MEMORY", "COMPUTE", "PROGRAMS", "USED", "NAME"}};
  for (const auto& [text, device] : profile.devices()) {
    const Key key(text);
    const TimeRates compute = device.compute.rates();
    rows.push_back({key.id, mean_text(device.open), mean_text(device.close), mean_text(device.compile),
                    rate_text(device.upload.rates().per_x, "B/s"), rate_text(device.download.rates().per_x, "B/s"),
                    rate_text(compute.per_x, "B/s"), rate_text(compute.per_y, "FLOP/s"), std::to_string(device.programs.size()),
                    ago(device.used, now), key.name});
  }
  const std::vector<std::string> lines = present::aligned(rows);
  console.out << console.bold(lines[0]) << '\n';
  std::size_t at = 1;
  for (const auto& [text, device] : profile.devices()) {
    console.out << lines[at++] << '\n';
    if (with_programs) print_programs(device, now, console.out);
  }
}

int show_profile(const ProfileArguments& arguments, const Session& session) {
  const std::string directory = state_directory(session.console.environment);
  const std::string file = directory.empty() ? "" : directory + "/profile.json";
  if (arguments.clear) {
    std::error_code failed;
    if (!file.empty() && std::filesystem::exists(file, failed) && !std::filesystem::remove(file, failed))
      throw Error(ErrorCode::permission_denied, fmt::format("{} cannot be removed: {}", file, failed.message()));
    session.console.out << "the profile is empty\n";
    return 0;
  }
  const Profile profile = ProfileStore(file).profile();
  if (session.json)
    print_document(session.console.out, 1, [&](JsonWriter& json) { write(json, file, profile); });
  else
    print(profile, arguments.programs, session.console);
  return 0;
}

}  // namespace

void add_profile_command(Command& app, Session& session) {
  auto arguments = std::make_shared<ProfileArguments>();
  Command* command = app.add_subcommand("profile", "Show what runs took on each device: what routing predicts from");
  command->add_flag("--programs", arguments->programs, "Also list the programs that were measured");
  command->add_flag("--clear", arguments->clear, "Forget all measurements");
  add_output_options(*command, session);
  command->footer(kNotes);
  command->callback(
      [arguments, &session] { session.action = [arguments, &session] { return show_profile(*arguments, session); }; });
}

}  // namespace tenon::cli
