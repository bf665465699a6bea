// TopScreen: what `tenon top` shows, as lines of text. Knows no terminal: samples and keys come in, lines go out.
//
//   TopScreen screen;
//   screen.add(take_sample(...));
//   for (const std::string& line : screen.lines({.width = 120, .height = 40})) print(line);
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/json_writer.h"
#include "lease/turnstile/turnstile.h"
#include "tenon/device.h"

namespace tenon::cli {

// A device at one moment. What could not be read is empty.
struct DeviceSample {
  DeviceInfo device;
  Turnstile::Queue queue;
  std::optional<double> utilisation;  // 0 to 1

  std::string state() const;   // "free", "held", "shared", "in use", "dirty", "unusable"
  std::string holder() const;  // who has it; for an unusable one, why
  int waiting() const;
  std::optional<std::uint64_t> memory_used() const;  // bytes
};

// The share of its time |device| is busy, as its maker's software says, or |processor| for the CPU.
std::optional<double> utilisation_of(const DeviceInfo& device, const std::optional<double>& processor);

struct TopSample {
  std::chrono::system_clock::time_point when;
  std::vector<DeviceSample> devices;
};

// The members "time" and "devices": [{id, name, state, holder, waiting, memory..., queue}]
void write(JsonWriter& json, const TopSample& sample);

// One character for each value, 0 to 1, the newest last: "▁▂▅█"; where |ascii|, "_.-=#". A value that is not known is a space.
std::string sparkline(const std::vector<std::optional<double>>& values, bool ascii);

// The first |width| columns of |text|: no character is cut in two.
std::string fitted(const std::string& text, std::size_t width);

enum class TopOrder : std::uint8_t { id, utilisation, memory, queue };
std::string_view name(TopOrder order) noexcept;

class TopScreen {
 public:
  struct Shape {
    int width = 80, height = 24;
    bool has_colour = false;
    bool ascii = false;  // a terminal that has no blocks
  };

  void add(TopSample sample);

  // What a key does. Returns false for the one that ends it.
  enum class Key : std::uint8_t { none, up, down, sort, reverse, quit, page_up, page_down, home, end, filter, kill };
  bool press(Key key);
  // After Key::filter characters are text, and after Key::kill an answer: they go to type() until it is false.
  bool is_typing() const noexcept { return mode_ != Mode::list; }
  void type(char typed);
  // The process that somebody has asked to end, once.
  std::optional<int> take_kill() { return std::exchange(kill_, std::nullopt); }
  // A line below the devices, until a key is pressed.
  void say(std::string message) { message_ = std::move(message); }

  // Exactly |height| lines at most |width| columns wide; fewer for a taller terminal than needed.
  std::vector<std::string> lines(const Shape& shape) const;
  // The table alone, for a pipe.
  std::vector<std::string> plain() const;

  // The order and the filter as a line of text: "memory reversed cuda".
  std::string setup() const;
  // Takes over such a line; one that is damaged changes nothing.
  void set_up(std::string_view setup);

  const std::string& selected() const noexcept { return selected_; }
  TopOrder order() const noexcept { return order_; }

 private:
  static constexpr std::size_t kHistory = 60, kLongestFilter = 64;
  struct History {
    std::deque<std::optional<double>> utilisation;
  };
  enum class Mode : std::uint8_t { list, filter, confirm };
  std::vector<const DeviceSample*> ordered() const;
  bool is_shown(const DeviceSample& sample) const;
  std::string last_line() const;
  void ask_to_kill();
  std::vector<std::string> details(const DeviceSample& sample) const;
  void move(int by);

  TopSample sample_;
  std::map<std::string, History> history_;
  TopOrder order_ = TopOrder::id;
  bool is_reversed_ = false;
  std::string selected_;  // an id: stays on its device when the order changes
  Mode mode_ = Mode::list;
  std::string filter_, message_;
  std::optional<int> to_kill_, kill_;  // asked about; confirmed
};

}  // namespace tenon::cli
