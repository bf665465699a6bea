#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>

#include "base/system/state_directory.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/option_checks.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/top_screen.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

using std::chrono::steady_clock;

constexpr const char* kNotes = R"(Monitors devices without opening them. STATE is free, held or shared (by leases), in use (by a
program without a lease), dirty (the last holder died) or unusable.

Keys: q quits, s changes the order, r reverses it, / filters by id, name, state or holder, K ends the process
that holds the selected device (SIGTERM, after a question), arrows select the device whose queue is shown.
The order and the filter are kept for the next time.
Without a terminal, or with --once, the table is printed once. With --json one document is
printed; with --interval as well, one line of JSON at each interval.

Examples:
  tenon top
  tenon top --once
  tenon top --json --interval 5)";

struct TopArguments {
  bool once = false;
  double interval_seconds = 1;
  bool has_interval = false;
};

// The share of time the CPU was busy since the last call.
class ProcessorLoad {
 public:
  std::optional<double> since_last() {
    std::ifstream file("/proc/stat");
    std::string label;
    std::uint64_t value = 0, total = 0, idle = 0;
    file >> label;
    // user nice system idle iowait irq softirq steal; guests are part of user.
    for (int field = 0; field < 8 && file >> value; ++field) {
      total += value;
      if (field == 3 || field == 4) idle += value;
    }
    const std::uint64_t passed = total - total_, idled = idle - idle_;
    const bool is_first = total_ == 0;
    total_ = total;
    idle_ = idle;
    if (is_first || passed == 0 || idled > passed) return std::nullopt;
    return 1 - static_cast<double>(idled) / static_cast<double>(passed);
  }

 private:
  std::uint64_t total_ = 0, idle_ = 0;
};

TopSample take_sample(ProcessorLoad& load, const Session& session) {
  TopSample sample{.when = std::chrono::system_clock::now(), .devices = {}};
  const std::optional<double> processor = load.since_last();
  for (DeviceInfo& device : process_manager().detect().devices) {
    if (!device.same_as.empty()) continue;
    const std::optional<double> utilisation = utilisation_of(device, processor);
    std::string id = device.id;
    sample.devices.push_back(
        {.device = std::move(device), .queue = {.device = std::move(id), .places = {}}, .utilisation = utilisation});
  }
  const std::optional<RunDirectory> directory = RunDirectory::open_existing(session.console.environment);
  if (!directory) return sample;
  for (const Turnstile& turnstile : Turnstile::all(*directory)) {
    const auto known = std::find_if(sample.devices.begin(), sample.devices.end(),
                                    [&](const DeviceSample& each) { return each.device.id == turnstile.device(); });
    if (known != sample.devices.end()) known->queue = turnstile.queue();
  }
  return sample;
}

TopScreen::Key key_of(const std::string& typed, std::size_t& at) {
  using Key = TopScreen::Key;
  constexpr std::pair<std::string_view, Key> names[] = {
      {"\033[A", Key::up},   {"\033[B", Key::down},     {"\033OA", Key::up},
      {"\033OB", Key::down}, {"\033[5~", Key::page_up}, {"\033[6~", Key::page_down},
      {"\033[H", Key::home}, {"\033[F", Key::end},      {"k", Key::up},
      {"j", Key::down},      {"s", Key::sort},          {"r", Key::reverse},
      {"q", Key::quit},      {"Q", Key::quit},          {"/", Key::filter},
      {"K", Key::kill}};
  const std::string_view rest = std::string_view(typed).substr(at);
  for (const auto& [text, key] : names)
    if (rest.starts_with(text)) {
      at += text.size();
      return key;
    }
  // A sequence that means nothing here is skipped as a whole: its letters are no keys.
  if (rest.starts_with("\033[") || rest.starts_with("\033O")) {
    std::size_t end = 2;
    while (end < rest.size() && (rest[end] < '@' || rest[end] > '~')) ++end;
    at += std::min(rest.size(), end + 1);
  } else {
    ++at;
  }
  return Key::none;
}

