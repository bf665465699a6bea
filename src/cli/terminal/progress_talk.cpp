#include "cli/terminal/progress_talk.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/text/units.h"
#include "present/run.h"

namespace tenon::cli {

void ProgressTalk::stage(const Progress& progress) { stage(progress, present::progress_text(progress)); }

void ProgressTalk::stage(const Progress& progress, const std::string& sentence) {
  const bool is_queued = progress.stage == "queued";
  if (is_queued && progress.place.ahead_here + progress.place.ahead_elsewhere == 0) return;
  if (console_.progress == ProgressStyle::json)
    write([&](JsonWriter& json) { present::write_progress(json, progress); });
  else if (is_queued && console_.progress == ProgressStyle::automatic && sentence != std::exchange(told_, sentence))
    console_.err << "tenon: " << sentence << std::endl;
}

std::function<void(double)> ProgressTalk::measuring(const std::string& what) {
  if (console_.progress == ProgressStyle::json)
    return [this, what](double part) {
      write([&](JsonWriter& json) {
        json.begin_object();
        json.member("stage", "measuring");
        json.member("what", what);
        json.member("percent", static_cast<int>(100 * part));
        json.end_object();
      });
    };
  if (!shows_line()) return {};
  return [this, what](double part) { show_line(fmt::format("{:<12}{:3.0f} %", what, 100 * part)); };
}

void ProgressTalk::measuring_batch(std::int64_t batch) {
  if (console_.progress == ProgressStyle::json)
    return write([&](JsonWriter& json) {
      json.begin_object();
      json.member("stage", "measuring");
      json.member("batch", batch);
      json.end_object();
    });
  if (shows_line()) show_line(fmt::format("batch {}", batch));
}

std::function<void(std::size_t)> ProgressTalk::counting(const std::string& what, std::size_t before, std::size_t total) {
  if (console_.progress != ProgressStyle::json && !shows_line()) return {};
  return [this, what, before, total, start = std::chrono::steady_clock::now()](std::size_t done) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double rate = done > before && seconds > 0 ? static_cast<double>(done - before) / seconds : 0;
    const double left = rate > 0 ? static_cast<double>(total - done) / rate : 0;
    if (console_.progress != ProgressStyle::json)
      return show_line(fmt::format("{} of {} {}, {}, {} left", done, total, what, format_rate(rate, (what + "/s").c_str()),
                                   format_seconds(left)));
    write([&](JsonWriter& json) {
      json.begin_object();
      json.member("stage", "counting");
      json.member("what", what);
      json.member("done", done);
      json.member("total", total);
      json.member("per_second", rate);
      json.member("seconds_left", left);
      json.end_object();
    });
  };
}

void ProgressTalk::show_line(const std::string& text) {
  console_.err << "\r\033[K" << text << std::flush;
  is_line_shown_ = true;
}

void ProgressTalk::clear() {
  if (is_line_shown_) console_.err << "\r\033[K" << std::flush;
  is_line_shown_ = false;
}

void ProgressTalk::write(const std::function<void(JsonWriter&)>& progress) {
  std::string line;
  JsonWriter json(line);
  json.begin_object();
  progress(json.key("progress"));
  json.end_object();
  if (line != std::exchange(told_, line)) console_.err << line << std::endl;
}

}  // namespace tenon::cli
