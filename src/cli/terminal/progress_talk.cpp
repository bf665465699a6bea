#include "cli/terminal/progress_talk.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <utility>

namespace tenon::cli {

void ProgressTalk::stage(const Progress& progress) {
  if (progress.stage == "queued") return waiting(progress.device, progress.place);
  if (console_.progress == ProgressStyle::json) write({{"progress", progress.stage}, {"device", progress.device}});
}

void ProgressTalk::waiting(const std::string& device, const QueuePlace& place) {
  waiting(device, place,
          fmt::format("waiting for {}: {}{} before this one", device,
                      place.holder.empty() ? "" : "held by " + place.holder + "; ", place.ahead_here + place.ahead_elsewhere));
}

void ProgressTalk::waiting(const std::string& device, const QueuePlace& place, const std::string& sentence) {
  const int ahead = place.ahead_here + place.ahead_elsewhere;
  if (ahead == 0 || console_.progress == ProgressStyle::none) return;
  if (console_.progress == ProgressStyle::json)
    return write({{"progress", "queued"}, {"device", device}, {"ahead", ahead}, {"holder", place.holder}});
  if (sentence != std::exchange(told_, sentence)) console_.err << "tenon: " << sentence << std::endl;
}

std::function<void(double)> ProgressTalk::measuring(const std::string& what) {
  if (console_.progress == ProgressStyle::json)
    return [this, what](double part) {
      write({{"progress", "measuring"}, {"what", what}, {"percent", static_cast<int>(100 * part)}});
    };
  if (!shows_line()) return {};
  return [this, what](double part) { show_line(fmt::format("{:<12}{:3.0f} %", what, 100 * part)); };
}

void ProgressTalk::measuring_batch(std::int64_t batch) {
  if (console_.progress == ProgressStyle::json) return write({{"progress", "measuring"}, {"batch", batch}});
  if (shows_line()) show_line(fmt::format("batch {}", batch));
}

void ProgressTalk::show_line(const std::string& text) {
  console_.err << "\r\033[K" << text << std::flush;
  is_line_shown_ = true;
}

void ProgressTalk::clear() {
  if (is_line_shown_) console_.err << "\r\033[K" << std::flush;
  is_line_shown_ = false;
}

void ProgressTalk::write(const boost::json::object& event) {
  const std::string line = boost::json::serialize(event);
  if (line != std::exchange(told_, line)) console_.err << line << std::endl;
}

}  // namespace tenon::cli