// The order and the filter of the last time, in a file of the state directory.
class KeptSetup {
 public:
  KeptSetup(TopScreen& screen, const Session& session) : screen_(screen), folder_(state_directory(session.console.environment)) {
    if (folder_.empty()) return;
    std::ifstream file(folder_ + "/top");
    std::getline(file, before_);
    screen_.set_up(before_);
    before_ = screen_.setup();
  }
  ~KeptSetup() {
    if (folder_.empty() || screen_.setup() == before_) return;
    try {
      make_private_directory(folder_);
      std::ofstream(folder_ + "/top") << screen_.setup() << '\n';
    } catch (const Error&) {
      // The next start begins with the defaults.
    }
  }
  KeptSetup(const KeptSetup&) = delete;
  KeptSetup& operator=(const KeptSetup&) = delete;

 private:
  TopScreen& screen_;
  std::string folder_, before_;
};

int show_live(const TopArguments& arguments, const Session& session) {
  TopScreen screen;
  const KeptSetup kept(screen, session);
  ProcessorLoad load;
  screen.add(take_sample(load, session));
  const auto interval =
      std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(arguments.interval_seconds));
  const Terminal terminal;
  auto next = steady_clock::now() + interval;
  for (;;) {
    const TerminalSize size = terminal.size();
    terminal.show(screen.lines({.width = size.width,
                                .height = size.height,
                                .has_colour = session.console.colour_out,
                                .ascii = !session.console.is_utf8()}));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - steady_clock::now());
    std::string typed;
    const Terminal::Input input =
        terminal.wait(std::clamp(left, std::chrono::milliseconds(0), std::chrono::milliseconds(86'400'000)), typed);
    if (input == Terminal::Input::ended) return 0;
    for (std::size_t at = 0; at < typed.size();)
      if (screen.is_typing())
        screen.type(typed[at++]);
      else if (!screen.press(key_of(typed, at)))
        return 0;
    if (const std::optional<int> pid = screen.take_kill())
      screen.say(kill(*pid, SIGTERM) == 0 ? fmt::format("pid {} was asked to end", *pid)
                                          : fmt::format("pid {} cannot be ended: {}", *pid, std::strerror(errno)));
    if (steady_clock::now() < next) continue;
    screen.add(take_sample(load, session));
    next = steady_clock::now() + interval;
  }
}

int show_once(const Session& session) {
  ProcessorLoad load;
  // The CPU's load needs two samples, a little apart.
  load.since_last();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const TopSample sample = take_sample(load, session);
  if (session.json) {
    print_document(session.console.out, 1, [&](JsonWriter& json) { write(json, sample); });
    return 0;
  }
  TopScreen screen;
  screen.add(sample);
  const std::vector<std::string> lines = screen.plain();
  for (std::size_t i = 0; i < lines.size(); ++i)
    session.console.out << (i == 0 ? session.console.bold(lines[i]) : lines[i]) << '\n';
  return 0;
}

int stream_json(const TopArguments& arguments, const Session& session) {
  ProcessorLoad load;
  while (session.console.out) {
    const TopSample sample = take_sample(load, session);
    session.console.out << document(1, [&](JsonWriter& json) { write(json, sample); }) << std::endl;
    if (session.console.out) std::this_thread::sleep_for(std::chrono::duration<double>(arguments.interval_seconds));
  }
  return 0;
}

int show(const TopArguments& arguments, const Session& session) {
  if (session.json && arguments.has_interval && !arguments.once) return stream_json(arguments, session);
  if (arguments.once || session.json || !session.console.out_is_terminal || !Terminal::is_possible()) return show_once(session);
  return show_live(arguments, session);
}

}  // namespace

void add_top_command(Command& app, Session& session) {
  auto arguments = std::make_shared<TopArguments>();
  Command* command = app.add_subcommand("top", "Monitor the devices: state, holder, queue, load, memory, power, temperature");
  command->add_flag("--once", arguments->once, "Print the table once");
  Option* interval = command->add_option("--interval", arguments->interval_seconds, "Seconds between updates; 1 by default")
                         ->check(in_range(0.1, 86400.0))
                         ->type_name("SECONDS");
  add_output_options(*command, session);
  command->footer(kNotes);
  command->callback([arguments, interval, &session] {
    arguments->has_interval = interval->count() > 0;
    session.action = [arguments, &session] { return show(*arguments, session); };
  });
}

}  // namespace tenon::cli
