#include "cli/terminal/top_screen.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text/units.h"
#include "lease/turnstile/queue_text.h"
#include "present/device/device_status.h"
#include "present/text.h"

namespace tenon::cli {
namespace {

using present::aligned;
using present::kNothing;
using present::padded;

constexpr std::size_t kSparkWidth = 20;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:3.0f} %", 100 * *share) : std::string(kNothing);
}

std::string number(const std::optional<double>& value, const char* unit) {
  return value ? fmt::format("{:.0f} {}", *value, unit) : std::string(kNothing);
}

std::string memory(const DeviceSample& sample) {
  if (!sample.device.memory_total_bytes) return kNothing;
  const std::string total = format_bytes(static_cast<double>(*sample.device.memory_total_bytes));
  const auto used = sample.memory_used();
  return used ? fmt::format("{} of {}", format_bytes(static_cast<double>(*used)), total) : total;
}

double memory_share(const DeviceSample& sample) {
  const auto used = sample.memory_used();
  if (!used || *sample.device.memory_total_bytes == 0) return -1;
  return static_cast<double>(*used) / static_cast<double>(*sample.device.memory_total_bytes);
}

std::string who_has(const Turnstile::Position& place) {
  return place.is_known ? fmt::format("{}, {}", who(place), format_seconds(seconds_since(place))) : "somebody";
}

}  // namespace

std::string DeviceSample::state() const {
  for (const Turnstile::Position& place : queue.places)
    if (place.is_holding) return place.kind == TicketKind::shared ? "shared" : "held";
  if (!device.holders.empty()) return "in use";
  if (!device.available) return "unusable";
  return queue.is_dirty ? "dirty" : "free";
}

std::string DeviceSample::holder() const {
  std::string text;
  for (const Turnstile::Position& place : queue.places)
    if (place.is_holding) text += (text.empty() ? "" : "; ") + who_has(place);
  if (!text.empty()) return text;
  if (!device.holders.empty()) return fmt::format("pid {}", fmt::join(device.holders, ", "));
  if (!device.available) return device.reason;
  return "";
}

int DeviceSample::waiting() const {
  return static_cast<int>(std::count_if(queue.places.begin(), queue.places.end(),
                                        [](const Turnstile::Position& place) { return !place.is_holding; }));
}

std::optional<std::uint64_t> DeviceSample::memory_used() const {
  if (!device.memory_total_bytes || !device.memory_free_bytes) return std::nullopt;
  return *device.memory_total_bytes - std::min(*device.memory_free_bytes, *device.memory_total_bytes);
}

std::optional<double> utilisation_of(const DeviceInfo& device, const std::optional<double>& processor) {
  if (device.kind == DeviceKind::cpu) return processor;
  const auto found = device.details.find("utilization");
  if (found == device.details.end()) return std::nullopt;
  double percent = 0;
  const std::string& text = found->second;
  if (std::from_chars(text.data(), text.data() + text.size(), percent).ec != std::errc()) return std::nullopt;
  return std::clamp(percent / 100, 0.0, 1.0);
}

void write(JsonWriter& json, const TopSample& sample) {
  json.member("time", present::utc_text(sample.when));
  json.key("devices").begin_array();
  for (const DeviceSample& each : sample.devices) {
    json.begin_object();
    json.member("id", each.device.id);
    json.member("name", each.device.name);
    json.member("kind", name(each.device.kind));
    json.member("available", each.device.available);
    json.member("state", each.state());
    json.text_or_null("holder", each.holder());
    json.member("waiting", each.waiting());
    json.member("memory_total_bytes", each.device.memory_total_bytes);
    json.member("memory_used_bytes", each.memory_used());
    json.member("utilisation", each.utilisation);
    json.member("power_watts", each.device.power_watts);
    json.member("power_limit_watts", each.device.power_limit_watts);
    json.member("temperature_celsius", each.device.temperature_celsius);
    json.key("queue");
    present::write_queue(json, each.queue);
    json.end_object();
  }
  json.end_array();
}

