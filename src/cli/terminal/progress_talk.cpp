#include "cli/terminal/progress_talk.h"

#include <fmt/format.h>

#include <utility>

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