std::string sparkline(const std::vector<std::optional<double>>& values, bool ascii) {
  static const std::vector<std::string> blocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, plain = {"_", ".", "-", "=", "#"};
  const std::vector<std::string>& levels = ascii ? plain : blocks;
  std::string text;
  for (const std::optional<double>& value : values) {
    if (!value || !std::isfinite(*value)) {
      text += ' ';
      continue;
    }
    const double place = std::clamp(*value, 0.0, 1.0) * static_cast<double>(levels.size() - 1);
    text += levels[static_cast<std::size_t>(std::lround(place))];
  }
  return text;
}

std::string fitted(const std::string& text, std::size_t width) {
  std::size_t column = 0, end = 0;
  while (end < text.size()) {
    if (!continues_character(text[end]) && ++column > width) break;
    ++end;
  }
  return text.substr(0, end);
}

std::string_view name(TopOrder order) noexcept {
  constexpr std::string_view names[] = {"id", "utilisation", "memory", "queue"};
  return names[static_cast<int>(order)];
}

void TopScreen::add(TopSample sample) {
  sample_ = std::move(sample);
  std::map<std::string, History> kept;
  for (const DeviceSample& each : sample_.devices) {
    History& history = kept[each.device.id] = std::move(history_[each.device.id]);
    history.utilisation.push_back(each.utilisation);
    if (history.utilisation.size() > kHistory) history.utilisation.pop_front();
  }
  history_ = std::move(kept);
  if (!history_.contains(selected_)) selected_ = sample_.devices.empty() ? "" : ordered().front()->device.id;
}

bool TopScreen::is_shown(const DeviceSample& sample) const {
  if (filter_.empty()) return true;
  const auto lower = [](std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return text;
  };
  const std::string wanted = lower(filter_);
  for (const std::string& text : {sample.device.id, sample.device.name, sample.state(), sample.holder()})
    if (lower(text).find(wanted) != std::string::npos) return true;
  return false;
}

std::vector<const DeviceSample*> TopScreen::ordered() const {
  std::vector<const DeviceSample*> devices;
  for (const DeviceSample& each : sample_.devices)
    if (is_shown(each)) devices.push_back(&each);
  // As found where the key does not decide: equal ones must not change places at each sample.
  const auto key = [&](const DeviceSample* each) -> double {
    switch (order_) {
      case TopOrder::utilisation: return -each->utilisation.value_or(-1);
      case TopOrder::memory: return -memory_share(*each);
      case TopOrder::queue: return -(each->waiting() + (each->state() == "held" || each->state() == "shared" ? 0.5 : 0));
      case TopOrder::id: break;
    }
    return 0;
  };
  std::sort(devices.begin(), devices.end(), [&](const DeviceSample* a, const DeviceSample* b) {
    const double first = key(a), second = key(b);
    return first != second ? first < second : a < b;
  });
  if (is_reversed_) std::reverse(devices.begin(), devices.end());
  return devices;
}

void TopScreen::move(int by) {
  const std::vector<const DeviceSample*> devices = ordered();
  if (devices.empty()) return;
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&](const DeviceSample* each) { return each->device.id == selected_; });
  const int at = found == devices.end() ? 0 : static_cast<int>(found - devices.begin());
  selected_ = devices[static_cast<std::size_t>(std::clamp(at + by, 0, static_cast<int>(devices.size()) - 1))]->device.id;
}

void TopScreen::ask_to_kill() {
  to_kill_.reset();
  for (const DeviceSample& each : sample_.devices) {
    if (each.device.id != selected_) continue;
    for (const Turnstile::Position& place : each.queue.places)
      if (place.is_holding && place.is_known && place.is_in_this_pid_namespace) to_kill_ = place.pid;
    if (!to_kill_ && !each.device.holders.empty()) to_kill_ = each.device.holders.front();
  }
  if (to_kill_)
    mode_ = Mode::confirm;
  else
    message_ = selected_ + ": no process that holds it is known";
}

void TopScreen::type(char typed) {
  if (mode_ == Mode::confirm) {
    if (typed == 'y' || typed == 'Y') kill_ = to_kill_;
    mode_ = Mode::list;
    return;
  }
  if (typed == '\r' || typed == '\n') {
    mode_ = Mode::list;
  } else if (typed == '\033') {
    filter_.clear();
    mode_ = Mode::list;
  } else if (typed == '\177' || typed == '\b') {
    if (!filter_.empty()) filter_.pop_back();
  } else if (typed >= ' ' && typed < 127 && filter_.size() < kLongestFilter) {
    filter_ += typed;
  }
  const std::vector<const DeviceSample*> shown = ordered();
  const auto is_selected = [&](const DeviceSample* each) { return each->device.id == selected_; };
  if (!shown.empty() && std::ranges::none_of(shown, is_selected)) selected_ = shown.front()->device.id;
}

std::string TopScreen::setup() const {
  return fmt::format("{} {} {}", name(order_), is_reversed_ ? "reversed" : "forward", filter_);
}

void TopScreen::set_up(std::string_view setup) {
  const std::size_t first = setup.find(' '), second = setup.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return;
  const std::string_view direction = setup.substr(first + 1, second - first - 1), filter = setup.substr(second + 1);
  const bool is_text = std::ranges::all_of(filter, [](char c) { return c >= ' ' && c < 127; });
  if ((direction != "reversed" && direction != "forward") || !is_text || filter.size() > kLongestFilter) return;
  for (const TopOrder order : {TopOrder::id, TopOrder::utilisation, TopOrder::memory, TopOrder::queue}) {
    if (name(order) != setup.substr(0, first)) continue;
    order_ = order;
    is_reversed_ = direction == "reversed";
    filter_ = filter;
  }
}

std::string TopScreen::last_line() const {
  if (mode_ == Mode::filter) return fmt::format("filter: {}_   Enter keeps it, Esc shows all", filter_);
  if (mode_ == Mode::confirm) return fmt::format("End pid {}, which holds {}? y/n", to_kill_.value_or(0), selected_);
  if (!message_.empty()) return message_;
  return fmt::format("q quit   s sort   r reverse   / filter{}   K end the holder   arrows select",
                     filter_.empty() ? "" : fmt::format(" ({})", filter_));
}

bool TopScreen::press(Key key) {
  constexpr int kPage = 10, kAll = 1 << 20;
  if (key != Key::none) message_.clear();
  switch (key) {
    case Key::filter: mode_ = Mode::filter; return true;
    case Key::kill: ask_to_kill(); return true;
    case Key::none: return true;
    case Key::up: move(-1); return true;
    case Key::down: move(1); return true;
    case Key::page_up: move(-kPage); return true;
    case Key::page_down: move(kPage); return true;
    case Key::home: move(-kAll); return true;
    case Key::end: move(kAll); return true;
    case Key::sort: order_ = static_cast<TopOrder>((static_cast<int>(order_) + 1) % 4); return true;
    case Key::reverse: is_reversed_ = !is_reversed_; return true;
    case Key::quit: return false;
  }
  return true;
}

namespace {

using Row = std::vector<std::string>;

const Row kHead = {"ID", "STATE", "QUEUE", "UTIL", "LAST SAMPLES", "MEMORY", "POWER", "TEMP", "HOLDER"};

Row row_of(const DeviceSample& sample, const std::string& spark) {
  std::string power = number(sample.device.power_watts, "W");
  if (sample.device.power_watts && sample.device.power_limit_watts)
    power = fmt::format("{:.0f} of {:.0f} W", *sample.device.power_watts, *sample.device.power_limit_watts);
  const std::string holder = sample.holder();
  return {sample.device.id,
          sample.state(),
          sample.waiting() > 0 ? fmt::format("{} wait", sample.waiting()) : kNothing,
          percent(sample.utilisation),
          spark,
          memory(sample),
          power,
          number(sample.device.temperature_celsius, "C"),
          holder.empty() ? kNothing : holder};
}

std::vector<std::optional<double>> newest(const std::deque<std::optional<double>>& history, std::size_t count) {
  std::vector<std::optional<double>> values(count);
  const std::size_t has = std::min(count, history.size());
  std::copy(history.end() - static_cast<std::ptrdiff_t>(has), history.end(), values.end() - static_cast<std::ptrdiff_t>(has));
  return values;
}

}  // namespace

std::vector<std::string> TopScreen::plain() const {
  std::vector<Row> rows{kHead};
  for (const DeviceSample* each : ordered()) rows.push_back(row_of(*each, ""));
  for (Row& row : rows) row.erase(row.begin() + 4);
  return aligned(rows);
}

std::vector<std::string> TopScreen::details(const DeviceSample& sample) const {
  std::vector<std::string> lines{fmt::format("{}  {}", sample.device.id, sample.device.name)};
  if (!sample.device.available) lines.push_back(fmt::format("  {}; {}", sample.device.reason, sample.device.remedy));
  int place = 0;
  for (const Turnstile::Position& each : sample.queue.places)
    lines.push_back(fmt::format("  {:<8}  {}", each.is_holding ? "holds" : fmt::format("waits, {}", ++place), who_has(each)));
  if (sample.queue.places.empty()) lines.emplace_back("  no holders, no waiters");
  return lines;
}

std::vector<std::string> TopScreen::lines(const Shape& shape) const {
  const std::size_t width = static_cast<std::size_t>(std::max(1, shape.width));
  const std::size_t height = static_cast<std::size_t>(std::max(1, shape.height));
  const std::vector<const DeviceSample*> devices = ordered();
  std::vector<Row> rows{kHead};
  for (const DeviceSample* each : devices)
    rows.push_back(row_of(*each, sparkline(newest(history_.at(each->device.id).utilisation, kSparkWidth), shape.ascii)));
  const std::vector<std::string> table = aligned(rows);

  const auto styled = [&](const std::string& text, const char* code) {
    const std::string cut = fitted(text, width);
    return shape.has_colour ? fmt::format("\033[{}m{}\033[0m", code, cut) : cut;
  };
  const std::time_t when = std::chrono::system_clock::to_time_t(sample_.when);
  std::vector<std::string> lines{fitted(fmt::format("tenon top  {:%H:%M:%S}  {} devices  sorted by {}{}", fmt::localtime(when),
                                                    devices.size(), name(order_), is_reversed_ ? ", reversed" : ""),
                                        width),
                                 styled(table[0], "1")};
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i]->device.id == selected_) chosen = i;
  // Of a long list, the part with the selected device in it.
  const std::size_t room = height > 8 ? height - 8 : 1;
  const std::size_t first =
      devices.size() <= room ? 0 : std::min(chosen > room / 2 ? chosen - room / 2 : 0, devices.size() - room);
  for (std::size_t i = first; i < std::min(devices.size(), first + room); ++i)
    lines.push_back(i == chosen ? styled(padded("> " + table[i + 1], width), "7") : fitted("  " + table[i + 1], width));
  lines[1] = styled("  " + table[0], "1");
  if (!devices.empty()) {
    lines.emplace_back();
    for (const std::string& line : details(*devices[chosen])) lines.push_back(fitted(line, width));
  }
  const std::string help = styled(last_line(), is_typing() || !message_.empty() ? "1" : "2");
  if ((is_typing() || !message_.empty()) && lines.size() + 2 > height && height > 2) {
    lines.resize(height - 1);
    lines.push_back(help);
  } else if (lines.size() + 2 <= height) {
    lines.emplace_back();
    lines.push_back(help);
  } else if (lines.size() > height) {
    lines.resize(height);
  }
  return lines;
}

}  // namespace tenon::cli
